//! Random manual edits.

use proptest::prelude::*;
use proptest::sample::{Index, select};

#[derive(Clone, Debug)]
pub(crate) enum HandEdit {
    /// Saves with a byte order mark.
    Mark,
    /// Inserts a `#!` line at the top.
    Shell,
    /// Saves with Windows line endings.
    Windows,
    /// Saves one line with a Windows line ending.
    WindowsLine(Index),
    /// Removes the final newline.
    Open,
    /// Inserts a line between two others.
    Line(Index, &'static str),
    /// Appends to the end of a line.
    Trailing(Index, &'static str),
    /// Joins a line with the following one.
    Join(Index),
    /// Moves a line.
    Move(Index, Index),
    /// Replaces a text.
    Replace(&'static str, &'static str),
}

/// These lines look like code that commands write or look for.
const LINES: &[&str] = &[
    "// pub mod mug;",
    "// manager.controller(mug::controller())",
    "/* pub mod mug;",
    "*/",
    "/* pub mod mug;\n   .controller(mug::controller())\n*/",
    "/// let manager = webhook::register(manager);",
    "//! pub use mug::*;",
    "const A: &str = \"\npub mod mug;\n.controller(mug::controller()) webhook::register(manager)\n\";",
    "const B: &str = r#\"manager\"/*\"#;",
    "#[cfg(unix)]",
    "#[cfg(test)]",
    "#[cfg(test)]\nmod tests {\n    pub mod mug {}\n}",
    "pub(crate) mod apple {} mod zebra {}",
    "macro_rules! m { () => { mod mug; } }",
    "use std::fmt as mug_format;",
    "fn helper(manager: Manager) -> Manager { manager }",
    "let manager = helper(manager);",
    "let note = \".controller(mug::controller())\"; // .validator(validate)",
    "#[webhook(validating)]",
    "drop(1);",
    "}",
    "",
];

const TRAILS: &[&str] = &[
    " // .controller(mug::controller())",
    " /* pub mod mug; */",
    " /* one\n   pub mod mug;\n   two */",
    " /* manager",
    " // \u{e4}\u{1f600}",
    "\t",
];

const REPLACEMENTS: &[(&str, &str)] = &[
    ("manager", "m"),
    ("    ", "\t"),
    (".", "\n        ."),
    (".", "."),
    ("pub mod", "mod"),
    ("pub fn", "#[inline]\npub fn"),
    ("controller::", "self::controller::"),
    ("use shop::controller;", "use shop::{api as _, controller};"),
    ("{\n", "{ "),
    ("::", " :: "),
    ("default)", "default) // more\n        "),
];

pub(crate) fn hand_edit() -> impl Strategy<Value = HandEdit> {
    let line = || any::<Index>();
    prop_oneof![
        1 => Just(HandEdit::Mark),
        1 => Just(HandEdit::Shell),
        1 => Just(HandEdit::Windows),
        1 => line().prop_map(HandEdit::WindowsLine),
        1 => Just(HandEdit::Open),
        6 => (line(), select(LINES)).prop_map(|(at, text)| HandEdit::Line(at, text)),
        3 => (line(), select(TRAILS)).prop_map(|(at, text)| HandEdit::Trailing(at, text)),
        1 => line().prop_map(HandEdit::Join),
        1 => (line(), line()).prop_map(|(from, to)| HandEdit::Move(from, to)),
        2 => select(REPLACEMENTS).prop_map(|(from, to)| HandEdit::Replace(from, to)),
    ]
}

pub(crate) fn apply(text: &str, edit: &HandEdit) -> String {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let place = |at: &Index| at.index(lines.len().max(1));
    match edit {
        HandEdit::Mark => return format!("\u{feff}{}", text.trim_start_matches('\u{feff}')),
        HandEdit::Shell => return format!("#!/usr/bin/env rust\n{text}"),
        HandEdit::Windows => return text.replace("\r\n", "\n").replace('\n', "\r\n"),
        HandEdit::Open => return text.trim_end().to_owned(),
        HandEdit::Replace(from, to) => return text.replace(from, to),
        HandEdit::WindowsLine(at) => {
            let at = place(at);
            if let Some(line) = lines.get_mut(at) {
                *line = line.replace("\r\n", "\n").replace('\n', "\r\n");
            }
        }
        HandEdit::Line(at, new) => lines.insert(place(at), format!("{new}\n")),
        HandEdit::Trailing(at, new) => {
            let at = place(at);
            if let Some(line) = lines.get_mut(at) {
                *line = line.replacen('\n', &format!("{new}\n"), 1);
            }
        }
        HandEdit::Join(at) => {
            let at = place(at);
            if let Some(line) = lines.get_mut(at) {
                *line = line.trim_end().to_owned();
            }
        }
        HandEdit::Move(from, to) => {
            let (from, to) = (place(from), place(to));
            if from < lines.len() {
                let line = lines.remove(from);
                lines.insert(to.min(lines.len()), line);
            }
        }
    }
    lines.concat()
}

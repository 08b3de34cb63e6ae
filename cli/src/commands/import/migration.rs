//! MIGRATION.md: what was ported from each Go file, and what is left to the user.

use super::comparison::{Match, Report};
use super::composed::{Composed, Ported};
use super::programs::Programs;
use rbuilder_go_project::{GoFile, GoProject};

pub(super) const MIGRATION: &str = "MIGRATION.md";

/// Line span (last minus first line) of a function with a single statement.
const LINES_OF_ACCESSOR: usize = 2;

/// Line span (last minus first line) of a function without any logic.
const LINES_OF_HELPER: usize = 7;

pub(super) fn render(original: &GoProject, composed: &Composed<'_>, report: &Report) -> String {
    let mut text = format!(
        "# Migration of {}\n\nThis project was written by `rbuilder import` from the kubebuilder project {}. \
         Delete each section when it is done, and the file at the end.\n\n",
        composed.project.known.project_name,
        match original.repo.as_str() {
            "" => "in Go".to_owned(),
            repo => format!("`{repo}`"),
        }
    );
    text.push_str("## By hand\n\n");
    let mut is_done = true;
    for row in report.rows.iter().filter(|row| row.result == Match::ByHand) {
        is_done = false;
        text.push_str(&format!("- [ ] {}: {}\n", row.what, row.details.join("; ")));
    }
    if is_done {
        text.push_str("Nothing besides the logic in the files below.\n");
    }
    text.push_str("\n## Files\n");
    let programs = Programs::find(&original.files);
    let files = original.files.iter().filter(|file| file.has_logic());
    let mut sections: Vec<Section<'_>> = files
        .map(|file| Section::new(file, composed, &programs))
        .collect();
    sections.sort_by_key(|section| (section.rank, section.path));
    for section in sections.iter().filter(|section| !section.text.is_empty()) {
        text.push_str(&format!(
            "\n### {}{}\n\n{}",
            section.path,
            section.size(),
            section.text
        ));
    }
    text.push_str("\n## Manifests\n\n| | | |\n|---|---|---|\n");
    for row in &report.rows {
        let details = row.details.join("; ").replace('|', "\\|");
        text.push_str(&format!(
            "| {} | {} | {details} |\n",
            row.what.replace('|', "\\|"),
            row.result.word()
        ));
    }
    text
}

struct Section<'a> {
    path: &'a str,
    rank: Rank,
    text: String,
    /// Number of lines in functions that have to be ported.
    lines: usize,
}

/// Order of files. Reconcilers and admission handlers come first; other files only support them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Controller,
    Webhook,
    Logic,
    /// Short functions, e.g. accessors.
    Helpers,
}

impl<'a> Section<'a> {
    fn new(file: &'a GoFile, composed: &Composed<'_>, programs: &Programs<'_>) -> Self {
        let (text, lines) = describe_file(file, composed, programs);
        let mut functions = file.functions.iter();
        let has_logic = functions.any(|function| function.end - function.line > LINES_OF_HELPER);
        let rank = match () {
            () if !file.controllers.is_empty() => Rank::Controller,
            () if !file.webhooks.is_empty() => Rank::Webhook,
            () if has_logic => Rank::Logic,
            () => Rank::Helpers,
        };
        Section {
            path: &file.path,
            rank,
            text,
            lines,
        }
    }

    fn size(&self) -> String {
        match self.lines {
            0 => String::new(),
            lines => format!(" ({lines} lines to port)"),
        }
    }
}

/// Describes the remaining work on a file. Also returns the number of lines in functions with more
/// than one statement.
fn describe_file(file: &GoFile, composed: &Composed<'_>, programs: &Programs<'_>) -> (String, usize) {
    let ported: Vec<&Ported<'_>> = composed
        .ported
        .iter()
        .filter(|ported| ported.go_file.is_some_and(|own| own.path == file.path))
        .collect();
    let mut text = String::new();
    for controller in &ported {
        text.push_str(&format!(
            "The controller of {} is {}.",
            controller.kind, controller.rust_file
        ));
        if !controller.taken.is_empty() {
            text.push_str(&format!(" Taken over: {}.", controller.taken.join(", ")));
        }
        text.push('\n');
        for (go, rust) in &controller.maps {
            text.push_str(&format!("- [ ] port {go} to `{rust}`\n"));
        }
    }
    for go_type in &file.webhooks {
        let mut files = composed
            .webhook_files
            .iter()
            .filter(|(key, _)| key.split('/').next() == Some(go_type.name.as_str()));
        match files.next() {
            Some((_, rust)) => text.push_str(&format!("The webhooks of {} are in {rust}.\n", go_type.name)),
            None => text.push_str(&format!(
                "The webhooks of {} have no counterpart yet.\n",
                go_type.name
            )),
        }
    }
    text.push_str(&programs.describe(file));
    let is_set_up = |name: &str| name.starts_with("Setup") && name.ends_with("WithManager");
    let is_scaffold = |name: &str| name == "init" || name == "main";
    let mut lines = 0;
    let mut accessors = Vec::new();
    for function in &file.functions {
        let is_wiring = is_set_up(&function.name)
            && function.end - function.line < 60
            && !(ported.is_empty() && file.webhooks.is_empty());
        if is_wiring || is_scaffold(&function.name) {
            continue;
        }
        let name = match &function.receiver {
            Some(receiver) => format!("{receiver}.{}", function.name),
            None => function.name.clone(),
        };
        if function.end - function.line <= LINES_OF_ACCESSOR {
            accessors.push(format!("`{name}` (line {})", function.line));
            continue;
        }
        lines += function.end - function.line + 1;
        text.push_str(&format!(
            "- [ ] port `{name}` (lines {} to {})\n",
            function.line, function.end
        ));
    }
    if !accessors.is_empty() {
        text.push_str(&format!(
            "- [ ] functions of one statement, as needed: {}\n",
            accessors.join(", ")
        ));
    }
    (text, lines)
}

//! Source replacements proposed by the help of diagnostics, for editors and
//! `rbuilder manifests --fix`.
//!
//! The [table](table::ROWS) lists the combinations of message and help that determine a
//! replacement. It contains no row if the help leaves a choice, such as "remove it, or write …", or
//! shows an example. Crates report diagnostics without knowing about replacements, just as they do
//! not know about codes.
//!
//! A replacement is only returned if it is unambiguous: the word occurs once at the place, or the
//! argument to change is the only one with its name.
//!
//! To add one, add a row, and an example to `tests.rs`, which requires one for each row. Another
//! test corrects the projects in `crates/generator/tests/mutations`.

mod arguments;
mod edits;
mod pattern;
mod table;
#[cfg(test)]
mod tests;
mod words;

use std::ops::Range;

use crate::Diagnostic;
use pattern::{Captures, capture};
use table::ROWS;

/// A text that replaces part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The bytes to replace. Empty to insert the text.
    pub range: Range<usize>,
    /// The new text.
    pub text: String,
}

/// Returns the replacement proposed by the help of a diagnostic. `source` is the text of the
/// diagnostic's file.
pub fn find_replacement(diagnostic: &Diagnostic, source: &str) -> Option<Replacement> {
    source.get(diagnostic.place.range.clone())?;
    let help = diagnostic.help.as_deref().unwrap_or_default();
    ROWS.iter().find_map(|row| row.apply(diagnostic, help, source))
}

impl table::Row {
    fn apply(&self, diagnostic: &Diagnostic, help: &str, source: &str) -> Option<Replacement> {
        let mut captures = capture(self.message, &diagnostic.message)?;
        captures.extend(capture(self.help, help)?);
        let found = Found {
            captures: &captures,
            source,
            place: diagnostic.place.range.clone(),
        };
        let replacement = self.edit(&found)?;
        // Help that contains this character only shows part of what to write.
        let is_complete = !replacement.text.contains('…');
        (is_complete && source.get(replacement.range.clone()) != Some(&replacement.text))
            .then_some(replacement)
    }
}

/// A diagnostic that matches a row of the table.
struct Found<'s> {
    captures: &'s Captures<'s>,
    source: &'s str,
    place: Range<usize>,
}

impl<'s> Found<'s> {
    /// Returns the text of a named part of the message or the help.
    fn get(&self, name: &str) -> Option<&'s str> {
        self.captures.get(name)
    }

    /// Returns the source at the place.
    fn placed(&self) -> &'s str {
        &self.source[self.place.clone()]
    }

    /// Returns a copy with a different place.
    fn at(&self, place: Range<usize>) -> Found<'s> {
        Found { place, ..*self }
    }

    fn at_place(&self, text: &str) -> Replacement {
        Replacement {
            range: self.place.clone(),
            text: text.to_owned(),
        }
    }

    /// Returns the file's line ending.
    fn line_end(&self) -> &'static str {
        if self.source.contains("\r\n") {
            "\r\n"
        } else {
            "\n"
        }
    }
}

//! Rows of tables of replacements.

use std::ops::Range;

use super::Replacement;
use super::pattern::{Captures, capture};
use super::words::is_misspelled;
use crate::Diagnostic;

/// Returns `None` if the source does not determine the replacement.
type Edit = fn(&Found<'_>) -> Option<Replacement>;

/// A message and a help text, with the edit that they call for.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The pattern of the message. A part that differs is `{name}` if the edit needs it, and `{}`
    /// if not.
    pub message: &'static str,
    /// The pattern of the help. It's empty if the message has none.
    pub help: &'static str,
    edit: Edit,
    /// True if `{old}` has to be a misspelling of `{new}`. Help also suggests names that are less
    /// similar, and we'd rather not pick one of these for the user.
    is_for_misspellings: bool,
}

/// Creates a row.
pub const fn row(message: &'static str, help: &'static str, edit: Edit) -> Row {
    Row {
        message,
        help,
        edit,
        is_for_misspellings: false,
    }
}

/// Creates a row for help that suggests a similar name.
pub(super) const fn misspelling(message: &'static str, help: &'static str, edit: Edit) -> Row {
    Row {
        is_for_misspellings: true,
        ..row(message, help, edit)
    }
}

impl Row {
    /// Returns the replacement for a diagnostic about `source`. It's `None` if the diagnostic
    /// doesn't match the row, or if the source doesn't tell us what to write.
    pub fn apply(&self, diagnostic: &Diagnostic, source: &str) -> Option<Replacement> {
        source.get(diagnostic.place.range.clone())?;
        let mut captures = capture(self.message, &diagnostic.message)?;
        captures.extend(capture(
            self.help,
            diagnostic.help.as_deref().unwrap_or_default(),
        )?);
        let found = Found {
            captures: &captures,
            source,
            place: diagnostic.place.range.clone(),
        };
        if self.is_for_misspellings && !is_misspelled(&found) {
            return None;
        }
        let replacement = (self.edit)(&found)?;
        // Help with this character only shows part of what to write.
        let is_complete = !replacement.text.contains('…');
        (is_complete && source.get(replacement.range.clone()) != Some(&replacement.text))
            .then_some(replacement)
    }
}

/// A diagnostic that matches a row.
#[derive(Debug)]
pub struct Found<'s> {
    captures: &'s Captures<'s>,
    /// The text of the file.
    pub source: &'s str,
    /// The place of the diagnostic, which is a valid range of `source`.
    pub place: Range<usize>,
}

impl<'s> Found<'s> {
    /// Returns what a named part of the message or the help says.
    pub fn get(&self, name: &str) -> Option<&'s str> {
        self.captures.get(name)
    }

    /// Returns the source text at the place.
    pub fn placed(&self) -> &'s str {
        &self.source[self.place.clone()]
    }

    pub(super) fn at(&self, place: Range<usize>) -> Found<'s> {
        Found { place, ..*self }
    }

    /// Replaces the source text at the place.
    pub fn at_place(&self, text: &str) -> Replacement {
        Replacement {
            range: self.place.clone(),
            text: text.to_owned(),
        }
    }

    pub(super) fn line_end(&self) -> &'static str {
        if self.source.contains("\r\n") {
            "\r\n"
        } else {
            "\n"
        }
    }
}

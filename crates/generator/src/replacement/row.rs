//! Rows of replacement tables.

use std::ops::Range;

use super::Replacement;
use super::pattern::{Captures, capture};
use super::words::is_misspelled;
use crate::Diagnostic;

/// Returns `None` if the source does not determine the replacement.
type Edit = fn(&Found<'_>) -> Option<Replacement>;

/// A combination of message and help, with the edit that it calls for.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The pattern of the message. Varying parts are `{name}` if the edit needs them, and `{}`
    /// otherwise.
    pub message: &'static str,
    /// The pattern of the help. Empty if the message has no help.
    pub help: &'static str,
    edit: Edit,
    /// True if `{old}` has to be a misspelling of `{new}`. Help also suggests less similar names,
    /// which shouldn't be chosen on behalf of the user.
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
    /// Returns the replacement for a diagnostic about `source`, or `None` if the diagnostic doesn't
    /// match the row or the source doesn't determine the replacement.
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
        // Help with this character only shows part of the text to write.
        let is_complete = !replacement.text.contains('…');
        (is_complete && source.get(replacement.range.clone()) != Some(&replacement.text))
            .then_some(replacement)
    }
}

/// A diagnostic that matched a row.
#[derive(Debug)]
pub struct Found<'s> {
    captures: &'s Captures<'s>,
    /// The text of the file.
    pub source: &'s str,
    /// The place of the diagnostic, a valid range of `source`.
    pub place: Range<usize>,
}

impl<'s> Found<'s> {
    /// Returns the text of a named part of the message or the help.
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

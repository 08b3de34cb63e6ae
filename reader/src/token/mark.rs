//! Marks: tokens that a reader must not miss, wherever they stand.

use crate::Span;

/// The words that make marks, and the comments to note. They are the caller's.
#[derive(Clone, Copy, Debug, Default)]
pub struct MarkWords {
    /// Names in a `derive(…)`, the last of a path.
    pub derives: &'static [&'static str],
    /// Names in an attribute with arguments in parentheses behind them, the last of a path.
    pub attributes: &'static [&'static str],
    /// The first character of the comments to note.
    pub comments: Option<u8>,
}

/// A token that a reader must not miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The word itself.
    pub word: &'static str,
    /// Its first byte.
    pub at: u32,
    /// True if it stands in the body of a function.
    pub in_body: bool,
}

impl Mark {
    /// The place of the word.
    pub fn span(&self) -> Span {
        let length = u32::try_from(self.word.len()).unwrap_or_default();
        Span {
            start: self.at,
            end: self.at + length,
        }
    }
}

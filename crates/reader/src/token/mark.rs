//! Marks: tokens that a reader must not miss, even inside of function bodies.

use crate::Span;

/// The marks and comments that a caller asks for.
#[derive(Clone, Copy, Debug, Default)]
pub struct MarkWords {
    /// Names in `derive(…)`. Only the last segment of a path is compared.
    pub derives: &'static [&'static str],
    /// Names of attributes with arguments in parentheses. Only the last segment of a path is
    /// compared.
    pub attributes: &'static [&'static str],
    /// The first character of the comments to record.
    pub comments: Option<u8>,
}

/// A token that a reader must not miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The word.
    pub word: &'static str,
    /// Byte offset of the word.
    pub at: u32,
    /// True inside of a function body.
    pub in_body: bool,
}

impl Mark {
    /// Returns the location of the word.
    pub fn span(&self) -> Span {
        let length = u32::try_from(self.word.len()).unwrap_or_default();
        Span {
            start: self.at,
            end: self.at + length,
        }
    }
}

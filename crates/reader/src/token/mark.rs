//! Marks: tokens that readers must not miss, even inside function bodies.

use crate::Span;

/// The marks and comments to record.
#[derive(Clone, Copy, Debug, Default)]
pub struct MarkWords {
    /// Names in `derive(…)`. Compared with the last segment of the path.
    pub derives: &'static [&'static str],
    /// Names of attributes with parenthesized arguments. Compared with the last segment of the
    /// path.
    pub attributes: &'static [&'static str],
    /// First character of the comments to record.
    pub comments: Option<u8>,
}

/// A token that readers must not miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The word.
    pub word: &'static str,
    /// Byte offset of the word.
    pub at: u32,
    /// Whether the mark is inside a function body.
    pub in_body: bool,
}

impl Mark {
    /// Location of the word.
    pub fn span(&self) -> Span {
        let length = u32::try_from(self.word.len()).unwrap_or_default();
        Span {
            start: self.at,
            end: self.at + length,
        }
    }
}

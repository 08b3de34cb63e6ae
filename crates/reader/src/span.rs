//! Source locations as byte ranges.
//!
//! For files, these are offsets into the file. A procedural macro prints its tokens to a string,
//! reads that, and maps byte offsets back to tokens.

use std::ops::Range;

/// A byte range in the text.
///
/// Offsets are 32 bits wide, since the model stores many of them. Texts of 4 GiB or more are
/// rejected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// A location outside of the text. For a procedural macro, this is its call site.
    pub const OUTSIDE: Span = Span {
        start: u32::MAX,
        end: u32::MAX,
    };

    /// Returns the span from the start of this one to the end of another.
    #[must_use]
    pub fn to(self, last: Span) -> Span {
        Span {
            start: self.start,
            end: last.end.max(self.start),
        }
    }

    /// The span as a range, for slicing the text.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The same span in a text with this many bytes prepended.
    #[must_use]
    pub fn shifted(self, bytes: u32) -> Span {
        Span {
            start: self.start.saturating_add(bytes),
            end: self.end.saturating_add(bytes),
        }
    }

    /// Returns true if the span contains an offset.
    pub fn contains(self, offset: u32) -> bool {
        self.start <= offset && offset < self.end
    }
}

//! Places in source: byte ranges of the text that was read.
//!
//! The generator reads files and shows these bytes. The derive reads what it wrote its tokens out to, and looks
//! up which token stands at a byte.

use std::ops::Range;

/// A place in the text that was read, in bytes.
///
/// Offsets are 32 bits wide, since the model holds many places: no text of 4 GB or more is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// Behind the last byte.
    pub end: u32,
}

impl Span {
    /// Outside of the text: where the macro was called whose arguments the text holds.
    pub const OUTSIDE: Span = Span {
        start: u32::MAX,
        end: u32::MAX,
    };

    /// From the start of this place to the end of another.
    #[must_use]
    pub fn to(self, last: Span) -> Span {
        Span {
            start: self.start,
            end: last.end.max(self.start),
        }
    }

    /// As a range, to cut the text with.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Whether an offset is within.
    pub fn contains(self, offset: u32) -> bool {
        self.start <= offset && offset < self.end
    }
}

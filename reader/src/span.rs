//! Places in source: byte ranges of the text that was read.
//!
//! A caller that reads a file shows these bytes. A procedural macro writes its tokens out to a text, reads that, and
//! looks up which token begins at a byte.

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
    /// A place outside of the text: for a procedural macro, the place of its call.
    pub const OUTSIDE: Span = Span {
        start: u32::MAX,
        end: u32::MAX,
    };

    /// Returns the place from the start of this one to the end of another.
    #[must_use]
    pub fn to(self, last: Span) -> Span {
        Span {
            start: self.start,
            end: last.end.max(self.start),
        }
    }

    /// Returns the place as a range, to cut the text with.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Returns the place in a text that has this many bytes more in front.
    #[must_use]
    pub fn shifted(self, bytes: u32) -> Span {
        Span {
            start: self.start.saturating_add(bytes),
            end: self.end.saturating_add(bytes),
        }
    }

    /// Returns true if an offset lies within.
    pub fn contains(self, offset: u32) -> bool {
        self.start <= offset && offset < self.end
    }
}

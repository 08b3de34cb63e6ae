//! The flags that `(?i)` and its like change.

/// Flags that hold at one place of an expression.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags {
    /// `i`: upper and lower case are one.
    pub(super) fold: bool,
    /// `m`: `^` and `$` match at every line.
    pub(super) lines: bool,
    /// `s`: `.` matches a line feed.
    pub(super) dot_all: bool,
}

impl Flags {
    /// Sets or clears a flag by its letter; false if there is none of that letter.
    ///
    /// `U` decides which of several matches is taken, never whether there is one.
    pub(super) fn set(&mut self, letter: char, on: bool) -> bool {
        match letter {
            'i' => self.fold = on,
            'm' => self.lines = on,
            's' => self.dot_all = on,
            'U' => {}
            _ => return false,
        }
        true
    }
}

//! Flags such as `(?i)`.

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flags {
    /// `i`: ignore case.
    pub(crate) fold: bool,
    /// `m`: `^` and `$` match at line breaks.
    pub(crate) lines: bool,
    /// `s`: `.` matches a line feed.
    pub(crate) dot_all: bool,
    /// `U`: repetitions are lazy, and a `?` makes them greedy.
    pub(crate) lazy: bool,
}

impl Flags {
    /// Returns false for unknown flags.
    pub(crate) fn set(&mut self, letter: char, on: bool) -> bool {
        match letter {
            'i' => self.fold = on,
            'm' => self.lines = on,
            's' => self.dot_all = on,
            'U' => self.lazy = on,
            _ => return false,
        }
        true
    }
}

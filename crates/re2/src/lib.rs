//! Regular expressions with the grammar of RE2, as the API server parses them with Go's `regexp`.
//!
//! The API server compiles patterns and the arguments of CEL's `matches`, `find` and `findAll` with
//! the Perl flags of Go's `regexp`. We can't use the `regex` crate, because its grammar differs:
//! `[^][ ]`, `{`, `x{,3}` and `\Q…\E` are valid here, and `a**`, `(?x)` and `(a{100}){100}` are
//! not. The tests compare this parser with results that `cargo xtask patterns` recorded from Go for
//! some 2,000 patterns. The task can also compare random patterns.
//!
//! There are no Unicode tables, because operators compile this crate. A match that depends on them
//! has no result.

mod class;
mod escape;
mod find;
mod flags;
mod matcher;
mod measure;
mod parse;
mod program;
mod sample;
mod tables;

use std::ops::Range;

use program::Op;
pub use sample::Choice;

/// A regular expression that the API server accepts.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// The operations in postfix order.
    ops: Vec<Op>,
}

impl Pattern {
    /// Parses a regular expression.
    ///
    /// # Errors
    /// The reason why Go's `regexp` rejects it, as a phrase in lower case without a full stop.
    pub fn parse(text: &str) -> Result<Self, String> {
        let ops = parse::parse(text)?;
        Ok(Pattern { ops })
    }

    /// Returns whether any part of the text matches, like Go's `MatchString`.
    ///
    /// Returns `None` if the result requires Unicode tables that this crate does not have (a
    /// non-ASCII letter and a class such as `\p{Greek}`, or ignored case), or if the expression is
    /// unusually large. The running time is proportional to the size of the expression times the
    /// length of the text.
    pub fn is_match(&self, text: &str) -> Option<bool> {
        let program = program::compile_program(&self.ops)?;
        matcher::is_match(&program, text)
    }

    /// Returns the bytes of the first match at or after `start`, like Go's `FindStringIndex`. Of
    /// several matches that begin at the same place, alternatives and repetitions decide by their
    /// preference. The inner `None` means that there is no match.
    ///
    /// Returns `None` if the result requires Unicode tables that this crate does not have, or if the
    /// expression is unusually large.
    pub fn find_from(&self, text: &str, start: usize) -> Option<Option<Range<usize>>> {
        let program = program::compile_program(&self.ops)?;
        find::find(&program, text, start)
    }

    /// Generates a text that matches. `choose` selects among the possible texts.
    ///
    /// Returns `None` if no character of a class is known, or if the choices do not terminate.
    /// Ignores anchors and `\b`, so callers that need certainty must check the text with
    /// [`Pattern::is_match`].
    pub fn sample(&self, mut choose: impl FnMut(Choice<'_>) -> usize) -> Option<String> {
        sample::sample(&self.ops, &mut choose)
    }
}

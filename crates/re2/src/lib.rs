//! Regular expressions in RE2 syntax, as parsed by the API server with Go's `regexp`.
//!
//! The API server compiles patterns and the arguments of CEL's `matches`, `find` and `findAll` with
//! the Perl flags of Go's `regexp`. We can't use the `regex` crate, because its grammar differs:
//! `[^][ ]`, `{`, `x{,3}` and `\Q…\E` are valid here, while `a**`, `(?x)` and `(a{100}){100}` are
//! not. The tests compare this parser with Go's results for some 2,000 patterns, recorded by
//! `cargo xtask patterns`. The task can also compare random patterns.
//!
//! There are no Unicode tables, because operators compile this crate. Matches that depend on them
//! have no result.

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
    /// Operations in postfix order.
    ops: Vec<Op>,
}

impl Pattern {
    /// Parses a regular expression.
    ///
    /// # Errors
    ///
    /// Returns the reason why Go's `regexp` rejects it, as a lower-case phrase without a full stop.
    pub fn parse(text: &str) -> Result<Self, String> {
        let ops = parse::parse(text)?;
        Ok(Pattern { ops })
    }

    /// Returns whether any part of the text matches, like Go's `MatchString`.
    ///
    /// Returns `None` if the result requires Unicode tables that this crate doesn't have (a
    /// non-ASCII letter together with a class such as `\p{Greek}` or ignored case), or if the
    /// expression is unusually large. Running time is proportional to the size of the expression
    /// times the length of the text.
    pub fn is_match(&self, text: &str) -> Option<bool> {
        let program = program::compile_program(&self.ops)?;
        matcher::is_match(&program, text)
    }

    /// Byte range of the first match at or after `start`, like Go's `FindStringIndex`. Among
    /// several matches that begin at the same place, the preferences of alternatives and
    /// repetitions decide. The inner `None` means no match.
    ///
    /// Returns `None` if the result requires Unicode tables that this crate doesn't have, or if the
    /// expression is unusually large.
    pub fn find_from(&self, text: &str, start: usize) -> Option<Option<Range<usize>>> {
        let program = program::compile_program(&self.ops)?;
        find::find(&program, text, start)
    }

    /// Returns a number of characters that each matching text has at least.
    pub fn least_length(&self) -> u64 {
        program::least_length(&self.ops)
    }

    /// Generates a matching text. `choose` selects among the possible texts.
    ///
    /// Returns `None` if no character of a class is known, or if the choices don't terminate.
    /// Anchors and `\b` are ignored, so verify the text with [`Pattern::is_match`] where it
    /// matters.
    pub fn sample(&self, mut choose: impl FnMut(Choice<'_>) -> usize) -> Option<String> {
        sample::sample(&self.ops, &mut choose)
    }
}

//! Regular expressions as the API server runs them: RE2's grammar, as Go's `regexp` reads it.
//!
//! Patterns of schemas and the arguments of CEL's `matches`, `find` and `findAll` are compiled by Go's `regexp` with its
//! Perl flags. Its grammar is not that of Rust's `regex`: `[^][ ]`, `{`, `x{,3}` and `\Q…\E` are valid, `a**`, `(?x)` and
//! `(a{100}){100}` are not. This parser follows it, and `cargo xtask patterns` records Go's own verdicts, which the tests
//! compare.

mod class;
mod escape;
mod flags;
mod matcher;
mod measure;
mod parse;
mod program;
mod sample;
mod tables;

use program::Op;
pub use sample::Choice;

/// A regular expression that the API server accepts.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// The expression in postfix order.
    ops: Vec<Op>,
}

impl Pattern {
    /// Parses a regular expression.
    ///
    /// # Errors
    /// The reason why Go's `regexp` does not compile it, as a phrase without a capital or a full stop.
    pub fn parse(text: &str) -> Result<Self, String> {
        let ops = parse::parse(text)?;
        Ok(Pattern { ops })
    }

    /// Returns whether a part of the text matches, as Go's `MatchString` does; an anchored expression looks at the whole.
    ///
    /// `None` where it is not decided: a letter beyond ASCII meets a Unicode class (`\p{Greek}`) or a comparison without
    /// case, whose tables are not in this crate, or the expression is of uncommon size. Takes time in proportion to the
    /// size of the expression times the length of the text.
    pub fn is_match(&self, text: &str) -> Option<bool> {
        let program = program::compile_program(&self.ops)?;
        matcher::is_match(&program, text)
    }

    /// Makes a text of the expression; which one, a function chooses.
    ///
    /// `None` where no character of a class is known, or the choices lead on for ever. An anchor or `\b` that stands
    /// between characters is passed over, so whoever needs certainty asks [`Pattern::is_match`].
    pub fn sample(&self, mut choose: impl FnMut(Choice<'_>) -> usize) -> Option<String> {
        sample::sample(&self.ops, &mut choose)
    }
}

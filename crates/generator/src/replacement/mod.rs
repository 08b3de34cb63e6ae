//! Source replacements for editors and for `rbuilder manifests --fix`, following the help of
//! diagnostics.
//!
//! The table in `table.rs` lists the combinations of message and help that determine a replacement.
//! There is no row for help that leaves a choice, such as "remove it, or write …", or that shows an
//! example. Crates report diagnostics without knowing about replacements, just as they don't know
//! about codes.
//!
//! We only return a replacement if it is unambiguous, i.e. if the word occurs once at the place, or
//! if only one argument has the name.
//!
//! This table is about Rust source. The command has one for YAML with the same kind of rows,
//! because it reports what is wrong with objects.
//!
//! To add a replacement, add a row, as well as an example to `tests.rs`, which wants one for each
//! row. Another test corrects the projects in `crates/generator/tests/mutations`.

mod arguments;
mod edits;
mod pattern;
mod row;
mod table;
#[cfg(test)]
mod tests;
mod words;

use std::ops::Range;

use crate::Diagnostic;
use table::ROWS;

pub use row::{Found, Row, row};

/// A text that replaces part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The bytes to replace. The range is empty if the text is inserted.
    pub range: Range<usize>,
    /// The new text.
    pub text: String,
}

/// Returns what the help of a diagnostic proposes to write instead. The diagnostic must be about
/// Rust source, and `source` is the text of its file.
pub fn find_replacement(diagnostic: &Diagnostic, source: &str) -> Option<Replacement> {
    ROWS.iter().find_map(|row| row.apply(diagnostic, source))
}

//! Source replacements for editors and for `rbuilder manifests --fix`, following the help of
//! diagnostics.
//!
//! The table in `table.rs` lists the combinations of message and help that determine a replacement.
//! Help that leaves a choice, such as "remove it, or write …", or that shows an example has no row.
//! Crates report diagnostics without knowing about replacements, just as they don't know about
//! codes.
//!
//! Only unambiguous replacements are returned, i.e. if the word occurs once at the place, or if
//! only one argument has the name.
//!
//! This table is for Rust source. The command has a table for YAML with the same kind of rows,
//! because it is the command that reports problems in objects.
//!
//! To add a replacement, add a row, as well as an example to `tests.rs`, which requires one per
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

/// Text that replaces part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The bytes to replace. Empty for an insertion.
    pub range: Range<usize>,
    /// The new text.
    pub text: String,
}

/// Returns the replacement proposed by the help of a diagnostic. The diagnostic must be about Rust
/// source, and `source` is the text of its file.
pub fn find_replacement(diagnostic: &Diagnostic, source: &str) -> Option<Replacement> {
    ROWS.iter().find_map(|row| row.apply(diagnostic, source))
}

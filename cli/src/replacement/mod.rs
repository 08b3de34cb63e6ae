//! Replacements in the files of a project: those of the generator in Rust source, and ours in YAML.
//!
//! [`ROWS`] lists the messages of [`verdicts`](crate::commands) and `manifests` about YAML whose help
//! leaves no choice. As in the generator, a message knows nothing about its replacement, and an edit
//! is only made if the text at the place is what the message is about.
//!
//! An edit changes only the bytes of the key, the scalar or the item, so that comments, indentation
//! and line endings are kept. There is none in texts with anchors, whose parts have several places.
//! [`correct`] also compares the values before and after.
//!
//! To add one, add a row, and an example to `tests.rs`, which requires one for each row.

mod correct;
mod edits;
mod select;
#[cfg(test)]
mod tests;

use rbuilder_generator::Diagnostic;
use rbuilder_generator::replacement::{self, Replacement, Row, row};

pub(crate) use correct::correct;
use edits::{quote, remove_field, remove_item, replace_entry, replace_key, replace_scalar, unquote};
pub(crate) use select::replace_all;

/// The messages and help texts about YAML that determine a replacement.
const ROWS: &[Row] = &[
    row("{}unknown field \"{path}\"", "did you mean `{new}`?", replace_key),
    row(
        "{}: Unsupported value: {}",
        "did you mean `{new}`?",
        replace_scalar,
    ),
    row("no matches for kind {}", "did you mean `{new}`?", replace_scalar),
    row(
        "{}, and no CRD of the project has a `{}` there",
        "did you mean `{new}`?",
        replace_scalar,
    ),
    row("{} must be of type {}", "remove the quotes: `{new}`", unquote),
    row("{} must be of type {}", "quote it: `{new}`", quote),
    row("{}: cannot unmarshal {}", "quote it: `{new}`", quote),
    row("{}: Duplicate value{}", "remove it: `{}` is equal", remove_item),
    row(
        "{}duplicate field {}",
        "remove it: both values are equal",
        remove_field,
    ),
    row(
        "PROJECT lists version `{old}` of {}",
        "write `version: {new}` in its entry in PROJECT",
        replace_entry,
    ),
];

/// Returns the replacement proposed by the help of a diagnostic. `source` is the text of the
/// diagnostic's file.
pub(crate) fn find_replacement(diagnostic: &Diagnostic, source: &str) -> Option<Replacement> {
    replacement::find_replacement(diagnostic, source)
        .or_else(|| ROWS.iter().find_map(|row| row.apply(diagnostic, source)))
}

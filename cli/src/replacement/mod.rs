//! Replacements in project files: the generator's in Rust source, and ours in YAML.
//!
//! [`ROWS`] lists messages of [`verdicts`](crate::commands) and `manifests` with unambiguous help.
//! As in the generator, the code that emits a message doesn't know about its replacement, and we
//! only edit if the text at the place matches the message.
//!
//! An edit only changes the bytes of the key, scalar or item, so comments, indentation and line
//! endings stay. Texts with anchors are left alone, since a value may be used in several places
//! there. [`correct`] also compares the values before and after.
//!
//! To add a replacement, add a row, and an example to `tests.rs`, which requires one for each row.

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

/// The replacement proposed by a diagnostic's help. `source` is the text of its file.
pub(crate) fn find_replacement(diagnostic: &Diagnostic, source: &str) -> Option<Replacement> {
    replacement::find_replacement(diagnostic, source)
        .or_else(|| ROWS.iter().find_map(|row| row.apply(diagnostic, source)))
}

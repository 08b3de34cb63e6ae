//! Text to text: additions to files that a person owns. Only the lines that must change do, and adding what is
//! there already changes nothing.

pub mod kustomization;
pub mod rust;
pub mod version;

/// A file is not laid out as an edit needs it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{path} is not laid out as rbuilder knows it ({reason}); nothing was written\n{deed} by hand and run the command again:\n{lines}"
)]
pub struct Unrecognised {
    /// The file.
    pub path: String,
    /// What was not found.
    pub reason: String,
    /// What a person must do instead: `add these lines`.
    pub deed: &'static str,
    /// The lines, indented.
    pub lines: String,
}

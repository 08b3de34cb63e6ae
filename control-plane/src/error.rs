//! The error of a control plane: a sentence for the person who reads it in a failed test or on a terminal.

use std::fmt;
use std::path::Path;

/// An error of starting or using a control plane.
///
/// The message is complete: it names the file or program, and ends with the last lines of the server's log
/// where there are any.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    message: String,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }

    /// An error about a file. `failure` says which operation failed, as in "cannot read".
    pub(crate) fn file(failure: &str, path: &Path, cause: impl fmt::Display) -> Self {
        Self::new(format!("{failure} {}: {cause}", path.display()))
    }
}

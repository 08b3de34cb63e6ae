//! The error type of this crate. Failed tests and the CLI print its messages verbatim.

use std::fmt;
use std::path::Path;

/// An error from starting or using a control plane.
///
/// The message is self-contained: it names the file or program, and includes the tail of the
/// server's log if there is one.
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

    /// `failure` is the start of the message, e.g. "cannot read".
    pub(crate) fn file(failure: &str, path: &Path, cause: impl fmt::Display) -> Self {
        Self::new(format!("{failure} {}: {cause}", path.display()))
    }
}

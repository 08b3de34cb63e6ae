//! The error type of this crate. Its messages are shown as they are, in failed tests and on
//! terminals.

use std::fmt;
use std::path::Path;

/// An error from starting or using a control plane.
///
/// The message is complete: it names the file or program and, if a server has written a log, ends
/// with the last lines of it.
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

//! The error of the test environment: a sentence for the person who reads the failed test.

use std::fmt;
use std::path::Path;

/// An error of starting or using a test environment.
///
/// The message is complete: it names the file, program or request, and ends with the last lines of the server's log
/// where there are any.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    message: String,
}

impl Error {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }

    /// An error about a file. `failure` says which operation failed, as in "cannot read".
    pub(super) fn file(failure: &str, path: &Path, cause: impl fmt::Display) -> Self {
        Self::new(format!("{failure} {}: {cause}", path.display()))
    }

    /// An error about a manifest that cannot be read; the cause names it.
    pub(super) fn read(cause: std::io::Error) -> Self {
        Self::new(cause.to_string())
    }

    /// An error about a request. `failure` says what it was to do, as in "cannot create namespace `a`".
    pub(super) fn request(failure: impl fmt::Display, cause: &kube::Error) -> Self {
        match cause {
            kube::Error::Api(status) => Self::new(format!("{failure}: {}", status.message)),
            other => Self::new(format!("{failure}: {}", format_causes(other))),
        }
    }
}

/// Formats an error with its causes: kube's own message may be just "ServiceError".
fn format_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

impl From<rbuilder_control_plane::Error> for Error {
    fn from(error: rbuilder_control_plane::Error) -> Self {
        Self::new(error.to_string())
    }
}

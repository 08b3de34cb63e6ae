//! The error type of the test environment. Failed tests print its messages verbatim.

use std::fmt;
use std::path::Path;

/// An error from starting or using a test environment.
///
/// The message is self-contained: it names the file, program or request, and includes the tail of
/// the server's log if there is one.
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

    /// Error about a file. `failure` describes the failed operation, e.g. "cannot read".
    pub(super) fn file(failure: &str, path: &Path, cause: impl fmt::Display) -> Self {
        Self::new(format!("{failure} {}: {cause}", path.display()))
    }

    /// Error about a manifest. `read_documents` already put the path into `cause`.
    pub(super) fn read(cause: std::io::Error) -> Self {
        Self::new(cause.to_string())
    }

    /// Error about a request. `failure` describes the failed operation, e.g. "cannot create
    /// namespace `a`".
    pub(super) fn request(failure: impl fmt::Display, cause: &kube::Error) -> Self {
        match cause {
            kube::Error::Api(status) => Self::new(format!("{failure}: {}", status.message)),
            other => Self::new(format!("{failure}: {}", format_causes(other))),
        }
    }
}

// kube's own message may be as terse as "ServiceError", so append the sources.
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

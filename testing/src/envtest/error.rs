//! Why there is no API server: a sentence for the person who reads the failed test.

use std::fmt;
use std::path::Path;

/// Why a test environment could not be started or used.
///
/// The message is whole: it names the file, program or request, and ends with the server's last words where
/// there are any.
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

    /// `deed` says what was tried with the file, as in "cannot read".
    pub(super) fn file(deed: &str, path: &Path, cause: impl fmt::Display) -> Self {
        Self::new(format!("{deed} {}: {cause}", path.display()))
    }

    /// A manifest that cannot be read; the cause names it.
    pub(super) fn read(cause: std::io::Error) -> Self {
        Self::new(cause.to_string())
    }

    pub(super) fn request(deed: impl fmt::Display, cause: &kube::Error) -> Self {
        match cause {
            kube::Error::Api(status) => Self::new(format!("{deed}: {}", status.message)),
            other => Self::new(format!("{deed}: {}", chain(other))),
        }
    }
}

/// An error with its causes: kube's own sentences stop at "ServiceError", before the reason.
fn chain(error: &dyn std::error::Error) -> String {
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

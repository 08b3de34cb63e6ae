//! Errors of lists and watches.

use std::io;
use std::time::Duration;

use kube::core::Status;

use crate::causes::describe;

/// All of these are retried.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WatchError {
    #[error("list failed: {}", describe(.0))]
    List(#[source] kube::Error),
    #[error("watch was not started: {}", describe(.0))]
    Start(#[source] kube::Error),
    #[error("watch failed: {}", describe(.0))]
    Read(#[source] kube::Error),
    /// The server sent an `ERROR` event.
    #[error("{}", .0.message)]
    Reported(Box<Status>),
    #[error("list or event without a resource version: the API server cannot watch this kind")]
    NoResourceVersion,
    #[error(
        "watch ended within a second and without an event: a proxy before the API server may close connections"
    )]
    VeryShort,
    #[error("streaming list failed, listing in pages instead: {}", describe(.0))]
    StreamingListRefused(#[source] kube::Error),
    #[error("streaming list ended, or stopped, before its last object; listing in pages instead")]
    StreamingListIncomplete,
}

impl WatchError {
    pub(crate) fn cause(&self) -> Option<&kube::Error> {
        match self {
            Self::List(cause)
            | Self::Start(cause)
            | Self::Read(cause)
            | Self::StreamingListRefused(cause) => Some(cause),
            Self::Reported(_) | Self::NoResourceVersion | Self::VeryShort | Self::StreamingListIncomplete => {
                None
            }
        }
    }

    /// Returns the delay that the server asks for, or zero.
    pub(super) fn retry_after(&self) -> Duration {
        let status = match self {
            Self::Reported(status) => status,
            _ => match self.cause() {
                Some(kube::Error::Api(status)) => status,
                _ => return Duration::ZERO,
            },
        };
        let seconds = status
            .details
            .as_ref()
            .map_or(0, |details| details.retry_after_seconds);
        Duration::from_secs(seconds.into())
    }
}

/// Returns `true` if a resource version or a continue token has expired.
pub(super) fn is_expired(status: &Status) -> bool {
    status.code == 410 || matches!(&*status.reason, "Expired" | "Gone")
}

/// Returns `true` if a failed watch may resume from the same version, i.e. if the server was
/// unreachable, failing or overloaded. The version could be the cause of any other error.
pub(super) fn may_resume(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => !is_expired(status) && matches!(status.code, 429 | 500 | 502 | 503),
        _ => true,
    }
}

/// Returns `true` if a watch failed because it received no data. See [`client`](crate::client).
pub(super) fn is_idle_timeout(error: &kube::Error) -> bool {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            if io.kind() == io::ErrorKind::TimedOut {
                return true;
            }
            // `io::Error::source` skips the inner error and returns its source instead.
            next = io
                .get_ref()
                .map(|inner| inner as &(dyn std::error::Error + 'static));
        } else {
            next = error.source();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_timeouts_are_distinguished_from_other_failures() {
        let failed = |kind: io::ErrorKind| kube::Error::ReadEvents(io::Error::other(io::Error::from(kind)));
        assert!(is_idle_timeout(&failed(io::ErrorKind::TimedOut)));
        assert!(!is_idle_timeout(&failed(io::ErrorKind::ConnectionReset)));
    }

    #[test]
    fn watch_resumes_only_if_its_version_is_not_in_doubt() {
        let check = |code: u16, reason: &str, expected: bool| {
            let status = Status::failure("", reason).with_code(code);
            assert_eq!(
                may_resume(&kube::Error::Api(status.boxed())),
                expected,
                "{code} {reason}"
            );
        };
        check(429, "TooManyRequests", true);
        check(500, "InternalError", true);
        check(500, "Expired", false);
        check(503, "ServiceUnavailable", true);
        check(400, "BadRequest", false);
        check(403, "Forbidden", false);
        check(404, "NotFound", false);
        check(410, "", false);
        check(504, "Timeout", false);
        assert!(may_resume(&kube::Error::ReadEvents(
            io::ErrorKind::ConnectionReset.into()
        )));
    }
}

//! Requests for leases, with timeouts.

use std::time::Duration;

use tokio::time::timeout;

use crate::causes::describe_causes;
use crate::client::is_unreachable;

#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("{}", describe_causes(.0))]
    Failed(#[from] kube::Error),
    #[error("request timed out after {0:?}")]
    TimedOut(Duration),
}

impl RequestError {
    /// Returns `true` if the API server was unreachable, which the client has already logged.
    pub(crate) fn is_unreachable(&self) -> bool {
        matches!(self, Self::Failed(error) if is_unreachable(error))
    }

    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Failed(kube::Error::Api(status)) if status.is_conflict())
    }

    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Failed(kube::Error::Api(status)) if status.is_not_found())
    }

    pub(crate) fn is_already_exists(&self) -> bool {
        matches!(self, Self::Failed(kube::Error::Api(status)) if status.is_already_exists())
    }
}

/// Fails if there is no response within `limit`.
pub(crate) async fn send<T>(
    limit: Duration,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, RequestError> {
    match timeout(limit, request).await {
        Ok(response) => Ok(response?),
        Err(_) => Err(RequestError::TimedOut(limit)),
    }
}

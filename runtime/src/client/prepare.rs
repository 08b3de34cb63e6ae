//! The User-Agent of every request, and the time after which the API server gives it up.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Request;
use http::header::USER_AGENT;
use tower::Service;

use super::UserAgent;
use super::request::{add_parameter, is_streaming};
use crate::metrics::is_watch;

/// The time after which the API server gives up a request; it takes the shorter of this and its `--request-timeout`. Below
/// the client's own timeout, so that it does not work for a client that waits no longer. Watches have `timeoutSeconds`.
pub(super) const TIMEOUT: Duration = Duration::from_secs(90);

/// A client's service that completes requests.
#[derive(Clone)]
pub(super) struct Prepared<S> {
    inner: S,
    user_agent: UserAgent,
    /// The query parameter.
    timeout: Arc<str>,
}

impl<S> Prepared<S> {
    /// Creates a service whose requests the API server gives up after `timeout`, in whole seconds and at least one.
    pub(super) fn new(inner: S, user_agent: UserAgent, timeout: Duration) -> Self {
        let timeout = format!("timeout={}s", timeout.as_secs().max(1));
        Self {
            inner,
            user_agent,
            timeout: timeout.into(),
        }
    }
}

impl<S: Service<Request<B>>, B> Service<Request<B>> for Prepared<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        let headers = request.headers_mut();
        // kube replaces it with that of `Config::headers`, if there is one.
        headers
            .entry(USER_AGENT)
            .or_insert_with(|| self.user_agent.header());
        if !is_streaming(request.uri().path()) && !is_watch(request.uri()) {
            add_parameter(request.uri_mut(), &self.timeout);
        }
        self.inner.call(request)
    }
}

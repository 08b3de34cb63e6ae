//! Sets the User-Agent of requests, and the time after which the API server gives up on them.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Request;
use http::header::USER_AGENT;
use tower::Service;

use super::UserAgent;
use super::request::{add_parameter, is_streaming};
use crate::metrics::is_watch;

/// Time after which the API server gives up on a request, unless its `--request-timeout` is
/// shorter. Lower than the client's own timeout, so that the server does not work for a client that
/// no longer waits. Watches have `timeoutSeconds` instead.
pub(super) const TIMEOUT: Duration = Duration::from_secs(90);

/// A client service that adds headers and parameters to requests.
#[derive(Clone)]
pub(super) struct Prepared<S> {
    inner: S,
    user_agent: UserAgent,
    /// The query parameter.
    timeout: Arc<str>,
}

impl<S> Prepared<S> {
    /// Creates a service whose requests the API server gives up on after `timeout`, rounded down to
    /// whole seconds and at least one.
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
        // kube overrides it with `Config::headers` if set there.
        headers
            .entry(USER_AGENT)
            .or_insert_with(|| self.user_agent.header());
        if !is_streaming(request.uri().path()) && !is_watch(request.uri()) {
            add_parameter(request.uri_mut(), &self.timeout);
        }
        self.inner.call(request)
    }
}

//! Sets the `User-Agent` and the server-side timeout of requests.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Request;
use http::header::USER_AGENT;
use tower::Service;

use super::UserAgent;
use super::request::{add_parameter, is_streaming};
use crate::metrics::is_watch;

/// Server-side timeout of requests. The API server gives up earlier if its `--request-timeout` is
/// shorter.
///
/// Shorter than the client's timeout, so that the server doesn't keep working for a client that's
/// gone. Watches aren't affected, since they use `timeoutSeconds`.
pub(super) const TIMEOUT: Duration = Duration::from_secs(90);

#[derive(Clone)]
pub(super) struct Prepared<S> {
    inner: S,
    user_agent: UserAgent,
    timeout: Arc<str>,
}

impl<S> Prepared<S> {
    /// Rounds the timeout down to whole seconds, but at least one.
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
        // A `User-Agent` in `Config::headers` takes precedence, as in kube.
        headers
            .entry(USER_AGENT)
            .or_insert_with(|| self.user_agent.header());
        if !is_streaming(request.uri().path()) && !is_watch(request.uri()) {
            add_parameter(request.uri_mut(), &self.timeout);
        }
        self.inner.call(request)
    }
}

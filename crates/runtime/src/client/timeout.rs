//! Timeouts for requests and responses that make no progress.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response};
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep, timeout};
use tower::{BoxError, Service};

use super::request::is_streaming;

/// Time without any data after which a request fails.
///
/// The API server responds to ordinary requests within its `--request-timeout` (60 seconds by
/// default), and sends a bookmark to each watch every 60 seconds. This must also exceed hyper's
/// timeout for idle connections (90 seconds), or the next attempt might reuse a connection that
/// broke at the same time.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(95);

#[derive(Clone)]
pub(super) struct WithTimeout<S>(S);

impl<S> WithTimeout<S> {
    pub(super) fn new(inner: S) -> Self {
        Self(inner)
    }
}

impl<S, A, B> Service<Request<A>> for WithTimeout<S>
where
    S: Service<Request<A>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<TimedBody<B>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let has_timeout = !is_streaming(request.uri().path());
        let response = self.0.call(request);
        Box::pin(async move {
            let response = match has_timeout {
                true => timeout(IDLE_TIMEOUT, response)
                    .await
                    .map_err(|_| new_timeout_error())??,
                false => response.await?,
            };
            Ok(response.map(|body| TimedBody {
                body,
                has_timeout,
                waiting: None,
            }))
        })
    }
}

fn new_timeout_error() -> BoxError {
    let message = format!("no data from the API server for {} s", IDLE_TIMEOUT.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, message).into()
}

/// Fails if no data arrives for too long. Time only counts while the body is being polled.
pub(super) struct TimedBody<B> {
    body: B,
    has_timeout: bool,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<B> Body for TimedBody<B>
where
    B: Body<Error = BoxError> + Unpin,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.body).poll_frame(context);
        if polled.is_ready() || !this.has_timeout {
            this.waiting = None;
            return polled;
        }
        let waiting = this.waiting.get_or_insert_with(|| Box::pin(sleep(IDLE_TIMEOUT)));
        waiting
            .as_mut()
            .poll(context)
            .map(|()| Some(Err(new_timeout_error())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

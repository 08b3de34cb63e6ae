//! The manager's client: timeouts, retries and logged warnings.
//!
//! kube's defaults have no timeout: a request to a server that hangs, or over a connection that the network drops
//! silently, would block its reconcile or cache forever. And kube retries with a back-off of up to a quarter of an hour,
//! so that a reconcile could sleep long after the API server has recovered. Here both are bounded; after that, the watch
//! or the queue retries and logs the reason.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response};
use hyper::body::{Body, Frame, SizeHint};
use kube::client::ClientBuilder;
use kube::client::retry::RetryPolicy;
use kube::{Client, Config};
use tokio::time::{Sleep, sleep, timeout};
use tower::layer::layer_fn;
use tower::retry::RetryLayer;
use tower::{BoxError, Service};

use crate::metrics::Metrics;

mod warnings;

use warnings::LogWarnings;

/// Time without data from the API server after which a request fails. The server answers ordinary requests within its
/// `--request-timeout` of 60 s, and sends bookmarks to watches every 60 s. It is longer than the 90 s for which hyper
/// keeps idle connections, so that the next attempt does not reuse a connection that died at the same time.
const IDLE_TIMEOUT: Duration = Duration::from_secs(95);
/// Number of retries of a request answered with 429, 503 or 504: about six seconds, unless the server sets
/// `Retry-After`.
const MAX_RETRIES: u32 = 6;
const MIN_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// Creates a client with these limits, which counts each attempt of a request.
pub(crate) fn new_manager_client(mut config: Config, metrics: &Metrics) -> Result<Client, kube::Error> {
    let counted = metrics.count_requests(&config.cluster_url);
    let retry = RetryPolicy::new(MIN_BACKOFF, MAX_BACKOFF, MAX_RETRIES, true);
    let retry = RetryLayer::new(retry.expect("the minimum back-off is below the maximum"));
    config.default_retry = false;
    Ok(ClientBuilder::try_from(config)?
        .with_layer(&layer_fn(Shared::new))
        .with_layer(&layer_fn(WithTimeout))
        .with_layer(&layer_fn(LogWarnings::new))
        .with_layer(&counted)
        .with_layer(&retry)
        .build())
}

/// A service that can be cloned, as the retry layer requires; kube's cannot. Clones may share one service because it
/// keeps no state between `poll_ready` and `call`.
struct Shared<S>(Arc<Mutex<S>>);

impl<S> Shared<S> {
    fn new(service: S) -> Self {
        Self(Arc::new(Mutex::new(service)))
    }
}

impl<S> Clone for Shared<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Service<R>, R> Service<R> for Shared<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        let mut service = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        service.poll_ready(context)
    }

    fn call(&mut self, request: R) -> S::Future {
        let mut service = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        service.call(request)
    }
}

/// A client's service that fails a request when no data arrives for too long.
#[derive(Clone)]
struct WithTimeout<S>(S);

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

/// Returns `true` for requests to which the API server applies no timeout, such as those to `log` and `exec`.
fn is_streaming(path: &str) -> bool {
    let mut segments = path.trim_start_matches('/').split('/');
    // `api/v1` or `apis/<group>/<version>`.
    let before = if segments.next() == Some("api") { 1 } else { 2 };
    let mut segments = segments.skip(before).peekable();
    if segments.peek() == Some(&"namespaces") {
        segments.next();
        segments.next();
    }
    // Behind the resource and the name.
    let subresource = segments.nth(2);
    matches!(
        subresource,
        Some("attach" | "exec" | "log" | "portforward" | "proxy")
    )
}

fn new_timeout_error() -> BoxError {
    let message = format!("no data from the API server for {} s", IDLE_TIMEOUT.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, message).into()
}

/// A response body that fails when it is polled and no data arrives for too long.
struct TimedBody<B> {
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

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Api;
    use kube::api::WatchParams;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::Instant;

    use super::*;
    use crate::logging::LogBuffer;

    /// Creates a client of a server that sends this response to the first request on each connection, and nothing more.
    async fn client(response: &'static str) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(respond(stream, response));
            }
        });
        new_manager_client(Config::new(url.parse().unwrap()), &Metrics::new()).unwrap()
    }

    async fn respond(mut stream: TcpStream, response: &str) {
        let mut head = [0; 4096];
        let _ = stream.read(&mut head).await;
        let _ = stream.write_all(response.as_bytes()).await;
        std::future::pending::<()>().await;
    }

    #[test]
    fn only_streaming_subresources_have_no_timeout() {
        let check = |path: &str, expected: bool| assert_eq!(is_streaming(path), expected, "{path}");
        check("/api/v1/namespaces/a/pods/web/log", true);
        check("/api/v1/namespaces/a/pods/web/exec", true);
        check("/api/v1/nodes/one/proxy/metrics", true);
        check("/api/v1/namespaces/a/services/web/proxy/x", true);
        check("/api/v1/namespaces/a/pods/log", false);
        check("/api/v1/namespaces/log/pods/exec", false);
        check("/api/v1/namespaces/a", false);
        check("/apis/apps/v1/namespaces/a/deployments/web/status", false);
        check("/apis/example.com/v1/namespaces/a/proxies/proxy", false);
        check("/readyz", false);
    }

    fn assert_timed_out(started: Instant) {
        let waited = started.elapsed();
        assert!(waited >= IDLE_TIMEOUT && waited < IDLE_TIMEOUT * 2, "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_without_response_times_out() {
        let maps: Api<ConfigMap> = Api::default_namespaced(client("").await);
        let started = Instant::now();
        let error = maps.get("any").await.unwrap_err();
        assert!(matches!(error, kube::Error::Service(_)), "{error:?}");
        assert_timed_out(started);
    }

    #[tokio::test]
    async fn each_warning_of_the_api_server_is_logged_once() {
        let log = LogBuffer::default();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(log.writers())
            .finish();
        let _guard = tracing::subscriber::set_default(subscriber);
        let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"any"}}"#;
        let response = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nwarning: 299 - \"unknown field \\\"a\\\"\"\r\n\
             warning: 299 - \"old\"\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        let maps: Api<ConfigMap> = Api::default_namespaced(client(response.leak()).await);
        for _ in 0..2 {
            maps.get("any").await.unwrap();
        }
        let log = log.text();
        let count = |text: &str| log.matches(text).count();
        assert_eq!(count(r#"warning=unknown field "a""#), 1, "{log}");
        assert_eq!(count("warning=old"), 1, "{log}");
        assert_eq!(count("GET /api/v1/namespaces/default/configmaps/any"), 2, "{log}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_without_data_times_out() {
        let response =
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
        let maps: Api<ConfigMap> = Api::default_namespaced(client(response).await);
        let events = maps.watch(&WatchParams::default(), "1").await.unwrap();
        let started = Instant::now();
        let mut events = std::pin::pin!(events);
        let error = futures::StreamExt::next(&mut events).await.unwrap().unwrap_err();
        assert!(matches!(error, kube::Error::ReadEvents(_)), "{error:?}");
        assert_timed_out(started);
    }
}

//! The client of a manager: how long it waits for an answer, which requests it repeats, and what it logs of answers.
//!
//! kube's own defaults wait for ever: a request that reached a server which then hangs, or whose connection a network
//! drops in silence, would hold its reconcile for good, and a list its cache. And they repeat a refused request with
//! pauses that double up to a quarter of an hour, so that a reconcile could sleep long after the API server has
//! recovered. Here both have an end that people can wait for; after it the watch or the queue tries again, and says
//! in the log why.

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

use warnings::Warned;

/// How long the API server may be silent on a connection that is waited on. It answers ordinary requests within its
/// own `--request-timeout` of 60 s, and watches get a bookmark every 60 s. It is longer than the 90 s for which hyper
/// keeps idle connections: the next try must not be made on one that died in the same moment.
const SILENCE: Duration = Duration::from_secs(95);
/// How often a request is repeated that was refused with 429, 503 or 504: for about six seconds unless the server
/// itself says when to come back.
const REPEATS: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A client with these limits whose requests count, the repeated ones each.
pub(crate) fn of_manager(mut config: Config, metrics: &Metrics) -> Result<Client, kube::Error> {
    let counted = metrics.count_requests(&config.cluster_url);
    let repeat = RetryPolicy::new(FIRST_PAUSE, LONGEST_PAUSE, REPEATS, true);
    let repeat = RetryLayer::new(repeat.expect("the first pause is shorter than the longest"));
    config.default_retry = false;
    Ok(ClientBuilder::try_from(config)?
        .with_layer(&layer_fn(Shared::new))
        .with_layer(&layer_fn(Limited))
        .with_layer(&layer_fn(Warned::new))
        .with_layer(&counted)
        .with_layer(&repeat)
        .build())
}

/// A service that can be cloned, as repeating asks for; kube's cannot. Nothing in it keeps state between being ready
/// and being called, so the clones may share one.
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

/// A client's service that gives up what the API server is silent about.
#[derive(Clone)]
struct Limited<S>(S);

impl<S, A, B> Service<Request<A>> for Limited<S>
where
    S: Service<Request<A>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = Response<LimitedBody<B>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let limited = !may_be_silent(request.uri().path());
        let answered = self.0.call(request);
        Box::pin(async move {
            let answer = match limited {
                true => timeout(SILENCE, answered).await.map_err(|_| silence())??,
                false => answered.await?,
            };
            Ok(answer.map(|body| LimitedBody {
                body,
                limited,
                waiting: None,
            }))
        })
    }
}

/// Whether the API server itself sets no limit to a request: those to `log`, `exec` and their like.
fn may_be_silent(path: &str) -> bool {
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

fn silence() -> BoxError {
    let message = format!("no data from the API server for {} s", SILENCE.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, message).into()
}

/// A body that ends with an error when nothing comes for too long while somebody waits for it.
struct LimitedBody<B> {
    body: B,
    limited: bool,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<B> Body for LimitedBody<B>
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
        if polled.is_ready() || !this.limited {
            this.waiting = None;
            return polled;
        }
        let waiting = this.waiting.get_or_insert_with(|| Box::pin(sleep(SILENCE)));
        waiting.as_mut().poll(context).map(|()| Some(Err(silence())))
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
    use crate::logging::Kept;

    /// A client of a server that says this to the first request on each connection, and nothing more.
    async fn client(says: &'static str) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(say(stream, says));
            }
        });
        of_manager(Config::new(url.parse().unwrap()), &Metrics::new()).unwrap()
    }

    async fn say(mut stream: TcpStream, says: &str) {
        let mut head = [0; 4096];
        let _ = stream.read(&mut head).await;
        let _ = stream.write_all(says.as_bytes()).await;
        std::future::pending::<()>().await;
    }

    #[test]
    fn only_what_streams_for_people_may_be_silent() {
        let check = |path: &str, expected: bool| assert_eq!(may_be_silent(path), expected, "{path}");
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

    fn assert_given_up_since(started: Instant) {
        let waited = started.elapsed();
        assert!(waited >= SILENCE && waited < SILENCE * 2, "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_not_answered_is_given_up() {
        let maps: Api<ConfigMap> = Api::default_namespaced(client("").await);
        let started = Instant::now();
        let error = maps.get("any").await.unwrap_err();
        assert!(matches!(error, kube::Error::Service(_)), "{error:?}");
        assert_given_up_since(started);
    }

    #[tokio::test]
    async fn what_the_api_server_warns_of_is_logged_once() {
        let log = Kept::default();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(log.writers())
            .finish();
        let _guard = tracing::subscriber::set_default(subscriber);
        let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"any"}}"#;
        let says = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nwarning: 299 - \"unknown field \\\"a\\\"\"\r\n\
             warning: 299 - \"old\"\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        let maps: Api<ConfigMap> = Api::default_namespaced(client(says.leak()).await);
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
    async fn a_watch_that_falls_silent_is_given_up() {
        let begun = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
        let maps: Api<ConfigMap> = Api::default_namespaced(client(begun).await);
        let events = maps.watch(&WatchParams::default(), "1").await.unwrap();
        let started = Instant::now();
        let mut events = std::pin::pin!(events);
        let error = futures::StreamExt::next(&mut events).await.unwrap().unwrap_err();
        assert!(matches!(error, kube::Error::ReadEvents(_)), "{error:?}");
        assert_given_up_since(started);
    }
}

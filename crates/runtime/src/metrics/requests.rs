//! Metrics of requests to the API server.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response, Uri};
use hyper::body::{Body, Buf, Frame, SizeHint};
use tokio::time::Instant;
use tower::{Layer, Service};

use super::registry::{Family, Registry};
use super::{Counter, Histogram, Metrics};
use crate::client::without_credentials;

/// Same as in client-go for requests without a response.
const NO_RESPONSE: &str = "<error>";

/// Same buckets as in the components of Kubernetes.
const SECONDS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];
const BYTES: [f64; 11] = [
    64.0, 256.0, 512.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0, 16777216.0,
];

#[derive(Clone)]
pub(super) struct Families {
    total: Family<Counter, 3>,
    /// Set by [`Metrics::measure_requests`].
    histograms: Arc<OnceLock<Histograms>>,
}

struct Histograms {
    duration: Family<Histogram, 2>,
    request_size: Family<Histogram, 2>,
    response_size: Family<Histogram, 2>,
}

impl Families {
    pub(super) fn register(registry: &Registry) -> Self {
        let total = registry.own(
            "rest_client_requests_total",
            "Total number of requests to the API server by status code, method and host.",
            ["code", "host", "method"],
            &[],
        );
        Self {
            total,
            histograms: Arc::default(),
        }
    }
}

impl Histograms {
    fn register(registry: &Registry) -> Self {
        let histogram = |name, help, bounds: &[f64]| registry.own(name, help, ["host", "verb"], bounds);
        Self {
            duration: histogram(
                "rest_client_request_duration_seconds",
                "Request latency in seconds, until the response headers, by verb and host.",
                &SECONDS,
            ),
            request_size: histogram(
                "rest_client_request_size_bytes",
                "Request size in bytes by verb and host.",
                &BYTES,
            ),
            response_size: histogram(
                "rest_client_response_size_bytes",
                "Response size in bytes by verb and host, except for watches.",
                &BYTES,
            ),
        }
    }
}

/// A [`tower::Layer`] that counts a client's requests. See [`Metrics::count_requests`].
///
/// If requests are retried by a layer below this one (e.g. by kube itself), they are counted once,
/// with the last response.
#[derive(Clone)]
pub struct CountRequests {
    families: Families,
    host: Arc<str>,
}

impl std::fmt::Debug for CountRequests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CountRequests")
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

impl Metrics {
    /// Returns a layer that counts the requests to the API server at the given address, in the
    /// metric `rest_client_requests_total`.
    ///
    /// The clients of [`Manager::new`](crate::Manager::new) and
    /// [`Manager::with_config`](crate::Manager::with_config) already have it. For your own client,
    /// add it like this:
    ///
    /// ```no_run
    /// # use kube::{Config, client::ClientBuilder};
    /// # use rbuilder::{Manager, ManagerArgs, Result, metrics::Metrics};
    /// # async fn manager(config: Config) -> Result<Manager> {
    /// let metrics = Metrics::new();
    /// let counted = metrics.count_requests(&config.cluster_url);
    /// let client = ClientBuilder::try_from(config)?.with_layer(&counted).build();
    /// let args = ManagerArgs::default();
    /// let manager = Manager::with_client("da1d9c86.example.com", client, args).with_metrics(metrics);
    /// # Ok(manager)
    /// # }
    /// ```
    pub fn count_requests(&self, server: &Uri) -> CountRequests {
        // Requests only contain a path when they reach this layer.
        let server = without_credentials(server);
        let host = server.authority().map(ToString::to_string).unwrap_or_default();
        CountRequests {
            families: self.0.requests.clone(),
            host: host.into(),
        }
    }

    /// Enables metrics for the latency and the size of all requests that are
    /// [counted](Self::count_requests) from now on.
    ///
    /// These are `rest_client_request_duration_seconds`, `rest_client_request_size_bytes` and
    /// `rest_client_response_size_bytes`, by host and verb. They're disabled by default because of
    /// their large number of series. Responses to watches are not measured.
    pub fn measure_requests(&self) {
        let histograms = &self.0.requests.histograms;
        histograms.get_or_init(|| Histograms::register(&self.0.registry));
    }
}

impl<S> Layer<S> for CountRequests {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted {
            inner,
            counting: self.clone(),
        }
    }
}

/// Client service that counts requests.
#[derive(Clone, Debug)]
pub struct Counted<S> {
    inner: S,
    counting: CountRequests,
}

impl<S, A, B> Service<Request<A>> for Counted<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
    A: Body,
    B: Body + Unpin,
{
    type Response = Response<Weighed<B>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let CountRequests { families, host } = self.counting.clone();
        let method = request.method().clone();
        let sent = request.body().size_hint().exact();
        let is_watch = is_watch(request.uri());
        let started = Instant::now();
        let response = self.inner.call(request);
        Box::pin(async move {
            let response = response.await;
            let code = response.as_ref().map(Response::status);
            let code = code.as_ref().map_or(NO_RESPONSE, |code| code.as_str());
            families.total.with([code, &host, method.as_str()]).inc();
            let labels = [&*host, method.as_str()];
            let histograms = families.histograms.get();
            if let Some(histograms) = histograms {
                let duration = histograms.duration.with(labels);
                duration.observe_duration(started.elapsed());
                if let Some(sent) = sent {
                    histograms.request_size.with(labels).observe(sent as f64);
                }
            }
            let response = response?;
            let sizes = histograms.filter(|_| !is_watch);
            let sizes = sizes.map(|histograms| histograms.response_size.with(labels));
            Ok(response.map(|body| Weighed {
                body,
                bytes: 0,
                sizes,
            }))
        })
    }
}

pub(crate) fn is_watch(uri: &Uri) -> bool {
    let query = uri.query().unwrap_or_default();
    query
        .split('&')
        .any(|part| part == "watch=true" || part == "watch=1")
}

/// Response body that records its size on drop.
#[derive(Debug)]
pub struct Weighed<B> {
    body: B,
    bytes: usize,
    sizes: Option<Histogram>,
}

impl<B: Body + Unpin> Body for Weighed<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.bytes += frame.data_ref().map_or(0, Buf::remaining);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for Weighed<B> {
    fn drop(&mut self) {
        if let Some(sizes) = &self.sizes {
            sizes.observe(self.bytes as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt, Full};
    use hyper::body::Bytes;
    use tower::ServiceExt;

    use super::*;

    /// Sends a request to a server that responds with status `code`, or not at all if `code` is 0.
    async fn send(metrics: &Metrics, method: &str, path: &str, code: u16, body: &'static str) {
        let server = tower::service_fn(move |_: Request<Full<Bytes>>| async move {
            match code {
                0 => Err("connection reset"),
                code => Ok(Response::builder()
                    .status(code)
                    .body(Full::new(Bytes::from("12345")))
                    .unwrap()),
            }
        });
        let service = metrics
            .count_requests(&Uri::from_static("https://10.0.0.1:6443/prefix"))
            .layer(server);
        let request = Request::builder().method(method).uri(path);
        let response = service
            .oneshot(request.body(Full::new(Bytes::from(body))).unwrap())
            .await;
        if let Ok(response) = response {
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "12345");
        }
    }

    fn lines(metrics: &Metrics, start: &str) -> Vec<String> {
        let text = metrics.text();
        let lines = text.lines().filter_map(|line| line.strip_prefix(start));
        lines.map(str::to_owned).collect()
    }

    #[tokio::test]
    async fn responses_and_failures_are_counted_by_code_method_and_host() {
        let metrics = Metrics::new();
        for (method, code) in [("GET", 200), ("GET", 200), ("PATCH", 409), ("GET", 0)] {
            send(&metrics, method, "/api/v1/pods?limit=5", code, "").await;
        }
        assert_eq!(
            lines(&metrics, "rest_client_requests_total"),
            [
                r#"{code="200",host="10.0.0.1:6443",method="GET"} 2"#,
                r#"{code="409",host="10.0.0.1:6443",method="PATCH"} 1"#,
                r#"{code="<error>",host="10.0.0.1:6443",method="GET"} 1"#,
            ]
        );
        assert!(lines(&metrics, "rest_client_request_duration").is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn latency_and_sizes_are_measured_when_enabled() {
        let metrics = Metrics::new();
        metrics.measure_requests();
        metrics.measure_requests();
        send(&metrics, "POST", "/api/v1/pods", 201, "abc").await;
        send(&metrics, "GET", "/api/v1/pods?watch=true&limit=5", 200, "").await;
        send(&metrics, "GET", "/api/v1/pods", 0, "").await;
        let check = |name: &str, expected: &[&str]| {
            let found = lines(&metrics, &format!("rest_client_{name}"));
            assert_eq!(found, expected, "{name}");
        };
        let (get, post) = (
            r#"{host="10.0.0.1:6443",verb="GET"}"#,
            r#"{host="10.0.0.1:6443",verb="POST"}"#,
        );
        check(
            "request_duration_seconds_count",
            &[&format!("{get} 2"), &format!("{post} 1")],
        );
        check(
            "request_size_bytes_sum",
            &[&format!("{get} 0"), &format!("{post} 3")],
        );
        check("response_size_bytes_sum", &[&format!("{post} 5")]);
        check("response_size_bytes_count", &[&format!("{post} 1")]);
        let buckets = lines(
            &metrics,
            "rest_client_request_duration_seconds_bucket{host=\"10.0.0.1:6443\",verb=\"POST\"",
        );
        assert_eq!(buckets.len(), SECONDS.len() + 1);
    }
}

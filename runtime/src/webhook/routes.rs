//! Requests by path to what answers them, and what any of them may cost.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use serde::Serialize;
use tokio::time::{Instant, timeout};

use super::conversion::{self, AnyConverter, Converter};
use super::managed::Targets;
use crate::metrics::{Metrics, WebhookMetrics};
use crate::object::Object;
use crate::server::{Reply, text};

/// The largest review that is read. The API server takes objects of up to 3 MiB; an update brings two of them.
/// controller-runtime's.
const MAX_BODY: usize = 7 * 1024 * 1024;

/// How long the body of a review may take to arrive; the API server waits no longer for the whole answer.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

const CONVERT: &str = "/convert";

/// Turns a review into its answer.
pub(super) type Endpoint = Box<dyn Fn(Bytes) -> BoxFuture<'static, Result<Vec<u8>, Refused>> + Send + Sync>;

/// Why a request gets no review in answer.
#[derive(Debug)]
pub(super) struct Refused {
    status: StatusCode,
    reason: String,
}

impl Refused {
    pub(super) fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { status, reason }
    }
}

/// The path of a kind's webhook, as controller-runtime makes it: `/mutate-batch-example-com-v1-cronjob`.
pub(super) fn path<K: Object>(verb: &str) -> String {
    let group = K::group(&()).replace('.', "-");
    format!(
        "/{verb}-{group}-{}-{}",
        K::version(&()),
        K::kind(&()).to_lowercase()
    )
}

/// What is served, by path.
#[derive(Default)]
pub(crate) struct Routes {
    endpoints: BTreeMap<String, Endpoint>,
    converters: BTreeMap<(String, String), Box<dyn AnyConverter>>,
    mistakes: Vec<String>,
}

impl Routes {
    pub(super) fn add(&mut self, path: String, endpoint: Endpoint) {
        if !path.starts_with('/') || path == CONVERT {
            self.mistakes.push(format!(
                "invalid webhook path `{path}`: expected a path that starts with `/` and is not `{CONVERT}`"
            ));
        }
        if self.endpoints.insert(path.clone(), endpoint).is_some() {
            self.mistakes.push(format!(
                "two webhooks use the path `{path}`; set another path for one of them"
            ));
        }
    }

    pub(super) fn add_converter<K: Object + Serialize>(&mut self, converter: Converter<K>) {
        let kind = converter.kind();
        self.mistakes.extend_from_slice(converter.mistakes());
        let named = format!("{}.{}", kind.1, kind.0);
        if self.converters.insert(kind, Box::new(converter)).is_some() {
            self.mistakes.push(format!(
                "`{named}` has two conversion hubs; add all spokes to one hub"
            ));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.endpoints.is_empty() && self.converters.is_empty()
    }

    /// Whether objects are converted: the API server may have to ask before the caches can fill.
    pub(crate) fn converts(&self) -> bool {
        !self.converters.is_empty()
    }

    /// What sends the API server here.
    pub(super) fn targets(&self) -> Targets {
        Targets {
            admission: !self.endpoints.is_empty(),
            crds: self
                .converters
                .values()
                .map(|converter| converter.crd())
                .collect(),
        }
    }

    /// Why these cannot be served; the first reason is enough.
    pub(crate) fn mistake(&self) -> Option<&str> {
        self.mistakes.first().map(String::as_str)
    }

    /// What answers requests, and counts them.
    pub(crate) fn into_handler(
        self,
        metrics: &Metrics,
    ) -> impl Fn(Request<Incoming>) -> BoxFuture<'static, Reply> + Send + Sync + 'static {
        let counted = |path: &str| metrics.webhook(path);
        let mut routes: BTreeMap<String, Route> = self
            .endpoints
            .into_iter()
            .map(|(path, endpoint)| {
                let metrics = counted(&path);
                (path, Route { endpoint, metrics })
            })
            .collect();
        if !self.converters.is_empty() {
            let converters = Arc::new(self.converters);
            let endpoint: Endpoint = Box::new(move |body| {
                let converters = Arc::clone(&converters);
                async move { conversion::review(&body, &converters) }.boxed()
            });
            let metrics = counted(CONVERT);
            routes.insert(CONVERT.to_owned(), Route { endpoint, metrics });
        }
        let routes = Arc::new(routes);
        move |request| {
            let routes = Arc::clone(&routes);
            async move {
                match routes.get(request.uri().path()) {
                    Some(route) => route.answer(request).await,
                    None => text(StatusCode::NOT_FOUND, "404 page not found\n"),
                }
            }
            .boxed()
        }
    }
}

struct Route {
    endpoint: Endpoint,
    metrics: WebhookMetrics,
}

impl Route {
    async fn answer(&self, request: Request<Incoming>) -> Reply {
        let _in_flight = self.metrics.in_flight();
        let started = Instant::now();
        let path = request.uri().path().to_owned();
        let answered = AssertUnwindSafe(async { (self.endpoint)(body(request).await?).await })
            .catch_unwind()
            .await;
        let answered = answered.unwrap_or_else(|_| {
            self.metrics.panicked(path == CONVERT);
            tracing::error!(path, "webhook panicked");
            let reason = "webhook panicked\n";
            Err(Refused::new(StatusCode::INTERNAL_SERVER_ERROR, reason))
        });
        let reply = match answered {
            Ok(review) => {
                let mut reply = text(StatusCode::OK, review);
                let json = HeaderValue::from_static("application/json");
                reply.headers_mut().insert(CONTENT_TYPE, json);
                reply
            }
            Err(Refused { status, reason }) => {
                tracing::warn!(path, %status, reason = reason.trim_end(), "rejected webhook request");
                text(status, reason)
            }
        };
        self.metrics.answered(reply.status(), started.elapsed());
        reply
    }
}

/// The body of a request for a review.
async fn body(request: Request<Incoming>) -> Result<Bytes, Refused> {
    if request.method() != Method::POST {
        return Err(Refused::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "expected method POST\n",
        ));
    }
    let json = request.headers().get(CONTENT_TYPE).is_some_and(|content_type| {
        let content_type = content_type.to_str().unwrap_or_default();
        content_type.split(';').next().map(str::trim) == Some("application/json")
    });
    if !json {
        return Err(Refused::new(
            StatusCode::BAD_REQUEST,
            "expected content type application/json\n",
        ));
    }
    let body = Limited::new(request.into_body(), MAX_BODY).collect();
    let body = timeout(BODY_TIMEOUT, body).await.map_err(|_| {
        let reason = format!("request body not received within {BODY_TIMEOUT:?}\n");
        Refused::new(StatusCode::REQUEST_TIMEOUT, reason)
    })?;
    let body = body.map_err(|error| {
        if error.is::<LengthLimitError>() {
            Refused::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("request body is larger than {MAX_BODY} bytes\n"),
            )
        } else {
            Refused::new(
                StatusCode::BAD_REQUEST,
                format!("failed to read request body: {error}\n"),
            )
        }
    })?;
    let body = body.to_bytes();
    if body.is_empty() {
        return Err(Refused::new(StatusCode::BAD_REQUEST, "request body is empty\n"));
    }
    Ok(body)
}

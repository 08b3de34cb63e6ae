//! Routes requests to webhooks by path, and limits their size.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, StatusCode};
use rbuilder_kubernetes::gvk;
use serde::Serialize;
use tokio::time::Instant;
use tracing::{Instrument, Span};

use super::conversion::{AnyConverter, Converter};
use super::conversion_review::ConversionEndpoint;
use super::managed::{ConfigurationKind, Targets};
use super::memory::Memory;
use super::received::{Answer, Received};
use crate::log_limit::LogLimit;
use crate::metrics::{Metrics, WebhookMetrics};
use crate::object::Object;
use crate::server::{Reply, RequestBody, text_reply};
use crate::traces::Trace;

/// In bytes, same as in controller-runtime. Objects can have up to 3 MiB, and an update contains
/// two objects.
const MAX_ADMISSION: usize = 7 * 1024 * 1024;

/// Maximum size of a ConversionReview. There is no limit in controller-runtime.
///
/// A review contains the objects of a list that aren't stored in the requested version. Clients
/// that use paging (e.g. kubectl) request up to 500 objects at once, but the API server lists the
/// entire kind for its watch cache. Each object can be as large as the limit in etcd, which is 1.5
/// MiB.
///
/// Rejecting a review makes the list fail for all clients, so legitimate uses must never reach this
/// limit. It allows 10,000 objects of 25 KiB, or 170 objects of the maximum size.
const MAX_CONVERSION: usize = 256 * 1024 * 1024;

const CONVERT: &str = "/convert";

pub(super) type Endpoint =
    Box<dyn Fn(Received) -> BoxFuture<'static, Result<Answer, Rejection>> + Send + Sync>;

/// HTTP error for a request that isn't a valid review.
#[derive(Debug)]
pub(super) struct Rejection {
    status: StatusCode,
    reason: String,
}

impl Rejection {
    pub(super) fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { status, reason }
    }
}

/// Same path as in controller-runtime, e.g. `/mutate-batch-example-com-v1-cronjob`.
pub(super) fn default_path<K: Object>(verb: &str) -> String {
    let group = K::group(&()).replace('.', "-");
    format!(
        "/{verb}-{group}-{}-{}",
        K::version(&()),
        K::kind(&()).to_lowercase()
    )
}

#[derive(Default)]
pub(crate) struct Routes {
    endpoints: BTreeMap<String, Endpoint>,
    /// Without a configuration of these kinds, the API server doesn't call the webhooks.
    needed: BTreeSet<ConfigurationKind>,
    /// Keyed by group and kind.
    converters: BTreeMap<(String, String), Box<dyn AnyConverter>>,
    errors: Vec<String>,
}

impl Routes {
    /// `kind` is `None` for a webhook that may be in either kind of configuration.
    pub(super) fn add(&mut self, path: String, kind: Option<ConfigurationKind>, endpoint: Endpoint) {
        self.needed.extend(kind);
        if !path.starts_with('/') || path == CONVERT {
            self.errors.push(format!(
                "invalid webhook path `{path}`: expected a path that starts with `/` and is not `{CONVERT}`"
            ));
        }
        if self.endpoints.insert(path.clone(), endpoint).is_some() {
            self.errors.push(format!(
                "two webhooks use the path `{path}`; set another path for one of them"
            ));
        }
    }

    pub(super) fn add_converter<K: Object + Serialize>(&mut self, converter: Converter<K>) {
        let kind = converter.kind();
        self.errors.extend_from_slice(converter.errors());
        let named = gvk::qualify(&kind.1, &kind.0);
        if self.converters.insert(kind, Box::new(converter)).is_some() {
            self.errors.push(format!(
                "`{named}` has two conversion hubs; add all spokes to one hub"
            ));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.endpoints.is_empty() && self.converters.is_empty()
    }

    pub(crate) fn has_conversions(&self) -> bool {
        !self.converters.is_empty()
    }

    pub(super) fn injection_targets(&self) -> Targets {
        Targets {
            admission: !self.endpoints.is_empty(),
            needed: self.needed.clone(),
            crds: self.converted_crds().into_iter().collect(),
        }
    }

    pub(crate) fn converted_crds(&self) -> Vec<String> {
        let converters = self.converters.values();
        converters.map(|converter| converter.crd_name()).collect()
    }

    /// Paths of the admission webhooks.
    #[cfg(feature = "testing")]
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.endpoints.keys().map(String::as_str)
    }

    /// Converted kinds with their groups, e.g. `Cup.shop.example.com`.
    #[cfg(feature = "testing")]
    pub(crate) fn converted_kinds(&self) -> impl Iterator<Item = String> {
        let kinds = self.converters.keys();
        kinds.map(|(group, kind)| gvk::qualify(kind, group))
    }

    pub(crate) fn first_error(&self) -> Option<&str> {
        self.errors.first().map(String::as_str)
    }

    /// Returns a handler that processes and counts all requests. Reviews may use about `memory`
    /// bytes in total.
    pub(crate) fn into_handler(
        self,
        metrics: &Metrics,
        memory: usize,
    ) -> impl Fn(Request<RequestBody>) -> BoxFuture<'static, Reply> + Send + Sync + 'static {
        let memory = Arc::new(Memory::new(memory));
        let mut routes: BTreeMap<String, Route> = self
            .endpoints
            .into_iter()
            .map(|(path, endpoint)| {
                let route = Route {
                    endpoint,
                    metrics: metrics.webhook(&path),
                    max_body: MAX_ADMISSION,
                    memory: Arc::clone(&memory),
                    rejections: LogLimit::default(),
                };
                (path, route)
            })
            .collect();
        if !self.converters.is_empty() {
            let endpoint = ConversionEndpoint::new(self.converters, metrics.conversions());
            let route = Route {
                endpoint: endpoint.boxed(),
                metrics: metrics.webhook(CONVERT),
                max_body: MAX_CONVERSION,
                memory,
                rejections: LogLimit::default(),
            };
            routes.insert(CONVERT.to_owned(), route);
        }
        let routes = Arc::new(routes);
        move |request| {
            let routes = Arc::clone(&routes);
            async move {
                match routes.get(request.uri().path()) {
                    Some(route) => route.answer(request).await,
                    None => text_reply(StatusCode::NOT_FOUND, "404 page not found\n"),
                }
            }
            .boxed()
        }
    }
}

struct Route {
    endpoint: Endpoint,
    metrics: WebhookMetrics,
    max_body: usize,
    memory: Arc<Memory>,
    rejections: LogLimit,
}

impl Route {
    async fn answer(&self, request: Request<RequestBody>) -> Reply {
        let _in_flight = self.metrics.in_flight();
        let started = Instant::now();
        let path = request.uri().path().to_owned();
        let trace = Trace::of_review(request.headers(), &path);
        let answering = AssertUnwindSafe(async {
            let received = Received::receive(request, self.max_body, &self.memory).await?;
            (self.endpoint)(received).await
        });
        let span = match trace.id() {
            Some(trace_id) => tracing::info_span!("webhook", path, trace_id),
            None => Span::none(),
        };
        let result = trace
            .follow(answering.catch_unwind())
            .instrument(span.clone())
            .await;
        // Everything logged from here on belongs to the span as well.
        let _entered = span.enter();
        let result = result.unwrap_or_else(|_| {
            self.metrics.panicked(path == CONVERT);
            tracing::error!(path, "webhook panicked");
            let reason = "webhook panicked\n";
            Err(Rejection::new(StatusCode::INTERNAL_SERVER_ERROR, reason))
        });
        let reply = match result {
            Ok(answer) => {
                let mut reply = text_reply(StatusCode::OK, answer.into_bytes());
                let json = HeaderValue::from_static("application/json");
                reply.headers_mut().insert(CONTENT_TYPE, json);
                reply
            }
            Err(Rejection { status, reason }) => {
                self.log_rejection(&path, status, reason.trim_end());
                text_reply(status, reason)
            }
        };
        self.metrics.answered(reply.status(), started.elapsed());
        trace.end_review(reply.status());
        reply
    }

    fn log_rejection(&self, path: &str, status: StatusCode, reason: &str) {
        // Rate-limited, because any client can cause these.
        if let Some(left_out) = self.rejections.permit() {
            tracing::warn!(path, %status, reason, left_out, "rejected webhook request");
        }
    }
}

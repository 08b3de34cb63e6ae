//! Debug endpoints, served under `/debug` by the metrics server if `--enable-debug-endpoints` is
//! set.
//!
//! They reveal the names of objects, but not their contents. Access to each path is authorized in
//! the same way as for `/metrics`.

mod caches;
mod clusters;
mod log;
mod profile;
mod query;
mod queues;
mod runtime;
mod shards;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use http::header::{ALLOW, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Method, Request, Response, StatusCode};
use serde_json::Value;

use crate::cache::WatchStatus;
use crate::cluster::ClusterStatus;
use crate::metrics_server::Handlers;
use crate::shards::RingStatus;
use crate::shutdown::Shutdown;

use query::Query;
pub(crate) use queues::ControllerQueue;

/// Default for the number of keys shown per queue.
const DEFAULT_LIMIT: usize = 1000;

const INDEX: &str = "\
/debug/queues   keys of each controller's queue: in progress, ready, delayed; errors of its mapping functions;
                ?controller=name, ?limit=1000
/debug/caches   watches that fill the caches: objects, last data, last error
/debug/clusters other clusters: connected or why not, watches
/debug/shards   ranges of a sharded operator and the replicas that own them
/debug/runtime  tokio's workers and tasks, memory of the process
/debug/log      level and format of the log; PUT ?log-level=debug or ?log-format=json changes them
Each answers in JSON with ?format=json.
/debug/pprof/profile  CPU profile for `go tool pprof`; ?seconds=30
";

/// The manager adds its controllers and caches to this when it starts.
#[derive(Default)]
pub(crate) struct DebugState {
    queues: Mutex<Vec<ControllerQueue>>,
    watches: OnceLock<DescribeWatches>,
    clusters: OnceLock<DescribeClusters>,
    shards: OnceLock<DescribeShards>,
    servers_stopped: OnceLock<Shutdown>,
}

type DescribeWatches = Box<dyn Fn() -> Vec<WatchStatus> + Send + Sync>;
type DescribeShards = Box<dyn Fn() -> RingStatus + Send + Sync>;
type DescribeClusters = Box<dyn Fn() -> Vec<ClusterStatus> + Send + Sync>;

impl DebugState {
    pub(crate) fn add_queues(&self, queues: impl IntoIterator<Item = ControllerQueue>) {
        let mut known = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(queues);
    }

    pub(crate) fn set_watches(&self, describe: impl Fn() -> Vec<WatchStatus> + Send + Sync + 'static) {
        let _ = self.watches.set(Box::new(describe));
    }

    pub(crate) fn set_clusters(&self, describe: impl Fn() -> Vec<ClusterStatus> + Send + Sync + 'static) {
        let _ = self.clusters.set(Box::new(describe));
    }

    pub(crate) fn set_shards(&self, describe: impl Fn() -> RingStatus + Send + Sync + 'static) {
        let _ = self.shards.set(Box::new(describe));
    }

    /// A profile ends early when `stopped` resolves; otherwise it would delay the exit of the
    /// process.
    pub(crate) fn set_servers_stopped(&self, stopped: Shutdown) {
        let _ = self.servers_stopped.set(stopped);
    }

    fn answer_caches(&self) -> Answer {
        let watches = self.watches.get().map(|describe| describe()).unwrap_or_default();
        let mut text = String::new();
        watches.iter().for_each(|watch| caches::write(watch, &mut text));
        Answer::both(text, watches.iter().map(caches::to_json).collect())
    }

    fn answer_clusters(&self) -> Answer {
        let clusters = self.clusters.get().map(|describe| describe()).unwrap_or_default();
        let mut text = String::new();
        clusters
            .iter()
            .for_each(|cluster| clusters::write(cluster, &mut text));
        Answer::both(text, clusters.iter().map(clusters::to_json).collect())
    }

    fn answer_shards(&self) -> Answer {
        match self.shards.get().map(|describe| describe()) {
            Some(status) => Answer::both(shards::to_text(&status), shards::to_json(&status)),
            None => Answer::error(StatusCode::NOT_FOUND, "the operator runs without `--shards`"),
        }
    }

    fn answer_queues(&self, query: &Query) -> Answer {
        let limit = match query.get("limit").map(str::parse) {
            None => DEFAULT_LIMIT,
            Some(Ok(limit)) => limit,
            Some(Err(_)) => return Answer::error(StatusCode::BAD_REQUEST, "expected a number: ?limit=1000"),
        };
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = query.get("controller");
        let queues = queues
            .iter()
            .filter(|queue| wanted.is_none_or(|name| queue.controller == name));
        let reports: Vec<_> = queues.filter_map(|queue| queue.report(limit)).collect();
        if let (Some(name), true) = (wanted, reports.is_empty()) {
            return Answer::error(StatusCode::NOT_FOUND, format!("there is no controller `{name}`"));
        }
        let mut text = String::new();
        reports.iter().for_each(|report| report.write(&mut text));
        Answer::both(text, reports.iter().map(queues::QueueReport::to_json).collect())
    }
}

/// Adds all endpoints to the metrics server. They are read-only unless the server authorizes its
/// clients.
pub(crate) fn add_endpoints(handlers: &mut Handlers, state: &Arc<DebugState>, is_secure: bool) {
    for path in ["/debug", "/debug/"] {
        add(handlers, path, &[Method::GET], |_, _| Answer::text(INDEX));
    }
    let queues = Arc::clone(state);
    add(handlers, "/debug/queues", &[Method::GET], move |_, query| {
        queues.answer_queues(query)
    });
    let watches = Arc::clone(state);
    add(handlers, "/debug/caches", &[Method::GET], move |_, _| {
        watches.answer_caches()
    });
    let clusters = Arc::clone(state);
    add(handlers, "/debug/clusters", &[Method::GET], move |_, _| {
        clusters.answer_clusters()
    });
    let ranges = Arc::clone(state);
    add(handlers, "/debug/shards", &[Method::GET], move |_, _| {
        ranges.answer_shards()
    });
    add(handlers, "/debug/runtime", &[Method::GET], |_, _| {
        let report = runtime::report();
        Answer::both(runtime::to_text(&report), report)
    });
    add(
        handlers,
        "/debug/log",
        &[Method::GET, Method::PUT],
        move |method, query| log::answer(method, query, is_secure),
    );
    let profiles = Arc::clone(state);
    handlers.add("/debug/pprof/profile".to_owned(), move |request| {
        profile::answer(request, profiles.servers_stopped.get().cloned())
    });
}

/// Endpoints treat HEAD like GET.
fn add(
    handlers: &mut Handlers,
    path: &str,
    methods: &'static [Method],
    answer: impl Fn(&Method, &Query) -> Answer + Send + Sync + 'static,
) {
    let answer = move |request: &Request<()>| {
        let method = match request.method() {
            &Method::HEAD => &Method::GET,
            method => method,
        };
        if !methods.contains(method) {
            return refuse_method(methods);
        }
        let query = match Query::parse(request.uri().query().unwrap_or_default()) {
            Ok(query) => query,
            Err(reason) => return Answer::error(StatusCode::BAD_REQUEST, reason).into_response(false),
        };
        let is_json = query.get("format") == Some("json");
        answer(method, &query).into_response(is_json)
    };
    handlers.add(path.to_owned(), move |request| {
        std::future::ready(answer(&request))
    });
}

fn refuse_method(methods: &[Method]) -> Response<String> {
    let allowed = methods.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
    let reason = format!("expected method {}", allowed.replace(", ", " or "));
    let mut response = Answer::error(StatusCode::METHOD_NOT_ALLOWED, reason).into_response(false);
    // A 405 response must list the allowed methods.
    if let Ok(allowed) = HeaderValue::from_str(&allowed) {
        response.headers_mut().insert(ALLOW, allowed);
    }
    response
}

/// A response as text and, if a program might want to process it, as JSON.
struct Answer {
    status: StatusCode,
    text: String,
    json: Option<Value>,
}

impl Answer {
    fn text(text: impl Into<String>) -> Self {
        Self {
            status: StatusCode::OK,
            text: text.into(),
            json: None,
        }
    }

    fn both(text: String, json: Value) -> Self {
        Self {
            json: Some(json),
            ..Self::text(text)
        }
    }

    fn error(status: StatusCode, reason: impl Into<String>) -> Self {
        Self {
            status,
            ..Self::text(reason.into() + "\n")
        }
    }

    fn into_response(self, is_json: bool) -> Response<String> {
        let (content_type, body) = match self.json.filter(|_| is_json) {
            Some(json) => ("application/json", format!("{json:#}\n")),
            None => ("text/plain; charset=utf-8", self.text),
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }
}

#[cfg(test)]
mod tests;

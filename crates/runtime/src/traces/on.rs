//! Records spans with the OpenTelemetry API. Names and attributes follow the [semantic
//! conventions](https://opentelemetry.io/docs/specs/semconv/http/http-spans/) for HTTP.

use http::{HeaderMap, Request, Response, StatusCode, Uri};
use kube::Client;
use kube::client::Body;
use opentelemetry::context::{FutureExt, WithContext};
use opentelemetry::trace::{Span as _, SpanBuilder, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue, global};

use super::Reconcile;
use super::trace_context::{read_headers, write_headers};
use super::url_template::url_template;
use crate::causes::describe_causes;
use crate::client::{without_credentials, wrap_client};

/// Shown by backends as the origin of a span.
const TRACER: &str = "rbuilder";

/// The span of a reconcile or a review, which ends on drop. `None` without a tracer provider.
pub(crate) struct Trace(Option<Context>);

impl Trace {
    /// Each reconcile starts a new trace.
    pub(crate) fn of_reconcile(reconcile: &Reconcile<'_>) -> Self {
        let name = format!("reconcile {}", reconcile.controller);
        let builder = SpanBuilder::from_name(name).with_kind(SpanKind::Internal);
        let mut span = global::tracer(TRACER).build_with_context(builder, &Context::new());
        // Don't allocate attributes without a provider.
        if !span.span_context().is_valid() {
            return Self(None);
        }
        if span.is_recording() {
            span.set_attributes(attributes_of_reconcile(reconcile));
        }
        Self(Some(Context::new().with_span(span)))
    }

    /// If the request belongs to a trace of the API server, the span becomes part of that trace.
    pub(crate) fn of_review(headers: &HeaderMap, path: &str) -> Self {
        let attributes = vec![
            KeyValue::new("http.request.method", "POST"),
            KeyValue::new("http.route", path.to_owned()),
            KeyValue::new("url.path", path.to_owned()),
            KeyValue::new("url.scheme", "https"),
        ];
        let parent = match read_headers(headers) {
            Some(parent) => Context::new().with_remote_span_context(parent),
            None => Context::new(),
        };
        Self(Some(start(
            &parent,
            format!("POST {path}"),
            SpanKind::Server,
            attributes,
        )))
    }

    /// In hex. `None` without a tracer provider.
    pub(crate) fn id(&self) -> Option<String> {
        let span = self.0.as_ref()?.span();
        let span = span.span_context();
        span.is_valid().then(|| span.trace_id().to_string())
    }

    /// Requests and spans of `future` become children of this span.
    pub(crate) fn follow<F: Future>(&self, future: F) -> WithContext<F> {
        future.with_context(self.0.clone().unwrap_or_default())
    }

    /// Adds the result to the span, and the error if the reconcile failed.
    pub(crate) fn end_reconcile(self, result: &'static str, error: impl FnOnce() -> Option<String>) {
        let Some(context) = self.0 else {
            return;
        };
        let span = context.span();
        if span.is_recording() {
            span.set_attribute(KeyValue::new("result", result));
            if let Some(error) = error() {
                span.set_status(Status::error(error));
            }
        }
        span.end();
    }

    pub(crate) fn end_review(self, status: StatusCode) {
        if let Some(context) = self.0 {
            set_status(&context, status, status.is_server_error());
            context.span().end();
        }
    }
}

fn attributes_of_reconcile(reconcile: &Reconcile<'_>) -> Vec<KeyValue> {
    let mut attributes = vec![
        KeyValue::new("controller", reconcile.controller.to_owned()),
        KeyValue::new("kind", reconcile.kind.to_owned()),
        KeyValue::new("name", reconcile.name.to_owned()),
        KeyValue::new("reconcile_id", reconcile.id.to_owned()),
    ];
    let namespace = reconcile.namespace.map(str::to_owned);
    attributes.extend(namespace.map(|namespace| KeyValue::new("namespace", namespace)));
    attributes
}

fn start(parent: &Context, name: String, kind: SpanKind, attributes: Vec<KeyValue>) -> Context {
    let builder = SpanBuilder::from_name(name)
        .with_kind(kind)
        .with_attributes(attributes);
    parent.with_span(global::tracer(TRACER).build_with_context(builder, parent))
}

fn set_status(context: &Context, status: StatusCode, is_error: bool) {
    let span = context.span();
    let code = KeyValue::new("http.response.status_code", i64::from(status.as_u16()));
    span.set_attribute(code);
    if is_error {
        span.set_attribute(KeyValue::new("error.type", status.as_str().to_owned()));
        span.set_status(Status::error(status.to_string()));
    }
}

/// Wraps a client so that requests that belong to a span (e.g. of a reconcile) get a child span.
/// Background requests (e.g. watches) don't.
pub(crate) fn trace_requests(client: Client, server: Option<&Uri>) -> Client {
    let server = server.map(without_credentials);
    wrap_client(client, move |client, mut request| {
        let server = server.clone();
        async move {
            // Read this when the caller polls, because the client calls the function from another
            // task.
            let parent = Context::current();
            if !parent.span().span_context().is_valid() {
                return Ok(client.send(request).await?);
            }
            let context = start_request(&parent, &request, server.as_ref());
            write_headers(request.headers_mut(), context.span().span_context());
            let answer = client.send(request).with_context(context.clone()).await;
            end_request(&context, &answer);
            Ok(answer?)
        }
    })
}

fn start_request(parent: &Context, request: &Request<Body>, server: Option<&Uri>) -> Context {
    let (method, uri) = (request.method().as_str().to_owned(), request.uri());
    let template = url_template(uri.path());
    let name = format!("{method} {template}");
    let mut attributes = vec![
        KeyValue::new("http.request.method", method),
        KeyValue::new("url.template", template),
    ];
    if let Some((server, host)) = server.and_then(|server| Some((server, server.host()?))) {
        let is_plain = server.scheme_str() == Some("http");
        let port = server.port_u16().unwrap_or(if is_plain { 80 } else { 443 });
        let base = server.to_string();
        attributes.extend([
            KeyValue::new("server.address", host.trim_matches(['[', ']']).to_owned()),
            KeyValue::new("server.port", i64::from(port)),
            KeyValue::new("url.full", format!("{}{uri}", base.trim_end_matches('/'))),
        ]);
    }
    start(parent, name, SpanKind::Client, attributes)
}

fn end_request(context: &Context, answer: &Result<Response<Body>, kube::Error>) {
    match answer {
        Ok(answer) => {
            let status = answer.status();
            set_status(
                context,
                status,
                status.is_client_error() || status.is_server_error(),
            );
        }
        Err(error) => {
            let span = context.span();
            span.set_attribute(KeyValue::new("error.type", "_OTHER"));
            span.set_status(Status::error(describe_causes(error)));
        }
    }
    context.span().end();
}

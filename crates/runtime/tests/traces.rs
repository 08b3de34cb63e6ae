//! Spans that a tracer provider receives: reconciles with their requests, and webhooks. The API
//! server is a fake.

#[allow(dead_code)] // each program uses a part of it
mod tls_client;

use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use kube::core::admission::AdmissionResponse;
use kube::{Api, Client, Config, ResourceExt};
use opentelemetry::global::set_tracer_provider;
use opentelemetry::trace::{SpanId, SpanKind, Status};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use rbuilder::envtest::ReservedPort;
use rbuilder::fake::ApiServer;
use rbuilder::testing::eventually;
use rbuilder::webhook::AdmissionRequest;
use rbuilder::{Action, Controller, Ctx, Error, Manager, ManagerArgs, Result};
use serde_json::json;

use tls_client::{ask, review_of_a_config_map, write_certificate};

/// Upper bound for anything to happen, even on a busy machine.
const SOON: Duration = Duration::from_secs(30);

/// The spans of all tests, since a process can only have one provider.
static SPANS: LazyLock<InMemorySpanExporter> = LazyLock::new(|| {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone());
    set_tracer_provider(provider.build());
    exporter
});

fn finished_spans() -> Vec<SpanData> {
    SPANS.get_finished_spans().unwrap()
}

/// Empty if the span doesn't have this attribute.
fn attribute(span: &SpanData, key: &str) -> String {
    let mut found = span
        .attributes
        .iter()
        .filter(|attribute| attribute.key.as_str() == key);
    found
        .next()
        .map(|found| found.value.to_string())
        .unwrap_or_default()
}

/// Waits until there are `count` spans for a controller.
async fn wait_for_reconciles(controller: &str, count: usize) -> Vec<SpanData> {
    eventually(SOON, || async {
        let mut spans = finished_spans();
        spans.retain(|span| attribute(span, "controller") == controller);
        match spans.len() >= count {
            true => Ok(spans),
            false => Err(format!("{spans:?}")),
        }
    })
    .await
}

fn children_of(span: &SpanData) -> Vec<SpanData> {
    let mut spans = finished_spans();
    spans.retain(|child| child.parent_span_id == span.span_context.span_id());
    for child in &spans {
        assert_eq!(child.span_context.trace_id(), span.span_context.trace_id());
    }
    spans
}

/// Returns an error, panics, returns a terminal error, and finally succeeds.
async fn reconcile(map: Arc<ConfigMap>, ctx: Ctx<Mutex<u32>>) -> Result {
    if map.name_any() != "map" {
        return Ok(Action::await_change());
    }
    let attempt = {
        let mut attempts = ctx.lock().unwrap();
        *attempts += 1;
        *attempts
    };
    match attempt {
        1 => {
            ctx.api::<ConfigMap>(&*map).get("missing").await?;
        }
        2 => panic!("as asked"),
        3 => return Err(Error::terminal("for good")),
        _ => {}
    }
    Ok(Action::await_change())
}

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": name, "namespace": "default" } })).unwrap()
}

/// Requests and their `traceparent` header.
type Parents = Arc<Mutex<Vec<(String, Option<String>)>>>;

fn record_requests(client: Client, parents: &Parents) -> Client {
    let parents = Arc::clone(parents);
    let service = tower::service_fn(move |request: Request<Body>| {
        let parent = request.headers().get("traceparent");
        let parent = parent.map(|parent| parent.to_str().unwrap().to_owned());
        let what = format!("{} {}", request.method(), request.uri().path());
        parents.lock().unwrap().push((what, parent));
        let client = client.clone();
        async move { client.send(request).await }
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn reconcile_trace_includes_its_requests() {
    LazyLock::force(&SPANS);
    let server = ApiServer::new().object(&config_map("map"));
    let parents = Parents::default();
    let client = record_requests(server.client(), &parents);
    let controller = Controller::new(reconcile, Mutex::new(0)).named("traced");
    let manager = Manager::with_client("traces.example.com", client, ManagerArgs::for_tests());
    let done = wait_for_reconciles("traced", 3);
    let stopped = async { drop(done.await) };
    manager.controller(controller).start_until(stopped).await.unwrap();

    let spans = wait_for_reconciles("traced", 3).await;
    let results: Vec<_> = spans.iter().map(|span| attribute(span, "result")).collect();
    assert_eq!(results[..3], ["error", "panic", "terminal_error"]);
    for span in &spans {
        assert_eq!(span.name, "reconcile traced");
        assert_eq!(span.parent_span_id, SpanId::INVALID);
        for (key, expected) in [("kind", "ConfigMap"), ("namespace", "default"), ("name", "map")] {
            assert_eq!(attribute(span, key), expected);
        }
        assert_eq!(attribute(span, "reconcile_id").len(), 16);
    }
    let described = |span: &SpanData| match &span.status {
        Status::Error { description } => description.to_string(),
        other => format!("{other:?}"),
    };
    assert!(
        described(&spans[0]).contains("\"missing\" not found"),
        "{:?}",
        spans[0].status
    );
    assert_eq!(described(&spans[1]), "panicked: as asked");
    assert_eq!(described(&spans[2]), "for good");

    let [request] = &children_of(&spans[0])[..] else {
        panic!("{:?}", children_of(&spans[0]))
    };
    let template = "/api/v1/namespaces/{namespace}/configmaps/{name}";
    assert_eq!(request.name, format!("GET {template}"));
    assert_eq!(request.span_kind, SpanKind::Client);
    assert_eq!(attribute(request, "url.template"), template);
    assert_eq!(attribute(request, "http.request.method"), "GET");
    assert_eq!(attribute(request, "http.response.status_code"), "404");
    assert_eq!(described(request), "404 Not Found");

    let context = &request.span_context;
    let expected = format!("00-{}-{}-01", context.trace_id(), context.span_id());
    let parents = parents.lock().unwrap().clone();
    let (sent, others): (Vec<_>, Vec<_>) = parents
        .into_iter()
        .partition(|(what, _)| what.ends_with("/missing"));
    assert_eq!(sent[0].1, Some(expected));
    assert!(
        others.iter().all(|(_, parent)| parent.is_none()),
        "those of caches: {others:?}"
    );
}

#[tokio::test]
async fn request_span_names_the_server() {
    LazyLock::force(&SPANS);
    // Bind the port without listening, so that connections are refused and no other process can
    // grab it.
    let closed = tokio::net::TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = closed.local_addr().unwrap();
    let config = Config::new(format!("http://{address}").parse().unwrap());
    let manager = Manager::with_config("traces.example.com", config, ManagerArgs::for_tests()).unwrap();
    let ctx = Ctx::new(manager.client(), "unreachable", ());
    let maps: Api<ConfigMap> = ctx.api(&config_map("map"));
    let tracer = opentelemetry::global::tracer("test");
    let span = opentelemetry::trace::Tracer::start(&tracer, "outer");
    let outer = opentelemetry::trace::TraceContextExt::with_span(&opentelemetry::Context::new(), span);
    let asked = opentelemetry::context::FutureExt::with_context(maps.get("map"), outer);
    asked.await.unwrap_err();
    let url = format!("http://{address}/api/v1/namespaces/default/configmaps/map");
    let spans = finished_spans();
    let span = spans
        .iter()
        .find(|span| attribute(span, "url.full").starts_with(&url));
    let span = span.unwrap_or_else(|| panic!("{spans:?}"));
    assert_eq!(attribute(span, "server.address"), "127.0.0.1");
    assert_eq!(attribute(span, "server.port"), address.port().to_string());
    assert_eq!(attribute(span, "error.type"), "_OTHER");
    assert!(
        format!("{:?}", span.status).contains("Connection refused"),
        "{:?}",
        span.status
    );
}

async fn allow(request: AdmissionRequest) -> AdmissionResponse {
    AdmissionResponse::from(&request)
}

#[tokio::test]
async fn review_span_joins_the_trace_of_the_api_server() {
    LazyLock::force(&SPANS);
    let folder = tempfile::tempdir().unwrap();
    let certificate = write_certificate(folder.path());
    let reserved = ReservedPort::reserve().unwrap();
    let port = reserved.number();
    let args = ManagerArgs {
        webhook_port: port,
        webhook_cert_path: Some(folder.path().to_owned()),
        ..ManagerArgs::for_tests()
    };
    let manager = Manager::with_client("traces.example.com", ApiServer::new().client(), args);
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let asked = async {
        let review = review_of_a_config_map("1").to_string();
        let headers = [("Content-Type", "application/json"), ("traceparent", parent)];
        let answer = eventually(SOON, || {
            ask(port, &certificate, "POST /traced", &headers, &review)
        })
        .await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    };
    manager
        .raw_webhook("/traced", allow)
        .start_until(asked)
        .await
        .unwrap();
    let spans = finished_spans();
    let span = spans.iter().find(|span| span.name == "POST /traced");
    let span = span.unwrap_or_else(|| panic!("{spans:?}"));
    assert_eq!(
        span.span_context.trace_id().to_string(),
        "0af7651916cd43dd8448eb211c80319c"
    );
    assert_eq!(span.parent_span_id.to_string(), "b7ad6b7169203331");
    assert_eq!(span.span_kind, SpanKind::Server);
    assert_eq!(attribute(span, "http.route"), "/traced");
    assert_eq!(attribute(span, "http.response.status_code"), "200");
}

//! Tests of admission webhooks with a real server. They check requests, responses and metrics.

use std::net::SocketAddr;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;
use crate::metrics::Metrics;
use crate::server::Server;

mod conversions;
mod floods;
mod undecodable;

struct Served {
    address: SocketAddr,
    metrics: Metrics,
}

/// Enough for every review.
const AMPLE: usize = 1 << 30;

async fn serve(routes: Routes) -> Served {
    serve_within(routes, AMPLE).await
}

async fn serve_within(routes: Routes, memory: usize) -> Served {
    assert_eq!(routes.first_error(), None);
    let metrics = Metrics::new();
    let server = Server::bind("127.0.0.1:0").await.unwrap().unwrap();
    let address = server.address().unwrap();
    let handler = routes.into_handler(&metrics, memory);
    tokio::spawn(server.serve(None, handler, std::future::pending()));
    Served { address, metrics }
}

async fn webhook<K: Object + Serialize>(webhook: Webhook<K>) -> Served {
    let mut routes = Routes::default();
    webhook.add_to(&mut routes);
    serve(routes).await
}

impl Served {
    async fn send(&self, head: &str, body: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = format!(
            "{head}\r\nHost: test\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        // The server may close the connection before all of an oversized body was sent.
        let _ = stream.write_all(body).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), body.to_owned())
    }

    async fn post(&self, path: &str, body: &Value) -> (u16, String) {
        let head = format!("POST {path} HTTP/1.1\r\nContent-Type: application/json");
        self.send(&head, body.to_string().as_bytes()).await
    }

    async fn ask(&self, path: &str, request: Value) -> Value {
        let (status, body) = self.post(path, &review(request)).await;
        assert_eq!(status, 200, "{body}");
        let mut answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["kind"], "AdmissionReview");
        assert_eq!(answer["apiVersion"], "admission.k8s.io/v1");
        assert_eq!(answer["response"]["uid"], "1");
        answer["response"].take()
    }

    fn count(&self, line: &str) -> bool {
        self.metrics.text().lines().any(|found| found == line)
    }
}

fn review(mut request: Value) -> Value {
    let group = json!({ "group": "", "version": "v1" });
    for key in ["kind", "resource"] {
        request[key] = group.clone();
        request[key][key] = if key == "kind" { "ConfigMap" } else { "configmaps" }.into();
    }
    request["uid"] = "1".into();
    request["userInfo"] = json!({ "username": "somebody" });
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request })
}

fn map(data: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": data, "future": { "x": 1 } })
}

const MUTATE: &str = "/mutate--v1-configmap";
const VALIDATE: &str = "/validate--v1-configmap";

fn default(map: &mut ConfigMap, request: &AdmissionRequest) {
    assert!(request.object.is_none(), "the object comes as an argument");
    let data = map.data.get_or_insert_default();
    assert_ne!(data.get("panic").map(String::as_str), Some("yes"), "as asked");
    data.entry("size".to_owned()).or_insert_with(|| "1".to_owned());
}

fn patched(object: &Value, response: &Value) -> Value {
    use base64::Engine;
    assert_eq!(response["patchType"], "JSONPatch");
    let patch = response["patch"].as_str().unwrap();
    let patch = base64::engine::general_purpose::STANDARD.decode(patch).unwrap();
    let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
    let mut patched = object.clone();
    json_patch::patch(&mut patched, &patch).unwrap();
    patched
}

#[tokio::test]
async fn default_patch_keeps_fields_unknown_to_the_type() {
    let served = webhook(Webhook::<ConfigMap>::new().defaulter(default)).await;
    let object = map(json!({ "a": "b" }));
    let response = served
        .ask(MUTATE, json!({ "operation": "CREATE", "object": object.clone() }))
        .await;
    assert_eq!(response["allowed"], true);
    assert_eq!(patched(&object, &response), map(json!({ "a": "b", "size": "1" })));
    let count = "controller_runtime_webhook_requests_total{code=\"200\",webhook=\"/mutate--v1-configmap\"} 1";
    assert!(served.count(count), "{}", served.metrics.text());
}

#[tokio::test]
async fn unchanged_and_deleted_objects_need_no_patch() {
    let served = webhook(Webhook::<ConfigMap>::new().defaulter(default)).await;
    let full = map(json!({ "size": "3" }));
    for request in [
        json!({ "operation": "CREATE", "object": full.clone() }),
        json!({ "operation": "DELETE", "oldObject": map(json!({})), "object": null }),
    ] {
        let response = served.ask(MUTATE, request).await;
        assert_eq!(response, json!({ "uid": "1", "allowed": true }));
    }
}

#[tokio::test]
async fn defaulters_may_be_async_and_deny() {
    async fn later(mut map: ConfigMap, request: Arc<AdmissionRequest>) -> Result<ConfigMap, String> {
        tokio::task::yield_now().await;
        if request.dry_run {
            return Err("not now".to_owned());
        }
        map.immutable = Some(true);
        Ok(map)
    }
    let served = webhook(Webhook::<ConfigMap>::new().defaulter_async(later)).await;
    let object = map(json!({}));
    let response = served
        .ask(
            MUTATE,
            json!({ "operation": "UPDATE", "object": object.clone(), "oldObject": object.clone() }),
        )
        .await;
    assert_eq!(patched(&object, &response)["immutable"], true);
    let response = served
        .ask(
            MUTATE,
            json!({ "operation": "CREATE", "object": object, "dryRun": true }),
        )
        .await;
    assert_eq!(response["allowed"], false);
    assert_eq!(response["status"]["code"], 403);
    assert_eq!(response["status"]["message"], "not now");
}

#[tokio::test]
async fn review_without_its_object_is_denied() {
    let webhooks = Webhook::<ConfigMap>::new().validator(validate).defaulter(default);
    let served = webhook(webhooks).await;
    let stored = map(json!({}));
    for (path, request, field) in [
        (MUTATE, json!({ "operation": "CREATE", "object": null }), "object"),
        (MUTATE, json!({ "operation": "CREATE" }), "object"),
        (
            MUTATE,
            json!({ "operation": "UPDATE", "oldObject": stored.clone() }),
            "object",
        ),
        (
            VALIDATE,
            json!({ "operation": "CREATE", "object": null }),
            "object",
        ),
        (
            VALIDATE,
            json!({ "operation": "UPDATE", "oldObject": stored.clone() }),
            "object",
        ),
        (
            VALIDATE,
            json!({ "operation": "DELETE", "object": stored }),
            "oldObject",
        ),
    ] {
        let response = served.ask(path, request.clone()).await;
        assert_eq!(response["allowed"], false, "{path} {request}");
        assert_eq!(response["status"]["code"], 400, "{path} {request}");
        let message = response["status"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(&format!("no `{field}`")), "{message}");
    }
}

fn validate(
    new: &ConfigMap,
    old: Option<&ConfigMap>,
    request: &AdmissionRequest,
) -> Result<Warnings, Denied> {
    let text = |map: &ConfigMap| map.data.clone().unwrap_or_default().get("text").cloned();
    match text(new).as_deref() {
        Some("bad") => Err(Denied::invalid("data.text", "cannot be `bad`").and("data.size", "is missing")),
        Some("forbidden") => Err("nobody may do that".into()),
        Some("panic") => panic!("as asked"),
        _ if old.is_some_and(|old| text(old) != text(new)) => Ok(vec!["the text has changed".to_owned()]),
        _ if request.operation == kube::core::admission::Operation::Delete => {
            Ok(vec!["it will be missed".to_owned()])
        }
        _ => Ok(Warnings::new()),
    }
}

#[tokio::test]
async fn validator_allows_warns_and_denies() {
    let served = webhook(Webhook::<ConfigMap>::new().validator(validate)).await;
    let check = async |request: Value, expected: Value| {
        assert_eq!(served.ask(VALIDATE, request).await, expected);
    };
    let text = |text: &str| map(json!({ "text": text }));
    check(
        json!({ "operation": "CREATE", "object": text("good") }),
        json!({ "uid": "1", "allowed": true }),
    )
    .await;
    check(
        json!({ "operation": "UPDATE", "object": text("new"), "oldObject": text("old") }),
        json!({ "uid": "1", "allowed": true, "warnings": ["the text has changed"] }),
    )
    .await;
    check(
        json!({ "operation": "DELETE", "oldObject": text("old") }),
        json!({ "uid": "1", "allowed": true, "warnings": ["it will be missed"] }),
    )
    .await;
    check(
        json!({ "operation": "CONNECT", "object": { "kind": "PodExecOptions", "apiVersion": "v1" } }),
        json!({ "uid": "1", "allowed": true }),
    )
    .await;
    let refused = served
        .ask(VALIDATE, json!({ "operation": "CREATE", "object": text("bad") }))
        .await;
    assert_eq!(refused["allowed"], false);
    assert_eq!(
        (&refused["status"]["code"], &refused["status"]["reason"]),
        (&json!(422), &json!("Invalid"))
    );
    assert_eq!(
        refused["status"]["message"],
        "ConfigMap \"a\" is invalid: [data.text: cannot be `bad`, data.size: is missing]"
    );
    let details = &refused["status"]["details"];
    assert_eq!(
        (&details["kind"], &details["name"]),
        (&json!("ConfigMap"), &json!("a"))
    );
    let causes = &refused["status"]["details"]["causes"];
    assert_eq!(
        causes[1],
        json!({ "reason": "FieldValueInvalid", "field": "data.size", "message": "is missing" })
    );
    let refused = served
        .ask(
            VALIDATE,
            json!({ "operation": "CREATE", "object": text("forbidden") }),
        )
        .await;
    assert_eq!(
        (&refused["status"]["code"], &refused["status"]["reason"]),
        (&json!(403), &json!("Forbidden"))
    );
}

/// An API error with the original status, including all warnings.
#[tokio::test]
async fn denial_keeps_its_status_and_warnings() {
    async fn ask(
        _: Arc<ConfigMap>,
        _: Option<Arc<ConfigMap>>,
        request: Arc<AdmissionRequest>,
    ) -> Result<(), Denied> {
        if request.dry_run {
            return Err(Denied::invalid("data", "is odd").warning("data is going away"));
        }
        let mut status = kube::core::Status::failure("too many requests", "TooManyRequests");
        status.code = 429;
        Err(kube::Error::Api(Box::new(status)).into())
    }
    let served = webhook(Webhook::<ConfigMap>::new().validator_async(ask)).await;
    let request = |dry: bool| json!({ "operation": "CREATE", "object": map(json!({})), "dryRun": dry });
    let refused = served.ask(VALIDATE, request(false)).await;
    assert_eq!(refused["allowed"], false);
    assert_eq!(
        (&refused["status"]["code"], &refused["status"]["reason"]),
        (&json!(429), &json!("TooManyRequests"))
    );
    assert!(refused.get("warnings").is_none());
    let refused = served.ask(VALIDATE, request(true)).await;
    assert_eq!(refused["status"]["code"], 422);
    assert_eq!(refused["warnings"], json!(["data is going away"]));
}

#[tokio::test(start_paused = true)]
async fn missing_body_times_out_after_30_seconds() {
    let served = webhook(Webhook::<ConfigMap>::new().validator(validate)).await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let head = format!(
        "POST {VALIDATE} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: 100\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let started = tokio::time::Instant::now();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert_eq!(started.elapsed().as_secs(), 30);
}

/// Without an old object, this would look like a creation.
#[tokio::test]
async fn deletion_validator_receives_the_old_object() {
    fn validate(
        new: &ConfigMap,
        old: Option<&ConfigMap>,
        request: &AdmissionRequest,
    ) -> Result<Warnings, Denied> {
        assert_eq!(request.operation, Operation::Delete);
        let text = |map: &ConfigMap| map.data.clone().unwrap_or_default()["text"].clone();
        let old = old.map_or_else(|| "absent".to_owned(), text);
        Ok(vec![format!("{} {old}", text(new))])
    }
    let served = webhook(Webhook::<ConfigMap>::new().validator(validate)).await;
    let request =
        json!({ "operation": "DELETE", "oldObject": map(json!({ "text": "stored" })), "object": null });
    assert_eq!(
        served.ask(VALIDATE, request).await["warnings"],
        json!(["stored stored"])
    );
}

#[tokio::test]
async fn panic_returns_500_and_is_counted() {
    let served = webhook(Webhook::<ConfigMap>::new().validator(validate)).await;
    let request = json!({ "operation": "CREATE", "object": map(json!({ "text": "panic" })) });
    assert_eq!(served.post(VALIDATE, &review(request)).await.0, 500);
    let request = json!({ "operation": "CREATE", "object": map(json!({})) });
    assert_eq!(served.ask(VALIDATE, request).await["allowed"], true);
    assert!(served.count("controller_runtime_webhook_panics_total 1"));
    assert!(served.count("controller_runtime_conversion_webhook_panics_total 0"));
    let count =
        "controller_runtime_webhook_requests_total{code=\"500\",webhook=\"/validate--v1-configmap\"} 1";
    assert!(served.count(count), "{}", served.metrics.text());
}

#[tokio::test]
async fn requests_that_are_not_reviews_are_rejected() {
    let served = webhook(Webhook::<ConfigMap>::new().validator(validate)).await;
    let json = format!("POST {VALIDATE} HTTP/1.1\r\nContent-Type: application/json");
    let check = async |head: &str, body: &[u8], status: u16, said: &str| {
        let (found, body) = served.send(head, body).await;
        assert_eq!(found, status, "{body}");
        assert!(body.contains(said), "{body}");
    };
    check(&json, b"", 400, "request body is empty").await;
    check(&json, b"{", 400, "invalid JSON: ").await;
    check(
        &json,
        b"{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}",
        400,
        "expected an AdmissionReview",
    )
    .await;
    let other = review(json!({})).to_string().replace("k8s.io/v1", "k8s.io/v2");
    check(
        &json,
        other.as_bytes(),
        400,
        "expected an AdmissionReview of admission.k8s.io/v1",
    )
    .await;
    check(
        &json,
        review(json!({})).to_string().as_bytes(),
        400,
        "invalid `request` in the AdmissionReview",
    )
    .await;
    check(
        &format!("POST {VALIDATE} HTTP/1.1"),
        b"{}",
        400,
        "expected content type application/json",
    )
    .await;
    check(
        &format!("GET {VALIDATE} HTTP/1.1"),
        b"",
        405,
        "expected method POST",
    )
    .await;
    check(
        "POST /elsewhere HTTP/1.1\r\nContent-Type: application/json",
        b"{}",
        404,
        "not found",
    )
    .await;
    let large = vec![b' '; 7 * 1024 * 1024 + 1];
    check(&json, &large, 413, "larger than").await;
    let charset = format!("POST {VALIDATE} HTTP/1.1\r\nContent-Type: application/json; charset=utf-8");
    check(&charset, b"{}", 400, "expected an AdmissionReview").await;
}

#[tokio::test]
async fn v1beta1_reviews_are_answered_in_their_version() {
    let served = webhook(Webhook::<ConfigMap>::new().validator(validate)).await;
    let body = review(json!({ "operation": "CREATE", "object": map(json!({})) })).to_string();
    let body = body.replace("admission.k8s.io/v1", "admission.k8s.io/v1beta1");
    let (status, answer) = served.post(VALIDATE, &serde_json::from_str(&body).unwrap()).await;
    assert_eq!(status, 200);
    assert!(
        answer.contains("\"apiVersion\":\"admission.k8s.io/v1beta1\""),
        "{answer}"
    );
}

#[tokio::test]
async fn raw_webhooks_receive_the_whole_request() {
    let answer = |request: AdmissionRequest| async move {
        let named = request
            .object
            .as_ref()
            .is_some_and(|object| object.data["future"]["x"] == 1);
        if named {
            AdmissionResponse::from(&request)
        } else {
            AdmissionResponse::from(&request).deny("no future")
        }
    };
    let mut routes = Routes::default();
    add_raw_webhook("/anything".to_owned(), answer, &mut routes);
    let served = serve(routes).await;
    let response = served
        .ask(
            "/anything",
            json!({ "operation": "CREATE", "object": map(json!({})) }),
        )
        .await;
    assert_eq!(response["allowed"], true);
    let object = json!({ "metadata": { "name": "a" } });
    let response = served
        .ask("/anything", json!({ "operation": "CREATE", "object": object }))
        .await;
    assert_eq!(response["allowed"], false);
}

#[test]
fn invalid_paths_are_errors() {
    let check = |add: &dyn Fn(&mut Routes), expected: &str| {
        let mut routes = Routes::default();
        add(&mut routes);
        assert_eq!(routes.first_error(), Some(expected));
    };
    let validating = || Webhook::<ConfigMap>::new().validator(validate);
    check(
        &|routes| {
            validating().add_to(routes);
            validating().add_to(routes);
        },
        "two webhooks use the path `/validate--v1-configmap`; set another path for one of them",
    );
    check(
        &|routes| validating().validator_path("validate").add_to(routes),
        "invalid webhook path `validate`: expected a path that starts with `/` and is not `/convert`",
    );
}

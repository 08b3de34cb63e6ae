//! Sends requests to the server.

use std::time::Duration;

use http::Request;
use kube::Client;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::corpus::record::Answer;
use super::corpus::{GROUP, Kind, NAMESPACE, Write, bare, complete, complete_text, name_of};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Timeout until a kind is served.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) struct Server {
    client: Client,
}

struct Response {
    code: u16,
    warnings: Vec<String>,
    body: Value,
}

impl Server {
    pub(crate) fn new(client: Client) -> Server {
        Server { client }
    }

    pub(crate) async fn uninstall(&self, kind: &Kind) {
        let path = format!("{DEFINITIONS}/t{}s.{GROUP}", kind.number);
        self.send(Request::delete(path), String::new()).await;
    }

    /// Creates the CRD of a kind, and waits until the API server serves it. Returns the reason if
    /// the CRD is rejected.
    pub(crate) async fn install(&self, kind: &Kind) -> Result<(), String> {
        let crd = kind.crd();
        let path = format!("{DEFINITIONS}?fieldValidation=Strict");
        let response = self.send(Request::post(path), crd.to_string()).await;
        if response.code != 201 {
            return Err(response.body["message"].as_str().unwrap_or_default().to_owned());
        }
        let deadline = Instant::now() + PATIENCE;
        for version in ["v0", "v1"] {
            let path = collection(kind, version);
            while self.send(Request::get(&path), String::new()).await.code != 200 {
                assert!(Instant::now() < deadline, "{path} is not served");
                sleep(PAUSE).await;
            }
        }
        Ok(())
    }

    pub(crate) async fn answer(&self, kind: &Kind, write: &Write, index: usize) -> Answer {
        let name = name_of(index);
        let new = complete(&write.new, kind.number, &name, "v1");
        let path = collection(kind, "v1");
        let Some(old) = &write.old else {
            let fields = match write.how.as_str() {
                "strict" => "Strict",
                "ignored" => "Ignore",
                _ => "Warn",
            };
            let body = match new.as_str() {
                Some(text) if write.how == "body" => complete_text(text, kind.number, &name),
                _ => new.to_string(),
            };
            let request = Request::post(format!("{path}?dryRun=All&fieldValidation={fields}"));
            return answer_of(self.send(request, body).await, &name);
        };
        let stored = self.store(kind, old, &name).await;
        let (part, body) = match write.how.as_str() {
            "status" => ("/status", with_version(new, &stored)),
            "scale" => {
                let meta = serde_json::json!({ "name": name, "namespace": NAMESPACE });
                let scale = serde_json::json!({ "apiVersion": "autoscaling/v1", "kind": "Scale",
                    "metadata": meta, "spec": { "replicas": write.new } });
                ("/scale", scale)
            }
            _ => ("", with_version(new, &stored)),
        };
        let request = Request::put(format!("{path}/{name}{part}?dryRun=All"));
        let response = self.send(request, body.to_string()).await;
        answer_of(response, &name)
    }

    /// Stores an object, using the version that accepts everything.
    async fn store(&self, kind: &Kind, old: &Value, name: &str) -> Value {
        let path = collection(kind, "v0");
        let body = complete(old, kind.number, name, "v0").to_string();
        let response = self.send(Request::post(&path), body).await;
        assert_eq!(response.code, 201, "{}", response.body);
        response.body
    }

    /// Sends a request, retrying until the kind is served. When a CRD changes, the server replaces
    /// the handlers of its kind, and meanwhile responds with 503 "apiserver is shutting down".
    async fn send(&self, request: http::request::Builder, body: String) -> Response {
        let request = request.header("content-type", "application/json");
        let request = request.body(body).expect("a request");
        let deadline = Instant::now() + PATIENCE;
        loop {
            let response = self.send_once(request.clone()).await;
            if response.code != 503 || Instant::now() > deadline {
                return response;
            }
            sleep(PAUSE).await;
        }
    }

    async fn send_once(&self, request: Request<String>) -> Response {
        let request = request.map(|body| body.into_bytes().into());
        let response = self.client.send(request).await.expect("an answer");
        let code = response.status().as_u16();
        let warnings = response.headers().get_all("warning").iter();
        let warnings = warnings
            .map(|warning| String::from_utf8_lossy(warning.as_bytes()).into_owned())
            .map(|warning| warning.strip_prefix("299 - \"").unwrap_or(&warning).to_owned())
            .map(|warning| unescape(warning.strip_suffix('"').unwrap_or(&warning)))
            .collect();
        let body = response.into_body().collect_bytes().await.expect("a body");
        let body = serde_json::from_slice(&body).unwrap_or_default();
        Response { code, warnings, body }
    }
}

/// Quoted strings in a header contain backslashes.
fn unescape(text: &str) -> String {
    let mut characters = text.chars();
    let mut plain = String::new();
    while let Some(character) = characters.next() {
        let escaped = if character == '\\' {
            characters.next()
        } else {
            None
        };
        plain.push(escaped.unwrap_or(character));
    }
    plain
}

fn collection(kind: &Kind, version: &str) -> String {
    match kind.cluster {
        true => format!("/apis/{GROUP}/{version}/t{}s", kind.number),
        false => format!("/apis/{GROUP}/{version}/namespaces/{NAMESPACE}/t{}s", kind.number),
    }
}

fn with_version(mut new: Value, stored: &Value) -> Value {
    if let Some(Value::Object(metadata)) = new.get_mut("metadata") {
        metadata.insert(
            "resourceVersion".to_owned(),
            stored["metadata"]["resourceVersion"].clone(),
        );
    }
    new
}

fn answer_of(response: Response, name: &str) -> Answer {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut answer = Answer {
        code: response.code,
        warnings: response.warnings,
        ..Answer::default()
    };
    answer.warnings.sort();
    if response.body["kind"] == "Scale" {
        answer.object = response.body["spec"].clone();
        return answer;
    }
    if response.body["kind"] != "Status" {
        answer.object = bare(&response.body, name);
        return answer;
    }
    let causes = response.body["details"]["causes"].as_array();
    let causes = causes.into_iter().flatten();
    answer.causes = causes
        .map(|cause| {
            (
                text(&cause["reason"]),
                text(&cause["field"]),
                text(&cause["message"]),
            )
        })
        .collect();
    let message = text(&response.body["message"]);
    match answer.causes.is_empty() {
        true => answer.message = message,
        false => check_message(&message, &answer.causes),
    }
    answer.causes.sort();
    answer
}

/// Asserts that the message consists of the causes, in the same order and without duplicates.
fn check_message(message: &str, causes: &[(String, String, String)]) {
    let mut texts: Vec<String> = Vec::new();
    for (_, field, message) in causes {
        let text = format!("{field}: {message}");
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    let texts = match &texts[..] {
        [text] => text.clone(),
        texts => format!("[{}]", texts.join(", ")),
    };
    assert!(
        message.ends_with(&format!(" is invalid: {texts}")),
        "{message}\n{texts}"
    );
}

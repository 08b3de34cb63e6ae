//! Sends requests to the server and interprets the responses.

use http::Request;
use kube::Client;
use rbuilder::envtest::Environment;
use serde_json::{Value, json};

use super::corpus;

/// Maximum length of a recorded reason.
const REASON: usize = 160;

pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The server, and the resources that it serves (apart from those of the cases).
pub(crate) struct Server {
    client: Client,
    /// Resources and subresources by group.
    pub(crate) resources: Vec<Served>,
}

/// A resource or subresource in one of its versions.
pub(crate) struct Served {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) name: String,
    pub(crate) verbs: Vec<String>,
    pub(crate) namespaced: bool,
}

pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Value,
}

impl Server {
    /// Installs the kind of the base project, and then discovers all resources.
    pub(crate) async fn new(env: &Environment) -> Server {
        let mut server = Server {
            client: env.client(),
            resources: Vec::new(),
        };
        let base = corpus::base_definition();
        let verdict = super::definitions::install(&server, &base).await;
        assert_eq!(verdict, None, "the base project's kind");
        server.resources = server.discover().await;
        server
    }

    async fn discover(&self) -> Vec<Served> {
        let mut resources = Vec::new();
        let groups = self.get("/apis").await.body;
        let versions = groups["groups"].as_array().into_iter().flatten();
        let versions = versions.flat_map(|group| group["versions"].as_array().cloned().unwrap_or_default());
        let paths =
            versions.filter_map(|version| Some(format!("/apis/{}", version["groupVersion"].as_str()?)));
        for path in paths.chain(["/api/v1".to_owned()]) {
            let list = self.get(&path).await.body;
            let (group, version) = match path.strip_prefix("/apis/").and_then(|path| path.split_once('/')) {
                Some((group, version)) => (group, version),
                None => ("", "v1"),
            };
            for resource in list["resources"].as_array().into_iter().flatten() {
                let verbs = resource["verbs"].as_array().into_iter().flatten();
                resources.push(Served {
                    group: group.to_owned(),
                    version: version.to_owned(),
                    name: resource["name"].as_str().unwrap_or_default().to_owned(),
                    verbs: verbs.filter_map(Value::as_str).map(str::to_owned).collect(),
                    namespaced: resource["namespaced"] == json!(true),
                });
            }
        }
        resources
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path), Vec::new()).await
    }

    /// kubectl requests lists as tables.
    pub(crate) async fn table(&self, path: &str) -> Answer {
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        self.send(Request::get(path).header("accept", accept), Vec::new())
            .await
    }

    /// Creates an object like `kubectl apply` does. The server rejects unknown fields.
    pub(crate) async fn create(&self, path: &str, object: &Value, dry_run: bool) -> Answer {
        let dry_run = if dry_run { "&dryRun=All" } else { "" };
        let request = Request::post(format!("{path}?fieldValidation=Strict{dry_run}"))
            .header("content-type", "application/json");
        self.send(request, serde_json::to_vec(object).expect("JSON"))
            .await
    }

    pub(crate) async fn delete(&self, path: &str) {
        self.send(Request::delete(path), Vec::new()).await;
    }

    async fn send(&self, request: http::request::Builder, body: Vec<u8>) -> Answer {
        let request = request.body(body.into()).expect("a request");
        let response = self.client.send(request).await.expect("an answer");
        let code = response.status().as_u16();
        let warnings = response.headers().get_all("warning").iter();
        let warnings = warnings
            .filter_map(|warning| warning.to_str().ok())
            .map(|warning| warning.strip_prefix("299 - \"").unwrap_or(warning))
            .map(|warning| warning.strip_suffix('"').unwrap_or(warning).replace("\\\"", "\""))
            .collect();
        let body = response.into_body().collect_bytes().await.expect("a body");
        let body = serde_json::from_slice(&body)
            .unwrap_or_else(|_| json!({ "message": String::from_utf8_lossy(&body) }));
        Answer { code, warnings, body }
    }
}

impl Answer {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// Returns why the request was rejected. For several fields, this is the message for the
    /// alphabetically first one.
    pub(crate) fn reason(&self) -> String {
        let causes = self.body["details"]["causes"].as_array();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let causes = causes.into_iter().flatten();
        let mut places: Vec<String> = causes
            .map(|cause| format!("{}: {}", text(&cause["field"]), text(&cause["message"])))
            .collect();
        places.sort();
        let reason = match places.into_iter().next() {
            Some(place) => place,
            None => text(&self.body["message"]),
        };
        short(&reason)
    }

    /// Returns the alphabetically first warning.
    pub(crate) fn warning(&self) -> Option<String> {
        self.warnings.iter().min().map(|warning| short(warning))
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(REASON) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

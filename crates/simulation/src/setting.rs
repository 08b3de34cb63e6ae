//! Turns the builder's configuration into the setting shared by all runs: the server, and the
//! declarations with their variants.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use futures::FutureExt;
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::client::Body;
use rbuilder_kubernetes::gvk;
use rbuilder_testing::fake::{ApiServer, ResponseBody, WebhookHandler, Webhooks};
use serde_json::Value;

use crate::answers::read_message;
use crate::declaration::{Declaration, changes_between};

use crate::operator::{ProcessSettings, Program};
use crate::run::Setting;
use crate::world::{GIVEN, ObjectName};

#[track_caller]
pub(crate) fn declarations(
    server: &ApiServer,
    objects: Vec<Value>,
    alternatives: Vec<Value>,
    random: &[Value],
) -> Vec<Declaration> {
    let objects = objects.into_iter();
    let mut declarations: Vec<Declaration> = objects.map(|object| declaration(server, object)).collect();
    for object in alternatives {
        let other = declaration(server, object);
        let mut known = declarations.iter_mut();
        match known.find(|known| known.name == other.name) {
            Some(known) => known
                .alternatives
                .push(changes_between(&known.object, &other.object)),
            None => panic!(
                "{} is another form of nothing: add `.declare(&object)`",
                other.name
            ),
        }
    }
    for object in random {
        add_random(&mut declarations, object);
    }
    declarations
}

#[track_caller]
fn add_random(declarations: &mut [Declaration], object: &Value) {
    let is_same = |known: &&mut Declaration| {
        let mut names = ["apiVersion", "kind"].into_iter();
        names.all(|name| known.object[name] == object[name])
    };
    let mut count = 0;
    for known in declarations.iter_mut().filter(is_same) {
        known.add_random(object);
        count += 1;
    }
    let kind = object["kind"].as_str().unwrap_or_default();
    assert!(
        count > 0,
        "values of {kind}, but none is declared: add `.declare(&object)`"
    );
}

#[track_caller]
fn declaration(server: &ApiServer, mut object: Value) -> Declaration {
    let text = |pointer: &str| {
        let found = object.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let (api_version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
    assert!(!name.is_empty(), "a declared object needs `metadata.name`");
    let (group, version) = gvk::split(&api_version);
    let Some((plural, is_namespaced)) = server.resource_of(group, &kind) else {
        panic!("the server does not know {kind} of {api_version}: add its CRD with `.install(\"config\")`");
    };
    // Same default as kubectl.
    let namespace = match (is_namespaced, text("/metadata/namespace")) {
        (false, _) => String::new(),
        (true, namespace) if namespace.is_empty() => "default".to_owned(),
        (true, namespace) => namespace,
    };
    if is_namespaced {
        object["metadata"]["namespace"] = namespace.clone().into();
    }
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    let name = ObjectName {
        group: group.to_owned(),
        plural,
        version: version.to_owned(),
        namespace,
        name,
    };
    let schema = server.schema_of(&name.group, &name.plural, &name.version);
    Declaration {
        object,
        name,
        alternatives: Vec::new(),
        random: Vec::new(),
        schema: schema.unwrap_or_default(),
    }
}

pub(crate) fn with_namespaces(server: ApiServer, declarations: &[Declaration]) -> ApiServer {
    let is_declared = |namespace: &str| {
        let mut names = declarations.iter().map(|declaration| &declaration.name);
        names.any(|name| name.plural == "namespaces" && name.name == namespace)
    };
    let names = declarations.iter().map(|declaration| &declaration.name);
    let namespaces: BTreeSet<&str> = names.map(|name| name.namespace.as_str()).collect();
    let missing = namespaces
        .into_iter()
        .filter(|namespace| !matches!(*namespace, "" | "default") && !is_declared(namespace));
    missing.fold(server, |server, name| {
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.to_owned());
        namespace.metadata.annotations = Some(BTreeMap::from([(GIVEN.to_owned(), String::new())]));
        server.object(&namespace)
    })
}

/// Extracts the webhooks of an operator without running it.
struct Taken(Option<WebhookHandler>);

impl Webhooks for Taken {
    fn take_webhooks(&mut self) -> WebhookHandler {
        self.0.take().expect("webhooks are installed once")
    }
}

/// Installs webhook configurations and the conversion webhooks registered by the operator. Returns
/// whether there are any. They only work while an operator process is running.
#[track_caller]
pub(crate) fn install_webhooks(server: &ApiServer, program: &Program, configurations: Option<&Path>) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime without drivers needs nothing from the system");
    let handler = {
        // Creating a client spawns tasks, which requires a runtime.
        let _entered = runtime.enter();
        program(server.client(), &ProcessSettings::default()).webhooks
    };
    // Dropping a runtime within another one panics, and the test may be running in one.
    runtime.shutdown_background();
    let Some(handler) = handler else {
        return false;
    };
    let converts = handler.converts();
    let mut operator = Taken(Some(handler));
    match configurations {
        Some(path) => {
            if let Err(error) = server.install_webhooks(path, &mut operator) {
                panic!("cannot install the webhooks: {error}");
            }
        }
        None if converts => server.install_conversions(&mut operator),
        None => return false,
    }
    server.serve_webhooks(None);
    true
}

/// Returns the response if it's available immediately, i.e. without waiting for a webhook.
fn respond(
    server: &ApiServer,
    request: http::Request<Body>,
    by_admin: bool,
) -> Option<http::Response<ResponseBody>> {
    server.call(request, by_admin).now_or_never()?.ok()
}

pub(crate) fn may_elect(server: &ApiServer) -> bool {
    let review = serde_json::json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": { "resourceAttributes": {
            "group": "coordination.k8s.io", "resource": "leases", "verb": "create", "namespace": "default",
        } },
    });
    let request = http::Request::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(Body::from(review.to_string().into_bytes()));
    let request = request.expect("the path is a URI");
    // Use a copy to keep this review out of the recorded requests.
    let Some(response) = respond(&server.copy(), request, false) else {
        return false;
    };
    let Some(Ok(body)) = response.into_body().collect().now_or_never() else {
        return false;
    };
    let review: Value = serde_json::from_slice(&body.to_bytes()).unwrap_or_default();
    review["status"]["allowed"] == true
}

impl Setting {
    /// Returns why the server refuses a variation of a declaration, if it does.
    pub(crate) fn refusal(&self, number: usize, changes: &BTreeMap<String, Value>) -> Option<String> {
        // No process is running yet to serve webhooks.
        if self.has_webhooks {
            return None;
        }
        let declaration = &self.declarations[number];
        let request = declaration.apply(&declaration.with(changes), "&dryRun=All");
        let request = request.map(|body| Body::from(body.into_bytes()));
        let Some(response) = respond(&self.server, request, true) else {
            return Some("no response".to_owned());
        };
        if response.status().is_success() {
            return None;
        }
        let (_, message) = read_message(response).now_or_never()?;
        Some(message)
    }
}

//! The server: the handle that tests hold, and the service behind its clients.

use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use http::{HeaderMap, Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::client::Body;
use kube::{Client, Resource};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::BoxError;

use super::builtin;
use super::collect::Collector;
use super::fault::{self, Effect, Fault};
use super::kinds::{Definition, ResourceId};
use super::request::{Request, Verb};
use super::routes::{Answer, Headers, answer_request};
use super::store::State;
use crate::manifests::read_documents;

/// The body of responses.
type ResponseBody = UnsyncBoxBody<Bytes, Infallible>;

/// An API server inside the test process. Clones share it. See [the module](super).
#[derive(Clone, Debug)]
pub struct ApiServer {
    shared: Arc<Shared>,
}

/// State shared by handles and clients.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// Counter that changes whenever watches have to look for changes.
    pub(super) changed: watch::Sender<u64>,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wake(&self) {
        self.changed.send_modify(|count| *count += 1);
    }
}

impl Default for ApiServer {
    fn default() -> Self {
        Self::new()
    }
}

impl ApiServer {
    /// Creates a server with Kubernetes' own kinds and the namespaces `default`, `kube-node-lease`, `kube-public` and
    /// `kube-system`.
    #[must_use]
    pub fn new() -> Self {
        let shared = Shared {
            state: Mutex::new(State::new(builtin::builtin_definitions())),
            changed: watch::Sender::new(0),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Serves the kind of a CRD, such as `Memcached::crd()`.
    ///
    /// # Panics
    /// When its name is not `<plural>.<group>`.
    #[must_use]
    pub fn crd(self, crd: CustomResourceDefinition) -> Self {
        let name = crd.metadata.name.clone().unwrap_or_default();
        if let Err(why) = self.install(&serde_json::to_value(crd).unwrap_or_default()) {
            panic!("cannot serve the kind of the CRD {name}: {why}");
        }
        self
    }

    /// Serves the kinds of the CRDs in a file, or in the `.yaml`, `.yml` and `.json` files of a folder. Documents of
    /// other kinds are ignored.
    ///
    /// # Errors
    /// When the path cannot be read or contains no CRD, or when a document is not YAML or not a valid CRD.
    pub fn install_crds(&self, path: impl AsRef<Path>) -> std::io::Result<()> {
        let path = path.as_ref();
        let mut found = false;
        for (file, document) in read_documents(path)? {
            if document["kind"] == "CustomResourceDefinition" {
                let refused =
                    |why| std::io::Error::other(format!("cannot install {}: {why}", file.display()));
                self.install(&document).map_err(refused)?;
                found = true;
            }
        }
        if found {
            return Ok(());
        }
        let path = path.display();
        Err(std::io::Error::other(format!(
            "no CRD in {path}: run `rbuilder manifests` to generate the project's"
        )))
    }

    fn install(&self, crd: &Value) -> Result<(), String> {
        let mut crd = crd.clone();
        crd["apiVersion"] = "apiextensions.k8s.io/v1".into();
        crd["kind"] = "CustomResourceDefinition".into();
        let name = crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let mut request = internal_request(Verb::Patch, &ResourceId::crds(), None, Some(&name));
        request
            .parameters
            .insert("fieldManager".to_owned(), "rbuilder-fake".to_owned());
        request.parameters.insert("force".to_owned(), "true".to_owned());
        request.body = crd;
        let headers = Headers {
            content_type: "application/apply-patch+yaml".to_owned(),
            ..Headers::default()
        };
        let installed = answer_request(&self.shared, &mut self.shared.state(), &request, &headers);
        self.shared.wake();
        match installed {
            Ok(_) => Ok(()),
            Err(failure) => Err(failure.to_json()["message"]
                .as_str()
                .unwrap_or_default()
                .to_owned()),
        }
    }

    /// Serves the kind of a Rust type for which no CRD is available, such as another operator's. Its objects are neither
    /// validated nor defaulted, and it has the status subresource.
    #[must_use]
    pub fn kind<K: Resource<DynamicType = (), Scope: 'static>>(self) -> Self {
        self.shared.state().serve(Definition::of_type::<K>());
        self
    }

    /// Stores an object as it is, including its status. It gets a uid and a creation timestamp if it has none, and
    /// replaces an object with the same name.
    ///
    /// # Panics
    /// When its kind is not served, or it has no name.
    #[must_use]
    pub fn object<K: Resource<DynamicType = ()> + Serialize>(self, object: &K) -> Self {
        let mut value = serde_json::to_value(object).unwrap_or_default();
        value["apiVersion"] = K::api_version(&()).into();
        value["kind"] = K::kind(&()).into();
        {
            let mut state = self.shared.state();
            let id = ResourceId::new(K::group(&()), K::plural(&()));
            assert!(
                state.kind(&id).is_some(),
                "the server does not know {id}: add it with `.crd(…)` or `.kind(…)`"
            );
            let metadata = object.meta();
            let Some(name) = metadata.name.clone() else {
                panic!("an object to be stored needs a name");
            };
            let namespace = metadata.namespace.clone().unwrap_or_default();
            if metadata.uid.is_none() {
                value["metadata"]["uid"] = state.uid().into();
            }
            if metadata.creation_timestamp.is_none() {
                value["metadata"]["creationTimestamp"] = state.now().into();
            }
            state.put(&id, (namespace, name), value);
        }
        self.shared.wake();
        self
    }

    /// Runs a garbage collector: objects whose owners are all gone are deleted, propagation policies are honoured, and
    /// terminating namespaces are emptied and removed.
    ///
    /// It works in the steps of the collector of a cluster, one object at a time, each 10 ms after the one before by tokio's
    /// clock. So an operator may act in between, and a test has to wait for the result, as on a real server.
    #[must_use]
    pub fn collecting_garbage(self) -> Self {
        self.shared.state().collector = Some(Collector::default());
        self
    }

    /// Returns a new client with the default namespace `default` and all permissions.
    ///
    /// # Panics
    /// Outside a tokio runtime, to which a client belongs.
    #[must_use]
    pub fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let server = server.clone();
            async move { server.respond(request).await }
        });
        Client::new(service, "default")
    }

    /// Creates a namespace with a generated name, `<prefix>-<suffix>`, and returns the name.
    ///
    /// # Panics
    /// When the prefix is not a valid beginning of a namespace's name.
    #[must_use]
    pub fn namespace(&self, prefix: &str) -> String {
        let mut request = internal_request(Verb::Create, &ResourceId::namespaces(), None, None);
        request.body = json!({ "metadata": { "generateName": format!("{prefix}-") } });
        let made = answer_request(
            &self.shared,
            &mut self.shared.state(),
            &request,
            &Headers::default(),
        );
        self.shared.wake();
        match made {
            Ok(Answer::Object(_, namespace)) => namespace["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            Ok(_) => unreachable!("a create is answered with an object"),
            Err(failure) => panic!(
                "cannot create namespace `{prefix}-…`: {}",
                failure.to_json()["message"]
            ),
        }
    }

    /// Makes requests fail or wait.
    ///
    /// The first matching error or disconnect affects a request, and so does the first matching delay.
    pub fn inject(&self, fault: Fault) {
        self.shared.state().faults.push(fault);
    }

    /// Removes all faults.
    pub fn heal(&self) {
        self.shared.state().faults.clear();
    }

    /// Closes all watches, as a restart of the server does. Clients resume at their resource version.
    pub fn drop_watches(&self) {
        self.shared.state().epoch += 1;
        self.shared.wake();
    }

    /// Closes all watches and compacts the history: clients that resume get `410 Expired` and have to list again.
    pub fn expire_watches(&self) {
        {
            let mut state = self.shared.state();
            state.compact();
            state.epoch += 1;
        }
        self.shared.wake();
    }

    /// Returns the requests so far, in the order of their arrival. Discovery is not among them, access reviews are.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.state().requests.all()
    }

    /// Clears the list of requests.
    pub fn forget_requests(&self) {
        self.shared.state().requests.forget();
    }

    async fn respond(&self, request: http::Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        let (parts, body) = request.into_parts();
        let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
        let headers = read_headers(&parts.headers);
        let Some(mut request) = Request::read(&parts.method, path, query) else {
            return Ok(self.document(path, &headers.accept));
        };
        let bytes = body.collect_bytes().await?;
        request.body = parse_body(&bytes, &headers.content_type);
        let number = self.shared.state().requests.note(request.clone());
        let response = self.handle(&request, &headers).await;
        let code = response.as_ref().map_or(0, |response| response.status().as_u16());
        self.shared.state().requests.answered(number, code);
        response
    }

    async fn handle(&self, request: &Request, headers: &Headers) -> Result<Response<ResponseBody>, BoxError> {
        let (delay, effect) = fault::strike_request(&mut self.shared.state().faults, request);
        if delay > Duration::ZERO {
            tokio::time::sleep(delay).await;
        }
        match effect {
            Some(Effect::Refuse(failure)) => return Ok(json_response(failure.code, &failure.to_json())),
            Some(Effect::Disconnect) => return Err("the test asked for a broken connection".into()),
            Some(Effect::Delay(_)) | None => {}
        }
        let answered = {
            let mut state = self.shared.state();
            state.run_collector();
            let answered = answer_request(&self.shared, &mut state, request, headers);
            state.plan_collection();
            answered
        };
        self.shared.wake();
        Ok(match answered {
            Ok(Answer::Object(code, object)) => json_response(code, &object),
            Ok(Answer::NoSuchPath) => no_such_path(),
            Ok(Answer::Lines(watch)) => {
                let frames = watch.lines().map(|line| Ok(Frame::data(line)));
                response(200, StreamBody::new(frames).boxed_unsync())
            }
            Err(failure) => json_response(failure.code, &failure.to_json()),
        })
    }

    fn document(&self, path: &str, accept: &str) -> Response<ResponseBody> {
        if matches!(path, "/healthz" | "/livez" | "/readyz") {
            return response(200, Full::from("ok").boxed_unsync());
        }
        match self.shared.state().document(path, accept) {
            Some(document) => json_response(200, &document),
            None => no_such_path(),
        }
    }
}

/// Creates a request that the server sends to itself.
fn internal_request(verb: Verb, id: &ResourceId, namespace: Option<&str>, name: Option<&str>) -> Request {
    Request {
        verb,
        group: id.group.clone(),
        version: "v1".to_owned(),
        resource: id.plural.clone(),
        subresource: None,
        namespace: namespace.map(str::to_owned),
        name: name.map(str::to_owned),
        parameters: std::collections::BTreeMap::new(),
        body: Value::Null,
        code: 0,
    }
}

fn read_headers(headers: &HeaderMap) -> Headers {
    let read = |name| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    Headers {
        accept: read(header::ACCEPT),
        content_type: read(header::CONTENT_TYPE),
        user_agent: read(header::USER_AGENT),
    }
}

/// Parses a body; `null` when it is empty or malformed, which is refused where a body is needed.
fn parse_body(bytes: &[u8], content_type: &str) -> Value {
    if let Ok(value) = serde_json::from_slice(bytes) {
        return value;
    }
    let text = std::str::from_utf8(bytes)
        .ok()
        .filter(|_| content_type.contains("yaml"));
    text.and_then(|text| serde_saphyr::from_str(text).ok())
        .unwrap_or_default()
}

fn response(code: u16, body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() =
        http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    response
}

fn json_response(code: u16, object: &Value) -> Response<ResponseBody> {
    let mut response = response(code, Full::from(object.to_string()).boxed_unsync());
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

fn no_such_path() -> Response<ResponseBody> {
    response(404, Full::from("404 page not found\n").boxed_unsync())
}

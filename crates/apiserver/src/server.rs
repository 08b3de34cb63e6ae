//! The handle of a server, and its HTTP service.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use http::{HeaderMap, Response, header};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Body, Bytes, Frame};
use rbuilder_catalogue::Minor;
use rbuilder_judge::MOST_BYTES;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use super::collect::Collector;
use super::failure::Failure;
use super::fault::{self, Effect, Fault};
use super::http_messages::{
    BoxError, ResponseBody, json_response, no_such_path, parse_body, read_headers, response, text_response,
};
use super::identity::User;
use super::kinds::{Definition, KindNames, ResourceId, Version, string_at};
use super::request::{Request, Verb};
use super::roles::{Permission, Roles};
use super::routes::{Answer, Headers, answer_request};
use super::store::{State, Taken};
use super::warnings::Warnings;
use super::webhooks::{Reviews, WebhookHandler};

/// The error of a request that a test disconnects.
const DISCONNECTED: &str = "the test asked for a broken connection";

/// client-go ignores an aggregated list without the parameters.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const AGGREGATED_KIND: &str = "APIGroupDiscoveryList";

/// An API server in this process. Clones share the same server. See [the crate](crate).
#[derive(Clone, Debug)]
pub struct ApiServer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// Signals watches to check for changes. The number itself is meaningless.
    pub(super) changed: watch::Sender<u64>,
    /// Wakes watches in the order in which they started waiting. `changed` alone would wake them in
    /// random order, and simulations must be reproducible.
    woken: Notify,
}

impl Shared {
    pub(super) fn new(state: State) -> Self {
        Self {
            state: Mutex::new(state),
            changed: watch::Sender::new(0),
            woken: Notify::new(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wake(&self) {
        self.changed.send_modify(|count| *count += 1);
        self.woken.notify_waiters();
    }

    pub(super) async fn changed_since(&self, seen: &watch::Receiver<u64>) {
        loop {
            // Subscribe before checking, or a change in between would be missed.
            let woken = self.woken.notified();
            // `Err` would mean that the sender was dropped, but `self` owns it.
            if seen.has_changed().unwrap_or(true) {
                return;
            }
            woken.await;
        }
    }
}

impl Default for ApiServer {
    fn default() -> Self {
        Self::new()
    }
}

/// A test whose operator lacks a permission usually fails while waiting for something else, long
/// before it reaches [`ApiServer::assert_role_fits`]. So print missing permissions here.
impl Drop for ApiServer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.report_missing_permissions();
        }
    }
}

impl ApiServer {
    /// Creates a server with the built-in kinds of the newest Kubernetes minor, and with the
    /// namespaces `default`, `kube-node-lease`, `kube-public` and `kube-system`.
    #[must_use]
    pub fn new() -> Self {
        Self::of_minor(Minor::LATEST)
    }

    /// Like [`new`](Self::new), with the built-in types of another Kubernetes minor.
    #[must_use]
    pub fn of_minor(minor: Minor) -> Self {
        Self::with_shared(Shared::new(State::new(minor)))
    }

    pub(super) fn with_shared(shared: Shared) -> Self {
        Self {
            shared: Arc::new(shared),
        }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Creates or replaces a webhook configuration, and calls its webhooks through the
    /// [handler](Self::convert_with). As with `envtest`, webhooks that are restricted to the
    /// manager's namespace are called for all namespaces.
    ///
    /// # Errors
    ///
    /// Returns the server's message if it rejects the configuration.
    pub fn install_webhook_configuration(&self, mut configuration: Value) -> Result<(), String> {
        let plural = match configuration["kind"].as_str() {
            Some("MutatingWebhookConfiguration") => "mutatingwebhookconfigurations",
            Some("ValidatingWebhookConfiguration") => "validatingwebhookconfigurations",
            _ => return Err("expected a webhook configuration".to_owned()),
        };
        remove_restrictions(&mut configuration);
        let id = ResourceId::new("admissionregistration.k8s.io", plural);
        self.apply(&id, configuration)
    }

    /// Calls an operator's webhooks through a function, including those that convert objects.
    ///
    /// CRDs of kinds that the operator converts are set to the conversion strategy `Webhook`, as
    /// kustomize's patches do in a cluster. This includes CRDs installed later. Objects are stored
    /// in the storage version, and converted whenever they are read or written in another version.
    ///
    /// # Errors
    ///
    /// Returns a message if a CRD can't be changed.
    pub fn convert_with(&self, handler: WebhookHandler) -> Result<(), String> {
        let crds = handler.converted_crds().to_vec();
        // Set the handler before `install` below asks it which CRDs to change.
        self.shared.state().webhooks = Some(handler);
        for name in crds {
            let key = (String::new(), name);
            let stored = self.shared.state().get(&ResourceId::crds(), &key).cloned();
            let Some(stored) = stored else { continue };
            // Omit the status and server-set metadata from the apply.
            let metadata = &stored["metadata"];
            let crd = json!({
                "metadata": {
                    "name": metadata["name"], "labels": metadata["labels"], "annotations": metadata["annotations"],
                },
                "spec": stored["spec"],
            });
            let refused = |why| format!("cannot set the conversion of the CRD {}: {why}", key.1);
            self.install_crd(&crd).map_err(refused)?;
        }
        Ok(())
    }

    /// Creates or replaces a CRD, whose kind is served from now on.
    ///
    /// # Errors
    ///
    /// Returns the server's message if it rejects the CRD.
    pub fn install_crd(&self, crd: &Value) -> Result<(), String> {
        let mut crd = crd.clone();
        if let Some(handler) = &self.shared.state().webhooks {
            handler.set_conversion(&mut crd);
        }
        crd["apiVersion"] = "apiextensions.k8s.io/v1".into();
        crd["kind"] = "CustomResourceDefinition".into();
        self.apply(&ResourceId::crds(), crd)
    }

    fn apply(&self, id: &ResourceId, object: Value) -> Result<(), String> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let mut request = internal_request(Verb::Patch, id, None, Some(&name));
        request
            .parameters
            .insert("fieldManager".to_owned(), "rbuilder-fake".to_owned());
        request.parameters.insert("force".to_owned(), "true".to_owned());
        request.body = object;
        let headers = Headers {
            content_type: "application/apply-patch+yaml".to_owned(),
            ..Headers::default()
        };
        let installed = answer_internal(&self.shared, &request, &headers);
        self.shared.wake();
        match installed {
            Ok(_) => Ok(()),
            Err(failure) => Err(failure.to_json()["message"]
                .as_str()
                .unwrap_or_default()
                .to_owned()),
        }
    }

    /// Serves a kind without a CRD, e.g. another operator's. Objects are neither validated nor
    /// defaulted. The kind has a status subresource.
    pub fn serve_kind(&self, names: &KindNames) {
        self.shared.state().serve(Definition::without_schema(names));
    }

    /// Stores an object of a kind, given its group and plural name, including the status. Replaces
    /// an existing object with the same name. A uid and a creation timestamp are added if missing.
    ///
    /// The object isn't validated, as if it predated the schema. Like any object read by the
    /// server, it is pruned and defaulted.
    ///
    /// # Errors
    ///
    /// Returns a phrase if the kind isn't served or the object has no name.
    pub fn store_object(&self, group: &str, plural: &str, mut object: Value) -> Result<(), String> {
        {
            let mut state = self.shared.state();
            let id = ResourceId::new(group, plural);
            let Some(definition) = state.kind(&id).cloned() else {
                return Err(format!("the server does not know {id}"));
            };
            let name = string_at(&object, "/metadata/name").to_owned();
            if name.is_empty() {
                return Err("an object to be stored needs a name".to_owned());
            }
            let namespace = string_at(&object, "/metadata/namespace").to_owned();
            if object["metadata"]["uid"].is_null() {
                object["metadata"]["uid"] = state.uid().into();
            }
            if object["metadata"]["creationTimestamp"].is_null() {
                object["metadata"]["creationTimestamp"] = state.now().into();
            }
            // `put` doesn't decode, so store the object the way the server would read it.
            let version = definition.version_of(string_at(&object, "/apiVersion"));
            if let Some(judge) = version.filter(|version| version.served).and_then(Version::judge) {
                object = judge.read(&object);
            }
            state.put(&id, (namespace, name), object);
        }
        self.shared.wake();
        Ok(())
    }

    /// Runs a garbage collector that deletes objects whose owners are all gone, respects
    /// propagation policies, and empties and removes terminating namespaces. Also ends the
    /// protection of claims that no Pod mounts, and removes terminating Pods, as their kubelet
    /// would.
    ///
    /// It proceeds like the collector in a cluster: one object at a time, with 10 ms on tokio's
    /// clock between steps. The operator can therefore act between steps, and tests must wait for
    /// the result, as on a real server.
    pub fn collect_garbage(&self) {
        self.shared.state().collector = Some(Collector::default());
    }

    /// Sets whether lists and watches apply the `shardSelector` from now on. By default it's
    /// ignored, as it is by API servers without the feature gate `ShardedListAndWatch`.
    ///
    /// Open watches don't change. Tests can therefore toggle this while an operator is running, to simulate an upgrade
    /// of a control plane with several API servers.
    pub fn sharding(&self, enabled: bool) {
        self.shared.state().sharding = enabled;
    }

    /// Forbids requests that the roles in manifests don't permit, with kube-apiserver's messages,
    /// except those of [administrators](Self::call). As on a real server, an operator that writes
    /// roles needs their rules or the verb `escalate`, and one that binds a role needs its rules or
    /// the verb `bind`.
    ///
    /// The roles are those bound to a service account or, without such bindings, all of them.
    /// `system`, kustomize's placeholder for the operator's namespace, is replaced with `default`.
    /// `origin` is the path of the manifests, for messages.
    ///
    /// # Errors
    ///
    /// Returns a message if there is no role, or if a bound role doesn't exist.
    pub fn set_roles(&self, manifests: &[Value], origin: &str) -> Result<(), String> {
        self.shared.state().roles = Roles::read(manifests, origin)?;
        Ok(())
    }

    /// Returns the permissions needed by all requests except those of
    /// [administrators](Self::call), sorted and deduplicated.
    #[must_use]
    pub fn permissions(&self) -> Vec<Permission> {
        self.shared.state().roles.asked.iter().cloned().collect()
    }

    /// Asserts that the roles set by [`set_roles`](Self::set_roles) permit everything that the
    /// operator requested. Returns permissions in the roles that it never used, e.g.
    /// `ClusterRole manager-role: delete deployments in apps`. The list is empty if the test
    /// exercises everything.
    ///
    /// # Panics
    ///
    /// Panics with the missing permissions, each with the marker to add.
    #[track_caller]
    pub fn assert_role_fits(&self) -> Vec<String> {
        let mut state = self.shared.state();
        assert!(
            state.roles.user().is_some(),
            "the server has no roles: add them with `.role_from(\"config/rbac\")`"
        );
        state.roles.is_reported = true;
        let missing = state.roles.describe_missing();
        let unused = state.roles.unused();
        // Release the lock, which the panic below would poison.
        drop(state);
        if let Some(missing) = missing {
            panic!("{missing}");
        }
        unused
    }

    #[expect(
        clippy::disallowed_macros,
        reason = "the output of a failed test shows only what macros print"
    )]
    fn report_missing_permissions(&self) {
        let mut state = self.shared.state();
        if state.roles.is_reported {
            return;
        }
        state.roles.is_reported = true;
        if let Some(missing) = state.roles.describe_missing() {
            eprintln!("{missing}");
        }
    }

    /// Returns the permissions that the operator needed but weren't granted by the roles set by
    /// [`set_roles`](Self::set_roles). Empty without roles.
    #[must_use]
    pub fn missing_permissions(&self) -> Vec<Permission> {
        self.shared.state().roles.missing().cloned().collect()
    }

    /// Creates a namespace with a generated name, `<prefix>-<suffix>`, and returns its name.
    ///
    /// # Panics
    ///
    /// Panics if the resulting name is not a valid namespace name.
    #[must_use]
    pub fn namespace(&self, prefix: &str) -> String {
        let mut request = internal_request(Verb::Create, &ResourceId::namespaces(), None, None);
        request.body = json!({ "metadata": { "generateName": format!("{prefix}-") } });
        let made = answer_internal(&self.shared, &request, &Headers::default());
        self.shared.wake();
        match made {
            Ok(Answer::Text(_, text)) => {
                let namespace: Value = serde_json::from_slice(&text).unwrap_or_default();
                let name = namespace["metadata"]["name"].as_str();
                name.unwrap_or_default().to_owned()
            }
            Ok(_) => unreachable!("a create is answered with an object"),
            Err(failure) => panic!(
                "cannot create namespace `{prefix}-…`: {}",
                failure.to_json()["message"]
            ),
        }
    }

    /// Injects a fault that makes requests fail or wait.
    ///
    /// A request is affected by the first matching error or disconnect, and by the first matching
    /// delay.
    pub fn inject(&self, fault: Fault) {
        self.shared.state().faults.push(fault);
    }

    /// Removes all faults.
    pub fn heal(&self) {
        self.shared.state().faults.clear();
    }

    /// Closes all watches, as a server restart would. Clients resume from their resource version.
    pub fn drop_watches(&self) {
        self.shared.state().epoch += 1;
        self.shared.wake();
    }

    /// Closes all watches and compacts the history. Clients that try to resume get `410 Expired`
    /// and must relist.
    pub fn expire_watches(&self) {
        {
            let mut state = self.shared.state();
            state.compact();
            state.epoch += 1;
        }
        self.shared.wake();
    }

    /// All received requests in order. Includes access reviews but not discovery.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.shared.state().requests.all()
    }

    /// Doesn't remember received requests any longer. Servers that run for long would run out of
    /// memory.
    pub fn stop_recording(&self) {
        let mut state = self.shared.state();
        state.requests.forget();
        state.requests.is_off = true;
    }

    /// Clears the list of received requests.
    pub fn forget_requests(&self) {
        self.shared.state().requests.forget();
    }

    /// Handles an HTTP request. With `by_admin`, all requests are permitted.
    ///
    /// # Errors
    ///
    /// Returns an error if a [fault](Self::inject) breaks the connection, or if the request body
    /// can't be read.
    pub async fn call<B: Body<Error: Into<BoxError>>>(
        &self,
        request: http::Request<B>,
        by_admin: bool,
    ) -> Result<Response<ResponseBody>, BoxError> {
        self.call_by(request, by_admin, None).await
    }

    pub(super) async fn call_by<B: Body<Error: Into<BoxError>>>(
        &self,
        request: http::Request<B>,
        by_admin: bool,
        user: Option<Arc<User>>,
    ) -> Result<Response<ResponseBody>, BoxError> {
        let (parts, body) = request.into_parts();
        let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
        let Some(mut request) = Request::parse(&parts.method, path, query) else {
            if self.shared.state().faults.iter().any(Fault::is_outage) {
                return Err(DISCONNECTED.into());
            }
            return Ok(self.document(path, &read_headers(&parts.headers).accept));
        };
        request.by_admin = by_admin;
        request.user = user;
        // Discovery requests (handled above) have no body.
        let bytes = match body.collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return Err(error.into()),
        };
        self.respond(request, &parts.headers, bytes).await
    }

    /// Handles a request like [`call`](Self::call), if the caller has parsed it already.
    ///
    /// # Errors
    ///
    /// Returns an error if a [fault](Self::inject) breaks the connection.
    pub async fn respond(
        &self,
        mut request: Request,
        headers: &HeaderMap,
        bytes: Bytes,
    ) -> Result<Response<ResponseBody>, BoxError> {
        let headers = read_headers(headers);
        if bytes.len() > MOST_BYTES {
            let failure = Failure::from(rbuilder_judge::Failure::TooLarge);
            return Ok(json_response(failure.code, &failure.to_json()));
        }
        let results = self.shared.state().results.clone();
        (request.body, request.duplicates) = match results {
            Some(results) => results.parse(&bytes, &headers.content_type),
            None => parse_body(&bytes, &headers.content_type),
        };
        request.text = bytes;
        let request = Arc::new(request);
        // Record the request up front, in case it never completes.
        let number = self.shared.state().requests.note(Arc::clone(&request));
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
            Some(Effect::Disconnect) => return Err(DISCONNECTED.into()),
            Some(Effect::Delay(_)) | None => {}
        }
        let mut reviews = Reviews::new(self.shared.state().webhooks.clone());
        let mut taken = Taken::default();
        // Webhooks must not run under the lock, so repeat until nothing is pending. See the
        // `webhooks` module.
        let (answered, warnings) = loop {
            let (answered, warnings) = self.attempt(request, headers, &reviews, &mut taken);
            if !reviews.answer_pending().await {
                break (answered, warnings);
            }
        };
        let mut response = match answered {
            Ok(Answer::Object(code, object)) => json_response(code, &object),
            Ok(Answer::Text(code, text)) => text_response(code, text),
            Ok(Answer::NoSuchPath) => no_such_path(),
            Ok(Answer::Lines(watch)) => {
                let frames = watch.lines().map(|line| Ok(Frame::data(line)));
                response(200, StreamBody::new(frames).boxed_unsync())
            }
            Err(failure) => json_response(failure.code, &failure.to_json()),
        };
        for warning in warnings.to_headers() {
            if let Ok(warning) = http::HeaderValue::from_bytes(warning.as_bytes()) {
                response.headers_mut().append(header::WARNING, warning);
            }
        }
        Ok(response)
    }

    /// Processes a request with the webhook responses received so far. Changes nothing if more
    /// responses are needed.
    fn attempt(
        &self,
        request: &Request,
        headers: &Headers,
        reviews: &Reviews,
        taken: &mut Taken,
    ) -> (Result<Answer, Failure>, Warnings) {
        let warnings = Warnings::default();
        let mut state = self.shared.state();
        state.run_collector();
        state.begin(std::mem::take(taken));
        let permitted = match &request.user {
            _ if request.by_admin => Ok(()),
            Some(user) => state.authorize(user, request),
            None => state.roles.check(Permission::of(request)),
        };
        let answered = permitted
            .and_then(|()| answer_request(&self.shared, &mut state, request, headers, &warnings, reviews));
        *taken = state.end();
        state.plan_collection();
        drop(state);
        self.shared.wake();
        (answered, warnings)
    }

    fn document(&self, path: &str, accept: &str) -> Response<ResponseBody> {
        if matches!(path, "/healthz" | "/livez" | "/readyz") {
            return response(200, Full::from("ok").boxed_unsync());
        }
        let state = self.shared.state();
        if let Some(document) = state.document(path, accept) {
            let is_aggregated = document["kind"] == AGGREGATED_KIND;
            let mut response = json_response(200, &document);
            if is_aggregated {
                let media_type = header::HeaderValue::from_static(AGGREGATED);
                response.headers_mut().insert(header::CONTENT_TYPE, media_type);
            }
            return response;
        }
        let mut segments = path.split('/').skip(1);
        let group = match segments.next() {
            Some("api") => Some(""),
            Some("apis") => segments.next(),
            _ => None,
        };
        if group.is_some_and(|group| state.is_builtin_group(group)) {
            let failure = Failure::unknown_path();
            return json_response(failure.code, &failure.to_json());
        }
        no_such_path()
    }
}

/// Removes match conditions that restrict webhooks to the manager's namespace, as tests create no
/// objects there. Conditions that exclude it are kept.
fn remove_restrictions(configuration: &mut Value) {
    for webhook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
        let conditions = webhook.get_mut("matchConditions").and_then(Value::as_array_mut);
        if let Some(conditions) = conditions {
            conditions.retain(|condition| {
                let expression = condition["expression"].as_str().unwrap_or_default();
                condition["name"] != "manager-namespace" || expression.starts_with('!')
            });
        }
    }
}

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
        duplicates: Vec::new(),
        text: Bytes::new(),
        by_admin: true,
        user: None,
        code: 0,
    }
}

fn answer_internal(shared: &Arc<Shared>, request: &Request, headers: &Headers) -> Result<Answer, Failure> {
    answer_request(
        shared,
        &mut shared.state(),
        request,
        headers,
        &Warnings::default(),
        &Reviews::new(None),
    )
}

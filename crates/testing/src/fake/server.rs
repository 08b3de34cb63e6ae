//! The server handle for tests.

use std::any::TypeId;
use std::io;
use std::ops::Deref;
use std::path::Path;

use http::{HeaderMap, Response};
use hyper::body::Bytes;
use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::client::Body;
use kube::core::NamespaceResourceScope;
use kube::{Client, Resource};
use rbuilder_apiserver::{KindNames, OWN_NAMESPACE};
use rbuilder_catalogue::KUBERNETES;
use serde::Serialize;
use serde_json::Value;
use tower::BoxError;

use super::{Fault, Request, ResponseBody, WebhookHandler};
use crate::manifests::read_documents;

/// An in-process API server. Clones share the same server. See [the module](super).
#[derive(Clone, Debug)]
pub struct ApiServer(rbuilder_apiserver::ApiServer);

/// An operator with webhooks. Implemented by `rbuilder::Manager`.
pub trait Webhooks {
    /// Takes the webhooks, so that the operator doesn't serve them itself.
    fn take_webhooks(&mut self) -> WebhookHandler;
}

/// What doesn't depend on kube.
impl Deref for ApiServer {
    type Target = rbuilder_apiserver::ApiServer;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Default for ApiServer {
    fn default() -> Self {
        Self::new()
    }
}

impl ApiServer {
    /// Creates a server with the built-in kinds of Kubernetes and the namespaces `default`,
    /// `kube-node-lease`, `kube-public` and `kube-system`.
    #[must_use]
    pub fn new() -> Self {
        Self(rbuilder_apiserver::ApiServer::of_minor(KUBERNETES.minor()))
    }

    /// Serves the kind of a CRD, e.g. `Memcached::crd()`.
    ///
    /// # Panics
    ///
    /// Panics if the CRD's name isn't `<plural>.<group>`.
    #[must_use]
    pub fn crd(self, crd: CustomResourceDefinition) -> Self {
        let name = crd.metadata.name.clone().unwrap_or_default();
        if let Err(why) = self.install_crd(&serde_json::to_value(crd).unwrap_or_default()) {
            panic!("cannot serve the kind of the CRD {name}: {why}");
        }
        self
    }

    /// Serves the kinds of the CRDs in a file, or in the `.yaml`, `.yml` and `.json` files of a
    /// directory. Documents of other kinds are ignored.
    ///
    /// # Errors
    ///
    /// Returns an error if the path can't be read or contains no CRD, or if a document isn't valid
    /// YAML or not a valid CRD.
    pub fn install_crds(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let is_crd = |document: &Value| document["kind"] == "CustomResourceDefinition";
        let installed = install(path.as_ref(), is_crd, |crd| self.install_crd(&crd))?;
        installed.ok_or_else(|| missing("CRD", path.as_ref()))
    }

    /// Installs the webhook configurations from a file or directory, e.g.
    /// `config/webhook/manifests.yaml`, and calls the operator's webhooks in this process.
    /// Documents of other kinds are ignored.
    ///
    /// Takes the webhooks out of the operator (a `rbuilder::Manager`), so that the operator doesn't
    /// serve them itself; it needn't even be started. Requests matched by the configurations wait
    /// for the webhooks, which are looked up by the path in `clientConfig`. Configurations created
    /// later by the test or the operator take effect, too. As with `envtest`, webhooks that are
    /// restricted to the manager's namespace are called for all namespaces.
    ///
    /// # Errors
    ///
    /// Returns an error if the path can't be read or contains no webhook configuration, or if a
    /// document is invalid.
    pub fn install_webhooks(&self, path: impl AsRef<Path>, operator: &mut impl Webhooks) -> io::Result<()> {
        let is_configuration = |document: &Value| {
            let kind = document["kind"].as_str();
            matches!(
                kind,
                Some("MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration")
            )
        };
        let add = |configuration| self.install_webhook_configuration(configuration);
        let installed = install(path.as_ref(), is_configuration, add)?;
        installed.ok_or_else(|| missing("webhook configuration", path.as_ref()))?;
        self.install_conversions(operator);
        Ok(())
    }

    /// Calls the operator's conversion webhooks in this process. Like
    /// [`install_webhooks`](Self::install_webhooks), but for operators without admission webhooks.
    ///
    /// CRDs of kinds that the operator converts are set to the conversion strategy `Webhook`, as
    /// kustomize's patches do in a cluster. This includes CRDs installed later. Objects are stored
    /// in the storage version, and converted whenever they are read or written in another version.
    ///
    /// # Panics
    ///
    /// Panics if a CRD can't be changed.
    pub fn install_conversions(&self, operator: &mut impl Webhooks) {
        if let Err(why) = self.convert_with(operator.take_webhooks()) {
            panic!("{why}");
        }
    }

    /// Serves the kind of a Rust type without a CRD, e.g. another operator's kind. Objects are
    /// neither validated nor defaulted. The kind has a status subresource.
    #[must_use]
    pub fn kind<K: Resource<DynamicType = (), Scope: 'static>>(self) -> Self {
        self.serve_kind(&KindNames {
            group: K::group(&()).into_owned(),
            version: K::version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            plural: K::plural(&()).into_owned(),
            is_namespaced: TypeId::of::<K::Scope>() == TypeId::of::<NamespaceResourceScope>(),
        });
        self
    }

    /// Stores an object, including its status. Replaces an existing object with the same name. A
    /// uid and a creation timestamp are added if missing.
    ///
    /// The object isn't validated, as if it predated the schema. Like any object read by the
    /// server, it is pruned and defaulted.
    ///
    /// # Panics
    ///
    /// Panics if the kind isn't served or the object has no name.
    #[must_use]
    pub fn object<K: Resource<DynamicType = ()> + Serialize>(self, object: &K) -> Self {
        let mut value = serde_json::to_value(object).unwrap_or_default();
        value["apiVersion"] = K::api_version(&()).into();
        value["kind"] = K::kind(&()).into();
        if let Err(why) = self.store_object(&K::group(&()), &K::plural(&()), value) {
            panic!("{why}: add it with `.crd(…)` or `.kind(…)`");
        }
        self
    }

    /// Runs a garbage collector that deletes objects whose owners are all gone, respects
    /// propagation policies, and empties and removes terminating namespaces. Also ends the
    /// protection of claims that no Pod mounts, and removes terminating Pods, as their kubelet
    /// would.
    ///
    /// It proceeds like the collector in a cluster: one object at a time, with 10 ms on tokio's
    /// clock between steps. The operator can therefore act between steps, and tests must wait for
    /// the result, as on a real server.
    #[must_use]
    pub fn collecting_garbage(self) -> Self {
        self.collect_garbage();
        self
    }

    /// Restricts clients returned by [`client`](Self::client) to the permissions granted by roles.
    /// All other requests are forbidden, with kube-apiserver's messages. As on a real server, an
    /// operator that writes roles needs their rules or the verb `escalate`, and one that binds a
    /// role needs its rules or the verb `bind`.
    ///
    /// Reads the manifests in a directory such as `config/rbac`: the roles bound to a service
    /// account or, without such bindings, all roles. `system`, kustomize's placeholder for the
    /// operator's namespace, is replaced with `default`, the clients' namespace. The test itself
    /// should use a client returned by [`admin`](Self::admin).
    ///
    /// If the test fails, missing permissions are printed as by
    /// [`assert_role_fits`](rbuilder_apiserver::ApiServer::assert_role_fits), as a possible cause.
    ///
    /// # Panics
    ///
    /// Panics if the manifests can't be read or contain no role, or if a bound role doesn't exist.
    #[must_use]
    #[track_caller]
    pub fn role_from(self, folder: impl AsRef<Path>) -> Self {
        let folder = folder.as_ref();
        let read = read_documents(folder).map_err(|error| error.to_string());
        let set = read.and_then(|documents| {
            let manifests: Vec<Value> = documents.into_iter().map(|(_, document)| document).collect();
            self.set_roles(&manifests, &folder.display().to_string())
        });
        if let Err(why) = set {
            panic!("cannot read the roles: {why}");
        }
        self
    }

    /// Returns a new client with the permissions set by [`role_from`](Self::role_from), or with all
    /// permissions by default. The client's default namespace is `default`.
    ///
    /// # Panics
    ///
    /// Panics if called outside a tokio runtime.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client_as(false)
    }

    /// Returns a new client with all permissions. Its default namespace is `default`.
    ///
    /// # Panics
    ///
    /// Panics if called outside a tokio runtime.
    #[must_use]
    pub fn admin(&self) -> Client {
        self.client_as(true)
    }

    fn client_as(&self, by_admin: bool) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let server = server.clone();
            async move { server.call(request, by_admin).await }
        });
        Client::new(service, OWN_NAMESPACE)
    }

    /// Injects a fault that makes requests fail or wait.
    ///
    /// A request is affected by the first matching error or disconnect, and by the first matching
    /// delay.
    pub fn inject(&self, fault: Fault) {
        self.0.inject(fault.0);
    }

    /// All received requests in order. Includes access reviews but not discovery.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.0.requests().into_iter().map(Request).collect()
    }

    /// Handles an HTTP request like the service behind [`client`](Self::client), or behind
    /// [`admin`](Self::admin) if `by_admin` is set.
    ///
    /// # Errors
    ///
    /// Returns an error if a [fault](Self::inject) breaks the connection, or if the request body
    /// can't be read.
    pub async fn call(
        &self,
        request: http::Request<Body>,
        by_admin: bool,
    ) -> Result<Response<ResponseBody>, BoxError> {
        self.0.call(request, by_admin).await
    }

    /// Handles a request like [`call`](Self::call), if the caller has parsed it already.
    ///
    /// # Errors
    ///
    /// Returns an error if a [fault](Self::inject) breaks the connection.
    pub async fn respond(
        &self,
        request: Request,
        headers: &HeaderMap,
        bytes: Bytes,
    ) -> Result<Response<ResponseBody>, BoxError> {
        self.0.respond(request.0, headers, bytes).await
    }

    /// Sets the server's start time, from which it advances with tokio's clock. Defaults to the
    /// current time.
    #[must_use]
    pub fn starting_at(self, time: Timestamp) -> Self {
        self.start_at(time);
        self
    }

    /// Returns a new server with the same kinds, objects, roles and webhooks, sharing memory
    /// copy-on-write. Faults, recorded requests and watches aren't copied.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self(self.0.copy())
    }

    /// Caches the results of writes. This server and its [copies](Self::copy) then reuse the result
    /// when the same write to the same object is repeated, which is faster but yields identical
    /// responses. Servers with webhooks don't use the cache.
    #[must_use]
    pub fn repeating_results(self) -> Self {
        self.repeat_results();
        self
    }

    /// Returns the response to a rejected request, with the reason that corresponds to the status
    /// code.
    #[must_use]
    pub fn refusal(code: u16, message: &str) -> Response<ResponseBody> {
        rbuilder_apiserver::ApiServer::refusal(code, message)
    }
}

/// Adds the wanted documents in a file or directory to the server. Returns `None` if there are none.
fn install(
    path: &Path,
    is_wanted: impl Fn(&Value) -> bool,
    add: impl Fn(Value) -> Result<(), String>,
) -> io::Result<Option<()>> {
    let mut found = None;
    for (file, document) in read_documents(path)? {
        if is_wanted(&document) {
            let refused = |why| io::Error::other(format!("cannot install {}: {why}", file.display()));
            add(document).map_err(refused)?;
            found = Some(());
        }
    }
    Ok(found)
}

fn missing(what: &str, path: &Path) -> io::Error {
    let path = path.display();
    io::Error::other(format!(
        "no {what} in {path}: run `rbuilder manifests` to generate the project's"
    ))
}

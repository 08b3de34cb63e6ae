//! Handle to an additional cluster.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use kube::Client;
use kube::api::DynamicObject;
use tokio::sync::{Notify, mpsc};

use super::config::{ClusterConfig, Source};
use super::connection::{Connection, State};
use super::set::{ClusterPart, ClusterServices};
use crate::cache::{Cached, Caches, Index, NamedWatch, Selection};
use crate::error::Error;
use crate::hash::HashMap;
use crate::kinds::Kinds;
use crate::object::{DynamicKind, Kind, Object};

type OnReady = Box<dyn Fn() + Send + Sync>;

/// A cluster in addition to the manager's own.
///
/// Get one from [`Manager::cluster`](crate::Manager::cluster), and store it in the state of your
/// controller. [`Ctx::in_cluster`] then provides the common operations for that cluster, and
/// [`Watch::in_cluster`] watches its objects.
///
/// This is a handle, which is cheap to clone. While the cluster is unreachable, requests fail and
/// watches are retried.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube::ResourceExt;
/// # use rbuilder::{Action, Cluster, ClusterConfig, Controller, Ctx, Manager, ManagerArgs, ObjectRef, Result, Watch};
/// struct State {
///     edge: Cluster,
/// }
///
/// /// Copies a ConfigMap to the same namespace and name of the other cluster.
/// async fn reconcile(map: Arc<ConfigMap>, ctx: Ctx<State>) -> Result {
///     let mut copy = ConfigMap { data: map.data.clone(), ..ConfigMap::default() };
///     copy.metadata.name = map.metadata.name.clone();
///     copy.metadata.namespace = map.metadata.namespace.clone();
///     ctx.in_cluster(&ctx.edge).apply(copy).await?;
///     Ok(Action::await_change())
/// }
///
/// /// Reconciles the original of a copy that has changed.
/// fn to_original(copy: &ConfigMap, _ctx: &Ctx<State>) -> Vec<ObjectRef<ConfigMap>> {
///     vec![ObjectRef::new(&copy.name_any()).within(&copy.namespace().unwrap_or_default())]
/// }
///
/// # async fn run() -> Result<()> {
/// let mut manager = Manager::new("da1d9c86.example.com", ManagerArgs::default()).await?;
/// let edge = manager.cluster(ClusterConfig::from_kubeconfig("edge", "/etc/edge/kubeconfig"));
/// let copies = Watch::mapped(to_original).in_cluster(&edge);
/// manager.controller(Controller::new(reconcile, State { edge }).watch(copies)).start().await
/// # }
/// ```
///
/// [`Ctx::in_cluster`]: crate::Ctx::in_cluster
/// [`Watch::in_cluster`]: crate::Watch::in_cluster
#[derive(Clone)]
pub struct Cluster(pub(super) Arc<Inner>);

pub(super) struct Inner {
    name: String,
    pub(super) is_required: bool,
    source: Mutex<Source>,
    pub(super) source_replaced: Notify,
    pub(super) connection: Connection,
    client: Client,
    pub(super) caches: Caches,
    kinds: Kinds,
    /// The watches to run, taken when the cluster is started.
    pub(super) watches: Mutex<Option<mpsc::UnboundedReceiver<NamedWatch>>>,
    /// Set before the cluster is started. Never set without a manager.
    pub(super) services: OnceLock<ClusterServices>,
    on_ready: Mutex<Vec<OnReady>>,
    /// Contexts of controllers in this cluster, keyed by the address of the controller's context in
    /// the manager's own cluster.
    contexts: Mutex<HashMap<usize, Arc<dyn Any + Send + Sync>>>,
}

impl Cluster {
    /// Creates a cluster without a manager, for tests that call a reconcile function directly. Use
    /// it together with [`Ctx::new`](crate::Ctx::new).
    ///
    /// # Panics
    ///
    /// Panics if called from outside of a tokio runtime.
    pub fn new(name: impl Into<String>, client: Client) -> Self {
        let cluster = Self::of(ClusterConfig::from_client(name, client.clone()));
        cluster.0.connection.set_client(client);
        cluster
    }

    /// Adds objects to the cache of their kind, as if a watch had delivered them. Only use this for
    /// clusters created with [`new`](Self::new).
    pub fn caching<K: Object>(self, objects: impl IntoIterator<Item = K>) -> Self {
        let cache = self.0.caches.of::<K>(&Kind::of_type(), &Selection::all());
        objects.into_iter().for_each(|object| cache.put(object));
        cache.assume_synced();
        self
    }

    pub(super) fn of(config: ClusterConfig) -> Self {
        let ClusterConfig {
            name,
            source,
            namespaces,
            is_required,
        } = config;
        let connection = Connection::new(&name);
        let client = connection.client();
        let (caches, watches) = Caches::of_cluster(&name, client.clone(), namespaces);
        Self(Arc::new(Inner {
            name,
            is_required,
            source: Mutex::new(source),
            source_replaced: Notify::new(),
            connection,
            client,
            caches,
            kinds: Kinds::default(),
            watches: Mutex::new(Some(watches)),
            services: OnceLock::new(),
            on_ready: Mutex::default(),
            contexts: Mutex::default(),
        }))
    }

    /// Returns the name of this cluster.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns a client for this cluster. It can be stored, since it follows changes of the
    /// credentials.
    ///
    /// Requests fail until the cluster is connected. Timeouts and retries are the same as for
    /// [`Manager::client`](crate::Manager::client), and the default namespace is `default`.
    ///
    /// This client is not aware of leader election, and always permits writes. In a reconcile
    /// function, use the client of [`Ctx::in_cluster`](crate::Ctx::in_cluster) instead.
    pub fn client(&self) -> Client {
        self.0.client.clone()
    }

    /// Returns a cache of the objects of kind `K` in this cluster. See
    /// [`Manager::cached`](crate::Manager::cached).
    ///
    /// This can be called at any time. The cache lives as long as the cluster. It is empty until
    /// [`is_synced`](Cached::is_synced) returns `true`.
    pub fn cached<K: Object>(&self) -> Cached<K> {
        self.cached_selection(&Selection::all())
    }

    /// Like [`cached`](Self::cached), but only caches the selected objects.
    pub fn cached_selection<K: Object>(&self, selection: &Selection) -> Cached<K> {
        Cached::new(self.0.caches.of(&Kind::of_type(), selection))
    }

    /// Like [`cached`](Self::cached), but for a kind that's only known at runtime.
    pub fn cached_dynamic(&self, kind: &DynamicKind) -> Cached<DynamicObject> {
        self.0.kinds.add(kind.clone());
        Cached::new(self.0.caches.of(&kind.into(), &Selection::all()))
    }

    /// Like [`cached`](Self::cached), with an additional index. This is the equivalent of
    /// [`Controller::index`](crate::Controller::index).
    pub fn index<K: Object>(
        &self,
        name: impl Into<String>,
        values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) {
        let cache = self.0.caches.of::<K>(&Kind::of_type(), &Selection::all());
        cache.add_index(Index::new(name.into(), values));
    }

    /// Checks whether the cluster responded to the most recent request.
    ///
    /// # Errors
    ///
    /// Returns the reason why the cluster isn't connected, e.g. that the kubeconfig isn't readable
    /// or the server doesn't respond.
    pub fn check(&self) -> Result<(), Error> {
        match self.0.connection.state().problem() {
            None => Ok(()),
            Some(reason) => {
                let name = &self.0.name;
                Err(Error::new(format!(
                    "the cluster `{name}` is not connected: {reason}"
                )))
            }
        }
    }

    /// Returns `true` once all caches of this cluster have synced. It stays `true` if the cluster
    /// becomes unreachable later, in which case the caches contain the last known state.
    pub fn is_synced(&self) -> bool {
        self.0.caches.first_unsynced().is_none() && self.was_connected()
    }

    /// Waits until the cluster is connected and all of its caches have synced.
    ///
    /// # Errors
    ///
    /// Returns the most recent error after `timeout`. Connection attempts continue in the
    /// background.
    pub async fn synced(&self, timeout: Duration) -> Result<(), Error> {
        if tokio::time::timeout(timeout, self.until_synced()).await.is_ok() {
            return Ok(());
        }
        Err(Error::new(format!(
            "timed out after {timeout:?} waiting for the cluster `{}`: {}",
            self.0.name,
            self.describe_problem(),
        )))
    }

    pub(crate) async fn until_synced(&self) {
        let mut state = self.0.connection.watch_state();
        // Can't fail, because the connection owns the sender.
        let _ = state.wait_for(|state| *state == State::Connected).await;
        self.0.caches.synced().await;
    }

    /// Explains why the cluster can't be used yet.
    pub(crate) fn describe_problem(&self) -> String {
        if let Some(reason) = self.0.connection.state().problem() {
            return reason.to_owned();
        }
        match self.0.caches.first_unsynced() {
            Some((kind, error)) => format!("the cache of {kind} is not synced; last error: {error}"),
            None => "its caches are being synced".to_owned(),
        }
    }

    fn was_connected(&self) -> bool {
        matches!(self.0.connection.state(), State::Connected | State::Lost(_))
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.0.connection.state() == State::Connected
    }

    pub(crate) fn caches(&self) -> &Caches {
        &self.0.caches
    }

    pub(crate) fn kinds(&self) -> &Kinds {
        &self.0.kinds
    }

    pub(super) fn source(&self) -> Source {
        lock(&self.0.source).clone()
    }

    /// No-op if the sources are the same.
    pub(super) fn replace_source(&self, source: Source) {
        let mut current = lock(&self.0.source);
        if !current.is_same(&source) {
            *current = source;
            self.0.source_replaced.notify_one();
        }
    }

    /// Registers a callback for when the cluster becomes usable, i.e. is connected with synced
    /// caches. Called again each time the cluster comes back after it was lost.
    pub(crate) fn on_ready(&self, call: impl Fn() + Send + Sync + 'static) {
        lock(&self.0.on_ready).push(Box::new(call));
    }

    pub(super) fn call_on_ready(&self) {
        lock(&self.0.on_ready).iter().for_each(|call| call());
    }

    /// Returns the context of a controller in this cluster, creating it on first use. Without a
    /// manager, every call creates a new one.
    pub(crate) fn context_of<T: Send + Sync + 'static>(
        &self,
        controller: usize,
        create: impl FnOnce() -> Arc<T>,
    ) -> Arc<T> {
        if !self.is_managed() {
            return create();
        }
        let mut contexts = lock(&self.0.contexts);
        let existing = contexts
            .get(&controller)
            .map(|context| Arc::clone(context).downcast());
        if let Some(Ok(existing)) = existing {
            return existing;
        }
        let created = create();
        // Nothing would clean this up once the cluster is removed.
        if self.0.connection.state() != State::Removed {
            contexts.insert(controller, created.clone());
        }
        created
    }

    pub(crate) fn is_managed(&self) -> bool {
        self.0.services.get().is_some()
    }

    /// Runs a publisher until it exits or the manager stops.
    pub(crate) fn run_publisher(&self, controller: &str, publisher: BoxFuture<'static, ()>) {
        match self.0.services.get() {
            Some(services) => {
                let name = format!("event publisher of {controller} in the cluster {}", self.0.name);
                services.run(ClusterPart::Events(name, publisher));
            }
            None => drop(tokio::spawn(publisher)),
        }
    }

    /// Shuts down everything that uses the cluster, and breaks reference cycles.
    pub(super) fn close(&self) {
        self.0.connection.remove();
        self.0.caches.close();
        let contexts = std::mem::take(&mut *lock(&self.0.contexts));
        let on_ready = std::mem::take(&mut *lock(&self.0.on_ready));
        drop((contexts, on_ready));
    }
}

impl PartialEq for Cluster {
    /// Compares by identity: a cluster that was removed and re-added is not the same cluster.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Cluster {}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("name", &self.0.name)
            .field("source", &lock(&self.0.source).describe())
            .field("state", &self.0.connection.state())
            .finish()
    }
}

/// Poisoning can be ignored, since only our own callbacks run under the lock.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

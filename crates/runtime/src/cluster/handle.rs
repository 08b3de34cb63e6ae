//! The handle of a cluster that all its users share.

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

/// Called when a cluster becomes usable, for the first time or again.
type OnReady = Box<dyn Fn() + Send + Sync>;

/// Another cluster besides the manager's own. Cheap to clone.
///
/// Obtained from [`Manager::cluster`](crate::Manager::cluster), and usually part of a controller's
/// state. Use [`Ctx::in_cluster`] for the common operations on the cluster, and
/// [`Watch::in_cluster`] to watch its objects. This is only a handle: while the cluster itself is
/// unreachable, requests to it fail and its watches are retried.
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
    /// Notified when `source` was replaced.
    pub(super) source_replaced: Notify,
    pub(super) connection: Connection,
    client: Client,
    pub(super) caches: Caches,
    kinds: Kinds,
    /// Watches to run; taken when the cluster starts.
    pub(super) watches: Mutex<Option<mpsc::UnboundedReceiver<NamedWatch>>>,
    /// Set before the cluster starts; never set outside of a manager.
    pub(super) services: OnceLock<ClusterServices>,
    on_ready: Mutex<Vec<OnReady>>,
    /// Contexts of controllers in this cluster, keyed by the controller's own context.
    contexts: Mutex<HashMap<usize, Arc<dyn Any + Send + Sync>>>,
}

impl Cluster {
    /// Creates a cluster outside of a manager, for calling a reconcile function from a test; see
    /// [`Ctx::new`](crate::Ctx::new).
    ///
    /// # Panics
    /// Panics outside of a tokio runtime.
    pub fn new(name: impl Into<String>, client: Client) -> Self {
        let cluster = Self::of(ClusterConfig::from_client(name, client.clone()));
        cluster.0.connection.set_client(client);
        cluster
    }

    /// Adds objects to the cache of their kind as if they had been watched. For a cluster created
    /// with [`new`](Self::new).
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

    /// Returns the name of the cluster.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns a client for the cluster. It can be kept, because it follows changes of the
    /// credentials.
    ///
    /// It writes whether or not this process is the leader; in a reconcile function, use the client
    /// of [`Ctx::in_cluster`](crate::Ctx::in_cluster) instead. Until the cluster is connected,
    /// requests fail. It has the same timeouts and retries as
    /// [`Manager::client`](crate::Manager::client), and the default namespace `default`.
    pub fn client(&self) -> Client {
        self.0.client.clone()
    }

    /// Caches objects of kind `K` of the cluster and returns their cache; see
    /// [`Manager::cached`](crate::Manager::cached).
    ///
    /// May be called at any time. The cache lasts as long as the cluster, and is empty until it [is
    /// synced](Cached::is_synced).
    pub fn cached<K: Object>(&self) -> Cached<K> {
        self.cached_selection(&Selection::all())
    }

    /// Like [`cached`](Self::cached), for the selected objects.
    pub fn cached_selection<K: Object>(&self, selection: &Selection) -> Cached<K> {
        Cached::new(self.0.caches.of(&Kind::of_type(), selection))
    }

    /// Like [`cached`](Self::cached), for a kind known only at run time.
    pub fn cached_dynamic(&self, kind: &DynamicKind) -> Cached<DynamicObject> {
        self.0.kinds.add(kind.clone());
        Cached::new(self.0.caches.of(&kind.into(), &Selection::all()))
    }

    /// Caches objects of kind `K` with an index, like
    /// [`Controller::index`](crate::Controller::index) does for the manager's own cluster.
    pub fn index<K: Object>(
        &self,
        name: impl Into<String>,
        values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) {
        let cache = self.0.caches.of::<K>(&Kind::of_type(), &Selection::all());
        cache.add_index(Index::new(name.into(), values));
    }

    /// Checks that the cluster responded to the last request.
    ///
    /// # Errors
    /// Returns why the cluster is not connected, such as an unreadable kubeconfig or a server that
    /// does not respond.
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

    /// Returns `true` once all caches of the cluster are synced. Stays `true` when the cluster is
    /// lost; the caches then show the last known state.
    pub fn is_synced(&self) -> bool {
        self.0.caches.first_unsynced().is_none() && self.was_connected()
    }

    /// Waits until the cluster is connected and its caches are synced.
    ///
    /// # Errors
    /// Fails after `timeout`, with the last error. The cluster is still retried.
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
        // The connection owns the sender, so the wait cannot fail.
        let _ = state.wait_for(|state| *state == State::Connected).await;
        self.0.caches.synced().await;
    }

    /// Returns why the cluster cannot be used yet.
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

    /// Switches to another source of credentials, unless it is the same.
    pub(super) fn replace_source(&self, source: Source) {
        let mut current = lock(&self.0.source);
        if !current.is_same(&source) {
            *current = source;
            self.0.source_replaced.notify_one();
        }
    }

    /// Calls a function whenever the cluster becomes usable: once it is connected and its caches
    /// are synced, and each time after it was lost.
    pub(crate) fn on_ready(&self, call: impl Fn() + Send + Sync + 'static) {
        lock(&self.0.on_ready).push(Box::new(call));
    }

    pub(super) fn call_on_ready(&self) {
        lock(&self.0.on_ready).iter().for_each(|call| call());
    }

    /// Returns the context of a controller in this cluster, creating it on first use. Outside of a
    /// manager, contexts are not kept.
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
        if self.0.connection.state() != State::Removed {
            contexts.insert(controller, created.clone());
        }
        created
    }

    /// Returns `true` if a manager has started the cluster.
    pub(crate) fn is_managed(&self) -> bool {
        self.0.services.get().is_some()
    }

    /// Runs an event publisher for as long as the manager runs, or until the publisher exits.
    pub(crate) fn run_publisher(&self, controller: &str, publisher: BoxFuture<'static, ()>) {
        match self.0.services.get() {
            Some(services) => {
                let name = format!("event publisher of {controller} in the cluster {}", self.0.name);
                services.run(ClusterPart::Events(name, publisher));
            }
            None => drop(tokio::spawn(publisher)),
        }
    }

    /// Ends all uses of the cluster.
    pub(super) fn close(&self) {
        self.0.connection.remove();
        self.0.caches.close();
        let contexts = std::mem::take(&mut *lock(&self.0.contexts));
        let on_ready = std::mem::take(&mut *lock(&self.0.on_ready));
        drop((contexts, on_ready));
    }
}

impl PartialEq for Cluster {
    /// Compares by identity: a cluster that was removed and added again is a different one.
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

/// Locks a mutex, ignoring poison: only our own hooks run while it is held, so the state is
/// consistent.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

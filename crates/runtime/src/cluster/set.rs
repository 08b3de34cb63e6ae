//! The set of additional clusters, which may change at any time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use tokio::sync::mpsc;

use super::config::ClusterConfig;
use super::handle::Cluster;
use super::run::run_cluster;
use crate::cache::{CacheOptions, CacheStats, WatchStatus};
use crate::client::ClientSettings;
use crate::error::Error;
use crate::list_watch::ListLimit;
use crate::metrics::Metrics;

/// The additional clusters of a manager. Clusters can be added and removed while the manager is
/// running.
///
/// Returned by [`Manager::clusters`](crate::Manager::clusters), and cheap to clone. It's typically
/// part of the state of a controller that reconciles whatever describes your clusters (e.g. Secrets
/// with kubeconfigs). To watch objects in all clusters, use
/// [`Controller::watch_clusters`](crate::Controller::watch_clusters).
///
/// ```no_run
/// # use std::sync::Arc;
/// # use k8s_openapi::api::core::v1::Secret;
/// # use kube::ResourceExt;
/// # use rbuilder::{Action, ClusterConfig, Clusters, Controller, Ctx, Manager, ManagerArgs, ObjectRef, Result, Selection};
/// struct State {
///     clusters: Clusters,
/// }
///
/// async fn reconcile(secret: Arc<Secret>, ctx: Ctx<State>) -> Result {
///     let kubeconfig = secret.data.as_ref().and_then(|data| data.get("kubeconfig"));
///     match kubeconfig.filter(|_| secret.metadata.deletion_timestamp.is_none()) {
///         Some(text) => {
///             let name = secret.name_any();
///             ctx.clusters.add(ClusterConfig::from_kubeconfig_text(name, text.0.clone()));
///         }
///         None => drop(ctx.clusters.remove(&secret.name_any())),
///     }
///     Ok(Action::await_change())
/// }
///
/// async fn forget(secret: ObjectRef<Secret>, ctx: Ctx<State>) -> Result {
///     ctx.clusters.remove(&secret.name);
///     Ok(Action::await_change())
/// }
///
/// # async fn run() -> Result<()> {
/// let manager = Manager::new("da1d9c86.example.com", ManagerArgs::default()).await?;
/// let state = State { clusters: manager.clusters() };
/// let fleet = Controller::new(reconcile, state)
///     .named("fleet")
///     .selecting(Selection::all().namespaces(["fleet"]).labels("example.com/cluster"))
///     .on_deleted(forget)
///     .on_every_replica();
/// manager.controller(fleet).start().await
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Clusters(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    by_name: BTreeMap<String, Cluster>,
    on_added: Vec<OnAdded>,
    services: Option<ClusterServices>,
    /// If set, new clusters start immediately.
    is_started: bool,
    is_closed: bool,
}

type OnAdded = Arc<dyn Fn(&Cluster) + Send + Sync>;

/// What clusters need from their manager.
#[derive(Clone)]
pub(crate) struct ClusterServices {
    /// Client for the manager's own cluster.
    pub(crate) own: Client,
    pub(crate) metrics: Metrics,
    pub(crate) caches: CacheOptions,
    pub(crate) client: ClientSettings,
    /// Time without data after which a watch is stale.
    pub(crate) stale_after: Duration,
    /// Channel to the manager, which runs the parts of a cluster.
    pub(crate) run: mpsc::UnboundedSender<ClusterPart>,
}

/// Part of a cluster that the manager must run. The string is a name for error messages.
pub(crate) enum ClusterPart {
    /// Exits when the cluster is removed.
    Watches(String, BoxFuture<'static, Result<(), Error>>),
    /// Exits when the cluster is removed, or when the manager shuts down and all events were sent.
    Events(String, BoxFuture<'static, ()>),
}

impl ClusterServices {
    pub(super) fn run(&self, part: ClusterPart) {
        // Fails only if the manager is shutting down and no longer needs the part.
        let _ = self.run.send(part);
    }
}

impl Clusters {
    /// Adds a cluster.
    ///
    /// This can be called repeatedly (e.g. from a reconcile function). If there's already a cluster
    /// with the same name, only the source of its credentials is updated. In particular, its
    /// namespaces do not change.
    ///
    /// Doesn't wait for the cluster; use [`Cluster::synced`] if you need to.
    ///
    /// # Panics
    ///
    /// Panics if called from outside of a tokio runtime.
    pub fn add(&self, config: ClusterConfig) -> Cluster {
        let mut state = self.lock();
        if let Some(existing) = state.by_name.get(&config.name).cloned() {
            drop(state);
            existing.replace_source(config.source);
            return existing;
        }
        let cluster = Cluster::of(config);
        // After shutdown, hand out a cluster that was already removed.
        if state.is_closed {
            cluster.close();
            return cluster;
        }
        state.by_name.insert(cluster.name().to_owned(), cluster.clone());
        if let Some(services) = &state.services {
            cluster.provide(services);
        }
        let (on_added, is_started) = (state.on_added.clone(), state.is_started);
        drop(state);
        // The lock was released above, because callbacks may use this set.
        on_added.iter().for_each(|call| call(&cluster));
        if is_started {
            cluster.start();
        }
        cluster
    }

    /// Removes a cluster. All of its watches are stopped, and requests to it will fail. Returns
    /// `false` if there is no cluster with this name.
    ///
    /// A [`Cached`](crate::Cached) of this cluster keeps its current objects. Nothing can be
    /// written to a removed cluster, so controllers should delete what they have created there
    /// first.
    pub fn remove(&self, name: &str) -> bool {
        let removed = self.lock().by_name.remove(name);
        match &removed {
            Some(cluster) => {
                cluster.close();
                tracing::info!(cluster = name, "cluster removed");
                true
            }
            None => false,
        }
    }

    /// Returns the cluster with the given name.
    pub fn get(&self, name: &str) -> Option<Cluster> {
        self.lock().by_name.get(name).cloned()
    }

    /// Returns all clusters, sorted by name.
    pub fn list(&self) -> Vec<Cluster> {
        self.lock().by_name.values().cloned().collect()
    }

    /// The callback receives all current and future clusters.
    pub(crate) fn on_added(&self, call: impl Fn(&Cluster) + Send + Sync + 'static) {
        let call: OnAdded = Arc::new(call);
        let existing: Vec<Cluster> = {
            let mut state = self.lock();
            state.on_added.push(Arc::clone(&call));
            state.by_name.values().cloned().collect()
        };
        // Call it without holding the lock, because callbacks may use this set.
        existing.iter().for_each(|cluster| call(cluster));
    }

    /// Must be called before clusters can start.
    pub(crate) fn provide(&self, services: ClusterServices) {
        let mut state = self.lock();
        state
            .by_name
            .values()
            .for_each(|cluster| cluster.provide(&services));
        state.services = Some(services);
    }

    /// Starts all clusters. Clusters added later start immediately.
    pub(crate) fn start(&self) {
        let clusters: Vec<Cluster> = {
            let mut state = self.lock();
            state.is_started = true;
            state.by_name.values().cloned().collect()
        };
        clusters.iter().for_each(Cluster::start);
    }

    pub(crate) async fn required_synced(&self) {
        for cluster in self.required() {
            cluster.until_synced().await;
        }
    }

    /// Returns a required cluster that startup is still waiting for, and the reason.
    pub(crate) fn first_unsynced(&self) -> Option<(String, String)> {
        let unsynced = self.required().into_iter().find(|cluster| !cluster.is_synced())?;
        Some((unsynced.name().to_owned(), unsynced.describe_problem()))
    }

    fn required(&self) -> Vec<Cluster> {
        let mut clusters = self.list();
        clusters.retain(|cluster| cluster.0.is_required);
        clusters
    }

    /// Validates the selections of all caches. The error contains the kind of the first cache with
    /// an invalid selection, and a description of the problem.
    pub(crate) fn check(&self) -> Result<(), (String, &'static str)> {
        self.list()
            .iter()
            .try_for_each(|cluster| cluster.caches().check())
    }

    /// The returned closure collects the statistics of all caches, without keeping the clusters
    /// alive.
    pub(crate) fn stats(&self) -> impl Fn() -> Vec<CacheStats> + Send + Sync + 'static {
        let state = Arc::downgrade(&self.0);
        move || {
            let clusters = state.upgrade().map(|state| Self(state).list());
            let clusters = clusters.iter().flatten();
            clusters.flat_map(Cluster::stats).collect()
        }
    }

    /// The returned closure lists the clusters by name, and whether they are connected. It doesn't
    /// keep them alive.
    pub(crate) fn connections(&self) -> impl Fn() -> Vec<(String, bool)> + Send + Sync + 'static {
        let state = Arc::downgrade(&self.0);
        move || {
            let clusters = state.upgrade().map(|state| Self(state).list());
            let describe = |cluster: &Cluster| (cluster.name().to_owned(), cluster.is_connected());
            clusters.iter().flatten().map(describe).collect()
        }
    }

    /// The returned closure doesn't keep the clusters alive.
    pub(crate) fn status(&self) -> impl Fn() -> Vec<ClusterStatus> + Send + Sync + 'static {
        let state = Arc::downgrade(&self.0);
        move || {
            let clusters = state.upgrade().map(|state| Self(state).list());
            clusters.iter().flatten().map(Cluster::status).collect()
        }
    }

    /// Removes all clusters and callbacks, whose reference cycles would leak otherwise.
    pub(crate) fn close(&self) {
        let (clusters, on_added) = {
            let mut state = self.lock();
            state.is_closed = true;
            state.services = None;
            (
                std::mem::take(&mut state.by_name),
                std::mem::take(&mut state.on_added),
            )
        };
        clusters.values().for_each(Cluster::close);
        drop(on_added);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Ignore poisoning: nothing can panic while the lock is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// State of a cluster, as shown in `/debug/clusters`.
pub(crate) struct ClusterStatus {
    pub(crate) name: String,
    /// `None` if the cluster is connected.
    pub(crate) problem: Option<String>,
    /// Stays `true` if the cluster becomes unreachable after its caches have synced.
    pub(crate) synced: bool,
    pub(crate) is_required: bool,
    pub(crate) watches: Vec<WatchStatus>,
}

impl Cluster {
    fn status(&self) -> ClusterStatus {
        ClusterStatus {
            name: self.name().to_owned(),
            problem: self.0.connection.state().problem().map(str::to_owned),
            synced: self.is_synced(),
            is_required: self.0.is_required,
            watches: self.caches().status()(),
        }
    }

    fn stats(&self) -> Vec<CacheStats> {
        let label = |stats| CacheStats {
            cluster: self.name().to_owned(),
            ..stats
        };
        self.caches().stats()().into_iter().map(label).collect()
    }

    fn provide(&self, services: &ClusterServices) {
        // Each cluster gets its own limit, or a hanging cluster would block the lists of all
        // others.
        self.0.caches.configure(&CacheOptions {
            list_limit: ListLimit::default(),
            ..services.caches.clone()
        });
        self.0.services.get_or_init(|| services.clone());
    }

    /// No-op if the cluster is already started.
    fn start(&self) {
        let watches = self
            .0
            .watches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let (Some(watches), Some(services)) = (watches, self.0.services.get()) else {
            return;
        };
        let name = format!("cluster {}", self.name());
        let running = run_cluster(self.clone(), services.clone(), watches);
        services.run(ClusterPart::Watches(name, running.boxed()));
    }
}

impl fmt::Debug for Clusters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list()).finish()
    }
}

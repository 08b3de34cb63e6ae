//! The manager: configures the controllers, servers and tasks of one process and runs them.
//!
//! This module contains the configuration. [`components`] adds what the manager runs, and
//! [`settings`] changes how. [`start`] checks the configuration and starts [`run`], which starts
//! and stops the components.

mod components;
mod kubeconfig;
mod run;
mod settings;
mod start;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::api::DynamicObject;
use kube::core::GroupVersionKind;
use kube::{Client, Config};

use crate::args::ManagerArgs;
use crate::cache::{CacheOptions, Cached, EarlyCaches, Selection};
use crate::client::{ClientSettings, new_manager_client};
use crate::cluster::Clusters;
use crate::controller::AnyController;
use crate::debug::DebugState;
use crate::error::Error;
use crate::events::WaitingEvents;
use crate::kinds::Kinds;
use crate::leader_election::{Fence, LeaseTimes, fence_client};
#[cfg(feature = "logging")]
use crate::logging::init_logging;
use crate::metrics::Metrics;
use crate::metrics_server::Handlers;
use crate::object::{DynamicKind, Kind, Object};
use crate::probes::Probes;
use crate::server::MAX_CONNECTIONS;
use crate::task::Task;
use crate::traces::trace_requests;
use crate::webhook::{ManagedCertificate, Routes};

use kubeconfig::load_config;

/// Default time for running reconciles to finish after a shutdown request.
const GRACE_PERIOD: Duration = Duration::from_secs(30);
/// Default time without data after which a cache is stale. A watch receives a bookmark about every
/// minute, is restarted after 95 s without any, and is then retried at least every 60 s.
const CACHE_STALE_AFTER: Duration = Duration::from_secs(5 * 60);
/// Default time for the caches to sync.
const CACHE_SYNC_TIMEOUT: Duration = Duration::from_secs(120);

/// Runs controllers and everything they share, until the process is asked to stop.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use rbuilder::{Action, Controller, Ctx, Manager, ManagerArgs, Result};
/// # async fn reconcile(object: Arc<ConfigMap>, ctx: Ctx<()>) -> Result { Ok(Action::await_change()) }
/// # async fn run() -> Result<()> {
/// Manager::new("da1d9c86.example.com", ManagerArgs::default())
///     .await?
///     .controller(Controller::new(reconcile, ()))
///     .start()
///     .await
/// # }
/// ```
#[must_use = "a manager does nothing until it is started"]
pub struct Manager {
    id: String,
    client: Client,
    /// The client for leader election if there is no configuration. It has no custom layers.
    election_client: Client,
    /// Configuration for additional clients (leader election). `None` if the caller supplied a
    /// client.
    config: Option<Config>,
    client_settings: ClientSettings,
    /// Maximum number of connections per server.
    max_connections: usize,
    /// Memory in bytes that all reviews together may hold; `None` for the default.
    webhook_memory: Option<usize>,
    args: ManagerArgs,
    controllers: Vec<Box<dyn AnyController>>,
    clusters: Clusters,
    /// A name that two clusters have.
    duplicate_cluster: Option<String>,
    tasks: Vec<Task>,
    /// Recorded events from outside of controllers, by the name of the recorder.
    events: Vec<(String, WaitingEvents)>,
    routes: Routes,
    client_authorities: Option<PathBuf>,
    webhook_certificate: Option<ManagedCertificate>,
    metrics: Metrics,
    metrics_handlers: Handlers,
    debug: Arc<DebugState>,
    probes: Probes,
    grace: Duration,
    sync_timeout: Duration,
    lease: LeaseTimes,
    /// The time until which this process leads or works on its shards; `None` without either.
    fence: Option<Fence>,
    caches: CacheOptions,
    early_caches: EarlyCaches,
    kinds: Kinds,
    stale_after: Duration,
}

impl Manager {
    /// Creates a manager for the cluster of the kubeconfig or the pod's service account.
    ///
    /// With `--kubeconfig` or `--context`, only that kubeconfig or context is tried. Otherwise, the
    /// cluster comes from the files in `KUBECONFIG`, from `~/.kube/config`, or from the pod's
    /// service account.
    ///
    /// `id` names the leader election lease, and must be unique among the operators in a namespace.
    /// With the feature `logging`, which is on by default, this installs a tracing subscriber that
    /// logs to standard error as configured by `args`, unless one is already installed. It also
    /// installs a panic hook that logs panics in the same format, and then calls the previous hook.
    ///
    /// # Errors
    /// Fails if no cluster configuration is found, `--kubeconfig` or `--context` is unusable, or
    /// `--log-level` or `RUST_LOG` is invalid.
    pub async fn new(id: impl Into<String>, args: ManagerArgs) -> Result<Self, Error> {
        #[cfg(feature = "logging")]
        init_logging(&args)?;
        let config = load_config(&args).await?;
        Self::with_config(id, config, args)
    }

    /// Creates a manager for the cluster of this configuration, without setting up logging.
    ///
    /// As with [`new`](Self::new), leader election has its own thread, runtime and client. The
    /// lease is therefore renewed in time even if a reconcile blocks its thread, and requests for
    /// it are neither queued behind others nor retried. The thread uses the real clock, even if a
    /// test pauses its runtime's clock. The timeouts and retries of `config` are replaced by those
    /// of [`client`](Self::client).
    ///
    /// # Errors
    /// Fails if no client can be created from the configuration.
    pub fn with_config(id: impl Into<String>, config: Config, args: ManagerArgs) -> Result<Self, Error> {
        let metrics = Metrics::new();
        let client_settings = ClientSettings::default();
        client_settings
            .flow_control
            .set(args.kube_api_qps, args.kube_api_burst);
        let client = new_manager_client(config.clone(), &metrics, &client_settings)?;
        let client = trace_requests(client, Some(&config.cluster_url));
        Ok(Self {
            config: Some(config),
            client_settings,
            metrics,
            ..Self::assemble(id.into(), client, args)
        })
    }

    /// Creates a manager that uses this client, also for leader election, without setting up
    /// logging. For tests, and for clients with custom layers.
    ///
    /// Leader election is a task on the runtime on which the manager is started: a reconcile that
    /// blocks all threads of the runtime for longer than the [renew deadline](Self::renew_deadline)
    /// loses the lease.
    ///
    /// Requests are counted only if the client was built with
    /// [`Metrics::count_requests`](Metrics::count_requests).
    ///
    /// # Panics
    /// With the feature `opentelemetry`, panics outside of a tokio runtime, like [`Client::new`].
    pub fn with_client(id: impl Into<String>, client: Client, args: ManagerArgs) -> Self {
        Self::assemble(id.into(), trace_requests(client, None), args)
    }

    fn assemble(id: String, client: Client, args: ManagerArgs) -> Self {
        Self {
            fence: new_fence(&id, &args),
            id,
            election_client: client.clone(),
            client,
            config: None,
            client_settings: ClientSettings::default(),
            max_connections: MAX_CONNECTIONS,
            webhook_memory: None,
            args,
            controllers: Vec::new(),
            clusters: Clusters::default(),
            duplicate_cluster: None,
            tasks: Vec::new(),
            events: Vec::new(),
            routes: Routes::default(),
            client_authorities: None,
            webhook_certificate: None,
            metrics: Metrics::new(),
            metrics_handlers: Handlers::default(),
            debug: Arc::default(),
            probes: Probes::default(),
            grace: GRACE_PERIOD,
            sync_timeout: CACHE_SYNC_TIMEOUT,
            lease: LeaseTimes::default(),
            caches: CacheOptions::default(),
            early_caches: EarlyCaches::default(),
            kinds: Kinds::default(),
            stale_after: CACHE_STALE_AFTER,
        }
    }

    /// Uses these metrics. Metrics registered with the manager's previous ones are not carried over.
    pub fn with_metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// Caches objects of kind `K`, and returns their cache for the state of a controller or webhook.
    ///
    /// Reading this cache cannot fail, whereas [`Ctx::cached`](crate::Ctx::cached) returns an error
    /// at run time if nothing caches the kind in this form. For a kind, whole objects are kept. For
    /// a [`PartialObjectMeta`](kube::core::PartialObjectMeta) of it, only metadata is kept, as
    /// [`owns`](crate::Controller::owns) does, and the compiler ensures that readers use nothing
    /// else. The cache is empty until the manager has started; controllers start once it is synced.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
    /// # use rbuilder::{Action, Cached, Controller, Ctx, Manager, ManagerArgs, Result};
    /// struct State {
    ///     deployments: Cached<Deployment>,
    /// }
    ///
    /// async fn reconcile(config: Arc<ConfigMap>, ctx: Ctx<State>) -> Result {
    ///     let namespace = config.metadata.namespace.as_deref().unwrap_or_default();
    ///     println!("{} Deployments", ctx.deployments.in_namespace(namespace).len());
    ///     Ok(Action::await_change())
    /// }
    ///
    /// # async fn run() -> Result<()> {
    /// let mut manager = Manager::new("da1d9c86.example.com", ManagerArgs::default()).await?;
    /// let state = State { deployments: manager.cached() };
    /// manager.controller(Controller::new(reconcile, state).owns::<Deployment>()).start().await
    /// # }
    /// ```
    pub fn cached<K: Object>(&mut self) -> Cached<K> {
        self.cached_selection(&Selection::all())
    }

    /// Like [`cached`](Self::cached), for the selected objects.
    pub fn cached_selection<K: Object>(&mut self, selection: &Selection) -> Cached<K> {
        Cached::new(self.early_caches.of(&Kind::of_type(), selection))
    }

    /// Like [`cached`](Self::cached), for a kind known only at run time.
    pub fn cached_dynamic(&mut self, kind: &DynamicKind) -> Cached<DynamicObject> {
        self.kinds.add(kind.clone());
        Cached::new(self.early_caches.of(&kind.into(), &Selection::all()))
    }

    /// Returns a kind with its plural and scope, looking it up in the API server's discovery on
    /// first use.
    ///
    /// The result is shared with [`Ctx::discover`](crate::Ctx::discover).
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use kube::api::DynamicObject;
    /// # use kube::core::GroupVersionKind;
    /// # use rbuilder::{Action, Controller, Ctx, Manager, ManagerArgs, Result};
    /// # async fn reconcile(object: Arc<DynamicObject>, ctx: Ctx<()>) -> Result { Ok(Action::await_change()) }
    /// # async fn run() -> Result<()> {
    /// let manager = Manager::new("da1d9c86.example.com", ManagerArgs::default()).await?;
    /// let gateways = GroupVersionKind::gvk("gateway.networking.k8s.io", "v1", "Gateway");
    /// let gateways = manager.discover(&gateways).await?;
    /// manager.controller(Controller::dynamic(&gateways, reconcile, ())).start().await
    /// # }
    /// ```
    ///
    /// # Errors
    /// Fails if the API server does not serve the kind, or does not respond. The error names the
    /// kind.
    pub async fn discover(&self, kind: &GroupVersionKind) -> Result<DynamicKind, Error> {
        self.kinds.find(&self.client, kind).await
    }

    /// Returns the manager's client.
    ///
    /// It writes whether or not this process is the leader. In a reconcile function, use
    /// [`Ctx::client`](crate::Ctx::client) instead; in a task of the leader, use
    /// [`leader_client`](Self::leader_client).
    ///
    /// A request fails if no data arrives for 95 s, so that an API server that hangs does not block
    /// reconciles forever; `log`, `exec`, `attach`, `portforward` and `proxy` have no timeout.
    /// Requests that get a 429, 503 or 504 are retried up to six times within a minute, after the
    /// time in `Retry-After` or a few seconds. A create or a JSON patch is not retried after a 504,
    /// nor without `Retry-After`, because it may have been executed.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns a client for [tasks](Task) that run only in the leader, and for anything else that
    /// must not write without the lease.
    ///
    /// It is like [`client`](Self::client), except that with `--leader-elect` or `--shards` a write
    /// fails while this process does not hold its lease, as with [`Ctx::client`](crate::Ctx::client). Reads
    /// always pass.
    pub fn leader_client(&self) -> Client {
        match &self.fence {
            Some(fence) => fence_client(self.client(), fence),
            None => self.client(),
        }
    }

    /// Returns the manager's metrics, to which the operator can add its own.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}

/// Returns the fence of a manager whose work requires a lease.
fn new_fence(id: &str, args: &ManagerArgs) -> Option<Fence> {
    match args.shards {
        Some(_) => Some(Fence::of_shards(id)),
        None => args.leader_elect.then(|| Fence::new(id)),
    }
}

#[cfg(test)]
mod tests;

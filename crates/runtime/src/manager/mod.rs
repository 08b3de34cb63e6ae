//! The manager, which runs the controllers, servers and tasks of a process.
//!
//! This module contains its configuration. The builder methods in [`components`] add things to be
//! run, and those in [`settings`] configure how they are run. [`start`] validates everything and
//! then hands over to [`run`], which starts and stops the components.

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

const GRACE_PERIOD: Duration = Duration::from_secs(30);
/// Time without any data after which a cache is stale.
///
/// Watches get a bookmark about once a minute. We restart them after 95 s without one, and then
/// retry at least every 60 s.
const CACHE_STALE_AFTER: Duration = Duration::from_secs(5 * 60);
const CACHE_SYNC_TIMEOUT: Duration = Duration::from_secs(120);

/// Runs controllers and everything they need until the process is asked to stop.
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
    /// Used for leader election without a configuration. Doesn't have any custom layers.
    election_client: Client,
    /// Needed by leader election to create its own client. `None` if the manager was created from a
    /// client.
    config: Option<Config>,
    client_settings: ClientSettings,
    /// Limit per server.
    max_connections: usize,
    /// Total for all webhook reviews, in bytes. `None` means the default.
    webhook_memory: Option<usize>,
    args: ManagerArgs,
    controllers: Vec<Box<dyn AnyController>>,
    clusters: Clusters,
    /// A name that two clusters share, which is an error.
    duplicate_cluster: Option<String>,
    tasks: Vec<Task>,
    /// By name of the recorder.
    events: Vec<(String, WaitingEvents)>,
    routes: Routes,
    client_authorities: Option<PathBuf>,
    webhook_certificate: Option<ManagedCertificate>,
    metrics: Metrics,
    metrics_handlers: Handlers,
    debug: Arc<DebugState>,
    probes: Probes,
    grace: Duration,
    /// How long webhooks are served after a request to stop. `None` for the default.
    webhook_delay: Option<Duration>,
    sync_timeout: Duration,
    lease: LeaseTimes,
    /// `None` if the process needs no lease, i.e. without leader election and sharding.
    fence: Option<Fence>,
    caches: CacheOptions,
    early_caches: EarlyCaches,
    kinds: Kinds,
    stale_after: Duration,
}

impl Manager {
    /// Creates a manager for the cluster specified by the kubeconfig or by the Pod's service
    /// account.
    ///
    /// If `--kubeconfig` or `--context` is set, exactly that is used. Otherwise, the files in
    /// `KUBECONFIG`, `~/.kube/config` and the service account are tried in this order.
    ///
    /// `id` is the name of the lease for leader election. It must be unique among the operators in
    /// a namespace.
    ///
    /// With the feature `logging` (enabled by default), this also installs a tracing subscriber
    /// that logs to stderr according to `args`, and a panic hook that logs panics in the same
    /// format before it calls the previous hook. If a subscriber is already installed, neither is
    /// done.
    ///
    /// # Errors
    ///
    /// Fails if there is no configuration, if `--kubeconfig` or `--context` cannot be used, or if
    /// `--log-level` or `RUST_LOG` is invalid.
    pub async fn new(id: impl Into<String>, args: ManagerArgs) -> Result<Self, Error> {
        #[cfg(feature = "logging")]
        init_logging(&args)?;
        let config = load_config(&args).await?;
        Self::with_config(id, config, args)
    }

    /// Creates a manager from an existing configuration. Doesn't set up logging.
    ///
    /// As with [`new`](Self::new), leader election has its own thread, runtime and client. As a
    /// result, a reconcile that blocks its thread does not delay renewals of the lease, and
    /// renewals neither wait for other requests nor are they retried. This thread uses the real
    /// time, even if a test pauses the clock of its runtime.
    ///
    /// The timeouts and retries of `config` are ignored in favor of those described for
    /// [`client`](Self::client).
    ///
    /// # Errors
    ///
    /// Fails if the client cannot be created.
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

    /// Creates a manager from an existing client, e.g. for tests, or for clients with custom
    /// layers. Does not set up logging.
    ///
    /// The client is also used for leader election, which is just a task on the same runtime. If
    /// reconciles block all threads of the runtime for longer than the [renew
    /// deadline](Self::renew_deadline), the lease is lost.
    ///
    /// Requests do not show up in the metrics unless the client was built with
    /// [`Metrics::count_requests`](Metrics::count_requests).
    ///
    /// # Panics
    ///
    /// With the feature `opentelemetry`, panics if called from outside of a tokio runtime, just
    /// like [`Client::new`].
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
            webhook_delay: None,
            sync_timeout: CACHE_SYNC_TIMEOUT,
            lease: LeaseTimes::default(),
            caches: CacheOptions::default(),
            early_caches: EarlyCaches::default(),
            kinds: Kinds::default(),
            stale_after: CACHE_STALE_AFTER,
        }
    }

    /// Replaces the manager's metrics. Metrics registered with the previous ones are lost.
    pub fn with_metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// Returns a cache of the objects of kind `K`, which can be stored in the state of a controller
    /// or a webhook.
    ///
    /// Reading from it never fails, whereas [`Ctx::cached`](crate::Ctx::cached) returns an error at
    /// runtime if the kind isn't cached in the same form. If `K` is a kind, whole objects are
    /// cached. If it is a [`PartialObjectMeta`](kube::core::PartialObjectMeta), only their metadata
    /// is cached, as in [`owns`](crate::Controller::owns), and the type prevents access to anything
    /// else. Caches are empty until the manager is started; controllers are not started until all
    /// caches have synced.
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

    /// Like [`cached`](Self::cached), but only caches the selected objects.
    pub fn cached_selection<K: Object>(&mut self, selection: &Selection) -> Cached<K> {
        Cached::new(self.early_caches.of(&Kind::of_type(), selection))
    }

    /// Like [`cached`](Self::cached), but for a kind that's only known at runtime.
    pub fn cached_dynamic(&mut self, kind: &DynamicKind) -> Cached<DynamicObject> {
        self.kinds.add(kind.clone());
        Cached::new(self.early_caches.of(&kind.into(), &Selection::all()))
    }

    /// Looks up the plural name and the scope of a kind, using the discovery API. The result is
    /// cached, and shared with [`Ctx::discover`](crate::Ctx::discover).
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
    ///
    /// Fails if the kind isn't served, or if there is no response from the API server. The error
    /// message includes the kind.
    pub async fn discover(&self, kind: &GroupVersionKind) -> Result<DynamicKind, Error> {
        self.kinds.find(&self.client, kind).await
    }

    /// Returns the manager's client.
    ///
    /// This client is not aware of leader election, and always permits writes. Prefer
    /// [`Ctx::client`](crate::Ctx::client) in a reconcile function, and
    /// [`leader_client`](Self::leader_client) in tasks of the leader.
    ///
    /// # Timeouts and retries
    ///
    /// Requests fail if no data is received for 95 s, so that a hanging API server can't block
    /// reconciles forever. There is no timeout for `log`, `exec`, `attach`, `portforward` and
    /// `proxy`.
    ///
    /// A request that fails with 429, 503 or 504 is retried up to six times within a minute. The
    /// delay is taken from `Retry-After` if present, and is otherwise a few seconds. Creates and
    /// JSON patches are not retried after a 504 or without `Retry-After`, because they may already
    /// have been executed.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns a client for [tasks](Task) that only run on the leader, and for anything else that
    /// must not write without the lease.
    ///
    /// Like [`client`](Self::client), except that with `--leader-elect` or `--shards`, writes fail
    /// unless this process holds its lease, as with [`Ctx::client`](crate::Ctx::client). Reads are
    /// not affected.
    pub fn leader_client(&self) -> Client {
        match &self.fence {
            Some(fence) => fence_client(self.client(), fence),
            None => self.client(),
        }
    }

    /// Returns the manager's metrics, to which you can add your own.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    #[cfg(feature = "testing")]
    pub(crate) fn registered(&self) -> rbuilder_testing::Registered {
        let controllers = self.controllers.iter();
        rbuilder_testing::Registered {
            controllers: controllers.map(|controller| controller.group_kind()).collect(),
            paths: self.routes.paths().map(str::to_owned).collect(),
            converted: self.routes.converted_kinds().collect(),
        }
    }
}

fn new_fence(id: &str, args: &ManagerArgs) -> Option<Fence> {
    match args.shards {
        Some(_) => Some(Fence::of_shards(id)),
        None => args.leader_elect.then(|| Fence::new(id)),
    }
}

#[cfg(test)]
mod tests;

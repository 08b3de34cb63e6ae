//! The manager: configures the controllers, servers and tasks of one process and runs them.
//!
//! This module holds the configuration; [`run`] starts and stops the components.

mod kubeconfig;
mod run;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use kube::api::DynamicObject;
use kube::client::Body;
use kube::core::GroupVersionKind;
use kube::core::admission::AdmissionResponse;
use kube::runtime::watcher::{InitialListStrategy, ListSemantic};
use kube::{Client, Config};
use serde::Serialize;
use tower::{Layer, Service};

use crate::args::ManagerArgs;
use crate::cache::{CacheOptions, Cached, EarlyCaches, Selection};
use crate::client::{ClientService, ClientSettings, add_layer, new_manager_client};
use crate::cluster::{Cluster, ClusterConfig, Clusters};
use crate::controller::{AnyController, Controller};
use crate::debug::{DebugState, add_endpoints};
use crate::error::{BoxError, Error, ManagerError};
use crate::events::{EventRecorder, WaitingEvents, new_event_channel};
use crate::kinds::Kinds;
use crate::leader_election::{Fence, LeaseTimes, fence_client};
#[cfg(feature = "logging")]
use crate::logging::init_logging;
use crate::metrics::Metrics;
use crate::metrics_server::Handlers;
use crate::object::{DynamicKind, Kind, Object, Watchable};
use crate::open_files::raise_limit;
use crate::probes::Probes;
use crate::server::MAX_CONNECTIONS;
use crate::shutdown::new_shutdown;
use crate::signals::Signals;
use crate::task::Task;
use crate::traces::trace_requests;
use crate::webhook::{self, AdmissionRequest, ManagedCertificate, Routes, Webhook};

use kubeconfig::load_config;
use run::{METRICS, OnLoss, Run};

/// Default time for running reconciles to finish after shutdown was requested.
const GRACE_PERIOD: Duration = Duration::from_secs(30);
/// Default time without data after which a cache is stale. A watch receives a bookmark about every minute, is restarted
/// after 95 s without any, and then retried every 60 s at least.
const CACHE_STALE_AFTER: Duration = Duration::from_secs(5 * 60);
/// Default time for the caches to sync.
const CACHE_SYNC_TIMEOUT: Duration = Duration::from_secs(120);

/// Runs controllers, and what they share, until the process is asked to stop.
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
    /// The client for leader election without a configuration, which has no layers of the operator.
    election_client: Client,
    /// Configuration for additional clients (leader election); `None` when the caller supplied a client.
    config: Option<Config>,
    client_settings: ClientSettings,
    /// Number of connections of each server.
    max_connections: usize,
    /// The memory that all reviews together may hold, in bytes; `None` for the default.
    webhook_memory: Option<usize>,
    args: ManagerArgs,
    controllers: Vec<Box<dyn AnyController>>,
    clusters: Clusters,
    /// The name of two clusters.
    duplicate_cluster: Option<String>,
    tasks: Vec<Task>,
    /// The events recorded outside of controllers, by the name of the recorder.
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
    /// The moment until which this process leads; `None` without leader election.
    fence: Option<Fence>,
    caches: CacheOptions,
    early_caches: EarlyCaches,
    kinds: Kinds,
    stale_after: Duration,
}

impl Manager {
    /// Creates a manager for the cluster of the kubeconfig or the pod's service account.
    ///
    /// With `--kubeconfig` or `--context`, only that kubeconfig or context will do. Without, the cluster is that of the
    /// files in `KUBECONFIG`, of `~/.kube/config`, or of the pod.
    ///
    /// `id` names the leader election lease; it must be unique among the operators of a namespace. With the feature
    /// `logging`, which is on by default, it installs a tracing
    /// subscriber that logs to standard error as `args` configures, unless one is installed already, and with it a panic
    /// hook that logs panics in the same format. A hook that was installed before is called as well.
    ///
    /// # Errors
    /// When no cluster configuration is found, `--kubeconfig` or `--context` cannot be used, or `--log-level` or `RUST_LOG` is invalid.
    pub async fn new(id: impl Into<String>, args: ManagerArgs) -> Result<Self, Error> {
        #[cfg(feature = "logging")]
        init_logging(&args)?;
        let config = load_config(&args).await?;
        Self::with_config(id, config, args)
    }

    /// Creates a manager for the cluster of this configuration, without setting up logging.
    ///
    /// As with [`new`](Self::new), leader election has a thread, a runtime and a client of its own, so that the lease is
    /// renewed in time even if a reconcile blocks its thread, and requests about it are neither queued behind others nor
    /// retried. The thread uses the real clock, also where a test pauses that of its runtime. Timeouts and retries of `config` are replaced by those of [`client`](Self::client).
    ///
    /// # Errors
    /// When no client can be created from the configuration.
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

    /// Creates a manager that uses this client, also for leader election, without setting up logging. For tests, and
    /// for clients with custom layers.
    ///
    /// Leader election is a task of the runtime on which the manager is started: a reconcile that blocks all threads of
    /// the runtime for longer than the [renew deadline](Self::renew_deadline) loses the lease.
    ///
    /// Requests are counted only if the client was built with
    /// [`Metrics::count_requests`](Metrics::count_requests).
    ///
    /// # Panics
    /// With the feature `opentelemetry`, outside of a tokio runtime, as for [`Client::new`].
    pub fn with_client(id: impl Into<String>, client: Client, args: ManagerArgs) -> Self {
        Self::assemble(id.into(), trace_requests(client, None), args)
    }

    fn assemble(id: String, client: Client, args: ManagerArgs) -> Self {
        Self {
            fence: args.leader_elect.then(|| Fence::new(&id)),
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

    /// Serves a handler at `path` of the metrics server, such as a profile or a dump of the operator's state.
    ///
    /// As for `/metrics`, clients are authenticated and must be allowed to use the path, with the method in lower case as
    /// the verb (`get` on the non-resource URL `path`), unless `--metrics-secure=false`. `path` must match exactly, start
    /// with `/` and differ from `/metrics` and from what `--enable-debug-endpoints` serves; the method can be any. The body of a request is not read.
    ///
    /// ```no_run
    /// # use rbuilder::Manager;
    /// # fn with(manager: Manager) -> Manager {
    /// manager.metrics_handler("/debug/version", async |_| http::Response::new(env!("CARGO_PKG_VERSION")))
    /// # }
    /// ```
    pub fn metrics_handler<F, Fut, B>(mut self, path: impl Into<String>, handler: F) -> Self
    where
        F: Fn(http::Request<()>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = http::Response<B>> + Send + 'static,
        B: Into<Bytes>,
    {
        self.metrics_handlers.add(path.into(), handler);
        self
    }

    /// Adds a controller.
    pub fn controller<K: Watchable, S: Send + Sync + 'static>(
        mut self,
        controller: Controller<K, S>,
    ) -> Self {
        self.controllers.push(Box::new(controller));
        self
    }

    /// Adds another cluster, and returns it for the state of a controller and for its watches.
    ///
    /// The manager's own cluster is the one of its leader election and of the objects that its controllers reconcile. It
    /// starts without the other clusters, unless they are [required](ClusterConfig::required), and goes on when one is lost:
    /// watches of it are retried, and requests to it fail. They are in no readiness check.
    ///
    /// ```no_run
    /// # use rbuilder::{ClusterConfig, Manager, ManagerArgs, Result};
    /// # async fn run() -> Result<()> {
    /// let mut manager = Manager::new("da1d9c86.example.com", ManagerArgs::default()).await?;
    /// let edge = manager.cluster(ClusterConfig::from_kubeconfig("edge", "/etc/edge/kubeconfig"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn cluster(&mut self, config: ClusterConfig) -> Cluster {
        let known = self.clusters.list();
        let cluster = self.clusters.add(config);
        if known.contains(&cluster) {
            self.duplicate_cluster = Some(cluster.name().to_owned());
        }
        cluster
    }

    /// Returns the other clusters, to add and remove some while the manager runs.
    pub fn clusters(&self) -> Clusters {
        self.clusters.clone()
    }

    /// Adds a background task.
    pub fn task(mut self, task: Task) -> Self {
        self.tasks.push(task);
        self
    }

    /// Returns a recorder of Kubernetes events for [tasks](Task), webhooks and other code outside of a reconcile. Cheap to
    /// clone.
    ///
    /// `name` reports the events, and is a label of `rbuilder_events_dropped_total`. Events can be recorded at once. They
    /// are sent by every replica, leader or not, from the start of the manager until its servers have stopped: at shutdown
    /// those that are queued have five seconds. Call it after [`with_metrics`](Self::with_metrics).
    ///
    /// A webhook is also called for dry runs, and the object may yet be rejected by another one: it should record what it
    /// has decided, and nothing when the request is a dry run.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::core::v1::Node;
    /// # use rbuilder::{Error, Manager, ManagerArgs, Result, Task};
    /// # async fn next_lost_node() -> Node { Node::default() }
    /// # async fn run() -> Result<()> {
    /// let mut manager = Manager::new("da1d9c86.example.com", ManagerArgs::default()).await?;
    /// let events = manager.events("node-watchdog");
    /// let watchdog = Task::new("node-watchdog", |shutdown| async move {
    ///     loop {
    ///         tokio::select! {
    ///             node = next_lost_node() => events.warning(&node, "NodeLost", "Evict", "no sign of life for 5 min"),
    ///             () = shutdown.clone().requested() => return Ok::<_, Error>(()),
    ///         }
    ///     }
    /// });
    /// manager.task(watchdog).start().await
    /// # }
    /// ```
    pub fn events(&mut self, name: impl Into<String>) -> EventRecorder {
        let name = name.into();
        let (sender, waiting) = new_event_channel(self.metrics.events_dropped(&name));
        self.events.push((name.clone(), waiting));
        EventRecorder::of_sender(name, sender)
    }

    /// Adds the webhooks of a kind.
    ///
    /// They are served over HTTPS on `--webhook-port` with the certificate in `--webhook-cert-path`. The server starts
    /// before the caches, because the API server may need a conversion to answer their lists. `--enable-webhooks=false`
    /// disables it.
    pub fn webhook<K: Object + Serialize>(mut self, webhook: Webhook<K>) -> Self {
        webhook.add_to(&mut self.routes);
        self
    }

    /// Adds an admission webhook that handles raw requests, for objects of any kind. `path` must start with `/`.
    ///
    /// The response is kube's: [`AdmissionResponse::from`] the request allows it, `deny` denies it and `with_patch`
    /// mutates the object.
    pub fn raw_webhook<F, Fut>(mut self, path: impl Into<String>, handler: F) -> Self
    where
        F: Fn(AdmissionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = AdmissionResponse> + Send + 'static,
    {
        webhook::add_raw_webhook(path.into(), handler, &mut self.routes);
        self
    }

    /// Issues and rotates the webhook certificate in the manager and injects its CA bundle, so that neither certificate
    /// files nor cert-manager are needed. `--webhook-cert-service` does the same.
    ///
    /// `--webhook-cert-path` takes precedence, so that one operator can be deployed both ways and run in the test
    /// environment.
    pub fn webhook_certificate(mut self, certificate: ManagedCertificate) -> Self {
        self.webhook_certificate = Some(certificate);
        self
    }

    /// Requires clients of the webhook server to present a certificate signed by a CA in this PEM file. The API server
    /// must be [configured] to present one.
    ///
    /// [configured]: https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#authenticate-apiservers
    pub fn webhook_client_ca(mut self, path: impl Into<PathBuf>) -> Self {
        self.client_authorities = Some(path.into());
        self
    }

    /// Adds a check to `/healthz`, the liveness probe. It must not depend on the cluster, or an outage restarts every
    /// pod.
    pub fn healthz_check<F, E>(
        mut self,
        name: impl Into<String>,
        check: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        self.probes.add_healthz(name, check);
        self
    }

    /// Adds a check to `/readyz`, the readiness probe.
    ///
    /// Two checks are built in: `caches` fails until the caches are synced, and afterwards as
    /// [`cache_stale_after`](Self::cache_stale_after) says; `webhook`, present when webhooks are served, fails while their
    /// server does not complete a TLS handshake. An operator with conversion webhooks has no
    /// `caches` check: its caches may need a conversion to sync, and the API server reaches only ready pods.
    pub fn readyz_check<F, E>(
        mut self,
        name: impl Into<String>,
        check: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        self.probes.add_readyz(name, check);
        self
    }

    /// Sets how long running reconciles may take to finish after shutdown was requested. Defaults to 30 s.
    pub fn grace_period(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets how long the caches may take to sync before the manager fails. Defaults to 2 min.
    ///
    /// Until then a watch that fails, for example because of a missing CRD or permission, is retried.
    pub fn cache_sync_timeout(mut self, timeout: Duration) -> Self {
        self.sync_timeout = timeout;
        self
    }

    /// Sets how long other replicas wait after the last renewal before they take the lease. Defaults to 15 s; stored in
    /// the lease in whole seconds.
    ///
    /// It is the time without a leader after the leader was killed. It must be longer than the
    /// [renew deadline](Self::renew_deadline).
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.lease.duration = duration;
        self
    }

    /// Sets how long the leader retries renewing its lease before it stops with an error. Defaults to 10 s.
    ///
    /// It is the longest outage of the API server that a leader survives. It must be longer than 1.2 times the
    /// [retry period](Self::retry_period).
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.lease.renew_deadline = deadline;
        self
    }

    /// Sets the time between two renewals by the leader, and between two attempts of other replicas to acquire the lease
    /// (plus a random part of up to 1.2 times the period). Defaults to 2 s.
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.lease.retry_period = period;
        self
    }

    /// Caches objects of kind `K`, and returns their cache for the state of a controller or webhook.
    ///
    /// Reading it cannot fail, while [`Ctx::cached`](crate::Ctx::cached) is an error at run time if nothing caches the
    /// kind in this form. Whole objects are kept for a kind, only metadata for a
    /// [`PartialObjectMeta`](kube::core::PartialObjectMeta) of it, as [`owns`](Controller::owns) does: the compiler holds
    /// readers to what is kept. It is empty until the manager has started; controllers start once it is synced.
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

    /// [`cached`](Self::cached) for the selected objects.
    pub fn cached_selection<K: Object>(&mut self, selection: &Selection) -> Cached<K> {
        Cached::new(self.early_caches.of(&Kind::of_type(), selection))
    }

    /// [`cached`](Self::cached) for a kind known only at run time.
    pub fn cached_dynamic(&mut self, kind: &DynamicKind) -> Cached<DynamicObject> {
        self.kinds.add(kind.clone());
        Cached::new(self.early_caches.of(&kind.into(), &Selection::all()))
    }

    /// Returns a kind with its plural and scope, which the API server's discovery tells on first use.
    ///
    /// Contexts find it without another request, as [`Ctx::discover`](crate::Ctx::discover) does.
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
    /// When the API server does not serve the kind, or does not respond. The error names the kind.
    pub async fn discover(&self, kind: &GroupVersionKind) -> Result<DynamicKind, Error> {
        self.kinds.find(&self.client, kind).await
    }

    /// Sets the time after which a watch without any data from the API server, events and bookmarks alike, is stale.
    /// Defaults to 5 min.
    ///
    /// A stale watch is logged with its last error, and again once it receives data. The process stays ready, because it
    /// can do the rest of its work: the `caches` check of `/readyz` fails only for a watch that is
    /// [`required`](crate::Watch::required), and in a process without webhooks while all watches are stale. If the API
    /// server was gone, it needs the webhooks at once when it is back.
    ///
    /// A shorter time than 3 min would be reached by a single lost connection. With conversion webhooks there is no
    /// `caches` check; see [`readyz_check`](Self::readyz_check).
    pub fn cache_stale_after(mut self, limit: Duration) -> Self {
        self.stale_after = limit;
        self
    }

    /// Sets how much memory each controller takes to remember what it has applied, so that an
    /// [apply](crate::Ctx::apply) that changes nothing is not sent. Defaults to 64 MiB; with zero, each is sent.
    ///
    /// An object takes about 300 bytes. Unless whole objects of its kind are cached, what its JSON does not have in common
    /// with the first one of its kind comes to that, mostly 100 to 300 bytes. The oldest are
    /// forgotten, and sent once more.
    pub fn applied_memory(mut self, bytes: usize) -> Self {
        self.caches.applied_bytes = bytes;
        self
    }

    /// Sets the number of objects in a page when the caches list a kind. Defaults to 500; zero lists all in one response.
    ///
    /// Ignored with [`ListSemantic::Any`] by API servers that answer such lists from memory.
    pub fn list_page_size(mut self, objects: u32) -> Self {
        self.caches.lists.page_size = (objects > 0).then_some(objects);
        self
    }

    /// Sets how recent the lists of the caches must be. Defaults to the most recent state, which the API server reads from
    /// etcd or confirms with it; [`ListSemantic::Any`] takes what it has in memory, which may be older than what another
    /// API server has shown before.
    pub fn list_semantic(mut self, semantic: ListSemantic) -> Self {
        self.caches.lists.semantic = semantic;
        self
    }

    /// Sets how the caches get their first objects. Defaults to lists in pages;
    /// [`StreamingList`](InitialListStrategy::StreamingList) receives them as events of the watch, which takes less memory
    /// on the API server. It needs the API server's feature gate `WatchList`, and an etcd that reports its progress on
    /// request (3.4.25, 3.5.8 or later). Without either, the caches log the cause and list in pages: at once where the API
    /// server refuses, and after 30 s without an object where the list does not end.
    pub fn initial_list_strategy(mut self, strategy: InitialListStrategy) -> Self {
        self.caches.lists.strategy = strategy;
        self
    }

    /// Keeps `metadata.managedFields` of cached objects. By default it is dropped, because it often takes up more than
    /// half of an object.
    pub fn keep_managed_fields(mut self) -> Self {
        self.caches.trim.managed_fields = false;
        self
    }

    /// Keeps the annotation `kubectl.kubernetes.io/last-applied-configuration` of cached objects. By default it is
    /// dropped, because it holds a copy of the object. A controller that replaces whole objects read from a cache needs
    /// it: replacing an object without the annotation removes it for `kubectl apply`.
    pub fn keep_last_applied(mut self) -> Self {
        self.caches.trim.last_applied = false;
        self
    }

    /// Sets the name and version of the operator in the User-Agent, which audit logs show.
    /// Defaults to the name of the executable and the version `unknown`. Clients given with
    /// [`with_client`](Self::with_client) are not affected.
    ///
    /// ```no_run
    /// # use rbuilder::Manager;
    /// # fn with(manager: Manager) -> Manager {
    /// manager.user_agent(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    /// # }
    /// ```
    ///
    /// The API server takes the name for the field manager of writes that name none.
    pub fn user_agent(self, name: impl AsRef<str>, version: impl AsRef<str>) -> Self {
        let product = format!("{}/{}", name.as_ref(), version.as_ref());
        self.client_settings.user_agent.set(&product);
        self
    }

    /// Limits the requests of the manager's client to `per_second`, with bursts of up to `burst`, or twice the rate if that
    /// is 0. `--kube-api-qps` and `--kube-api-burst` do the same. Unlimited by default: API servers limit clients
    /// themselves. Clients given with [`with_client`](Self::with_client) are not affected.
    ///
    /// Watches and leader election are not limited.
    pub fn request_rate(self, per_second: u32, burst: u32) -> Self {
        let number = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
        let flow_control = &self.client_settings.flow_control;
        flow_control.set(number(per_second), number(burst));
        self
    }

    /// Sets the number of connections that each of the servers for probes, metrics and webhooks keeps open, at least one.
    /// Defaults to 512.
    ///
    /// A further connection replaces the one whose client has kept the server waiting for longest: idle, or sending a request
    /// or its body. While requests are being answered on all connections, it waits.
    pub fn max_connections(mut self, max: usize) -> Self {
        self.max_connections = max;
        self
    }

    /// Sends the requests of the manager's client through a tower layer: to add headers, to record or to reject requests.
    ///
    /// All requests of controllers, caches, webhooks, events and tasks pass it, but not those of leader election. It is
    /// called once for each request, outside of the client's traces, retries, rate limit, metrics and timeouts, and so
    /// before the User-Agent is set. Writes without the lease are refused before they reach it. Of several layers, the
    /// one added last is called first.
    ///
    /// Clients that [`client`](Self::client) and [`leader_client`](Self::leader_client) have returned before do not have
    /// the layer. For layers inside of retries, or for those of leader election as well, build a client with kube's
    /// [`ClientBuilder`](kube::client::ClientBuilder) and pass it to [`with_client`](Self::with_client).
    ///
    /// ```no_run
    /// # use http::{HeaderValue, Request};
    /// # use rbuilder::Manager;
    /// # use tower::util::MapRequestLayer;
    /// # fn with(manager: Manager) -> Manager {
    /// manager.client_layer(MapRequestLayer::new(|mut request: Request<kube::client::Body>| {
    ///     let headers = request.headers_mut();
    ///     headers.insert("impersonate-user", HeaderValue::from_static("system:serviceaccount:shop:tenant"));
    ///     request
    /// }))
    /// # }
    /// ```
    ///
    /// # Panics
    /// Outside of a tokio runtime, as [`Client::new`].
    pub fn client_layer<L, B>(mut self, layer: L) -> Self
    where
        L: Layer<ClientService>,
        L::Service: Service<http::Request<Body>, Response = http::Response<B>, Error: Into<BoxError>, Future: Send>
            + Send
            + 'static,
        B: hyper::body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        self.client = add_layer(&self.client, &layer);
        self
    }

    /// Sets the memory that the reviews of all webhooks together may hold, in bytes. Defaults to half of the memory limit of the
    /// container (its cgroup, or else the machine), at most 1 GiB.
    ///
    /// A third is for bodies, and the rest for decoding and answering them. Reviews wait in order while it is in use, and
    /// are rejected with status 503 after eight seconds. A review that needs more than all of it is rejected with status 413.
    pub fn webhook_memory(mut self, bytes: usize) -> Self {
        self.webhook_memory = Some(bytes);
        self
    }

    /// Returns the manager's client.
    ///
    /// It writes whether or not this process is the leader: in a reconcile function use
    /// [`Ctx::client`](crate::Ctx::client), in a task of the leader [`leader_client`](Self::leader_client).
    ///
    /// A request fails when no data arrives for 95 s, so that an API server that hangs does not block reconciles forever;
    /// `log`, `exec`, `attach`, `portforward` and `proxy` have no timeout. Requests answered with status 429, 503 or 504
    /// are retried up to six times within a minute, after the time in `Retry-After` or some seconds. A create or a JSON
    /// patch is not retried after a 504, or without `Retry-After`: it may have been carried out.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns a client for [tasks](Task) that run only in the leader, and whatever else must not write without the lease.
    ///
    /// It is [`client`](Self::client), except that with `--leader-elect` a write fails while this process does not hold
    /// the lease, as it does with [`Ctx::client`](crate::Ctx::client). Reads pass.
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

    /// Runs until SIGTERM or SIGINT, then waits for running reconciles to finish.
    ///
    /// A second signal makes the process exit immediately with status 1. So does the loss of the lease, after a second:
    /// by then reconciles and tasks have been cancelled, this function has returned the error and `main` should have
    /// ended, unless something blocks its thread. The next leader may act already, so the process does not wait for it.
    ///
    /// The soft limit of the process on open files is raised to the hard one.
    ///
    /// Starting consumes the manager: it cannot be started twice, and nothing can be added to it afterwards.
    ///
    /// ```compile_fail,E0382
    /// # use rbuilder::{Manager, Result};
    /// # async fn run(manager: Manager) -> Result<()> {
    /// manager.start().await?;
    /// manager.start().await
    /// # }
    /// ```
    /// ```compile_fail,E0382
    /// # use rbuilder::{Manager, Result, Task};
    /// # async fn run(manager: Manager, task: Task) -> Result<()> {
    /// let running = manager.start();
    /// manager.task(task);
    /// running.await
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`ManagerError`]. The caller should exit with a non-zero status.
    pub async fn start(self) -> Result<(), Error> {
        let mut signals = Signals::install()?;
        raise_limit();
        let (stop, shutdown) = new_shutdown();
        let second_signal = async {
            let signal = signals.next().await;
            tracing::info!(%signal, "received shutdown signal, stopping; send it again to exit immediately");
            stop.now();
            signals.next().await
        };
        tokio::select! {
            ended = self.run(shutdown.requested(), OnLoss::Exit) => ended,
            signal = second_signal => {
                tracing::warn!(%signal, "received second shutdown signal, exiting");
                std::process::exit(1)
            }
        }
    }

    /// Runs until `stop` resolves, then waits for running reconciles to finish.
    ///
    /// Unlike [`start`](Self::start), it never ends the process, which a test or another component may share: when the
    /// lease is lost, it returns the error once all reconciles and tasks have been cancelled. One that blocks its thread
    /// cannot be cancelled, and keeps it from returning; its writes are refused meanwhile.
    ///
    /// # Errors
    /// See [`ManagerError`].
    pub async fn start_until(self, stop: impl Future<Output = ()>) -> Result<(), Error> {
        self.run(stop, OnLoss::Return).await
    }

    async fn run(mut self, stop: impl Future<Output = ()>, on_loss: OnLoss) -> Result<(), Error> {
        self.check_controllers()?;
        self.args.check(cfg!(feature = "http2"))?;
        if let Some(error) = self.routes.first_error() {
            return Err(ManagerError::Webhook(error.to_owned()).into());
        }
        if self.args.enable_debug_endpoints {
            add_endpoints(&mut self.metrics_handlers, &self.debug, self.args.metrics_secure);
        }
        if let Some(error) = self.metrics_handlers.first_error() {
            return Err(ManagerError::Server {
                server: METRICS,
                reason: error.to_owned(),
            }
            .into());
        }
        if !self.args.enable_webhooks {
            self.routes = Routes::default();
        }
        self.lease.check()?;
        let grace = self.grace;
        let mut run = Run::prepare(self, on_loss);
        let ended = tokio::select! {
            failure = run.run_until_failure() => Err(failure),
            () = stop => Ok(()),
        };
        let grace = match &ended {
            // Another process may already be reconciling, so there is no grace period.
            Err(ManagerError::LeaderElectionLost(_)) => Duration::ZERO,
            _ => grace,
        };
        let stopped = run.shut_down(grace).await;
        Ok(ended.and(stopped)?)
    }

    fn check_controllers(&self) -> Result<(), ManagerError> {
        if let Some(name) = &self.duplicate_cluster {
            return Err(ManagerError::DuplicateCluster(name.clone()));
        }
        let mut names: Vec<&str> = self
            .controllers
            .iter()
            .map(|controller| controller.name())
            .collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(ManagerError::DuplicateController(pair[0].to_owned())),
            None => self
                .controllers
                .iter()
                .try_for_each(|controller| controller.check()),
        }
    }
}

#[cfg(test)]
mod tests;

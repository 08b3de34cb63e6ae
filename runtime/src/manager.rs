//! The manager: one process's controllers and what they share, from start to stop.
//!
//! Start: health probes, webhooks, caches, leader election, controllers and tasks; each waits for the one before. Stop: the
//! reverse, in a grace period that reconciles may use to end. A part that fails on the way stops all, with an
//! error that names it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use kube::client::ClientBuilder;
use kube::core::admission::AdmissionResponse;
use kube::{Client, Config};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::args::ManagerArgs;
use crate::cache::{Caches, NamedWatch, Trim};
use crate::controller::{AnyController, Controller, Surroundings, Wired};
use crate::error::{BoxError, Error, ManagerError};
use crate::leader_election::{Election, Elector, Leadership, pod_namespace};
use crate::logging;
use crate::metrics::{Endpoint, Metrics};
use crate::object::{Object, Watchable};
use crate::phase::Phase;
use crate::probes::Probes;
use crate::server::Server;
use crate::shutdown::{self, Shutdown, Stop};
use crate::signals::Signals;
use crate::task::Task;
use crate::tls::{Certificates, Files};
use crate::webhook::{self, AdmissionRequest, Routes, Webhook};

/// How long reconciles may go on after the manager was asked to stop.
const GRACE_PERIOD: Duration = Duration::from_secs(30);
/// How long a cache may take to deliver its first list.
const CACHE_SYNC_TIMEOUT: Duration = Duration::from_secs(120);
/// How long events that are still waiting may take to be sent at the end.
const EVENTS_GRACE: Duration = Duration::from_secs(5);
/// How long requests to the process may take to be answered at the end.
const SERVERS_GRACE: Duration = Duration::from_secs(5);

/// Runs controllers until the process is asked to end.
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
    /// How to reach the cluster, for clients of other tempers; absent when a client was given.
    config: Option<Config>,
    args: ManagerArgs,
    controllers: Vec<Box<dyn AnyController>>,
    tasks: Vec<Task>,
    routes: Routes,
    client_authorities: Option<PathBuf>,
    metrics: Metrics,
    probes: Probes,
    grace: Duration,
    sync_timeout: Duration,
    trim: Trim,
}

impl Manager {
    /// A manager for the cluster that the kubeconfig or the pod's service account names.
    ///
    /// `id` names the lease of the leader election; it must differ between operators in a namespace. Logs go
    /// to standard error as the arguments say, unless a tracing subscriber is installed already.
    ///
    /// # Errors
    /// When there is no usable cluster configuration, or `--log-level` is not one.
    pub async fn new(id: impl Into<String>, args: ManagerArgs) -> Result<Self, Error> {
        logging::init(&args)?;
        let config = Config::infer().await.map_err(ManagerError::from)?;
        let metrics = Metrics::new();
        let counted = metrics.count_requests(&config.cluster_url);
        let client = ClientBuilder::try_from(config.clone())?
            .with_layer(&counted)
            .build();
        Ok(Self {
            config: Some(config),
            metrics,
            ..Self::with_client(id, client, args)
        })
    }

    /// A manager that uses this client, and leaves logging alone; for tests.
    pub fn with_client(id: impl Into<String>, client: Client, args: ManagerArgs) -> Self {
        Self {
            id: id.into(),
            client,
            config: None,
            args,
            controllers: Vec::new(),
            tasks: Vec::new(),
            routes: Routes::default(),
            client_authorities: None,
            metrics: Metrics::new(),
            probes: Probes::default(),
            grace: GRACE_PERIOD,
            sync_timeout: CACHE_SYNC_TIMEOUT,
            trim: Trim::default(),
        }
    }

    /// Adds a controller.
    pub fn controller<K: Watchable, S: Send + Sync + 'static>(
        mut self,
        controller: Controller<K, S>,
    ) -> Self {
        self.controllers.push(Box::new(controller));
        self
    }

    /// Adds something that runs beside the controllers.
    pub fn task(mut self, task: Task) -> Self {
        self.tasks.push(task);
        self
    }

    /// Adds what the API server asks about a kind. With one or more of them, the manager serves them over HTTPS on
    /// `--webhook-port`, with the certificate in `--webhook-cert-path`, from before its caches are filled: the API
    /// server may need a conversion to answer them.
    pub fn webhook<K: Object + Serialize>(mut self, webhook: Webhook<K>) -> Self {
        webhook.route(&mut self.routes);
        self
    }

    /// Adds a webhook that reads requests itself, about objects of any kind, at this path, which begins with `/`.
    ///
    /// The answer is kube's: [`AdmissionResponse::from`] the request allows it, `deny` refuses, `with_patch` changes.
    pub fn raw_webhook<F, Fut>(mut self, path: impl Into<String>, answer: F) -> Self
    where
        F: Fn(AdmissionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = AdmissionResponse> + Send + 'static,
    {
        webhook::route_raw(path.into(), webhook::raw(answer), &mut self.routes);
        self
    }

    /// Lets only those ask webhooks who have a certificate from an authority in this file (PEM). The API server has
    /// to be [told] to show one.
    ///
    /// [told]: https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#authenticate-apiservers
    pub fn webhook_client_ca(mut self, path: impl Into<PathBuf>) -> Self {
        self.client_authorities = Some(path.into());
        self
    }

    /// Adds a check to `/healthz`, which decides whether the pod is restarted. It must not depend on the
    /// cluster, or an outage restarts every pod.
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

    /// Adds a check to `/readyz`, which decides whether the pod gets traffic. There is one already: `caches`
    /// fails until the caches are filled.
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

    /// How long reconciles may go on after the manager was asked to stop; 30 s unless said otherwise.
    pub fn grace_period(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How long a cache may take to deliver its first list; 2 min unless said otherwise.
    ///
    /// Until then a watch that fails, for want of a CRD or a permission, is tried again.
    pub fn cache_sync_timeout(mut self, timeout: Duration) -> Self {
        self.sync_timeout = timeout;
        self
    }

    /// Keeps `metadata.managedFields` of cached objects: who applied which field. It is dropped unless this is
    /// called, because it is often the larger half of an object.
    pub fn keep_managed_fields(mut self) -> Self {
        self.trim.managed_fields = false;
        self
    }

    /// Keeps the annotation `kubectl.kubernetes.io/last-applied-configuration` of cached objects. It is dropped
    /// unless this is called: it holds the whole object once more. A controller that replaces whole objects that
    /// it took from a cache needs it, or takes it away from `kubectl apply`.
    pub fn keep_last_applied(mut self) -> Self {
        self.trim.last_applied = false;
        self
    }

    /// The manager's client.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// What is counted, to add metrics of the operator's own.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Runs until SIGTERM or SIGINT, and then until running reconciles have ended.
    ///
    /// A second signal ends the process at once, with status 1.
    ///
    /// # Errors
    /// See [`ManagerError`]. The caller should let the process end with a status that says so.
    pub async fn start(self) -> Result<(), Error> {
        let mut signals = Signals::install()?;
        let (stop, shutdown) = shutdown::channel();
        let told_twice = async {
            let signal = signals.next().await;
            tracing::info!("{signal} received: stopping; send it again to stop at once");
            stop.now();
            signals.next().await
        };
        tokio::select! {
            ended = self.start_until(shutdown.requested()) => ended,
            signal = told_twice => {
                tracing::warn!("{signal} received again: stopping at once");
                std::process::exit(1)
            }
        }
    }

    /// Runs until `stop` resolves, and then until running reconciles have ended.
    ///
    /// # Errors
    /// See [`ManagerError`].
    pub async fn start_until(self, stop: impl Future<Output = ()>) -> Result<(), Error> {
        self.check_names()?;
        if let Some(mistake) = self.routes.mistake() {
            return Err(ManagerError::Webhook(mistake.to_owned()).into());
        }
        let grace = self.grace;
        let mut run = Run::prepare(self);
        let ended = tokio::select! {
            failure = run.up() => Err(failure),
            () = stop => Ok(()),
        };
        let grace = match &ended {
            // Another process may be reconciling already.
            Err(ManagerError::LeaderElectionLost(_)) => Duration::ZERO,
            _ => grace,
        };
        let stopped = run.down(grace).await;
        Ok(ended.and(stopped)?)
    }

    fn check_names(&self) -> Result<(), ManagerError> {
        let mut names: Vec<&str> = self
            .controllers
            .iter()
            .map(|controller| controller.name())
            .collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(ManagerError::DuplicateController(pair[0].to_owned())),
            None => Ok(()),
        }
    }
}

/// Where the certificate of the webhook server is; controller-runtime's folder unless the flags name another.
fn webhook_files(args: &ManagerArgs) -> Files {
    let given = args
        .webhook_cert_path
        .as_deref()
        .filter(|folder| *folder != Path::new(""));
    let folder = given.map_or_else(
        || std::env::temp_dir().join("k8s-webhook-server/serving-certs"),
        Path::to_owned,
    );
    Files {
        certificate: folder.join(&args.webhook_cert_name),
        key: folder.join(&args.webhook_cert_key),
    }
}

/// A manager at work: what there is to start, and what was started.
struct Run {
    id: String,
    client: Client,
    config: Option<Config>,
    args: ManagerArgs,
    metrics: Metrics,
    probes: Probes,
    /// Whether the caches are filled.
    ready: Arc<AtomicBool>,
    routes: Option<Routes>,
    client_authorities: Option<PathBuf>,
    leadership: Option<Leadership>,
    sync_timeout: Duration,
    caches: Caches,
    waiting: Vec<Wired>,
    tasks: Vec<Task>,
    close_queues: Vec<Box<dyn Fn() + Send + Sync>>,
    stop_tasks: Stop,
    tasks_stopped: Shutdown,
    stop_events: Stop,
    stop_servers: Stop,
    servers_stopped: Shutdown,
    phases: Phases,
}

/// The phases, in the order in which they start.
struct Phases {
    servers: Phase,
    events: Phase,
    watches: Phase,
    /// Controllers and tasks.
    work: Phase,
    /// Watches that are to be run; caches send them.
    to_watch: mpsc::UnboundedReceiver<NamedWatch>,
}

impl Phases {
    fn new(to_watch: mpsc::UnboundedReceiver<NamedWatch>) -> Self {
        Self {
            servers: Phase::default(),
            events: Phase::default(),
            watches: Phase::default(),
            work: Phase::default(),
            to_watch,
        }
    }

    /// Resolves when any part ends, none of which should before it is asked to. Meanwhile it runs the watches of
    /// caches that come to be.
    async fn failed(&mut self) -> ManagerError {
        loop {
            tokio::select! {
                failure = self.servers.failed() => return failure,
                failure = self.events.failed() => return failure,
                failure = self.watches.failed() => return failure,
                failure = self.work.failed() => return failure,
                Some((name, watch)) = self.to_watch.recv() => self.watches.spawn(name, watch.map(Ok)),
            }
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.caches.close();
    }
}

impl Run {
    fn prepare(manager: Manager) -> Self {
        let Manager {
            id,
            client,
            config,
            args,
            controllers,
            tasks,
            routes,
            client_authorities,
            metrics,
            mut probes,
            grace: _,
            sync_timeout,
            trim,
        } = manager;
        let (stop_tasks, tasks_stopped) = shutdown::channel();
        let (stop_events, events_stopped) = shutdown::channel();
        let (stop_servers, servers_stopped) = shutdown::channel();
        let (caches, to_watch) = Caches::new(client.clone(), args.namespaces(), trim);
        let mut waiting = Vec::new();
        for controller in controllers {
            waiting.push(controller.wire(&Surroundings {
                client: client.clone(),
                caches: &caches,
                metrics: metrics.clone(),
                stop_events: events_stopped.clone(),
            }));
        }
        let ready = Arc::new(AtomicBool::new(false));
        let filled = Arc::clone(&ready);
        probes.add_readyz("caches", move || {
            let filled = filled.load(Ordering::Acquire);
            std::future::ready(if filled {
                Ok(())
            } else {
                Err("the caches are not filled yet")
            })
        });
        let (close_queues, phases) = (Vec::new(), Phases::new(to_watch));
        Self {
            id,
            client,
            config,
            args,
            metrics,
            probes,
            ready,
            routes: Some(routes).filter(|routes| !routes.is_empty()),
            client_authorities,
            leadership: None,
            sync_timeout,
            caches,
            waiting,
            tasks,
            close_queues,
            stop_tasks,
            tasks_stopped,
            stop_events,
            stop_servers,
            servers_stopped,
            phases,
        }
    }

    /// Starts one phase after the other, and returns only when a part has failed.
    async fn up(&mut self) -> ManagerError {
        match self.start_phases().await {
            Ok(()) => {}
            Err(failure) => return failure,
        }
        let lost = self.leadership.as_ref().map(Leadership::lost);
        tokio::select! {
            failure = self.phases.failed() => failure,
            Some(lost) = async { Some(lost?.await) } => ManagerError::LeaderElectionLost(lost.to_string()),
        }
    }

    async fn start_phases(&mut self) -> Result<(), ManagerError> {
        self.start_servers().await?;
        self.start_webhooks().await?;
        self.fill_caches().await?;
        self.ready.store(true, Ordering::Release);
        if self.args.leader_elect {
            self.start_work(true);
            self.become_leader().await?;
        }
        self.start_work(false);
        Ok(())
    }

    /// Waits until this process holds the lease; meanwhile its caches are kept up to date, and probes answered.
    async fn become_leader(&mut self) -> Result<(), ManagerError> {
        let namespace = self.args.leader_election_namespace.clone().or_else(pod_namespace);
        let namespace = namespace.unwrap_or_else(|| self.client.default_namespace().to_owned());
        let election = Election::new(self.id.clone(), namespace);
        let elector = match &self.config {
            Some(config) => Elector::with_config(election, config.clone()),
            None => Ok(Elector::with_client(election, self.client.clone())),
        };
        let elector = elector.map_err(|error| ManagerError::Part {
            part: "leader election".to_owned(),
            reason: error.to_string(),
        })?;
        let leads = self.metrics.leader(&self.id);
        tokio::select! {
            leadership = elector.acquire() => {
                leads.set(1.0);
                self.leadership = Some(leadership);
                Ok(())
            }
            failure = self.phases.failed() => Err(failure),
        }
    }

    /// Starts what answers from outside; it has something to say as long as the process runs.
    async fn start_servers(&mut self) -> Result<(), ManagerError> {
        const PROBES: &str = "the health probes";
        const METRICS: &str = "the metrics server";
        let address = &self.args.health_probe_bind_address;
        let server = Server::bind(address).await.map_err(|error| ManagerError::Server {
            server: PROBES,
            reason: format!("--health-probe-bind-address: {error}"),
        });
        if let Some(server) = server? {
            if let Ok(address) = server.address() {
                tracing::info!(%address, "serving health probes");
            }
            let serving = self
                .probes
                .clone()
                .serve(server, self.servers_stopped.clone().requested());
            self.phases.servers.spawn(PROBES, serving.map(Ok));
        }
        let endpoint = Endpoint::bind(&self.args, self.metrics.clone(), self.client.clone()).await;
        let endpoint = endpoint.map_err(|error| ManagerError::Server {
            server: METRICS,
            reason: error.to_string(),
        });
        if let Some(endpoint) = endpoint? {
            if let Ok(address) = endpoint.address() {
                tracing::info!(%address, "serving metrics");
            }
            let serving = endpoint.serve(self.servers_stopped.clone().requested());
            self.phases.servers.spawn(METRICS, serving.map(Ok));
        }
        Ok(())
    }

    /// Starts what the API server asks. It comes before the caches: to list a kind of several versions, the API
    /// server may have to ask for a conversion.
    async fn start_webhooks(&mut self) -> Result<(), ManagerError> {
        const WEBHOOKS: &str = "the webhook server";
        let Some(routes) = self.routes.take() else {
            return Ok(());
        };
        let failed = |reason: String| ManagerError::Server {
            server: WEBHOOKS,
            reason,
        };
        let files = webhook_files(&self.args);
        let (certificates, watch) = Certificates::from_files(files, self.metrics.clone())
            .map_err(|error| failed(format!("--webhook-cert-path: {error}")))?;
        let tls = certificates.acceptor_for(self.client_authorities.as_deref());
        let tls = tls.map_err(|error| failed(error.to_string()))?;
        let server = Server::bind(&format!(":{}", self.args.webhook_port)).await;
        let server = server.map_err(|error| failed(format!("--webhook-port: {error}")))?;
        let Some(server) = server else {
            return Ok(());
        };
        if let Ok(address) = server.address() {
            tracing::info!(%address, "serving webhooks");
        }
        let handler = routes.into_handler(&self.metrics);
        let serving = server.serve(Some(tls), handler, self.servers_stopped.clone().requested());
        let serving = async move {
            tokio::select! {
                () = serving => {}
                () = watch => {}
            }
            Ok(())
        };
        self.phases.servers.spawn(WEBHOOKS, serving);
        Ok(())
    }

    /// Starts the watches, and waits until each has delivered its first list to all controllers.
    async fn fill_caches(&mut self) -> Result<(), ManagerError> {
        self.caches.start();
        let timeout = self.sync_timeout;
        tokio::select! {
            filled = tokio::time::timeout(timeout, self.caches.synced()) => match filled {
                Ok(()) => Ok(()),
                Err(_) => {
                    let (kind, last_error) = self.caches.first_unsynced().unwrap_or_default();
                    Err(ManagerError::CacheSync { kind, timeout, last_error })
                }
            },
            failure = self.phases.failed() => Err(failure),
        }
    }

    /// Starts controllers and tasks: those that run in every replica, or all that are left.
    fn start_work(&mut self, everywhere_only: bool) {
        let wanted = |everywhere: bool| everywhere || !everywhere_only;
        let controllers = self.waiting.extract_if(.., |wired| wanted(wired.everywhere));
        for wired in controllers.collect::<Vec<_>>() {
            self.start_controller(wired);
        }
        let tasks = self.tasks.extract_if(.., |task| wanted(task.runs_everywhere()));
        for task in tasks {
            tracing::info!(task = task.name(), "starting task");
            let name = format!("task {}", task.name());
            self.phases.work.spawn(name, task.run(self.tasks_stopped.clone()));
        }
    }

    fn start_controller(&mut self, wired: Wired) {
        let Wired {
            name,
            everywhere: _,
            concurrency,
            workers,
            close_queue,
            events,
        } = wired;
        tracing::info!(controller = name, workers = concurrency, "starting controller");
        self.close_queues.push(close_queue);
        self.phases
            .events
            .spawn(format!("the event publisher of {name}"), events.map(Ok));
        for worker in workers {
            self.phases
                .work
                .spawn(format!("controller {name}"), worker.map(Ok));
        }
    }

    /// Stops one phase after the other, in the reverse order.
    async fn down(&mut self, grace: Duration) -> Result<(), ManagerError> {
        let deadline = Instant::now() + grace;
        for close in &self.close_queues {
            close();
        }
        self.stop_tasks.now();
        let drained = self.phases.work.finish(deadline, grace).await;
        self.phases.watches.abort().await;
        self.stop_events.now();
        if let Err(error) = self
            .phases
            .events
            .finish(deadline.min(Instant::now() + EVENTS_GRACE), EVENTS_GRACE)
            .await
        {
            tracing::warn!("some events were not sent: {error}");
        }
        if let Some(leadership) = self.leadership.take() {
            self.metrics.leader(&self.id).set(0.0);
            // Whoever did not drain may still act: the lease is left to expire.
            if drained.is_ok() {
                leadership.release().await;
            }
        }
        self.stop_servers.now();
        let servers = self
            .phases
            .servers
            .finish(Instant::now() + SERVERS_GRACE, SERVERS_GRACE)
            .await;
        if let Err(error) = servers {
            tracing::warn!("some requests were cut off: {error}");
        }
        drained
    }
}

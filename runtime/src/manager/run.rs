//! A manager at work: its phases, one after the other, and back.
//!
//! Start: health probes and metrics, webhooks, caches, leader election, controllers and tasks; each waits for the one before.
//! Stop: the reverse, in a grace period that reconciles may use to end. A part that fails on the way stops all, with
//! an error that names it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use kube::{Client, Config};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Manager;
use crate::args::ManagerArgs;
use crate::cache::{Caches, NamedWatch};
use crate::controller::{Surroundings, Wired};
use crate::error::ManagerError;
use crate::leader_election::{Election, Elector, Leadership, LeaseTimes, pod_namespace};
use crate::metrics::{Endpoint, Metrics};
use crate::phase::Phase;
use crate::probes::Probes;
use crate::server::Server;
use crate::shutdown::{self, Shutdown, Stop};
use crate::task::Task;
use crate::webhook::{self, ManagedCertificate, Routes};

/// How long events that are still waiting may take to be sent at the end.
const EVENTS_GRACE: Duration = Duration::from_secs(5);
/// How long requests to the process may take to be answered at the end.
const SERVERS_GRACE: Duration = Duration::from_secs(5);

/// A manager at work: what there is to start, and what was started.
pub(super) struct Run {
    id: String,
    client: Client,
    config: Option<Config>,
    args: ManagerArgs,
    metrics: Metrics,
    probes: Probes,
    /// Whether the caches are filled.
    ready: Arc<AtomicBool>,
    routes: Option<Routes>,
    webhook_readiness: webhook::server::Readiness,
    client_authorities: Option<PathBuf>,
    webhook_certificate: Option<ManagedCertificate>,
    leadership: Option<Leadership>,
    sync_timeout: Duration,
    lease: LeaseTimes,
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
    pub(super) fn prepare(manager: Manager) -> Self {
        let Manager {
            id,
            client,
            config,
            args,
            controllers,
            tasks,
            routes,
            client_authorities,
            webhook_certificate,
            metrics,
            mut probes,
            grace: _,
            sync_timeout,
            lease,
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
        // The API server reaches the conversions of a process that is ready; one that waited for what it has to
        // convert itself would never be.
        if !routes.converts() {
            let filled = Arc::clone(&ready);
            probes.add_readyz("caches", move || {
                let filled = filled.load(Ordering::Acquire);
                std::future::ready(if filled {
                    Ok(())
                } else {
                    Err("caches are not synced yet")
                })
            });
        }
        let webhook_readiness = webhook::server::Readiness::default();
        if !routes.is_empty() {
            let readiness = webhook_readiness.clone();
            probes.add_readyz("webhook", move || {
                let readiness = readiness.clone();
                async move { readiness.check().await }
            });
        }
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
            webhook_readiness,
            client_authorities,
            webhook_certificate,
            leadership: None,
            sync_timeout,
            lease,
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
    pub(super) async fn up(&mut self) -> ManagerError {
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
        let election = Election::new(self.id.clone(), namespace, self.lease);
        let elector = match &self.config {
            Some(config) => Elector::with_config(election, config.clone(), &self.metrics),
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
        const PROBES: &str = "the health probe server";
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
        let Some(routes) = self.routes.take() else {
            return Ok(());
        };
        let setup = webhook::server::Setup {
            args: &self.args,
            certificate: self.webhook_certificate.take(),
            client_authorities: self.client_authorities.as_deref(),
            client: self.client.clone(),
            metrics: self.metrics.clone(),
            timeout: self.sync_timeout,
        };
        let stopped = self.servers_stopped.clone();
        let started = tokio::select! {
            started = webhook::server::start(routes, setup, &self.webhook_readiness, stopped) => started?,
            failure = self.phases.failed() => return Err(failure),
        };
        let injected = started.injected(self.sync_timeout);
        self.phases
            .servers
            .spawn(webhook::server::NAME, started.serving.map(Ok));
        tokio::select! {
            injected = injected => injected,
            failure = self.phases.failed() => Err(failure),
        }
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
            .spawn(format!("event publisher of {name}"), events.map(Ok));
        for worker in workers {
            self.phases.work.spawn(format!("controller {name}"), worker);
        }
    }

    /// Stops one phase after the other, in the reverse order.
    pub(super) async fn down(&mut self, grace: Duration) -> Result<(), ManagerError> {
        let deadline = Instant::now() + grace;
        self.phases.to_watch.close();
        for close in &self.close_queues {
            close();
        }
        self.stop_tasks.now();
        let drained = self.drain(deadline, grace).await;
        self.phases.watches.abort().await;
        self.stop_events.now();
        if let Err(error) = self
            .phases
            .events
            .finish(deadline.min(Instant::now() + EVENTS_GRACE), EVENTS_GRACE)
            .await
        {
            tracing::warn!(%error, "some events were not sent");
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
            tracing::warn!(%error, "some requests were not answered");
        }
        drained
    }

    /// Waits for the work to end; when the lease is lost meanwhile, another process may begin with it, and this one
    /// must not go on.
    async fn drain(&mut self, deadline: Instant, grace: Duration) -> Result<(), ManagerError> {
        let lost = self.leadership.as_ref().map(Leadership::lost);
        tokio::select! {
            drained = self.phases.work.finish(deadline, grace) => drained,
            Some(lost) = async { Some(lost?.await) } => {
                self.phases.work.abort().await;
                Err(ManagerError::LeaderElectionLost(lost.to_string()))
            }
        }
    }
}

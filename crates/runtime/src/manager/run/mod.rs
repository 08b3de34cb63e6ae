//! Runs a manager. Its components are started in phases, and stopped in reverse order.
//!
//! Each phase waits for the previous one to complete:
//!
//! 1. Health probes and metrics.
//! 2. Webhooks. They must precede the caches, because the API server may need a conversion by this
//!    process to list the objects.
//! 3. Caches.
//! 4. Controllers and tasks that run on every replica.
//! 5. Leader election.
//! 6. All other controllers and tasks.
//!
//! On shutdown, queues are closed and reconciles get a grace period to finish. Then watches are
//! stopped and the controllers' events are sent. The lease is only released if no work is left.
//! Finally the servers are stopped, and the events of webhooks and tasks are sent. If a Service may
//! still lead to our webhooks, they and the watches are stopped a few seconds later.
//!
//! If a component fails, everything is stopped with an error that contains its name.

mod lease;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use kube::runtime::events::Reporter;
use kube::{Client, Config};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::Manager;
use crate::args::ManagerArgs;
use crate::cache::{Caches, NamedWatch};
use crate::client::ClientSettings;
use crate::cluster::{ClusterPart, ClusterServices, Clusters};
use crate::controller::{ManagerResources, Polls, PreparedController};
use crate::deadline::deadline_after;
use crate::error::{Error, ManagerError};
use crate::events::WaitingEvents;
use crate::leader_election::{Fence, Leadership, LeaseTimes, pod_namespace};
use crate::metrics::Metrics;
use crate::metrics_server::{Handlers, MetricsServer};
use crate::object::Key;
use crate::phase::Phase;
use crate::probes::Probes;
use crate::queue::Workqueue;
use crate::server::{Server, ServerThreads};
use crate::shards::{Membership, Shards};
use crate::shutdown::{Shutdown, Stop, new_shutdown};
use crate::task::Task;
use crate::webhook::{self, ManagedCertificate, Routes};

/// Timeout for sending queued events on shutdown.
const EVENTS_GRACE: Duration = Duration::from_secs(5);
/// Grace period for pending requests to our servers on shutdown.
const SERVERS_GRACE: Duration = Duration::from_secs(5);
/// Replaces [`SERVERS_GRACE`] after losing the lease, when the process has to exit within a second.
const SERVERS_GRACE_AFTER_LOSS: Duration = Duration::from_millis(300);

/// What to do if the process is still running a second after losing the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnLoss {
    /// Exit, whatever is blocking the threads.
    Exit,
    /// Do nothing, because the process doesn't belong to the manager alone.
    Return,
}

pub(super) const METRICS: &str = "the metrics server";

/// A running manager, some of whose components may not be started yet.
pub(super) struct Run {
    id: String,
    client: Client,
    election_client: Client,
    config: Option<Config>,
    client_settings: ClientSettings,
    max_connections: usize,
    webhook_memory: Option<usize>,
    args: ManagerArgs,
    metrics: Metrics,
    metrics_handlers: Handlers,
    probes: Probes,
    /// Set once the caches have synced. Read by the check `caches` of `/readyz`.
    ready: Arc<AtomicBool>,
    routes: Option<Routes>,
    webhook_readiness: webhook::server::Readiness,
    serves_webhooks: bool,
    server_threads: ServerThreads,
    polls: Polls,
    client_authorities: Option<PathBuf>,
    webhook_certificate: Option<ManagedCertificate>,
    /// `None` if neither leader election nor sharding is enabled.
    fence: Option<Fence>,
    on_loss: OnLoss,
    leadership: Option<Leadership>,
    /// `None` if the operator isn't sharded.
    shards: Option<Shards>,
    membership: Option<Membership>,
    sync_timeout: Duration,
    stale_after: Duration,
    lease: LeaseTimes,
    caches: Caches,
    clusters: Clusters,
    /// Controllers that aren't started yet.
    controllers: Vec<PreparedController>,
    tasks: Vec<Task>,
    /// By name of the recorder.
    recorded: Vec<(String, WaitingEvents)>,
    /// Queues of the controllers that were started.
    queues: Vec<Arc<Workqueue<Key>>>,
    stop_tasks: Stop,
    tasks_stopped: Shutdown,
    stop_events: Stop,
    stop_recorders: Stop,
    recorders_stopped: Shutdown,
    stop_servers: Stop,
    servers_stopped: Shutdown,
    phases: Phases,
}

/// Tasks of each phase, in the order in which phases are started.
struct Phases {
    recorders: Phase,
    servers: Phase,
    events: Phase,
    watches: Phase,
    work: Phase,
    /// Receives the watches of newly created caches.
    to_watch: mpsc::UnboundedReceiver<NamedWatch>,
    /// Receives the parts of additional clusters.
    cluster_parts: mpsc::UnboundedReceiver<ClusterPart>,
}

impl Phases {
    fn new(
        to_watch: mpsc::UnboundedReceiver<NamedWatch>,
        cluster_parts: mpsc::UnboundedReceiver<ClusterPart>,
    ) -> Self {
        Self {
            recorders: Phase::default(),
            servers: Phase::default(),
            events: Phase::default(),
            watches: Phase::default(),
            work: Phase::default(),
            to_watch,
            cluster_parts,
        }
    }

    /// Waits until any of the components exits, which must not happen before shutdown. Meanwhile,
    /// runs the watches of new caches and the parts of additional clusters.
    async fn failed(&mut self) -> ManagerError {
        loop {
            tokio::select! {
                biased;
                failure = self.recorders.failed() => return failure,
                failure = self.servers.failed() => return failure,
                failure = self.events.failed() => return failure,
                failure = self.watches.failed() => return failure,
                failure = self.work.failed() => return failure,
                Some((name, watch)) = self.to_watch.recv() => self.watches.spawn_finite(name, watch),
                Some(part) = self.cluster_parts.recv() => match part {
                    ClusterPart::Watches(name, watches) => self.watches.spawn_finite(name, watches),
                    ClusterPart::Events(name, events) => self.events.spawn_finite(name, events.map(Ok)),
                },
            }
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.caches.close();
        self.clusters.close();
        // Also stops the watchdog, in case no elector was ever started.
        if let Some(fence) = &self.fence {
            fence.close();
        }
    }
}

impl Run {
    pub(super) fn prepare(manager: Manager, on_loss: OnLoss) -> Self {
        let leader_client = manager.leader_client();
        let Manager {
            id,
            client,
            election_client,
            config,
            client_settings,
            max_connections,
            webhook_memory,
            args,
            controllers,
            clusters,
            duplicate_cluster: _,
            tasks,
            events,
            routes,
            client_authorities,
            webhook_certificate,
            metrics,
            metrics_handlers,
            debug,
            mut probes,
            grace: _,
            webhook_delay: _,
            sync_timeout,
            lease,
            fence,
            mut caches,
            early_caches,
            kinds,
            stale_after,
        } = manager;
        let (stop_tasks, tasks_stopped) = new_shutdown();
        let (stop_events, events_stopped) = new_shutdown();
        let (stop_recorders, recorders_stopped) = new_shutdown();
        let (stop_servers, servers_stopped) = new_shutdown();
        let (run, cluster_parts) = mpsc::unbounded_channel();
        clusters.provide(ClusterServices {
            own: client.clone(),
            metrics: metrics.clone(),
            caches: caches.clone(),
            client: client_settings.clone(),
            stale_after,
            run,
        });
        // Sharding only applies to the manager's own cluster, because controllers don't reconcile
        // objects in other clusters.
        let shards = args.shards.map(|_| Shards::new());
        caches.shards.clone_from(&shards);
        let (caches, to_watch) = Caches::new(client.clone(), args.namespaces(), caches);
        caches.add_early(early_caches);
        let (own, others) = (caches.stats(), clusters.stats());
        metrics.measure_caches(move || own().into_iter().chain(others()).collect());
        metrics.measure_clusters(clusters.connections());
        let polls = Polls::default();
        let resources = ManagerResources {
            polls: &polls,
            leader_client,
            client: client.clone(),
            fence: fence.clone(),
            caches: &caches,
            kinds,
            clusters: clusters.clone(),
            metrics: metrics.clone(),
            stop_events: events_stopped.clone(),
        };
        let controllers: Vec<PreparedController> = controllers
            .into_iter()
            .map(|controller| controller.prepare(&resources))
            .collect();
        if let Some(shards) = shards.clone() {
            let status = shards.clone();
            metrics.measure_shards(move || shards.status());
            debug.set_shards(move || status.status());
        }
        debug.set_watches(caches.status());
        debug.set_clusters(clusters.status());
        debug.set_servers_stopped(servers_stopped.clone());
        debug.add_queues(controllers.iter().map(PreparedController::debug_queue));
        let ready = Arc::new(AtomicBool::new(false));
        // With conversion webhooks, the `caches` check would deadlock: to list objects stored in a
        // different version, the API server has to call our webhook, and it only does so while this
        // Pod is ready.
        if !routes.has_conversions() {
            // The API server must be able to call our webhooks right after an outage.
            let any_counts = routes.is_empty();
            let (synced, find_unready) = (Arc::clone(&ready), caches.find_unready(stale_after, any_counts));
            probes.add_readyz("caches", move || {
                let problem = match synced.load(Ordering::Acquire) {
                    true => find_unready(),
                    false => Some("caches are not synced yet".to_owned()),
                };
                std::future::ready(problem.map_or(Ok(()), Err))
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
        let (queues, phases) = (Vec::new(), Phases::new(to_watch, cluster_parts));
        Self {
            id,
            client,
            election_client,
            config,
            client_settings,
            max_connections,
            webhook_memory,
            args,
            metrics,
            metrics_handlers,
            probes,
            ready,
            routes: Some(routes).filter(|routes| !routes.is_empty()),
            webhook_readiness,
            serves_webhooks: false,
            server_threads: ServerThreads::default(),
            polls,
            client_authorities,
            webhook_certificate,
            fence,
            on_loss,
            leadership: None,
            shards,
            membership: None,
            sync_timeout,
            stale_after,
            lease,
            caches,
            clusters,
            controllers,
            tasks,
            recorded: events,
            queues,
            stop_tasks,
            tasks_stopped,
            stop_events,
            stop_recorders,
            recorders_stopped,
            stop_servers,
            servers_stopped,
            phases,
        }
    }

    pub(super) async fn run_until_failure(&mut self) -> ManagerError {
        match self.start_phases().await {
            Ok(()) => {}
            Err(failure) => return failure,
        }
        let lost = self.lease_lost();
        tokio::select! {
            biased;
            failure = self.phases.failed() => failure,
            lost = lost => lost,
        }
    }

    async fn start_phases(&mut self) -> Result<(), ManagerError> {
        let selections = self.caches.check().and_then(|()| self.clusters.check());
        selections.map_err(|(kind, reason)| ManagerError::Selection { kind, reason })?;
        self.start_recorders();
        self.start_servers().await?;
        self.check_reachable().await?;
        self.start_webhooks().await?;
        self.sync_caches().await?;
        self.ready.store(true, Ordering::Release);
        if let Some(fence) = self.fence.clone() {
            // Start the work that doesn't need the lease.
            self.start_work(true);
            match self.shards.clone() {
                Some(shards) => self.join_ring(fence, shards).await?,
                None => self.become_leader(fence).await?,
            }
        }
        self.start_work(false);
        Ok(())
    }

    /// Checks that the API server responds. On a developer's machine, the cluster may not be
    /// running or the kubeconfig may be wrong, which is best reported immediately.
    async fn check_reachable(&mut self) -> Result<(), ManagerError> {
        // A Pod may be started before its node's network is ready, so let its caches retry until
        // their timeout. If the manager was created from a client, nothing is known about the
        // server.
        if self.config.is_none() || pod_namespace().is_some() {
            return Ok(());
        }
        let reachability = &self.client_settings.reachability;
        tokio::select! {
            biased;
            checked = reachability.check(&self.client) => checked.map_err(ManagerError::Unreachable),
            failure = self.phases.failed() => Err(failure),
        }
    }

    /// Starts publishing events from tasks and webhooks. Must come first, since webhooks may be
    /// called before controllers start.
    fn start_recorders(&mut self) {
        for (name, waiting) in std::mem::take(&mut self.recorded) {
            let reporter = Reporter::from(name.as_str());
            let stopped = self.recorders_stopped.clone().requested();
            let publisher = waiting.publish(self.client.clone(), reporter, stopped).map(Ok);
            // The publisher may exit at any time, since the operator can drop its recorder.
            self.phases
                .recorders
                .spawn_finite(format!("event publisher of {name}"), publisher);
        }
    }

    /// Starts the servers that run until the process exits.
    async fn start_servers(&mut self) -> Result<(), ManagerError> {
        const PROBES: &str = "the health probe server";
        let failed = |server: &'static str| {
            move |error: io::Error| ManagerError::Server {
                server,
                reason: error.to_string(),
            }
        };
        // If the runtime belongs to somebody else (e.g. a test), use no other.
        if self.on_loss == OnLoss::Exit {
            self.server_threads = ServerThreads::start().map_err(failed(PROBES))?;
        }
        let address = &self.args.health_probe_bind_address;
        let server = Server::bind(address).await.map_err(|error| ManagerError::Server {
            server: PROBES,
            reason: format!("--health-probe-bind-address: {error}"),
        });
        if let Some(server) = server? {
            if let Ok(address) = server.address() {
                tracing::info!(%address, "serving health probes");
            }
            let server = self.server_threads.adopt(server).map_err(failed(PROBES))?;
            let serving = self.probes.clone().serve(
                server.with_max_connections(self.max_connections),
                self.servers_stopped.clone().requested(),
            );
            let serving = self.server_threads.run(serving);
            self.phases.servers.spawn(PROBES, serving.map(Ok));
        }
        let server = MetricsServer::bind(&self.args, self.metrics.clone(), self.client.clone()).await;
        let server = server.map_err(|error| ManagerError::Server {
            server: METRICS,
            reason: error.to_string(),
        });
        if let Some(server) = server? {
            if let Ok(address) = server.address() {
                tracing::info!(%address, "serving metrics");
            }
            let server = server
                .with_max_connections(self.max_connections)
                .with_handlers(self.metrics_handlers.clone())
                .on_threads(&self.server_threads)
                .map_err(failed(METRICS))?;
            let serving = server.serve(self.servers_stopped.clone().requested());
            let serving = self.server_threads.run(serving);
            self.phases.servers.spawn(METRICS, serving.map(Ok));
        }
        Ok(())
    }

    /// Starts the webhook server. Must precede the caches, because the API server may need a
    /// conversion in order to list a kind with multiple versions.
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
            max_connections: self.max_connections,
            memory: self.webhook_memory,
            threads: self.server_threads.clone(),
        };
        let stopped = self.servers_stopped.clone();
        let started = tokio::select! {
            biased;
            started = webhook::server::start_server(routes, setup, &self.webhook_readiness, stopped) => started?,
            failure = self.phases.failed() => return Err(failure),
        };
        self.serves_webhooks = true;
        let injected = started.injected(self.sync_timeout);
        self.phases
            .servers
            .spawn(webhook::server::NAME, started.serving.map(Ok));
        tokio::select! {
            biased;
            injected = injected => injected,
            failure = self.phases.failed() => Err(failure),
        }
    }

    /// Starts all watches, and waits until controllers have received the initial list of each.
    async fn sync_caches(&mut self) -> Result<(), ManagerError> {
        self.caches.start();
        let report = self.caches.clone().report_stale(self.stale_after);
        let report = report.map(|()| Err(Error::new("the report has ended")));
        self.phases.watches.spawn("the report on watches", report);
        self.clusters.start();
        let timeout = self.sync_timeout;
        let all = async {
            self.caches.synced().await;
            self.clusters.required_synced().await;
        };
        tokio::select! {
            biased;
            synced = tokio::time::timeout(timeout, all) => synced.map_err(|_| self.describe_unsynced()),
            failure = self.phases.failed() => Err(failure),
        }
    }

    /// Returns an error about a cache that hasn't synced in time or, failing that, a required
    /// cluster.
    fn describe_unsynced(&self) -> ManagerError {
        let timeout = self.sync_timeout;
        match (self.caches.first_unsynced(), self.clusters.first_unsynced()) {
            (None, Some((cluster, reason))) => ManagerError::ClusterSync {
                cluster,
                timeout,
                reason,
            },
            (unsynced, _) => {
                let (kind, last_error) = unsynced.unwrap_or_default();
                ManagerError::CacheSync {
                    kind,
                    timeout,
                    last_error,
                }
            }
        }
    }

    /// Starts the controllers and tasks that run on every replica, or all that are left.
    fn start_work(&mut self, everywhere_only: bool) {
        let is_included = |everywhere: bool| everywhere || !everywhere_only;
        let controllers = self
            .controllers
            .extract_if(.., |controller| is_included(controller.everywhere));
        for controller in controllers.collect::<Vec<_>>() {
            self.start_controller(controller);
        }
        let tasks = self
            .tasks
            .extract_if(.., |task| is_included(task.runs_everywhere()));
        for task in tasks {
            let name = format!("task {}", task.name());
            let shards = self.shards.as_ref().filter(|_| !task.runs_everywhere());
            let running = run_task(task, shards.cloned(), self.tasks_stopped.clone());
            self.phases.work.spawn(name, running);
        }
    }

    fn start_controller(&mut self, controller: PreparedController) {
        self.polls.watch();
        let PreparedController {
            name,
            concurrency,
            workers,
            events,
            queue,
            ..
        } = controller;
        tracing::info!(controller = name, workers = concurrency, "starting controller");
        self.queues.push(queue);
        self.phases
            .events
            .spawn(format!("event publisher of {name}"), events.map(Ok));
        for worker in workers {
            self.phases.work.spawn(format!("controller {name}"), worker);
        }
    }

    /// Webhooks are served for at least `webhook_delay`.
    pub(super) async fn shut_down(
        &mut self,
        grace: Duration,
        webhook_delay: Duration,
    ) -> Result<(), ManagerError> {
        let begun = Instant::now();
        let deadline = deadline_after(begun, grace);
        self.webhook_readiness.leave();
        if let Some(membership) = &self.membership {
            // Other replicas can already take over idle ranges while our reconciles are finishing.
            membership.begin_to_leave();
        }
        // Refuse new watches and clusters from now on.
        self.phases.to_watch.close();
        self.phases.cluster_parts.close();
        // Workers exit after their current reconcile, leaving the other keys in the queue.
        for queue in &self.queues {
            queue.close();
        }
        self.stop_tasks.now();
        let drained = self.drain_work(deadline, grace).await;
        let serves_webhooks = self.serves_webhooks && !webhook_delay.is_zero();
        // Webhooks may read the caches.
        if !serves_webhooks {
            self.phases.watches.abort().await;
        }
        self.stop_events.now();
        if let Err(error) = self
            .phases
            .events
            // Sending events counts towards the grace period.
            .finish(deadline.min(Instant::now() + EVENTS_GRACE), EVENTS_GRACE)
            .await
        {
            tracing::warn!(%error, "failed to send some events");
        }
        let is_lost = self.has_lost_lease();
        if let Some(leadership) = self.leadership.take() {
            self.metrics.leader(&self.id).set(0.0);
            // If a reconcile hasn't finished, one of its requests may still be in flight. Let the
            // lease expire then.
            match drained {
                _ if is_lost => leadership.finish_loss().await,
                Ok(()) => leadership.release().await,
                Err(_) => {}
            }
        }
        // Likewise, let the Lease of a sharded replica expire if work is left.
        if let (Some(membership), false, Ok(())) = (self.membership.take(), is_lost, &drained) {
            membership.leave().await;
        }
        if serves_webhooks {
            if !is_lost {
                sleep_until(deadline.min(deadline_after(begun, webhook_delay))).await;
            }
            self.phases.watches.abort().await;
        }
        self.stop_servers.now();
        let grace = if is_lost {
            SERVERS_GRACE_AFTER_LOSS
        } else {
            SERVERS_GRACE
        };
        let servers = self.phases.servers.finish(Instant::now() + grace, grace).await;
        if let Err(error) = servers {
            tracing::warn!(%error, "closed connections with requests in progress");
        }
        self.stop_recorders.now();
        let grace = if is_lost {
            SERVERS_GRACE_AFTER_LOSS
        } else {
            EVENTS_GRACE
        };
        if let Err(error) = self.phases.recorders.finish(Instant::now() + grace, grace).await {
            tracing::warn!(%error, "failed to send some events");
        }
        drained
    }

    /// Waits until controllers and tasks have finished. If the lease is lost meanwhile, cancels
    /// them, because another process may already do the same work.
    async fn drain_work(&mut self, deadline: Instant, grace: Duration) -> Result<(), ManagerError> {
        let lost = self.lease_lost();
        tokio::select! {
            biased;
            drained = self.phases.work.finish(deadline, grace) => drained,
            lost = lost => {
                self.phases.work.abort().await;
                Err(lost)
            }
        }
    }
}

/// Runs a task. In a sharded operator, it waits until this replica owns the range of tasks, and
/// keeps that range until it ends.
async fn run_task(task: Task, shards: Option<Shards>, stopped: Shutdown) -> Result<(), Error> {
    let guard = match &shards {
        Some(shards) => {
            tokio::select! {
                biased;
                () = stopped.clone().requested() => return Ok(()),
                guard = shards.enter_tasks() => Some(guard),
            }
        }
        None => None,
    };
    tracing::info!(task = task.name(), "starting task");
    let ended = task.run(stopped).await;
    drop(guard);
    ended
}

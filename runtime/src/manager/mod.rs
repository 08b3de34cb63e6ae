//! The manager: one process's controllers and what they share, from start to stop.
//!
//! Here is what an operator says of its manager; what comes of it is in [`run`].

mod run;

use std::path::PathBuf;
use std::time::Duration;

use kube::core::admission::AdmissionResponse;
use kube::{Client, Config};
use serde::Serialize;

use crate::args::ManagerArgs;
use crate::cache::Trim;
use crate::client;
use crate::controller::{AnyController, Controller};
use crate::error::{BoxError, Error, ManagerError};
use crate::leader_election::LeaseTimes;
use crate::logging;
use crate::metrics::Metrics;
use crate::object::{Object, Watchable};
use crate::probes::Probes;
use crate::shutdown;
use crate::signals::Signals;
use crate::task::Task;
use crate::webhook::{self, AdmissionRequest, ManagedCertificate, Routes, Webhook};

use run::Run;

/// How long reconciles may go on after the manager was asked to stop.
const GRACE_PERIOD: Duration = Duration::from_secs(30);
/// How long a cache may take to deliver its first list.
const CACHE_SYNC_TIMEOUT: Duration = Duration::from_secs(120);

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
    webhook_certificate: Option<ManagedCertificate>,
    metrics: Metrics,
    probes: Probes,
    grace: Duration,
    sync_timeout: Duration,
    lease: LeaseTimes,
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
        Self::with_config(id, config, args)
    }

    /// A manager for the cluster of this configuration, which leaves logging alone.
    ///
    /// Leader election has a client of its own, as with [`new`](Self::new), so that it neither waits behind other
    /// requests nor repeats its own. The manager decides itself how long to wait for answers and which requests to
    /// repeat, whatever `config` says of that; see [`client`](Self::client).
    ///
    /// # Errors
    /// When no client can be made from the configuration.
    pub fn with_config(id: impl Into<String>, config: Config, args: ManagerArgs) -> Result<Self, Error> {
        let metrics = Metrics::new();
        let client = client::of_manager(config.clone(), &metrics)?;
        Ok(Self {
            config: Some(config),
            metrics,
            ..Self::with_client(id, client, args)
        })
    }

    /// A manager that uses this client, also for leader election, and leaves logging alone: for tests, and for clients
    /// with layers of their own.
    ///
    /// Its requests are not counted, unless the client was built to: see
    /// [`Metrics::count_requests`](Metrics::count_requests).
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
            webhook_certificate: None,
            metrics: Metrics::new(),
            probes: Probes::default(),
            grace: GRACE_PERIOD,
            sync_timeout: CACHE_SYNC_TIMEOUT,
            lease: LeaseTimes::default(),
            trim: Trim::default(),
        }
    }

    /// Counts in these metrics. What was added to those the manager had before, it does not take over.
    pub fn with_metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = metrics;
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

    /// Adds something that runs beside the controllers.
    pub fn task(mut self, task: Task) -> Self {
        self.tasks.push(task);
        self
    }

    /// Adds what the API server asks about a kind. With one or more of them, the manager serves them over HTTPS on
    /// `--webhook-port`, with the certificate in `--webhook-cert-path`, from before its caches are filled: the API
    /// server may need a conversion to answer them. `--enable-webhooks=false` leaves them out.
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

    /// Makes the certificate of the webhooks here, and tells the API server to trust it: neither files nor
    /// cert-manager are needed. `--webhook-cert-service` does the same.
    ///
    /// With `--webhook-cert-path` the files there are used all the same, so that one operator runs both ways; so do
    /// the arguments of the test environment.
    pub fn webhook_certificate(mut self, certificate: ManagedCertificate) -> Self {
        self.webhook_certificate = Some(certificate);
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

    /// Adds a check to `/readyz`, which decides whether the pod gets traffic. There are two already: `caches`
    /// fails until the caches are filled, and `webhook`, where webhooks are served, while their server does not shake
    /// hands. An operator with conversions has no `caches`: they may need a conversion to fill, and the API server
    /// reaches only those who are ready.
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

    /// How long other replicas leave the lease alone when it is not renewed; 15 s unless said otherwise. The lease
    /// carries it in whole seconds.
    ///
    /// It is how long the work rests after the leader was killed. It must be longer than the
    /// [renew deadline](Self::renew_deadline).
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.lease.duration = duration;
        self
    }

    /// How long the leader tries to renew its lease before it ends, with an error; 10 s unless said otherwise.
    ///
    /// It is how long the API server may be away. It must be longer than 1.2 times the
    /// [retry period](Self::retry_period).
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.lease.renew_deadline = deadline;
        self
    }

    /// How long the leader waits between two renewals, and others, with up to 1.2 times more, between two looks at
    /// the lease; 2 s unless said otherwise.
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.lease.retry_period = period;
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
    ///
    /// It gives an answer up when nothing has come for 95 s, or a hung API server would hang reconciles for good; what
    /// may be silent for longer (`log`, `exec`, `attach`, `portforward`, `proxy`) it waits for. Requests answered with 429, 503 or 504
    /// it repeats up to six times, after what `Retry-After` says or some seconds.
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
    /// A manager that was started is gone: it can neither be started twice nor be given more to do.
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
    /// See [`ManagerError`]. The caller should let the process end with a status that says so.
    pub async fn start(self) -> Result<(), Error> {
        let mut signals = Signals::install()?;
        let (stop, shutdown) = shutdown::channel();
        let told_twice = async {
            let signal = signals.next().await;
            tracing::info!(%signal, "received shutdown signal, stopping; send it again to exit immediately");
            stop.now();
            signals.next().await
        };
        tokio::select! {
            ended = self.start_until(shutdown.requested()) => ended,
            signal = told_twice => {
                tracing::warn!(%signal, "received second shutdown signal, exiting");
                std::process::exit(1)
            }
        }
    }

    /// Runs until `stop` resolves, and then until running reconciles have ended.
    ///
    /// # Errors
    /// See [`ManagerError`].
    pub async fn start_until(mut self, stop: impl Future<Output = ()>) -> Result<(), Error> {
        self.check_names()?;
        self.args.check(cfg!(feature = "http2"))?;
        if let Some(mistake) = self.routes.mistake() {
            return Err(ManagerError::Webhook(mistake.to_owned()).into());
        }
        if !self.args.enable_webhooks {
            self.routes = Routes::default();
        }
        self.lease.check()?;
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

//! Builder methods for everything that a manager runs: controllers, clusters, tasks, webhooks,
//! checks and handlers.
//! For a check in `/healthz` or `/readyz` of all managers, see `probes.rs`.

use std::path::PathBuf;

use hyper::body::Bytes;
use kube::core::admission::AdmissionResponse;
use serde::Serialize;

use super::Manager;
use crate::cluster::{Cluster, ClusterConfig, Clusters};
use crate::controller::Controller;
use crate::error::BoxError;
use crate::events::{EventRecorder, new_event_channel};
use crate::object::{Object, Watchable};
use crate::task::Task;
use crate::webhook::{self, AdmissionRequest, ManagedCertificate, Webhook};

impl Manager {
    /// Adds a handler to the metrics server, e.g. for a profile, or to dump the operator's state.
    ///
    /// Access is restricted in the same way as for `/metrics`, unless `--metrics-secure=false` is
    /// set: clients must authenticate, and be authorized to access the non-resource URL `path`. The
    /// verb is the method in lower case, e.g. `get`.
    ///
    /// `path` must start with `/`, and only exact matches are served. It must be different from
    /// `/metrics` and from all paths of `--enable-debug-endpoints`. The handler receives requests
    /// with any method, but without their body.
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

    /// Adds another cluster. The returned handle can be stored in the state of a controller, and
    /// used for watches.
    ///
    /// This is in addition to the manager's own cluster, which contains the lease and the objects
    /// that its controllers reconcile. By default, the manager does not wait for additional
    /// clusters at startup (but see [`required`](ClusterConfig::required)), and keeps running if
    /// one of them becomes unreachable. Meanwhile watches are retried, and requests fail.
    /// Additional clusters do not affect readiness.
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
    ///
    /// Panics if called from outside of a tokio runtime.
    pub fn cluster(&mut self, config: ClusterConfig) -> Cluster {
        let known = self.clusters.list();
        let cluster = self.clusters.add(config);
        if known.contains(&cluster) {
            // Reported when the manager starts.
            self.duplicate_cluster = Some(cluster.name().to_owned());
        }
        cluster
    }

    /// Returns the set of additional clusters. Clusters can be added and removed while the manager
    /// is running.
    pub fn clusters(&self) -> Clusters {
        self.clusters.clone()
    }

    /// Adds a background task.
    pub fn task(mut self, task: Task) -> Self {
        self.tasks.push(task);
        self
    }

    /// Returns a recorder for Kubernetes events, for use in [tasks](Task), in webhooks, and
    /// wherever else there is no context. It's cheap to clone.
    ///
    /// `name` is the reporter of the events, and a label of the metric
    /// `rbuilder_events_dropped_total`. Events can be recorded immediately. They are sent once the
    /// manager is started, on all replicas, whether they are the leader or not. On shutdown, events
    /// are sent until the servers have stopped, with a limit of five seconds for queued events. If
    /// you use [`with_metrics`](Self::with_metrics), call it before this method.
    ///
    /// Webhooks are also called for dry runs, and another webhook may still reject the object. A
    /// webhook should therefore only record its own decisions, and nothing at all in a dry run.
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
    /// They're served over HTTPS on `--webhook-port`, using the certificate in
    /// `--webhook-cert-path`. The server is started before the caches, because the API server may
    /// need to convert objects in order to list them. `--enable-webhooks=false` disables it.
    pub fn webhook<K: Object + Serialize>(mut self, webhook: Webhook<K>) -> Self {
        webhook.add_to(&mut self.routes);
        self
    }

    /// Adds an admission webhook for raw requests, which may be about objects of any kind. `path`
    /// must start with `/`.
    ///
    /// The handler returns kube's response type. [`AdmissionResponse::from`] creates a response
    /// that allows the request; call `deny` on it to deny the request, or `with_patch` to modify
    /// the object.
    pub fn raw_webhook<F, Fut>(mut self, path: impl Into<String>, handler: F) -> Self
    where
        F: Fn(AdmissionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = AdmissionResponse> + Send + 'static,
    {
        webhook::add_raw_webhook(path.into(), handler, &mut self.routes);
        self
    }

    /// Makes the manager issue and rotate the certificate of the webhook server, and inject its CA
    /// bundle into the webhook configurations, so that neither certificate files nor cert-manager
    /// are needed. Same as `--webhook-cert-service`.
    ///
    /// `--webhook-cert-path` takes precedence, so that the same operator can be deployed either
    /// way, and run in a test environment.
    pub fn webhook_certificate(mut self, certificate: ManagedCertificate) -> Self {
        self.webhook_certificate = Some(certificate);
        self
    }

    /// Requires clients of the webhook server to have a certificate signed by a CA in the given PEM
    /// file. The API server must be [configured][configure] to use a client certificate.
    ///
    /// [configure]: https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#authenticate-apiservers
    pub fn webhook_client_ca(mut self, path: impl Into<PathBuf>) -> Self {
        self.client_authorities = Some(path.into());
        self
    }

    /// Adds a check to the liveness probe `/healthz`. It shouldn't depend on the cluster, or an
    /// outage would restart all Pods.
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

    /// Adds a check to the readiness probe `/readyz`.
    ///
    /// There are two built-in checks:
    ///
    /// - `caches` fails until all caches have synced, and after that depending on
    ///   [`cache_stale_after`](Self::cache_stale_after).
    /// - `webhook` fails if the webhook server cannot complete a TLS handshake. It only exists if
    ///   there are webhooks.
    ///
    /// If the operator has conversion webhooks, the check `caches` does not exist, because the API
    /// server may need a conversion to list objects, and only calls Pods that are ready.
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
}

#[cfg(feature = "fake")]
impl crate::fake::Webhooks for Manager {
    /// # Panics
    ///
    /// Panics if two webhooks have the same path, or if a path or a conversion is invalid.
    #[track_caller]
    fn take_webhooks(&mut self) -> crate::fake::WebhookHandler {
        let routes = std::mem::take(&mut self.routes);
        if let Some(error) = routes.first_error() {
            panic!("{error}");
        }
        let crds = routes.converted_crds();
        webhook::handler_in_process(routes, &self.metrics, self.webhook_memory).converting(crds)
    }
}

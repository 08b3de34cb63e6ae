//! What a manager runs: controllers, other clusters, tasks, webhooks, checks and handlers.
//!
//! To add a check to `/healthz` or `/readyz` of every manager, see `probes.rs`.

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
    /// Serves a handler at `path` of the metrics server, such as a profile or a dump of the operator's state.
    ///
    /// As for `/metrics`, clients are authenticated and must be allowed to use the path, with the
    /// method in lower case as the verb (`get` on the non-resource URL `path`), unless
    /// `--metrics-secure=false`. `path` must match exactly, start with `/`, and differ from
    /// `/metrics` and the paths of `--enable-debug-endpoints`. Any method is accepted. The request
    /// body is not read.
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
    /// The manager's own cluster is the one with its lease and with the objects that its
    /// controllers reconcile. The manager starts without waiting for other clusters, unless they
    /// are [required](ClusterConfig::required), and continues when one is lost: its watches are
    /// retried, and requests to it fail. Readiness checks ignore other clusters.
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
    /// Panics outside of a tokio runtime.
    pub fn cluster(&mut self, config: ClusterConfig) -> Cluster {
        let known = self.clusters.list();
        let cluster = self.clusters.add(config);
        if known.contains(&cluster) {
            self.duplicate_cluster = Some(cluster.name().to_owned());
        }
        cluster
    }

    /// Returns the other clusters, which can be added and removed while the manager runs.
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
    /// `name` is the reporter of the events and a label of `rbuilder_events_dropped_total`. Events
    /// can be recorded at once. All replicas send their events, leader or not, from the start of
    /// the manager until its servers have stopped; at shutdown, queued events get five seconds.
    /// Call this after [`with_metrics`](Self::with_metrics).
    ///
    /// A webhook is also called for dry runs, and another webhook may still reject the object. It
    /// should therefore only record what it has decided, and nothing for a dry run.
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

    /// Issues and rotates the webhook certificate in the manager and injects its CA bundle, so that
    /// neither certificate files nor cert-manager are needed. Equivalent to
    /// `--webhook-cert-service`.
    ///
    /// `--webhook-cert-path` takes precedence, so that the same operator can be deployed either way
    /// and run in the test environment.
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

    /// Adds a check to `/healthz`, the liveness probe. It must not depend on the cluster, or else
    /// an outage restarts every pod.
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
    /// Two checks are built in. `caches` fails until the caches are synced, and afterwards
    /// according to [`cache_stale_after`](Self::cache_stale_after). `webhook`, present when
    /// webhooks are served, fails while their server does not complete a TLS handshake. An operator
    /// with conversion webhooks has no `caches` check: its caches may need a conversion to sync,
    /// and the API server only reaches ready pods.
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
    /// Panics if two webhooks have the same path, or if a path or a conversion is not valid.
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

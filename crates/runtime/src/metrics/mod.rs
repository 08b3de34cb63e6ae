//! Prometheus metrics, with the names that dashboards for controller-runtime expect.
//!
//! There are built-in metrics for reconciles, workers, queues, leader election, certificates and
//! the process. You can add your own to [`Manager::metrics`](crate::Manager::metrics):
//!
//! ```
//! # use std::sync::Arc;
//! # use k8s_openapi::api::core::v1::ConfigMap;
//! # use rbuilder::{Action, Controller, Ctx, Manager, Result, metrics::Counter};
//! struct State {
//!     backups: Counter,
//! }
//!
//! async fn reconcile(backup: Arc<ConfigMap>, ctx: Ctx<State>) -> Result {
//!     // … create the backup, then:
//!     ctx.backups.inc();
//!     Ok(Action::await_change())
//! }
//!
//! # fn with(manager: Manager) -> Result<Manager> {
//! let backups = manager.metrics().counter("backups_total", "Number of backups created.", [])?.with([]);
//! let manager = manager.controller(Controller::new(reconcile, State { backups }));
//! # Ok(manager)
//! # }
//! ```
//!
//! # Built-in metrics
//!
//! Labels and buckets are compatible with controller-runtime as well.
//!
//! | subject | names or prefixes |
//! |---|---|
//! | reconciles | `controller_runtime_reconcile_`, `controller_runtime_terminal_reconcile_errors_total`, `controller_runtime_active_workers`, `controller_runtime_max_concurrent_reconciles` |
//! | queues | `workqueue_` |
//! | webhooks | `controller_runtime_webhook_`, `controller_runtime_conversion_webhook_panics_total` |
//! | leader election | `leader_election_master_status` |
//! | certificates | `certwatcher_read_certificate_` |
//! | requests to the API server | `rest_client_requests_total`; more with [`Metrics::measure_requests`] |
//! | process (Linux only) | `process_` |
//! | tokio runtime | `tokio_workers`, `tokio_alive_tasks`, `tokio_global_queue_depth` |
//! | dropped events | `rbuilder_events_dropped_total` |
//! | caches | `rbuilder_cache_` |
//! | other clusters | `rbuilder_cluster_connected` |
//! | stored objects that cannot be decoded | `rbuilder_undecodable_objects` |
//!
//! The metrics are served on `--metrics-bind-address`, in version 0.0.4 of Prometheus' text format.
//! By default this uses HTTPS, and clients need the permission to `get` the non-resource URL
//! `/metrics`. With `--metrics-secure=false`, it uses plain HTTP without any authorization.

mod cache;
mod cluster;
mod controller;
mod exposition;
mod foreign;
mod instruments;
mod process;
mod registry;
mod requests;
mod shards;
mod webhook;

use std::fmt;
use std::sync::Arc;

pub use instruments::{Counter, Gauge, Histogram, Instrument};
pub use registry::{Family, MetricError};
pub use requests::{CountRequests, Counted, Weighed};

pub(crate) use controller::{ControllerMetrics, QueueMetrics, ReconcileResult};
pub(crate) use exposition::TEXT_FORMAT;
pub(crate) use requests::is_watch;
pub(crate) use webhook::{ConversionMetrics, WebhookMetrics};

use crate::cache::CacheStats;
use crate::shards::RingStatus;
use registry::Registry;

/// Metrics of a manager. Clones share the same metrics.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    controllers: controller::Families,
    leader: Family<Gauge, 1>,
    requests: requests::Families,
    webhooks: webhook::Families,
    certificate_reads: Counter,
    certificate_read_errors: Counter,
    events_dropped: Family<Counter, 1>,
    mapping_errors: Family<Counter, 1>,
    caches: cache::Families,
    clusters: cluster::Families,
}

impl Metrics {
    /// Creates metrics for the process. A controller's metrics are added when the controller is
    /// added to a manager.
    ///
    /// There is usually no need to call this, because every [`Manager`](crate::Manager) creates its
    /// own metrics. It is intended for tests, and for clients with [counted
    /// requests](Self::count_requests).
    pub fn new() -> Self {
        let registry = Registry::default();
        process::register_process_metrics(&registry);
        Self(Arc::new(Inner {
            controllers: controller::Families::register(&registry),
            leader: registry.own(
                "leader_election_master_status",
                "1 if this process is the leader for the lease `name`, 0 if it is a standby.",
                ["name"],
                &[],
            ),
            requests: requests::Families::register(&registry),
            webhooks: webhook::Families::register(&registry),
            certificate_reads: registry
                .own(
                    "certwatcher_read_certificate_total",
                    "Total number of certificate reads.",
                    [],
                    &[],
                )
                .with([]),
            certificate_read_errors: registry
                .own(
                    "certwatcher_read_certificate_errors_total",
                    "Total number of certificate read errors.",
                    [],
                    &[],
                )
                .with([]),
            events_dropped: registry.own(
                "rbuilder_events_dropped_total",
                "Total number of Kubernetes events that were dropped because an object had too many or the queue was full.",
                ["controller"],
                &[],
            ),
            mapping_errors: registry.own(
                "rbuilder_mapping_errors_total",
                "Total number of events for which a mapping function failed or panicked.",
                ["controller"],
                &[],
            ),
            caches: cache::Families::register(&registry),
            clusters: cluster::Families::register(&registry),
            registry,
        }))
    }

    /// Registers a family of counters, or returns the existing family with this name.
    ///
    /// By convention, the names of counters should end in `_total`.
    ///
    /// # Errors
    ///
    /// Fails if the name or a label is invalid, or if the name is used by a different metric.
    pub fn counter<const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; N],
    ) -> Result<Family<Counter, N>, MetricError> {
        self.0.registry.family(name, help, labels, &[])
    }

    /// Registers a family of gauges, or returns the existing family with this name.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Metrics::counter`].
    pub fn gauge<const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; N],
    ) -> Result<Family<Gauge, N>, MetricError> {
        self.0.registry.family(name, help, labels, &[])
    }

    /// Registers a family of histograms, or returns the existing family with this name.
    ///
    /// The `bounds` are the inclusive upper bounds of the buckets, in the unit from the name (e.g.
    /// `_seconds`). An additional bucket for `+Inf` is created automatically.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Metrics::counter`], and an error if the bounds are not strictly
    /// increasing.
    pub fn histogram<const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; N],
        bounds: &[f64],
    ) -> Result<Family<Histogram, N>, MetricError> {
        self.0.registry.family(name, help, labels, bounds)
    }

    /// Registers a callback to run before each scrape, e.g. to set gauges that are not updated
    /// continuously.
    ///
    /// It should not block, since it delays the scrape.
    pub fn before_scrape(&self, update: impl Fn() + Send + Sync + 'static) {
        self.0.registry.before_scrape(update);
    }

    /// Adds the metrics of another library to each scrape. `collect` returns them in version 0.0.4
    /// of Prometheus' text format.
    ///
    /// For the crate `prometheus`, `collect` could be `||
    /// prometheus::TextEncoder::new().encode_to_string(&prometheus::gather()).unwrap_or_default()`.
    /// It should not block, since it delays the scrape.
    ///
    /// A metric is dropped if its name or the name of one of its series is already in use, or if
    /// Prometheus could not parse it; either would make the entire scrape fail. A warning is logged
    /// the first time.
    pub fn collect_with(&self, collect: impl Fn() -> String + Send + Sync + 'static) {
        self.0.registry.foreign.add(collect);
    }

    /// Returns all metrics in version 0.0.4 of Prometheus' text format, sorted by name and followed
    /// by the metrics of [other libraries](Self::collect_with).
    pub fn text(&self) -> String {
        self.0.registry.text()
    }

    pub(crate) fn controller(&self, name: &str, workers: usize) -> ControllerMetrics {
        self.0.controllers.controller(name, workers)
    }

    /// Creates the metrics for a queue. Some are only updated before each scrape.
    pub(crate) fn queue(&self, name: &str) -> QueueMetrics {
        let queue = self.0.controllers.queue(name);
        let refreshed = queue.clone();
        self.before_scrape(move || refreshed.refresh());
        queue
    }

    /// The gauge is 1 while this process holds the lease, and 0 otherwise.
    pub(crate) fn leader(&self, lease: &str) -> Gauge {
        self.0.leader.with([lease])
    }

    pub(crate) fn mapping_errors(&self, controller: &str) -> Counter {
        self.0.mapping_errors.with([controller])
    }

    pub(crate) fn events_dropped(&self, controller: &str) -> Counter {
        self.0.events_dropped.with([controller])
    }

    /// Calls `stats` before each scrape.
    pub(crate) fn measure_caches(&self, stats: impl Fn() -> Vec<CacheStats> + Send + Sync + 'static) {
        // The metrics own this closure, so capture as little as possible to avoid a reference
        // cycle.
        let families = self.0.caches.clone();
        self.before_scrape(move || families.set(stats()));
    }

    /// Calls `clusters` before each scrape.
    pub(crate) fn measure_clusters(
        &self,
        clusters: impl Fn() -> Vec<(String, bool)> + Send + Sync + 'static,
    ) {
        let families = self.0.clusters.clone();
        self.before_scrape(move || families.set(clusters()));
    }

    /// Calls `status` before each scrape.
    pub(crate) fn measure_shards(&self, status: impl Fn() -> RingStatus + Send + Sync + 'static) {
        let families = shards::Families::register(&self.0.registry);
        self.before_scrape(move || families.set(&status()));
    }

    pub(crate) fn certificate_read(&self, succeeded: bool) {
        self.0.certificate_reads.inc();
        if !succeeded {
            self.0.certificate_read_errors.inc();
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

//! What an operator counts, under the names that dashboards for controller-runtime expect.
//!
//! The runtime counts by itself: reconciles, workers, queues, leadership, certificates, the process. An operator adds
//! metrics of its own to [`Manager::metrics`](crate::Manager::metrics):
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
//!     // … make the backup, then:
//!     ctx.backups.inc();
//!     Ok(Action::await_change())
//! }
//!
//! # fn with(manager: Manager) -> Result<Manager> {
//! let backups = manager.metrics().counter("backups_total", "Backups made.", [])?.with([]);
//! let manager = manager.controller(Controller::new(reconcile, State { backups }));
//! # Ok(manager)
//! # }
//! ```
//!
//! # What there is
//! Labels and buckets are controller-runtime's, too.
//!
//! | of | names begin with |
//! |---|---|
//! | reconciles | `controller_runtime_reconcile_`, `controller_runtime_terminal_reconcile_errors_total`, `controller_runtime_active_workers`, `controller_runtime_max_concurrent_reconciles` |
//! | queues | `workqueue_` |
//! | webhooks | `controller_runtime_webhook_`, `controller_runtime_conversion_webhook_panics_total` |
//! | leadership | `leader_election_master_status` |
//! | certificates | `certwatcher_read_certificate_` |
//! | requests to the API server | `rest_client_requests_total`; more with [`Metrics::measure_requests`] |
//! | the process, on Linux | `process_` |
//! | tokio's runtime | `tokio_workers`, `tokio_alive_tasks`, `tokio_global_queue_depth` |
//! | events that were not sent | `rbuilder_events_dropped_total` |
//!
//! The text is Prometheus' format 0.0.4. It is served on `--metrics-bind-address`, over HTTPS and to those whom
//! Kubernetes lets `get` the non-resource URL `/metrics`, unless `--metrics-secure=false` says otherwise.

mod access;
mod controller;
mod endpoint;
mod exposition;
mod instruments;
mod process;
mod registry;
mod requests;
mod webhook;

use std::fmt;
use std::sync::Arc;

pub use instruments::{Counter, Gauge, Histogram, Instrument};
pub use registry::{Family, MetricError};
pub use requests::{CountRequests, Counted, Weighed};

pub(crate) use controller::{ControllerMetrics, QueueMetrics, Reconciled};
pub(crate) use endpoint::Endpoint;
pub(crate) use webhook::WebhookMetrics;

use registry::Registry;

/// All metrics of one manager. Clones are handles to the same ones.
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
}

impl Metrics {
    /// The metrics of the process; those of controllers come with the controllers.
    ///
    /// A [`Manager`](crate::Manager) has its own; this is for tests of what an operator counts.
    pub fn new() -> Self {
        let registry = Registry::default();
        process::register(&registry);
        Self(Arc::new(Inner {
            controllers: controller::Families::register(&registry),
            leader: registry.own(
                "leader_election_master_status",
                "1 if this process is the leader for the lease `name`, 0 if it is a standby.",
                ["name"],
                &[],
            ),
            requests: requests::register(&registry),
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
                "Total number of Kubernetes events that were dropped because the queue was full.",
                ["controller"],
                &[],
            ),
            registry,
        }))
    }

    /// A family of counters of this name; the same one again when it was asked for before.
    ///
    /// The name of a counter ends in `_total`, by custom.
    ///
    /// # Errors
    /// When the name or a label is not one, or the name is taken by something else.
    pub fn counter<const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; N],
    ) -> Result<Family<Counter, N>, MetricError> {
        self.0.registry.family(name, help, labels, &[])
    }

    /// A family of gauges of this name; the same one again when it was asked for before.
    ///
    /// # Errors
    /// As [`Metrics::counter`].
    pub fn gauge<const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; N],
    ) -> Result<Family<Gauge, N>, MetricError> {
        self.0.registry.family(name, help, labels, &[])
    }

    /// A family of histograms of this name; the same one again when it was asked for before.
    ///
    /// `bounds` are the upper bounds of the buckets, inclusive, in the unit that the name ends in (such as
    /// `_seconds`). A bucket for what is above all of them comes by itself.
    ///
    /// # Errors
    /// As [`Metrics::counter`], and when the bounds do not rise.
    pub fn histogram<const N: usize>(
        &self,
        name: &str,
        help: &str,
        labels: [&str; N],
        bounds: &[f64],
    ) -> Result<Family<Histogram, N>, MetricError> {
        self.0.registry.family(name, help, labels, bounds)
    }

    /// Calls `update` before each scrape, to set gauges that nobody keeps up to date otherwise.
    ///
    /// The scrape waits for it, so it must not block.
    pub fn before_scrape(&self, update: impl Fn() + Send + Sync + 'static) {
        self.0.registry.before_scrape(update);
    }

    /// What a scrape gets: all metrics, by name, in Prometheus' text format 0.0.4.
    pub fn text(&self) -> String {
        self.0.registry.text()
    }

    /// The metrics of the controller of this name, which reconciles `workers` objects at a time.
    pub(crate) fn controller(&self, name: &str, workers: usize) -> ControllerMetrics {
        self.0.controllers.controller(name, workers)
    }

    /// The metrics of the queue of the controller of this name.
    pub(crate) fn queue(&self, name: &str) -> QueueMetrics {
        let queue = self.0.controllers.queue(name);
        let refreshed = queue.clone();
        self.before_scrape(move || refreshed.refresh());
        queue
    }

    /// 1 while this process holds the lease of this name, and 0 from the first call on while it does not.
    pub(crate) fn leader(&self, lease: &str) -> Gauge {
        self.0.leader.with([lease])
    }

    /// The events that the controller of this name could not hand over.
    pub(crate) fn events_dropped(&self, controller: &str) -> Counter {
        self.0.events_dropped.with([controller])
    }

    /// Counts an attempt to read certificate files.
    pub(crate) fn certificate_read(&self, well: bool) {
        self.0.certificate_reads.inc();
        if !well {
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

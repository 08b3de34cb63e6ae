//! Metrics of controllers: reconciles, workers and queues.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::registry::{Family, Registry};
use super::{Counter, Gauge, Histogram};

/// In seconds, same as in controller-runtime.
const RECONCILE_BOUNDS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];
/// Number of priorities with their own series; all others share one. Same as in controller-runtime.
const MAX_PRIORITIES: usize = 25;
const OTHER_PRIORITIES: &str = "exceeded_cardinality_limit";

/// Returns the buckets for queue times in seconds. They start at 10 ns and grow by a factor of ten.
fn queue_bounds() -> Vec<f64> {
    // Multiply in the same way as Go, since rounding errors are part of the label.
    std::iter::successors(Some(10e-9), |bound| Some(bound * 10.0))
        .take(12)
        .collect()
}

pub(super) struct Families {
    reconciles: Family<Counter, 2>,
    errors: Family<Counter, 1>,
    terminal_errors: Family<Counter, 1>,
    panics: Family<Counter, 1>,
    timeouts: Family<Counter, 1>,
    seconds: Family<Histogram, 1>,
    workers: Family<Gauge, 1>,
    active_workers: Family<Gauge, 1>,
    depth: Family<Gauge, 3>,
    adds: Family<Counter, 2>,
    retries: Family<Counter, 2>,
    queued_seconds: Family<Histogram, 2>,
    worked_seconds: Family<Histogram, 2>,
    unfinished_seconds: Family<Gauge, 2>,
    longest_seconds: Family<Gauge, 2>,
}

impl Families {
    pub(super) fn register(registry: &Registry) -> Self {
        let queue = ["controller", "name"];
        Self {
            reconciles: registry.own(
                "controller_runtime_reconcile_total",
                "Total number of reconciles by controller and result.",
                ["controller", "result"],
                &[],
            ),
            errors: registry.own(
                "controller_runtime_reconcile_errors_total",
                "Total number of reconcile errors by controller.",
                ["controller"],
                &[],
            ),
            terminal_errors: registry.own(
                "controller_runtime_terminal_reconcile_errors_total",
                "Total number of terminal reconcile errors, which are not retried, by controller.",
                ["controller"],
                &[],
            ),
            panics: registry.own(
                "controller_runtime_reconcile_panics_total",
                "Total number of panics in reconciles by controller.",
                ["controller"],
                &[],
            ),
            timeouts: registry.own(
                "controller_runtime_reconcile_timeouts_total",
                "Total number of reconcile timeouts by controller.",
                ["controller"],
                &[],
            ),
            seconds: registry.own(
                "controller_runtime_reconcile_time_seconds",
                "Duration of reconciles in seconds by controller.",
                ["controller"],
                RECONCILE_BOUNDS,
            ),
            workers: registry.own(
                "controller_runtime_max_concurrent_reconciles",
                "Maximum number of concurrent reconciles by controller.",
                ["controller"],
                &[],
            ),
            active_workers: registry.own(
                "controller_runtime_active_workers",
                "Number of active workers by controller.",
                ["controller"],
                &[],
            ),
            depth: registry.own(
                "workqueue_depth",
                "Current depth of the workqueue by priority.",
                ["controller", "name", "priority"],
                &[],
            ),
            adds: registry.own("workqueue_adds_total", "Total number of adds handled by the workqueue.", queue, &[]),
            retries: registry.own("workqueue_retries_total", "Total number of retries handled by the workqueue.", queue, &[]),
            queued_seconds: registry.own(
                "workqueue_queue_duration_seconds",
                "Time in seconds that an item stays in the workqueue before a worker processes it.",
                queue,
                &queue_bounds(),
            ),
            worked_seconds: registry.own(
                "workqueue_work_duration_seconds",
                "Time in seconds that processing an item from the workqueue takes.",
                queue,
                &queue_bounds(),
            ),
            unfinished_seconds: registry.own(
                "workqueue_unfinished_work_seconds",
                "Seconds of work in progress that workqueue_work_duration_seconds has not observed yet. Large values indicate stuck workers.",
                queue,
                &[],
            ),
            longest_seconds: registry.own(
                "workqueue_longest_running_processor_seconds",
                "Seconds that the longest running worker of the workqueue has been processing its item.",
                queue,
                &[],
            ),
        }
    }

    /// Creates all series of a controller, so that they start at zero.
    pub(super) fn controller(&self, name: &str, workers: usize) -> ControllerMetrics {
        // There are too few workers for this to lose precision.
        self.workers.with([name]).set(workers as f64);
        let result = |result| self.reconciles.with([name, result]);
        // Our requeues always have a delay, but dashboards expect this series.
        let _ = result("requeue");
        ControllerMetrics {
            success: result("success"),
            requeue_after: result("requeue_after"),
            error: result("error"),
            errors: self.errors.with([name]),
            terminal_errors: self.terminal_errors.with([name]),
            panics: self.panics.with([name]),
            timeouts: self.timeouts.with([name]),
            seconds: self.seconds.with([name]),
            active: self.active_workers.with([name]),
        }
    }

    /// Creates all series for a controller's queue, so that they start at zero.
    pub(super) fn queue(&self, name: &str) -> QueueMetrics {
        let labels = [name, name];
        let queue = QueueMetrics(Arc::new(Queue {
            name: name.to_owned(),
            depth: self.depth.clone(),
            depths: Mutex::default(),
            adds: self.adds.with(labels),
            retries: self.retries.with(labels),
            queued: self.queued_seconds.with(labels),
            worked: self.worked_seconds.with(labels),
            unfinished: self.unfinished_seconds.with(labels),
            longest: self.longest_seconds.with(labels),
            processing: Mutex::default(),
        }));
        queue.0.depth(0);
        queue
    }
}

/// Every failure is counted as an error; each kind of failure also has its own metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReconcileResult {
    Success,
    RequeueAfter,
    Error,
    TerminalError,
    Panic,
    Timeout,
}

#[derive(Clone, Debug)]
pub(crate) struct ControllerMetrics {
    success: Counter,
    requeue_after: Counter,
    error: Counter,
    errors: Counter,
    terminal_errors: Counter,
    panics: Counter,
    timeouts: Counter,
    seconds: Histogram,
    active: Gauge,
}

impl ControllerMetrics {
    /// Counts a worker as active until the guard is dropped, which also works if its task is
    /// cancelled.
    pub(crate) fn active(&self) -> ActiveGuard {
        ActiveGuard::new(&self.active)
    }

    pub(crate) fn reconciled(&self, result: ReconcileResult, took: Duration) {
        self.seconds.observe_duration(took);
        match result {
            ReconcileResult::Success => return self.success.inc(),
            ReconcileResult::RequeueAfter => return self.requeue_after.inc(),
            ReconcileResult::Error => {}
            ReconcileResult::TerminalError => self.terminal_errors.inc(),
            ReconcileResult::Panic => self.panics.inc(),
            ReconcileResult::Timeout => self.timeouts.inc(),
        }
        self.error.inc();
        self.errors.inc();
    }
}

#[must_use]
pub(crate) struct ActiveGuard(Gauge);

impl ActiveGuard {
    pub(super) fn new(gauge: &Gauge) -> Self {
        gauge.add(1.0);
        Self(gauge.clone())
    }
}

impl Drop for ActiveGuard {
    fn drop(&mut self) {
        self.0.add(-1.0);
    }
}

/// Clones share the same metrics.
#[derive(Clone, Debug)]
pub(crate) struct QueueMetrics(Arc<Queue>);

#[derive(Debug)]
struct Queue {
    name: String,
    depth: Family<Gauge, 3>,
    /// Depth by priority, for priorities with their own series.
    depths: Mutex<BTreeMap<i32, Gauge>>,
    adds: Counter,
    retries: Counter,
    queued: Histogram,
    worked: Histogram,
    unfinished: Gauge,
    longest: Gauge,
    /// When the keys in progress were taken, with the number of keys taken at each time.
    processing: Mutex<BTreeMap<Instant, u32>>,
}

impl Queue {
    fn depth(&self, priority: i32) -> Gauge {
        let mut depths = self.depths.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = depths.get(&priority) {
            return known.clone();
        }
        if depths.len() >= MAX_PRIORITIES {
            return self.depth.with([&self.name, &self.name, OTHER_PRIORITIES]);
        }
        let depth = self.depth.with([&self.name, &self.name, &priority.to_string()]);
        depths.insert(priority, depth.clone());
        depth
    }
}

impl QueueMetrics {
    /// Called when a key becomes ready.
    pub(crate) fn added(&self, priority: i32) {
        self.0.adds.inc();
        self.0.depth(priority).add(1.0);
    }

    /// Called when the priority of a ready key changes.
    pub(crate) fn moved(&self, from: i32, to: i32) {
        self.0.depth(from).add(-1.0);
        self.0.depth(to).add(1.0);
    }

    /// Called when a key is added with a delay, for whatever reason.
    pub(crate) fn retried(&self) {
        self.0.retries.inc();
    }

    /// Called when a worker takes a key at time `at`. The key has been ready since `added`.
    pub(crate) fn taken(&self, priority: i32, added: Instant, at: Instant) {
        self.0.depth(priority).add(-1.0);
        self.0
            .queued
            .observe_duration(at.saturating_duration_since(added));
        *self
            .0
            .processing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(at)
            .or_default() += 1;
    }

    /// Called when a worker has finished the key that it took at time `at`.
    pub(crate) fn done(&self, at: Instant) {
        self.0.worked.observe_duration(at.elapsed());
        let mut processing = self.0.processing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(taken) = processing.get_mut(&at) {
            *taken -= 1;
            if *taken == 0 {
                processing.remove(&at);
            }
        }
    }

    /// Updates the gauges that depend on the current time.
    pub(super) fn refresh(&self) {
        let processing = self.0.processing.lock().unwrap_or_else(PoisonError::into_inner);
        let spent = |since: &Instant| since.elapsed().as_secs_f64();
        // Don't use `sum`, which returns -0 for an empty iterator.
        let unfinished = processing
            .iter()
            .fold(0.0, |sum, (since, keys)| sum + spent(since) * f64::from(*keys));
        self.0.unfinished.set(unfinished);
        self.0.longest.set(processing.keys().next().map_or(0.0, spent));
    }
}

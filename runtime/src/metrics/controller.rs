//! What is counted about one controller: its reconciles, its workers and its queue.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::registry::{Family, Registry};
use super::{Counter, Gauge, Histogram};

/// Bounds of the reconcile times in seconds. controller-runtime's.
const RECONCILE_BOUNDS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];
/// Priorities with a series of their own; what comes later is counted together. controller-runtime's.
const MOST_PRIORITIES: usize = 25;
const OTHER_PRIORITIES: &str = "exceeded_cardinality_limit";

/// Bounds of the queue's times in seconds: a hundred-millionth, and eleven times the tenfold. Multiplied as Go does it,
/// whose rounding is to be seen in the labels.
fn queue_bounds() -> Vec<f64> {
    std::iter::successors(Some(10e-9), |bound| Some(bound * 10.0))
        .take(12)
        .collect()
}

/// The families of all controllers.
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

    /// The metrics of one controller, each of them there from now on.
    pub(super) fn controller(&self, name: &str, workers: usize) -> ControllerMetrics {
        // Few enough for the conversion to be exact.
        self.workers.with([name]).set(workers as f64);
        let result = |result| self.reconciles.with([name, result]);
        // Nothing here asks for a requeue without saying when; dashboards expect the series nevertheless.
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

    /// The metrics of the queue of one controller, each of them there from now on.
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
            in_work: Mutex::default(),
        }));
        queue.0.depth(0);
        queue
    }
}

/// How a reconcile ended. What is not a success counts as an error, and under its own name besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reconciled {
    Success,
    RequeueAfter,
    Error,
    TerminalError,
    Panic,
    Timeout,
}

/// Counts the reconciles of one controller. Clones count together.
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
    /// Counts a worker as active until the guard is dropped, also when its task is ended in mid-reconcile.
    pub(crate) fn active(&self) -> Active {
        Active::count(&self.active)
    }

    /// Counts a reconcile that has ended.
    pub(crate) fn reconciled(&self, how: Reconciled, took: Duration) {
        self.seconds.observe_duration(took);
        match how {
            Reconciled::Success => return self.success.inc(),
            Reconciled::RequeueAfter => return self.requeue_after.inc(),
            Reconciled::Error => {}
            Reconciled::TerminalError => self.terminal_errors.inc(),
            Reconciled::Panic => self.panics.inc(),
            Reconciled::Timeout => self.timeouts.inc(),
        }
        self.error.inc();
        self.errors.inc();
    }
}

/// One more in a gauge, for as long as this lives: a worker at work, a request being answered.
#[must_use]
pub(crate) struct Active(Gauge);

impl Active {
    pub(super) fn count(gauge: &Gauge) -> Self {
        gauge.add(1.0);
        Self(gauge.clone())
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.add(-1.0);
    }
}

/// Counts what happens to the keys of one queue. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct QueueMetrics(Arc<Queue>);

#[derive(Debug)]
struct Queue {
    name: String,
    depth: Family<Gauge, 3>,
    /// Depths by priority; those that have no series of their own share one.
    depths: Mutex<BTreeMap<i32, Gauge>>,
    adds: Counter,
    retries: Counter,
    queued: Histogram,
    worked: Histogram,
    unfinished: Gauge,
    longest: Gauge,
    /// When workers took the keys that they have, with how many they took at that time.
    in_work: Mutex<BTreeMap<Instant, u32>>,
}

impl Queue {
    fn depth(&self, priority: i32) -> Gauge {
        let mut depths = self.depths.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = depths.get(&priority) {
            return known.clone();
        }
        if depths.len() >= MOST_PRIORITIES {
            return self.depth.with([&self.name, &self.name, OTHER_PRIORITIES]);
        }
        let depth = self.depth.with([&self.name, &self.name, &priority.to_string()]);
        depths.insert(priority, depth.clone());
        depth
    }
}

impl QueueMetrics {
    /// A key has become due.
    pub(crate) fn added(&self, priority: i32) {
        self.0.adds.inc();
        self.0.depth(priority).add(1.0);
    }

    /// A key that was due got another priority.
    pub(crate) fn moved(&self, from: i32, to: i32) {
        self.0.depth(from).add(-1.0);
        self.0.depth(to).add(1.0);
    }

    /// A key was put off.
    pub(crate) fn retried(&self) {
        self.0.retries.inc();
    }

    /// A worker took a key `at` that time, which was due since `added`.
    pub(crate) fn taken(&self, priority: i32, added: Instant, at: Instant) {
        self.0.depth(priority).add(-1.0);
        self.0
            .queued
            .observe_duration(at.saturating_duration_since(added));
        *self
            .0
            .in_work
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(at)
            .or_default() += 1;
    }

    /// The worker that took a key `at` that time is done with it.
    pub(crate) fn done(&self, at: Instant) {
        self.0.worked.observe_duration(at.elapsed());
        let mut in_work = self.0.in_work.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(taken) = in_work.get_mut(&at) {
            *taken -= 1;
            if *taken == 0 {
                in_work.remove(&at);
            }
        }
    }

    /// Brings what depends on the time up to date.
    pub(super) fn refresh(&self) {
        let in_work = self.0.in_work.lock().unwrap_or_else(PoisonError::into_inner);
        let spent = |since: &Instant| since.elapsed().as_secs_f64();
        // Not `sum`, which makes of nothing a negative zero.
        let unfinished = in_work
            .iter()
            .fold(0.0, |sum, (since, keys)| sum + spent(since) * f64::from(*keys));
        self.0.unfinished.set(unfinished);
        self.0.longest.set(in_work.keys().next().map_or(0.0, spent));
    }
}

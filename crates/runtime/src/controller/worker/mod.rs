//! Workers, which take keys from the queue, reconcile them, and requeue them depending on the
//! result.

mod finalizers;
pub(super) mod polls;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use tokio::time::Instant;
use tracing::Instrument;

use self::polls::Slot;
use super::handlers::Handlers;
use super::unselected::Departures;
use crate::action::Action;
use crate::cache::{Cache, UndecodableEntry};
use crate::ctx::Ctx;
use crate::error::Error;
use crate::hash::HashMap;
use crate::leader_election::Fence;
use crate::metrics::{ControllerMetrics, ReconcileResult};
use crate::object::{Key, Watchable};
use crate::queue::Workqueue;
use crate::shards::{Entry, KeyGuard, ShardBy, Shards};
use crate::text::{join_lines, panic_message};
use crate::traces::{self, Trace};

/// Number of consecutive conflicts after which an error is logged. A stale cache has caught up by
/// then.
const LASTING_CONFLICT: u32 = 5;

/// Delay before retrying a key whose range is about to move to another replica.
const DRAINING_RETRY: Duration = Duration::from_secs(1);

/// Error of a reconcile that was cancelled.
const REVOKED: &str = "the shard lease of this replica is no longer held, reconcile cancelled";

struct NotOurs;

pub(super) struct Worker<K: Watchable, S> {
    pub(super) ctx: Ctx<S>,
    pub(super) queue: Arc<Workqueue<Key>>,
    pub(super) cache: Arc<Cache<K>>,
    /// Objects for which `on_deleted` is still to be called, with the hashes of their UIDs.
    pub(super) deleted: Arc<Mutex<HashMap<Key, u64>>>,
    /// `None` if the controller isn't sharded.
    pub(super) shards: Option<Shards>,
    pub(super) shard_by: ShardBy,
    pub(super) departures: Arc<Departures>,
    /// Number of consecutive conflicts, for objects whose last reconcile ended with one.
    pub(super) conflicts: Mutex<HashMap<Key, u32>>,
    /// Lease that reconciling requires. `None` if the controller runs on all replicas.
    pub(super) fence: Option<Fence>,
    pub(super) timeout: Option<Duration>,
    pub(super) recover_panics: bool,
    pub(super) handlers: Handlers<K, S>,
    pub(super) metrics: ControllerMetrics,
}

#[derive(Debug)]
enum Outcome {
    Done(Action),
    Failed(Error),
    Panicked(String),
    TimedOut(Duration),
}

impl Outcome {
    fn result(&self) -> ReconcileResult {
        match self {
            Self::Done(action) if action.requeue_after().is_some() => ReconcileResult::RequeueAfter,
            Self::Done(_) => ReconcileResult::Success,
            Self::Failed(error) if error.is_terminal() => ReconcileResult::TerminalError,
            Self::Failed(_) => ReconcileResult::Error,
            Self::Panicked(_) => ReconcileResult::Panic,
            Self::TimedOut(_) => ReconcileResult::Timeout,
        }
    }

    fn describe_result(&self) -> &'static str {
        match self.result() {
            ReconcileResult::Success => "success",
            ReconcileResult::RequeueAfter => "requeue_after",
            ReconcileResult::Error => "error",
            ReconcileResult::TerminalError => "terminal_error",
            ReconcileResult::Panic => "panic",
            ReconcileResult::Timeout => "timeout",
        }
    }

    /// Formatting the error calls user code, so this may panic.
    fn describe_failure(&self) -> Option<String> {
        match self {
            Self::Done(_) => None,
            Self::Failed(error) => {
                let text = catch_unwind(AssertUnwindSafe(|| format!("{error:#}")));
                Some(text.unwrap_or_else(|panic| panic_message(&*panic).to_owned()))
            }
            Self::Panicked(message) => Some(format!("panicked: {message}")),
            Self::TimedOut(limit) => Some(format!("no result within {limit:?}")),
        }
    }
}

impl<K: Watchable, S: Send + Sync + 'static> Worker<K, S> {
    /// Reconciles keys until the queue is closed or the leader's lease is lost. Only fails if a reconcile
    /// panics and [`Controller::recover_panics`] is disabled.
    pub(super) async fn work(self: Arc<Self>, slot: Arc<Slot>) -> Result<(), Error> {
        while let Some(key) = self.queue.next().await {
            if self.fence.as_ref().is_some_and(|fence| fence.check().is_err()) {
                let priority = self.queue.taken_priority(&key);
                if self.shards.is_some() {
                    // The replica may be able to continue later.
                    self.queue.add_after(key.clone(), DRAINING_RETRY, priority);
                    self.queue.done(&key);
                    continue;
                }
                self.queue.add(key.clone(), priority);
                self.queue.done(&key);
                // The manager is about to stop and report the lost lease. If the worker returned
                // now, the manager would report its exit instead.
                self.queue.closed().await;
                break;
            }
            let guard = match self.enter_shard(&key) {
                Ok(guard) => guard,
                Err(NotOurs) => continue,
            };
            let (kind, reconcile_id) = (self.cache.kind().name(), new_reconcile_id());
            let trace = Trace::of_reconcile(&traces::Reconcile {
                controller: self.ctx.controller(),
                kind: &kind,
                namespace: key.namespace.as_deref(),
                name: &key.name,
                id: &reconcile_id,
            });
            let span = tracing::info_span!(
                "reconcile",
                controller = self.ctx.controller(),
                kind = %kind,
                namespace = key.namespace.as_deref(),
                // Not `name`, which is the name of the span in JSON logs.
                object_name = &*key.name,
                reconcile_id = %reconcile_id,
                trace_id = trace.id(),
            );
            async {
                let active = self.metrics.active();
                let started = Instant::now();
                slot.begin(self.ctx.controller(), &kind, &key, &reconcile_id);
                let running = slot.follow(self.run(&key, guard.as_ref()));
                let outcome = trace.follow(running).await;
                self.metrics.reconciled(outcome.result(), started.elapsed());
                trace.end_reconcile(outcome.describe_result(), || outcome.describe_failure());
                drop(active);
                if let (Outcome::Panicked(message), false) = (&outcome, self.recover_panics) {
                    return Err(self.panic_error(&key, message));
                }
                self.settle(&key, outcome)
            }
            .instrument(span)
            .await?;
            self.queue.done(&key);
        }
        Ok(())
    }

    /// Keeps the range of a key on this replica while the key is being processed. Drops the key if
    /// the object doesn't exist or belongs to another replica.
    fn enter_shard(&self, key: &Key) -> Result<Option<KeyGuard>, NotOurs> {
        let Some(shards) = &self.shards else {
            return Ok(None);
        };
        match self
            .find_hash(key)
            .map_or(Entry::Elsewhere, |hash| shards.enter(hash))
        {
            Entry::Entered(guard) => return Ok(Some(guard)),
            Entry::Draining => {
                let priority = self.queue.taken_priority(key);
                self.queue.add_after(key.clone(), DRAINING_RETRY, priority);
            }
            Entry::Elsewhere => {
                // Another replica handles the object now, so forget everything about it.
                self.queue.forget(key);
                self.deleted
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .remove(key);
                self.departures.forget(key);
                self.conflicts
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .remove(key);
            }
        }
        self.queue.done(key);
        Err(NotOurs)
    }

    /// `None` if this replica doesn't know the object.
    fn find_hash(&self, key: &Key) -> Option<u64> {
        if let Some(object) = self.cache.get(key) {
            return Some(self.shard_by.hash_of(object.meta()));
        }
        if let Some(entry) = self.cache.undecodable(key) {
            return Some(self.shard_by.hash_of(entry.object.metadata()));
        }
        let deleted = self
            .deleted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(key)
            .copied();
        self.departures.hash_of(key).or(deleted)
    }

    /// Logs a panic. The returned error stops the manager.
    fn panic_error(&self, key: &Key, message: &str) -> Error {
        let kind = self.cache.kind().name();
        let message = join_lines(message);
        tracing::error!(error = message, "reconcile panicked, stopping the manager");
        Error::new(format!("reconcile of {kind} {key} panicked: {message}"))
    }

    async fn run(&self, key: &Key, guard: Option<&KeyGuard>) -> Outcome {
        let outcome = match guard {
            Some(guard) => tokio::select! {
                biased;
                outcome = self.run_caught(key, Some(guard)) => outcome,
                () = guard.revoked() => Outcome::Failed(Error::new(REVOKED)),
            },
            None => self.run_caught(key, None).await,
        };
        #[cfg(feature = "simulation")]
        self.record_for_simulation(key, &outcome);
        outcome
    }

    #[cfg(feature = "simulation")]
    fn record_for_simulation(&self, key: &Key, outcome: &Outcome) {
        let object = || format!("{} {key}", self.cache.kind().name());
        let error: Option<&dyn std::fmt::Display> = match outcome {
            Outcome::Failed(error) => Some(error),
            Outcome::TimedOut(_) => Some(&"it exceeds its timeout"),
            Outcome::Done(_) | Outcome::Panicked(_) => None,
        };
        rbuilder_simulation::record_reconcile(object, error);
    }

    async fn run_caught(&self, key: &Key, guard: Option<&KeyGuard>) -> Outcome {
        let caught = AssertUnwindSafe(self.reconcile(key, guard)).catch_unwind();
        let result = match self.timeout {
            Some(limit) => match tokio::time::timeout(limit, caught).await {
                Ok(result) => result,
                Err(_) => return Outcome::TimedOut(limit),
            },
            None => caught.await,
        };
        match result {
            Ok(Ok(action)) => Outcome::Done(action),
            Ok(Err(error)) => Outcome::Failed(error),
            Err(panic) => Outcome::Panicked(panic_message(&*panic).to_owned()),
        }
    }

    /// `guard` keeps the range of the object on this replica.
    async fn reconcile(&self, key: &Key, guard: Option<&KeyGuard>) -> Result<Action, Error> {
        match self.cache.get(key) {
            // A recreated object has a different UID, so it may be in a different range.
            Some(object) if guard.is_some_and(|guard| !guard.keeps(self.shard_by.hash_of(object.meta()))) => {
                Ok(Action::requeue(Duration::from_millis(1)))
            }
            None => match self.cache.undecodable(key) {
                Some(entry) => self.handle_undecodable(&entry).await,
                None => match self.handle_departure(key).await? {
                    Some(action) => Ok(action),
                    None => self.handle_deletion(key).await,
                },
            },
            Some(object) if object.meta().deletion_timestamp.is_some() => {
                self.handle_terminating(object).await
            }
            Some(object) => match self.add_missing_finalizers(object).await? {
                Some(object) => self.reconcile_object(object).await,
                None => Ok(Action::await_change()),
            },
        }
    }

    async fn handle_terminating(&self, object: Arc<K>) -> Result<Action, Error> {
        if !self.handlers.finalizers.is_empty() {
            return self.clean_up(object).await;
        }
        // Not reconciled by default: that would recreate what the garbage collector deletes, and
        // adopt what it orphans.
        match self.handlers.reconciles_terminating {
            true => self.reconcile_object(object).await,
            false => Ok(Action::await_change()),
        }
    }

    async fn reconcile_object(&self, object: Arc<K>) -> Result<Action, Error> {
        match (self.handlers.reconcile)(Arc::clone(&object), self.ctx.for_reconcile()).await {
            // If the reconciled object itself is terminating, the cache was merely stale, so this
            // isn't an error. For any other owner it is one, because there might be no event when
            // that owner becomes usable.
            Err(error)
                if error
                    .terminating_owners()
                    .any(|owner| Some(owner) == object.meta().uid.as_deref()) =>
            {
                let error = join_lines(&format!("{error:#}"));
                tracing::debug!(%error, "reconcile ended, the object is being deleted");
                Ok(Action::await_change())
            }
            result => result,
        }
    }

    async fn handle_undecodable(&self, entry: &UndecodableEntry) -> Result<Action, Error> {
        self.ctx.record_undecodable(self.cache.kind(), entry);
        match &self.handlers.on_undecodable {
            Some(handle) => handle(Arc::new(entry.object.clone()), self.ctx.clone()).await,
            None => Ok(Action::await_change()),
        }
    }

    async fn handle_deletion(&self, key: &Key) -> Result<Action, Error> {
        let Some(on_deleted) = &self.handlers.on_deleted else {
            return Ok(Action::await_change());
        };
        if !self
            .deleted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains_key(key)
        {
            // A mapping function may return an object that doesn't exist.
            return Ok(Action::await_change());
        }
        let action = on_deleted(self.cache.kind().reference(key), self.ctx.clone()).await?;
        if action.requeue_after().is_none() {
            self.deleted
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(key);
        }
        Ok(action)
    }

    /// Requeues a key depending on the outcome of its reconcile.
    fn settle(&self, key: &Key, outcome: Outcome) -> Result<(), Error> {
        // Formatting an error calls user code. Treat a panic there like one in the reconcile.
        // Otherwise the worker would exit, and the key would stay in progress forever.
        match catch_unwind(AssertUnwindSafe(|| self.requeue(key, outcome))) {
            Ok(()) => Ok(()),
            Err(panic) if self.recover_panics => {
                self.retry(key, "reconcile panicked", panic_message(&*panic));
                Ok(())
            }
            Err(panic) => Err(self.panic_error(key, panic_message(&*panic))),
        }
    }

    /// See [`settle`](Self::settle). This also logs errors.
    fn requeue(&self, key: &Key, outcome: Outcome) {
        let conflicts = self.count_conflicts(key, &outcome);
        match outcome {
            Outcome::Done(action) => {
                self.queue.forget(key);
                if let Some(delay) = action.requeue_after() {
                    let priority = self.queue.taken_priority(key);
                    self.queue.add_after(key.clone(), delay, priority);
                }
            }
            Outcome::Failed(error) if error.is_terminal() => {
                self.queue.forget(key);
                let error = join_lines(&format!("{error:#}"));
                tracing::error!(%error, "terminal error, not retrying until the object changes");
            }
            // Also a conflict, but one that an up-to-date cache doesn't resolve.
            Outcome::Failed(error) if error.is_field_manager_conflict() => {
                let message = "reconcile failed, another field manager owns a field";
                self.retry(key, message, &format!("{error:#}"));
            }
            Outcome::Failed(error) if error.is_conflict() => {
                let retry_in = self.add_failed(key);
                let error = join_lines(&format!("{error:#}"));
                if conflicts < LASTING_CONFLICT {
                    tracing::debug!(?retry_in, conflicts, %error, "conflict, the object has been modified");
                } else {
                    tracing::error!(?retry_in, conflicts, %error, "reconcile failed, the object keeps being modified");
                }
            }
            Outcome::Failed(error) => self.retry(key, "reconcile failed", &format!("{error:#}")),
            Outcome::Panicked(message) => self.retry(key, "reconcile panicked", &message),
            Outcome::TimedOut(limit) => {
                self.retry(key, "reconcile timed out", &format!("no result within {limit:?}"));
            }
        }
    }

    /// Returns the number of consecutive conflicts, including this one.
    fn count_conflicts(&self, key: &Key, outcome: &Outcome) -> u32 {
        // Calls user code, so do it before taking the lock.
        let is_conflict = matches!(outcome, Outcome::Failed(error) if error.is_conflict());
        let mut conflicts = self.conflicts.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_conflict {
            conflicts.remove(key);
            return 0;
        }
        let count = conflicts.entry(key.clone()).or_default();
        *count = count.saturating_add(1);
        *count
    }

    /// Requeues a key with backoff and logs the error as a single line.
    fn retry(&self, key: &Key, message: &str, error: &str) {
        let retry_in = self.add_failed(key);
        let error = join_lines(error);
        // `retry_in` comes first, because the error may be long.
        tracing::error!(?retry_in, %error, "{message}");
    }

    /// Requeues a key with backoff. The key keeps its priority, like in controller-runtime.
    fn add_failed(&self, key: &Key) -> Duration {
        let priority = self.queue.taken_priority(key);
        self.queue.add_failed(key.clone(), priority)
    }
}

/// Returns 16 random hex digits, which all log lines of a reconcile share.
fn new_reconcile_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    static KEY: std::sync::LazyLock<RandomState> = std::sync::LazyLock::new(RandomState::new);
    format!("{:016x}", KEY.hash_one(COUNT.fetch_add(1, Ordering::Relaxed)))
}

#[cfg(test)]
mod tests;

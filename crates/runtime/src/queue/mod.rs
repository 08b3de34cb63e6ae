//! Workqueue of a controller, with deduplication, delays, priorities and backoff.
//!
//! - A key is in the queue at most once, no matter how often it is added, and is never processed by
//!   two workers concurrently. If it is added while a worker is processing it, it becomes ready
//!   again once that worker is done.
//! - Keys with a higher [`Priority`] come first; otherwise, the order is preserved. Waiting makes
//!   up for a low priority: one second corresponds to one point of priority.
//! - If a key is added again while it is being processed (e.g. for a retry), it should keep its
//!   [priority](Workqueue::taken_priority). Otherwise, failures of an initial list would overtake
//!   changes.
//! - Failures of a key cause exponential backoff, independently of all other keys. The default
//!   [`Backoff`] can be replaced by a [`RateLimiter`].
//!
//! The queue is independent of Kubernetes. It uses tokio's clock, so it can be tested with a paused
//! clock. Keys are shared between its data structures, and memory is released after a burst.
//!
//! # Example: deduplication
//!
//! Ten Pods of the ReplicaSet `web` change while a worker is processing `web`. The key is in the
//! state `Processing`, so each `add` just sets its flag `again`, and `done` makes it ready once.
//! Adding it to the ready keys right away would be simpler, but then a second worker could
//! reconcile `web` concurrently.
//!
//! # Example: priorities and ageing
//!
//! At startup, 5000 objects of the initial list are added with priority [`LOW`] (-100) at second 0.
//! Changes arrive with priority [`NORMAL`] (0). The [`Rank`] of a key is the time at which it was
//! added, minus its priority in seconds. The key with the smallest rank comes first:
//!
//! | key | added at | priority | rank |
//! |---|---|---|---|
//! | `listed`, of the initial list | 0 s | -100 | 100 s |
//! | `changed`, changed at startup | 3 s | 0 | 3 s |
//! | `later`, changed much later | 101 s | 0 | 101 s |
//!
//! `changed` overtakes the initial list, but `listed` comes before `later`. A steady stream of
//! changes can thus delay an object by 100 s at most. With strict priorities, it could starve.
//!
//! Ageing could also be implemented by periodically increasing the priority of all waiting keys,
//! which requires a timer and a pass over the entire queue. Since all of our keys age at the same
//! rate, their ranks never change, and a sorted map is enough.

mod snapshot;

use std::collections::BTreeMap;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::deadline::deadline_after;
use crate::hash::HashMap;
use crate::metrics::QueueMetrics;
use crate::rate_limiter::RateLimiter;

pub(crate) use snapshot::{QueueSnapshot, QueuedKey, Stage};

/// Smaller maps aren't worth shrinking.
const MIN_CAPACITY: usize = 1024;

/// Bounds for the delays of a rate limiter. Shorter delays would result in a hot loop, and longer
/// ones amount to no retry at all.
const LIMITER_DELAYS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(24 * 60 * 60));

pub(crate) type Priority = i32;
/// For changes.
pub(crate) const NORMAL: Priority = 0;
/// For objects from an initial list or a resync, which may not have changed at all.
pub(crate) const LOW: Priority = -100;

/// A queue of keys, see the module documentation.
pub(crate) struct Workqueue<T> {
    state: Mutex<State<T>>,
    /// Wakes a single worker, which wakes the next one if there is more work.
    changed: Notify,
    /// Wakes all callers of [`Workqueue::closed`].
    closing: Notify,
    /// Ranks are relative to this time.
    epoch: Instant,
    backoff: Backoff,
    /// Replaces `backoff`.
    limiter: Option<Box<dyn RateLimiter<T>>>,
}

struct State<T> {
    ready: BTreeMap<Rank, Arc<T>>,
    waiting: BTreeMap<(Instant, u64), Arc<T>>,
    keys: HashMap<Arc<T>, KeyState>,
    failures: HashMap<Arc<T>, u32>,
    /// Number of the next key. Orders keys added in the same millisecond.
    next_seq: u64,
    closed: bool,
    metrics: QueueMetrics,
}

/// Time at which the key was added, minus its priority in seconds. The smallest rank comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    due_ms: i64,
    seq: u64,
}

/// The time and the priority are for metrics.
#[derive(Clone, Copy, Debug)]
struct ReadyKey {
    rank: Rank,
    since: Instant,
    priority: Priority,
}

impl ReadyKey {
    fn new(since: Instant, priority: Priority, seq: u64, epoch: Instant) -> Self {
        let rank = Rank {
            due_ms: due_ms(since, epoch, priority),
            seq,
        };
        Self {
            rank,
            since,
            priority,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum KeyState {
    Ready(ReadyKey),
    Waiting {
        at: Instant,
        seq: u64,
        priority: Priority,
    },
    Processing {
        since: Instant,
        /// Priority at the time a worker took the key.
        priority: Priority,
        again: Option<AddRequest>,
    },
}

/// Asks to add a key, either immediately or later.
#[derive(Clone, Copy, Debug)]
enum AddRequest {
    Now(Priority),
    At(Instant, Priority),
}

impl AddRequest {
    /// The earlier time and the higher priority win.
    fn merge(self, other: Self) -> Self {
        match (self, other) {
            (Self::At(a, p), Self::At(b, q)) => Self::At(a.min(b), p.max(q)),
            (Self::Now(p) | Self::At(_, p), Self::Now(q) | Self::At(_, q)) => Self::Now(p.max(q)),
        }
    }
}

impl<T: Clone + Eq + Hash + 'static> Workqueue<T> {
    pub(crate) fn new(metrics: QueueMetrics) -> Self {
        Self {
            state: Mutex::new(State {
                ready: BTreeMap::new(),
                waiting: BTreeMap::new(),
                keys: HashMap::default(),
                failures: HashMap::default(),
                next_seq: 0,
                closed: false,
                metrics,
            }),
            changed: Notify::new(),
            closing: Notify::new(),
            epoch: Instant::now(),
            backoff: Backoff::default(),
            limiter: None,
        }
    }

    pub(crate) fn with_backoff(self, backoff: Backoff) -> Self {
        Self { backoff, ..self }
    }

    pub(crate) fn with_rate_limiter(self, limiter: Box<dyn RateLimiter<T>>) -> Self {
        Self {
            limiter: Some(limiter),
            ..self
        }
    }

    pub(crate) fn add(&self, key: T, priority: Priority) {
        self.schedule(key, AddRequest::Now(priority));
    }

    /// Adds a key that becomes ready after `delay`. No-op if the key is already due sooner.
    pub(crate) fn add_after(&self, key: T, delay: Duration, priority: Priority) {
        let request = if delay.is_zero() {
            AddRequest::Now(priority)
        } else {
            self.lock().metrics.retried();
            AddRequest::At(deadline_after(Instant::now(), delay), priority)
        };
        self.schedule(key, request);
    }

    /// Counts a failure of the key, and adds the key with backoff. Returns the delay.
    pub(crate) fn add_failed(&self, key: T, priority: Priority) -> Duration {
        let (least, most) = LIMITER_DELAYS;
        let limited = self.ask_limiter(|limiter| limiter.when(&key));
        // Always count the failure: `retry_failed` needs it, and so does the fallback if the
        // limiter panics.
        let backoff = self.count_failure(&key);
        let delay = limited.map_or(backoff, |delay| delay.clamp(least, most));
        self.add_after(key, delay, priority);
        delay
    }

    /// Called when something becomes available that keys may have been waiting for. All keys whose
    /// last attempt failed become ready, with low priority.
    ///
    /// This includes keys in progress, since their current attempt may already have failed. The
    /// backoff is not affected.
    pub(crate) fn retry_failed(&self) {
        let mut state = self.lock();
        let failed: Vec<Arc<T>> = state.failures.keys().cloned().collect();
        for key in failed {
            state.schedule(key, AddRequest::Now(LOW), self.epoch);
        }
        drop(state);
        self.changed.notify_one();
    }

    fn count_failure(&self, key: &T) -> Duration {
        let mut state = self.lock();
        let shared = state.share(key);
        let failures = state.failures.entry(shared).or_default();
        let delay = self.backoff.delay_after(*failures);
        *failures = failures.saturating_add(1);
        delay
    }

    /// Returns the priority at which a worker took the key, for adding the key again.
    pub(crate) fn taken_priority(&self, key: &T) -> Priority {
        match self.lock().keys.get(key) {
            Some(KeyState::Processing { priority, .. }) => *priority,
            _ => NORMAL,
        }
    }

    /// Calls the rate limiter. Must not hold the lock, since this runs user code.
    ///
    /// Returns `None` if there is no limiter, or if it panicked. Either way, the key must still be
    /// retried.
    fn ask_limiter<A>(&self, ask: impl FnOnce(&dyn RateLimiter<T>) -> A) -> Option<A> {
        let limiter = self.limiter.as_deref()?;
        let answer = catch_unwind(AssertUnwindSafe(|| ask(limiter)));
        answer
            .inspect_err(|_| tracing::error!("rate limiter panicked, using the default back-off"))
            .ok()
    }

    pub(crate) fn forget(&self, key: &T) {
        // The limiter is user code, so call it before taking the lock.
        self.ask_limiter(|limiter| limiter.forget(key));
        let mut state = self.lock();
        state.failures.remove(key);
        shrink(&mut state.failures);
    }

    /// Waits for a ready key, which the caller must pass to [`Workqueue::done`] after processing
    /// it. Returns `None` once the queue is closed.
    pub(crate) async fn next(&self) -> Option<T> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Register before looking at the queue, or a key added in between would be missed.
            changed.as_mut().enable();
            let due = {
                let mut state = self.lock();
                if state.closed {
                    // Wake another worker, which wakes the next one in turn.
                    self.changed.notify_one();
                    return None;
                }
                let now = Instant::now();
                state.promote_due(self.epoch, now);
                if let Some(key) = state.take(now) {
                    // `notify_one` only wakes a single worker, so wake the next one if there's more
                    // work.
                    if !state.ready.is_empty() || !state.waiting.is_empty() {
                        self.changed.notify_one();
                    }
                    return Some(key);
                }
                state.waiting.first_key_value().map(|((at, _), _)| *at)
            };
            match due {
                Some(at) => tokio::select! {
                    biased;
                    () = changed => {}
                    () = tokio::time::sleep_until(at) => {}
                },
                None => changed.await,
            }
        }
    }

    /// Makes the key ready again if it was added while a worker was processing it.
    pub(crate) fn done(&self, key: &T) {
        let mut state = self.lock();
        let Some(KeyState::Processing { since, again, .. }) = state.keys.get(key).copied() else {
            return;
        };
        state.metrics.done(since);
        let removed = state.keys.remove_entry(key).map(|(key, _)| key);
        if let Some((key, again)) = removed.zip(again) {
            state.schedule(key, again, self.epoch);
            drop(state);
            self.changed.notify_one();
        } else {
            shrink(&mut state.keys);
        }
    }

    /// No more keys are returned after this.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
        self.closing.notify_waiters();
    }

    pub(crate) async fn closed(&self) {
        loop {
            let mut closing = std::pin::pin!(self.closing.notified());
            // Register before checking `closed`; otherwise we could miss a wakeup and wait forever.
            closing.as_mut().enable();
            if self.lock().closed {
                return;
            }
            closing.await;
        }
    }

    /// Counts delayed keys that became ready while all workers were busy.
    pub(crate) fn refresh_metrics(&self) {
        self.lock().promote_due(self.epoch, Instant::now());
    }

    #[cfg(test)]
    pub(crate) fn depth(&self) -> usize {
        let mut state = self.lock();
        state.promote_due(self.epoch, Instant::now());
        state.ready.len()
    }

    fn schedule(&self, key: T, request: AddRequest) {
        let mut state = self.lock();
        // Do this first: the rank of a delayed key must depend on when it became due, not on this
        // request.
        state.promote_due(self.epoch, Instant::now());
        let key = state.share_owned(key);
        state.schedule(key, request, self.epoch);
        drop(state);
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Ignore poisoning: nothing can panic while the lock is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone + Eq + Hash> State<T> {
    /// Returns the copy of the key that all maps share, or makes `key` that copy if there is none.
    fn share_owned(&self, key: T) -> Arc<T> {
        self.find(&key).unwrap_or_else(|| Arc::new(key))
    }

    /// Like [`share_owned`](Self::share_owned), but only clones the key if necessary.
    fn share(&self, key: &T) -> Arc<T> {
        self.find(key).unwrap_or_else(|| Arc::new(key.clone()))
    }

    fn find(&self, key: &T) -> Option<Arc<T>> {
        let queued = self.keys.get_key_value(key).map(|(key, _)| key);
        let failed = || self.failures.get_key_value(key).map(|(key, _)| key);
        queued.or_else(failed).map(Arc::clone)
    }

    fn schedule(&mut self, key: Arc<T>, request: AddRequest, epoch: Instant) {
        match self.keys.get(&key).copied() {
            Some(KeyState::Processing {
                since,
                priority,
                again,
            }) => {
                // Not ready before `done`, or a second worker could process the key concurrently.
                let again = Some(again.map_or(request, |before| before.merge(request)));
                let state = KeyState::Processing {
                    since,
                    priority,
                    again,
                };
                self.keys.insert(key, state);
            }
            Some(KeyState::Ready(ready)) => {
                let (AddRequest::Now(priority) | AddRequest::At(_, priority)) = request;
                // The key is already ready, so only a better rank makes a difference.
                let better = ReadyKey::new(Instant::now(), priority, ready.rank.seq, epoch);
                if matches!(request, AddRequest::Now(_)) && better.rank < ready.rank {
                    self.ready.remove(&ready.rank);
                    self.metrics.moved(ready.priority, priority);
                    self.insert_ready(
                        key,
                        ReadyKey {
                            since: ready.since,
                            ..better
                        },
                    );
                }
            }
            Some(KeyState::Waiting { at, seq, priority }) => {
                self.waiting.remove(&(at, seq));
                self.insert(key, AddRequest::At(at, priority).merge(request), epoch);
            }
            None => self.insert(key, request, epoch),
        }
    }

    fn insert(&mut self, key: Arc<T>, request: AddRequest, epoch: Instant) {
        let seq = self.next_seq;
        self.next_seq += 1;
        match request {
            AddRequest::Now(priority) => {
                self.metrics.added(priority);
                self.insert_ready(key, ReadyKey::new(Instant::now(), priority, seq, epoch));
            }
            AddRequest::At(at, priority) => {
                self.waiting.insert((at, seq), Arc::clone(&key));
                self.keys.insert(key, KeyState::Waiting { at, seq, priority });
            }
        }
    }

    fn insert_ready(&mut self, key: Arc<T>, ready: ReadyKey) {
        self.ready.insert(ready.rank, Arc::clone(&key));
        self.keys.insert(key, KeyState::Ready(ready));
    }

    /// Makes delayed keys ready that are due. Their rank depends on when they became due.
    fn promote_due(&mut self, epoch: Instant, now: Instant) {
        while let Some(entry) = self.waiting.first_entry() {
            let (at, seq) = *entry.key();
            if at > now {
                break;
            }
            let key = entry.remove();
            let priority = match self.keys.get(&key) {
                Some(KeyState::Waiting { priority, .. }) => *priority,
                _ => NORMAL,
            };
            self.metrics.added(priority);
            self.insert_ready(key, ReadyKey::new(at, priority, seq, epoch));
        }
    }

    fn take(&mut self, now: Instant) -> Option<T> {
        let (_, key) = self.ready.pop_first()?;
        let mut priority = NORMAL;
        if let Some(KeyState::Ready(ready)) = self.keys.get(&key) {
            self.metrics.taken(ready.priority, ready.since, now);
            priority = ready.priority;
        }
        let state = KeyState::Processing {
            since: now,
            priority,
            again: None,
        };
        let taken = T::clone(&key);
        self.keys.insert(key, state);
        Some(taken)
    }
}

/// Shrinks a map to twice its length if it's less than a quarter full. A tighter bound would move
/// the entries too often.
fn shrink<K: Eq + Hash, V>(map: &mut HashMap<K, V>) {
    if map.capacity() > MIN_CAPACITY && map.len() < map.capacity() / 4 {
        map.shrink_to((map.len() * 2).max(MIN_CAPACITY / 2));
    }
}

fn due_ms(added: Instant, epoch: Instant, priority: Priority) -> i64 {
    // Half of the range leaves room for subtracting the priority.
    let added = i64::try_from(added.saturating_duration_since(epoch).as_millis()).unwrap_or(i64::MAX / 2);
    added - i64::from(priority) * 1000
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests;

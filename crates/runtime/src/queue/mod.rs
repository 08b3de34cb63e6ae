//! The workqueue of a controller: a queue of object keys with deduplication, delays, priorities and
//! back-off.
//!
//! - A key is in the queue at most once, no matter how often it is added, and two workers never
//!   process it at the same time. A key added while a worker processes it becomes ready again when
//!   that worker is done.
//! - Keys come out in the order in which they were added, higher [`Priority`] first. Waiting makes
//!   up for a low priority: one second of waiting equals one point of priority.
//! - A key that is added again while it is processed, such as for a retry, should keep its
//!   [priority](Workqueue::taken_priority): failures of an initial list must not overtake changes.
//! - Failures of a key back off exponentially and independently of other keys, by default like
//!   [`Backoff`], or as decided by a [`RateLimiter`].
//!
//! The queue knows nothing about Kubernetes and uses tokio's clock, which tests can pause. Its data
//! structures share each key, and after a burst it releases the memory.
//!
//! # Example: deduplication
//! Ten Pods of the ReplicaSet `web` change while a worker processes `web`. The key is in state
//! `Processing`, so each `add` only sets its `again`, and `done` makes it ready once. Adding it to
//! the ready keys instead would be simpler, but a second worker could then reconcile `web` at the
//! same time.
//!
//! # Example: priorities and ageing
//! At startup, 5000 objects of the initial list are added with priority [`LOW`] (-100) at second 0.
//! Changes arrive with priority [`NORMAL`] (0). A key's [`Rank`] is the time at which it was added
//! minus its priority in seconds, and the smallest rank is next:
//!
//! | key | added at | priority | rank |
//! |---|---|---|---|
//! | `listed`, of the initial list | 0 s | -100 | 100 s |
//! | `changed`, changed at startup | 3 s | 0 | 3 s |
//! | `later`, changed much later | 101 s | 0 | 101 s |
//!
//! `changed` overtakes the initial list, and `listed` comes before `later`: an object waits at most
//! 100 s behind a steady stream of changes. With strict priorities, it could wait forever. Ageing
//! by periodically raising the priority of waiting keys would need a timer and a pass over the
//! queue. Here, the rank never changes, because all keys age at the same rate, so a sorted map is
//! enough.

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

/// Maps with at most this capacity are not shrunk.
const MIN_CAPACITY: usize = 1024;

/// Minimum and maximum delay accepted from a rate limiter. With a shorter delay, failures would be
/// retried in a busy loop; with a longer one, they might as well not be retried.
const LIMITER_DELAYS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(24 * 60 * 60));

/// The priority of a key. Higher comes first.
pub(crate) type Priority = i32;
/// Priority of changes.
pub(crate) const NORMAL: Priority = 0;
/// Priority of the objects in an initial list or a resync, which have not necessarily changed.
pub(crate) const LOW: Priority = -100;

/// A queue of keys with deduplication, delays, priorities and back-off; see the module documentation.
pub(crate) struct Workqueue<T> {
    state: Mutex<State<T>>,
    /// Wakes one waiting worker, which wakes the next one if there is more to do.
    changed: Notify,
    /// Wakes all waiters of [`Workqueue::closed`].
    closing: Notify,
    /// The time at which ranks start.
    epoch: Instant,
    backoff: Backoff,
    /// Decides on delays after failures instead of `backoff`.
    limiter: Option<Box<dyn RateLimiter<T>>>,
}

struct State<T> {
    ready: BTreeMap<Rank, Arc<T>>,
    waiting: BTreeMap<(Instant, u64), Arc<T>>,
    keys: HashMap<Arc<T>, KeyState>,
    failures: HashMap<Arc<T>, u32>,
    /// Sequence number of the next key, which orders keys added in the same millisecond.
    next_seq: u64,
    closed: bool,
    metrics: QueueMetrics,
}

/// The order of ready keys, smallest first: the time at which the key was added minus its priority
/// in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    due_ms: i64,
    seq: u64,
}

/// The position of a ready key in the queue, and its time and priority for metrics.
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
        /// The priority with which the key was taken.
        priority: Priority,
        again: Option<AddRequest>,
    },
}

/// A request to add a key now or later.
#[derive(Clone, Copy, Debug)]
enum AddRequest {
    Now(Priority),
    At(Instant, Priority),
}

impl AddRequest {
    /// Combines two requests for the same key, keeping the earlier time and the higher priority.
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

    /// Sets the delays after failures.
    pub(crate) fn with_backoff(self, backoff: Backoff) -> Self {
        Self { backoff, ..self }
    }

    /// Sets a limiter that decides on the delays after failures.
    pub(crate) fn with_rate_limiter(self, limiter: Box<dyn RateLimiter<T>>) -> Self {
        Self {
            limiter: Some(limiter),
            ..self
        }
    }

    /// Adds `key`, ready now.
    pub(crate) fn add(&self, key: T, priority: Priority) {
        self.schedule(key, AddRequest::Now(priority));
    }

    /// Adds `key`, ready after `delay` unless it already becomes ready earlier.
    pub(crate) fn add_after(&self, key: T, delay: Duration, priority: Priority) {
        let request = if delay.is_zero() {
            AddRequest::Now(priority)
        } else {
            self.lock().metrics.retried();
            AddRequest::At(deadline_after(Instant::now(), delay), priority)
        };
        self.schedule(key, request);
    }

    /// Counts a failure of `key`, and adds it after the resulting delay. Returns the delay.
    pub(crate) fn add_failed(&self, key: T, priority: Priority) -> Duration {
        let (least, most) = LIMITER_DELAYS;
        let limited = self.ask_limiter(|limiter| limiter.when(&key));
        let backoff = self.count_failure(&key);
        let delay = limited.map_or(backoff, |delay| delay.clamp(least, most));
        self.add_after(key, delay, priority);
        delay
    }

    /// Makes all keys ready whose last attempt failed, at low priority, because what they were
    /// missing may be available again. A key in progress becomes ready once more, because it may
    /// already have failed. The next failure of a key has the same delay that it would have had
    /// anyway.
    pub(crate) fn retry_failed(&self) {
        let mut state = self.lock();
        let failed: Vec<Arc<T>> = state.failures.keys().cloned().collect();
        for key in failed {
            state.schedule(key, AddRequest::Now(LOW), self.epoch);
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Counts a failure of `key` and returns the back-off.
    fn count_failure(&self, key: &T) -> Duration {
        let mut state = self.lock();
        let shared = state.share(key);
        let failures = state.failures.entry(shared).or_default();
        let delay = self.backoff.delay_after(*failures);
        *failures = failures.saturating_add(1);
        delay
    }

    /// Returns the priority with which `key` was taken, for adding it again. [`NORMAL`] if nobody
    /// processes it.
    pub(crate) fn taken_priority(&self, key: &T) -> Priority {
        match self.lock().keys.get(key) {
            Some(KeyState::Processing { priority, .. }) => *priority,
            _ => NORMAL,
        }
    }

    /// Calls the rate limiter without holding the lock, because it is the operator's code.
    ///
    /// Returns `None` if there is no limiter or if it panicked; the key must be retried in any
    /// case.
    fn ask_limiter<A>(&self, ask: impl FnOnce(&dyn RateLimiter<T>) -> A) -> Option<A> {
        let limiter = self.limiter.as_deref()?;
        let answer = catch_unwind(AssertUnwindSafe(|| ask(limiter)));
        answer
            .inspect_err(|_| tracing::error!("rate limiter panicked, using the default back-off"))
            .ok()
    }

    /// Resets the back-off of `key`.
    pub(crate) fn forget(&self, key: &T) {
        self.ask_limiter(|limiter| limiter.forget(key));
        let mut state = self.lock();
        state.failures.remove(key);
        shrink(&mut state.failures);
    }

    /// Waits for the next ready key, which the caller processes until [`Workqueue::done`]. Returns
    /// `None` once the queue is closed.
    pub(crate) async fn next(&self) -> Option<T> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let due = {
                let mut state = self.lock();
                if state.closed {
                    // Wake the next waiting worker, which does the same.
                    self.changed.notify_one();
                    return None;
                }
                let now = Instant::now();
                state.promote_due(self.epoch, now);
                if let Some(key) = state.take(now) {
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

    /// Marks `key` as processed. It becomes ready again if it was added in the meantime.
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

    /// Closes the queue, so that it hands out no more keys.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
        self.closing.notify_waiters();
    }

    /// Resolves when the queue is closed.
    pub(crate) async fn closed(&self) {
        loop {
            let mut closing = std::pin::pin!(self.closing.notified());
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

    /// Returns the number of ready keys.
    #[cfg(test)]
    pub(crate) fn depth(&self) -> usize {
        let mut state = self.lock();
        state.promote_due(self.epoch, Instant::now());
        state.ready.len()
    }

    fn schedule(&self, key: T, request: AddRequest) {
        let mut state = self.lock();
        // Promote first, so that the rank of a delayed key that is due depends on when it became
        // due, not on this request.
        state.promote_due(self.epoch, Instant::now());
        let key = state.share_owned(key);
        state.schedule(key, request, self.epoch);
        drop(state);
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Nothing can panic while the lock is held, so even a poisoned state is consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone + Eq + Hash> State<T> {
    /// Returns the shared key equal to this one, or a new shared key.
    fn share_owned(&self, key: T) -> Arc<T> {
        self.find(&key).unwrap_or_else(|| Arc::new(key))
    }

    /// Like [`share_owned`](Self::share_owned), but copies a new key.
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

    /// Makes delayed keys ready that are due, ranked by when they became due.
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

/// Shrinks a map that is three quarters empty to twice its length, so that the cost of moving the
/// entries is spread over many removals.
fn shrink<K: Eq + Hash, V>(map: &mut HashMap<K, V>) {
    if map.capacity() > MIN_CAPACITY && map.len() < map.capacity() / 4 {
        map.shrink_to((map.len() * 2).max(MIN_CAPACITY / 2));
    }
}

fn due_ms(added: Instant, epoch: Instant, priority: Priority) -> i64 {
    let added = i64::try_from(added.saturating_duration_since(epoch).as_millis()).unwrap_or(i64::MAX / 2);
    added - i64::from(priority) * 1000
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests;

//! Snapshots of a queue, which help to find out what's stuck.

use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

use super::{KeyState, NORMAL, Priority, Workqueue};

/// Contents of a queue.
#[derive(Debug)]
pub(crate) struct QueueSnapshot<T> {
    pub(crate) in_progress: usize,
    pub(crate) ready: usize,
    pub(crate) delayed: usize,
    /// Keys that are being processed, followed by ready keys in order, and then by delayed keys
    /// sorted by time. There may be more, since the number is limited.
    pub(crate) keys: Vec<QueuedKey<T>>,
}

#[derive(Debug)]
pub(crate) struct QueuedKey<T> {
    pub(crate) key: T,
    pub(crate) stage: Stage,
    pub(crate) priority: Priority,
    /// Number of consecutive failures, according to the rate limiter.
    pub(crate) failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// A worker has been processing the key for this long. If `again` is set, it has been added in
    /// the meantime.
    InProgress { since: Duration, again: bool },
    /// The key has been waiting for a worker for this long.
    Ready { since: Duration },
    /// The key will be ready after this time.
    Delayed { until: Duration },
}

impl<T: Clone + Eq + Hash + 'static> Workqueue<T> {
    /// Returns the queue's contents. The number of keys is limited to `limit`.
    pub(crate) fn snapshot(&self, limit: usize) -> QueueSnapshot<T> {
        let mut snapshot = self.collect(limit);
        for queued in &mut snapshot.keys {
            queued.failures = self.failures(&queued.key);
        }
        snapshot
    }

    /// Collects the keys, but not their failures. The rate limiter is provided by the user, so it
    /// must be called without holding the lock.
    fn collect(&self, limit: usize) -> QueueSnapshot<T> {
        let mut state = self.lock();
        let now = Instant::now();
        state.promote_due(self.epoch, now);
        let in_progress = state.keys.iter().filter_map(|(key, state)| match *state {
            KeyState::Processing {
                since,
                priority,
                again,
            } => {
                let (since, again) = (now.saturating_duration_since(since), again.is_some());
                Some((key, Stage::InProgress { since, again }, priority))
            }
            _ => None,
        });
        let ready = state.ready.values().map(|key| match state.keys.get(key) {
            Some(KeyState::Ready(ready)) => {
                let since = now.saturating_duration_since(ready.since);
                (key, Stage::Ready { since }, ready.priority)
            }
            _ => (
                key,
                Stage::Ready {
                    since: Duration::ZERO,
                },
                NORMAL,
            ),
        });
        let delayed = state.waiting.iter().map(|((at, _), key)| {
            let priority = match state.keys.get(key) {
                Some(KeyState::Waiting { priority, .. }) => *priority,
                _ => NORMAL,
            };
            let until = at.saturating_duration_since(now);
            (key, Stage::Delayed { until }, priority)
        });
        let keys = in_progress.chain(ready).chain(delayed).take(limit);
        let keys = keys.map(|(key, stage, priority)| QueuedKey {
            key: T::clone(key),
            stage,
            priority,
            failures: 0,
        });
        let keys = keys.collect();
        let (ready, delayed) = (state.ready.len(), state.waiting.len());
        QueueSnapshot {
            in_progress: state.keys.len() - ready - delayed,
            ready,
            delayed,
            keys,
        }
    }

    /// Returns the number of consecutive failures of a key, according to the rate limiter.
    fn failures(&self, key: &T) -> u32 {
        let limited = self.ask_limiter(|limiter| limiter.num_requeues(key));
        limited.unwrap_or_else(|| self.lock().failures.get(key).copied().unwrap_or_default())
    }
}

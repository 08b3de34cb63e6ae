//! Snapshots of a queue, for finding out what's stuck.

use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

use super::{KeyState, NORMAL, Priority, Workqueue};

#[derive(Debug)]
pub(crate) struct QueueSnapshot<T> {
    pub(crate) in_progress: usize,
    pub(crate) ready: usize,
    pub(crate) delayed: usize,
    /// Keys in progress, followed by ready keys in order and delayed keys by time. May be
    /// incomplete, since the number of keys is limited.
    pub(crate) keys: Vec<QueuedKey<T>>,
}

#[derive(Debug)]
pub(crate) struct QueuedKey<T> {
    pub(crate) key: T,
    pub(crate) stage: Stage,
    pub(crate) priority: Priority,
    /// Consecutive failures, according to the rate limiter.
    pub(crate) failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// How long a worker has been processing the key. `again` is set if the key was re-added
    /// meanwhile.
    InProgress { since: Duration, again: bool },
    /// How long the key has been waiting for a worker.
    Ready { since: Duration },
    /// Time until the key becomes ready.
    Delayed { until: Duration },
}

impl<T: Clone + Eq + Hash + 'static> Workqueue<T> {
    /// Contains at most `limit` keys.
    pub(crate) fn snapshot(&self, limit: usize) -> QueueSnapshot<T> {
        let mut snapshot = self.collect(limit);
        for queued in &mut snapshot.keys {
            queued.failures = self.failures(&queued.key);
        }
        snapshot
    }

    /// Collects the keys, but not their failures. The user-provided rate limiter must not be called
    /// while holding the lock.
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

    fn failures(&self, key: &T) -> u32 {
        let limited = self.ask_limiter(|limiter| limiter.num_requeues(key));
        limited.unwrap_or_else(|| self.lock().failures.get(key).copied().unwrap_or_default())
    }
}

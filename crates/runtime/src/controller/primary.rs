//! Handles events and resyncs of the controller's own kind.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::watch::{passes_filter, priority_of};
use super::worker::Worker;
use crate::cache::{CacheEvent, Change};
use crate::deadline::scale;
use crate::object::{Key, Watchable};
use crate::predicate::Predicate;
use crate::queue::{LOW, NORMAL};
use crate::random::random_share;

impl<K: Watchable, S: Send + Sync + 'static> Worker<K, S> {
    /// Enqueues objects of the controller's own kind when they change. Also tracks deletions for
    /// which `on_deleted` has to be called.
    pub(super) fn watch_primary(&self, filter: Option<Predicate<K>>) {
        let (queue, deleted) = (Arc::clone(&self.queue), Arc::clone(&self.deleted));
        let departures = Arc::clone(&self.departures);
        let (records_deletions, shard_by) = (self.handlers.on_deleted.is_some(), self.shard_by);
        self.cache.subscribe(Box::new(move |event| {
            // Must come first, since the predicate only applies to reconciles.
            let may_have_left = departures.note(event, shard_by);
            let (key, priority, is_deleted) = match event {
                CacheEvent::Change(change) if !may_have_left && !passes_filter(filter.as_ref(), change) => {
                    return;
                }
                CacheEvent::Change(Change::Applied { new, initial, .. }) => {
                    (Key::of(&**new), priority_of(*initial), false)
                }
                CacheEvent::Change(Change::Deleted(old)) => (Key::of(&**old), NORMAL, true),
                CacheEvent::Undecodable { new, initial, .. } => {
                    (Key::of_meta(new.object.metadata()), priority_of(*initial), false)
                }
                CacheEvent::UndecodableDeleted(old) => (Key::of_meta(old.object.metadata()), NORMAL, true),
            };
            if records_deletions {
                let mut deleted = deleted.lock().unwrap_or_else(PoisonError::into_inner);
                if is_deleted {
                    deleted.insert(key.clone(), shard_by.hash_of(event.meta()));
                } else {
                    // A recreated object is no longer deleted.
                    deleted.remove(&key);
                }
            }
            queue.add(key, priority);
        }));
    }

    pub(super) async fn resync(self: Arc<Self>, period: Duration) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(add_jitter(period)) => {}
                () = self.queue.closed() => return,
            }
            for key in self.cache.keys() {
                self.queue.add(key, LOW);
            }
        }
    }
}

/// Adds up to 10% jitter so that controllers don't all fire at once.
pub(super) fn add_jitter(period: Duration) -> Duration {
    scale(period, 1.0 + random_share() / 10.0)
}

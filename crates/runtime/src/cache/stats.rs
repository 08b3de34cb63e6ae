//! Statistics of caches for metrics and readiness checks.

use std::collections::HashSet;
use std::time::Duration;

use super::{Cache, WatchStatus};
use crate::object::{Key, Watchable};

pub(crate) struct CacheStats {
    /// Empty for the manager's own cluster.
    pub(crate) cluster: String,
    /// Kind and group, e.g. `Deployment.apps`.
    pub(crate) kind: String,
    /// Either `metadata` or `whole`.
    pub(crate) content: &'static str,
    /// Formatted selection. Empty if all objects are selected.
    pub(crate) selection: String,
    pub(crate) objects: usize,
    /// Total size of the objects: the number of bytes of JSON received.
    pub(crate) bytes: u64,
    /// Time since the most stale watch last received data.
    pub(crate) since_contact: Duration,
    /// Relists, not counting initial lists.
    pub(crate) relists: u64,
    pub(crate) watch_errors: u64,
    /// Number of received objects that belong to other replicas. `None` if the cache is not
    /// sharded.
    pub(crate) foreign: Option<u64>,
    /// Number of objects written by this process that no watch has delivered yet.
    pub(crate) own_writes: usize,
    pub(crate) undecodable: HashSet<Key>,
}

impl<K: Watchable> Cache<K> {
    pub(super) fn stats(&self) -> CacheStats {
        let objects = self.read();
        let ages = objects.watches().map(|watch| watch.contact.age());
        CacheStats {
            cluster: String::new(),
            kind: self.kind.group_kind(),
            content: content_of::<K>(),
            selection: self.selection.to_string(),
            objects: objects.by_key.len(),
            bytes: objects.bytes(),
            since_contact: ages.max().unwrap_or_default(),
            relists: objects.watches().map(|watch| watch.relists()).sum(),
            watch_errors: objects.watches().map(|watch| watch.errors()).sum(),
            foreign: self
                .shards()
                .map(|_| objects.watches().map(|watch| watch.foreign()).sum()),
            own_writes: objects.own_writes(),
            undecodable: objects.undecodable.keys().cloned().collect(),
        }
    }

    pub(super) fn status(&self) -> Vec<WatchStatus> {
        let (need, objects) = (self.greatest_need(), self.read());
        let watches = objects.watches().map(|watch| WatchStatus {
            kind: self.kind.group_kind(),
            content: content_of::<K>(),
            selection: self.selection.to_string(),
            namespace: watch.namespace.clone(),
            need,
            synced: watch.is_synced(),
            since_contact: watch.contact.age(),
            last_error: watch.last_error(),
            objects: objects.len_in(watch.namespace.as_deref()),
            relists: watch.relists(),
            errors: watch.errors(),
        });
        watches.collect()
    }

    pub(super) fn report_stale(&self, limit: Duration) {
        let watches: Vec<_> = self.read().watches().cloned().collect();
        for watch in watches {
            watch.report(&self.kind.group_kind(), &self.selection.to_string(), limit);
        }
    }
}

fn content_of<K: Watchable>() -> &'static str {
    if K::metadata_api() { "metadata" } else { "whole" }
}

//! The numbers of a cache, for metrics and readiness.

use std::collections::HashSet;
use std::time::Duration;

use super::Cache;
use crate::object::{Key, Watchable};

/// The numbers of one cache at one moment.
pub(crate) struct CacheStats {
    /// Kind and group, such as `Deployment.apps`.
    pub(crate) kind: String,
    /// `metadata` if only metadata is kept, otherwise `whole`.
    pub(crate) content: &'static str,
    /// The selection; empty for all objects.
    pub(crate) selection: String,
    pub(crate) objects: usize,
    /// Size of the objects as received, in bytes of JSON.
    pub(crate) bytes: u64,
    /// Time since the watch that has waited longest for data received some.
    pub(crate) since_contact: Duration,
    /// Number of lists after the first of each watch.
    pub(crate) relists: u64,
    pub(crate) watch_errors: u64,
    /// Number of objects written by this process that the watch has not delivered.
    pub(crate) own_writes: usize,
    /// The objects that cannot be decoded.
    pub(crate) undecodable: HashSet<Key>,
}

impl<K: Watchable> Cache<K> {
    pub(super) fn stats(&self) -> CacheStats {
        let since_contact = self.since_contact();
        let objects = self.read();
        CacheStats {
            kind: self.kind.group_kind(),
            content: if K::metadata_api() { "metadata" } else { "whole" },
            selection: self.selection.to_string(),
            objects: objects.by_key.len(),
            bytes: objects.bytes(),
            since_contact,
            relists: objects.relists(),
            watch_errors: self.watch_errors(),
            own_writes: objects.own_writes(),
            undecodable: objects.undecodable.keys().cloned().collect(),
        }
    }
}

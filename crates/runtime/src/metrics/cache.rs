//! Metrics of caches, updated before each scrape.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::instruments::{Counter, Gauge};
use super::registry::{Family, Registry};
use crate::cache::CacheStats;
use crate::object::Key;

/// `cluster` is empty for the manager's own cluster, which Prometheus treats like a missing label.
const LABELS: [&str; 4] = ["kind", "content", "selection", "cluster"];

#[derive(Clone)]
pub(super) struct Families {
    objects: Family<Gauge, 4>,
    bytes: Family<Gauge, 4>,
    since_contact: Family<Gauge, 4>,
    own_writes: Family<Gauge, 4>,
    relists: Family<Counter, 4>,
    watch_errors: Family<Counter, 4>,
    foreign: Family<Counter, 4>,
    undecodable: Family<Gauge, 2>,
    /// All label values used so far.
    known: Arc<Mutex<BTreeSet<Labels>>>,
}

type Labels = (String, &'static str, String, String);

impl Families {
    pub(super) fn register(registry: &Registry) -> Self {
        Self {
            objects: registry.own("rbuilder_cache_objects", "Number of objects in a cache.", LABELS, &[]),
            bytes: registry.own(
                "rbuilder_cache_bytes",
                "Size of the objects in a cache as received from the API server, in bytes of JSON.",
                LABELS,
                &[],
            ),
            since_contact: registry.own(
                "rbuilder_cache_seconds_since_contact",
                "Seconds since the watch of a cache received data, events and bookmarks alike.",
                LABELS,
                &[],
            ),
            own_writes: registry.own(
                "rbuilder_cache_own_writes",
                "Number of objects written by this process that the watch has not delivered yet.",
                LABELS,
                &[],
            ),
            relists: registry.own(
                "rbuilder_cache_relists_total",
                "Total number of times that the objects of a cache were listed again.",
                LABELS,
                &[],
            ),
            watch_errors: registry.own(
                "rbuilder_cache_watch_errors_total",
                "Total number of failed lists and watches of a cache.",
                LABELS,
                &[],
            ),
            foreign: registry.own(
                "rbuilder_shard_filtered_objects_total",
                "Total number of objects that a cache received although they belong to other replicas.",
                LABELS,
                &[],
            ),
            undecodable: registry.own(
                "rbuilder_undecodable_objects",
                "Number of stored objects of a kind that cannot be decoded into its Rust type and are left out.",
                ["kind", "cluster"],
                &[],
            ),
            known: Arc::default(),
        }
    }

    /// Updates all metrics. Values of caches with the same labels are added up, except that an
    /// undecodable object only counts once per kind, even if it's in several caches.
    pub(super) fn set(&self, caches: Vec<CacheStats>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Start with zero objects for all known labels, in case a cache no longer exists.
        let mut totals: BTreeMap<Labels, Total> = known
            .iter()
            .map(|labels| (labels.clone(), Total::default()))
            .collect();
        let mut undecodable: BTreeMap<(String, String), HashSet<Key>> = BTreeMap::new();
        for cache in caches {
            undecodable
                .entry((cache.kind.clone(), cache.cluster.clone()))
                .or_default()
                .extend(cache.undecodable.iter().cloned());
            let labels = (
                cache.kind.clone(),
                cache.content,
                cache.selection.clone(),
                cache.cluster.clone(),
            );
            totals.entry(labels).or_default().add(&cache);
        }
        for ((kind, content, selection, cluster), total) in totals {
            let labels = [kind.as_str(), content, selection.as_str(), cluster.as_str()];
            known.insert((kind.clone(), content, selection.clone(), cluster.clone()));
            self.objects.with(labels).set(total.objects as f64);
            self.bytes.with(labels).set(total.bytes as f64);
            self.since_contact.with(labels).set(total.since_contact);
            self.own_writes.with(labels).set(total.own_writes as f64);
            // Counters keep their last value after the cache is dropped.
            if total.caches > 0 {
                self.relists.with(labels).set(total.relists as f64);
                self.watch_errors.with(labels).set(total.watch_errors as f64);
                if let Some(foreign) = total.foreign {
                    self.foreign.with(labels).set(foreign as f64);
                }
            }
        }
        for ((kind, cluster), keys) in undecodable {
            let undecodable = self.undecodable.with([kind.as_str(), cluster.as_str()]);
            undecodable.set(keys.len() as f64);
        }
    }
}

#[derive(Default)]
struct Total {
    caches: usize,
    objects: usize,
    bytes: u64,
    since_contact: f64,
    own_writes: usize,
    relists: u64,
    watch_errors: u64,
    foreign: Option<u64>,
}

impl Total {
    fn add(&mut self, cache: &CacheStats) {
        self.caches += 1;
        self.objects += cache.objects;
        self.bytes += cache.bytes;
        self.since_contact = self.since_contact.max(cache.since_contact.as_secs_f64());
        self.own_writes += cache.own_writes;
        self.relists += cache.relists;
        self.watch_errors += cache.watch_errors;
        if let Some(foreign) = cache.foreign {
            *self.foreign.get_or_insert(0) += foreign;
        }
    }
}

//! Metrics of additional clusters, updated before each scrape.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::instruments::Gauge;
use super::registry::{Family, Registry};

#[derive(Clone)]
pub(super) struct Families {
    connected: Family<Gauge, 1>,
    /// All label values used so far.
    known: Arc<Mutex<BTreeSet<String>>>,
}

impl Families {
    pub(super) fn register(registry: &Registry) -> Self {
        Self {
            connected: registry.own(
                "rbuilder_cluster_connected",
                "1 if another cluster has answered the last request, 0 if not.",
                ["cluster"],
                &[],
            ),
            known: Arc::default(),
        }
    }

    /// Updates all metrics, and removes clusters that no longer exist.
    pub(super) fn set(&self, clusters: Vec<(String, bool)>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, is_connected) in &clusters {
            self.connected
                .with([name])
                .set(f64::from(u8::from(*is_connected)));
        }
        let present = clusters.into_iter().map(|(name, _)| name).collect();
        for removed in known.difference(&present) {
            self.connected.remove([removed]);
        }
        *known = present;
    }
}

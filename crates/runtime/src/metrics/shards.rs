//! Metrics of a sharded operator, updated before each scrape. Not present if it is not sharded.

use super::instruments::{Counter, Gauge};
use super::registry::{Family, Registry};
use crate::shards::RingStatus;

pub(super) struct Families {
    owned: Family<Gauge, 1>,
    all: Family<Gauge, 0>,
    replicas: Family<Gauge, 0>,
    unowned: Family<Gauge, 0>,
    unowned_seconds: Family<Gauge, 0>,
    moves: Family<Counter, 1>,
    failed_writes: Family<Counter, 1>,
}

impl Families {
    pub(super) fn register(registry: &Registry) -> Self {
        Self {
            owned: registry.own(
                "rbuilder_shard_ranges",
                "Number of ranges of this replica, by `state`: those it works on, and those it is giving up.",
                ["state"],
                &[],
            ),
            all: registry.own(
                "rbuilder_shard_all_ranges",
                "Number of ranges into which the objects are divided.",
                [],
                &[],
            ),
            replicas: registry.own(
                "rbuilder_shard_replicas",
                "Number of live replicas that share the ranges.",
                [],
                &[],
            ),
            unowned: registry.own(
                "rbuilder_shard_unowned_ranges",
                "Number of ranges without an owner, whose objects no replica reconciles.",
                [],
                &[],
            ),
            unowned_seconds: registry.own(
                "rbuilder_shard_unowned_seconds",
                "For how long a range has had no owner. Zero if all have one.",
                [],
                &[],
            ),
            moves: registry.own(
                "rbuilder_shard_moves_total",
                "Total number of ranges that this replica has acquired or released, by `direction`.",
                ["direction"],
                &[],
            ),
            failed_writes: registry.own(
                "rbuilder_shard_failed_writes_total",
                "Total number of writes of the claims that have failed, by `reason`: a conflict, or another error.",
                ["reason"],
                &[],
            ),
        }
    }

    pub(super) fn set(&self, status: &RingStatus) {
        self.owned.with(["serving"]).set(f64::from(status.serving));
        self.owned.with(["draining"]).set(f64::from(status.draining));
        self.all.with([]).set(f64::from(status.ranges));
        self.replicas.with([]).set(status.replicas.len() as f64);
        self.unowned.with([]).set(f64::from(status.unowned));
        self.unowned_seconds
            .with([])
            .set(status.unowned_for.as_secs_f64());
        self.moves.with(["acquired"]).set(status.acquired as f64);
        self.moves.with(["released"]).set(status.released as f64);
        let failed = &self.failed_writes;
        failed.with(["conflict"]).set(status.conflicts as f64);
        failed.with(["error"]).set(status.failures as f64);
    }
}

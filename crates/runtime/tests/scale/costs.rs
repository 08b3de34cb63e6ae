//! Costs of objects, events and reconciles.

use std::time::Duration;

/// Costs of an operator. Each object includes the objects that it owns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    /// CPU time to receive, decode and store an object from a list.
    pub(super) listed: Duration,
    /// CPU time to receive an event of another replica, and drop it.
    pub(super) dropped: Duration,
    /// CPU time for a change, including its events, the reconcile and the requests.
    pub(super) changed: Duration,
    /// CPU time of a no-op reconcile.
    pub(super) unchanged: Duration,
    /// Time a non-trivial reconcile spends waiting on API requests.
    pub(super) requests: Duration,
    /// Time to get a page of a list.
    pub(super) page: Duration,
    /// Size of an object in a list, in bytes.
    pub(super) listed_bytes: u64,
    /// Size of all events that are caused by a change, in bytes.
    pub(super) event_bytes: u64,
    pub(super) object_memory: u64,
    /// Memory of a replica without any objects.
    pub(super) base_memory: u64,
}

impl Costs {
    /// Costs of the operator in testdata/bench, as measured by `cargo xtask bench-operator
    /// --replicas`. A change modifies the spec, for which the operator applies a Deployment and a
    /// status.
    pub(super) const MEASURED: Self = Self {
        listed: Duration::from_micros(40),
        dropped: Duration::from_micros(40),
        changed: Duration::from_micros(720),
        unchanged: Duration::from_micros(5),
        requests: Duration::from_millis(12),
        page: Duration::from_millis(40),
        listed_bytes: 4400,
        event_bytes: 8300,
        object_memory: 4200,
        base_memory: 4_000_000,
    };

    /// Like [`MEASURED`](Self::MEASURED), but changes only modify annotations, as in the benchmark,
    /// so reconciles are no-ops.
    pub(super) const TOUCHED: Self = Self {
        changed: Duration::from_micros(220),
        requests: Duration::ZERO,
        event_bytes: 3000,
        ..Self::MEASURED
    };
}

/// A single core, which processes work sequentially.
#[derive(Debug, Default)]
pub(super) struct Cpu {
    busy_until: Duration,
    used: Duration,
}

impl Cpu {
    pub(super) fn charge(&mut self, now: Duration, work: Duration) -> Duration {
        self.used += work;
        self.busy_until = self.busy_until.max(now) + work;
        self.busy_until
    }

    pub(super) fn used(&self) -> Duration {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_does_one_thing_after_the_other() {
        let mut cpu = Cpu::default();
        let second = Duration::from_secs(1);
        assert_eq!(cpu.charge(second, second), 2 * second);
        assert_eq!(cpu.charge(second, second), 3 * second);
        assert_eq!(cpu.charge(10 * second, second), 11 * second);
        assert_eq!(cpu.used(), 3 * second);
    }
}

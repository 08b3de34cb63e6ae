//! What objects, events and reconciles cost.

use std::time::Duration;

/// The costs of an operator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    /// CPU time to receive, decode and store an object of a list, with what it owns.
    pub(super) listed: Duration,
    /// CPU time to receive an event and to drop it, because it belongs to another replica.
    pub(super) dropped: Duration,
    /// CPU time of a change: its events, the reconcile and its requests.
    pub(super) changed: Duration,
    /// CPU time of a reconcile that finds nothing to do.
    pub(super) unchanged: Duration,
    /// How long the requests of a reconcile take that has something to do.
    pub(super) requests: Duration,
    /// How long a page of a list takes.
    pub(super) page: Duration,
    /// Bytes of an object in a list, with what it owns.
    pub(super) listed_bytes: u64,
    /// Bytes of all events that a change causes.
    pub(super) event_bytes: u64,
    /// Memory of an object, with what it owns.
    pub(super) object_memory: u64,
    /// Memory of a replica without objects.
    pub(super) base_memory: u64,
}

impl Costs {
    /// The costs of the operator in testdata/bench, as measured with `cargo xtask bench-operator
    /// --replicas`. A change is one of the spec: the operator applies a Deployment and a status.
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

    /// Like [`MEASURED`](Self::MEASURED), for changes of annotations, after which nothing has to be
    /// done. These are the changes that the measurement makes.
    pub(super) const TOUCHED: Self = Self {
        changed: Duration::from_micros(220),
        requests: Duration::ZERO,
        event_bytes: 3000,
        ..Self::MEASURED
    };
}

/// The CPU of a replica: one core, which does one thing after the other.
#[derive(Debug, Default)]
pub(super) struct Cpu {
    busy_until: Duration,
    used: Duration,
}

impl Cpu {
    /// Adds work, and returns when it will be done.
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

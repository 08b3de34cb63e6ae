//! The leader's Lease, held by all replicas of a ring together.
//!
//! An operator may be switched from leader election to shards and back, also by a rollback in the
//! middle of the night. During the update, some replicas have shards while others elect a leader.
//! There's a single right to reconcile: the Lease `<id>` that candidates compete for. The ring
//! holds it under one identity that its replicas share, so a leader of any version of this library
//! (or of controller-runtime) waits until they're gone, and they wait until the leader is gone.
//!
//! [`Right`] is a state machine without any I/O, like [`Ring`](super::ring::Ring).
//!
//! # Why a leader and a replica of the ring never work at the same time
//!
//! 1. All writes of the Lease contain the resource version that was read.
//! 2. The ring renews the Lease once per renew deadline, and writes a duration of two lease
//!    durations. A candidate waits for that long after it has observed the last renewal.
//! 3. A replica only serves ranges until that duration, less the margin between lease duration and
//!    renew deadline, has passed since the last renewal that it knows of. The renewals of other
//!    replicas count from the last read that did not show them.
//! 4. The last replica to leave releases the Lease, if no range had an owner after it read the
//!    Lease. Therefore, a replica that acquires its first ranges renews the Lease before it serves
//!    them: if it was about to be released, one of the two writes is rejected.

use std::time::Duration;

use super::ring::Clock;

/// The leader's Lease as read from the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RightLease {
    /// Empty if nobody holds the Lease.
    pub(crate) holder: String,
    /// Changes with each renewal.
    pub(crate) renewal: String,
    pub(crate) duration: Duration,
    pub(crate) version: String,
}

/// What a replica has to do before it may serve its ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RightStep {
    /// Nothing: the ring holds the Lease, and this replica may serve its ranges until then.
    Hold(Clock),
    /// Acquire or renew the Lease, based on this version. `None` to create it.
    Write(Option<String>),
    /// Wait for the leader with this identity.
    Wait(String),
}

#[derive(Debug)]
pub(crate) struct Right {
    /// Identity of the ring.
    holder: String,
    /// Lease duration and renew deadline of a replica.
    duration: Duration,
    renew_deadline: Duration,
    seen: Option<Seen>,
    /// When the last read was sent.
    read: Option<Clock>,
    /// Whether the Lease was renewed after this replica acquired its ranges.
    confirmed: bool,
}

#[derive(Debug)]
struct Seen {
    lease: RightLease,
    /// Whether the last read returned the Lease.
    present: bool,
    /// When this renewal was first received.
    since: Clock,
    /// The renewal was not sent before this time. `None` if nothing is known about it.
    renewed: Option<Clock>,
}

impl Right {
    pub(crate) fn new(holder: String, duration: Duration, renew_deadline: Duration) -> Self {
        Self {
            holder,
            duration,
            renew_deadline,
            seen: None,
            read: None,
            confirmed: false,
        }
    }

    pub(crate) fn holder(&self) -> &str {
        &self.holder
    }

    /// The duration to write. Allows for one failed renewal, since a renewal is sent only once per
    /// renew deadline.
    pub(crate) fn lease_duration(&self) -> Duration {
        2 * self.duration
    }

    /// Updates the state with the result of a consistent read.
    pub(crate) fn observe(&mut self, sent: Clock, received: Clock, found: Option<RightLease>) {
        match (&mut self.seen, found) {
            (Some(seen), Some(lease))
                if seen.lease.renewal == lease.renewal && seen.lease.holder == lease.holder =>
            {
                seen.lease = lease;
                seen.present = true;
            }
            (seen, Some(lease)) => {
                *seen = Some(Seen {
                    lease,
                    present: true,
                    since: received,
                    renewed: self.read,
                });
            }
            // Its holder may not have noticed yet.
            (seen, None) => seen.iter_mut().for_each(|seen| seen.present = false),
        }
        self.read = Some(sent);
    }

    /// `owns` is whether this replica owns any range, according to the claims.
    pub(crate) fn step(&mut self, now: Clock, owns: bool) -> RightStep {
        self.confirmed &= owns;
        let Some(seen) = &self.seen else {
            return RightStep::Write(None);
        };
        let base = seen.present.then(|| seen.lease.version.clone());
        if seen.lease.holder == self.holder {
            let is_due = now >= seen.since + self.renew_deadline || (owns && !self.confirmed);
            // After an interruption, little is known about the renewals of other replicas.
            let soon = now + self.duration / 3;
            return match self.held_until() {
                Some(until) if seen.present && !is_due && until > soon => RightStep::Hold(until),
                _ => RightStep::Write(base),
            };
        }
        let unchanged = self.read.unwrap_or(now).saturating_sub(seen.since);
        match !seen.lease.holder.is_empty() && unchanged < seen.lease.duration {
            true => RightStep::Wait(seen.lease.holder.clone()),
            false => RightStep::Write(base),
        }
    }

    /// Called when a write was stored, with the time it was sent.
    pub(crate) fn stored(&mut self, sent: Clock, now: Clock, owns: bool, lease: RightLease) {
        self.confirmed = owns;
        self.seen = Some(Seen {
            lease,
            present: true,
            since: now,
            renewed: Some(sent),
        });
    }

    /// Returns until when this replica may serve ranges. `None` if the ring doesn't hold the Lease
    /// or if its last renewal is unknown.
    pub(crate) fn held_until(&self) -> Option<Clock> {
        let seen = self
            .seen
            .as_ref()
            .filter(|seen| seen.lease.holder == self.holder)?;
        let margin = self.duration.saturating_sub(self.renew_deadline);
        Some(seen.renewed? + self.lease_duration().saturating_sub(margin))
    }

    /// Whether this replica may serve the ranges that it owns.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// Returns the version of the Lease, if the ring held it when it was last read. That version may
    /// be released if claims without any owners were read or written after that.
    pub(crate) fn held_version(&self) -> Option<&str> {
        let seen = self.seen.as_ref()?;
        (seen.present && seen.lease.holder == self.holder).then_some(seen.lease.version.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn lease(holder: &str, renewal: u32) -> RightLease {
        RightLease {
            holder: holder.to_owned(),
            renewal: renewal.to_string(),
            duration: 15 * SECOND,
            version: format!("v{renewal}"),
        }
    }

    fn right() -> Right {
        Right::new("a-shards".to_owned(), 15 * SECOND, 10 * SECOND)
    }

    fn write(version: &str) -> RightStep {
        RightStep::Write(Some(version.to_owned()))
    }

    #[test]
    fn ring_waits_until_the_leader_is_gone() {
        let mut right = right();
        assert_eq!(right.step(Clock::ZERO, false), RightStep::Write(None));
        right.observe(SECOND, SECOND, Some(lease("leader", 1)));
        right.observe(15 * SECOND, 15 * SECOND, Some(lease("leader", 1)));
        let waits = RightStep::Wait("leader".to_owned());
        assert_eq!(right.step(15 * SECOND, false), waits);
        right.observe(16 * SECOND, 16 * SECOND, None);
        assert_eq!(
            right.step(16 * SECOND, false),
            RightStep::Write(None),
            "expired and deleted"
        );
        right.observe(17 * SECOND, 17 * SECOND, Some(lease("leader", 2)));
        assert_eq!(right.step(17 * SECOND, false), waits, "alive after all");
        right.observe(18 * SECOND, 18 * SECOND, None);
        assert_eq!(right.step(18 * SECOND, false), waits, "it may not know that yet");
        right.observe(19 * SECOND, 19 * SECOND, Some(lease("", 3)));
        assert_eq!(right.step(19 * SECOND, false), write("v3"), "released");
    }

    #[test]
    fn renewal_of_another_replica_counts_from_the_read_before() {
        let mut right = right();
        right.observe(SECOND, SECOND, Some(lease("a-shards", 1)));
        assert_eq!(right.held_until(), None, "it may be about to expire");
        assert_eq!(right.step(SECOND, false), write("v1"));
        right.observe(3 * SECOND, 4 * SECOND, Some(lease("a-shards", 2)));
        assert_eq!(right.step(4 * SECOND, false), RightStep::Hold(26 * SECOND));
        assert_eq!(right.step(13 * SECOND, false), RightStep::Hold(26 * SECOND));
        assert_eq!(right.step(14 * SECOND, false), write("v2"), "due");
    }

    #[test]
    fn first_ranges_are_confirmed_by_a_renewal() {
        let mut right = right();
        right.stored(SECOND, SECOND, false, lease("a-shards", 1));
        assert_eq!(right.step(2 * SECOND, false), RightStep::Hold(26 * SECOND));
        assert_eq!(right.step(2 * SECOND, true), write("v1"));
        right.stored(2 * SECOND, 2 * SECOND, true, lease("a-shards", 2));
        assert_eq!(right.step(3 * SECOND, true), RightStep::Hold(27 * SECOND));
        assert_eq!(right.step(4 * SECOND, false), RightStep::Hold(27 * SECOND));
        assert_eq!(
            right.step(5 * SECOND, true),
            write("v2"),
            "again after it had none"
        );
    }
}

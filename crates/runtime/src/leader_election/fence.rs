//! The fence tells for how long this process may act as the leader. Checking it doesn't involve any
//! requests.
//!
//! The elector extends it with each renewal. Workers check it before they process a key. If a
//! controller only runs on the leader, its [client](super::fenced_client) also checks it before
//! each write. This works even if a process is suspended for longer than the lease duration (by
//! SIGSTOP, the cgroup freezer, or CPU starvation). When it resumes, it rejects its own writes from
//! the start, without its elector having to run first.
//!
//! As soon as anyone has noticed that the lease has lapsed, this is final, even if a renewal
//! succeeds a moment later. The worker that noticed it has already exited, and a leader without
//! workers must not keep the lease. [`Fence::check`] uses a compare-and-swap to store the loss:
//!
//! | worker | elector | `valid_until` |
//! |---|---|---|
//! | | sends a renewal at 108 s | 110 s |
//! | 110 s: takes a key, observes the lapse, exits | | lost |
//! | | 110.1 s: receives the response, cannot move the fence to 118 s, and has lost | lost |
//!
//! If we did not, the elector would go on renewing the lease at 110.1 s, with nobody left to
//! reconcile anything.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// We have not acquired the lease yet.
const NOT_YET: u64 = 0;
/// We have lost the lease, because it wasn't renewed in time or another process holds it.
const LOST: u64 = u64::MAX;
/// We have given up the lease voluntarily.
const CLOSED: u64 = u64::MAX - 1;

/// Until when this process holds a lease. Clones share the same state.
#[derive(Clone)]
pub(crate) struct Fence(Arc<Shared>);

struct Shared {
    /// What the lease is for, as shown in messages.
    purpose: &'static str,
    lease: String,
    epoch: Instant,
    /// Milliseconds since `epoch` (on the monotonic clock), or else [`NOT_YET`], [`LOST`] or
    /// [`CLOSED`].
    valid_until: AtomicU64,
    /// We wake this thread when `valid_until` changes.
    watchdog: OnceLock<Thread>,
}

/// A write was rejected, because it requires a lease that we don't hold.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LeaseNotHeld {
    #[error("the {0} lease `{1}` is not held yet, request refused")]
    NotYet(&'static str, String),
    #[error("the {0} lease `{1}` is no longer held, request refused")]
    NoLonger(&'static str, String),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum FenceState {
    NotYet,
    HeldFor(Duration),
    Lost,
    Closed,
}

impl Fence {
    pub(crate) fn new(lease: impl Into<String>) -> Self {
        Self::for_purpose("leader election", lease)
    }

    /// For the share of a replica in a sharded operator.
    pub(crate) fn of_shards(id: impl Into<String>) -> Self {
        Self::for_purpose("shard", id)
    }

    fn for_purpose(purpose: &'static str, lease: impl Into<String>) -> Self {
        Self(Arc::new(Shared {
            purpose,
            lease: lease.into(),
            epoch: Instant::now(),
            valid_until: AtomicU64::new(NOT_YET),
            watchdog: OnceLock::new(),
        }))
    }

    pub(super) fn lease(&self) -> &str {
        &self.0.lease
    }

    /// Fails if we haven't acquired the lease yet, or if we've lost it. The latter is permanent.
    pub(crate) fn check(&self) -> Result<(), LeaseNotHeld> {
        match self.state() {
            FenceState::HeldFor(_) => Ok(()),
            FenceState::NotYet => Err(LeaseNotHeld::NotYet(self.0.purpose, self.0.lease.clone())),
            FenceState::Lost | FenceState::Closed => {
                Err(LeaseNotHeld::NoLonger(self.0.purpose, self.0.lease.clone()))
            }
        }
    }

    /// `None` if we don't hold the lease.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        match self.state() {
            FenceState::HeldFor(left) => Some(left),
            FenceState::NotYet | FenceState::Lost | FenceState::Closed => None,
        }
    }

    /// Note that this isn't the case if we've given up the lease voluntarily.
    pub(crate) fn is_lost(&self) -> bool {
        self.state() == FenceState::Lost
    }

    /// If the lease has lapsed, this makes the loss permanent.
    pub(super) fn state(&self) -> FenceState {
        loop {
            let until = match self.0.valid_until.load(Ordering::Acquire) {
                NOT_YET => return FenceState::NotYet,
                LOST => return FenceState::Lost,
                CLOSED => return FenceState::Closed,
                until => until,
            };
            match until.saturating_sub(self.ms_at(Instant::now())) {
                // If someone has renewed the lease in the meantime, the next iteration is going to
                // see that.
                0 => self.update(|now| (now == until).then_some(LOST)),
                left => return FenceState::HeldFor(Duration::from_millis(left)),
            }
        }
    }

    /// Opens the fence until the given time, or extends it.
    ///
    /// Returns `false` if the fence is closed or the lease has lapsed, even if nobody has noticed
    /// the latter yet.
    pub(crate) fn extend(&self, until: Instant) -> bool {
        let (now, until) = (self.ms_at(Instant::now()), self.ms_at(until));
        self.update(|before| match before {
            LOST | CLOSED => None,
            before if before != NOT_YET && before <= now => Some(LOST),
            _ if until <= now => Some(LOST),
            _ => Some(until.min(CLOSED - 1)),
        });
        matches!(self.state(), FenceState::HeldFor(_))
    }

    /// Closes the fence because we've lost the lease. Does nothing if it's already closed.
    pub(crate) fn lose(&self) {
        self.end(LOST);
    }

    /// Closes the fence because we're giving up the lease. Does nothing if we've lost it before.
    pub(crate) fn close(&self) {
        self.end(CLOSED);
    }

    fn end(&self, state: u64) {
        self.update(|before| (before != LOST && before != CLOSED).then_some(state));
    }

    fn update(&self, change: impl Fn(u64) -> Option<u64>) {
        let changed = self
            .0
            .valid_until
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
        if changed.is_ok()
            && let Some(watchdog) = self.0.watchdog.get()
        {
            watchdog.unpark();
        }
    }

    /// Returns when the lease is lost or lapses. Never returns if the fence is closed in any other
    /// way.
    pub(crate) async fn lapsed(&self) {
        loop {
            match self.state() {
                FenceState::HeldFor(left) => sleep(left).await,
                FenceState::Lost => return,
                FenceState::NotYet | FenceState::Closed => std::future::pending().await,
            }
        }
    }

    /// Sets the thread that calls [`wait_for_end`](Self::wait_for_end). Do this before opening the
    /// fence.
    pub(super) fn set_watchdog(&self, thread: &Thread) {
        // This can't fail, because there's only one watchdog per lease.
        let _ = self.0.watchdog.set(thread.clone());
    }

    /// Blocks the [watchdog](Self::set_watchdog) until the fence is closed. Returns `true` if
    /// that's because we've lost the lease.
    pub(super) fn wait_for_end(&self) -> bool {
        loop {
            match self.state() {
                FenceState::NotYet => thread::park(),
                FenceState::HeldFor(left) => thread::park_timeout(left),
                FenceState::Lost => return true,
                FenceState::Closed => return false,
            }
        }
    }

    fn ms_at(&self, at: Instant) -> u64 {
        let ms = at.saturating_duration_since(self.0.epoch).as_millis();
        u64::try_from(ms).unwrap_or(CLOSED - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn held_for(seconds: u32) -> Fence {
        let fence = Fence::new("operator");
        assert!(fence.extend(Instant::now() + seconds * SECOND));
        fence
    }

    fn refusal(fence: &Fence) -> String {
        fence.check().unwrap_err().to_string()
    }

    #[tokio::test(start_paused = true)]
    async fn fence_opens_with_the_lease_and_closes_with_it() {
        let fence = Fence::new("operator");
        assert_eq!(
            refusal(&fence),
            "the leader election lease `operator` is not held yet, request refused"
        );
        assert!(fence.extend(Instant::now() + SECOND));
        assert_eq!(fence.check(), Ok(()));
        fence.close();
        assert_eq!(
            refusal(&fence),
            "the leader election lease `operator` is no longer held, request refused"
        );
        fence.lose();
        assert_eq!(fence.state(), FenceState::Closed, "a closed fence is not lost");
    }

    #[tokio::test(start_paused = true)]
    async fn renewal_moves_the_end() {
        let fence = held_for(10);
        tokio::time::advance(9 * SECOND).await;
        assert!(fence.extend(Instant::now() + 10 * SECOND));
        tokio::time::advance(9 * SECOND).await;
        assert_eq!(fence.check(), Ok(()));
        tokio::time::advance(SECOND).await;
        assert!(fence.check().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn renewal_after_the_end_fails() {
        // It does not matter whether a worker has noticed.
        for is_observed in [true, false] {
            let fence = held_for(10);
            tokio::time::advance(10 * SECOND).await;
            if is_observed {
                assert!(fence.check().is_err());
            }
            assert!(!fence.extend(Instant::now() + 10 * SECOND));
            assert_eq!(fence.state(), FenceState::Lost);
        }
        assert!(
            !Fence::new("operator").extend(Instant::now()),
            "acquired too late"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn lost_lease_cannot_be_renewed_or_closed() {
        let fence = held_for(10);
        fence.lose();
        assert!(!fence.extend(Instant::now() + 10 * SECOND));
        fence.close();
        assert_eq!(fence.state(), FenceState::Lost);
    }

    #[test]
    fn watchdog_is_notified_of_each_end() {
        let check = |end: fn(&Fence), is_lost: bool| {
            let fence = Fence::new("operator");
            let waiting = fence.clone();
            let watchdog = thread::spawn(move || waiting.wait_for_end());
            fence.set_watchdog(watchdog.thread());
            end(&fence);
            assert_eq!(watchdog.join().unwrap(), is_lost);
        };
        check(
            |fence| assert!(fence.extend(Instant::now() + Duration::from_millis(20))),
            true,
        );
        check(Fence::lose, true);
        check(Fence::close, false);
    }
}

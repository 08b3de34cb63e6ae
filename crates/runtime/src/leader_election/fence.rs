//! The fence: the time until which this process may act as the leader, known locally without a
//! request.
//!
//! The elector moves it with each renewal. Workers compare it with the clock before each key, and
//! the [client](super::fenced_client) of a leader-only controller before each write. If a process
//! is suspended for longer than its lease (SIGSTOP, a frozen cgroup, CPU starvation), it therefore
//! refuses its own writes from the first instruction after resuming, before its elector has run.
//!
//! Once observed, a lapse is final, even if a renewal succeeds a moment later: the worker that
//! observed it has exited, and a leader without workers must not keep the lease. [`Fence::check`]
//! therefore stores the loss with a compare-and-swap:
//!
//! | worker | elector | `valid_until` |
//! |---|---|---|
//! | | sends a renewal at 108 s | 110 s |
//! | 110 s: takes a key, observes the lapse, exits | | lost |
//! | | 110.1 s: receives the response, cannot move the fence to 118 s, and has lost | lost |
//!
//! Without storing the loss, the elector would keep renewing at 110.1 s although nothing is
//! reconciled any more.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The lease has not been acquired yet.
const NOT_YET: u64 = 0;
/// The lease was lost: it was not renewed in time, or another process holds it.
const LOST: u64 = u64::MAX;
/// This process gave up the lease without having lost it.
const CLOSED: u64 = u64::MAX - 1;

/// The time until which this process holds its lease, shared by all clones.
#[derive(Clone)]
pub(crate) struct Fence(Arc<Shared>);

struct Shared {
    /// What the lease is for, in messages.
    purpose: &'static str,
    lease: String,
    epoch: Instant,
    /// Milliseconds after `epoch`, on the monotonic clock, or one of [`NOT_YET`], [`LOST`] and [`CLOSED`].
    valid_until: AtomicU64,
    /// The thread to wake when `valid_until` changes.
    watchdog: OnceLock<Thread>,
}

/// The error of a write that requires a lease this process does not hold.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LeaseNotHeld {
    #[error("the {0} lease `{1}` is not held yet, request refused")]
    NotYet(&'static str, String),
    #[error("the {0} lease `{1}` is no longer held, request refused")]
    NoLonger(&'static str, String),
}

/// The state of a fence.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FenceState {
    NotYet,
    HeldFor(Duration),
    Lost,
    Closed,
}

impl Fence {
    /// Creates the fence for a lease that is not held yet.
    pub(crate) fn new(lease: impl Into<String>) -> Self {
        Self::for_purpose("leader election", lease)
    }

    /// Creates the fence for a replica's share of the objects.
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

    /// Checks that the lease is currently held.
    ///
    /// # Errors
    /// Fails if the lease is not held yet, or no longer held, which is final.
    pub(crate) fn check(&self) -> Result<(), LeaseNotHeld> {
        match self.state() {
            FenceState::HeldFor(_) => Ok(()),
            FenceState::NotYet => Err(LeaseNotHeld::NotYet(self.0.purpose, self.0.lease.clone())),
            FenceState::Lost | FenceState::Closed => {
                Err(LeaseNotHeld::NoLonger(self.0.purpose, self.0.lease.clone()))
            }
        }
    }

    /// Returns how long the lease is still held, or `None` if it is not held.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        match self.state() {
            FenceState::HeldFor(left) => Some(left),
            FenceState::NotYet | FenceState::Lost | FenceState::Closed => None,
        }
    }

    /// Returns `true` if the lease was lost, but not if this process gave it up.
    pub(crate) fn is_lost(&self) -> bool {
        self.state() == FenceState::Lost
    }

    /// Returns the state. Observing a lapse makes it a permanent loss.
    pub(super) fn state(&self) -> FenceState {
        loop {
            let until = match self.0.valid_until.load(Ordering::Acquire) {
                NOT_YET => return FenceState::NotYet,
                LOST => return FenceState::Lost,
                CLOSED => return FenceState::Closed,
                until => until,
            };
            match until.saturating_sub(self.ms_at(Instant::now())) {
                // If the lease was renewed concurrently, the next iteration sees it.
                0 => self.update(|now| (now == until).then_some(LOST)),
                left => return FenceState::HeldFor(Duration::from_millis(left)),
            }
        }
    }

    /// Opens the fence until this time, or moves its end there. Returns `false` if the fence is
    /// closed or the lease has lapsed, even if nobody has observed the lapse yet.
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

    /// Refuses all further writes because the lease is lost. No effect on a closed fence.
    pub(crate) fn lose(&self) {
        self.end(LOST);
    }

    /// Refuses all further writes because this process gives up the lease. No effect after a loss.
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

    /// Resolves when the lease is lost, at the latest when it lapses. Never resolves for a closed
    /// fence.
    pub(crate) async fn lapsed(&self) {
        loop {
            match self.state() {
                FenceState::HeldFor(left) => sleep(left).await,
                FenceState::Lost => return,
                FenceState::NotYet | FenceState::Closed => std::future::pending().await,
            }
        }
    }

    /// Sets the thread that [waits for the end](Self::wait_for_end). Must be called before the
    /// fence opens.
    pub(super) fn set_watchdog(&self, thread: &Thread) {
        // Each lease has a single watchdog.
        let _ = self.0.watchdog.set(thread.clone());
    }

    /// Blocks the [watchdog](Self::set_watchdog) thread until the lease is lost or the fence
    /// closed. Returns `true` if it is lost.
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

    /// Returns milliseconds since the epoch, rounded down.
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
        // Whether or not a worker has observed the lapse.
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

//! The fence determines until when this process may act as the leader. Checking it takes no
//! requests.
//!
//! The elector extends the fence with each renewal. Workers check it before they process a key. For
//! controllers that only run on the leader, the [client](super::fenced_client) also checks it
//! before each write. This works even if a process is suspended for longer than the lease duration
//! (by SIGSTOP, the cgroup freezer, or CPU starvation): on resuming, it rejects its own writes
//! right away, before its elector gets to run.
//!
//! Once any thread has noticed that the lease has lapsed, the loss is final, even if a renewal
//! succeeds a moment later. The worker that noticed it has already exited, and a leader without
//! workers must not keep the lease. [`Fence::check`] stores the loss with a compare-and-swap:
//!
//! | worker | elector | `valid_until` |
//! |---|---|---|
//! | | sends a renewal at 108 s | 110 s |
//! | 110 s: takes a key, notices the lapse, exits | | lost |
//! | | 110.1 s: receives the response, cannot move the fence to 118 s, and has lost | lost |
//!
//! Otherwise, the elector would keep renewing the lease after 110.1 s with no workers left to
//! reconcile. Only a replica of a sharded operator may [reopen](Fence::reopen) its fence, because it
//! knows that all of its reconciles have ended.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The lease was not acquired yet.
const NOT_YET: u64 = 0;
/// The lease was lost, because it wasn't renewed in time or another process holds it.
const LOST: u64 = u64::MAX;
/// The lease was given up voluntarily.
const CLOSED: u64 = u64::MAX - 1;

/// Validity of a lease held by this process. Clones share the same state.
#[derive(Clone)]
pub(crate) struct Fence(Arc<Shared>);

struct Shared {
    /// Purpose of the lease, as shown in messages.
    purpose: &'static str,
    lease: String,
    epoch: Instant,
    /// Milliseconds since `epoch` (on the monotonic clock), or one of [`NOT_YET`], [`LOST`] and
    /// [`CLOSED`].
    valid_until: AtomicU64,
    /// Thread to wake when `valid_until` changes.
    watchdog: OnceLock<Thread>,
}

/// A write was rejected because it requires a lease that this process doesn't hold.
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

    /// For a replica's share in a sharded operator.
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

    pub(super) fn purpose(&self) -> &'static str {
        self.0.purpose
    }

    pub(super) fn lease(&self) -> &str {
        &self.0.lease
    }

    /// Fails if the lease was not acquired yet, or was lost. The latter is permanent.
    pub(crate) fn check(&self) -> Result<(), LeaseNotHeld> {
        match self.state() {
            FenceState::HeldFor(_) => Ok(()),
            FenceState::NotYet => Err(LeaseNotHeld::NotYet(self.0.purpose, self.0.lease.clone())),
            FenceState::Lost | FenceState::Closed => {
                Err(LeaseNotHeld::NoLonger(self.0.purpose, self.0.lease.clone()))
            }
        }
    }

    /// `None` if the lease isn't held.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        match self.state() {
            FenceState::HeldFor(left) => Some(left),
            FenceState::NotYet | FenceState::Lost | FenceState::Closed => None,
        }
    }

    /// Returns `false` if the lease was never held, or was given up voluntarily.
    pub(crate) fn is_held_or_lost(&self) -> bool {
        matches!(self.state(), FenceState::HeldFor(_) | FenceState::Lost)
    }

    /// Returns `false` if the lease was given up voluntarily.
    pub(crate) fn is_lost(&self) -> bool {
        self.state() == FenceState::Lost
    }

    /// Makes the loss permanent if the lease has lapsed.
    pub(super) fn state(&self) -> FenceState {
        loop {
            let until = match self.0.valid_until.load(Ordering::Acquire) {
                NOT_YET => return FenceState::NotYet,
                LOST => return FenceState::Lost,
                CLOSED => return FenceState::Closed,
                until => until,
            };
            match until.saturating_sub(self.ms_at(Instant::now())) {
                // If the lease was renewed concurrently, the next iteration will notice.
                0 => self.update(|now| (now == until).then_some(LOST)),
                left => return FenceState::HeldFor(Duration::from_millis(left)),
            }
        }
    }

    /// Opens the fence until the given time, or extends it.
    ///
    /// Returns `false` if the fence is closed or the lease has lapsed, even if no thread has
    /// noticed the lapse yet.
    pub(crate) fn extend(&self, until: Instant) -> bool {
        let (now, until) = (self.ms_at(Instant::now()), self.ms_at(until));
        self.update(|before| match before {
            LOST | CLOSED => None,
            // The lease had already lapsed, so this renewal was too late.
            before if before != NOT_YET && before <= now => Some(LOST),
            _ if until <= now => Some(LOST),
            _ => Some(until.min(CLOSED - 1)),
        });
        matches!(self.state(), FenceState::HeldFor(_))
    }

    /// Opens the fence again after the lease was lost. The caller must know that nothing that
    /// started before the loss is still running. Returns `false` if that's too late, or if the fence
    /// was closed.
    pub(crate) fn reopen(&self, until: Instant) -> bool {
        let (now, until) = (self.ms_at(Instant::now()), self.ms_at(until));
        self.update(|before| (before == LOST && until > now).then_some(until.min(CLOSED - 1)));
        matches!(self.state(), FenceState::HeldFor(_))
    }

    /// Closes the fence because the lease was lost. No-op if it's already closed.
    pub(crate) fn lose(&self) {
        self.end(LOST);
    }

    /// Closes the fence because the lease is being given up. No-op if the lease was already lost.
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

    /// Returns once the lease is lost or lapses. Never returns if the fence is closed in any other
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

    /// Sets the thread that calls [`wait_for_end`](Self::wait_for_end). Must be called before
    /// opening the fence.
    pub(super) fn set_watchdog(&self, thread: &Thread) {
        // Can't fail, because there's only one watchdog per lease.
        let _ = self.0.watchdog.set(thread.clone());
    }

    /// Blocks the [watchdog](Self::set_watchdog) until the fence is closed. Returns `true` if the
    /// lease was lost.
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
        // It makes no difference whether a worker has observed the lapse.
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

    #[tokio::test(start_paused = true)]
    async fn lost_lease_can_be_reopened_once_its_work_has_ended() {
        let fence = held_for(10);
        tokio::time::advance(10 * SECOND).await;
        assert!(!fence.reopen(Instant::now()), "too late again");
        assert!(fence.reopen(Instant::now() + 10 * SECOND));
        assert_eq!(fence.check(), Ok(()));
        fence.close();
        assert!(!fence.reopen(Instant::now() + 10 * SECOND));
        assert_eq!(fence.state(), FenceState::Closed);
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

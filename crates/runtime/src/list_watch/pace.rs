//! Delays between the requests of a [`ListWatch`](super::ListWatch).

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::backoff::Backoff;
use crate::deadline::{deadline_after, scale};
use crate::random::random_share;

/// Same as in client-go, with up to 100% jitter.
const BACKOFF: Backoff = Backoff {
    min: Duration::from_millis(800),
    max: Duration::from_secs(30),
};
/// Upper bound until the first list is complete, since controllers are waiting for it.
const LONGEST_UNTIL_LISTED: Duration = Duration::from_secs(10);
/// Upper bound for a delay requested by the server.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);
/// A watch that lasts this long resets the backoff. client-go resets it two minutes after the last
/// failure.
const RESET_AFTER: Duration = BACKOFF.max;
/// Minimum interval between the starts of watches.
const BETWEEN_WATCHES: Duration = Duration::from_secs(1);

/// Determines when to send the next request.
#[derive(Debug)]
pub(super) struct Pace {
    next: Instant,
    /// Number of consecutive failures.
    failures: u32,
    has_listed: bool,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self {
            next: Instant::now(),
            failures: 0,
            has_listed: false,
        }
    }

    pub(super) async fn wait(&self) {
        sleep_until(self.next).await;
    }

    /// Doesn't reset the backoff, because watches may still fail after each list.
    pub(super) fn mark_listed(&mut self) {
        self.has_listed = true;
    }

    /// Called when a watch ends for any reason.
    pub(super) fn note_watch(&mut self, started: Instant) {
        if started.elapsed() >= RESET_AFTER {
            self.failures = 0;
        }
        self.next = started + BETWEEN_WATCHES;
    }

    /// `asked` is the delay requested by the server, if any.
    pub(super) fn note_failure(&mut self, asked: Duration) {
        let longest = match self.has_listed {
            true => Duration::MAX,
            false => LONGEST_UNTIL_LISTED,
        };
        let delay = scale(BACKOFF.delay_after(self.failures), 1.0 + random_share()).min(longest);
        let delay = delay.max(asked.min(LONGEST_RETRY_AFTER));
        self.failures = self.failures.saturating_add(1);
        self.next = self.next.max(deadline_after(Instant::now(), delay));
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    async fn fail(pace: &mut Pace, asked: u64) -> Duration {
        let started = Instant::now();
        pace.note_failure(Duration::from_secs(asked));
        pace.wait().await;
        started.elapsed()
    }

    #[track_caller]
    fn assert_between(pause: Duration, least: f64, most: f64) {
        // tokio's paused clock has a resolution of a millisecond.
        let range = least - 0.001..=most + 0.002;
        assert!(range.contains(&pause.as_secs_f64()), "{pause:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn failures_double_the_pause_up_to_thirty_seconds_and_jitter_doubles_it_again() {
        let mut pace = Pace::new();
        pace.mark_listed();
        for least in [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0] {
            assert_between(fail(&mut pace, 0).await, least, 2.0 * least);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_are_shorter_until_the_first_list() {
        let mut pace = Pace::new();
        for _ in 0..10 {
            assert_between(fail(&mut pace, 0).await, 0.8, 10.0);
        }
        assert_between(fail(&mut pace, 0).await, 10.0, 10.0);
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_long_watch_resets_the_back_off() {
        let mut pace = Pace::new();
        pace.mark_listed();
        for _ in 0..6 {
            fail(&mut pace, 0).await;
        }
        let started = Instant::now();
        advance(RESET_AFTER - Duration::from_secs(1)).await;
        pace.note_watch(started);
        assert_between(fail(&mut pace, 0).await, 30.0, 60.0);
        let started = Instant::now();
        advance(RESET_AFTER).await;
        pace.note_watch(started);
        assert_between(fail(&mut pace, 0).await, 0.8, 1.6);
    }

    #[tokio::test(start_paused = true)]
    async fn retry_after_is_honored_up_to_a_minute() {
        let mut pace = Pace::new();
        assert_between(fail(&mut pace, 20).await, 20.0, 20.0);
        assert_between(fail(&mut pace, 86_400).await, 60.0, 60.0);
    }

    #[tokio::test(start_paused = true)]
    async fn watches_start_no_more_than_once_a_second() {
        let mut pace = Pace::new();
        let started = Instant::now();
        advance(Duration::from_millis(300)).await;
        pace.note_watch(started);
        pace.wait().await;
        assert_between(started.elapsed(), 1.0, 1.0);
    }
}

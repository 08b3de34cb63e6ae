//! Exponential back-off.
//!
//! `queue/model.rs` tests it as part of the queue. The default delays are repeated in the
//! documentation of this crate and in docs/: `git grep -n '1000 s' crates/runtime/src docs`.

use std::time::Duration;

use crate::deadline::scale;

/// The shortest delay after a failure, so that a failing operation is never retried in a busy loop.
const SHORTEST_DELAY: Duration = Duration::from_millis(1);

/// The delays after consecutive failures: `min` after the first, doubling up to `max`. Any
/// durations are valid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    pub(crate) min: Duration,
    pub(crate) max: Duration,
}

impl Default for Backoff {
    /// Returns controller-runtime's delays after failed reconciles.
    fn default() -> Self {
        Self {
            min: Duration::from_millis(5),
            max: Duration::from_secs(1000),
        }
    }
}

impl Backoff {
    /// Returns the delay after a failure that was preceded by `failures` others.
    pub(crate) fn delay_after(self, failures: u32) -> Duration {
        let doublings = i32::try_from(failures).unwrap_or(i32::MAX);
        scale(self.min.max(SHORTEST_DELAY), 2_f64.powi(doublings))
            .min(self.max)
            .max(SHORTEST_DELAY)
    }
}

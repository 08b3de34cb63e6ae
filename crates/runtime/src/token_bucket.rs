//! Token buckets, which limit a rate but allow bursts.

use tokio::time::Instant;

/// A token bucket, as of its last update.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenBucket {
    /// Negative when tokens were taken in advance.
    pub(crate) tokens: f64,
    /// When `tokens` was last updated.
    at: Instant,
}

impl TokenBucket {
    /// Creates a full bucket of `burst` tokens.
    pub(crate) fn full(burst: f64, now: Instant) -> Self {
        Self {
            tokens: burst,
            at: now,
        }
    }

    /// Adds the tokens accrued since the last call, at `rate` per second, up to `burst`.
    pub(crate) fn fill(&mut self, rate: f64, burst: f64, now: Instant) {
        let elapsed = now.saturating_duration_since(self.at).as_secs_f64();
        self.tokens = (self.tokens + elapsed * rate).min(burst);
        self.at = now;
    }
}

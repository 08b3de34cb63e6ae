//! Token buckets. They limit a rate, but allow bursts.

use tokio::time::Instant;

/// State of a token bucket at the last update.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenBucket {
    /// Negative if tokens have been taken in advance.
    pub(crate) tokens: f64,
    /// Time of the last update.
    at: Instant,
}

impl TokenBucket {
    /// Creates a bucket that's full.
    pub(crate) fn full(burst: f64, now: Instant) -> Self {
        Self {
            tokens: burst,
            at: now,
        }
    }

    /// Adds `rate` tokens for each second since the last call, up to a total of `burst`.
    pub(crate) fn fill(&mut self, rate: f64, burst: f64, now: Instant) {
        let elapsed = now.saturating_duration_since(self.at).as_secs_f64();
        self.tokens = (self.tokens + elapsed * rate).min(burst);
        self.at = now;
    }
}

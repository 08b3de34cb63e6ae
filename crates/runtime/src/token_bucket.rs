//! Token buckets, which limit a rate but allow bursts.

use tokio::time::Instant;

/// Number of tokens at the last update.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenBucket {
    /// Negative if tokens were taken in advance.
    pub(crate) tokens: f64,
    at: Instant,
}

impl TokenBucket {
    pub(crate) fn full(burst: f64, now: Instant) -> Self {
        Self {
            tokens: burst,
            at: now,
        }
    }

    /// Adds `rate` tokens per second since the last call, up to `burst`.
    pub(crate) fn fill(&mut self, rate: f64, burst: f64, now: Instant) {
        let elapsed = now.saturating_duration_since(self.at).as_secs_f64();
        self.tokens = (self.tokens + elapsed * rate).min(burst);
        self.at = now;
    }
}

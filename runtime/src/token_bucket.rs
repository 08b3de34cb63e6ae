//! Token buckets, which limit the rate of something that may come in bursts.

use tokio::time::Instant;

/// The tokens of a bucket at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenBucket {
    /// Negative while tokens have been taken in advance.
    pub(crate) tokens: f64,
    /// The time of `tokens`.
    at: Instant,
}

impl TokenBucket {
    /// Creates a bucket with `burst` tokens, which is full.
    pub(crate) fn full(burst: f64, now: Instant) -> Self {
        Self {
            tokens: burst,
            at: now,
        }
    }

    /// Adds the tokens since the last call, `rate` in a second, up to `burst` in all.
    pub(crate) fn fill(&mut self, rate: f64, burst: f64, now: Instant) {
        let elapsed = now.saturating_duration_since(self.at).as_secs_f64();
        self.tokens = (self.tokens + elapsed * rate).min(burst);
        self.at = now;
    }
}

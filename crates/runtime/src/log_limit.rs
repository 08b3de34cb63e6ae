//! Rate limit for log messages that can be triggered by clients.

use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

use crate::token_bucket::TokenBucket;

/// Maximum size of a burst of messages.
const BURST: f64 = 10.0;
/// Messages per second after a burst.
const RATE: f64 = 1.0;

/// Limits messages about the same topic, and counts suppressed ones.
pub(crate) struct LogLimit(Mutex<State>);

struct State {
    bucket: TokenBucket,
    left_out: u64,
}

impl Default for LogLimit {
    fn default() -> Self {
        Self(Mutex::new(State {
            bucket: TokenBucket::full(BURST, Instant::now()),
            left_out: 0,
        }))
    }
}

impl LogLimit {
    /// Returns `None` if a message must be suppressed. Otherwise, returns the number of messages
    /// suppressed since the last one.
    pub(crate) fn permit(&self) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.bucket.fill(RATE, BURST, Instant::now());
        if state.bucket.tokens < 1.0 {
            state.left_out += 1;
            return None;
        }
        state.bucket.tokens -= 1.0;
        Some(std::mem::take(&mut state.left_out))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn suppressed_messages_are_counted() {
        let limit = LogLimit::default();
        let permitted = (0..1000).filter_map(|_| limit.permit()).count();
        assert_eq!(permitted, 10);
        tokio::time::advance(Duration::from_millis(1500)).await;
        assert_eq!(limit.permit(), Some(990));
        assert_eq!(limit.permit(), None);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(limit.permit(), Some(1));
    }
}

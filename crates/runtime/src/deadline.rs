//! Helpers for user-provided durations. Any duration is accepted; durations beyond the range of a
//! clock mean "never".

use std::time::Duration;

use tokio::time::Instant;

/// The longest delay, same as in tokio's timers.
const FAR_FUTURE: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// Returns `start + delay`, with `delay` capped at 30 years: on some systems, the range of
/// `Instant` isn't much larger, and an overflow would panic.
pub(crate) fn deadline_after(start: Instant, delay: Duration) -> Instant {
    start + delay.min(FAR_FUTURE)
}

/// `factor` must not be negative. Saturates at `Duration::MAX`.
pub(crate) fn scale(duration: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(duration.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadline_is_never_out_of_range() {
        let start = Instant::now();
        let check = |delay: Duration, expected: Duration| {
            assert_eq!(deadline_after(start, delay) - start, expected, "{delay:?}");
        };
        check(Duration::ZERO, Duration::ZERO);
        check(Duration::from_secs(3600), Duration::from_secs(3600));
        check(Duration::from_secs(u64::MAX), FAR_FUTURE);
        check(Duration::MAX, FAR_FUTURE);
    }

    #[test]
    fn scaled_duration_is_never_out_of_range() {
        assert_eq!(scale(Duration::from_secs(10), 1.5), Duration::from_secs(15));
        assert_eq!(scale(Duration::MAX, 0.0), Duration::ZERO);
        assert_eq!(scale(Duration::MAX, 1.2), Duration::MAX);
    }
}

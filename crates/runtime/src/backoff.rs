//! Exponential backoff.
//!
//! # Changing the defaults
//!
//! Users can override the delays in `controller/settings.rs` and `rate_limiter.rs`. When changing
//! the defaults, update the texts listed in the test below. You also need to adjust
//! `queue/model.rs` and `queue/tests.rs`, which test the delays as part of the queue, and
//! `examples/foo-operator/tests/sample_controller/main.rs`, which counts the retries of a
//! controller.

use std::time::Duration;

use crate::deadline::scale;

/// Prevents a busy loop if `min` is zero.
const SHORTEST_DELAY: Duration = Duration::from_millis(1);

/// The first delay is `min`. It doubles with each consecutive failure, up to `max`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    pub(crate) min: Duration,
    pub(crate) max: Duration,
}

impl Default for Backoff {
    /// Same as in controller-runtime.
    fn default() -> Self {
        Self {
            min: Duration::from_millis(5),
            max: Duration::from_secs(1000),
        }
    }
}

impl Backoff {
    /// `failures` is the number of failures before the latest one.
    pub(crate) fn delay_after(self, failures: u32) -> Duration {
        let doublings = i32::try_from(failures).unwrap_or(i32::MAX);
        scale(self.min.max(SHORTEST_DELAY), 2_f64.powi(doublings))
            .min(self.max)
            .max(SHORTEST_DELAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These texts mention the default delays. Everything else should refer to one of them.
    const TEXTS: [(&str, &str); 4] = [
        ("src/controller/settings.rs", "Defaults to {min} and {max}"),
        ("../../docs/controllers.md", "from {min} up to {max}"),
        ("../../docs/operations.md", "| {min}, doubling up to {max}"),
        (
            "../../docs/tutorial.md",
            "retried after {min}, 10 ms, 20 ms … up to {max}",
        ),
    ];

    #[test]
    fn documentation_states_the_default_delays() {
        let Backoff { min, max } = Backoff::default();
        let [min, max] = [format!("{} ms", min.as_millis()), format!("{} s", max.as_secs())];
        for (path, sentence) in TEXTS {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
            let text = std::fs::read_to_string(&path).unwrap();
            let sentence = sentence.replace("{min}", &min).replace("{max}", &max);
            assert!(text.contains(&sentence), "{} lacks `{sentence}`", path.display());
        }
    }
}

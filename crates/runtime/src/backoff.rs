//! Exponential back-off.
//!
//! # Changing the delays
//!
//! `controller/settings.rs` and `rate_limiter.rs` let users set them. A test below lists the texts
//! that state the defaults. `queue/model.rs` and `queue/tests.rs` test them as part of the queue,
//! and `examples/foo-operator/tests/sample_controller/main.rs` counts the tries of a controller.

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

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts that state the default delays. All others refer to one of them.
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

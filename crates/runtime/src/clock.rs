//! The time of day. In a simulation it is the simulated time.

use k8s_openapi::jiff::Timestamp;

/// Returns the current time.
pub(crate) fn now() -> Timestamp {
    #[cfg(feature = "simulation")]
    if let Some(now) = rbuilder_simulation::now() {
        return now;
    }
    Timestamp::now()
}

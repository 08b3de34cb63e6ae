//! Wall-clock time, which is simulated while a simulation is running.

use k8s_openapi::jiff::Timestamp;

pub(crate) fn now() -> Timestamp {
    #[cfg(feature = "simulation")]
    if let Some(now) = rbuilder_simulation::now() {
        return now;
    }
    Timestamp::now()
}

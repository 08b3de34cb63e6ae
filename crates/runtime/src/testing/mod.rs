//! Helpers for testing your operator. Requires the feature `testing`.
//!
//! | to | call |
//! |---|---|
//! | run a manager next to a test | [`run`] |
//! | read the sample of a kind in `config/samples/` | [`sample`] |
//! | wait until a controller has observed an object | [`until_observed`] |
//! | compute the health of an object like Flux | [`kstatus()`] |
//! | wait for a condition | [`eventually`], [`eventually_eq`] |
//! | compare a kind's compiled CRD with the manifest from `rbuilder manifests` | [`assert_generated_crd_matches`] |
//! | call the functions of a webhook | [`admission_request`] |
//! | find a conversion that loses data | [`assert_round_trip`] |
//! | find a controller or a webhook that is not registered | [`assert_registered`] |
//! | deploy the operator to a cluster and check it there | [`DeployedOperator`] |
//! | generate objects that match a kind's schema | [`RandomObjects`] |
//!
//! For an API server, use either `rbuilder::fake`, which runs within the test process, or
//! `rbuilder::envtest`, which runs a real one.
//!
//! [`run`], [`assert_registered`] and [`RoundTrip`] are part of this crate because they depend on
//! `Manager` and on the webhooks' converter. Everything else is re-exported from the crate `rbuilder-testing`, which
//! does not depend on this one.

mod registered;
mod round_trip;
mod running;

pub use rbuilder_testing::{
    Counterexample, DeployedOperator, Kstatus, Outcome, RandomObjects, admission_request, assert_crd_matches,
    assert_generated_crd_matches, crd_differences, eventually, eventually_eq, kstatus, sample,
    until_observed,
};
pub use registered::assert_registered;
pub use round_trip::{RoundTrip, assert_round_trip};
pub use running::{Running, run};

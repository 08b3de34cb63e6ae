//! Checks that an operator's own tests make.
//!
//! [`crd_differences`] compares the CRD that the compiled types describe with the manifest that
//! `rbuilder manifests` wrote: a manifest somebody forgot to regenerate, or a marker that the two readers of
//! the source understood differently, shows up as a list of paths. [`run`] has a manager run beside a test,
//! [`eventually`] waits for what will be true soon, [`admission_request`] is what the functions of a webhook are
//! called with, [`assert_round_trip`] asks whether conversions lose anything, of objects at random ([`RandomObjects`]).
//! An API server for tests is `rbuilder::fake`, inside of the process, or `rbuilder::envtest`, a real one.
//!
//! Here is what needs the library itself: [`run`] a manager, and [`RoundTrip`] the converter of its webhook. The rest is
//! the crate `rbuilder-testing`, which knows nothing of it.

mod round_trip;
mod running;

pub use rbuilder_testing::{
    Counterexample, Outcome, RandomObjects, admission_request, assert_crd_matches, crd_differences,
    eventually, eventually_eq,
};
pub use round_trip::{RoundTrip, assert_round_trip};
pub use running::{Running, run};

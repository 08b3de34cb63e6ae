//! The test kit of rbuilder: API servers for tests, and checks that need no server.
//!
//! Operators use it as `rbuilder::testing`, `rbuilder::fake` and `rbuilder::envtest`, each with a
//! feature of the same name. The features are enabled in `[dev-dependencies]`, so release builds
//! don't compile the test kit. This crate doesn't depend on the library: helpers that run a
//! `Manager` or convert objects like its webhook are in `rbuilder::testing` itself.
//!
//! | to | use |
//! |---|---|
//! | test with an API server in the process | `fake` |
//! | test with etcd and kube-apiserver | `envtest` |
//! | wait for a condition | [`eventually`], [`eventually_eq`] |
//! | compare the types of a CRD with its manifest | [`assert_crd_matches`], [`assert_generated_crd_matches`] |
//! | read the sample of a kind | [`sample`] |
//! | wait until a controller has observed an object | [`until_observed`] |
//! | compute the health of an object like Flux | [`kstatus()`] |
//! | call the functions of a webhook | [`admission_request`] |
//! | deploy the operator to a cluster and check it there | [`DeployedOperator`] |
//! | generate random objects that match a schema | [`RandomObjects`] |

mod admission;
mod choices;
mod crd;
mod deployed;
#[cfg(feature = "envtest")]
pub mod envtest;
mod eventually;
#[cfg(feature = "fake")]
pub mod fake;
mod kstatus;
mod manifests;
mod objects;
mod observed;
mod pattern;
mod project;
mod random;
mod registered;
mod values;

pub use admission::admission_request;
pub use crd::{assert_crd_matches, crd_differences};
pub use deployed::DeployedOperator;
pub use eventually::{Outcome, eventually, eventually_eq};
pub use kstatus::{Kstatus, kstatus};
pub use objects::{Counterexample, RandomObjects};
pub use observed::until_observed;
pub use project::{assert_generated_crd_matches, sample};
pub use random::Random;
pub use registered::Registered;

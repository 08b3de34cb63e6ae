//! The test kit of rbuilder: API servers for tests, and checks that need none.
//!
//! Operators reach it as `rbuilder::testing`, `rbuilder::fake` and `rbuilder::envtest`, each behind a feature of its
//! name that is turned on in `[dev-dependencies]`, so no release build compiles any of it. It does not know the
//! library: what runs a `Manager` in a test, or converts objects as its webhook does, is in `rbuilder::testing` itself.
//!
//! | to | look at |
//! |---|---|
//! | test against an API server inside of the process | `fake` |
//! | test against etcd and kube-apiserver | `envtest` |
//! | wait for what will be true soon | [`eventually`], [`eventually_eq`] |
//! | compare a CRD's types with its manifest | [`assert_crd_matches`], [`assert_generated_crd_matches`] |
//! | read the sample of a kind | [`sample`] |
//! | wait until a controller has seen an object | [`until_observed`] |
//! | judge the health of an object as Flux does | [`kstatus()`] |
//! | call the functions of a webhook | [`admission_request`] |
//! | try objects that fit a schema | [`RandomObjects`] |

mod admission;
mod choices;
mod crd;
mod defaults;
#[cfg(feature = "envtest")]
pub mod envtest;
mod eventually;
#[cfg(feature = "fake")]
pub mod fake;
mod kstatus;
#[cfg(any(feature = "envtest", feature = "fake"))]
mod manifests;
mod objects;
mod observed;
mod pattern;
mod project;
mod values;

pub use admission::admission_request;
pub use crd::{assert_crd_matches, crd_differences};
pub use eventually::{Outcome, eventually, eventually_eq};
pub use kstatus::{Kstatus, kstatus};
pub use objects::{Counterexample, RandomObjects};
pub use observed::until_observed;
pub use project::{assert_generated_crd_matches, sample};

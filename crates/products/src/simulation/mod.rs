//! A page about an operator's simulations, for `rbuilder simulate`.
//!
//! The reports are written by the library in the operator's `[dev-dependencies]`, whose release may
//! differ from the command's. So this module has its own model of a report file, which ignores
//! unknown keys. `crates/simulation/tests/report.json` was written by the library of this release,
//! and is read by the tests of both crates.

mod page;
mod picture;
mod report;

pub use page::{MARK, render_page};
pub use report::{Budget, Event, Failure, Kept, Perturbation, Report, Request};

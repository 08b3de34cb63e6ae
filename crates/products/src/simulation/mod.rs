//! A page about an operator's simulations, for `rbuilder simulate`.
//!
//! The reports are written by the library in the operator's `[dev-dependencies]`, which may be of
//! another release than the command. This is why we have our own model of a report file, which
//! ignores keys that it doesn't know. `crates/simulation/tests/report.json` was written by the
//! library of this release, and the tests of both crates read it.

mod page;
mod picture;
mod report;

pub use page::{MARK, render_page};
pub use report::{Budget, Event, Failure, Kept, Perturbation, Report, Request};

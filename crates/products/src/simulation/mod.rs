//! A page about the simulations of an operator, for `rbuilder simulate`.
//!
//! The library in the operator's `[dev-dependencies]` writes the reports, and may be of another release
//! than the command. So this crate has its own model of a report file, which ignores keys that it does
//! not know. `crates/simulation/tests/report.json` is a file that the library of this release writes:
//! the tests of both read it.

mod page;
mod picture;
mod report;

pub use page::{MARK, render_page};
pub use report::{Budget, Event, Failure, Kept, Perturbation, Report, Request};

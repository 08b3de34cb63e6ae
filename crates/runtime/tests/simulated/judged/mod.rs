//! Operators in which a finding is easily wrong, missing, or about the wrong thing.
//!
//! Half of them are correct in a way that differs from their neighbours: they keep objects on
//! purpose, use the clock, or accept declarations that can't be reverted. Nothing may be reported
//! for them. Each of the others has a bug that is only visible in a certain way, and the first line
//! of the report must name it.

mod claims;
mod classes;
mod clocks;
mod hidden;
mod kept;
mod namespaces;
mod optional;
mod programs;
mod shortages;

use rbuilder::Manager;
use rbuilder::simulation::{Report, Simulation};
use serde_json::Value;

use crate::kinds::App;
use kube::CustomResourceExt;

/// Number of histories of a correct operator.
const HISTORIES: usize = 70;

/// Simulates an operator for objects of the kind `App`, with the default number of histories.
fn simulate(register: fn(Manager) -> Manager, declared: &[Value]) -> Simulation {
    let simulation = Simulation::new(register).crd(App::crd());
    declared
        .iter()
        .fold(simulation, |simulation, object| simulation.declare(object))
}

#[track_caller]
fn assert_silent(simulation: Simulation) {
    let report = simulation.histories(HISTORIES).run();
    assert!(report.failures.is_empty(), "{report}");
}

/// Checks that an oracle reports a bug with these words.
#[track_caller]
fn assert_found(simulation: Simulation, oracle: &str, words: &str) -> Report {
    let report = simulation.run();
    let mut failures = report.failures.iter();
    let found = failures.any(|failure| failure.oracle.as_str() == oracle && failure.message.contains(words));
    assert!(found, "{oracle}: {words}, expected in\n{report}");
    report
}

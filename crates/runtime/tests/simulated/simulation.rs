//! Simulates all operators in the corpus. Each bug must be reported by the right oracle, and
//! nothing may be reported for the twins.

use std::collections::BTreeSet;
use std::fs;

use rbuilder::Manager;
use rbuilder::simulation::{Report, Simulation};

use crate::plain::ordinary;
use crate::{Case, cases, second_set};

/// Maximum number of perturbations in a failing history.
const MOST_PERTURBATIONS: usize = 3;

/// Minimum number of histories of a repaired operator.
const TWIN_HISTORIES: usize = 70;

/// Cases that the right oracle doesn't report yet, with the reason. Remove a case from this list
/// once it's found.
const NOT_FOUND_YET: &[(&str, &str)] = &[];

/// Same as above, for the second set.
const NOT_FOUND_IN_SECOND_SET: &[(&str, &str)] = &[(
    "claims_of_unknown_owners_deleted",
    "the first lists of the library's caches are the most recent ones, so that no cache begins in the past",
)];

fn simulate(case: &Case, register: fn(Manager) -> Manager) -> Simulation {
    let mut simulation = Simulation::new(register);
    for crd in (case.crds)() {
        simulation = simulation.crd(crd);
    }
    if let Some(role) = case.role {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("role.yaml"), role).unwrap();
        simulation = simulation.role_from(folder.path());
    }
    let ordinary = ordinary(case);
    for object in &ordinary {
        simulation = simulation.declare(object);
    }
    for object in (case.declarations)() {
        if !ordinary.contains(&object) {
            simulation = simulation.alternative(&object);
        }
    }
    simulation
}

fn reports(report: &Report, oracle: &str) -> bool {
    if oracle == "dead-field" {
        return report.unused_fields.iter().any(|field| field.contains(" /spec/"));
    }
    let mut failures = report.failures.iter();
    failures.any(|failure| {
        failure.oracle.as_str() == oracle && failure.history.perturbations.len() <= MOST_PERTURBATIONS
    })
}

/// Returns the report on a broken operator if its oracle doesn't find the bug within the default
/// budget.
fn find_missed(case: &Case) -> Option<Report> {
    let report = simulate(case, case.broken).run();
    (!reports(&report, case.oracle)).then_some(report)
}

/// If `SIMULATED_CASE` is set, only that case is run.
fn is_selected(name: &str) -> bool {
    let only = std::env::var("SIMULATED_CASE").unwrap_or_default();
    only.is_empty() || only == name
}

fn check_list(what: &str, list: &[(&str, &str)], found: &[(&Case, Report)]) {
    let listed = list.iter().map(|(name, _)| *name);
    let expected: BTreeSet<&str> = listed.filter(|name| is_selected(name)).collect();
    let names: BTreeSet<&str> = found.iter().map(|(case, _)| case.name).collect();
    let more: Vec<String> = found
        .iter()
        .filter(|(case, _)| !expected.contains(case.name))
        .map(|(case, report)| format!("{} ({}, {}): {report}", case.name, case.class, case.oracle))
        .collect();
    let fewer: Vec<_> = expected.difference(&names).collect();
    assert!(
        more.is_empty() && fewer.is_empty(),
        "{what}: no longer {fewer:?}, and\n{}",
        more.join("\n\n")
    );
}

fn check_broken(cases: impl Iterator<Item = &'static Case>, not_found_yet: &[(&str, &str)]) {
    let missed: Vec<_> = cases
        .filter(|case| is_selected(case.name))
        .filter_map(|case| Some((case, find_missed(case)?)))
        .collect();
    check_list("broken operators that are not reported", not_found_yet, &missed);
}

fn check_repaired(cases: impl Iterator<Item = &'static Case>) {
    let reported: Vec<_> = cases
        .filter(|case| is_selected(case.name))
        .map(|case| {
            (
                case,
                simulate(case, case.repaired).histories(TWIN_HISTORIES).run(),
            )
        })
        .filter(|(_, report)| !report.failures.is_empty() || reports(report, "dead-field"))
        .collect();
    check_list("repaired operators that are reported", &[], &reported);
}

#[test]
fn oracle_of_the_case_reports_each_broken_operator() {
    check_broken(cases(), NOT_FOUND_YET);
}

#[test]
fn oracle_of_the_case_reports_each_broken_operator_of_the_second_set() {
    check_broken(second_set::CASES.iter(), NOT_FOUND_IN_SECOND_SET);
}

#[test]
fn nothing_reports_a_repaired_operator() {
    check_repaired(cases());
}

#[test]
fn nothing_reports_a_repaired_operator_of_the_second_set() {
    check_repaired(second_set::CASES.iter());
}

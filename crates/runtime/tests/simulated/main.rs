//! A corpus of small operators, each with a published bug and a twin in which the bug is fixed.
//!
//! Ordinary tests do not find any of these bugs: without faults, all operators reach their declared
//! state and can be deleted. A bug is triggered by the fault (or the declaration) after which its
//! class is named. There is one file per class, and the comment of each case says where the bug was
//! published. The code of the operators is our own.

mod children;
mod crash_between_writes;
mod data_loss;
mod dead_field;
mod deletion;
mod error_swallowed;
mod external_call;
mod external_system;
mod finalizer;
mod hot_loop;
mod immutable;
mod judged;
mod kinds;
mod lost_response;
mod memory;
mod missing_value;
mod never_ends;
mod not_monotone;
mod order;
mod orphan;
mod permission;
mod plain;
mod second_set;
mod simulation;
mod stale_cache;
mod time;
mod unobserved;
mod upgrade;
mod wrong_truth;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use rbuilder::Manager;
use serde_json::Value;

/// An operator with a bug, and its twin without the bug.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) class: &'static str,
    /// The oracle that must find the bug, one of [`ORACLES`].
    pub(crate) oracle: &'static str,
    pub(crate) broken: fn(Manager) -> Manager,
    pub(crate) repaired: fn(Manager) -> Manager,
    pub(crate) crds: fn() -> Vec<CustomResourceDefinition>,
    /// Declarations of the user. Declaring the same object again is a change that an ordinary test
    /// would not make.
    pub(crate) declarations: fn() -> Vec<Value>,
    /// The operator's ClusterRole as YAML. Everything is permitted without one.
    pub(crate) role: Option<&'static str>,
}

pub(crate) const ORACLES: [&str; 9] = [
    // Without faults, it settles in a different state.
    "end-state",
    // The state in which it settles depends on previous declarations.
    "path",
    // It keeps writing or reconciling.
    "quiet",
    // A claim or a Secret with data is deleted while its owner exists.
    "data",
    // The object, or something created for it, is left behind after the deletion.
    "deletion",
    // The status says that something was done although it wasn't.
    "truth",
    // It panics.
    "panic",
    // A request is not permitted by the role.
    "role",
    // A field in the spec has no effect.
    "dead-field",
];

pub(crate) fn cases() -> impl Iterator<Item = &'static Case> {
    let classes = [
        crash_between_writes::CASES,
        data_loss::CASES,
        dead_field::CASES,
        deletion::CASES,
        error_swallowed::CASES,
        external_call::CASES,
        external_system::CASES,
        finalizer::CASES,
        hot_loop::CASES,
        immutable::CASES,
        lost_response::CASES,
        missing_value::CASES,
        never_ends::CASES,
        not_monotone::CASES,
        order::CASES,
        orphan::CASES,
        permission::CASES,
        stale_cache::CASES,
        time::CASES,
        unobserved::CASES,
        upgrade::CASES,
        wrong_truth::CASES,
    ];
    classes.into_iter().flatten()
}

#[test]
fn corpus_has_two_cases_of_each_class_and_known_oracles() {
    let mut counts = std::collections::BTreeMap::<_, usize>::new();
    let mut names = std::collections::BTreeSet::new();
    for case in cases() {
        *counts.entry(case.class).or_default() += 1;
        assert!(names.insert(case.name), "two cases are named {}", case.name);
        assert!(ORACLES.contains(&case.oracle), "{}: {}", case.name, case.oracle);
    }
    let few: Vec<_> = counts.iter().filter(|(_, count)| **count < 2).collect();
    assert!(few.is_empty(), "{few:?}");
    assert!(names.len() >= 40, "{}", names.len());
}

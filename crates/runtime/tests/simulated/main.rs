//! A corpus of small operators, each with a bug that has been published, and its repaired twin.
//!
//! Ordinary tests find none of these bugs: without faults, each operator reaches its declared
//! state and can be deleted. They show under the fault or the declaration that the class of the
//! bug is named for. The classes are files; the comment of a case names where such a bug was
//! published. The operators are our own.

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

/// A broken operator and its repaired twin.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) class: &'static str,
    /// The oracle that must report the broken operator; one of [`ORACLES`].
    pub(crate) oracle: &'static str,
    pub(crate) broken: fn(Manager) -> Manager,
    pub(crate) repaired: fn(Manager) -> Manager,
    pub(crate) crds: fn() -> Vec<CustomResourceDefinition>,
    /// The objects that a user declares. A later declaration of the same object is a change that
    /// an ordinary test would not make.
    pub(crate) declarations: fn() -> Vec<Value>,
    /// The ClusterRole of the operator, as YAML; `None` if it may do everything.
    pub(crate) role: Option<&'static str>,
}

/// What can be wrong with an operator.
pub(crate) const ORACLES: [&str; 9] = [
    // The settled state differs from that of the run without faults.
    "end-state",
    // The settled state depends on the declarations before the last one.
    "path",
    // Writes or reconciles do not end.
    "quiet",
    // A claim or a Secret with data is deleted while its owner lives.
    "data",
    // The object, or something made for it, remains after its deletion.
    "deletion",
    // The status reports work as done that is not.
    "truth",
    // The operator panics.
    "panic",
    // A request is not allowed by the role.
    "role",
    // A field of the spec changes nothing.
    "dead-field",
];

/// All cases, by class.
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

//! Conditions on values, as template expressions.

use std::collections::BTreeSet;

use super::config::Condition;
use super::references::References;

/// Expression that is true if all conditions hold, or `None` without conditions.
pub(super) fn condition(references: &References, conditions: &[Condition]) -> Option<String> {
    let mut all = conditions.to_vec();
    // Test a feature before features nested in it.
    all.sort_by_key(|condition| {
        (
            condition.value.matches('.').count(),
            condition.value,
            condition.is_true,
        )
    });
    all.dedup();
    let one = |condition: &Condition| {
        let value = references.value(condition.value);
        if condition.is_true {
            value
        } else {
            format!("not {value}")
        }
    };
    match all.as_slice() {
        [] => None,
        [only] => Some(one(only)),
        all => {
            let all = all.iter().map(|condition| match condition.is_true {
                true => one(condition),
                false => format!("({})", one(condition)),
            });
            Some(format!("and {}", all.collect::<Vec<_>>().join(" ")))
        }
    }
}

/// Whether at least one of the lists always holds, regardless of the values.
pub(super) fn is_certain(alternatives: &[&[Condition]]) -> bool {
    let values = alternatives
        .iter()
        .flat_map(|all| all.iter().map(|condition| condition.value));
    let values: Vec<&str> = values.collect::<BTreeSet<_>>().into_iter().collect();
    // Try all combinations, which is cheap for a handful of features.
    (0..1_u32 << values.len().min(16)).all(|chosen| {
        let holds = |condition: &Condition| {
            let at = values.iter().position(|value| *value == condition.value);
            at.is_some_and(|at| (chosen >> at & 1 == 1) == condition.is_true)
        };
        alternatives.iter().any(|all| all.iter().all(holds))
    })
}

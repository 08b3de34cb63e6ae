//! Computes an object's health according to kstatus.
//!
//! `tests/health.jsonl` contains objects with the results of kstatus itself and of the scaffolded
//! Argo CD health script, recorded by `cargo xtask health`.

use serde::Serialize;
use serde_json::Value;

/// The health of an object. See [`kstatus()`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kstatus {
    /// In the desired state, or doesn't report its state.
    Current,
    /// The latest generation isn't observed yet, or the object isn't ready yet.
    InProgress,
    /// Won't become ready without intervention.
    Failed,
    /// Being deleted.
    Terminating,
}

/// Computes the health of a custom resource like kstatus of `sigs.k8s.io/cli-utils`, which is used
/// by Flux, kpt and others. Considers `status.observedGeneration` and the conditions `Reconciling`,
/// `Stalled` and `Ready`.
///
/// kstatus has separate rules for the built-in kinds of Kubernetes, which are not implemented here.
///
/// ```
/// use rbuilder_testing::{Kstatus, kstatus};
/// use serde_json::json;
///
/// let ready = json!([{ "type": "Ready", "status": "True" }]);
/// let object = json!({ "metadata": { "generation": 2 }, "status": { "observedGeneration": 1, "conditions": ready } });
/// assert_eq!(kstatus(&object), Kstatus::InProgress);
/// ```
///
/// # Panics
///
/// Panics if the object cannot be serialized.
#[track_caller]
pub fn kstatus(object: &impl Serialize) -> Kstatus {
    let object = serde_json::to_value(object).expect("an object of Kubernetes serializes");
    let (metadata, status) = (&object["metadata"], &object["status"]);
    if metadata["deletionTimestamp"]
        .as_str()
        .is_some_and(|time| !time.is_empty())
    {
        return Kstatus::Terminating;
    }
    let observed = status["observedGeneration"].as_i64();
    if let (Some(generation), Some(observed)) = (metadata["generation"].as_i64(), observed)
        && observed != generation
    {
        return Kstatus::InProgress;
    }
    let conditions = status["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    judge_conditions(conditions)
}

fn judge_conditions(conditions: &[Value]) -> Kstatus {
    let mut abnormal = conditions
        .iter()
        .filter(|condition| condition["status"] == "True");
    let abnormal = abnormal.find_map(|condition| match condition["type"].as_str()? {
        "Reconciling" => Some(Kstatus::InProgress),
        "Stalled" => Some(Kstatus::Failed),
        _ => None,
    });
    let mut ready = conditions.iter().filter(|condition| condition["type"] == "Ready");
    let ready = ready.find_map(|condition| match condition["status"].as_str()? {
        "True" => Some(Kstatus::Current),
        "False" | "Unknown" => Some(Kstatus::InProgress),
        _ => None,
    });
    // `Reconciling` and `Stalled` take precedence over `Ready`.
    abnormal.or(ready).unwrap_or(Kstatus::Current)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDED: &str = include_str!("../tests/health.jsonl");

    #[test]
    fn matches_recorded_results_of_kstatus() {
        let mut count = 0;
        for line in RECORDED.lines() {
            let case: Value = serde_json::from_str(line).expect("a case is JSON");
            let verdict = format!("{:?}", kstatus(&case["object"]));
            assert_eq!(case["kstatus"], verdict, "{line}");
            count += 1;
        }
        assert!(count >= 15, "{count} cases");
    }
}

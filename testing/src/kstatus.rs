//! The health of an object by the rules of kstatus.

use serde::Serialize;
use serde_json::Value;

/// The health of an object by kstatus; see [`kstatus()`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kstatus {
    /// The cluster is in the desired state of the object, or the object does not say whether it is.
    Current,
    /// The controller has not seen the latest generation, or the object is not ready yet.
    InProgress,
    /// The object does not become ready by itself.
    Failed,
    /// The object is being deleted.
    Terminating,
}

/// Judges an object of an operator's own kind as kstatus of `sigs.k8s.io/cli-utils` does, and so Flux, kpt and others: by
/// `status.observedGeneration`, and by the conditions `Reconciling`, `Stalled` and `Ready`.
///
/// Kubernetes' own kinds have other rules there, which this function does not have.
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
/// If the object cannot be serialized.
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

/// Judges by the first condition that says something: `Reconciling` and `Stalled` count before `Ready`.
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
    abnormal.or(ready).unwrap_or(Kstatus::Current)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Objects with the verdicts of kstatus and of the script for Argo CD, recorded by `cargo xtask health`.
    const RECORDED: &str = include_str!("../tests/health.jsonl");

    #[test]
    fn objects_are_judged_as_by_kstatus() {
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

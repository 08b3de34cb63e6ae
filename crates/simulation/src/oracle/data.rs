//! What holds data is not deleted while its owner lives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::{Oracle, Violation};
use crate::traffic::Deletion;
use crate::world::ObjectName;

/// Returns the violation of a deletion of a PersistentVolumeClaim whose owner stays.
pub(crate) fn lost_claim(deletion: &Deletion) -> Option<Violation> {
    let name = &deletion.name;
    let loses = name.resource() == "persistentvolumeclaims" && deletion.owner_lives;
    loses.then(|| {
        let message = format!("the operator deletes {name} while its owner exists");
        Violation::new(Oracle::Data, message)
    })
}

/// Returns the violation of a write that makes a Secret with other values again, which the operator has
/// deleted while its owner existed. A copy of another Secret may come and go.
pub(crate) fn repeated_secret(
    name: &ObjectName,
    deletions: &[Deletion],
    written: impl FnOnce() -> Option<Arc<Value>>,
) -> Option<Violation> {
    if name.resource() != "secrets" || deletions.is_empty() {
        return None;
    }
    let written = written()?;
    let mut deleted = deletions.iter().filter(|deletion| deletion.name == *name);
    let loses = deleted.any(|deletion| deletion.owner_lives && deletion.object["data"] != written["data"]);
    loses.then(|| {
        let message = format!("the operator deletes {name} and makes it again with other values");
        Violation::new(Oracle::Data, message)
    })
}

/// Values in Secrets that the operator has made, and has replaced.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    /// The values as the operator has written them, by field.
    made: BTreeMap<String, Value>,
    /// Fields whose value the operator has replaced by another one of its own.
    pub(crate) replaced: BTreeSet<String>,
}

impl Secrets {
    /// Compares a Secret before and after a write of the operator. A value that somebody else has changed
    /// meanwhile may be restored.
    pub(crate) fn observe(&mut self, name: &ObjectName, before: Option<&Value>, after: &Value) {
        let fields = after["data"].as_object();
        for (key, value) in fields.into_iter().flatten() {
            let field = format!("{name} .data.{key}");
            let known = before.map(|before| &before["data"][key]);
            let same_object =
                before.is_some_and(|before| before["metadata"]["uid"] == after["metadata"]["uid"]);
            let made = self.made.insert(field.clone(), value.clone());
            if same_object && known != Some(value) && made.as_ref() == known {
                self.replaced.insert(field);
            }
        }
    }
}

/// Returns the violation of a write that replaces a generated value, such as a password.
pub(crate) fn replaced_secret(field: &str) -> Violation {
    let message = format!("the operator replaces {field}, which it has generated before, by another value");
    Violation::new(Oracle::Data, message)
}

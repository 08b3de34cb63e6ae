//! Data loss oracle: objects that hold data must not be deleted while their owner exists.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::{Oracle, Violation};
use crate::traffic::Deletion;
use crate::world::ObjectName;

pub(crate) fn lost_claim(deletion: &Deletion) -> Option<Violation> {
    let name = &deletion.name;
    let loses = name.resource() == "persistentvolumeclaims" && deletion.owner_lives;
    loses.then(|| {
        let message = format!("the operator deletes {name} while its owner exists");
        Violation::new(Oracle::Data, message)
    })
}

/// Reports a Secret that the operator deleted while its owner existed, and now recreates with
/// different values. Copies of other Secrets are exempt.
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

#[derive(Debug, Default)]
pub(crate) struct Secrets {
    /// Last written value per field.
    made: BTreeMap<String, Value>,
    /// Fields where the operator overwrote its own value.
    pub(crate) replaced: BTreeSet<String>,
}

impl Secrets {
    pub(crate) fn observe(&mut self, name: &ObjectName, before: Option<&Value>, after: &Value) {
        let fields = after["data"].as_object();
        for (key, value) in fields.into_iter().flatten() {
            let field = format!("{name} .data.{key}");
            let known = before.map(|before| &before["data"][key]);
            let same_object =
                before.is_some_and(|before| before["metadata"]["uid"] == after["metadata"]["uid"]);
            let made = self.made.insert(field.clone(), value.clone());
            // Restoring a value that another actor modified is fine, so only report values that the
            // operator wrote.
            if same_object && known != Some(value) && made.as_ref() == known {
                self.replaced.insert(field);
            }
        }
    }
}

pub(crate) fn replaced_secret(field: &str) -> Violation {
    let message = format!("the operator replaces {field}, which it has generated before, by another value");
    Violation::new(Oracle::Data, message)
}

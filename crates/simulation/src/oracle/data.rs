//! Data loss oracle: objects that hold data must not be deleted while they are needed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Oracle, Violation};
use crate::traffic::Deletion;
use crate::world::ObjectName;

const CLAIMS: &str = "persistentvolumeclaims";

pub(crate) fn is_claim(name: &ObjectName) -> bool {
    name.resource() == CLAIMS
}

/// Reports a claim that the operator deleted in the step that ends, although its owner exists.
///
/// After a change of the declaration, a claim may be needed no more, e.g. that of a removed member.
/// But a claim that takes the place of the deleted one begins without its data. `replacements` are
/// the claims that the operator created in the step.
pub(crate) fn lost_claim(
    deletions: &[Deletion],
    replacements: &[ObjectName],
    may_shrink: bool,
) -> Option<Violation> {
    let mut lost = deletions
        .iter()
        .filter(|deletion| is_claim(&deletion.name) && deletion.owner_lives);
    let name = &lost.next()?.name;
    let message = match replacements.first() {
        Some(replacement) if replacement == name => {
            format!("the operator deletes {name} and makes it again while its owner exists")
        }
        Some(replacement) => {
            format!("the operator deletes {name} and makes {replacement} while the owner exists")
        }
        None if may_shrink => return None,
        None => format!("the operator deletes {name} while its owner exists"),
    };
    Some(Violation::new(Oracle::Data, name.to_string(), message))
}

/// Reports a Secret that the operator deleted while its owner existed, and now recreates with
/// different values. Copies of other Secrets are exempt.
pub(crate) fn repeated_secret(
    name: &ObjectName,
    deletions: &[Deletion],
    written: &Value,
) -> Option<Violation> {
    let mut deleted = deletions.iter().filter(|deletion| deletion.name == *name);
    let loses = deleted.any(|deletion| deletion.owner_lives && deletion.object["data"] != written["data"]);
    loses.then(|| {
        let message = format!("the operator deletes {name} and makes it again with other values");
        Violation::new(Oracle::Data, name.to_string(), message)
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
    Violation::new(Oracle::Data, field, message)
}

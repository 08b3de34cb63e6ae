//! What holds data is not deleted while its owner lives.

use std::sync::Arc;

use serde_json::Value;

use super::{Oracle, Violation};
use crate::network::Deletion;
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

//! What holds data is not deleted while its owner lives.

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

/// Returns the violation of a write that makes a Secret again, which the operator has deleted while its
/// owner existed.
pub(crate) fn repeated_secret(name: &ObjectName, deletions: &[Deletion]) -> Option<Violation> {
    let is_same = |deletion: &&Deletion| deletion.owner_lives && deletion.name == *name;
    let loses = name.resource() == "secrets" && deletions.iter().any(|deletion| is_same(&deletion));
    loses.then(|| {
        let message = format!("the operator deletes {name} and makes it again");
        Violation::new(Oracle::Data, message)
    })
}

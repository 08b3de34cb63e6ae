//! Owner references that the garbage collector does not follow.

use rbuilder_testing::fake::StoredObject;
use serde_json::Value;

use super::{Oracle, Violation};
use crate::world::{ObjectName, owner_uids};

/// Reports an owner in another namespace, or a namespaced owner of a cluster-scoped object.
///
/// The collector looks up owners by name in the namespace of the dependent. It takes the owner in
/// another namespace for absent and deletes the dependent, and never deletes the cluster-scoped one.
pub(crate) fn useless_owner(
    written: &ObjectName,
    object: &Value,
    objects: &[StoredObject],
) -> Option<Violation> {
    let uids: Vec<&str> = owner_uids(object).collect();
    if uids.is_empty() {
        return None;
    }
    let mut owners = objects
        .iter()
        .filter(|stored| uids.contains(&stored.metadata("uid")));
    let owner = owners.find(|stored| {
        let namespace = stored.metadata("namespace");
        !namespace.is_empty() && namespace != written.namespace
    })?;
    let owner = ObjectName::of(owner);
    let message = match written.namespace.as_str() {
        "" => format!(
            "{written} is cluster-scoped and has a namespaced owner, {owner}: the garbage collector never deletes it"
        ),
        _ => format!(
            "{written} has an owner in another namespace, {owner}: the garbage collector deletes it although the \
             owner exists"
        ),
    };
    Some(Violation::new(Oracle::Deletion, written.to_string(), message))
}

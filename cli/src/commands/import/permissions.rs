//! Compares the permissions of roles.

use std::collections::BTreeSet;

use rbuilder_kubernetes::rbac::{Permission, Target, is_granted};

use super::comparison::{Match, prefixed};

/// Compares the permissions of two roles. Describes missing permissions, or else additional ones.
pub(super) fn compare_permissions(
    theirs: &BTreeSet<Permission>,
    ours: &BTreeSet<Permission>,
) -> (Match, Vec<String>) {
    let beyond = |some: &BTreeSet<Permission>, others: &BTreeSet<Permission>| -> Vec<String> {
        let found = some.difference(others);
        let found = found.filter(|permission| !is_granted(permission, others));
        found.map(show_permission).collect()
    };
    let (lost, more) = (beyond(theirs, ours), beyond(ours, theirs));
    match (lost.is_empty(), more.is_empty()) {
        (true, true) => (Match::Same, Vec::new()),
        (true, false) => (Match::Better, prefixed("more: ", more)),
        (false, _) => (Match::ByHand, prefixed("missing: ", lost)),
    }
}

fn show_permission(permission: &Permission) -> String {
    let Permission {
        namespace,
        target,
        verb,
    } = permission;
    let target = match target {
        Target::Url(url) => url.clone(),
        Target::Resource {
            group,
            resource,
            name,
        } => {
            let group = if group.is_empty() {
                ""
            } else {
                &format!("{group}/")
            };
            let name = name.as_ref().map(|name| format!(" {name}"));
            format!("{group}{resource}{}", name.unwrap_or_default())
        }
    };
    let place = namespace.as_ref().map(|namespace| format!(" in {namespace}"));
    format!("{verb} {target}{}", place.unwrap_or_default())
}

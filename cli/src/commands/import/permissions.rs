//! Compares the permissions of roles.

use std::collections::BTreeSet;

use super::comparison::{Match, prefixed};
use crate::commands::permissions::{Permission, is_granted};

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

fn show_permission((namespace, group, resource, name, verb): &Permission) -> String {
    let group = if group.is_empty() {
        String::new()
    } else {
        format!("{group}/")
    };
    let place = if namespace.is_empty() {
        String::new()
    } else {
        format!(" in {namespace}")
    };
    let name = if name.is_empty() {
        String::new()
    } else {
        format!(" {name}")
    };
    format!("{verb} {group}{resource}{name}{place}")
}

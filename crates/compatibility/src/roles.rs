//! Compares the permissions granted by roles.

use rbuilder_kubernetes::rbac::{is_granted, permissions_of};
use serde_json::Value;

use crate::change::Change;
use crate::place::Place;

pub(crate) fn compare_roles(old: Option<&Value>, new: Option<&Value>, place: &Place) -> Vec<Change> {
    let (Some(before), Some(after)) = (old, new) else {
        return vec![match new {
            Some(_) => place.change("role-added", "", "new".to_owned()),
            None => place.change("role-removed", "", "removed".to_owned()),
        }];
    };
    let (before, after) = (permissions_of(before), permissions_of(after));
    let mut changes = Vec::new();
    for (rule, these, others, verb) in [
        ("permission-added", &after, &before, "may"),
        ("permission-removed", &before, &after, "may not"),
    ] {
        // Compare the union of the rules, however they are split.
        let lacking = these.iter().filter(|permission| !is_granted(permission, others));
        changes.extend(lacking.map(|permission| place.change(rule, "rules", format!("{verb} {permission}"))));
    }
    changes
}

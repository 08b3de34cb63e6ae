//! Matches the original's roles and bindings with renamed ones in the Rust project.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_kubernetes::rbac::{Permission, is_granted, permissions_of};
use serde_json::Value;

use super::applied::{AppliedObject, Objects, text};
use crate::commands::permissions::is_role;

pub(super) struct Accounts {
    pub(super) theirs: String,
    pub(super) ours: String,
}

/// Finds roles of the original with an equivalent under another name, and the bindings of such
/// roles, each with its equivalent. Equivalent roles grant the permissions to the same accounts. We
/// need this because both kubebuilder and projects have renamed roles.
pub(super) fn find_counterparts(
    theirs: &Objects,
    ours: &Objects,
    accounts: &Accounts,
) -> BTreeMap<(String, String), String> {
    let own: Vec<(&(String, String), BTreeSet<Permission>)> = ours
        .iter()
        .filter(|(_, found)| is_role(&found.object))
        .map(|(key, found)| (key, permissions_of(&found.object)))
        .collect();
    let mut found: BTreeMap<(String, String), String> = BTreeMap::new();
    let missing = theirs.iter().filter(|(key, _)| !ours.contains_key(*key));
    for (key, role) in missing.filter(|(_, found)| is_role(&found.object)) {
        let wanted = permissions_of(&role.object);
        let has_all =
            |granted: &BTreeSet<Permission>| wanted.iter().all(|wanted| is_granted(wanted, granted));
        let holders = holders_of(theirs, key, &accounts.theirs);
        let matching = own.iter().filter(|(own, granted)| {
            let own_holders = holders_of(ours, own, &accounts.ours);
            // An unbound role is meant for users, so its equivalent must be unbound too.
            let is_held = match holders.is_empty() {
                true => own_holders.is_empty(),
                false => holders.is_subset(&own_holders),
            };
            own.0 == key.0 && is_held && has_all(granted)
        });
        // A wildcard counts as one permission but grants the most, so compare wildcards first.
        let breadth = |granted: &BTreeSet<Permission>| {
            let wildcards = granted.iter().filter(|permission| permission.verb == "*").count();
            (wildcards, granted.len())
        };
        let closest = matching.min_by_key(|(_, granted)| breadth(granted));
        if let Some(((kind, name), _)) = closest.filter(|_| !wanted.is_empty()) {
            found.insert(key.clone(), format!("{kind} {name}"));
        }
    }
    let mut bindings = Vec::new();
    let is_left = |key: &(String, String)| is_binding(&key.0) && !ours.contains_key(key);
    for (key, binding) in theirs.iter().filter(|(key, _)| is_left(key)) {
        let role = role_of(&binding.object);
        let of_same_name = ours.contains_key(&role).then(|| format!("{} {}", role.0, role.1));
        let Some(counterpart) = found.get(&role).cloned().or(of_same_name) else {
            continue;
        };
        let is_bound = |(_, own): (&(String, String), &AppliedObject)| {
            let role = role_of(&own.object);
            format!("{} {}", role.0, role.1) == counterpart
                && own.object["kind"] == key.0
                && subjects_of(&own.object, &accounts.ours) == subjects_of(&binding.object, &accounts.theirs)
        };
        if let Some(own) = ours.iter().find(|entry| is_bound(*entry)) {
            bindings.push((key.clone(), format!("{} {}", own.0.0, own.0.1)));
        }
    }
    found.extend(bindings);
    found
}

fn is_binding(kind: &str) -> bool {
    kind == "ClusterRoleBinding" || kind == "RoleBinding"
}

fn role_of(binding: &Value) -> (String, String) {
    let role = &binding["roleRef"];
    (text(&role["kind"]), text(&role["name"]))
}

fn holders_of(
    objects: &Objects,
    role: &(String, String),
    account: &str,
) -> BTreeSet<(String, (String, String))> {
    let bindings = objects
        .iter()
        .filter(|((kind, _), found)| is_binding(kind) && role_of(&found.object) == *role);
    bindings
        .flat_map(|((kind, _), found)| {
            let subjects = subjects_of(&found.object, account).into_iter();
            // A RoleBinding grants less than a ClusterRoleBinding.
            subjects.map(|subject| (kind.clone(), subject))
        })
        .collect()
}

pub(super) fn account_of(deployment: Option<&Value>) -> String {
    let account = deployment.and_then(|object| object.pointer("/spec/template/spec/serviceAccountName"));
    account.and_then(Value::as_str).unwrap_or("default").to_owned()
}

pub(super) fn subjects_of(binding: &Value, account: &str) -> Vec<(String, String)> {
    let subjects = binding["subjects"].as_array().into_iter().flatten();
    subjects
        .map(|subject| {
            let (kind, name) = (text(&subject["kind"]), text(&subject["name"]));
            // The name of the manager's account may differ between the projects.
            let is_manager = kind == "ServiceAccount" && name == account;
            (kind, if is_manager { String::new() } else { name })
        })
        .collect()
}

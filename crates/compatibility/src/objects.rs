//! Matches up old and new manifests.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_kubernetes::crd::{self, Crd};
use serde_json::Value;

use crate::change::Change;
use crate::definition::{compare_definitions, describe_presence};
use crate::place::{Place, text};
use crate::roles::compare_roles;
use crate::webhooks::compare_webhooks;
use crate::witness::Budget;

/// Compares two sets of manifests: CRDs, roles and webhook configurations. Other objects are
/// ignored.
///
/// Changes are in manifest order, and from breaking to compatible within a manifest.
///
/// # Errors
///
/// Returns a phrase that names the unreadable manifest.
pub fn compare(old: &[Value], new: &[Value]) -> Result<Vec<Change>, String> {
    compare_within(old, new, &Budget::default())
}

/// Like [`compare`], with a limit on the total work of all searches.
///
/// # Errors
///
/// Returns a phrase that names the unreadable manifest.
pub fn compare_within(old: &[Value], new: &[Value], budget: &Budget) -> Result<Vec<Change>, String> {
    let (old, new) = (index(old), index(new));
    let keys: BTreeSet<&Key> = old.keys().chain(new.keys()).collect();
    let mut changes = Vec::new();
    for key in keys {
        let mut found = compare_pair(old.get(key), new.get(key), budget)?;
        found.sort_by_key(|change| std::cmp::Reverse(change.level));
        changes.extend(found);
    }
    Ok(changes)
}

/// Whether [`compare`] looks at an object, i.e. whether it's a CRD, a role or a webhook
/// configuration. Patches of CRDs, which have no versions, don't count.
pub fn is_compared(object: &Value) -> bool {
    match object["kind"].as_str() {
        Some(crd::KIND) => Crd::of(object).has_versions(),
        Some("Role" | "ClusterRole") => object["metadata"]["name"].is_string(),
        Some("MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration") => {
            object["metadata"]["name"].is_string()
        }
        _ => false,
    }
}

/// Kind, namespace and name.
pub(crate) type Key = (String, String, String);

pub(crate) fn index(objects: &[Value]) -> BTreeMap<Key, &Value> {
    let compared = objects.iter().filter(|object| is_compared(object));
    let keyed = compared.map(|object| {
        let metadata = &object["metadata"];
        let namespace = metadata["namespace"].as_str().unwrap_or_default().to_owned();
        (
            (text(&object["kind"]), namespace, text(&metadata["name"])),
            object,
        )
    });
    keyed.collect()
}

fn compare_pair(old: Option<&&Value>, new: Option<&&Value>, budget: &Budget) -> Result<Vec<Change>, String> {
    let Some(place) = old.or(new).map(|object| Place::of(object)) else {
        return Ok(Vec::new());
    };
    let compared = match place.kind.as_str() {
        crd::KIND => match (old, new) {
            (Some(old), Some(new)) => compare_definitions(old, new, &place, budget),
            (_, new) => Ok(vec![describe_presence(new.is_some(), &place)]),
        },
        "Role" | "ClusterRole" => Ok(compare_roles(old.copied(), new.copied(), &place)),
        _ => Ok(compare_webhooks(old.copied(), new.copied(), &place)),
    };
    compared.map_err(|reason| format!("{} {}: {reason}", place.kind, place.name))
}

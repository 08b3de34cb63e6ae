//! Handles lists merged by key.

use std::collections::BTreeSet;

use rbuilder_catalogue::write::{Node, Types};
use rbuilder_schema::ListType;

/// Removes the keys from lists in which items are allowed to omit a key. Kubernetes does this for
/// built-in types, but rejects it in CRDs.
pub(crate) fn relax_list_keys(types: &mut Types) -> Vec<String> {
    let mut loose: BTreeSet<(String, String)> = BTreeSet::new();
    for (path, node) in &*types {
        for (name, property) in &node.properties {
            if property.own.list_type == Some(ListType::Map) && !has_keys(types, property) {
                loose.insert((path.clone(), name.clone()));
            }
        }
    }
    let mut notes = Vec::new();
    for (path, name) in loose {
        if let Some(property) = types
            .get_mut(&path)
            .and_then(|node| node.properties.get_mut(&name))
        {
            property.own.list_type = None;
            property.own.list_map_keys.clear();
            notes.push(format!(
                "items of `{path}.{name}` can be without a key: the list is replaced as a whole"
            ));
        }
    }
    notes
}

/// Returns true if all keys are required in the items of a list, or have a default.
fn has_keys(types: &Types, list: &Node) -> bool {
    let items = list.items.as_deref();
    let referred = items.and_then(|items| types.get(items.reference.as_deref()?));
    let Some(item) = referred.or(items) else {
        return false;
    };
    list.own.list_map_keys.iter().all(|key| {
        let has_default = |property: &Node| property.own.default.is_some();
        item.required.contains(key) || item.properties.get(key).is_some_and(has_default)
    })
}

//! The old schema with a single one of the changes, which shows what this change breaks by itself.

use std::sync::Arc;

use rbuilder_schema::{Cel, Key, Schema, check_default};

use crate::path::Path;

/// A node of the old schema after a single change.
pub(crate) struct Alone {
    pub(crate) path: Path,
    pub(crate) node: Schema,
}

impl Alone {
    pub(super) fn at(path: &Path, node: Schema) -> Box<Alone> {
        Box::new(Alone {
            path: path.clone(),
            node,
        })
    }
}

/// Returns the old node with these keys of the new one.
pub(super) fn with_keys(old: &Schema, new: &Schema, keys: &[&str]) -> Schema {
    let mut node = old.clone();
    for key in keys.iter().filter_map(|name| Key::named(name)) {
        key.copy(new, &mut node);
    }
    node
}

/// Returns the old node with a rule of the new one, and with the new fields that it may mention.
pub(super) fn with_rule(old: &Schema, new: &Schema, rule: &Cel) -> Schema {
    let mut node = with_new_fields(old, new);
    node.validations.push(rule.clone());
    node
}

fn with_new_fields(old: &Schema, new: &Schema) -> Schema {
    let mut node = old.clone();
    for (name, field) in &new.properties {
        let known = node.properties.get(name).cloned();
        let field = match known {
            Some(known) if known == *field => continue,
            Some(known) => Arc::new(with_new_fields(&known, field)),
            None => Arc::clone(field),
        };
        node.properties.insert(Arc::clone(name), field);
    }
    let inner = |old: &Option<Arc<Schema>>, new: &Option<Arc<Schema>>| match (old, new) {
        (Some(old), Some(new)) => Some(Arc::new(with_new_fields(old, new))),
        (old, _) => old.clone(),
    };
    node.items = inner(&old.items, &new.items);
    node.additional_properties = inner(&old.additional_properties, &new.additional_properties);
    node
}

/// Returns true if the old schema lists its values, and all of them remain valid.
pub(super) fn keeps_all_values(old: &Schema, alone: &Schema) -> bool {
    let alone = Schema {
        default: None,
        ..alone.clone()
    };
    let is_valid = |value| check_default(value, &alone).is_ok();
    !old.enumeration.is_empty() && old.enumeration.iter().all(is_valid)
}

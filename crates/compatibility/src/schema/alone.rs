//! The old schema with a single one of the changes, which shows what this change breaks by itself.

use std::sync::Arc;

use rbuilder_re2::Pattern;
use rbuilder_schema::{Cel, Key, ListType, Schema, SchemaType, check_default};
use serde_json::Value;

use super::integers::Integers;
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

/// Limit for the values listed to decide whether they all remain valid.
const MOST_VALUES: i64 = 1_000;

/// The keys whose effect on integers is known without listing them.
const LIMITS: &[&str] = &[
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "format",
];

/// Returns true if the schemas show that all old values remain valid: the old one has few values, or
/// integers that the new limits don't exclude.
pub(super) fn keeps_all_values(old: &Schema, alone: &Schema) -> bool {
    if let Some(values) = all_values(old) {
        let mut values = values.iter().filter(|value| accepts(old, value));
        return values.all(|value| accepts(alone, value));
    }
    // A pattern such as `^[0-9]+-[0-9]+$` makes short texts invalid.
    if let Some(Ok(pattern)) = old.pattern.as_deref().map(Pattern::parse)
        && with_keys(alone, old, &["minLength"]) == *old
    {
        return alone
            .min_length
            .is_none_or(|least| least <= pattern.least_length());
    }
    // The items of a set differ.
    if let (Some(ListType::Set), Some(values)) = (old.list_type, old.items.as_deref().and_then(all_values))
        && with_keys(alone, old, &["maxItems"]) == *old
    {
        return alone.max_items.is_none_or(|most| values.len() as u64 <= most);
    }
    match (Integers::of(old), Integers::of(alone)) {
        (Some(before), Some(after)) => with_keys(alone, old, LIMITS) == *old && before.are_within(&after),
        _ => false,
    }
}

/// All values that a schema may accept, if they're few.
fn all_values(schema: &Schema) -> Option<Vec<Value>> {
    match schema.schema_type {
        _ if !schema.enumeration.is_empty() => Some(schema.enumeration.clone()),
        // Whether `null` remains valid is left to the search.
        _ if schema.nullable || schema.int_or_string => None,
        Some(SchemaType::Boolean) => Some(vec![true.into(), false.into()]),
        Some(SchemaType::Integer) => Integers::of(schema)?.list(MOST_VALUES),
        _ => None,
    }
}

/// Returns true unless a value violates the value validations of a schema. CEL rules aren't
/// evaluated.
pub(super) fn accepts(schema: &Schema, value: &Value) -> bool {
    let schema = Schema {
        default: None,
        ..schema.clone()
    };
    check_default(value, &schema).is_ok()
}

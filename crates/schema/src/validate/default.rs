//! Checks a default as the API server does, both in the CRD and later in the objects that receive
//! it.

use serde_json::{Map, Value};

use super::{Judge, find_repeated, fits, rule};
use crate::{ListType, Schema};

/// Checks a default against its schema as the API server does (including patterns and formats), and
/// against the rules added by markers.
///
/// In addition, no object may be rejected later because of the default. So the items of sets and of
/// lists of type `map` must be distinct even after the defaults of inner fields have been filled
/// in.
///
/// As in the API server, a `null` default of a nullable value is ignored.
///
/// # Errors
///
/// Returns a phrase with the path and the reason if the default is invalid.
pub fn check_default(default: &Value, schema: &Schema) -> Result<(), String> {
    if default.is_null() && schema.nullable {
        return Ok(());
    }
    check_whole(default, schema)?;
    let mut filled = default.clone();
    fill(&mut filled, schema);
    if filled != *default {
        check_whole(&filled, schema)
            .map_err(|reason| format!("with the defaults of its fields: {reason}"))?;
    }
    check_lists(&filled, schema)
}

/// Validates an object as the API server does on creation. First, every `null` is dropped unless
/// it's nullable or replaced by a default, then defaults are filled in. Unknown fields are
/// reported, as in `kubectl apply`. Among the CEL rules, only those added by markers are checked.
///
/// # Errors
///
/// Returns a phrase with the path and the reason if the object is invalid.
pub fn check_created(object: &Value, schema: &Schema) -> Result<(), String> {
    let mut filled = object.clone();
    drop_nulls(&mut filled, schema);
    fill(&mut filled, schema);
    check_whole(&filled, schema)?;
    check_lists(&filled, schema)
}

/// Drops the `null` fields that the API server drops before defaulting. `null` is kept in nullable
/// fields, where it satisfies `required`, and in lists.
fn drop_nulls(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, field| {
                !field.is_null()
                    || inner(schema, name).is_none_or(|inner| inner.nullable || has_default(inner))
            });
            for (name, field) in fields {
                if let Some(inner) = inner(schema, name) {
                    drop_nulls(field, inner);
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = &schema.items {
                items.iter_mut().for_each(|item| drop_nulls(item, inner));
            }
        }
        _ => {}
    }
}

fn has_default(schema: &Schema) -> bool {
    schema.default.as_ref().is_some_and(|default| !default.is_null())
}

fn check_whole(value: &Value, schema: &Schema) -> Result<(), String> {
    fits(value, schema, Judge::of_defaults())?;
    check_parts(value, schema)
}

fn fill(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => {
            for (name, property) in &schema.properties {
                if let Some(default) = property.default.as_ref().filter(|default| !default.is_null())
                    && !fields.contains_key(&**name)
                {
                    fields.insert(name.to_string(), default.clone());
                }
            }
            for (name, field) in fields {
                if let Some(inner) = inner(schema, name) {
                    fill_field(field, inner);
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = &schema.items {
                items.iter_mut().for_each(|item| fill_field(item, inner));
            }
        }
        _ => {}
    }
}

fn fill_field(value: &mut Value, schema: &Schema) {
    if let Some(default) = &schema.default
        && value.is_null()
        && !schema.nullable
    {
        value.clone_from(default);
    }
    fill(value, schema);
}

fn inner<'a>(schema: &'a Schema, name: &str) -> Option<&'a Schema> {
    let inner = schema.properties.get(name);
    inner.or(schema.additional_properties.as_ref()).map(AsRef::as_ref)
}

/// Calls `check` on a value and then on its nested values. The error includes the path of the
/// value.
fn visit(
    value: &Value,
    schema: &Schema,
    check: &dyn Fn(&Value, &Schema) -> Result<(), String>,
) -> Result<(), String> {
    check(value, schema)?;
    match value {
        Value::Object(fields) => fields.iter().try_for_each(|(name, field)| {
            let Some(inner) = inner(schema, name) else {
                return Ok(());
            };
            visit(field, inner, check).map_err(|reason| format!("at `{name}`: {reason}"))
        }),
        Value::Array(items) => match &schema.items {
            Some(inner) => items.iter().try_for_each(|item| visit(item, inner, check)),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Checks the rules of all parts, and that embedded objects have the mandatory fields.
fn check_parts(value: &Value, schema: &Schema) -> Result<(), String> {
    visit(value, schema, &|value, schema| {
        if let Value::Object(fields) = value
            && schema.embedded_resource
        {
            check_identity(fields)?;
        }
        schema
            .validations
            .iter()
            .try_for_each(|rule| rule::check_rule(rule, value))
    })
}

fn check_identity(fields: &Map<String, Value>) -> Result<(), String> {
    for name in ["apiVersion", "kind"] {
        match fields.get(name) {
            None => return Err(format!("an embedded object requires `{name}`")),
            Some(Value::String(text)) if text.is_empty() => {
                return Err(format!("`{name}` must not be empty"));
            }
            Some(Value::String(_)) => {}
            Some(other) => return Err(format!("expected a string for `{name}`, found {other}")),
        }
    }
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    if text("apiVersion").matches('/').count() > 1 {
        return Err(format!(
            "expected an `apiVersion` such as \"apps/v1\", found {:?}",
            text("apiVersion")
        ));
    }
    let kind = text("kind");
    let is_kind = kind.len() <= 63
        && kind.starts_with(|c: char| c.is_ascii_alphabetic())
        && !kind.ends_with('-')
        && kind.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-');
    if !is_kind {
        return Err(format!(
            "expected a `kind` such as \"Deployment\", found {kind:?}"
        ));
    }
    match fields.get("metadata") {
        Some(Value::Object(metadata)) => {
            check_metadata(metadata).map_err(|reason| format!("at `metadata`: {reason}"))
        }
        None | Some(Value::Null) => Ok(()),
        Some(other) => Err(format!("expected an object for `metadata`, found {other}")),
    }
}

const METADATA: &[&str] = &[
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Checks that these are fields of `ObjectMeta`, and the types of those set by users.
fn check_metadata(fields: &Map<String, Value>) -> Result<(), String> {
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        let checked =
            match name.as_str() {
                "name" | "generateName" | "namespace" => expect_string(value),
                "labels" | "annotations" => match value {
                    Value::Object(entries) => entries
                        .iter()
                        .filter(|(_, entry)| !entry.is_null())
                        .try_for_each(|(key, entry)| {
                            expect_string(entry).map_err(|reason| format!("at `{key}`: {reason}"))
                        }),
                    other => Err(format!("expected an object, found {other}")),
                },
                known if METADATA.contains(&known) => Ok(()),
                _ => return Err(format!("unknown field `{name}`")),
            };
        checked.map_err(|reason| format!("at `{name}`: {reason}"))?;
    }
    Ok(())
}

fn expect_string(value: &Value) -> Result<(), String> {
    match value {
        Value::String(_) => Ok(()),
        other => Err(format!("expected a string, found {other}")),
    }
}

/// Checks that the items of sets are unique, and that items of lists of type `map` have unique
/// keys.
fn check_lists(value: &Value, schema: &Schema) -> Result<(), String> {
    visit(value, schema, &|value, schema| {
        let Value::Array(items) = value else {
            return Ok(());
        };
        let duplicate = match schema.list_type {
            Some(ListType::Set) => find_repeated(items).map(|item| format!("duplicate item {item} in a set")),
            Some(ListType::Map) => {
                let keys: Vec<Value> = items
                    .iter()
                    .map(|item| keys_of(item, &schema.list_map_keys))
                    .collect();
                find_repeated(&keys)
                    .map(|keys| format!("duplicate item with the keys {keys} in a list of type `map`"))
            }
            Some(ListType::Atomic) | None => None,
        };
        duplicate.map_or(Ok(()), Err)
    })
}

fn keys_of(item: &Value, keys: &[String]) -> Value {
    let keys = keys
        .iter()
        .filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
    Value::Object(keys.collect())
}

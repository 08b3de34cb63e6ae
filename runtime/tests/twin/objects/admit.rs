//! What the API server does with an object before it keeps it: prune, drop nulls, fill in defaults, validate.
//!
//! CEL rules, patterns and formats are not judged here; the values that the tests make keep to the latter two.

use std::collections::BTreeSet;

use rbuilder_schema::{ListType, Schema, validate};
use serde_json::{Map, Value};

/// The object as it would be kept, or why it is refused.
pub fn admit(mut value: Value, schema: &Schema) -> Result<Value, String> {
    settle(&mut value, schema);
    validate(&value, schema)?;
    check(&value, schema)?;
    Ok(value)
}

/// Prunes what the schema does not name, drops nulls that it does not allow, fills in its defaults.
fn settle(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => settle_fields(fields, schema),
        Value::Array(items) => {
            if let Some(inner) = &schema.items {
                items.iter_mut().for_each(|item| settle(item, inner));
            }
        }
        _ => {}
    }
}

fn settle_fields(fields: &mut Map<String, Value>, schema: &Schema) {
    let keeps = |name: &str| {
        schema.preserve_unknown_fields
            || schema.embedded_resource && ["apiVersion", "kind", "metadata"].contains(&name)
    };
    fields.retain(|name, value| match inner(schema, name) {
        Some(inner) => !value.is_null() || inner.nullable,
        None => keeps(name),
    });
    for (name, property) in &schema.properties {
        if let Some(default) = &property.default
            && !fields.contains_key(&**name)
        {
            fields.insert(name.to_string(), default.clone());
        }
    }
    for (name, value) in fields.iter_mut() {
        if let Some(inner) = inner(schema, name) {
            settle(value, inner);
        }
    }
}

fn inner<'a>(schema: &'a Schema, name: &str) -> Option<&'a Schema> {
    schema
        .properties
        .get(name)
        .or(schema.additional_properties.as_ref())
        .map(|inner| &**inner)
}

/// What the schema language says beside JSON schema: no item twice, whole objects.
fn check(value: &Value, schema: &Schema) -> Result<(), String> {
    match value {
        Value::Object(fields) => {
            if schema.embedded_resource && !["apiVersion", "kind"].iter().all(|key| fields.contains_key(*key))
            {
                return Err("it is no whole object".into());
            }
            for (name, value) in fields {
                if let Some(inner) = inner(schema, name) {
                    check(value, inner)?;
                }
            }
        }
        Value::Array(items) => {
            let keys = items.iter().map(|item| match schema.list_type {
                Some(ListType::Set) => Some(item.to_string()),
                Some(ListType::Map) => Some(
                    schema
                        .list_map_keys
                        .iter()
                        .map(|key| item.get(key).map(Value::to_string).unwrap_or_default())
                        .collect::<Vec<_>>()
                        .join(","),
                ),
                _ => None,
            });
            let keys: Vec<String> = keys.flatten().collect();
            if keys.iter().collect::<BTreeSet<_>>().len() != keys.len() {
                return Err("an item is there twice".into());
            }
            if let Some(inner) = &schema.items {
                items.iter().try_for_each(|item| check(item, inner))?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// The schema without the constraints that markers put on values: what is left is the form of the Rust type.
/// `may_be_absent` says of a path that only a marker requires what is there.
pub fn form(schema: &Schema, path: &str, may_be_absent: &dyn Fn(&str) -> bool) -> Schema {
    let inner = |schema: &Schema, path: String| form(schema, &path, may_be_absent).into();
    let mut form = Schema {
        properties: schema
            .properties
            .iter()
            .map(|(name, property)| (name.clone(), inner(property, format!("{path}.{name}"))))
            .collect(),
        items: schema
            .items
            .as_deref()
            .map(|items| inner(items, format!("{path}[]"))),
        additional_properties: schema
            .additional_properties
            .as_deref()
            .map(|values| inner(values, format!("{path}{{}}"))),
        minimum: None,
        maximum: None,
        multiple_of: None,
        min_length: None,
        max_length: None,
        min_items: None,
        max_items: None,
        min_properties: None,
        max_properties: None,
        enumeration: Vec::new(),
        all_of: Vec::new(),
        list_type: None,
        list_map_keys: Vec::new(),
        ..schema.clone()
    };
    form.required
        .retain(|name| !may_be_absent(&format!("{path}.{name}")));
    form
}

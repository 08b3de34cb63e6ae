//! Scalars, and the keys allowed in any schema with a type.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::Refusal;
use crate::build::{any, int_or_string, of_type};
use crate::known;
use crate::{FORMATS, Key, Schema, SchemaType, Subject, compare_numbers};

pub(super) fn read_untyped(map: &Map<String, Value>) -> Result<Schema, Refusal> {
    match (map.get("enum"), map.get("const")) {
        (Some(Value::Array(allowed)), _) if allowed.iter().all(Value::is_string) => Ok(Schema {
            enumeration: allowed.clone(),
            ..of_type(SchemaType::String)
        }),
        (_, Some(only @ Value::String(_))) => Ok(Schema {
            enumeration: vec![only.clone()],
            ..of_type(SchemaType::String)
        }),
        (None, None) => Ok(any()),
        _ => Err("its type cannot be inferred from its values".into()),
    }
}

pub(super) fn read_several_types(schema_type: &Value) -> Result<Schema, Refusal> {
    let names: Vec<_> = schema_type
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    match names.as_slice() {
        ["integer", "string"] | ["string", "integer"] => Ok(int_or_string()),
        ["integer", "number"] | ["number", "integer"] => Ok(of_type(SchemaType::Number)),
        _ => Err(format!("it has several types: {}", names.join(", "))),
    }
}

pub(super) fn read_integer(map: &Map<String, Value>) -> Result<Schema, Refusal> {
    // `schemars` names the formats after Rust types.
    let rust = match map.get("format").and_then(Value::as_str) {
        Some("int8") => "i8",
        Some("int16") => "i16",
        Some("int32") => "i32",
        Some("int64" | "int") => "i64",
        Some("uint8") => "u8",
        Some("uint16") => "u16",
        Some("uint32") => "u32",
        Some("uint64" | "uint") => "u64",
        Some("int128" | "uint128") => {
            return Err("a CRD has no format for 128-bit integers; use a string".into());
        }
        _ => "",
    };
    let mut schema = known::integer_type(rust).unwrap_or_else(|| of_type(SchemaType::Integer));
    bound(map, &mut schema);
    Ok(schema)
}

pub(super) fn read_number(map: &Map<String, Value>) -> Schema {
    let mut schema = of_type(SchemaType::Number);
    schema.format = known_format(map);
    bound(map, &mut schema);
    schema
}

fn bound(map: &Map<String, Value>, schema: &mut Schema) {
    let number = |key: &str| map.get(key).and_then(Value::as_number).cloned();
    // In JSON Schema, `exclusiveMinimum` is a separate bound; in OpenAPI 3.0, it's a flag that
    // modifies `minimum`.
    let exclusive_minimum = number("exclusiveMinimum");
    let exclusive_maximum = number("exclusiveMaximum");
    if let Some(low) = exclusive_minimum.clone().or_else(|| number("minimum"))
        && schema
            .minimum
            .as_ref()
            .is_none_or(|old| compare_numbers(&low, old).is_gt())
    {
        schema.minimum = Some(low);
        schema.exclusive_minimum = exclusive_minimum.is_some();
    }
    if let Some(high) = exclusive_maximum.clone().or_else(|| number("maximum"))
        && schema
            .maximum
            .as_ref()
            .is_none_or(|old| compare_numbers(&high, old).is_lt())
    {
        schema.maximum = Some(high);
        schema.exclusive_maximum = exclusive_maximum.is_some();
    }
    schema.multiple_of = number("multipleOf");
    if let Some(Value::Object(not)) = map.get("not") {
        let refused = not.get("const").cloned().map(|only| vec![only]);
        let refused = refused.or_else(|| not.get("enum").and_then(Value::as_array).cloned());
        schema.not = refused.map(|enumeration| {
            Arc::new(Schema {
                enumeration,
                ..Schema::default()
            })
        });
    }
}

pub(super) fn read_string(map: &Map<String, Value>) -> Schema {
    let mut schema = Schema {
        format: known_format(map),
        pattern: map.get("pattern").and_then(Value::as_str).map(Arc::from),
        ..of_type(SchemaType::String)
    };
    read_sizes(map, Subject::Text, &mut schema);
    schema
}

pub(super) fn read_sizes(map: &Map<String, Value>, subject: Subject, schema: &mut Schema) {
    for (key, count, _) in Key::sizes().filter(|(key, ..)| key.subject == subject) {
        *count.get_mut(schema) = map.get(key.name).and_then(Value::as_u64);
    }
}

/// Drops formats that the API server doesn't know and would warn about on every `kubectl apply`.
/// `duration` is ISO 8601 in JSON Schema, but something else to the API server.
fn known_format(map: &Map<String, Value>) -> Option<Arc<str>> {
    let format = map.get("format").and_then(Value::as_str)?;
    (FORMATS.contains(&format) && format != "duration").then(|| format.into())
}

/// Keeps the `x-kubernetes-…` extensions of other people's `JsonSchema`, as kube's derives do.
pub(super) fn keep_extensions(map: &Map<String, Value>, schema: &mut Schema) {
    let extensions = map.iter().filter(|(key, _)| key.starts_with("x-kubernetes-"));
    for (key, value) in extensions {
        let alone = Map::from_iter([(key.clone(), value.clone())]);
        if let Ok(read) = serde_json::from_value::<Schema>(alone.into()) {
            schema.overlay(&read);
        }
    }
}

//! Pruning: removes fields that the schema doesn't define, and `null` where it's not allowed.

use rbuilder_schema::Schema;
use serde_json::Value;

use crate::error::FieldError;
use crate::go;
use crate::object_meta;
use crate::path::Path;

pub(crate) const STANZA: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Prunes unknown fields and returns their paths. Keeps `apiVersion`, `kind` and `metadata`.
pub(crate) fn prune(object: &mut Value, schema: &Schema) -> Vec<String> {
    let mut unknown = Vec::new();
    // Treated as an embedded object in order to keep `apiVersion`, `kind` and `metadata`.
    let whole = Schema {
        embedded_resource: true,
        ..schema.clone()
    };
    prune_at(object, Some(&whole), "", &mut unknown);
    unknown.sort_unstable();
    unknown
}

pub(crate) fn prune_default(default: &mut Value, schema: &Schema) {
    prune_at(default, Some(schema), "", &mut Vec::new());
}

fn prune_at(value: &mut Value, schema: Option<&Schema>, path: &str, unknown: &mut Vec<String>) {
    if let Some(schema) = schema.filter(|schema| schema.preserve_unknown_fields) {
        prune_known(value, schema, path, unknown);
        return;
    }
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let below = join(path, name);
            match schema.map(|schema| (schema, field_schema(schema, name))) {
                Some((schema, _)) if is_stanza(schema, name) => true,
                Some((_, Some(inner))) => {
                    prune_at(value, Some(inner), &below, unknown);
                    true
                }
                _ => {
                    unknown.push(below);
                    false
                }
            }
        }),
        Value::Array(items) => {
            let inner = schema.and_then(|schema| schema.items.as_deref());
            for (index, item) in items.iter_mut().enumerate() {
                prune_at(item, inner, &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}

/// Keeps unknown fields, but prunes inside known ones.
fn prune_known(value: &mut Value, schema: &Schema, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut().filter(|(name, _)| !is_stanza(schema, name)) {
                if let Some(inner) = field_schema(schema, name) {
                    prune_at(value, Some(inner), &join(path, name), unknown);
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = &schema.items {
                for (index, item) in items.iter_mut().enumerate() {
                    prune_known(item, inner, &format!("{path}[{index}]"), unknown);
                }
            }
        }
        _ => {}
    }
}

fn is_stanza(schema: &Schema, name: &str) -> bool {
    schema.embedded_resource && STANZA.contains(&name)
}

fn join(path: &str, name: &str) -> String {
    match path.is_empty() {
        true => name.to_owned(),
        false => format!("{path}.{name}"),
    }
}

pub(crate) fn field_schema<'a>(schema: &'a Schema, name: &str) -> Option<&'a Schema> {
    let inner = schema.properties.get(name);
    inner.or(schema.additional_properties.as_ref()).map(AsRef::as_ref)
}

/// Drops `null`, except in nullable fields or where a default replaces it.
pub(crate) fn drop_nulls(value: &mut Value, schema: Option<&Schema>) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let inner = schema.and_then(|schema| field_schema(schema, name));
            if value.is_null() {
                return inner.is_none_or(|inner| inner.nullable || has_default(inner));
            }
            drop_nulls(value, inner);
            true
        }),
        Value::Array(items) => {
            let inner = schema.and_then(|schema| schema.items.as_deref());
            items.iter_mut().for_each(|item| drop_nulls(item, inner));
        }
        _ => {}
    }
}

/// Like the server, treats a `null` default as no default.
pub(crate) fn has_default(schema: &Schema) -> bool {
    schema.default.as_ref().is_some_and(|default| !default.is_null())
}

/// Decodes the metadata of embedded objects and returns the paths of unknown fields. The error is
/// the server's message about the first value of the wrong type.
pub(crate) fn coerce_embedded(value: &mut Value, schema: &Schema) -> Result<Vec<String>, String> {
    let mut unknown = Vec::new();
    coerce_at(value, schema, "", &mut unknown)?;
    unknown.sort_unstable();
    Ok(unknown)
}

fn coerce_at(
    value: &mut Value,
    schema: &Schema,
    path: &str,
    unknown: &mut Vec<String>,
) -> Result<(), String> {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if schema.embedded_resource {
                    coerce_stanza(name, value, path, unknown)?;
                }
                if let Some(inner) = schema.properties.get(name.as_str()) {
                    coerce_at(value, inner, &join(path, name), unknown)?;
                } else if let Some(inner) = &schema.additional_properties {
                    coerce_at(value, inner, &format!("{path}[{name}]"), unknown)?;
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = &schema.items {
                for (index, item) in items.iter_mut().enumerate() {
                    coerce_at(item, inner, &format!("{path}[{index}]"), unknown)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn coerce_stanza(name: &str, value: &mut Value, path: &str, unknown: &mut Vec<String>) -> Result<(), String> {
    let refuse = |value: &Value, reason: &str| {
        let field = Path::root().child(&join(path, name));
        FieldError::invalid(&field, value, reason).to_string()
    };
    match name {
        "apiVersion" | "kind" if !value.is_string() => Err(refuse(value, "must be a string")),
        "metadata" => {
            let decoded = object_meta::decode(value).map_err(|reason| refuse(value, &reason))?;
            let prefix = join(path, name);
            unknown.extend(decoded.unknown.iter().map(|field| format!("{prefix}.{field}")));
            *value = decoded.value;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Encodes a value like the server, which writes `1.0` as `1`.
pub(crate) fn encode(value: &Value) -> Value {
    match value {
        Value::Number(number) if go::integer(number).is_none() => {
            serde_json::from_str(&go::json_float(go::as_float(number))).unwrap_or_else(|_| value.clone())
        }
        Value::Array(items) => items.iter().map(encode).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), encode(value)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

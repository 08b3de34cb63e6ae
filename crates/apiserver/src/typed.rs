//! Checks the types of an applied configuration against its schema, as structured-merge-diff does
//! before merging. Bounds and rules are checked later, on the merged object.

use rbuilder_judge::go;
use rbuilder_schema::{ListType, Schema, SchemaType};
use serde_json::Value;

use super::fields::{field_schema, item_schema, item_step, step_path};

/// Returns type mismatches with their paths, e.g. `.spec.sise: field not declared in schema`.
pub(super) fn find_mismatches(value: &Value, schema: &Schema) -> Vec<String> {
    let mut found = Vec::new();
    visit(value, Some(schema), "", &mut found);
    found
}

fn visit(value: &Value, schema: Option<&Schema>, path: &str, found: &mut Vec<String>) {
    let Some(schema) = schema.filter(|_| !value.is_null()) else {
        return;
    };
    let mut refuse = |why: String| found.push(format!("{path}: {why}"));
    let shown = || go::plain(value);
    // structured-merge-diff accepts any scalar for a string with a format, except `byte`.
    let has_format = schema.format.as_deref().is_some_and(|format| format != "byte");
    let is_no_scalar = has_format && (value.is_object() || value.is_array());
    match schema.schema_type {
        Some(SchemaType::Object) => match value {
            Value::Object(_) => visit_fields(value, schema, path, found),
            _ => refuse(format!("expected map, got &{{{}}}", shown())),
        },
        Some(SchemaType::Array) => match value {
            Value::Array(items) => visit_items(items, schema, path, found),
            _ => refuse(format!("expected list, got &{{{}}}", shown())),
        },
        Some(SchemaType::String) if is_no_scalar => {
            refuse(format!("expected any scalar, got &{{{}}}", shown()));
        }
        Some(SchemaType::String) if !value.is_string() && !has_format => {
            let shown = match value {
                Value::String(text) => go::quote(text),
                Value::Object(_) | Value::Array(_) => go_syntax(value),
                _ => shown(),
            };
            refuse(format!(
                "expected string, got &value.valueUnstructured{{Value:{shown}}}"
            ));
        }
        Some(SchemaType::Integer | SchemaType::Number) if !value.is_number() => {
            refuse(format!(
                "expected numeric (int or float), got {}",
                go::type_name(value)
            ));
        }
        Some(SchemaType::Boolean) if !value.is_boolean() => {
            refuse(format!("expected boolean, got &{{{}}}", shown()));
        }
        None if schema.int_or_string && (value.is_object() || value.is_array()) => {
            refuse(format!("expected any scalar, got &{{{}}}", shown()));
        }
        _ => {}
    }
}

fn visit_fields(value: &Value, schema: &Schema, path: &str, found: &mut Vec<String>) {
    let is_stanza =
        |name: &str| schema.embedded_resource && matches!(name, "apiVersion" | "kind" | "metadata");
    let is_open = schema.preserve_unknown_fields
        // Objects without any properties are free-form.
        || schema.properties.is_empty() && schema.additional_properties.is_none();
    for (name, value) in value.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        match field_schema(Some(schema), name).0 {
            Some(inner) => visit(value, Some(inner), &path, found),
            None if is_open || is_stanza(name) => {}
            None => {
                found.push(format!("{path}: field not declared in schema"));
                // The server also stops at the first undeclared field, but in random order. Pick
                // the alphabetically first one.
                return;
            }
        }
    }
}

fn visit_items(items: &[Value], schema: &Schema, path: &str, found: &mut Vec<String>) {
    let inner = item_schema(Some(schema));
    let keys = match schema.list_type {
        Some(ListType::Map) => Some(schema.list_map_keys.as_slice()),
        Some(ListType::Set) => None,
        _ => {
            for (index, item) in items.iter().enumerate() {
                visit(item, inner, &format!("{path}[{index}]"), found);
            }
            return;
        }
    };
    let mut seen = Vec::new();
    for (index, item) in items.iter().enumerate() {
        if let Some(why) = check_item(item, keys, inner) {
            found.push(format!("{path}: element {index}: {why}"));
            return;
        }
        let step = item_step(item, keys, inner);
        let name = step_path(&step);
        if seen.contains(&step) {
            found.push(format!("{path}: duplicate entries for key {name}"));
        }
        seen.push(step);
        visit(item, inner, &format!("{path}{name}"), found);
    }
}

fn check_item(item: &Value, keys: Option<&[String]>, inner: Option<&Schema>) -> Option<String> {
    let why = match (keys, item) {
        (None, Value::Null) => "associative list without keys has an element that's an explicit null",
        (None, Value::Object(_)) => "associative list without keys has an element that's a map type",
        (None, Value::Array(_)) => "not supported: associative list with lists as elements",
        (Some(_), Value::Null) => "associative list with keys may not have a null element",
        (Some(keys), Value::Object(fields)) => {
            let has_default = |key: &str| {
                field_schema(inner, key)
                    .0
                    .is_some_and(|key| key.default.is_some())
            };
            if keys
                .iter()
                .any(|key| fields.contains_key(key) || has_default(key))
            {
                return None;
            }
            let keys: Vec<String> = keys.iter().map(|key| go::quote(key)).collect();
            return Some(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default \
                 values for any key fields)",
                keys.join(" ")
            ));
        }
        (Some(_), _) => "associative list with keys may not have non-map elements",
        (None, _) => return None,
    };
    Some(why.to_owned())
}

/// Formats a value like Go's `%#v`.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::String(text) => go::quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| format!("{}:{}", go::quote(name), go_syntax(value)));
            let fields: Vec<String> = fields.collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        Value::Null => "interface {}(nil)".to_owned(),
        other => go::plain(other),
    }
}

//! Reduces a published schema to an equivalent one with as few keys as possible.

use rbuilder_schema::{Key, compare_numbers};
use serde_json::{Map, Value, json};

/// Maximum nesting of schemas. The deepest published one has 38 levels, and the generator's limit
/// is 64.
const MAX_DEPTH: usize = 60;

pub(crate) type Lost = Vec<(String, String)>;

/// Removes keys without effect, so that equivalent schemas become equal, and keys that the API
/// server no longer accepts. Returns a message for each of the latter.
pub(crate) fn clean(schema: &mut Value) -> Lost {
    let mut lost = Vec::new();
    clean_at(schema, &mut String::new(), 0, &mut lost);
    lost
}

fn clean_at(schema: &mut Value, path: &mut String, depth: usize, lost: &mut Lost) {
    let Value::Object(keys) = schema else { return };
    if depth > MAX_DEPTH {
        let message = format!("nested more than {MAX_DEPTH} deep: content below is kept without validation");
        lost.push((path.clone(), message));
        *schema = json!({ KEEPS_UNKNOWN: true });
        return;
    }
    clean_keys(keys, path, lost);
    // The root can only be an object.
    if depth == 0 && !keys.contains_key("type") {
        keys.insert("type".into(), "object".into());
    }
    mark_integer_or_string(keys);
    let has_type = ["type", INT_OR_STRING, KEEPS_UNKNOWN]
        .iter()
        .any(|key| keys.contains_key(*key));
    if !has_type {
        lost.push((
            path.clone(),
            "the schema has no type, so any content is kept".into(),
        ));
        keys.insert(KEEPS_UNKNOWN.into(), Value::Bool(true));
    }
    each_part(
        keys,
        path,
        &mut |part, path, is_alternative| match is_alternative {
            true => clean_alternative(part, path, depth + 1, lost),
            false => clean_at(part, path, depth + 1, lost),
        },
    );
}

/// Marks an `IntOrString` that controller-gen described with alternatives before
/// `x-kubernetes-int-or-string` existed.
fn mark_integer_or_string(keys: &mut Map<String, Value>) {
    let is_either = |alternatives: &Value| {
        let mut types: Vec<&Value> = alternatives.as_array().into_iter().flatten().collect();
        types.sort_by_key(|alternative| alternative.to_string());
        types == [&json!({ "type": "integer" }), &json!({ "type": "string" })]
    };
    if keys.contains_key("type") || keys.contains_key(INT_OR_STRING) {
        return;
    }
    for key in ["anyOf", "oneOf"] {
        if keys.get(key).is_some_and(is_either) {
            keys.remove(key);
            let alternatives = json!([{ "type": "integer" }, { "type": "string" }]);
            keys.insert("anyOf".into(), alternatives);
            keys.insert(INT_OR_STRING.into(), Value::Bool(true));
            return;
        }
    }
}

const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
const KEEPS_UNKNOWN: &str = "x-kubernetes-preserve-unknown-fields";

/// Cleans a schema in `allOf` or the like, where only constraints are allowed.
fn clean_alternative(schema: &mut Value, path: &mut String, depth: usize, lost: &mut Lost) {
    const REFUSED: &[&str] = &[
        "additionalProperties",
        "default",
        "description",
        "nullable",
        "title",
        "type",
    ];
    let Value::Object(keys) = schema else { return };
    clean_keys(keys, path, lost);
    keys.retain(|key, _| {
        let is_refused = REFUSED.contains(&key.as_str()) || key.starts_with("x-kubernetes-");
        if is_refused {
            lost.push((
                path.clone(),
                format!("`{key}` is left out: the API server rejects it here"),
            ));
        }
        !is_refused
    });
    if depth <= MAX_DEPTH {
        each_part(keys, path, &mut |part, path, _| {
            clean_alternative(part, path, depth + 1, lost)
        });
    }
}

/// JSON Schema keys that the API server rejects. Other unknown keys are silently dropped.
const REJECTED: &[&str] = &[
    "$ref",
    "$schema",
    "additionalItems",
    "definitions",
    "dependencies",
    "id",
    "patternProperties",
    "uniqueItems",
];

fn clean_keys(keys: &mut Map<String, Value>, path: &str, lost: &mut Lost) {
    keys.retain(|key, value| !has_no_effect(key, value));
    match keys.get("additionalProperties") {
        Some(Value::Bool(true)) => {
            keys.remove("additionalProperties");
            keys.insert(KEEPS_UNKNOWN.into(), Value::Bool(true));
            lost.push((
                path.to_owned(),
                format!("`additionalProperties: true` becomes `{KEEPS_UNKNOWN}`"),
            ));
        }
        Some(Value::Bool(false)) => drop(keys.remove("additionalProperties")),
        _ => {}
    }
    keys.retain(|key, _| {
        let is_known = Key::named(key).is_some();
        if !is_known {
            let does = if REJECTED.contains(&key.as_str()) {
                "rejects"
            } else {
                "drops"
            };
            lost.push((
                path.to_owned(),
                format!("`{key}` is left out: the API server {does} it"),
            ));
        }
        is_known
    });
    whole_numbers(keys);
}

/// Calls `look` for each nested schema, with its path and whether it is an alternative.
fn each_part(
    keys: &mut Map<String, Value>,
    path: &mut String,
    look: &mut dyn FnMut(&mut Value, &mut String, bool),
) {
    let length = path.len();
    let mut inner = |step: &str, schema: &mut Value, is_alternative: bool| {
        path.push_str(step);
        look(schema, path, is_alternative);
        path.truncate(length);
    };
    for (key, step, is_alternative) in [
        ("items", "[]", false),
        ("additionalProperties", ".*", false),
        ("not", ".not", true),
    ] {
        if let Some(part) = keys.get_mut(key) {
            inner(step, part, is_alternative);
        }
    }
    let either = serde_json::json!([{ "type": "integer" }, { "type": "string" }]);
    for key in ["allOf", "anyOf", "oneOf"] {
        let parts = keys
            .get_mut(key)
            // For an integer-or-string, this `anyOf` is part of the type.
            .filter(|parts| key != "anyOf" || **parts != either);
        for part in parts.and_then(Value::as_array_mut).into_iter().flatten() {
            inner(&format!(".{key}"), part, true);
        }
    }
    if let Some(properties) = keys.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, property) in properties {
            inner(&format!(".{name}"), property, false);
        }
    }
}

fn has_no_effect(key: &str, value: &Value) -> bool {
    match value {
        Value::Null => key != "default" && key != "example",
        Value::Bool(false) => !matches!(key, "default" | "example" | "additionalProperties"),
        Value::Array(items) => items.is_empty() && !matches!(key, "default" | "example"),
        Value::Object(keys) => keys.is_empty() && key == "properties",
        Value::String(text) => {
            text.is_empty() && matches!(key, "description" | "title" | "format" | "pattern")
        }
        Value::Bool(true) | Value::Number(_) => false,
    }
}

/// Normalizes e.g. `1.0` to `1`, so that equal bounds are equal JSON.
fn whole_numbers(keys: &mut Map<String, Value>) {
    for key in ["minimum", "maximum", "multipleOf"] {
        if let Some(Value::Number(number)) = keys.get_mut(key)
            && let Some(float) = number.as_f64()
            && float.fract() == 0.0
            && float.abs() < 9e15
        {
            let whole = serde_json::Number::from(float as i64);
            if compare_numbers(&whole, number).is_eq() {
                *number = whole;
            }
        }
    }
}

//! Removes no-op keys from a schema before it's published.

use std::sync::Arc;

use serde_json::Number;

use crate::Schema;
use crate::apply::drop_implied_bounds;
use crate::literal::misplaced_keys;
use crate::number::as_float;

/// A key removed by [`remove_idle_keys`].
#[derive(Clone, Debug, PartialEq)]
pub struct IdleKey {
    /// The path of the schema with the key, e.g. `.spec.ports[].name`. Empty for the root.
    pub path: String,
    /// The reason for the removal, as a sentence that includes the key.
    pub message: String,
}

/// Removes no-op keys from a schema and its nested schemas: keys that apply to values of another
/// type, and bounds outside of the range of a number format, which would make the API server reject
/// every value.
///
/// Returns the removed keys, except for bounds that merely repeat the limits of the format.
pub fn remove_idle_keys(schema: &mut Schema) -> Vec<IdleKey> {
    let mut removed = Vec::new();
    remove_at(schema, &mut String::new(), &mut removed);
    removed
}

fn remove_at(schema: &mut Schema, path: &mut String, removed: &mut Vec<IdleKey>) {
    let mut note = |message: String| {
        removed.push(IdleKey {
            path: path.clone(),
            message,
        });
    };
    let this = schema.noun();
    for (key, noun) in misplaced_keys(schema) {
        key.clear(schema);
        let key = key.name;
        note(format!(
            "`{key}` is left out: it applies to {noun}, and this value is {this}"
        ));
    }
    for (key, bound) in take_bounds(schema) {
        if !is_end_of_i64(&bound) {
            let format = schema.format.as_deref().unwrap_or("int64");
            note(format!(
                "`{key}` {bound} is left out: it is outside of the range of the format `{format}`, and with it the API \
                 server rejects every value"
            ));
        }
    }
    let length = path.len();
    let mut inner = |step: &str, schema: &mut Arc<Schema>| {
        *path += step;
        remove_at(Arc::make_mut(schema), path, removed);
        path.truncate(length);
    };
    for (name, property) in &mut schema.properties {
        inner(&format!(".{name}"), property);
    }
    if let Some(items) = &mut schema.items {
        inner("[]", items);
    }
    if let Some(values) = &mut schema.additional_properties {
        inner(".*", values);
    }
}

fn take_bounds(schema: &mut Schema) -> Vec<(&'static str, Number)> {
    let before = [
        ("minimum", schema.minimum.clone()),
        ("maximum", schema.maximum.clone()),
    ];
    drop_implied_bounds(schema);
    let after = [&schema.minimum, &schema.maximum];
    let taken = before.into_iter().zip(after).filter(|(_, after)| after.is_none());
    taken
        .filter_map(|((key, bound), _)| Some((key, bound?)))
        .collect()
}

fn is_end_of_i64(bound: &Number) -> bool {
    as_float(bound).abs() == i64::MIN.unsigned_abs() as f64
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(schema: Value, expected: Value, messages: &[(&str, &str)]) {
        let mut schema: Schema = serde_json::from_value(schema).expect("a schema");
        let removed = remove_idle_keys(&mut schema);
        let found: Vec<(&str, &str)> = removed
            .iter()
            .map(|removed| (removed.path.as_str(), removed.message.as_str()))
            .collect();
        assert_eq!(found, messages);
        assert_eq!(serde_json::to_value(schema).expect("JSON"), expected);
    }

    #[test]
    fn removes_keys_of_other_types() {
        let every = json!({
            "minimum": 1, "maximum": 2, "multipleOf": 1, "exclusiveMinimum": true, "exclusiveMaximum": true, "minLength": 1,
            "maxLength": 2, "pattern": "a", "format": "uri", "minItems": 1, "maxItems": 2, "items": {"type": "string"},
            "minProperties": 1, "maxProperties": 2, "properties": {"a": {"type": "string"}}, "required": ["a"],
            "additionalProperties": {"type": "string"}, "x-kubernetes-list-type": "set", "x-kubernetes-map-type": "atomic",
            "x-kubernetes-preserve-unknown-fields": true,
        });
        for name in ["boolean", "string", "integer", "number", "array", "object"] {
            let mut keys = every.clone();
            keys["type"] = name.into();
            let mut schema: Schema = serde_json::from_value(keys).expect("a schema");
            let count = misplaced_keys(&schema).len();
            assert!(count > 10, "{name}: {count}");
            assert_eq!(remove_idle_keys(&mut schema).len(), count, "{name}");
            assert!(misplaced_keys(&schema).is_empty());
        }
        check(
            json!({"type": "object", "properties": {"a": {"type": "array", "minLength": 1, "items": {
                "type": "boolean", "x-kubernetes-preserve-unknown-fields": true}}}}),
            json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "boolean"}}}}),
            &[
                (
                    ".a",
                    "`minLength` is left out: it applies to strings, and this value is a list",
                ),
                (
                    ".a[]",
                    "`x-kubernetes-preserve-unknown-fields` is left out: it applies to objects and lists of them, and this \
                     value is a boolean",
                ),
            ],
        );
    }

    #[test]
    fn removes_bounds_outside_of_format() {
        let long = |bounds: Value| {
            let mut schema = json!({"type": "integer", "format": "int64"});
            for (key, bound) in bounds.as_object().into_iter().flatten() {
                schema[key] = bound.clone();
            }
            schema
        };
        check(
            long(json!({"minimum": i64::MIN, "maximum": i64::MAX})),
            long(json!({})),
            &[],
        );
        let unbounded = json!({"type": "integer", "maximum": i64::MAX});
        check(unbounded, json!({"type": "integer"}), &[]);
        for schema in [
            long(json!({"minimum": 0, "maximum": 4_294_967_295_u32})),
            json!({"type": "integer", "format": "int32", "minimum": i32::MIN, "maximum": i32::MAX}),
            // No value is valid here, but keep the bound: only the author knows what was meant.
            long(json!({"minimum": u64::MAX})),
        ] {
            check(schema.clone(), schema, &[]);
        }
        check(
            json!({"type": "number", "format": "float", "minimum": -1, "maximum": 1e300}),
            json!({"type": "number", "format": "float", "minimum": -1}),
            &[(
                "",
                "`maximum` 1e+300 is left out: it is outside of the range of the format `float`, and with it the API server \
                 rejects every value",
            )],
        );
        check(
            json!({"type": "array", "items": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 4_294_967_295_u32}}),
            json!({"type": "array", "items": {"type": "integer", "format": "int32", "minimum": 0}}),
            &[(
                "[]",
                "`maximum` 4294967295 is left out: it is outside of the range of the format `int32`, and with it the API \
                 server rejects every value",
            )],
        );
    }
}

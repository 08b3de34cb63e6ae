//! Prunes objects by their schema.

use rbuilder_schema::{Schema, SchemaType, items_of};
use serde_json::Value;

/// Removes unknown fields and disallowed nulls. Returns the paths of the unknown fields.
pub(super) fn prune_unknown_fields(value: &mut Value, schema: &Schema) -> Vec<String> {
    let mut unknown = Vec::new();
    prune_at(value, schema, "", &mut unknown);
    unknown
}

fn prune_at(value: &mut Value, schema: &Schema, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let keeps = schema.preserve_unknown_fields || schema.schema_type != Some(SchemaType::Object);
            fields.retain(|name, value| {
                let inner = schema
                    .properties
                    .get(name.as_str())
                    .or(schema.additional_properties.as_ref());
                let own =
                    schema.embedded_resource && matches!(name.as_str(), "apiVersion" | "kind" | "metadata");
                let path = join(path, name);
                match inner {
                    Some(inner) if value.is_null() => inner.nullable,
                    Some(inner) => {
                        prune_at(value, inner, &path, unknown);
                        true
                    }
                    None if keeps || own => true,
                    None => {
                        unknown.push(path);
                        false
                    }
                }
            });
        }
        Value::Array(items) => {
            let Some(inner) = items_of(schema) else { return };
            for (position, item) in items.iter_mut().enumerate() {
                prune_at(item, &inner, &format!("{path}[{position}]"), unknown);
            }
        }
        _ => {}
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn removes_unknown_fields_and_nulls() {
        let schema: Schema = serde_json::from_value(json!({ "type": "object", "properties": {
            "size": { "type": "integer" },
            "maybe": { "type": "string", "nullable": true },
            "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
            "list": { "type": "array", "x-kubernetes-preserve-unknown-fields": true, "items": { "type": "array", "items": {
                "type": "object", "properties": { "a": { "type": "object" } } } } },
            "map": { "type": "object", "additionalProperties": { "type": "object", "properties": {
                "a": { "type": "string" } } } },
        } }))
        .unwrap();
        let mut value = json!({
            "size": null, "maybe": null, "free": { "q": null }, "map": { "k": { "z": 1 } }, "typo": { "t": 1 },
            "list": [[{ "a": { "x": 1 }, "y": 2 }]],
        });
        assert_eq!(
            prune_unknown_fields(&mut value, &schema),
            ["list[0][0].a.x", "map.k.z", "typo"]
        );
        let expected = json!({ "maybe": null, "free": { "q": null }, "map": { "k": {} }, "list": [[{ "a": {}, "y": 2 }]] });
        assert_eq!(value, expected);
    }
}

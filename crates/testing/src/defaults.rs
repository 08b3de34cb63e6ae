//! Applies schema defaults to objects.

use rbuilder_schema::Schema;
use serde_json::Value;

/// Sets defaults for absent fields and for nulls that the schema does not allow, like the API
/// server before it stores an object. The fields of an absent object do not get defaults.
pub(crate) fn fill_defaults(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in &schema.properties {
                let absent = fields
                    .get(&**name)
                    .is_none_or(|value| value.is_null() && !inner.nullable);
                if let Some(default) = inner.default.as_ref().filter(|_| absent) {
                    fields.insert(name.to_string(), default.clone());
                }
            }
            for (name, value) in fields {
                let inner = schema
                    .properties
                    .get(name.as_str())
                    .or(schema.additional_properties.as_ref());
                if let Some(inner) = inner {
                    fill_defaults(value, inner);
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = &schema.items {
                items.iter_mut().for_each(|item| fill_defaults(item, inner));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn replaces_absent_fields_and_nulls_with_defaults() {
        let schema: Schema = serde_json::from_value(json!({ "type": "object", "properties": {
            "size": { "type": "integer", "default": 1 },
            "set": { "type": "integer", "default": 1 },
            "maybe": { "type": "string", "nullable": true, "default": "x" },
            "absent": { "type": "object", "properties": { "a": { "type": "string", "default": "x" } } },
            "list": { "type": "array", "items": { "type": "object", "properties": {
                "a": { "type": "string", "default": "x" } } } },
            "map": { "type": "object", "additionalProperties": { "type": "object", "properties": {
                "a": { "type": "string", "default": "x" } } } },
        } }))
        .unwrap();
        let mut value = json!({
            "size": null, "set": 2, "maybe": null, "list": [{}], "map": { "k": { "z": 1 } }, "other": {},
        });
        fill_defaults(&mut value, &schema);
        let expected = json!({
            "size": 1, "set": 2, "maybe": null, "list": [{ "a": "x" }], "map": { "k": { "a": "x", "z": 1 } }, "other": {},
        });
        assert_eq!(value, expected);
    }
}

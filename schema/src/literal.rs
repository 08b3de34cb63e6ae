//! A schema written out in source, as JSON: the way out where nothing else can say what is on the wire.

use serde_json::{Map, Value};

use crate::Schema;

/// The keys a schema may have, by their names in a manifest.
pub const SCHEMA_KEYS: &[&str] = &[
    "additionalProperties",
    "allOf",
    "anyOf",
    "default",
    "description",
    "enum",
    "example",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
];

/// Why a JSON value is no schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaError {
    /// A key that no schema has, and the path of the schema it is in.
    UnknownKey(String, String),
    /// What is wrong, and the path of the schema it is in.
    Malformed(String, String),
}

impl Schema {
    /// Reads a schema from JSON, as it stands in a manifest.
    ///
    /// # Errors
    /// When a key is unknown or its value of the wrong type. Whether the schema is structural is for
    /// [`check_structural`](crate::check_structural) to say.
    pub fn from_literal(value: &Value) -> Result<Schema, SchemaError> {
        check_keys(value, String::new())?;
        serde_json::from_value(value.clone())
            .map_err(|error| SchemaError::Malformed(error.to_string(), String::new()))
    }
}

fn check_keys(value: &Value, path: String) -> Result<(), SchemaError> {
    let Value::Object(keys) = value else {
        return Err(SchemaError::Malformed("a schema is a map".into(), path));
    };
    if let Some(key) = keys.keys().find(|key| !SCHEMA_KEYS.contains(&key.as_str())) {
        return Err(SchemaError::UnknownKey(key.clone(), path));
    }
    for key in ["additionalProperties", "items", "not"] {
        if let Some(inner) = keys.get(key) {
            check_keys(inner, format!("{path}.{key}"))?;
        }
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for (position, inner) in list(keys, key).iter().enumerate() {
            check_keys(inner, format!("{path}.{key}[{position}]"))?;
        }
    }
    if let Some(Value::Object(properties)) = keys.get("properties") {
        for (name, inner) in properties {
            check_keys(inner, format!("{path}.properties.{name}"))?;
        }
    }
    Ok(())
}

fn list<'a>(keys: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    keys.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(value: Value, expected: Result<(), (&str, &str)>) {
        let found = match Schema::from_literal(&value) {
            Ok(schema) => {
                assert_eq!(
                    serde_json::to_value(schema).expect("JSON"),
                    value,
                    "something is lost"
                );
                Ok(())
            }
            Err(SchemaError::UnknownKey(key, path) | SchemaError::Malformed(key, path)) => Err((key, path)),
        };
        let expected = expected.map_err(|(key, path)| (key.to_owned(), path.to_owned()));
        assert_eq!(found, expected, "{value}");
    }

    #[test]
    fn schemas_are_read_as_written() {
        let every = json!({
            "type": "object", "description": "d", "properties": {"a": {"type": "string", "maxLength": 3}},
            "required": ["a"], "additionalProperties": {"type": "array", "items": {"type": "integer"}},
            "oneOf": [{"required": ["a"]}], "x-kubernetes-validations": [{"rule": "self.a != ''"}],
        });
        check(every, Ok(()));
        check(json!({"typ": "object"}), Err(("typ", "")));
        check(
            json!({"type": "object", "properties": {"a": {"anyOf": [{"minimun": 1}]}}}),
            Err(("minimun", ".properties.a.anyOf[0]")),
        );
        check(json!({"items": true}), Err(("a schema is a map", ".items")));
        let schema = serde_json::to_value(Schema::default()).expect("JSON");
        assert_eq!(schema, json!({}));
    }

    #[test]
    fn every_key_is_known() {
        for key in SCHEMA_KEYS {
            let value = match *key {
                "type" => json!("object"),
                "items" | "not" | "additionalProperties" => json!({"type": "string"}),
                "properties" => json!({"a": {"type": "string"}}),
                "allOf" | "anyOf" | "oneOf" => json!([{"required": ["a"]}]),
                "enum" | "required" | "x-kubernetes-list-map-keys" => json!(["a"]),
                "x-kubernetes-list-type" | "x-kubernetes-map-type" => json!("atomic"),
                "x-kubernetes-validations" => json!([{"rule": "true"}]),
                "externalDocs" => json!({"url": "https://example.com"}),
                "pattern" | "format" | "title" | "description" | "default" | "example" => json!("x"),
                "nullable" | "exclusiveMinimum" | "exclusiveMaximum" => json!(true),
                flag if flag.starts_with("x-") => json!(true),
                _ => json!(1),
            };
            check(json!({ *key: value }), Ok(()));
        }
    }
}

//! The types of schemars 0.8, whose fields are keys of JSON Schema.

use serde_json::Value;

/// The structs of `schemars::schema` that hold keys.
const STRUCTS: &[&str] = &[
    "SchemaObject",
    "RootSchema",
    "Metadata",
    "SubschemaValidation",
    "NumberValidation",
    "StringValidation",
    "ArrayValidation",
    "ObjectValidation",
];

/// Returns whether a struct of this name holds keys of a schema.
pub(super) fn is_schema_struct(name: &str) -> bool {
    STRUCTS.contains(&name)
}

/// Fields of a schema whose own fields are keys of the schema.
const FLATTENED: &[&str] = &[
    "metadata",
    "subschemas",
    "number",
    "string",
    "array",
    "object",
    "extensions",
    "schema",
];

/// Returns whether the fields of a field are keys of the schema around it.
pub(super) fn is_flattened(field: &str) -> bool {
    FLATTENED.contains(&field)
}

/// Methods that give a part of a schema to write to, creating it if need be.
pub(super) fn is_accessor(method: &str) -> bool {
    FLATTENED.contains(&method) && method != "extensions" && method != "schema"
}

/// The key of a field.
pub(super) fn key(field: &str) -> String {
    match field {
        "instance_type" => "type".to_owned(),
        "enum_values" => "enum".to_owned(),
        "const_value" => "const".to_owned(),
        "reference" => "$ref".to_owned(),
        _ => {
            let mut words = field.split('_');
            let mut key = words.next().unwrap_or_default().to_owned();
            for word in words {
                let mut letters = word.chars();
                key.extend(letters.next().into_iter().flat_map(char::to_uppercase));
                key.push_str(letters.as_str());
            }
            key
        }
    }
}

/// A bound is a float there, which is written as the integer that it is.
pub(super) fn whole_number(value: Value) -> Value {
    match value.as_f64() {
        #[allow(clippy::cast_possible_truncation)] // it has no fraction, and fits
        Some(float) if value.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
            Value::from(float as i64)
        }
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_fields() {
        for (field, expected) in [
            ("instance_type", "type"),
            ("enum_values", "enum"),
            ("max_length", "maxLength"),
            ("additional_properties", "additionalProperties"),
            ("format", "format"),
        ] {
            assert_eq!(key(field), expected);
        }
    }
}

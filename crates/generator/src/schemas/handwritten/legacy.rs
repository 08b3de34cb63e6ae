//! The types of schemars 0.8, whose fields are keywords of JSON Schema.

use serde_json::Value;

/// Structs in `schemars::schema` whose fields are keywords.
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

pub(super) fn is_schema_struct(name: &str) -> bool {
    STRUCTS.contains(&name)
}

/// Structs whose fields are keywords of the outer schema.
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

pub(super) fn is_flattened(field: &str) -> bool {
    FLATTENED.contains(&field)
}

/// E.g. `object()`, which returns part of the schema for modification, creating it if necessary.
pub(super) fn is_accessor(method: &str) -> bool {
    FLATTENED.contains(&method) && method != "extensions" && method != "schema"
}

/// Returns the keyword for a field, e.g. `maxLength` for `max_length`.
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

/// Converts whole numbers to integers, because schemars 0.8 stores bounds as floats.
pub(super) fn whole_number(value: Value) -> Value {
    match value.as_f64() {
        #[allow(clippy::cast_possible_truncation)] // whole and within the range of i64
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
    fn maps_fields_to_keywords() {
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

//! Validates objects against their schema, with the messages of kube-apiserver.
//!
//! Does not check patterns, formats or CEL rules.

use std::cmp::Ordering;
use std::collections::HashSet;

use rbuilder_schema::{ListType, Schema, SchemaType, compare_numbers, validate};
use serde_json::{Map, Number, Value};

use super::failure::Cause;
use super::fields::{item_schema, item_step};

/// Returns the violations of a schema by a value.
pub(super) fn find_violations(value: &Value, schema: &Schema, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    visit(value, schema, path, &mut causes);
    causes
}

fn visit(value: &Value, schema: &Schema, path: &str, causes: &mut Vec<Cause>) {
    if value.is_null() && schema.nullable {
        return;
    }
    if let Some(wanted) = wrong_type(value, schema) {
        let found = type_name(value);
        causes.push(Cause {
            reason: "FieldValueTypeInvalid",
            field: path.to_owned(),
            message: format!(
                "Invalid value: \"{found}\": {path} in body must be of type {wanted}: \"{found}\""
            ),
        });
        return;
    }
    if !schema.enumeration.is_empty() && !schema.enumeration.contains(value) {
        let allowed: Vec<String> = schema.enumeration.iter().map(ToString::to_string).collect();
        causes.push(Cause {
            reason: "FieldValueNotSupported",
            field: path.to_owned(),
            message: format!(
                "Unsupported value: {value}: supported values: {}",
                allowed.join(", ")
            ),
        });
    }
    match value {
        Value::Number(number) => check_number(number, schema, path, causes),
        Value::String(text) => check_text(text, schema, path, causes),
        Value::Array(list) => check_list(list, schema, path, causes),
        Value::Object(fields) => check_fields(fields, schema, path, causes),
        Value::Null | Value::Bool(_) => {}
    }
    check_alternatives(value, schema, path, causes);
}

/// Returns the expected type if the type of the value is different.
fn wrong_type(value: &Value, schema: &Schema) -> Option<&'static str> {
    let fits = match schema.schema_type {
        None if schema.int_or_string => value.is_string() || value.is_i64() || value.is_u64(),
        None => true,
        Some(SchemaType::Array) => value.is_array(),
        Some(SchemaType::Boolean) => value.is_boolean(),
        Some(SchemaType::Integer) => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(is_whole),
        Some(SchemaType::Number) => value.is_number(),
        Some(SchemaType::Object) => value.is_object(),
        Some(SchemaType::String) => value.is_string(),
    };
    (!fits).then(|| schema.schema_type.map_or("integer,string", SchemaType::as_str))
}

fn is_whole(number: f64) -> bool {
    number.fract() == 0.0
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn check_number(number: &Number, schema: &Schema, path: &str, causes: &mut Vec<Cause>) {
    let mut refuse = |rule: String| {
        let message = format!("Invalid value: {number}: {path} in body should be {rule}");
        causes.push(Cause::invalid(path, message));
    };
    if let Some(bound) = &schema.minimum {
        match compare_numbers(number, bound) {
            Ordering::Less if schema.exclusive_minimum => refuse(format!("greater than {}", plain(bound))),
            Ordering::Equal if schema.exclusive_minimum => refuse(format!("greater than {}", plain(bound))),
            Ordering::Less => refuse(format!("greater than or equal to {}", plain(bound))),
            _ => {}
        }
    }
    if let Some(bound) = &schema.maximum {
        match compare_numbers(number, bound) {
            Ordering::Greater | Ordering::Equal if schema.exclusive_maximum => {
                refuse(format!("less than {}", plain(bound)));
            }
            Ordering::Greater => refuse(format!("less than or equal to {}", plain(bound))),
            _ => {}
        }
    }
    if let Some(factor) = &schema.multiple_of {
        let quotient = number.as_f64().unwrap_or_default() / factor.as_f64().unwrap_or(1.0);
        if (quotient - quotient.round()).abs() > 1e-9 {
            refuse(format!("a multiple of {}", plain(factor)));
        }
    }
}

/// Formats a bound like Go. kube stores bounds as floats, and Go prints whole numbers without a
/// decimal point.
fn plain(number: &Number) -> String {
    let text = number.to_string();
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn check_text(text: &str, schema: &Schema, path: &str, causes: &mut Vec<Cause>) {
    let length = text.chars().count() as u64;
    if let Some(most) = schema.max_length.filter(|most| length > *most) {
        causes.push(Cause {
            reason: "FieldValueTooLong",
            field: path.to_owned(),
            message: format!("Too long: may not be more than {most} bytes"),
        });
    }
    if let Some(least) = schema.min_length.filter(|least| length < *least) {
        let value = Value::from(text);
        let rule = format!("{path} in body should be at least {least} chars long");
        causes.push(Cause::invalid(path, format!("Invalid value: {value}: {rule}")));
    }
}

fn check_list(list: &[Value], schema: &Schema, path: &str, causes: &mut Vec<Cause>) {
    let length = list.len() as u64;
    if let Some(most) = schema.max_items.filter(|most| length > *most) {
        causes.push(Cause {
            reason: "FieldValueTooMany",
            field: path.to_owned(),
            message: format!("Too many: {length}: must have at most {most} items"),
        });
    }
    if let Some(least) = schema.min_items.filter(|least| length < *least) {
        let message = format!("Invalid value: {length}: {path} in body should have at least {least} items");
        causes.push(Cause::invalid(path, message));
    }
    let keys = match schema.list_type {
        Some(ListType::Map) => Some(schema.list_map_keys.as_slice()),
        _ => None,
    };
    let distinct = matches!(schema.list_type, Some(ListType::Map | ListType::Set));
    let mut seen = HashSet::new();
    for (position, item) in list.iter().enumerate() {
        let path = format!("{path}[{position}]");
        let identity = item_step(item, keys, item_schema(Some(schema)));
        if distinct && !seen.insert(identity.clone()) {
            causes.push(Cause {
                reason: "FieldValueDuplicate",
                field: path.clone(),
                message: format!("Duplicate value: {}", &identity[2..]),
            });
        }
        if let Some(inner) = &schema.items {
            visit(item, inner, &path, causes);
        }
    }
}

fn check_fields(fields: &Map<String, Value>, schema: &Schema, path: &str, causes: &mut Vec<Cause>) {
    let below = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    let count = fields.len() as u64;
    if let Some(most) = schema.max_properties.filter(|most| count > *most) {
        causes.push(Cause {
            reason: "FieldValueTooMany",
            field: path.to_owned(),
            message: format!("Too many: {count}: must have at most {most} items"),
        });
    }
    if let Some(least) = schema.min_properties.filter(|least| count < *least) {
        let message =
            format!("Invalid value: {count}: {path} in body should have at least {least} properties");
        causes.push(Cause::invalid(path, message));
    }
    for name in schema
        .required
        .iter()
        .filter(|name| !fields.contains_key(&***name))
    {
        causes.push(Cause {
            reason: "FieldValueRequired",
            field: below(name),
            message: "Required value".to_owned(),
        });
    }
    for (name, value) in fields {
        let inner = schema
            .properties
            .get(name.as_str())
            .or(schema.additional_properties.as_ref());
        if let Some(inner) = inner {
            visit(value, inner, &below(name), causes);
        }
    }
}

/// Checks `allOf`, `anyOf`, `oneOf` and `not`.
fn check_alternatives(value: &Value, schema: &Schema, path: &str, causes: &mut Vec<Cause>) {
    let mut refuse = |rule: &str| {
        let message = format!(
            "Invalid value: \"{}\": {path} in body must validate {rule}",
            type_name(value)
        );
        causes.push(Cause::invalid(path, message));
    };
    // Wrap the part in `anyOf`, so that the fields that it does not mention are ignored.
    let holds = |part: &Schema| {
        let alone = Schema {
            any_of: vec![part.clone()],
            preserve_unknown_fields: true,
            ..Schema::default()
        };
        validate(value, &alone).is_ok()
    };
    if schema.all_of.iter().any(|part| !holds(part)) {
        refuse("all the schemas (allOf)");
    }
    if !schema.any_of.is_empty() && !schema.any_of.iter().any(holds) {
        refuse("at least one schema (anyOf)");
    }
    if !schema.one_of.is_empty() && schema.one_of.iter().filter(|part| holds(part)).count() != 1 {
        refuse("one and only one schema (oneOf)");
    }
    if schema.not.as_deref().is_some_and(holds) {
        refuse("the schema it must not (not)");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(value: &Value, schema: Value) -> Vec<String> {
        let schema = serde_json::from_value(schema).unwrap();
        let causes = find_violations(value, &schema, "");
        causes
            .into_iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect()
    }

    #[test]
    fn messages_match_kube_apiserver() {
        let schema = json!({ "type": "object", "required": ["must"], "properties": {
            "size": { "type": "integer", "maximum": 5.0, "minimum": 1 },
            "colour": { "type": "string", "enum": ["red", "blue"] },
            "name": { "type": "string", "minLength": 1, "maxLength": 3 },
            "list": { "type": "array", "maxItems": 1, "x-kubernetes-list-type": "set", "items": { "type": "string" } },
            "port": { "x-kubernetes-int-or-string": true },
        } });
        let value = json!({ "size": 9, "colour": "green", "name": "", "list": ["a", "a"], "port": true });
        let mut found = found(&value, schema);
        found.sort();
        assert_eq!(
            found,
            [
                "colour: Unsupported value: \"green\": supported values: \"red\", \"blue\"",
                "list: Too many: 2: must have at most 1 items",
                "list[1]: Duplicate value: \"a\"",
                "must: Required value",
                "name: Invalid value: \"\": name in body should be at least 1 chars long",
                "port: Invalid value: \"boolean\": port in body must be of type integer,string: \"boolean\"",
                "size: Invalid value: 9: size in body should be less than or equal to 5",
            ]
        );
    }

    #[test]
    fn alternatives_ignore_unmentioned_fields() {
        let schema = json!({ "type": "object",
            "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } },
            "oneOf": [{ "required": ["a"] }, { "required": ["b"] }] });
        assert!(found(&json!({ "a": 1 }), schema.clone()).is_empty());
        assert_eq!(found(&json!({}), schema.clone()).len(), 1);
        assert_eq!(found(&json!({ "a": 1, "b": 1 }), schema).len(), 1);
    }
}

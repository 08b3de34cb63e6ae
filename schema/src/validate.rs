//! Whether a literal value fits a schema, as the API server will ask about a default.

use serde_json::Value;

use crate::number::{float, is_integral};
use crate::{Schema, SchemaType, compare_numbers};
use std::cmp::Ordering;

/// Whether a value fits a schema. Patterns, formats and CEL rules are left to the API server.
///
/// # Errors
/// Why the value does not fit, a phrase, with the way to the place.
pub fn validate(value: &Value, schema: &Schema) -> Result<(), String> {
    fits(value, schema, Form::Structural)
}

/// Which of its two forms a schema has.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// It says of every value and field whether it may be there.
    Structural,
    /// An alternative: it looks at what it names and at nothing else.
    Part,
}

fn fits(value: &Value, schema: &Schema, form: Form) -> Result<(), String> {
    if value.is_null() {
        return if schema.nullable || form == Form::Part {
            Ok(())
        } else {
            Err("`null` is not allowed".into())
        };
    }
    check_type(value, schema)?;
    if !schema.enumeration.is_empty() && !schema.enumeration.contains(value) {
        return Err(format!("{value} is not one of the values allowed"));
    }
    match value {
        Value::Number(number) => check_number(number, schema)?,
        Value::String(text) => check_size(
            text.chars().count(),
            schema.min_length,
            schema.max_length,
            "characters",
        )?,
        Value::Array(items) => {
            check_size(items.len(), schema.min_items, schema.max_items, "items")?;
            if let Some(inner) = &schema.items {
                items.iter().try_for_each(|item| fits(item, inner, form))?;
            }
        }
        Value::Object(fields) => check_object(fields, schema, form)?,
        Value::Null | Value::Bool(_) => {}
    }
    check_alternatives(value, schema)
}

fn check_type(value: &Value, schema: &Schema) -> Result<(), String> {
    let fits = match schema.schema_type {
        None => !schema.int_or_string || value.is_string() || value.is_i64() || value.is_u64(),
        Some(SchemaType::Array) => value.is_array(),
        Some(SchemaType::Boolean) => value.is_boolean(),
        Some(SchemaType::Integer) => value.as_number().is_some_and(is_integral),
        Some(SchemaType::Number) => value.is_number(),
        Some(SchemaType::Object) => value.is_object(),
        Some(SchemaType::String) => value.is_string(),
    };
    if fits {
        return Ok(());
    }
    let wanted = schema
        .schema_type
        .map_or("a whole number or a text", SchemaType::noun);
    Err(format!("{value} is not {wanted}"))
}

fn check_number(number: &serde_json::Number, schema: &Schema) -> Result<(), String> {
    let below = |bound: &serde_json::Number, exclusive: bool| match compare_numbers(number, bound) {
        Ordering::Less => true,
        Ordering::Equal => exclusive,
        Ordering::Greater => false,
    };
    let above = |bound: &serde_json::Number, exclusive: bool| match compare_numbers(number, bound) {
        Ordering::Greater => true,
        Ordering::Equal => exclusive,
        Ordering::Less => false,
    };
    if let Some(bound) = schema
        .minimum
        .as_ref()
        .filter(|bound| below(bound, schema.exclusive_minimum))
    {
        return Err(format!("{number} is below the minimum, {bound}"));
    }
    if let Some(bound) = schema
        .maximum
        .as_ref()
        .filter(|bound| above(bound, schema.exclusive_maximum))
    {
        return Err(format!("{number} is above the maximum, {bound}"));
    }
    if let Some(factor) = &schema.multiple_of {
        let quotient = float(number) / float(factor);
        if (quotient - quotient.round()).abs() > 1e-9 {
            return Err(format!("{number} is not a multiple of {factor}"));
        }
    }
    if schema.format.as_deref() == Some("int32") && number.as_i64().is_none_or(|n| i32::try_from(n).is_err())
    {
        return Err(format!("{number} does not fit into 32 bits"));
    }
    Ok(())
}

fn check_size(size: usize, least: Option<u64>, most: Option<u64>, what: &str) -> Result<(), String> {
    let size = size as u64;
    match (least, most) {
        (Some(least), _) if size < least => Err(format!("it has {size} {what}, and the least is {least}")),
        (_, Some(most)) if size > most => Err(format!("it has {size} {what}, and the most is {most}")),
        _ => Ok(()),
    }
}

fn check_object(fields: &serde_json::Map<String, Value>, schema: &Schema, form: Form) -> Result<(), String> {
    check_size(fields.len(), schema.min_properties, schema.max_properties, "keys")?;
    for name in &schema.required {
        // Defaults are asked as they are written: the defaults of their fields are not filled in before.
        if !fields.contains_key(&**name) {
            return Err(format!("the field `{name}` is missing"));
        }
    }
    for (name, value) in fields {
        let inner = schema
            .properties
            .get(name.as_str())
            .or(schema.additional_properties.as_ref());
        match inner {
            Some(inner) => fits(value, inner, form).map_err(|reason| format!("at `{name}`: {reason}"))?,
            None if form == Form::Part || schema.preserve_unknown_fields || schema.embedded_resource => {}
            None => return Err(format!("there is no field `{name}`")),
        }
    }
    Ok(())
}

fn check_alternatives(value: &Value, schema: &Schema) -> Result<(), String> {
    let holds = |part: &Schema| fits(value, part, Form::Part).is_ok();
    if schema.all_of.iter().any(|part| !holds(part))
        || (!schema.any_of.is_empty() && !schema.any_of.iter().any(holds))
        || (!schema.one_of.is_empty() && schema.one_of.iter().filter(|part| holds(part)).count() != 1)
        || schema.not.as_deref().is_some_and(holds)
    {
        return Err(format!("{value} matches none, or several, of the alternatives"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(value: Value, schema: Value, expected: Result<(), &str>) {
        let read: Schema = serde_json::from_value(schema.clone()).expect("a schema");
        assert_eq!(
            validate(&value, &read),
            expected.map_err(str::to_owned),
            "{value} against {schema}"
        );
    }

    #[test]
    fn values() {
        check(json!(1), json!({"type": "integer"}), Ok(()));
        check(json!(1.0), json!({"type": "integer"}), Ok(()));
        check(
            json!(1.5),
            json!({"type": "integer"}),
            Err("1.5 is not a whole number"),
        );
        check(
            json!(null),
            json!({"type": "integer"}),
            Err("`null` is not allowed"),
        );
        check(json!(null), json!({"type": "integer", "nullable": true}), Ok(()));
        check(json!(2), json!({"type": "integer", "minimum": 2}), Ok(()));
        check(
            json!(2),
            json!({"type": "integer", "minimum": 2, "exclusiveMinimum": true}),
            Err("2 is below the minimum, 2"),
        );
        check(
            json!(2),
            json!({"type": "integer", "maximum": 2, "exclusiveMaximum": true}),
            Err("2 is above the maximum, 2"),
        );
        check(
            json!(5),
            json!({"type": "integer", "multipleOf": 2}),
            Err("5 is not a multiple of 2"),
        );
        check(
            json!(1_u64 << 32),
            json!({"type": "integer", "format": "int32"}),
            Err("4294967296 does not fit into 32 bits"),
        );
        check(
            json!(true),
            json!({"x-kubernetes-int-or-string": true}),
            Err("true is not a whole number or a text"),
        );
        check(
            json!({"any": [1]}),
            json!({"x-kubernetes-preserve-unknown-fields": true}),
            Ok(()),
        );
        check(
            json!(["é"]),
            json!({"type": "array", "items": {"type": "string", "maxLength": 1}}),
            Ok(()),
        );
        check(
            json!([1, 2]),
            json!({"type": "array", "maxItems": 1}),
            Err("it has 2 items, and the most is 1"),
        );
        check(
            json!({"a": "x"}),
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            Err("at `a`: \"x\" is not a whole number"),
        );
        check(
            json!({"b": 1}),
            json!({"type": "object", "properties": {"a": {"type": "integer"}}}),
            Err("there is no field `b`"),
        );
        check(
            json!({}),
            json!({"type": "object", "properties": {"a": {"type": "integer", "default": 1}}, "required": ["a"]}),
            Err("the field `a` is missing"),
        );
    }

    #[test]
    fn alternatives() {
        let either = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]});
        let refusal = |value: &str| format!("{value} matches none, or several, of the alternatives");
        check(json!({"a": 1}), either.clone(), Ok(()));
        check(json!({}), either.clone(), Err(&refusal("{}")));
        check(
            json!({"a": 1, "b": 1}),
            either,
            Err(&refusal("{\"a\":1,\"b\":1}")),
        );
        let deep = json!({
            "type": "object",
            "properties": {"c": {"x-kubernetes-preserve-unknown-fields": true}},
            "anyOf": [{"properties": {"c": {"required": ["a"]}}}],
        });
        check(json!({"c": {"a": 1, "b": 2}}), deep.clone(), Ok(()));
        check(json!({"c": {"b": 2}}), deep, Err(&refusal("{\"c\":{\"b\":2}}")));
        check(
            json!(0),
            json!({"type": "integer", "not": {"enum": [0]}}),
            Err(&refusal("0")),
        );
    }
}

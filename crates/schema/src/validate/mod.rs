//! Validates a literal value against a schema in the way in which the API server validates a
//! default.
//!
//! [`check_default`] checks types, bounds (in Go's arithmetic), patterns, formats, fields that
//! would be pruned, embedded objects, and the rules that markers generate. It also fails if a
//! default would make every object invalid, although the API server would accept the CRD. An
//! example is a set with duplicates, or a rule that fails once the defaults of nested fields have
//! been filled in. Other CEL rules are up to `rbuilder-cel`.

mod default;
mod number;
mod rule;

use rbuilder_re2::Pattern;
use serde_json::Value;

use crate::{Schema, SchemaType, accepts_format, compare_numbers, items_of};

pub use default::{check_created, check_default};
pub(crate) use number::{is_in_format, is_whole};

/// Checks whether a value is valid, apart from patterns, formats and CEL rules.
///
/// # Errors
///
/// Returns a phrase with the path and the reason if the value is invalid.
pub fn validate(value: &Value, schema: &Schema) -> Result<(), String> {
    fits(value, schema, Judge::of_structure())
}

pub(crate) fn fits_constraints(value: &Value, schema: &Schema) -> Result<(), String> {
    if value.is_null() {
        return Ok(());
    }
    let constraints = Schema {
        enumeration: Vec::new(),
        // Without this, a field that the schema doesn't define would be an error.
        preserve_unknown_fields: true,
        ..schema.clone()
    };
    fits(value, &constraints, Judge::of_defaults())
}

/// Checks whether a value has the right type. What is inside of the value doesn't matter.
pub(crate) fn is_type_of(value: &Value, schema: &Schema) -> Result<(), String> {
    if value.is_null() {
        Ok(())
    } else {
        check_type(value, schema)
    }
}

pub(crate) fn find_repeated(values: &[Value]) -> Option<&Value> {
    let is_repeated = |(position, value): &(usize, &Value)| {
        let before = &values[..*position];
        before.iter().any(|other| is_same(other, value))
    };
    values
        .iter()
        .enumerate()
        .find(is_repeated)
        .map(|(_, value)| value)
}

/// How strict a validation is.
#[derive(Clone, Copy)]
struct Judge {
    form: Form,
    /// Whether to check patterns and formats.
    reads_strings: bool,
    /// Whether to accept a value if we can't tell whether it's valid.
    trusts: bool,
}

impl Judge {
    fn of_structure() -> Judge {
        Judge {
            form: Form::Structural,
            reads_strings: false,
            trusts: true,
        }
    }

    fn of_defaults() -> Judge {
        Judge {
            reads_strings: true,
            ..Judge::of_structure()
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// A whole schema, which rejects the values and fields that it doesn't define.
    Structural,
    /// An alternative. Whatever it doesn't mention is fine.
    Part,
}

fn fits(value: &Value, schema: &Schema, judge: Judge) -> Result<(), String> {
    if value.is_null() {
        return check_null(schema);
    }
    check_type(value, schema)?;
    if !schema.enumeration.is_empty() && !schema.enumeration.iter().any(|allowed| is_same(value, allowed)) {
        return Err(describe_unlisted(value, &schema.enumeration));
    }
    match value {
        Value::Number(number) => number::check_number(number, schema)?,
        Value::String(text) => check_string(text, schema, judge)?,
        Value::Array(items) => {
            check_size(items.len(), schema.min_items, schema.max_items, "items")?;
            if let Some(inner) = items_of(schema) {
                items.iter().try_for_each(|item| fits(item, &inner, judge))?;
            }
        }
        Value::Object(fields) => check_object(fields, schema, judge)?,
        Value::Null | Value::Bool(_) => {}
    }
    check_alternatives(value, schema, judge)
}

/// If an `enum` has more values than this, a message doesn't list them.
const MOST_LISTED: usize = 12;

fn describe_unlisted(value: &Value, allowed: &[Value]) -> String {
    let message = format!("{value} is not one of the allowed values");
    if allowed.len() > MOST_LISTED {
        return message;
    }
    let listed: Vec<String> = allowed.iter().map(Value::to_string).collect();
    format!("{message} ({})", listed.join(", "))
}

/// The API server compares `null` with nothing but the type and the `enum`, and never finds it in
/// the latter.
fn check_null(schema: &Schema) -> Result<(), String> {
    let is_typed = schema.schema_type.is_some() || schema.int_or_string;
    if is_typed && !schema.nullable {
        return Err("`null` is not allowed".into());
    }
    if !schema.enumeration.is_empty() {
        return Err("`null` is not one of the allowed values".into());
    }
    Ok(())
}

/// Returns whether two values are equal. Numbers are compared by value, so `1` equals `1.0`.
pub fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right).is_eq(),
        _ => left == right,
    }
}

fn check_type(value: &Value, schema: &Schema) -> Result<(), String> {
    let fits = match schema.schema_type {
        None => !schema.int_or_string || value.is_string() || value.as_number().is_some_and(is_whole),
        Some(SchemaType::Array) => value.is_array(),
        Some(SchemaType::Boolean) => value.is_boolean(),
        Some(SchemaType::Integer) => value.as_number().is_some_and(is_whole),
        Some(SchemaType::Number) => value.is_number(),
        Some(SchemaType::Object) => value.is_object(),
        Some(SchemaType::String) => value.is_string(),
    };
    if fits {
        return Ok(());
    }
    let wanted = schema
        .schema_type
        .map_or("an integer or a string", SchemaType::noun);
    Err(format!("expected {wanted}, found {value}"))
}

fn check_string(text: &str, schema: &Schema, judge: Judge) -> Result<(), String> {
    let characters = text.chars().count();
    check_size(characters, schema.min_length, schema.max_length, "characters")?;
    let decide = |verdict: Option<bool>| match verdict {
        Some(verdict) if judge.reads_strings => verdict,
        _ => judge.trusts,
    };
    if let Some(pattern) = &schema.pattern
        && !decide(matches_pattern(pattern, text))
    {
        return Err(format!("{text:?} does not match the pattern `{pattern}`"));
    }
    if let Some(format) = &schema.format
        && schema.schema_type.is_none_or(|found| found == SchemaType::String)
        && crate::format_type(format) == Some(SchemaType::String)
        && !decide(accepts_format(format, text))
    {
        let example = crate::example_of_format(format);
        let example = example
            .map(|example| format!(", such as \"{example}\""))
            .unwrap_or_default();
        return Err(format!("{text:?} is not a valid `{format}`{example}"));
    }
    Ok(())
}

pub(crate) fn matches_pattern(pattern: &str, text: &str) -> Option<bool> {
    Pattern::parse(pattern).ok()?.is_match(text)
}

fn check_size(size: usize, least: Option<u64>, most: Option<u64>, what: &str) -> Result<(), String> {
    let size = size as u64;
    match (least, most) {
        (Some(least), _) if size < least => Err(format!("expected at least {least} {what}, found {size}")),
        (_, Some(most)) if size > most => Err(format!("expected at most {most} {what}, found {size}")),
        _ => Ok(()),
    }
}

fn check_object(
    fields: &serde_json::Map<String, Value>,
    schema: &Schema,
    judge: Judge,
) -> Result<(), String> {
    check_size(fields.len(), schema.min_properties, schema.max_properties, "keys")?;
    for name in &schema.required {
        // The API server checks a default as it's written, without filling in the defaults of its
        // fields.
        if !fields.contains_key(&**name) {
            return Err(format!("missing field `{name}`"));
        }
    }
    // Every embedded object has these fields, whether its schema defines them or not.
    let is_identity =
        |name: &str| schema.embedded_resource && ["apiVersion", "kind", "metadata"].contains(&name);
    for (name, value) in fields {
        let inner = schema
            .properties
            .get(name.as_str())
            .or(schema.additional_properties.as_ref());
        match inner {
            Some(inner) => fits(value, inner, judge).map_err(|reason| format!("at `{name}`: {reason}"))?,
            None if judge.form == Form::Part || schema.preserve_unknown_fields || is_identity(name) => {}
            None => return Err(format!("unknown field `{name}`")),
        }
    }
    Ok(())
}

fn check_alternatives(value: &Value, schema: &Schema, judge: Judge) -> Result<(), String> {
    let part = Judge {
        form: Form::Part,
        ..judge
    };
    let may_hold = |schema: &Schema| fits(value, schema, part).is_ok();
    // If we can't tell, we have to accept the value. For `not` and for a second match of `oneOf`
    // that means to assume that the part doesn't hold, so trust is inverted here.
    let against = Judge {
        trusts: !part.trusts,
        ..part
    };
    let holds = |schema: &Schema| fits(value, schema, against).is_ok();
    if schema.all_of.iter().any(|part| !may_hold(part))
        || (!schema.any_of.is_empty() && !schema.any_of.iter().any(may_hold))
        || (!schema.one_of.is_empty()
            && (!schema.one_of.iter().any(may_hold)
                || schema.one_of.iter().filter(|part| holds(part)).count() > 1))
        || schema.not.as_deref().is_some_and(holds)
    {
        return Err(format!("{value} does not match the alternatives"));
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
    fn created_objects_get_defaults() {
        let schema: Schema =
            serde_json::from_value(json!({ "type": "object", "required": ["a"], "properties": {
            "a": { "type": "integer", "default": 1 }, "b": { "type": "string", "pattern": "^x" } } }))
            .expect("a schema");
        for (object, expected) in [
            (json!({}), Ok(())),
            (json!({ "b": null }), Ok(())),
            (
                json!({ "a": "1" }),
                Err("at `a`: expected an integer, found \"1\""),
            ),
            (
                json!({ "b": "y" }),
                Err("at `b`: \"y\" does not match the pattern `^x`"),
            ),
            (json!({ "c": 1 }), Err("unknown field `c`")),
        ] {
            assert_eq!(
                check_created(&object, &schema),
                expected.map_err(str::to_owned),
                "{object}"
            );
        }
    }

    #[test]
    fn created_objects_keep_null_only_if_nullable() {
        let check = |object: Value, schema: Value, expected: Result<(), &str>| {
            let read: Schema = serde_json::from_value(schema.clone()).expect("a schema");
            assert_eq!(
                check_created(&object, &read),
                expected.map_err(str::to_owned),
                "{object} against {schema}"
            );
        };
        let field = |field: Value| json!({"type": "object", "required": ["a"], "properties": {"a": field}});
        let null = || json!({ "a": null });
        check(null(), field(json!({"type": "string", "nullable": true})), Ok(()));
        check(null(), field(json!({"type": "string"})), Err("missing field `a`"));
        check(null(), field(json!({"type": "string", "default": "x"})), Ok(()));
        check(
            null(),
            json!({"type": "object", "properties": {}}),
            Err("unknown field `a`"),
        );
        // If a field is nullable, its default doesn't replace `null`.
        let nullable = field(json!({"type": "string", "nullable": true, "default": "x"}));
        let rule = json!([{"rule": "has(self.a)||has(self.b)"}]);
        let mut ruled = nullable.clone();
        ruled["x-kubernetes-validations"] = rule;
        check(null(), nullable, Ok(()));
        check(null(), ruled, Ok(()));
        let map =
            |values: Value| json!({"type": "object", "minProperties": 1, "additionalProperties": values});
        check(
            null(),
            map(json!({"type": "string"})),
            Err("expected at least 1 keys, found 0"),
        );
        check(null(), map(json!({"type": "string", "default": "x"})), Ok(()));
        let list = |items: Value| json!({"type": "array", "items": items});
        check(
            json!([null]),
            list(json!({"type": "string"})),
            Err("`null` is not allowed"),
        );
        check(
            json!([null]),
            list(json!({"type": "string", "default": "x"})),
            Ok(()),
        );
        check(
            json!([null]),
            list(json!({"type": "string", "nullable": true})),
            Ok(()),
        );
    }

    #[test]
    fn lists_pass_preserve_unknown_fields_to_items() {
        let list = |items: Value| json!({"type": "array", "x-kubernetes-preserve-unknown-fields": true, "items": items});
        let object = json!({"type": "object", "properties": {"a": {"type": "object"}}});
        check(json!([{"x": 1}]), list(object.clone()), Ok(()));
        check(
            json!([[{"x": 1}]]),
            list(json!({"type": "array", "items": object})),
            Ok(()),
        );
        check(
            json!([{"a": {"x": 1}}]),
            list(object),
            Err("at `a`: unknown field `x`"),
        );
    }

    #[test]
    fn validates_values() {
        check(json!(1), json!({"type": "integer"}), Ok(()));
        check(json!(1.0), json!({"type": "integer"}), Ok(()));
        check(
            json!(1.5),
            json!({"type": "integer"}),
            Err("expected an integer, found 1.5"),
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
            Err("2 is less than the minimum 2"),
        );
        check(
            json!(2),
            json!({"type": "integer", "maximum": 2, "exclusiveMaximum": true}),
            Err("2 is greater than the maximum 2"),
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
            Err("expected an integer or a string, found true"),
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
            Err("expected at most 1 items, found 2"),
        );
        check(
            json!({"a": "x"}),
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            Err("at `a`: expected an integer, found \"x\""),
        );
        check(
            json!({"b": 1}),
            json!({"type": "object", "properties": {"a": {"type": "integer"}}}),
            Err("unknown field `b`"),
        );
        check(
            json!({}),
            json!({"type": "object", "properties": {"a": {"type": "integer", "default": 1}}, "required": ["a"]}),
            Err("missing field `a`"),
        );
    }

    #[test]
    fn validates_alternatives() {
        let either = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]});
        let refusal = |value: &str| format!("{value} does not match the alternatives");
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

//! Schemas written out as JSON by users, for types that can't be described in any other way.

use rbuilder_diagnostic::Diagnostic;
use serde_json::{Map, Number, Value};

use crate::satisfy::find_contradiction;
use crate::validate::{check_default, find_repeated, fits_constraints, is_type_of};
use crate::{KEYS, Key, ListType, Schema, SchemaType, format_type};

/// The keys of a rule in `x-kubernetes-validations`.
const RULE_KEYS: &[&str] = &[
    "fieldPath",
    "message",
    "messageExpression",
    "optionalOldSelf",
    "reason",
    "rule",
];

/// Why a JSON value isn't a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaError {
    /// An unknown key, and the path of the schema with the key.
    UnknownKey(String, String),
    /// The problem, and the path of the schema with the problem.
    Malformed(String, String),
}

impl Schema {
    /// Reads a schema from JSON as written in a manifest, and keeps it unchanged.
    ///
    /// # Errors
    ///
    /// Returns an error if a key is unknown or its value has the wrong type. Doesn't check whether
    /// the schema is structural, which is up to [`check_structural`](crate::check_structural).
    pub fn from_literal(value: &Value) -> Result<Schema, SchemaError> {
        check_keys(value, String::new())?;
        let mut value = value.clone();
        open_maps(&mut value);
        serde_json::from_value(value)
            .map_err(|error| SchemaError::Malformed(error.to_string(), String::new()))
    }
}

/// Checks a schema written out by a user. Its constraints have to apply to its type and must not
/// contradict each other, and the values in it have to be valid.
///
/// A mistake that the API server accepts is only a warning, because users may have to repeat an
/// already published schema. The structure is checked by
/// [`check_structural`](crate::check_structural), and the patterns are up to the caller.
pub fn check_literal(schema: &Schema) -> Vec<Diagnostic<String>> {
    let mut diagnostics = Vec::new();
    visit(schema, &mut String::new(), &mut |schema, path| {
        for (key, noun) in misplaced_keys(schema) {
            let this = schema.noun();
            let key = key.name;
            let message = format!("`{key}` applies to {noun}; this value is {this}");
            diagnostics.push(Diagnostic::warning(path.to_owned(), message).help("remove it"));
        }
        let mut warn = |message: String, help: Option<&str>| {
            let diagnostic = Diagnostic::warning(path.to_owned(), message);
            diagnostics.push(diagnostic.maybe_help(help.map(str::to_owned)));
        };
        for value in &schema.enumeration {
            if value.is_null() && !schema.nullable {
                warn(
                    "`enum` contains `null`, but the value is not nullable".into(),
                    Some("add `\"nullable\": true`"),
                );
            } else if let Err(reason) =
                is_type_of(value, schema).and_then(|()| fits_constraints(value, schema))
            {
                warn(format!("`enum` value can never be valid: {reason}"), None);
            }
        }
        if schema.nullable && !schema.enumeration.is_empty() {
            warn(
                "`null` is rejected: the API server finds it in no `enum`".into(),
                Some("move the `enum` below `allOf`, where it does not apply to `null`"),
            );
        }
        if let Some(value) = find_repeated(&schema.enumeration) {
            warn(format!("duplicate `enum` value {value}"), None);
        }
        if let Some(contradiction) = find_contradiction(schema) {
            warn(contradiction, None);
        }
        for (message, help) in unfinished(schema) {
            diagnostics.push(Diagnostic::error(path.to_owned(), message).help(help));
        }
        if let Some(Err(reason)) = schema
            .default
            .as_ref()
            .map(|default| check_default(default, schema))
        {
            diagnostics.push(Diagnostic::error(
                path.to_owned(),
                format!("invalid default: {reason}"),
            ));
        }
    });
    diagnostics
}

fn unfinished(schema: &Schema) -> Vec<(&'static str, &'static str)> {
    let is_blank = |text: &Option<String>| text.as_ref().is_some_and(|text| text.trim().is_empty());
    let has_break = |text: Option<&str>| text.is_some_and(|text| text.trim().contains(['\n', '\r']));
    let is_nothing = |factor: &Number| factor.as_f64().is_some_and(|factor| factor <= 0.0);
    let rows = [
        (
            schema.exclusive_minimum && schema.minimum.is_none(),
            "`exclusiveMinimum` requires `minimum`",
            "add the bound: this key excludes only the bound itself",
        ),
        (
            schema.exclusive_maximum && schema.maximum.is_none(),
            "`exclusiveMaximum` requires `maximum`",
            "add the bound: this key excludes only the bound itself",
        ),
        (
            schema.multiple_of.as_ref().is_some_and(is_nothing),
            "`multipleOf` must be greater than 0",
            "write a number greater than 0",
        ),
        (
            schema.list_type == Some(ListType::Map) && schema.list_map_keys.is_empty(),
            "a list of type `map` requires keys",
            "add `x-kubernetes-list-map-keys`",
        ),
        (
            schema.list_type != Some(ListType::Map) && !schema.list_map_keys.is_empty(),
            "`x-kubernetes-list-map-keys` requires a list of type `map`",
            "add `\"x-kubernetes-list-type\": \"map\"`",
        ),
        (
            schema.int_or_string && schema.preserve_unknown_fields,
            "`x-kubernetes-int-or-string` and `x-kubernetes-preserve-unknown-fields` exclude each other",
            "remove one of them",
        ),
        (
            schema.int_or_string && schema.embedded_resource,
            "`x-kubernetes-int-or-string` and `x-kubernetes-embedded-resource` exclude each other",
            "remove one of them",
        ),
        (
            schema
                .validations
                .iter()
                .any(|rule| has_break(rule.message.as_deref())),
            "the message of a rule must not have line breaks",
            "write a single line",
        ),
        (
            schema
                .validations
                .iter()
                .any(|rule| has_break(Some(&rule.rule)) && rule.message.is_none()),
            "a rule with line breaks requires a message",
            "add `message`, or write the rule in one line",
        ),
        (
            schema.validations.iter().any(|rule| is_blank(&rule.message)),
            "the message of a rule must not be blank",
            "write a single line, or remove it",
        ),
    ];
    let found = rows.into_iter().filter(|(is_wrong, ..)| *is_wrong);
    found.map(|(_, message, help)| (message, help)).collect()
}

fn visit(schema: &Schema, path: &mut String, look: &mut dyn FnMut(&Schema, &str)) {
    look(schema, path);
    let length = path.len();
    let mut inner = |step: &str, schema: &Schema| {
        *path += step;
        visit(schema, path, look);
        path.truncate(length);
    };
    for (name, property) in &schema.properties {
        inner(&format!(".{name}"), property);
    }
    if let Some(items) = &schema.items {
        inner("[]", items);
    }
    if let Some(values) = &schema.additional_properties {
        inner(".*", values);
    }
}

/// Returns the keys that don't apply to a value of this type, each with a noun for the values that
/// the key does apply to (e.g. `strings`). The API server ignores them.
pub fn misplaced_keys(schema: &Schema) -> Vec<(&'static Key, &'static str)> {
    let Some(found) = schema.schema_type else {
        return Vec::new();
    };
    let misplaced = |key: &&Key| !key.subject.includes(found) && key.is_set(schema);
    let misplaced = KEYS.iter().filter(misplaced).map(|key| (key, key.subject.noun()));
    let format = schema.format.as_deref().and_then(format_type);
    let noun = format.filter(|about| *about != found).map(|about| match about {
        SchemaType::Integer => "integers",
        SchemaType::Number => "numbers",
        _ => "strings",
    });
    misplaced.chain(Key::named("format").zip(noun)).collect()
}

fn check_keys(value: &Value, path: String) -> Result<(), SchemaError> {
    let Value::Object(keys) = value else {
        return Err(SchemaError::Malformed(
            "expected an object for a schema".into(),
            path,
        ));
    };
    if keys
        .get("enum")
        .and_then(Value::as_array)
        .is_some_and(Vec::is_empty)
    {
        return Err(SchemaError::Malformed("`enum` must not be empty".into(), path));
    }
    if let Some(key) = keys.keys().find(|key| Key::named(key).is_none()) {
        return Err(SchemaError::UnknownKey(key.clone(), path));
    }
    for (position, rule) in list(keys, "x-kubernetes-validations").iter().enumerate() {
        let mut named = rule.as_object().into_iter().flat_map(Map::keys);
        if let Some(key) = named.find(|key| !RULE_KEYS.contains(&key.as_str())) {
            let path = format!("{path}.x-kubernetes-validations[{position}]");
            return Err(SchemaError::UnknownKey(key.clone(), path));
        }
    }
    for key in ["additionalProperties", "items", "not"] {
        let is_open = key == "additionalProperties" && keys.get(key) == Some(&Value::Bool(true));
        if let Some(inner) = keys.get(key).filter(|_| !is_open) {
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

/// Converts `additionalProperties: true` to `x-kubernetes-preserve-unknown-fields`: the API server
/// treats them the same, and `Schema` only has room for a schema there.
fn open_maps(schema: &mut Value) {
    let Value::Object(keys) = schema else { return };
    if keys.get("additionalProperties") == Some(&Value::Bool(true)) {
        keys.remove("additionalProperties");
        keys.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
    }
    for key in ["additionalProperties", "items"] {
        if let Some(inner) = keys.get_mut(key) {
            open_maps(inner);
        }
    }
    if let Some(Value::Object(properties)) = keys.get_mut("properties") {
        properties.values_mut().for_each(open_maps);
    }
}

fn list<'a>(keys: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    keys.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Form;

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
    fn reads_schemas_unchanged() {
        let every = json!({
            "type": "object", "description": "d", "properties": {"a": {"type": "string", "maxLength": 3}},
            "required": ["a"], "additionalProperties": {"type": "array", "items": {"type": "integer"}},
            "oneOf": [{"required": ["a"]}], "x-kubernetes-validations": [{"rule": "self.a != ''"}],
        });
        check(every, Ok(()));
        let open = Schema::from_literal(&json!({"type": "object", "additionalProperties": true}));
        let kept =
            Schema::from_literal(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
        assert_eq!(open, kept);
        check(json!({"typ": "object"}), Err(("typ", "")));
        check(
            json!({"type": "object", "properties": {"a": {"anyOf": [{"minimun": 1}]}}}),
            Err(("minimun", ".properties.a.anyOf[0]")),
        );
        check(
            json!({"items": true}),
            Err(("expected an object for a schema", ".items")),
        );
        let schema = serde_json::to_value(Schema::default()).expect("JSON");
        assert_eq!(schema, json!({}));
    }

    #[test]
    fn checks_rules_about_several_keys() {
        for (schema, expected) in [
            (
                json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-map-keys": ["a"]}),
                "`x-kubernetes-list-map-keys` requires a list of type `map`",
            ),
            (
                json!({"type": "integer", "x-kubernetes-validations": [{"rule": "true", "message": "a\nb"}]}),
                "the message of a rule must not have line breaks",
            ),
            (
                json!({"type": "integer", "x-kubernetes-validations": [{"rule": "true\n&& true"}]}),
                "a rule with line breaks requires a message",
            ),
            (
                json!({"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-int-or-string": true}}),
                "`x-kubernetes-int-or-string` and `x-kubernetes-preserve-unknown-fields` exclude each other",
            ),
        ] {
            let read = Schema::from_literal(&schema).expect("a schema");
            let found: Vec<_> = check_literal(&read)
                .into_iter()
                .map(|found| found.message)
                .collect();
            assert_eq!(found, [expected], "{schema}");
        }
    }

    #[test]
    fn accepts_every_schema_key() {
        for key in KEYS {
            let value = match key.form {
                Form::Count(_) | Form::Number(_) => json!(1),
                Form::Flag(_) => json!(true),
                Form::Text(_) | Form::Value(_) => json!("x"),
                Form::Values(_) | Form::Names(_) | Form::ListKeys(_) => json!(["a"]),
                Form::Part(_) => json!({"type": "string"}),
                Form::Parts(_) => json!([{"required": ["a"]}]),
                Form::Fields(_) => json!({"a": {"type": "string"}}),
                Form::Type(_) => json!("object"),
                Form::Docs(_) => json!({"url": "https://example.com"}),
                Form::ListType(_) | Form::MapType(_) => json!("atomic"),
                Form::Rules(_) => json!([{"rule": "true"}]),
            };
            let value = json!({ key.name: value });
            let read: Schema = serde_json::from_value(value.clone()).expect("a schema");
            assert_eq!(KEYS.iter().filter(|key| key.is_set(&read)).count(), 1, "{value}");
            assert!(key.is_set(&read), "{value}");
            assert_eq!(read.without(|other| other.name == key.name), Schema::default());
            assert_eq!(read.only(|other| other.name == key.name), read);
            check(value, Ok(()));
        }
    }
}

//! Checks that samples are valid.

use rbuilder_importer::{Minor, import_kind};
use serde_json::{Value, json};

#[track_caller]
fn check(spec: Value, expected: Value) {
    let mut spec = spec;
    spec["type"] = "object".into();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "gadgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": { "kind": "Gadget", "plural": "gadgets" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "properties": { "spec": spec, "status": { "type": "object" } }
            } } }],
        },
    });
    let kind = import_kind(&definition, Minor::LATEST, &[]).expect("a kind");
    let sample = Value::Object(kind.versions[0].sample.clone());
    assert_eq!(sample, json!({ "spec": expected }));
    let read = |value: &Value| serde_json::from_value(value.clone()).expect("a schema");
    rbuilder_schema::validate(&sample["spec"], &read(&spec)).expect("it is accepted");
}

#[track_caller]
fn check_value(schema: Value, expected: Value) {
    check(
        json!({ "required": ["value"], "properties": { "value": schema } }),
        json!({ "value": expected }),
    );
}

#[test]
fn picks_simplest_valid_value() {
    let text = json!({ "type": "string" });
    for (schema, expected) in [
        (text.clone(), json!("example")),
        (json!({ "type": "string", "maxLength": 3 }), json!("1")),
        (json!({ "type": "string", "minLength": 9 }), json!("example.com")),
        (
            json!({ "type": "string", "pattern": "^[a-z]{3}\\d$" }),
            json!("aaa0"),
        ),
        (
            json!({ "type": "string", "pattern": "^(PT)(\\d+H)$" }),
            json!("PT0H"),
        ),
        (
            json!({ "type": "string", "format": "uri" }),
            json!("https://example.com/path"),
        ),
        (json!({ "type": "string", "enum": ["b", "a"] }), json!("b")),
        (json!({ "type": "string", "default": "c" }), json!("c")),
        (json!({ "type": "integer", "minimum": 5 }), json!(5)),
        (
            json!({ "type": "string", "allOf": [{ "minLength": 4 }, { "minLength": 10 }], "maxLength": 10 }),
            json!("exampleexa"),
        ),
        (
            json!({ "type": "string", "allOf": [{ "maxLength": 9 }, { "maxLength": 3, "minLength": 2 }] }),
            json!("1h"),
        ),
        (
            json!({ "type": "integer", "allOf": [{ "multipleOf": 4 }, { "multipleOf": 6 }] }),
            json!(12),
        ),
        (
            json!({ "type": "integer", "minimum": 3, "allOf": [{ "minimum": 3, "exclusiveMinimum": true }, { "minimum": 2 }] }),
            json!(4),
        ),
        (
            json!({ "type": "string", "enum": ["a", "b"], "allOf": [{ "enum": ["b", "c"] }] }),
            json!("b"),
        ),
        (
            json!({ "type": "integer", "maximum": 0, "exclusiveMaximum": true }),
            json!(-1),
        ),
        (json!({ "type": "integer", "multipleOf": 4 }), json!(4)),
        (
            json!({ "type": "number", "minimum": 0.5, "maximum": 0.9 }),
            json!(0.7),
        ),
        (json!({ "type": "boolean" }), json!(true)),
        (json!({ "x-kubernetes-int-or-string": true }), json!(1)),
        (
            json!({ "type": "array", "items": text, "minItems": 2, "x-kubernetes-list-type": "set" }),
            json!(["example", "example-2"]),
        ),
        (
            json!({ "type": "array", "items": text, "maxItems": 0 }),
            json!([]),
        ),
        (
            json!({ "type": "object", "additionalProperties": text, "minProperties": 1 }),
            json!({ "key": "example" }),
        ),
        (json!({ "x-kubernetes-preserve-unknown-fields": true }), json!({})),
    ] {
        check_value(schema, expected);
    }
}

#[test]
fn picks_valid_combination_of_fields() {
    let text = json!({ "type": "string" });
    let with = |keys: Value| {
        let mut schema = json!({ "properties": { "a": text, "b": text } });
        schema
            .as_object_mut()
            .expect("an object")
            .extend(keys.as_object().expect("keys").clone());
        schema
    };
    let exactly_one = "[has(self.a),has(self.b)].filter(x,x==true).size() == 1";
    for (keys, expected) in [
        (json!({}), json!({})),
        (
            json!({ "oneOf": [{ "required": ["b"] }, { "required": ["a"] }] }),
            json!({ "b": "example" }),
        ),
        (
            json!({ "required": ["a"], "oneOf": [{ "not": { "required": ["a"] } }, { "required": ["b"] }] }),
            json!({ "a": "example", "b": "example" }),
        ),
        (
            json!({ "anyOf": [{ "required": ["a", "b"] }] }),
            json!({ "a": "example", "b": "example" }),
        ),
        (json!({ "minProperties": 1 }), json!({ "a": "example" })),
        (
            json!({ "x-kubernetes-validations": [{ "rule": exactly_one }] }),
            json!({ "a": "example" }),
        ),
        (
            json!({ "x-kubernetes-validations": [{ "rule": "!has(self.a) || has(self.b)" }] }),
            json!({}),
        ),
    ] {
        check(with(keys), expected);
    }
}

use serde_json::json;

use super::*;

fn applied(markers: Value, schema: Value) -> (Value, Vec<String>) {
    let markers: Markers = serde_json::from_value(markers).expect("markers");
    let mut schema: Schema = serde_json::from_value(schema).expect("a schema");
    let mut diagnostics = Vec::new();
    apply_markers(&markers, &mut schema, &mut diagnostics);
    let messages = diagnostics
        .into_iter()
        .map(|diagnostic| diagnostic.message)
        .collect();
    (serde_json::to_value(schema).expect("JSON"), messages)
}

fn check(markers: Value, schema: Value, expected: Value) {
    assert_eq!(
        applied(markers.clone(), schema.clone()),
        (expected, vec![]),
        "{markers} on {schema}"
    );
}

fn refused(markers: Value, schema: Value, message: &str) {
    assert_eq!(
        applied(markers.clone(), schema.clone()).1,
        [message],
        "{markers} on {schema}"
    );
}

/// Both the type of the value and the marker have constraints.
fn both(constraints: Value, of_type: Value, expected: Value) {
    check(json!({"stated": constraints}), of_type, expected);
}

#[test]
fn tighter_bound_wins() {
    let number = |rest: Value| {
        let mut schema = json!({"type": "number"});
        schema
            .as_object_mut()
            .expect("a map")
            .extend(rest.as_object().expect("a map").clone());
        schema
    };
    both(
        json!({"minimum": 1}),
        number(json!({"minimum": 2})),
        number(json!({"minimum": 2})),
    );
    both(
        json!({"minimum": 3}),
        number(json!({"minimum": 2})),
        number(json!({"minimum": 3})),
    );
    both(
        json!({"maximum": 3}),
        number(json!({"maximum": 2})),
        number(json!({"maximum": 2})),
    );
    both(
        json!({"maximum": 2, "exclusiveMaximum": true}),
        number(json!({"maximum": 2})),
        number(json!({"maximum": 2, "exclusiveMaximum": true})),
    );
    both(
        json!({"minimum": 3}),
        number(json!({"minimum": 2, "exclusiveMinimum": true})),
        number(json!({"minimum": 3})),
    );
    let text = |least: u64, most: u64| json!({"type": "string", "minLength": least, "maxLength": most});
    both(json!({"minLength": 2, "maxLength": 8}), text(1, 9), text(2, 8));
    both(json!({"minLength": 1, "maxLength": 9}), text(2, 8), text(2, 8));
    let list = |least: u64, most: u64| json!({"type": "array", "minItems": least, "maxItems": most});
    both(json!({"minItems": 2, "maxItems": 8}), list(1, 9), list(2, 8));
    let map =
        |least: u64, most: u64| json!({"type": "object", "minProperties": least, "maxProperties": most});
    both(
        json!({"minProperties": 2, "maxProperties": 8}),
        map(1, 9),
        map(2, 8),
    );
}

#[test]
fn incomparable_constraints_are_both_kept() {
    both(
        json!({"pattern": "b"}),
        json!({"type": "string", "pattern": "a"}),
        json!({"type": "string", "pattern": "a", "allOf": [{"pattern": "b"}]}),
    );
    both(
        json!({"pattern": "a"}),
        json!({"type": "string", "pattern": "a"}),
        json!({"type": "string", "pattern": "a"}),
    );
    both(
        json!({"multipleOf": 3}),
        json!({"type": "integer", "multipleOf": 2}),
        json!({"type": "integer", "multipleOf": 2, "allOf": [{"multipleOf": 3}]}),
    );
}

#[test]
fn field_overrides_type() {
    let of_type = json!({"type": "string", "default": "a", "title": "A", "format": "uri", "x-kubernetes-validations": [{"rule": "2"}]});
    check(
        json!({"default": "b@c", "stated": {"format": "email", "title": "B"}, "cel": [{"rule": "1"}]}),
        of_type,
        json!({"type": "string", "default": "b@c", "title": "B", "format": "email", "x-kubernetes-validations": [{"rule": "1"}, {"rule": "2"}]}),
    );
    check(
        json!({"stated": {"type": "string", "minLength": 1}}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "description": "d"}),
        json!({"type": "string", "minLength": 1, "description": "d"}),
    );
}

#[test]
fn map_keys_become_rules() {
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let (schema, diagnostics) = applied(
        json!({"keys": {"stated": {"minLength": 1, "maxLength": 9, "enum": ["a", "b'"]}}}),
        map.clone(),
    );
    assert_eq!(diagnostics, Vec::<String>::new());
    let rules: Vec<_> = schema["x-kubernetes-validations"]
        .as_array()
        .expect("rules")
        .iter()
        .map(|rule| rule["rule"].as_str().expect("a rule"))
        .collect();
    assert_eq!(
        rules,
        [
            "self.all(key, size(key) >= 1)",
            "self.all(key, size(key) <= 9)",
            "self.all(key, key in ['a', 'b\\''])"
        ]
    );
    refused(
        json!({"keys": {"nullable": true}}),
        map,
        "`keys(…)` supports only `min_length`, `max_length`, `pattern`, `enum` and `cel`",
    );
}

#[test]
fn rejects_contradictions() {
    let text = || json!({"type": "string", "maxLength": 3});
    refused(
        json!({"stated": {"minLength": 4}}),
        text(),
        "minimum 4 is greater than maximum 3",
    );
    refused(
        json!({"stated": {"maxItems": 4}}),
        text(),
        "`max_items` applies to lists; this value is a string",
    );
    refused(
        json!({"stated": {"minimum": 0.5}}),
        json!({"type": "integer"}),
        "expected an integer for `minimum`, found `0.5`",
    );
    refused(
        json!({"stated": {"enum": [1]}}),
        text(),
        "invalid `enum` value: expected a string, found 1",
    );
    refused(
        json!({"items": {}}),
        text(),
        "`items` applies to a list; this value is not one",
    );
    refused(
        json!({"topology": {"list_type": "set"}}),
        text(),
        "`list_type` applies to lists; this value is not a list",
    );
    refused(
        json!({"topology": {"map_type": "atomic"}}),
        text(),
        "`map_type` and `struct_type` apply to objects; this value is not an object",
    );
    refused(
        json!({"embedded_resource": true}),
        text(),
        "`embedded_resource` applies to objects",
    );
    refused(
        json!({"embedded_resource": true}),
        json!({"type": "object"}),
        "an embedded resource needs `properties` or `preserve_unknown_fields`",
    );
    refused(
        json!({"default": "long"}),
        text(),
        "invalid default: expected at most 3 characters, found 4",
    );
}

#[test]
fn rejects_unsatisfiable_constraints() {
    let number = || json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 255});
    for (validation, schema, diagnostic) in [
        (
            json!({"minimum": 300}),
            number(),
            "minimum 300 is greater than maximum 255",
        ),
        (
            json!({"maximum": -1}),
            number(),
            "minimum 0 is greater than maximum -1",
        ),
        (
            json!({"minimum": 2, "maximum": 3, "exclusiveMinimum": true, "exclusiveMaximum": true}),
            number(),
            "no value is valid: there is no integer between the bounds",
        ),
        (
            json!({"minimum": 5, "maximum": 9, "multipleOf": 10}),
            number(),
            "no value is valid: there is no multiple of 10 between the bounds",
        ),
        (
            json!({"minimum": 0.25, "maximum": 0.4, "multipleOf": 0.5}),
            json!({"type": "number"}),
            "no value is valid: there is no multiple of 0.5 between the bounds",
        ),
        (
            json!({"minimum": 3_000_000_000_u32}),
            json!({"type": "integer", "format": "int32"}),
            "no value is valid: the bound 3000000000 is outside of the range of the format `int32`",
        ),
        (
            json!({"minimum": u64::MAX}),
            json!({"type": "integer", "format": "int64"}),
            "no value is valid: the bound 18446744073709551615 is outside of the range of the format `int64`",
        ),
        (
            json!({"minLength": 4}),
            json!({"type": "string", "maxLength": 3}),
            "minimum 4 is greater than maximum 3",
        ),
        (
            json!({"minItems": 3}),
            json!({"type": "array", "items": {"type": "boolean"}, "x-kubernetes-list-type": "set"}),
            "no value is valid: at least 3 items are required, but only 2 different ones exist",
        ),
        (
            json!({"minItems": 3}),
            json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "x-kubernetes-list-type": "set"}),
            "no value is valid: at least 3 items are required, but only 2 different ones exist",
        ),
        (
            json!({"minItems": 4}),
            json!({
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "integer", "minimum": 1, "maximum": 3}}},
            }),
            "no value is valid: at least 4 items are required, but only 3 different ones exist",
        ),
        (
            json!({"maxProperties": 1}),
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a", "b"]}),
            "no value is valid: 2 fields are required, but at most 1 are allowed",
        ),
        (
            json!({"minProperties": 2}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            "no value is valid: at least 2 fields are required, but only 1 exist",
        ),
        (
            json!({"maxLength": 1}),
            json!({"type": "string", "enum": ["aa", "bb"]}),
            "no value of the `enum` is valid: expected at most 1 characters, found 2",
        ),
        (
            json!({"enum": [1, 10], "maximum": 5}),
            json!({"type": "integer"}),
            "`enum` value can never be valid: 10 is greater than the maximum 5",
        ),
        (
            json!({"enum": ["10.0.0.1", "localhost"], "format": "ipv4"}),
            json!({"type": "string"}),
            "`enum` value can never be valid: \"localhost\" is not a valid `ipv4`, such as \"10.0.0.1\"",
        ),
        (
            json!({"format": "date-time"}),
            json!({"type": "integer"}),
            "the format `date-time` applies to strings; this value is an integer",
        ),
        (
            json!({"format": "int64"}),
            json!({"type": "number"}),
            "the format `int64` applies to integers; this value is a number",
        ),
        (
            json!({"oneOf": [{"type": "string"}]}),
            json!({"type": "string"}),
            "invalid alternative `.oneOf[0]`: an alternative cannot have `type`",
        ),
        (
            json!({"anyOf": [{"required": ["b"], "properties": {"b": {"minLength": 1}}}]}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            "invalid alternative `.anyOf[0]`: the alternative names the unknown field `b`",
        ),
    ] {
        refused(json!({ "stated": validation }), schema, diagnostic);
    }
}

#[test]
fn keeps_satisfiable_constraints() {
    let kept = |validation: Value, schema: Value, expected: Value| {
        check(json!({ "stated": validation }), schema, expected);
    };
    kept(
        json!({"minimum": 0.2, "maximum": 0.6, "multipleOf": 0.1}),
        json!({"type": "number"}),
        json!({"type": "number", "minimum": 0.2, "maximum": 0.6, "multipleOf": 0.1}),
    );
    kept(
        json!({"minItems": 2}),
        json!({"type": "array", "items": {"type": "boolean"}}),
        json!({"type": "array", "items": {"type": "boolean"}, "minItems": 2}),
    );
    // The API server can't represent these bounds, which are implied by the format anyway.
    kept(
        json!({"minimum": i64::MIN, "maximum": i64::MAX}),
        json!({"type": "integer", "format": "int64"}),
        json!({"type": "integer", "format": "int64"}),
    );
    kept(
        json!({"maximum": u32::MAX}),
        json!({"type": "integer", "format": "int32"}),
        json!({"type": "integer", "format": "int32"}),
    );
    kept(
        json!({"enum": ["A"]}),
        json!({"type": "string", "enum": ["A", "B"], "maxLength": 1}),
        json!({"type": "string", "enum": ["A"], "maxLength": 1}),
    );
    kept(
        json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}),
        json!({
            "type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        }),
    );
}

/// The API server never matches `null` in an `enum`, so the `enum` of a nullable value goes under
/// `allOf`, where `null` isn't checked.
#[test]
fn nullable_enum_accepts_null() {
    let nullable = json!({"type": "string", "nullable": true, "allOf": [{"enum": ["A", "B"]}]});
    check(
        json!({"nullable": true}),
        json!({"type": "string", "enum": ["A", "B"]}),
        nullable.clone(),
    );
    let with_null = json!({"nullable": true, "stated": {"enum": ["A", "B", null]}});
    check(with_null, json!({"type": "string"}), nullable);
    check(
        json!({"nullable": true, "default": null}),
        json!({"type": "string", "default": "a"}),
        json!({"type": "string", "nullable": true}),
    );
    refused(
        json!({"default": null}),
        json!({"type": "string"}),
        "invalid default: `null` is not allowed",
    );
    refused(
        json!({"stated": {"enum": ["A", null]}}),
        json!({"type": "string"}),
        "invalid `enum` value: `null` is not allowed",
    );
}

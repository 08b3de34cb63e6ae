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

/// Constraints of a marker on a value whose type has constraints too.
fn both(constraints: Value, of_type: Value, expected: Value) {
    check(json!({"validation": constraints}), of_type, expected);
}

#[test]
fn the_tighter_bound_holds() {
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
        json!({"maximum": 2, "exclusive_maximum": true}),
        number(json!({"maximum": 2})),
        number(json!({"maximum": 2, "exclusiveMaximum": true})),
    );
    both(
        json!({"minimum": 3}),
        number(json!({"minimum": 2, "exclusiveMinimum": true})),
        number(json!({"minimum": 3})),
    );
    let text = |least: u64, most: u64| json!({"type": "string", "minLength": least, "maxLength": most});
    both(json!({"min_length": 2, "max_length": 8}), text(1, 9), text(2, 8));
    both(json!({"min_length": 1, "max_length": 9}), text(2, 8), text(2, 8));
    let list = |least: u64, most: u64| json!({"type": "array", "minItems": least, "maxItems": most});
    both(json!({"min_items": 2, "max_items": 8}), list(1, 9), list(2, 8));
    let map =
        |least: u64, most: u64| json!({"type": "object", "minProperties": least, "maxProperties": most});
    both(
        json!({"min_properties": 2, "max_properties": 8}),
        map(1, 9),
        map(2, 8),
    );
}

#[test]
fn what_has_no_tighter_form_is_kept_twice() {
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
        json!({"multiple_of": 3}),
        json!({"type": "integer", "multipleOf": 2}),
        json!({"type": "integer", "multipleOf": 2, "allOf": [{"multipleOf": 3}]}),
    );
}

#[test]
fn the_field_has_the_last_word() {
    let of_type = json!({"type": "string", "default": "a", "title": "A", "format": "uri", "x-kubernetes-validations": [{"rule": "2"}]});
    check(
        json!({"default": "b@c", "title": "B", "validation": {"format": "email"}, "cel": [{"rule": "1"}]}),
        of_type,
        json!({"type": "string", "default": "b@c", "title": "B", "format": "email", "x-kubernetes-validations": [{"rule": "1"}, {"rule": "2"}]}),
    );
    check(
        json!({"validation": {"schema_type": "string", "min_length": 1}}),
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "description": "d"}),
        json!({"type": "string", "minLength": 1, "description": "d"}),
    );
}

#[test]
fn keys_of_maps_are_held_by_rules() {
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let (schema, diagnostics) = applied(
        json!({"keys": {"validation": {"min_length": 1, "max_length": 9, "enumeration": ["a", "b'"]}}}),
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
        "`keys` can say less than that",
    );
}

#[test]
fn contradictions_are_refused() {
    let text = || json!({"type": "string", "maxLength": 3});
    refused(
        json!({"validation": {"min_length": 4}}),
        text(),
        "no value fits: the least is 4 and the most is 3",
    );
    refused(
        json!({"validation": {"max_items": 4}}),
        text(),
        "`max_items` is about lists, and this is text",
    );
    refused(
        json!({"validation": {"minimum": 0.5}}),
        json!({"type": "integer"}),
        "`minimum = 0.5` on a whole number",
    );
    refused(
        json!({"validation": {"enumeration": [1]}}),
        text(),
        "`enum` holds a wrong value: 1 is not text",
    );
    refused(
        json!({"items": {}}),
        text(),
        "`items` is about a list, and this is none",
    );
    refused(
        json!({"topology": {"list_type": "set"}}),
        text(),
        "`list_type` is about lists, and this is none",
    );
    refused(
        json!({"topology": {"map_type": "atomic"}}),
        text(),
        "`map_type` and `struct_type` are about objects, and this is none",
    );
    refused(
        json!({"embedded_resource": true}),
        text(),
        "`embedded_resource` is about objects",
    );
    refused(
        json!({"embedded_resource": true}),
        json!({"type": "object"}),
        "an embedded resource needs fields, or leave to have any",
    );
    refused(
        json!({"default": "long"}),
        text(),
        "the default does not fit: it has 4 characters, and the most is 3",
    );
}

#[test]
fn constraints_that_nothing_meets_are_refused() {
    let number = || json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 255});
    for (validation, schema, diagnostic) in [
        (
            json!({"minimum": 300}),
            number(),
            "no value fits: the least is 300 and the most is 255",
        ),
        (
            json!({"maximum": -1}),
            number(),
            "no value fits: the least is 0 and the most is -1",
        ),
        (
            json!({"minimum": 2, "maximum": 3, "exclusive_minimum": true, "exclusive_maximum": true}),
            number(),
            "no value fits: there is no whole number between the bounds",
        ),
        (
            json!({"minimum": 5, "maximum": 9, "multiple_of": 10}),
            number(),
            "no value fits: there is no multiple of 10 between the bounds",
        ),
        (
            json!({"minimum": 0.25, "maximum": 0.4, "multiple_of": 0.5}),
            json!({"type": "number"}),
            "no value fits: there is no multiple of 0.5 between the bounds",
        ),
        (
            json!({"minimum": 3_000_000_000_u32}),
            json!({"type": "integer", "format": "int32"}),
            "no value fits: the bound 3000000000 is beyond what the format `int32` holds",
        ),
        (
            json!({"minimum": u64::MAX}),
            json!({"type": "integer", "format": "int64"}),
            "no value fits: the bound 18446744073709551615 is beyond what the format `int64` holds",
        ),
        (
            json!({"min_length": 4}),
            json!({"type": "string", "maxLength": 3}),
            "no value fits: the least is 4 and the most is 3",
        ),
        (
            json!({"min_items": 3}),
            json!({"type": "array", "items": {"type": "boolean"}, "x-kubernetes-list-type": "set"}),
            "no value fits: it needs 3 items, and at most 2 of them can differ",
        ),
        (
            json!({"min_items": 3}),
            json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "x-kubernetes-list-type": "set"}),
            "no value fits: it needs 3 items, and at most 2 of them can differ",
        ),
        (
            json!({"min_items": 4}),
            json!({
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "integer", "minimum": 1, "maximum": 3}}},
            }),
            "no value fits: it needs 4 items, and at most 3 of them can differ",
        ),
        (
            json!({"max_properties": 1}),
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a", "b"]}),
            "no value fits: 2 fields are required, and the most is 1",
        ),
        (
            json!({"min_properties": 2}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            "no value fits: there are 1 fields, and the least is 2",
        ),
        (
            json!({"max_length": 1}),
            json!({"type": "string", "enum": ["aa", "bb"]}),
            "no value of the `enum` fits: it has 2 characters, and the most is 1",
        ),
        (
            json!({"enumeration": [1, 10], "maximum": 5}),
            json!({"type": "integer"}),
            "`enum` holds a value that is never accepted: 10 is above the maximum, 5",
        ),
        (
            json!({"enumeration": ["10.0.0.1", "localhost"], "format": "ipv4"}),
            json!({"type": "string"}),
            "`enum` holds a value that is never accepted: \"localhost\" is no `ipv4`, such as \"10.0.0.1\"",
        ),
        (
            json!({"format": "date-time"}),
            json!({"type": "integer"}),
            "the format `date-time` is about text, and this is a whole number",
        ),
        (
            json!({"format": "int64"}),
            json!({"type": "number"}),
            "the format `int64` is about whole numbers, and this is a number",
        ),
        (
            json!({"alternatives": {"oneOf": [{"type": "string"}]}}),
            json!({"type": "string"}),
            "the API server refuses `.oneOf[0]`: an alternative cannot have `type`",
        ),
        (
            json!({"alternatives": {"anyOf": [{"required": ["b"], "properties": {"b": {"minLength": 1}}}]}}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            "the API server refuses `.anyOf[0]`: there is no field `b` for the alternative",
        ),
    ] {
        refused(json!({ "validation": validation }), schema, diagnostic);
    }
}

#[test]
fn constraints_that_something_meets_are_kept() {
    let kept = |validation: Value, schema: Value, expected: Value| {
        check(json!({ "validation": validation }), schema, expected);
    };
    kept(
        json!({"minimum": 0.2, "maximum": 0.6, "multiple_of": 0.1}),
        json!({"type": "number"}),
        json!({"type": "number", "minimum": 0.2, "maximum": 0.6, "multipleOf": 0.1}),
    );
    kept(
        json!({"min_items": 2}),
        json!({"type": "array", "items": {"type": "boolean"}}),
        json!({"type": "array", "items": {"type": "boolean"}, "minItems": 2}),
    );
    // A bound that the format sets anyway cannot be written.
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
        json!({"enumeration": ["A"]}),
        json!({"type": "string", "enum": ["A", "B"], "maxLength": 1}),
        json!({"type": "string", "enum": ["A"], "maxLength": 1}),
    );
    kept(
        json!({"alternatives": {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}}),
        json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}),
        json!({
            "type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        }),
    );
}

/// The API server finds `null` in no `enum`, so the `enum` of a nullable value stands where it is not asked of `null`.
#[test]
fn null_is_accepted_where_it_is_allowed() {
    let nullable = json!({"type": "string", "nullable": true, "allOf": [{"enum": ["A", "B"]}]});
    check(
        json!({"nullable": true}),
        json!({"type": "string", "enum": ["A", "B"]}),
        nullable.clone(),
    );
    let with_null = json!({"nullable": true, "validation": {"enumeration": ["A", "B", null]}});
    check(with_null, json!({"type": "string"}), nullable);
    check(
        json!({"nullable": true, "default": null}),
        json!({"type": "string", "default": "a"}),
        json!({"type": "string", "nullable": true}),
    );
    refused(
        json!({"default": null}),
        json!({"type": "string"}),
        "the default does not fit: `null` is not allowed",
    );
    refused(
        json!({"validation": {"enumeration": ["A", null]}}),
        json!({"type": "string"}),
        "`enum` holds a wrong value: `null` is not allowed",
    );
}

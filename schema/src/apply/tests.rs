use serde_json::json;

use super::*;

fn applied(markers: Value, schema: Value) -> (Value, Vec<String>) {
    let markers: Markers = serde_json::from_value(markers).expect("markers");
    let mut schema: Schema = serde_json::from_value(schema).expect("a schema");
    let mut complaints = Vec::new();
    apply(&markers, &mut schema, &mut complaints);
    let messages = complaints
        .into_iter()
        .map(|complaint| complaint.message)
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
        json!({"default": "b", "title": "B", "validation": {"format": "email"}, "cel": [{"rule": "1"}]}),
        of_type,
        json!({"type": "string", "default": "b", "title": "B", "format": "email", "x-kubernetes-validations": [{"rule": "1"}, {"rule": "2"}]}),
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
    let (schema, complaints) = applied(
        json!({"keys": {"validation": {"min_length": 1, "max_length": 9, "enumeration": ["a", "b'"]}}}),
        map.clone(),
    );
    assert_eq!(complaints, Vec::<String>::new());
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

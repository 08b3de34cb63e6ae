use serde_json::json;

use super::*;

fn check(schemars: Value, expected: Result<Value, &str>) {
    let definitions = json!({
        "Leaf": {"type": "string", "minLength": 1},
        "Duration": {"type": "object", "required": ["secs", "nanos"], "properties": {
            "secs": {"type": "integer", "format": "uint64", "minimum": 0},
            "nanos": {"type": "integer", "format": "uint32", "minimum": 0},
        }},
        "Node": {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}}},
    });
    let imported = import_schema(&schemars, definitions.as_object().expect("a map"), &|_| None);
    let imported = imported.map(|schema| serde_json::to_value(schema).expect("JSON"));
    assert_eq!(imported, expected.map_err(str::to_owned), "{schemars}");
}

#[test]
fn converts_to_structural_form() {
    check(
        json!(true),
        Ok(json!({"x-kubernetes-preserve-unknown-fields": true})),
    );
    check(
        json!({"type": ["string", "null"], "enum": ["A", null]}),
        Ok(json!({"type": "string", "enum": ["A"]})),
    );
    check(
        json!({"anyOf": [{"$ref": "#/$defs/Leaf"}, {"type": "null"}]}),
        Ok(json!({"type": "string", "minLength": 1})),
    );
    check(
        json!({"type": "integer", "format": "uint8", "minimum": 0, "maximum": 255}),
        Ok(json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 255})),
    );
    check(
        json!({"type": "integer", "format": "uint32", "minimum": 1}),
        Ok(json!({"type": "integer", "format": "int64", "minimum": 1, "maximum": u32::MAX})),
    );
    check(
        json!({"type": "array", "items": {"type": ["integer", "null"], "format": "int32"}}),
        Ok(json!({"type": "array", "items": {"type": "integer", "format": "int32", "nullable": true}})),
    );
    check(
        json!({"type": "object", "additionalProperties": {"anyOf": [{"$ref": "#/$defs/Leaf"}, {"type": "null"}]}}),
        Ok(
            json!({"type": "object", "additionalProperties": {"type": "string", "minLength": 1, "nullable": true}}),
        ),
    );
    for format in [
        "ip",
        "duration",
        "zoned-date-time",
        "partial-date-time",
        "partial-time",
    ] {
        check(
            json!({"type": "string", "format": format}),
            Ok(json!({"type": "string"})),
        );
    }
    for format in ["date-time", "date", "uri", "uuid"] {
        let schema = json!({"type": "string", "format": format});
        check(schema.clone(), Ok(schema));
    }
    check(
        json!({"type": "object", "additionalProperties": true}),
        Ok(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
    );
    check(
        json!({"type": "object", "additionalProperties": false, "patternProperties": {"^\\d+$": {"type": "boolean"}}}),
        Ok(json!({"type": "object", "additionalProperties": {"type": "boolean"}})),
    );
    check(
        json!({"type": "object", "additionalProperties": false, "properties": {"A": {"type": "boolean"}}}),
        Ok(json!({"type": "object", "properties": {"A": {"type": "boolean"}}})),
    );
    check(
        json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}}),
        Ok(json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"})),
    );
    check(
        json!({"$ref": "#/$defs/io.k8s.apimachinery.pkg.apis.meta.v1.Time"}),
        Ok(json!({"type": "string", "format": "date-time"})),
    );
    check(
        json!({"oneOf": [{"type": "string", "enum": ["A"]}, {"type": "string", "const": "B"}]}),
        Ok(json!({"type": "string", "enum": ["A", "B"]})),
    );
}

#[test]
fn structural_schemas_are_unchanged() {
    let own = json!({
        "type": "object", "description": "d", "default": {}, "x-kubernetes-map-type": "atomic",
        "properties": {"a": {"type": "integer", "format": "int64", "minimum": 0}},
        "oneOf": [{"required": ["a"]}],
    });
    let mut tagged = own.clone();
    tagged[OWN] = json!(true);
    check(tagged.clone(), Ok(own.clone()));
    check(json!({"anyOf": [tagged, {"type": "null"}]}), Ok(own));
}

#[test]
fn rejects_what_has_no_structural_form() {
    check(
        json!({"type": "null"}),
        Err("it is `null` in JSON, which a CRD cannot store"),
    );
    check(
        json!({"type": "array", "prefixItems": [true]}),
        Err("it is a tuple; the items of a list in a CRD have one type"),
    );
    check(
        json!({"type": "integer", "format": "uint128"}),
        Err("a CRD has no format for 128-bit integers; use a string"),
    );
    check(
        json!({"$ref": "#/$defs/Duration"}),
        Err(
            "a `std::time::Duration` is an object of seconds and nanoseconds in JSON, not a duration as in \
             Kubernetes: use `kube::core::Duration`, which is a string such as `1h30m`",
        ),
    );
    check(
        json!({"$ref": "#/$defs/Node"}),
        Err("at `next`: it contains itself: Node -> Node"),
    );
}

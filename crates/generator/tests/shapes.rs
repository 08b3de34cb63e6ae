//! Each row is a kind of value in Rust and serde, with its schema. The library's twin test compiles
//! the same types.

use crate::support;

use serde_json::{Value, json};
use support::spec;

/// Also checks if the field `a` is required.
#[track_caller]
fn check(field: &str, items: &str, expected: (Value, Presence)) {
    let found = spec(field, items).unwrap_or_else(|said| panic!("{field} {items}: {said:#?}"));
    let mut property = found["properties"]["a"].clone();
    if let Some(property) = property.as_object_mut() {
        property.remove("description");
    }
    assert_eq!(property, expected.0, "{field} {items}");
    let is_required = found["required"]
        .as_array()
        .is_some_and(|names| names.contains(&json!("a")));
    assert_eq!(is_required, expected.1 == Presence::Required, "{field} {items}");
}

/// The field `a` has this type, and is required.
#[track_caller]
fn shape(ty: &str, items: &str, expected: Value) {
    check(&format!("a: {ty}"), items, (expected, Presence::Required));
}

/// Checks the schema of the whole spec.
#[track_caller]
fn whole(fields: &str, items: &str, expected: Value) {
    assert_eq!(spec(fields, items), Ok(expected), "{fields} {items}");
}

/// `message` and `help` are parts of the error.
#[track_caller]
fn refused(fields: &str, items: &str, message: &str, help: &str) {
    let said = match spec(fields, items) {
        Ok(schema) => panic!("{fields} {items} is accepted: {schema}"),
        Err(said) => said,
    };
    let is_told = |(text, advice): &support::Said| text.contains(message) && advice.contains(help);
    assert!(
        said.iter().any(is_told) && said.len() == 1,
        "{fields} {items}: {said:#?}"
    );
}

#[derive(PartialEq)]
enum Presence {
    Required,
    Optional,
}

const D: &str = "#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]";

fn item(attrs: &str, rest: &str) -> String {
    format!("{D} {attrs} pub {rest}")
}

fn any() -> Value {
    json!({"x-kubernetes-preserve-unknown-fields": true})
}

fn any_object() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

fn integer(minimum: i64, maximum: i64) -> Value {
    json!({"type": "integer", "format": "int32", "minimum": minimum, "maximum": maximum})
}

#[test]
fn numbers() {
    shape("i8", "", integer(-128, 127));
    // A module of the same name doesn't shadow a primitive type.
    shape("u8", "use std::u8;", integer(0, 255));
    shape("i8", "mod i8 {}", integer(-128, 127));
    shape("i16", "", integer(-32768, 32767));
    shape("u8", "", integer(0, 255));
    shape("u16", "", integer(0, 65535));
    shape("i32", "", json!({"type": "integer", "format": "int32"}));
    shape("i64", "", json!({"type": "integer", "format": "int64"}));
    shape("isize", "", json!({"type": "integer", "format": "int64"}));
    shape(
        "u32",
        "",
        json!({"type": "integer", "format": "int64", "minimum": 0, "maximum": u32::MAX}),
    );
    for wide in ["u64", "usize"] {
        shape(
            wide,
            "",
            json!({"type": "integer", "format": "int64", "minimum": 0}),
        );
    }
    for huge in ["i128", "u128"] {
        refused(
            &format!("a: {huge}"),
            "",
            "128-bit integers",
            "schema_type = \"String\"",
        );
    }
    shape("f32", "", json!({"type": "number", "format": "float"}));
    shape("f64", "", json!({"type": "number", "format": "double"}));
    let not_zero = json!({"type": "integer", "format": "int32", "not": {"enum": [0]}});
    shape("NonZeroI32", "", not_zero.clone());
    shape("NonZero<i32>", "", not_zero);
    shape("NonZero<u8>", "", integer(1, 255));
    shape("Wrapping<i8>", "", integer(-128, 127));
    shape("Saturating<u8>", "", integer(0, 255));
    shape("bool", "", json!({"type": "boolean"}));
    shape(
        "char",
        "",
        json!({"type": "string", "minLength": 1, "maxLength": 1}),
    );
}

#[test]
fn pointers_have_the_schema_of_their_target() {
    let text = json!({"type": "string"});
    for ty in [
        "String",
        "&'static str",
        "Cow<'static, str>",
        "Box<str>",
        "Rc<str>",
        "Arc<String>",
        "Box<Box<String>>",
        "std::cell::RefCell<String>",
        "std::sync::Mutex<String>",
        "std::path::PathBuf",
    ] {
        shape(ty, "", text.clone());
    }
    shape(
        "Cow<'static, [u8]>",
        "",
        json!({"type": "array", "items": integer(0, 255)}),
    );
}

#[test]
fn options_may_be_absent_but_not_null() {
    let number = || json!({"type": "integer", "format": "int32"});
    for ty in [
        "Option<i32>",
        "Option<Option<i32>>",
        "Box<Option<i32>>",
        "Option<Box<i32>>",
        "Maybe<i32>",
    ] {
        check(
            &format!("a: {ty}"),
            "type Maybe<T> = Option<T>;",
            (number(), Presence::Optional),
        );
    }
    let names = &item("", "enum E { A, B }");
    check(
        "a: Option<E>",
        names,
        (json!({"type": "string", "enum": ["A", "B"]}), Presence::Optional),
    );
    // If nothing drops `null`, it has to be allowed.
    let nullable = json!({"type": "integer", "format": "int32", "nullable": true});
    shape(
        "Vec<Option<i32>>",
        "",
        json!({"type": "array", "items": nullable}),
    );
    shape(
        "BTreeSet<Option<i32>>",
        "",
        json!({"type": "array", "items": nullable}),
    );
    shape(
        "BTreeMap<String, Option<i32>>",
        "",
        json!({"type": "object", "additionalProperties": nullable}),
    );
    shape("Held", &item("", "struct Held(Option<i32>);"), nullable.clone());
    let transparent = item("#[serde(transparent)]", "struct Held { inner: Option<i32> }");
    check("a: Held", &transparent, (nullable, Presence::Optional));
}

#[test]
fn lists_and_maps() {
    shape("Vec<u8>", "", json!({"type": "array", "items": integer(0, 255)}));
    shape(
        "[bool; 3]",
        "",
        json!({"type": "array", "items": {"type": "boolean"}, "minItems": 3, "maxItems": 3}),
    );
    for set in [
        "BTreeSet<String>",
        "HashSet<String>",
        "indexmap::IndexSet<String>",
    ] {
        shape(
            set,
            "",
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        );
    }
    let object = &item("", "struct O {}");
    shape(
        "BTreeSet<O>",
        object,
        json!({"type": "array", "items": {"type": "object"}}),
    );
    for key in ["String", "u32", "i64", "bool", "char", "Name"] {
        shape(
            &format!("HashMap<{key}, bool>"),
            &item("", "struct Name(String);"),
            json!({"type": "object", "additionalProperties": {"type": "boolean"}}),
        );
    }
    shape(
        "BTreeMap<E, bool>",
        &item("#[serde(rename_all = \"lowercase\")]", "enum E { On, Off }"),
        json!({"type": "object", "properties": {"on": {"type": "boolean"}, "off": {"type": "boolean"}}}),
    );
    refused(
        "a: BTreeMap<O, bool>",
        object,
        "map keys must be strings",
        "String",
    );
    refused(
        "a: BTreeMap<Vec<i32>, bool>",
        "",
        "map keys must be strings",
        "String",
    );
}

#[test]
fn open_content() {
    shape("serde_json::Value", "", any());
    shape("serde_json::Map<String, serde_json::Value>", "", any_object());
    shape("Map<String, serde_json::Value>", "", any_object());
    shape("BTreeMap<String, serde_json::Value>", "", any_object());
    shape(
        "k8s_openapi::apimachinery::pkg::runtime::RawExtension",
        "",
        any_object(),
    );
    shape(
        "Vec<serde_json::Value>",
        "",
        json!({"type": "array", "items": any()}),
    );
}

#[test]
fn reports_types_without_crd_schema() {
    refused("a: ()", "", "`()` is `null`", "remove the field");
    refused(
        "a: (i32, String)",
        "",
        "a tuple has no structural schema",
        "named fields",
    );
    refused(
        "a: Vec<(i32, i32)>",
        "",
        "a tuple has no structural schema",
        "named fields",
    );
    refused("a: U", &item("", "struct U;"), "a unit struct is `null`", "{}");
    refused(
        "a: T",
        &item("", "struct T(i32, i32);"),
        "a tuple struct",
        "name the fields",
    );
    refused(
        "a: E",
        &item("", "enum E { A(i32, i32) }"),
        "is a tuple",
        "name the fields",
    );
    refused("a: PhantomData<i32>", "", "`null` in JSON", "#[serde(skip)]");
    refused(
        "a: Duration",
        "",
        "seconds and nanoseconds",
        "kube::core::Duration",
    );
    refused(
        "a: std::time::SystemTime",
        "",
        "seconds and nanoseconds",
        "k8s_openapi::apimachinery::pkg::apis::meta::v1::Time",
    );
    refused("a: fn()", "", "has no schema", "schema_type");
    refused("a: Box<dyn std::fmt::Debug>", "", "has no schema", "schema_type");
    refused("a: <T as X>::Y", "", "has no schema", "schema_type");
    refused(
        "a: Grow<i32>",
        &item("", "struct Grow<T> { value: T, next: Option<Box<Grow<Vec<T>>>> }"),
        "contains itself: Grow → Grow",
        "#[kube(schemaless, preserve_unknown_fields)]",
    );
    refused(
        "a: Node",
        &item("", "struct Node { next: Option<Box<Node>> }"),
        "contains itself: Node → Node",
        "#[kube(schemaless, preserve_unknown_fields)]",
    );
}

#[test]
fn unit_enums() {
    shape(
        "E",
        &item("", "enum E { /// One.\n B, A }"),
        json!({"type": "string", "enum": ["B", "A"]}),
    );
    let described = spec("a: E", &item("", "enum E { /// One.\n B, A, /** Two */ C }")).expect("a schema");
    assert_eq!(described["properties"]["a"]["description"], "- B: One.\n- C: Two");
    let open = item("", "enum E { A, #[serde(other)] Rest }");
    shape("E", &open, json!({"type": "string"}));
}

#[test]
fn enum_without_variants_accepts_nothing() {
    let source = support::kind("a: Option<E>", &item("", "enum E {}"));
    let made = support::run(&[("src/lib.rs", &source)]);
    let said: Vec<&str> = made.diagnostics.iter().map(|said| &*said.message).collect();
    assert_eq!(
        said,
        ["an enum without variants has no values: a field of this type can only be absent"]
    );
    let lines: Vec<&str> = made.files[0].text.lines().map(str::trim).collect();
    let expected = ["a:", "not: {}", "type: string"];
    assert!(lines.windows(3).any(|three| three == expected), "{lines:#?}");
}

#[test]
fn externally_tagged_enums() {
    shape(
        "E",
        &item("", "enum E { A(i32), B { x: bool }, C(Option<bool>), D {} }"),
        json!({"type": "object", "properties": {
            "A": {"type": "integer", "format": "int32"},
            "B": {"type": "object", "properties": {"x": {"type": "boolean"}}, "required": ["x"]},
            "C": {"type": "boolean", "nullable": true},
            "D": {"type": "object"},
        }, "oneOf": [{"required": ["A"]}, {"required": ["B"]}, {"required": ["C"]}, {"required": ["D"]}]}),
    );
    let only_object = json!({"minLength": 1, "maxLength": 0, "minItems": 1, "maxItems": 0, "minimum": 1, "maximum": 0,
        "not": {"enum": [true, false]}, "required": ["Two"]});
    shape(
        "E",
        &item("", "enum E { Unit, Two { x: bool } }"),
        json!({"x-kubernetes-preserve-unknown-fields": true, "anyOf": [{"enum": ["Unit"]}, only_object]}),
    );
    let only_text = json!({"minItems": 1, "maxItems": 0, "minimum": 1, "maximum": 0, "minProperties": 1,
        "maxProperties": 0, "not": {"enum": [true, false]}});
    shape(
        "E",
        &item("", "enum E { Two { x: bool }, #[serde(other)] Rest }"),
        json!({"x-kubernetes-preserve-unknown-fields": true, "anyOf": [only_text, only_object]}),
    );
    refused(
        "a: E",
        &format!(
            "{} {}",
            item("", "enum E { Unit, Two(R) }"),
            item("#[kube(validation = \"self.x\")]", "struct R { x: bool }")
        ),
        "a rule on this variant would never run",
        "`{}` after the name",
    );
}

#[test]
fn internally_tagged_enums() {
    let carried = &item("", "struct S { name: String, note: Option<String> }");
    shape(
        "E",
        &format!(
            "{carried} {}",
            item("#[serde(tag = \"type\")]", "enum E { A(S), B { x: bool }, C }")
        ),
        json!({"type": "object", "required": ["type"], "properties": {
            "type": {"type": "string", "enum": ["A", "B", "C"]},
            "name": {"type": "string"}, "note": {"type": "string"}, "x": {"type": "boolean"},
        }, "oneOf": [
            {"properties": {"type": {"enum": ["A"]}}, "required": ["name"]},
            {"properties": {"type": {"enum": ["B"]}}, "required": ["x"]},
            {"properties": {"type": {"enum": ["C"]}}},
        ]}),
    );
    shape(
        "E",
        &item(
            "#[serde(tag = \"type\")]",
            "enum E { A { x: bool }, #[serde(other)] Rest }",
        ),
        json!({"type": "object", "required": ["type"], "properties": {
            "type": {"type": "string"}, "x": {"type": "boolean"},
        }, "oneOf": [
            {"properties": {"type": {"enum": ["A"]}}, "required": ["x"]},
            {"properties": {"type": {"not": {"enum": ["A"]}}}},
        ]}),
    );
    let tagged = |body: &str| item("#[serde(tag = \"type\")]", body);
    refused(
        "a: E",
        &tagged("enum E { A(i32), B }"),
        "must hold an object",
        "content",
    );
    refused(
        "a: E",
        &tagged("enum E { A { r#type: i32 } }"),
        "the same name as the tag",
        "",
    );
    refused(
        "a: E",
        &format!("{carried} {}", tagged("enum E { A(Option<S>) }")),
        "cannot serialize an `Option` next to a tag",
        "remove the `Option`",
    );
    refused(
        "a: E",
        &tagged("enum E { A { x: i32 }, B { x: String } }"),
        "has a different type or different constraints",
        "different names",
    );
    let rules = spec(
        "a: E",
        &tagged(
            "enum E { A(R), B } #[derive(CrdSchema, Serialize, Deserialize)] \
             #[kube(validation = \"self.x\", validation = \"self.x == oldSelf.x\")] pub struct R { x: bool }",
        ),
    )
    .expect("a schema");
    assert_eq!(
        rules["properties"]["a"]["x-kubernetes-validations"],
        json!([
            {"rule": "self.type != 'A' || (self.x)"},
            {"rule": "self.type != 'A' || oldSelf.type != 'A' || (self.x == oldSelf.x)"},
        ])
    );
}

#[test]
fn adjacently_tagged_enums() {
    let tagged = |body: &str| item("#[serde(tag = \"t\", content = \"c\")]", body);
    let tag = |names: &[&str]| json!({"type": "string", "enum": names});
    // The fields of all variants are in the same object, and each variant lists the fields that it
    // requires.
    shape(
        "E",
        &tagged("enum E { A { x: bool, same: i32 }, B { y: Option<bool>, same: i32 }, C }"),
        json!({"type": "object", "required": ["t"], "properties": {
            "t": tag(&["A", "B", "C"]),
            "c": {"type": "object", "properties": {
                "x": {"type": "boolean"}, "y": {"type": "boolean"}, "same": {"type": "integer", "format": "int32"},
            }},
        }, "oneOf": [
            {"properties": {"t": {"enum": ["A"]}, "c": {"required": ["same", "x"]}}, "required": ["c"]},
            {"properties": {"t": {"enum": ["B"]}, "c": {"required": ["same"]}}, "required": ["c"]},
            {"properties": {"t": {"enum": ["C"]}}, "not": {"required": ["c"]}},
        ]}),
    );
    shape(
        "E",
        &tagged(
            "enum E { A(#[kube(validation(max_length = 3))] String), B(#[kube(validation(pattern = \"x\"))] String) }",
        ),
        json!({"type": "object", "required": ["c", "t"], "properties": {"t": tag(&["A", "B"]), "c": {"type": "string"}},
        "oneOf": [
            {"properties": {"t": {"enum": ["A"]}, "c": {"maxLength": 3}}},
            {"properties": {"t": {"enum": ["B"]}, "c": {"pattern": "x"}}},
        ]}),
    );
    // The contents have nothing in common, so we accept anything. What is said about the content
    // itself still applies.
    shape(
        "E",
        &tagged("enum E { A(bool), B { x: i32 }, C(Option<String>) }"),
        json!({"type": "object", "required": ["t"], "properties": {"t": tag(&["A", "B", "C"]), "c": any()},
        "oneOf": [
            {"properties": {"t": {"enum": ["A"]}}, "required": ["c"]},
            {"properties": {"t": {"enum": ["B"]}, "c": {"required": ["x"]}}, "required": ["c"]},
            {"properties": {"t": {"enum": ["C"]}}},
        ]}),
    );
    shape(
        "E",
        &tagged("enum E { A, B }"),
        json!({"type": "object", "required": ["t"], "properties": {"t": tag(&["A", "B"])}}),
    );
    let ruled = "#[derive(CrdSchema, Serialize, Deserialize)] \
                 #[kube(validation = \"self.x\", cel(rule = \"self.x == oldSelf.x\", field_path = \".x\", \
                 message_expression = \"string(self.x)\"))] pub struct R { x: bool }";
    let rules = spec(
        "a: E",
        &format!("{ruled} {}", tagged("enum E { A(R), B { y: bool } }")),
    )
    .expect("a schema");
    assert_eq!(
        rules["properties"]["a"]["x-kubernetes-validations"],
        json!([
            {"rule": "self.t != 'A' || !has(self.c) || [self.c].all(self, self.x)"},
            {"rule": "self.t != 'A' || oldSelf.t != 'A' || !has(self.c) || !has(oldSelf.c) || \
                      [self.c].all(self, [oldSelf.c].all(oldSelf, self.x == oldSelf.x))",
             "fieldPath": ".c.x", "messageExpression": "[self.c].map(self, string(self.x))[0]"},
        ])
    );
    refused(
        "a: E",
        &format!("{ruled} {}", tagged("enum E { A(R), B(i32) }")),
        "the variants hold different types",
        "structs",
    );
}

#[test]
fn untagged_enums() {
    let untagged = |body: &str| item("#[serde(untagged)]", body);
    shape(
        "E",
        &untagged("enum E { A { x: bool }, B { y: bool, z: Option<i32> } }"),
        json!({"type": "object", "properties": {
            "x": {"type": "boolean"}, "y": {"type": "boolean"}, "z": {"type": "integer", "format": "int32"},
        }, "anyOf": [{"required": ["x"]}, {"required": ["y"]}]}),
    );
    shape(
        "E",
        &format!(
            "{} {}",
            untagged("enum E { A(K), B { y: bool } }"),
            item("", "enum K { P(bool), Q(bool) }")
        ),
        json!({"type": "object", "properties": {
            "P": {"type": "boolean"}, "Q": {"type": "boolean"}, "y": {"type": "boolean"},
        }, "anyOf": [{"oneOf": [{"required": ["P"]}, {"required": ["Q"]}]}, {"required": ["y"]}]}),
    );
    let either = |rest: Value| {
        let mut schema =
            json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]});
        for (key, value) in rest.as_object().expect("an object") {
            schema[key] = value.clone();
        }
        schema
    };
    shape(
        "E",
        &untagged("enum E { Number(i32), Text(String) }"),
        either(json!({"minimum": i32::MIN, "maximum": i32::MAX})),
    );
    shape(
        "E",
        &untagged("enum E { Number(i64), Text(String) }"),
        either(json!({})),
    );
    shape(
        "E",
        &untagged(
            "enum E { Number(#[kube(validation(minimum = 1))] u16), \
             Text(#[kube(validation(max_length = 9, pattern = \"^x\"))] String) }",
        ),
        either(json!({"minimum": 1, "maximum": 65535, "maxLength": 9, "pattern": "^x"})),
    );
    let only_number = json!({"minLength": 1, "maxLength": 0, "minItems": 1, "maxItems": 0, "minProperties": 1,
        "maxProperties": 0, "not": {"enum": [true, false]}});
    shape(
        "E",
        &format!(
            "{} {}",
            untagged("enum E { Number(u64), Text(N) }"),
            item("", "enum N { Max, Min }")
        ),
        either(json!({"minimum": 0, "allOf": [{"anyOf": [{"enum": ["Max", "Min"]}, only_number]}]})),
    );
    let help = "#[crd(preserve_unknown_fields)]";
    for clash in [
        "enum E { A(String), B { x: i32 } }",
        "enum E { A(bool), B(String) }",
        "enum E { A(i32), B(Vec<i32>) }",
    ] {
        refused("a: E", &untagged(clash), "different JSON types", help);
        let open = item("#[serde(untagged)] #[crd(preserve_unknown_fields)]", clash);
        shape("E", &open, any());
    }
    refused(
        "a: E",
        &untagged("enum E { A { x: i32 }, B { x: String } }"),
        "has a different type or different constraints",
        "different names",
    );
    refused(
        "a: E",
        &untagged("enum E { A, B(String) }"),
        "is `null`",
        "`{}` after its name",
    );
    refused(
        "a: E",
        &untagged("enum E { A(Option<i32>), B(i32) }"),
        "can be `null`",
        "an `Option`",
    );
    // Only the last variant is not tagged.
    shape(
        "E",
        &item("", "enum E { Low, High, #[serde(untagged)] Custom(String) }"),
        json!({"type": "string"}),
    );
    shape(
        "E",
        &item(
            "",
            "enum E { Low, High, #[serde(untagged)] Custom(#[kube(validation(pattern = \"^x-\"))] String) }",
        ),
        json!({"type": "string", "anyOf": [{"enum": ["Low", "High"]}, {"pattern": "^x-"}]}),
    );
    shape(
        "E",
        &item("", "enum E { Auto, #[serde(untagged)] Fixed(u16) }"),
        either(
            json!({"minimum": 0, "maximum": 65535, "allOf": [{"anyOf": [{"enum": ["Auto"]}, only_number]}]}),
        ),
    );
}

#[test]
fn structs() {
    shape("S", &item("", "struct S {}"), json!({"type": "object"}));
    shape(
        "S",
        &item("", "struct S(i32);"),
        json!({"type": "integer", "format": "int32"}),
    );
    shape(
        "S",
        &item(
            "#[serde(transparent)]",
            "struct S { value: bool, #[serde(skip)] n: (), m: PhantomData<i32> }",
        ),
        json!({"type": "boolean"}),
    );
    shape(
        "S",
        &item(
            "#[serde(tag = \"type\", rename = \"Small\")]",
            "struct S { x: bool }",
        ),
        json!({"type": "object", "required": ["x"], "properties": {
            "type": {"type": "string", "enum": ["Small"]}, "x": {"type": "boolean"},
        }}),
    );
    refused(
        "a: S",
        &item("#[serde(tag = \"x\")]", "struct S { x: bool }"),
        "the same name as the tag",
        "",
    );
    shape(
        "S",
        &item("#[serde(deny_unknown_fields)]", "struct S { x: bool }"),
        json!({"type": "object", "required": ["x"], "properties": {"x": {"type": "boolean"}}}),
    );
    let old = spec("#[deprecated(note = \"use b\")] a: i32, b: i32", "").expect("a schema");
    assert_eq!(old["properties"]["a"]["description"], "Deprecated: use b");
}

#[test]
fn flattened() {
    let parts = &format!(
        "{} {} {}",
        item("", "struct S { x: bool, y: Option<bool> }"),
        item("#[serde(tag = \"k\")]", "enum E { A { p: bool }, B { q: bool } }"),
        item("", "enum M { Unit, Data(S) }")
    );
    let number = || json!({"type": "integer", "format": "int32"});
    let boolean = || json!({"type": "boolean"});
    whole(
        "a: i32, #[serde(flatten)] s: S",
        parts,
        json!({"type": "object", "required": ["a", "x"], "properties": {"a": number(), "x": boolean(), "y": boolean()}}),
    );
    whole(
        "a: i32, #[serde(flatten)] s: Option<S>",
        parts,
        json!({"type": "object", "required": ["a"], "properties": {"a": number(), "x": boolean(), "y": boolean()}}),
    );
    whole(
        "#[serde(flatten)] e: E",
        parts,
        json!({"type": "object", "required": ["k"], "properties": {
            "k": {"type": "string", "enum": ["A", "B"]}, "p": boolean(), "q": boolean(),
        }, "oneOf": [
            {"properties": {"k": {"enum": ["A"]}}, "required": ["p"]},
            {"properties": {"k": {"enum": ["B"]}}, "required": ["q"]},
        ]}),
    );
    for map in [
        "BTreeMap<String, String>",
        "HashMap<String, serde_json::Value>",
        "serde_json::Map<String, serde_json::Value>",
        "serde_json::Value",
    ] {
        whole(
            &format!("a: i32, #[serde(flatten)] rest: {map}"),
            "",
            json!({"type": "object", "required": ["a"], "properties": {"a": number()}, "x-kubernetes-preserve-unknown-fields": true}),
        );
    }
    whole(
        "#[serde(flatten)] rest: BTreeMap<String, bool>",
        "",
        json!({"type": "object", "additionalProperties": boolean()}),
    );
    refused(
        "x: i32, #[serde(flatten)] s: S",
        parts,
        "duplicate field name \"x\"",
        "",
    );
    refused(
        "#[serde(flatten)] n: i32",
        "",
        "expected a struct, an enum of structs or a map",
        "remove `#[serde(flatten)]`",
    );
    refused(
        "#[serde(flatten)] m: M",
        parts,
        "can be a string cannot be flattened",
        "`{}`",
    );
    // Here the value may be a string as well, but not because of a variant.
    refused(
        "#[serde(flatten)] q: k8s_openapi::apimachinery::pkg::api::resource::Quantity",
        "",
        "expected a struct, an enum of structs or a map",
        "remove `#[serde(flatten)]`",
    );
}

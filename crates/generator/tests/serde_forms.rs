//! serde may read or write a field in another way than the schema says. There are diagnostics for
//! that.

use crate::support;

use serde_json::json;
use support::{kind, spec, warnings};

/// Returns the messages of the errors.
fn errors(fields: &str, items: &str) -> Vec<String> {
    match spec(fields, items) {
        Ok(_) => Vec::new(),
        Err(said) => said.into_iter().map(|(message, _)| message).collect(),
    }
}

fn warned(fields: &str, items: &str) -> Vec<String> {
    warnings(&[("src/lib.rs", &kind(fields, items))])
}

#[test]
fn unknown_default_of_schemars_alone_is_an_error() {
    let message = "the default that schemars computes is unknown: rbuilder does not run the program";
    assert_eq!(errors("#[schemars(default = \"f\")] a: i32", ""), [message]);
    assert_eq!(
        errors("#[schemars(default = \"f\")] a: i32", "fn f() -> i32 { g() }"),
        [message]
    );
    assert_eq!(
        errors("#[schemars(default = \"f\")] a: Option<i32>", ""),
        [message]
    );
    // This is only a warning, because published kinds do it often. schemars' default is `null`,
    // which the API server drops.
    let null = spec("#[schemars(default)] a: Option<i32>, b: i32", "").expect("a schema");
    assert_eq!(null["required"], json!(["b"]));
    assert_eq!(null["properties"]["a"].get("default"), None);
    let relaxed = "#[derive(CrdSchema, Serialize, Deserialize)] #[schemars(default)] struct R { a: i32 }";
    assert_eq!(errors("r: R", relaxed), [message]);
    for both in [
        "#[schemars(default = \"f\")] #[serde(default)] a: i32",
        "#[schemars(default = \"f\")] #[kube(default = 3)] a: i32",
        "#[schemars(default = \"f\")] #[serde(skip)] a: i32",
    ] {
        assert_eq!(errors(both, ""), [] as [&str; 0], "{both}");
    }
    let filled = spec("#[schemars(default = \"f\")] #[kube(default = 3)] a: i32", "").expect("a schema");
    assert_eq!(filled["required"], json!(["a"]));
    assert_eq!(filled["properties"]["a"]["default"], json!(3));
}

#[test]
fn default_keeps_flattened_fields_required() {
    let items = "#[derive(CrdSchema, Serialize, Deserialize, Default)] struct F { b: i32 }\n\
                 #[derive(CrdSchema, Serialize, Deserialize)] enum E { L { x: i32 }, R { y: i32 } }";
    let flat = spec(
        "#[serde(default, flatten)] f: F, #[serde(default, flatten)] e: E",
        items,
    )
    .expect("a schema");
    assert_eq!(flat["required"], json!(["b"]));
    assert_eq!(flat["oneOf"], json!([{"required": ["L"]}, {"required": ["R"]}]));
    let flat = spec("#[serde(default, flatten)] f: Option<F>", items).expect("a schema");
    assert_eq!(flat.get("required"), None);
}

#[test]
fn schemars_attribute_without_serde_counterpart_is_an_error() {
    assert_eq!(
        errors("#[schemars(skip)] a: i32", ""),
        ["the schema does not have this field, but serde requires it when deserializing"]
    );
    assert_eq!(
        errors(
            "#[schemars(skip)] #[serde(default)] a: i32, #[schemars(skip)] b: Option<i32>",
            ""
        ),
        [] as [&str; 0]
    );
    let rest = "#[schemars(skip)] #[serde(flatten, skip_serializing)] rest: HashMap<String, Value>";
    assert_eq!(errors(rest, ""), [] as [&str; 0]);
    let fields = "#[schemars(skip)] #[serde(flatten)] a: A";
    assert_eq!(
        errors(
            fields,
            "#[derive(JsonSchema, Serialize, Deserialize)] struct A { b: i32 }"
        ),
        ["the schema does not have this field, but serde requires it when deserializing"]
    );
    assert_eq!(
        errors("#[schemars(rename = \"b\")] a: i32", ""),
        ["the schema has the name `b`, but serde expects `a`"]
    );
    assert_eq!(
        errors("#[schemars(rename = \"b\")] #[serde(rename = \"b\")] a: i32", ""),
        [] as [&str; 0]
    );
    let form = |key: &str| format!("`{key}` is set for schemars but not for serde");
    let item = |attribute: &str| {
        format!("#[derive(CrdSchema, Serialize, Deserialize)] {attribute} enum E {{ A {{ x: i32 }}, B }}")
    };
    assert_eq!(errors("e: E", &item("#[schemars(tag = \"t\")]")), [form("tag")]);
    assert_eq!(
        errors("e: E", &item("#[schemars(rename_all = \"lowercase\")]")),
        [form("rename_all")]
    );
    assert_eq!(
        errors("e: E", &item("#[serde(tag = \"t\")] #[schemars(tag = \"t\")]")),
        [] as [&str; 0]
    );
    let flat = "#[derive(CrdSchema, Serialize, Deserialize)] struct F { b: i32 }";
    assert_eq!(errors("#[schemars(flatten)] f: F", flat), [form("flatten")]);
    // If `Deserialize` is handwritten, the type has no serde attributes.
    let by_hand = "#[derive(CrdSchema)] #[schemars(rename_all = \"lowercase\")] enum E { A, B }";
    assert_eq!(errors("e: E", by_hand), [] as [&str; 0]);
}

#[test]
fn required_on_option_without_default() {
    let required = |fields: &str| spec(fields, "").expect("a schema").get("required").cloned();
    assert_eq!(
        required("#[schemars(required)] a: Option<i32>"),
        Some(json!(["a"]))
    );
    assert_eq!(
        required("#[schemars(required)] #[serde(default)] a: Option<i32>"),
        None
    );
    assert_eq!(
        required("#[kube(required)] #[serde(default)] a: Option<i32>"),
        Some(json!(["a"]))
    );
}

#[test]
fn serialized_and_deserialized_formats_may_differ() {
    let skipped_if = "serde can skip this field when serializing but requires it when deserializing";
    assert_eq!(
        warned("#[serde(skip_serializing_if = \"is_one\")] a: i32", ""),
        [skipped_if]
    );
    assert_eq!(
        warned(
            "#[serde(skip_serializing_if = \"Option::is_none\")] a: Option<i32>",
            ""
        ),
        [] as [&str; 0]
    );
    let unwritten = "serde never serializes this field, but the schema requires it: the API server rejects every whole object that the program writes";
    assert_eq!(warned("#[serde(skip_serializing)] a: i32", ""), [unwritten]);
    assert_eq!(
        warned("#[serde(skip_serializing)] #[kube(required)] a: Option<i32>", ""),
        [unwritten]
    );
    assert_eq!(
        warned(
            "#[serde(skip_serializing, default)] a: i32, #[serde(skip_serializing)] b: Option<i32>",
            ""
        ),
        [] as [&str; 0]
    );
    let variants = "#[derive(CrdSchema, Serialize, Deserialize)] enum E { A, #[serde(skip_deserializing)] B, \
                    #[serde(skip_serializing)] C, #[serde(skip)] D }";
    assert_eq!(
        warned("e: E", variants),
        [
            "serde serializes `B` but never deserializes it, so the schema does not have it",
            "serde deserializes `C` but fails to serialize it"
        ]
    );
    let schema = spec("e: E", variants).expect("a schema");
    assert_eq!(schema["properties"]["e"]["enum"], json!(["A", "C"]));
}

#[test]
fn marker_cannot_change_what_serde_accepts() {
    let optional = "serde requires this field, so it cannot be `optional`";
    for fields in [
        "#[kube(optional)] a: i32",
        "#[kube(optional)] a: Vec<i32>",
        "#[kube(optional, schema_type = \"i32\")] #[serde(with = \"m\")] a: Option<i32>",
        "#[kube(optional)] #[serde(flatten)] a: F",
    ] {
        assert_eq!(
            errors(
                fields,
                "#[derive(CrdSchema, Serialize, Deserialize)] struct F { b: i32 }"
            ),
            [optional],
            "{fields}"
        );
    }
    let nullable = "serde does not accept `null` here, so the field cannot be `nullable`";
    for fields in [
        "#[kube(nullable)] a: i32",
        "#[kube(nullable)] #[serde(default)] a: String",
    ] {
        assert_eq!(errors(fields, ""), [nullable], "{fields}");
    }
    for fields in [
        "#[kube(optional)] a: Option<i32>",
        "#[kube(optional)] #[serde(default)] a: i32",
        "#[kube(optional, default = 3)] a: i32",
        "#[kube(nullable)] a: Option<i32>",
        "#[kube(nullable)] a: serde_json::Value",
        "#[kube(nullable, schema_type = \"String\")] #[serde(with = \"m\")] a: i32",
    ] {
        assert_eq!(errors(fields, ""), [] as [&str; 0], "{fields}");
    }
}

#[test]
fn marker_cannot_widen_integer() {
    for (fields, message) in [
        (
            "#[kube(validation(minimum = -5))] a: u8",
            "minimum -5 is less than the smallest `u8`, 0",
        ),
        (
            "#[kube(validation(maximum = 300))] a: Option<u8>",
            "maximum 300 is greater than the largest `u8`, 255",
        ),
        (
            "#[schemars(range(max = 40000))] a: i16",
            "maximum 40000 is greater than the largest `i16`, 32767",
        ),
        (
            "#[kube(items(validation(minimum = -1)))] a: Vec<u64>",
            "minimum -1 is less than the smallest `u64`, 0",
        ),
        (
            "#[kube(validation(format = \"int64\"))] a: i32",
            "`format = \"int64\"` allows integers that do not fit into `i32`",
        ),
    ] {
        assert_eq!(errors(fields, ""), [message], "{fields}");
    }
    for fields in [
        "#[kube(validation(minimum = 0, maximum = 255))] a: u8",
        "#[kube(validation(maximum = 18446744073709551615))] a: u64",
        "#[kube(validation(format = \"int32\"))] a: i64",
        "#[kube(validation(format = \"int64\"))] a: u32",
        "#[kube(validation(minimum = -5))] a: f32",
        // The bound may be looser than in the marker of the type.
        "#[kube(validation(maximum = 9000))] a: Port",
    ] {
        let port = "#[derive(CrdSchema, Serialize, Deserialize)] struct Port(#[kube(validation(maximum = 80))] u16);";
        assert_eq!(errors(fields, port), [] as [&str; 0], "{fields}");
    }
}

#[test]
fn marker_cannot_change_rust_type() {
    let message = |kind: &str| format!("a marker changes the type of the value, but serde expects {kind}");
    for (fields, kind) in [
        ("#[kube(validation(type = \"string\"))] a: i32", "an integer"),
        ("#[kube(int_or_string)] a: Option<String>", "a string"),
        ("#[kube(items(int_or_string))] a: Vec<u16>", "an integer"),
        (
            "#[kube(values(validation(type = \"integer\")))] a: BTreeMap<String, bool>",
            "a boolean",
        ),
    ] {
        assert_eq!(errors(fields, ""), [message(kind)], "{fields}");
    }
    for fields in [
        "#[kube(validation(type = \"integer\"))] a: f64",
        "#[kube(validation(type = \"string\"))] a: serde_json::Value",
        "#[kube(int_or_string, schema_type = \"String\")] #[serde(with = \"m\")] a: i32",
    ] {
        assert_eq!(errors(fields, ""), [] as [&str; 0], "{fields}");
    }
    let nulls = "serde does not accept `null` here, so `items` cannot be `nullable`";
    assert_eq!(errors("#[kube(items(nullable))] a: Vec<i32>", ""), [nulls]);
    assert_eq!(
        errors("#[kube(items(nullable))] a: Vec<Option<i32>>", ""),
        [] as [&str; 0]
    );
}

#[test]
fn warns_about_unvalidated_map_keys() {
    let message = |form: &str| {
        format!("serde accepts only {form} as keys of this map, but the API server accepts any string")
    };
    for (ty, form) in [
        ("BTreeMap<u32, String>", "integers"),
        ("Option<HashMap<i8, String>>", "integers"),
        ("Vec<BTreeMap<NonZeroU8, String>>", "integers"),
        ("BTreeMap<String, BTreeMap<bool, i32>>", "`true` and `false`"),
        ("BTreeMap<char, i32>", "single characters"),
        ("BTreeMap<std::net::IpAddr, i32>", "addresses"),
        ("BTreeMap<Port, i32>", "integers"),
    ] {
        assert_eq!(
            warned(&format!("a: {ty}"), "type Port = u16;"),
            [message(form)],
            "{ty}"
        );
    }
    let by_enum =
        "#[derive(CrdSchema, Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord)] enum E { A, B }";
    for fields in [
        "a: BTreeMap<String, i32>",
        "a: BTreeMap<Arc<str>, i32>",
        "a: BTreeMap<E, i32>",
        "#[kube(keys(validation(pattern = \"^[0-9]{1,9}$\")), validation(max_properties = 64))] a: BTreeMap<u32, i32>",
        "#[kube(keys(validation(enum = [\"true\", \"false\"])), validation(max_properties = 64))] a: BTreeMap<bool, i32>",
        "#[kube(keys(validation(min_length = 1, max_length = 1)), validation(max_properties = 64))] a: BTreeMap<char, i32>",
        "#[kube(items(keys(validation(pattern = \"^[0-9]$\")), validation(max_properties = 9)), validation(max_items = 9))] \
         a: Vec<BTreeMap<u32, i32>>",
        "#[kube(schema_type = \"BTreeMap<u32, i32>\")] #[serde(with = \"m\")] a: i32",
    ] {
        assert_eq!(errors(fields, by_enum), [] as [&str; 0], "{fields}");
        assert_eq!(warned(fields, by_enum), [] as [&str; 0], "{fields}");
    }
}

#[test]
fn reports_conversion_in_one_direction_only() {
    let item = |attribute: &str, fields: &str| {
        format!(
            "#[derive(CrdSchema, Serialize, Deserialize, Clone)] #[serde({attribute})] struct Own {{ {fields} }}\n\
             #[derive(CrdSchema, Serialize, Deserialize)] struct Raw {{ low: i32, high: i32 }}"
        )
    };
    let read = "`Own` is deserialized as another type but serialized by its own fields";
    assert_eq!(warned("a: Own", &item("from = \"String\"", "low: i32")), [read]);
    assert_eq!(warned("a: Own", &item("try_from = \"Raw\"", "low: i32")), [read]);
    let written = "`Own` is serialized as another type but deserialized by its own fields";
    assert_eq!(
        errors("a: Own", &item("into = \"String\"", "low: i32")),
        [written]
    );
    // `Raw` has the same fields, so the format is the same in both directions.
    for attribute in [
        "try_from = \"Raw\"",
        "into = \"Raw\"",
        "try_from = \"Raw\", into = \"Raw\"",
    ] {
        let items = item(attribute, "high: i32, low: i32");
        assert_eq!(errors("a: Own", &items), [] as [&str; 0], "{attribute}");
        assert_eq!(warned("a: Own", &items), [] as [&str; 0], "{attribute}");
    }
    let by_hand = "#[derive(CrdSchema, Deserialize)] #[serde(from = \"String\")] struct Own { low: i32 }";
    assert_eq!(warned("a: Own", by_hand), [] as [&str; 0]);
}

#[test]
fn type_markers_must_match_serde() {
    let item = |attributes: &str| {
        format!("#[derive(CrdSchema, Serialize, Deserialize)] {attributes} struct Own {{ low: i32 }}")
    };
    let unknown = "the API server keeps unknown fields here, but serde rejects them";
    let both = "#[crd(preserve_unknown_fields)] #[serde(deny_unknown_fields)]";
    assert_eq!(errors("a: Own", &item(both)), [unknown]);
    assert_eq!(
        errors("a: Own", &item("#[serde(deny_unknown_fields)]")),
        [] as [&str; 0]
    );
}

#[test]
fn warns_about_null_that_serde_rejects() {
    let items = "#[derive(CrdSchema, Serialize, Deserialize)] #[crd(nullable)] struct Own { low: i32 }\n\
                 #[derive(CrdSchema, Serialize, Deserialize)] struct Of<T> { it: T }\n\
                 #[derive(CrdSchema, Serialize, Deserialize)] struct New(Own);\n\
                 #[derive(CrdSchema, Serialize, Deserialize)] enum Either { A(Own), B(i32) }\n\
                 #[derive(CrdSchema, Serialize, Deserialize)] #[crd(nullable)] struct Held(Option<i32>);";
    for (ty, reached) in [
        ("Own", "Own"),
        ("Box<Own>", "Own"),
        ("Vec<Own>", "Own"),
        ("Option<Vec<Own>>", "Own"),
        ("BTreeMap<String, Own>", "Own"),
        ("Of<Own>", "Own"),
        ("New", "New"),
        ("Option<Either>", "Own"),
    ] {
        let expected = format!("the API server accepts `null` for `{reached}` here, but serde does not");
        assert_eq!(warned(&format!("a: {ty}"), items), [expected], "{ty}");
    }
    let accepted = [
        "a: Option<Own>",
        "a: Option<Box<Own>>",
        "a: Vec<Option<Own>>",
        "a: Of<Option<Own>>",
        "a: Option<New>",
        "a: Held",
        "#[serde(flatten)] a: Own",
        "#[serde(with = \"m\")] #[crd(schema_type = \"Own\")] a: i32",
    ];
    for fields in accepted {
        assert_eq!(warned(fields, items), [] as [&str; 0], "{fields}");
    }
}

#[test]
fn status_can_be_null_but_spec_cannot() {
    let kind = |of_spec: &str, of_status: &str| {
        format!(
            "#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone)]\n\
             #[kube(group = \"example.com\", version = \"v1\", kind = \"Foo\", status = \"FooStatus\")]\n\
             {of_spec} pub struct FooSpec {{ a: i32 }}\n\
             #[derive(CrdSchema, Serialize, Deserialize, Clone)] {of_status} pub struct FooStatus {{ ready: Option<bool> }}\n"
        )
    };
    let said = |of_spec, of_status| warnings(&[("src/lib.rs", &kind(of_spec, of_status))]);
    assert_eq!(said("", "#[crd(nullable)]"), [] as [&str; 0]);
    let expected = "the API server accepts `null` for `spec`, but serde does not";
    assert_eq!(said("#[crd(nullable)]", ""), [expected]);
    assert_eq!(said("#[crd(nullable, optional_spec)]", ""), [expected]);
}

#[test]
fn std_time_types_have_schemars_format() {
    let items = "#[derive(JsonSchema, Serialize, Deserialize)] struct A { b: Duration, c: Option<std::time::SystemTime> }";
    let schema = spec("a: A", items).expect("a schema");
    let part = |maximum: Option<u32>| {
        let mut part = json!({"type": "integer", "format": "int64", "minimum": 0});
        if let Some(maximum) = maximum {
            part["maximum"] = maximum.into();
        }
        part
    };
    assert_eq!(
        schema["properties"]["a"]["properties"]["b"],
        json!({
            "type": "object", "required": ["nanos", "secs"],
            "properties": {"nanos": part(Some(u32::MAX)), "secs": part(None)},
        })
    );
    assert_eq!(
        schema["properties"]["a"]["properties"]["c"]["required"],
        json!(["nanos_since_epoch", "secs_since_epoch"])
    );
}

#[test]
fn nested_empty_alternatives_are_errors() {
    for schema in [
        r#"{ "type": "string", "anyOf": [] }"#,
        r#"{ "type": "object", "properties": { "b": { "type": "string", "anyOf": [] } } }"#,
        r#"{ "type": "string", "not": { "anyOf": [] } }"#,
    ] {
        let field = format!("#[crd(schema = {schema})] a: Value");
        assert_eq!(errors(&field, ""), ["`anyOf` must not be empty"], "{schema}");
    }
    let nested = "#[crd(validation(all_of = [{ \"oneOf\": [] }]))] a: String";
    assert_eq!(errors(nested, ""), ["`oneOf` must not be empty"]);
    let value = r#"#[crd(schema = { "type": "object", "x-kubernetes-preserve-unknown-fields": true, "default": { "anyOf": [] } })] a: Value"#;
    assert_eq!(errors(value, ""), [] as [&str; 0]);
}

/// serde calls these functions instead of the type's own implementation, but schemars ignores them.
#[test]
fn serde_functions_with_schemars_schema_are_warnings() {
    let written = "a function serializes this field; its schema describes its type, as that of schemars does";
    let read =
        "a function deserializes this field; its schema describes its type, which is what is serialized";
    for (attribute, expected) in [
        ("serialize_with = \"f\"", written),
        ("deserialize_with = \"f\"", read),
        ("serialize_with = \"f\", deserialize_with = \"g\"", written),
        ("deserialize_with = \"g\", serialize_with = \"f\"", written),
    ] {
        let fields = format!("#[serde({attribute})] a: i32");
        let theirs = kind(&fields, "").replace("CrdSchema, ", "schemars::JsonSchema, ");
        let files = [("src/lib.rs", theirs.as_str())];
        let found = support::spec_of(&files).expect("a schema");
        assert_eq!(
            found["properties"]["a"],
            json!({"type": "integer", "format": "int32"}),
            "{attribute}"
        );
        assert_eq!(warnings(&files), [expected], "{attribute}");
        assert_eq!(errors(&fields, "").len(), 1, "{attribute}");
    }
    let module = kind("#[serde(with = \"m\")] a: i32", "").replace("CrdSchema, ", "schemars::JsonSchema, ");
    assert!(support::spec_of(&[("src/lib.rs", &module)]).is_err());
}

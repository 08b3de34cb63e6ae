//! Forms that serde does not read or write as the schema says: what is said of each.

mod support;

use serde_json::json;
use support::{kind, spec, warnings};

/// The messages of the errors about a kind with these fields.
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
fn a_default_of_schemars_alone_is_an_error() {
    let message = "the default that schemars writes into the schema cannot be known without running it";
    assert_eq!(errors("#[schemars(default = \"f\")] a: i32", ""), [message]);
    assert_eq!(errors("#[schemars(default)] a: Option<i32>", ""), [message]);
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
fn a_default_of_a_flattened_field_demands_what_serde_does() {
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
fn what_schemars_is_told_and_serde_is_not_is_an_error() {
    assert_eq!(
        errors("#[schemars(skip)] a: i32", ""),
        ["the schema is without this field, and serde reads no object without it"]
    );
    assert_eq!(
        errors(
            "#[schemars(skip)] #[serde(default)] a: i32, #[schemars(skip)] b: Option<i32>",
            ""
        ),
        [] as [&str; 0]
    );
    assert_eq!(
        errors("#[schemars(rename = \"b\")] a: i32", ""),
        ["the schema has the name `b`, and serde reads `a`"]
    );
    assert_eq!(
        errors("#[schemars(rename = \"b\")] #[serde(rename = \"b\")] a: i32", ""),
        [] as [&str; 0]
    );
    let form = |key: &str| format!("`{key}` tells schemars of a form that serde does not read");
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
    // A type that is read by hand has no attributes of serde's.
    let by_hand = "#[derive(CrdSchema)] #[schemars(rename_all = \"lowercase\")] enum E { A, B }";
    assert_eq!(errors("e: E", by_hand), [] as [&str; 0]);
}

#[test]
fn required_elsewhere_is_about_options_without_a_default() {
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
fn what_is_read_and_what_is_written_may_differ() {
    let skipped_if = "serde can leave this field out, and cannot read it back without";
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
    let unwritten = "serde never writes this field, and the schema requires it: the API server refuses every object \
                     that the program writes whole";
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
            "serde writes `B` and never reads it, so the schema is without it",
            "serde reads `C` and fails to write it"
        ]
    );
    let schema = spec("e: E", variants).expect("a schema");
    assert_eq!(schema["properties"]["e"]["enum"], json!(["A", "C"]));
}

#[test]
fn a_marker_cannot_make_serde_read() {
    let optional = "serde reads no object without this field, so it cannot be `optional`";
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
    let nullable = "serde reads no `null` here, so the field cannot be `nullable`";
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

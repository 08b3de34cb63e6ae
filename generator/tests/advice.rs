//! Advice for types with the derives of schemars: it is given in their words, and what it leads to is read.

mod support;

use rbuilder_generator::{Options, Severity, SourceSet, generate};
use support::{CARGO_TOML, run};

/// The same types after the advice, a module for each row below.
const AFTER: &str = include_str!("advice/after.rs");

/// The module in `after.rs`, the fields and items before it, and a part of the advice.
const ROWS: &[(&str, &str, &str, &str)] = &[
    (
        "same_form",
        "a: serde::Thing",
        "",
        "`#[schemars(with = \"String\")]` names a type with the same form, which is an `Option`",
    ),
    (
        "function",
        "a: serde::Thing",
        "",
        "`#[schemars(schema_with = \"function\")]`",
    ),
    (
        "derived",
        "a: Plain",
        "struct Plain { x: i32 }",
        "add `JsonSchema` to its derives",
    ),
    (
        "recursive",
        "a: Node",
        "#[derive(JsonSchema, Serialize, Deserialize)] struct Node { inner: Vec<Node> }",
        "`#[schemars(with = \"serde_json::Value\", extend(\"x-kubernetes-preserve-unknown-fields\" = true))]`",
    ),
    (
        "by_hand",
        "a: Name",
        "#[derive(JsonSchema)] struct Name { x: String } impl Serialize for Name {} impl<'de> Deserialize<'de> for Name {}",
        "an `impl JsonSchema` whose `json_schema` returns the schema",
    ),
    (
        "any_content",
        "a: Either",
        "#[derive(JsonSchema, Serialize, Deserialize)] #[serde(untagged)] enum Either { Number(i32), List(Vec<String>) }",
        "returns `json_schema!({ \"x-kubernetes-preserve-unknown-fields\": true })`",
    ),
    ("large_number", "a: i128", "", "`#[schemars(with = \"String\")]`"),
    (
        "keys",
        "a: std::collections::BTreeMap<u32, String>",
        "",
        "`#[schemars(extend(\"maxProperties\" = 64, \"x-kubernetes-validations\" = [{ \"rule\": \"self.all(key, key.matches('^[0-9]{1,9}$'))\" }]))]`",
    ),
    (
        "default",
        "#[serde(default = \"port\")] a: i32",
        "fn port() -> i32 { made() }",
        "`#[schemars(extend(\"default\" = …))]`",
    ),
];

fn kind(fields: &str, items: &str) -> String {
    format!(
        "use kube::CustomResource; use schemars::JsonSchema;
        #[derive(CustomResource, JsonSchema, Serialize, Deserialize)]
        #[kube(group = \"g.example.com\", version = \"v1\", kind = \"Test\")]
        pub struct TestSpec {{ {fields} }}
        {items}"
    )
}

#[test]
fn advice_is_in_the_words_of_schemars() {
    for (name, fields, items, advice) in ROWS {
        let made = run(&[("src/lib.rs", &kind(fields, items))]);
        let helps: Vec<&str> = made
            .diagnostics
            .iter()
            .filter_map(|said| said.help.as_deref())
            .collect();
        assert!(
            helps.iter().any(|help| help.contains(advice)),
            "{name}: {helps:?}"
        );
        for help in helps {
            assert!(
                !help.contains("#[kube(") && !help.contains("#[crd("),
                "{name}: {help}"
            );
        }
    }
}

#[test]
fn advice_leads_to_a_schema() {
    for (name, ..) in ROWS {
        assert!(AFTER.contains(&format!("pub mod {name} {{")), "{name}");
        let mut sources = SourceSet::default();
        sources.insert("Cargo.toml", CARGO_TOML);
        sources.insert(
            "src/lib.rs",
            kind(&format!("a: after::{name}::Root"), "mod after;"),
        );
        sources.insert("src/after.rs", AFTER);
        let made = generate(&sources, &Options::default());
        let said: Vec<_> = made
            .diagnostics
            .iter()
            .filter(|said| said.severity != Severity::Note)
            .collect();
        assert!(said.is_empty(), "{name}: {said:?}");
        assert!(!made.files.is_empty(), "{name}");
    }
}

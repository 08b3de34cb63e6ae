//! For types that derive schemars' `JsonSchema`, our advice uses schemars' attributes. rbuilder has
//! to be able to read the result.

use crate::support;

use rbuilder_generator::{Generated, Options, Severity, SourceSet, generate};
use support::CARGO_TOML;

/// `after` has the types after applying the advice for this version of kube, with a module for each
/// row below. `other` has the parts of the advice that differ from the rows.
struct Release {
    kube: &'static str,
    after: &'static str,
    other: &'static [(&'static str, &'static str)],
}

const RELEASES: &[Release] = &[
    Release {
        kube: "5.0.0",
        after: include_str!("advice/after.rs"),
        other: &[],
    },
    Release {
        kube: "2.0.1",
        after: include_str!("advice/after.rs"),
        other: &[],
    },
    Release {
        kube: "1.1.0",
        after: include_str!("advice/after_schemars_08.rs"),
        other: OF_SCHEMARS_08,
    },
    Release {
        kube: "0.98.0",
        after: include_str!("advice/after_schemars_08.rs"),
        other: OF_SCHEMARS_08,
    },
];

const OF_SCHEMARS_08: &[(&str, &str)] = &[
    (
        "recursive",
        "put `#[schemars(schema_with = \"function\")]`, with a function that returns \
         `serde_json::from_value(json!({ \"x-kubernetes-preserve-unknown-fields\": true })).unwrap()`, on",
    ),
    (
        "by_hand",
        "such as `String::json_schema(generator)` or `serde_json::from_value(json!({ … })).unwrap()`",
    ),
    (
        "whole_object",
        "with a function that returns `serde_json::from_value(json!({ \"x-kubernetes-preserve-unknown-fields\": true })).unwrap()`, on",
    ),
    (
        "any_content",
        "returns `serde_json::from_value(json!({ \"x-kubernetes-preserve-unknown-fields\": true })).unwrap()`",
    ),
    (
        "keys",
        "restrict the keys: `#[schemars(schema_with = \"function\")]` names a function that returns the schema, with \
         `maxProperties` and with a rule in `x-kubernetes-validations`",
    ),
    (
        "default",
        "or write it as `#[schemars(default = \"function\")]`, whose function is such a value",
    ),
];

/// The module in `after`, the fields and items before the advice is applied, and a part of the
/// advice.
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
    (
        "regex",
        "#[schemars(regex(pattern = 5))] a: String",
        "",
        "`#[schemars(regex(pattern = \"…\"))]`",
    ),
    (
        "inner",
        "#[schemars(inner(inner(length(min = 1))))] a: Option<Vec<String>>",
        "",
        "write them with one `inner` less in `#[schemars(…)]`",
    ),
    (
        "function",
        "#[schemars(schema_with = \"elsewhere::made\")] a: String",
        "",
        "define it in this package or in a path dependency, with one parameter",
    ),
    (
        "subschema",
        "#[schemars(schema_with = \"made\")] a: String",
        "fn made(generator: &mut SchemaGenerator) -> Schema { chosen(generator, 5) }",
        "the schema of a type by `generator.subschema_for::<T>()`",
    ),
    (
        "whole_object",
        "a: Whole",
        "#[derive(CustomResource, Serialize, Deserialize)]
        #[kube(group = \"g.example.com\", version = \"v1\", kind = \"Whole\", schema = \"disabled\")]
        pub struct WholeSpec { x: i32 }",
        "put `#[schemars(with = \"serde_json::Value\", extend(\"x-kubernetes-preserve-unknown-fields\" = true))]` on the field",
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

fn run_with(kube: &str, files: &[(&str, &str)]) -> Generated {
    let mut sources = SourceSet::default();
    sources.insert("Cargo.toml", CARGO_TOML);
    sources.insert(
        "Cargo.lock",
        format!("[[package]]\nname = \"kube\"\nversion = \"{kube}\"\n"),
    );
    files.iter().for_each(|(path, text)| sources.insert(*path, *text));
    generate(&sources, &Options::default())
}

fn helps(made: &Generated) -> Vec<&str> {
    let said = made.diagnostics.iter();
    said.filter_map(|said| said.help.as_deref()).collect()
}

#[test]
fn advice_uses_schemars_attributes() {
    for Release { kube, other, .. } in RELEASES {
        for (name, fields, items, advice) in ROWS {
            let own = other.iter().find(|(of, _)| of == name);
            let advice = own.map_or(*advice, |(_, own)| *own);
            let made = run_with(kube, &[("src/lib.rs", &kind(fields, items))]);
            let helps = helps(&made);
            assert!(
                helps.iter().any(|help| help.contains(advice)),
                "{kube} {name}: {helps:?}"
            );
            let foreign: &[&str] = match other {
                [] => &["#[kube(", "#[crd("],
                _ => &["#[kube(", "#[crd(", "extend(", "json_schema!"],
            };
            for help in helps {
                assert!(
                    !foreign.iter().any(|word| help.contains(word)),
                    "{kube} {name}: {help}"
                );
            }
        }
    }
}

#[test]
fn advice_leads_to_a_schema() {
    for Release { kube, after, .. } in RELEASES {
        for (name, ..) in ROWS {
            assert!(after.contains(&format!("pub mod {name} {{")), "{name}");
            let root = kind(&format!("a: after::{name}::Root"), "mod after;");
            let made = run_with(kube, &[("src/lib.rs", &root), ("src/after.rs", after)]);
            let said: Vec<_> = made
                .diagnostics
                .iter()
                .filter(|said| said.severity != Severity::Note)
                .collect();
            assert!(said.is_empty(), "{kube} {name}: {said:?}");
            assert!(!made.files.is_empty(), "{kube} {name}");
        }
    }
}

/// Neither version of the kind says which one is stored.
#[test]
fn storage_advice_depends_on_kube_version() {
    let stored = include_str!("advice/stored.rs");
    let merged = include_str!("advice/merged.rs");
    let unsaid = stored.replace(", storage = false", "");
    let storage = "write `storage = false` on the other versions, which needs kube 0.98 or newer";
    let merge = "name the stored version where the versions are merged: `merge_crds(vec![…], \"v1\")`";
    for (kube, text, advice, stored) in [
        ("0.91.0", &*unsaid, Some(merge), "v2"),
        ("0.98.0", &*unsaid, Some(storage), "v2"),
        ("5.0.0", &*unsaid, Some(storage), "v2"),
        ("0.91.0", merged, None, "v1"),
        ("0.98.0", stored, None, "v2"),
    ] {
        let made = run_with(kube, &[("src/lib.rs", text)]);
        assert_eq!(helps(&made).first().copied(), advice, "{kube}");
        let yaml = &made.files[0].text;
        let version = yaml
            .split("\n  - name: ")
            .find(|part| part.contains("storage: true"));
        assert!(
            version.is_some_and(|part| part.starts_with(stored)),
            "{kube}: {yaml}"
        );
    }
}

/// The group of the kind needs an approval.
#[test]
fn annotation_advice_depends_on_kube_version() {
    let approved = include_str!("advice/approved.rs");
    let lines = approved.lines().filter(|line| !line.contains("annotation("));
    // The kind belongs to the program, because the program calls `crd()`.
    let without: Vec<&str> = lines.chain(["pub fn print() { Sample::crd(); }"]).collect();
    let without = without.join("\n");
    let add = "or add `#[kube(annotation(\"api-approved.kubernetes.io\", \"https://…\"))]`";
    let update = "or, with kube 0.97 or newer, add an annotation to `#[kube(…)]` with the URL";
    for (kube, advice) in [("0.91.0", update), ("0.97.0", add), ("5.0.0", add)] {
        let made = run_with(kube, &[("src/lib.rs", &without)]);
        assert!(helps(&made)[0].contains(advice), "{kube}: {:?}", helps(&made));
        let made = run_with(kube, &[("src/lib.rs", approved)]);
        assert!(made.diagnostics.is_empty(), "{kube}: {:?}", made.diagnostics);
    }
}

#[test]
fn reads_rule_on_kind() {
    let made = run_with("1.1.0", &[("src/lib.rs", include_str!("advice/rule.rs"))]);
    assert!(
        made.files[0].text.contains("rule: self.spec.a != ''"),
        "{:?}",
        made.diagnostics
    );
}

/// The columns are a Go marker, the type of its field, the attribute that we advise instead, and
/// the line in the CRD.
const GO_MARKERS: &[(&str, &str, &str, &str)] = &[
    ("+default=5", "i32", "extend(\"default\" = 5)", "default: 5"),
    (
        "+kubebuilder:validation:Minimum=1",
        "i32",
        "range(min = 1)",
        "minimum: 1",
    ),
    (
        "+kubebuilder:validation:Maximum=9",
        "i32",
        "range(max = 9)",
        "maximum: 9",
    ),
    (
        "+kubebuilder:validation:MultipleOf=2",
        "i32",
        "extend(\"multipleOf\" = 2)",
        "multipleOf: 2",
    ),
    (
        "+kubebuilder:validation:MinLength=1",
        "String",
        "length(min = 1)",
        "minLength: 1",
    ),
    (
        "+kubebuilder:validation:MaxItems=9",
        "Vec<String>",
        "length(max = 9)",
        "maxItems: 9",
    ),
    (
        "+kubebuilder:validation:Pattern=`^[a-z]$`",
        "String",
        "regex(pattern = \"^[a-z]$\")",
        "pattern: ^[a-z]$",
    ),
    (
        "+kubebuilder:validation:Format=date",
        "String",
        "extend(\"format\" = \"date\")",
        "format: date",
    ),
    (
        "+kubebuilder:validation:Enum=a;b",
        "String",
        "extend(\"enum\" = [\"a\", \"b\"])",
        "enum:",
    ),
    (
        "+kubebuilder:title=Size",
        "i32",
        "title = \"Size\"",
        "title: Size",
    ),
    (
        "+kubebuilder:example=5",
        "i32",
        "extend(\"example\" = 5)",
        "example: 5",
    ),
    (
        "+nullable",
        "Option<i32>",
        "extend(\"nullable\" = true)",
        "nullable: true",
    ),
    (
        "+listType=set",
        "Vec<String>",
        "extend(\"x-kubernetes-list-type\" = \"set\")",
        "x-kubernetes-list-type: set",
    ),
    (
        "+k8s:immutable",
        "i32",
        "extend(\"x-kubernetes-validations\" = [{ \"rule\": \"self == oldSelf\", \"message\": \"the field is immutable\" }])",
        "rule: self == oldSelf",
    ),
    (
        "+kubebuilder:validation:XValidation:rule=\"self > 1\",message=\"no\"",
        "i32",
        "extend(\"x-kubernetes-validations\" = [{ \"rule\": \"self > 1\", \"message\": \"no\" }])",
        "rule: self > 1",
    ),
    (
        "+kubebuilder:validation:MaxProperties=9",
        "std::collections::BTreeMap<String, String>",
        "extend(\"maxProperties\" = 9)",
        "maxProperties: 9",
    ),
    (
        "+structType=atomic",
        "std::collections::BTreeMap<String, String>",
        "extend(\"x-kubernetes-map-type\" = \"atomic\")",
        "x-kubernetes-map-type: atomic",
    ),
    (
        "+kubebuilder:validation:XIntOrString",
        "String",
        "with = \"k8s_openapi::apimachinery::pkg::util::intstr::IntOrString\"",
        "x-kubernetes-int-or-string: true",
    ),
    (
        "+kubebuilder:validation:EmbeddedResource",
        "String",
        "with = \"serde_json::Value\", extend(\"type\" = \"object\", \"x-kubernetes-embedded-resource\" = true, \"x-kubernetes-preserve-unknown-fields\" = true)",
        "x-kubernetes-embedded-resource: true",
    ),
    (
        "+kubebuilder:validation:Schemaless",
        "String",
        "with = \"serde_json::Value\", extend(\"x-kubernetes-preserve-unknown-fields\" = true)",
        "x-kubernetes-preserve-unknown-fields: true",
    ),
];

#[test]
fn translates_go_markers_to_schemars() {
    for (marker, of_type, attribute, line) in GO_MARKERS {
        let attribute = format!("#[schemars({attribute})]");
        let marked = kind(&format!("\n/// {marker}\na: {of_type}"), "");
        let made = run_with("5.0.0", &[("src/lib.rs", &marked)]);
        assert_eq!(helps(&made), [format!("write `{attribute}`")], "{marker}");
        // schemars 0.8 doesn't have `extend`.
        let made = run_with("1.1.0", &[("src/lib.rs", &marked)]);
        let expected = if attribute.contains("extend(") {
            "write `#[schemars(schema_with = \"function\")]`, with a function that returns the schema with th"
        } else {
            &format!("write `{attribute}`")
        };
        assert!(
            helps(&made)[0].starts_with(expected),
            "{marker}: {:?}",
            helps(&made)
        );
        let followed = kind(&format!("{attribute} a: {of_type}"), "");
        let made = run_with("5.0.0", &[("src/lib.rs", &followed)]);
        assert!(made.diagnostics.is_empty(), "{marker}: {:?}", made.diagnostics);
        let yaml = &made.files[0].text;
        assert!(yaml.contains(line), "{marker}: {yaml}");
        let compiled = include_str!("advice/go_markers.rs").replace(char::is_whitespace, "");
        let field = format!("{attribute}pub a: {of_type},").replace(char::is_whitespace, "");
        assert!(compiled.contains(&field), "{marker}: its advice is not compiled");
    }
}

/// Without `Cargo.lock`, we only know the version of kube that the manifest requires.
#[test]
fn advice_depends_on_required_kube_version() {
    let source = kind(
        "#[serde(default = \"more\")] a: i32",
        "fn more() -> i32 { compute() }",
    );
    for (requirement, expected) in [
        ("kube = \"0.96\"", "`#[schemars(default = \"function\")]`"),
        (
            "kube = { version = \"^1.1\", features = [\"derive\"] }",
            "`#[schemars(default = \"function\")]`",
        ),
        ("kube = \">=2, <4\"", "`#[schemars(extend(\"default\" = …))]`"),
        (
            "kube = { git = \"https://github.com/kube-rs/kube\" }",
            "`#[schemars(extend(\"default\" = …))]`",
        ),
    ] {
        let mut sources = SourceSet::default();
        sources.insert("Cargo.toml", CARGO_TOML.replace("kube = \"5\"", requirement));
        sources.insert("src/lib.rs", source.as_str());
        let made = generate(&sources, &Options::default());
        let helps = helps(&made);
        assert!(
            helps.iter().any(|help| help.contains(expected)),
            "{requirement}: {helps:?}"
        );
    }
}

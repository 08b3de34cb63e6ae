//! If a type can't be found, the help suggests an import or a similar name.

use crate::support::{Said, run};

use rbuilder_generator::{Options, Severity, SourceSet, generate};

/// The module of the kind only imports what every kind needs.
fn kind(field: &str, items: &str) -> String {
    format!(
        "use kube::CustomResource;\nuse rbuilder::CrdSchema;\nuse serde::{{Deserialize, Serialize}};\n\
         #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]\n\
         #[kube(group = \"g.example.com\", version = \"v1\", kind = \"Test\")]\n\
         pub struct TestSpec {{ pub field: {field} }}\n{items}"
    )
}

const LEAF: &str = "#[derive(rbuilder::CrdSchema, serde::Serialize, serde::Deserialize, Clone, Debug)]\npub struct Leaf { pub a: i32 }\n";

fn errors(files: &[(&str, &str)]) -> Vec<Said> {
    let found = run(files).diagnostics.into_iter();
    let errors = found.filter(|said| said.severity == Severity::Error);
    errors
        .map(|said| (said.message, said.help.unwrap_or_default()))
        .collect()
}

#[track_caller]
fn check_files(files: &[(&str, &str)], message: &str, help: &str) {
    assert_eq!(errors(files), [(message.to_owned(), help.to_owned())]);
}

/// The field is in `src/api/v1/test.rs`, and the type `Leaf` in `src/api/v1/leaf.rs`.
#[track_caller]
fn check(field: &str, items: &str, name: &str, help: &str) {
    check_files(
        &[
            ("src/lib.rs", "pub mod api;"),
            ("src/api/mod.rs", "pub mod v1;"),
            (
                "src/api/v1/mod.rs",
                "mod leaf;\nmod test;\npub use leaf::*;\npub use test::*;",
            ),
            ("src/api/v1/leaf.rs", LEAF),
            ("src/api/v1/test.rs", &kind(field, items)),
        ],
        &format!("cannot find type `{name}`"),
        help,
    );
}

const UNKNOWN: &str = "define it in this package or in a path dependency, outside of macros, or put `#[kube(schema_type = \"…\")]`, `#[kube(schema = { … })]` or `#[kube(schemaless)]` on the field";

#[test]
fn suggests_import_of_known_type() {
    const META: &str = "k8s_openapi::apimachinery::pkg::apis::meta::v1";
    for (field, name, path) in [
        ("HashMap<String, String>", "HashMap", "std::collections::HashMap"),
        (
            "Option<BTreeMap<String, i32>>",
            "BTreeMap",
            "std::collections::BTreeMap",
        ),
        ("BTreeSet<String>", "BTreeSet", "std::collections::BTreeSet"),
        ("Arc<String>", "Arc", "std::sync::Arc"),
        ("Cow<'static, str>", "Cow", "std::borrow::Cow"),
        ("NonZeroU16", "NonZeroU16", "std::num::NonZeroU16"),
        ("IpAddr", "IpAddr", "std::net::IpAddr"),
        ("PathBuf", "PathBuf", "std::path::PathBuf"),
        // In JSON, std's `Duration` is an object of seconds and nanoseconds.
        ("Duration", "Duration", "kube::core::Duration"),
        ("Value", "Value", "serde_json::Value"),
        ("ByteString", "ByteString", "k8s_openapi::ByteString"),
        (
            "Quantity",
            "Quantity",
            "k8s_openapi::apimachinery::pkg::api::resource::Quantity",
        ),
        (
            "IntOrString",
            "IntOrString",
            "k8s_openapi::apimachinery::pkg::util::intstr::IntOrString",
        ),
        ("Time", "Time", &format!("{META}::Time")),
        ("Vec<Condition>", "Condition", &format!("{META}::Condition")),
        (
            "LabelSelector",
            "LabelSelector",
            &format!("{META}::LabelSelector"),
        ),
        (
            "PodTemplateSpec",
            "PodTemplateSpec",
            "k8s_openapi::api::core::v1::PodTemplateSpec",
        ),
        ("IndexMap<String, i32>", "IndexMap", "indexmap::IndexMap"),
    ] {
        check(field, "", name, &format!("add `use {path};`"));
    }
    // The package doesn't depend on the crates of these types.
    check("Url", "", "Url", UNKNOWN);
    check(
        "chrono::DateTime<Utc>",
        "",
        "chrono::DateTime",
        "add the crate `chrono` to `[dependencies]` in Cargo.toml",
    );
    check("nowhere::DateTime", "", "nowhere::DateTime", UNKNOWN);
    for (import, name, krate) in [
        ("chrono::DateTime", "DateTime", "chrono"),
        ("ordered_float::OrderedFloat", "OrderedFloat", "ordered-float"),
    ] {
        let help = format!("add the crate `{krate}` to `[dependencies]` in Cargo.toml");
        check(&format!("{name}<f64>"), &format!("use {import};"), name, &help);
    }
    check("Nothing", "use nowhere::Nothing;", "Nothing", UNKNOWN);
}

#[test]
fn suggests_import_of_own_type() {
    check("Leaf", "", "Leaf", "add `use crate::api::v1::leaf::Leaf;`");
    // A path can't go through a private module.
    check_files(
        &[(
            "src/lib.rs",
            &kind(
                "Leaf",
                "pub mod api { pub use self::leaf::*; mod leaf { pub type Leaf = i32; } }",
            ),
        )],
        "cannot find type `Leaf`",
        "add `use crate::api::Leaf;`",
    );
    // Of two types, the nearer one is suggested.
    check_files(
        &[
            (
                "src/lib.rs",
                "pub mod v1 { pub mod leaf; pub mod test; }\npub mod v2 { pub mod leaf; }",
            ),
            ("src/v1/leaf.rs", LEAF),
            ("src/v2/leaf.rs", LEAF),
            ("src/v1/test.rs", &kind("Leaf", "")),
        ],
        "cannot find type `Leaf`",
        "add `use crate::v1::leaf::Leaf;`",
    );
    check_files(
        &[
            (
                "src/lib.rs",
                "pub mod one { pub mod leaf; }\npub mod two { pub mod leaf; }\npub mod test;",
            ),
            ("src/one/leaf.rs", LEAF),
            ("src/two/leaf.rs", LEAF),
            ("src/test.rs", &kind("Leaf", "")),
        ],
        "cannot find type `Leaf`",
        "add `use crate::one::leaf::Leaf;` or `use crate::two::leaf::Leaf;`",
    );
    check_files(
        &[
            ("src/lib.rs", "pub mod leaf;"),
            ("src/leaf.rs", LEAF),
            ("src/main.rs", &kind("Leaf", "fn main() {}")),
        ],
        "cannot find type `Leaf`",
        "add `use shapes::leaf::Leaf;`",
    );
}

#[test]
fn suggests_similar_name() {
    check(
        "Strateg",
        "pub type Strategy = String;",
        "Strateg",
        "did you mean `Strategy`?",
    );
    check(
        "Hashmap<String, String>",
        "",
        "Hashmap",
        "did you mean `HashMap`? add `use std::collections::HashMap;`",
    );
    check("Sting", "", "Sting", "did you mean `String`?");
    check("Openings", "", "Openings", UNKNOWN);
}

/// A type in an argument can't have field markers, so the help must not suggest them.
#[test]
fn type_in_argument_has_its_own_help() {
    let text = |status: &str, items: &str| {
        kind("i32", items).replace(
            "kind = \"Test\"",
            &format!("kind = \"Test\", status = \"{status}\""),
        )
    };
    let leaf = LEAF.replace("Leaf", "TestStatus");
    check_files(
        &[("src/lib.rs", &text("TestState", &leaf))],
        "cannot find type `TestState`",
        "did you mean `TestStatus`?",
    );
    check_files(
        &[("src/lib.rs", &text("Observed", ""))],
        "cannot find type `Observed`",
        "define it in this package or in a path dependency, outside of macros, or write the status as a struct of this package",
    );
    check_files(
        &[("src/lib.rs", &text("Observed", "pub struct Observed;"))],
        "`Observed` does not derive a schema",
        "add `CrdSchema` to its derives, or write the status as a struct of this package",
    );
    // The fields of that type can have field markers.
    let inner = leaf.replace("i32", "Openings");
    check_files(
        &[("src/lib.rs", &text("TestStatus", &inner))],
        "cannot find type `Openings`",
        UNKNOWN,
    );
}

/// If a file has a syntax error, its types are not missing.
#[test]
fn type_in_unparsable_file_is_not_missing() {
    for leaf in ["pub Leaf { pub a: i32 }", "pub struct Leaf { a i32 }"] {
        for items in ["", "use super::leaf;", "use super::*;", "use super::leaf::Leaf;"] {
            let errors = errors(&[
                ("src/lib.rs", "mod leaf;\nmod test;\npub use leaf::*;"),
                ("src/leaf.rs", leaf),
                ("src/test.rs", &kind("Leaf", items)),
            ]);
            let [(message, _)] = &errors[..] else {
                panic!("{leaf} {items}: {errors:?}");
            };
            assert!(message.starts_with("syntax error: "), "{message}");
        }
    }
}

/// Some file that no `mod` declares may have the storage version. It would be wrong to advise
/// `storage = true` on another version.
#[test]
fn undeclared_file_explains_missing_storage_version() {
    let version = |version: &str, storage: bool| {
        format!(
            "#[derive(kube::CustomResource, rbuilder::CrdSchema)]\n#[kube(group = \"example.com\", version = \"{version}\", kind = \"Cup\", storage = {storage})]\npub struct CupSpec {{ pub a: i32 }}\n"
        )
    };
    let (stored, other) = (version("v1alpha1", true), version("v1", false));
    for (files, expected) in [
        (
            [("src/api/mod.rs", "pub mod v1;"), ("src/api/v1alpha1.rs", "")],
            "add `mod v1alpha1;` to `src/api/mod.rs`",
        ),
        (
            [("src/api/mod.rs", "pub mod v1;"), ("src/api/v1alpha1/cup.rs", "")],
            "add `mod v1alpha1;` to `src/api/mod.rs`",
        ),
    ] {
        let mut sources = SourceSet::default();
        sources.insert(
            "Cargo.toml",
            "[package]\nname = \"shop\"\nedition = \"2024\"\n\n[dependencies]\nkube = \"5\"\nrbuilder = \"0.1\"\n",
        );
        sources.insert("src/lib.rs", "mod api;\n");
        sources.insert("src/api/v1.rs", other.as_str());
        let [(root, text), (path, _)] = files;
        sources.insert(root, text);
        sources.insert(path, stored.as_str());
        let generated = generate(&sources, &Options::default());
        let mut errors = generated.diagnostics.iter().filter(|found| found.is_error());
        let error = errors.next().expect("an error");
        assert_eq!(
            error.message,
            format!("the storage version of `Cup` may be in `{path}`, which no `mod` declares")
        );
        assert_eq!(error.help.as_deref(), Some(expected));
        assert!(errors.next().is_none(), "{:#?}", generated.diagnostics);
    }
}

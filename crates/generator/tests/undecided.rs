//! `cfg`s that cannot be evaluated and files that a build generates. Both are errors only if a kind
//! needs something in them.

use rbuilder_generator::{Options, Severity, SourceSet, generate};

const USES: &str = "use kube::CustomResource; use schemars::JsonSchema;\n";

/// Returns a kind with this field.
fn cup(field: &str) -> String {
    format!(
        "{USES}#[derive(CustomResource, JsonSchema)]\n\
         #[kube(group = \"cafe.io\", version = \"v1\", kind = \"Cup\")]\n\
         pub struct CupSpec {{ {field} }}\n"
    )
}

const PART: &str = "#[derive(schemars::JsonSchema)] pub struct Part { a: i32 }\n";

/// Checks the errors and warnings for a package with these files.
#[track_caller]
fn check(files: &[(&str, &str)], expected: &[&str]) {
    let mut sources = SourceSet::default();
    let manifest =
        "[package]\nname = \"cafe\"\n[dependencies]\nkube = \"3\"\nschemars = \"1\"\nrbuilder = \"1\"\n";
    sources.insert("Cargo.toml", manifest);
    files.iter().for_each(|(path, text)| sources.insert(*path, *text));
    let made = generate(&sources, &Options::default());
    let found: Vec<String> = made
        .diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity != Severity::Note)
        .map(|said| {
            let word = if said.is_error() { "error" } else { "warning" };
            format!("{word} in {}: {}", said.place.path, said.message)
        })
        .collect();
    let is_same = found.len() == expected.len()
        && found
            .iter()
            .zip(expected)
            .all(|(found, part)| found.starts_with(part));
    assert!(is_same, "expected {expected:#?}, found {found:#?}");
}

const UNDECIDED: &str = "error in src/lib.rs: cannot evaluate this `cfg`";

#[test]
fn undecided_file_matters_only_if_needed() {
    let lib = |field| format!("#[cfg(tokio_unstable)] mod part;\n{}", cup(field));
    check(&[("src/lib.rs", &lib("a: i32,")), ("src/part.rs", PART)], &[]);
    check(
        &[
            ("src/lib.rs", &lib("a: crate::part::Part,")),
            ("src/part.rs", PART),
        ],
        &[UNDECIDED],
    );
    check(
        &[
            ("src/lib.rs", &lib("a: i32,")),
            ("src/part.rs", &cup("a: i32,").replace("Cup", "Pot")),
        ],
        &[UNDECIDED],
    );
    let rule = "#[rbuilder::rbac(groups = \"\", resources = \"pods\", verbs = \"get\")] fn f() {}";
    check(
        &[("src/lib.rs", &lib("a: i32,")), ("src/part.rs", rule)],
        &[UNDECIDED],
    );
    check(
        &[
            ("src/lib.rs", &lib("a: crate::part::inner::Part,")),
            ("src/part.rs", "pub mod inner;"),
            ("src/part/inner.rs", PART),
        ],
        &[UNDECIDED],
    );
    let included = |field| format!("#[cfg(tokio_unstable)] include!(\"part.in\");\n{}", cup(field));
    check(
        &[("src/lib.rs", &included("a: i32,")), ("src/part.in", PART)],
        &[],
    );
    check(
        &[("src/lib.rs", &included("a: Part,")), ("src/part.in", PART)],
        &[UNDECIDED],
    );
    let inner = |field| format!("mod part;\n{}", cup(field));
    let part = format!("#![cfg(tokio_unstable)]\n{PART}");
    check(&[("src/lib.rs", &inner("a: i32,")), ("src/part.rs", &part)], &[]);
    check(
        &[("src/lib.rs", &inner("a: part::Part,")), ("src/part.rs", &part)],
        &["error in src/part.rs: cannot evaluate this `cfg`"],
    );
    // Every type in such a module is uncertain, not only the first.
    let two = format!(
        "#[cfg(tokio_unstable)] mod m {{ {} {PART} }}\n",
        PART.replace("Part", "Other")
    );
    check(
        &[("src/lib.rs", &format!("{two}{}", cup("a: m::Part,")))],
        &[UNDECIDED],
    );
}

#[test]
fn undecided_attribute_without_effect_is_ignored() {
    let with = |attribute: &str| format!("{attribute}\n{}", cup("a: i32,"));
    for attribute in [
        "#![cfg_attr(verus_keep_ghost, verifier::allow(unknown_automatic_derive))]",
        "#![cfg_attr(nightly, feature(never_type), register_tool(x))]",
    ] {
        check(&[("src/lib.rs", &with(attribute))], &[]);
    }
    let on_struct =
        |attribute: &str| cup("a: i32,").replace("pub struct", &format!("{attribute} pub struct"));
    check(
        &[("src/lib.rs", &on_struct("#[cfg_attr(kani, allow(dead_code))]"))],
        &[],
    );
    check(
        &[(
            "src/lib.rs",
            &on_struct("#[cfg_attr(kani, serde(rename_all = \"camelCase\"))]"),
        )],
        &[UNDECIDED],
    );
    check(
        &[("src/lib.rs", &with("#![cfg_attr(kani, cfg(unix))]"))],
        &[UNDECIDED],
    );
}

#[test]
fn undecided_import_matters_only_if_needed() {
    let lib = |field| {
        format!(
            "mod a {{ {PART} }} mod b {{ {PART} }}\n#[cfg(tokio_unstable)] use a::Part;\n#[cfg(not(tokio_unstable))] use b::Part;\n{}",
            cup(field)
        )
    };
    check(&[("src/lib.rs", &lib("a: i32,"))], &[]);
    check(&[("src/lib.rs", &lib("a: Part,"))], &[UNDECIDED]);
}

#[test]
fn undecided_glob_import_matters_only_if_needed() {
    let lib = |glob: &str, field| {
        format!(
            "mod a {{ {PART} pub fn size() -> i32 {{ 3 }} }} mod b {{ pub use crate::a::*; }} mod c {{ {PART} }}\n{glob}\n{}",
            cup(field)
        )
    };
    let undecided = "#[cfg(tokio_unstable)] use a::*;";
    check(&[("src/lib.rs", &lib(undecided, "a: i32, b: String,"))], &[]);
    check(&[("src/lib.rs", &lib(undecided, "a: c::Part,"))], &[]);
    check(&[("src/lib.rs", &lib(undecided, "a: Part,"))], &[UNDECIDED]);
    check(
        &[(
            "src/lib.rs",
            &lib("#[cfg(tokio_unstable)] use {b::*, c::Part as Other};", "a: Part,"),
        )],
        &[UNDECIDED],
    );
    // Another glob that is always compiled has the name too, and it can only be the same type.
    for both in [
        "#[cfg(tokio_unstable)] use b::*; use a::*;",
        "use a::*; #[cfg(tokio_unstable)] use b::*;",
    ] {
        check(&[("src/lib.rs", &lib(both, "a: Part,"))], &[]);
    }
    // Only one of the two is compiled, and it is unknown which.
    check(
        &[(
            "src/lib.rs",
            &lib(
                "#[cfg(tokio_unstable)] use a::*; #[cfg(not(tokio_unstable))] use c::*;",
                "a: Part,",
            ),
        )],
        &[UNDECIDED],
    );
    // The names of std, and default functions.
    let std = "#[cfg(tokio_unstable)] use std::collections::*;";
    check(
        &[("src/lib.rs", &lib(std, "a: BTreeMap<String, String>,"))],
        &[UNDECIDED],
    );
    check(&[("src/lib.rs", &lib(std, "a: String,"))], &[]);
    check(
        &[(
            "src/lib.rs",
            &lib(undecided, "#[serde(default = \"size\")] a: i32,"),
        )],
        &["warning in src/lib.rs: "],
    );
}

#[test]
fn generated_file_matters_only_if_needed() {
    let out = |field| {
        format!(
            "include!(concat!(env!(\"OUT_DIR\"), \"/made.rs\"));\n{}",
            cup(field)
        )
    };
    let ignored = "warning in src/lib.rs: files generated by the build script are not read";
    let needed = "error in src/lib.rs: this file, which the build script generates, may define types";
    check(&[("src/lib.rs", &out("a: i32,"))], &[ignored]);
    check(&[("src/lib.rs", &out("a: Part, b: Part,"))], &[needed, ignored]);
    // This build script prints the package's own CRDs.
    let prints = (
        "build.rs",
        "use kube::CustomResourceExt; fn main() { Cup::crd(); }",
    );
    check(&[("src/lib.rs", &out("a: i32,")), prints], &[ignored]);
    let makes = (
        "build.rs",
        "fn main() { write(\"#[derive(CustomResource)] struct A;\") }",
    );
    check(
        &[("src/lib.rs", &out("a: i32,")), makes],
        &["error in src/lib.rs: files generated by the build script are not read"],
    );
    let module = |field| format!("mod proto;\n{}", cup(field));
    let absent = "warning in src/lib.rs: the file of the module `proto` does not exist";
    let build = (
        "build.rs",
        "fn main() { tonic_build::configure().out_dir(\"src\") }",
    );
    check(&[("src/lib.rs", &module("a: i32,")), build], &[absent]);
    check(
        &[("src/lib.rs", &module("a: proto::Part,")), build],
        &[
            "error in src/lib.rs: the file of the module `proto` does not exist",
            absent,
        ],
    );
    check(
        &[("src/lib.rs", &module("a: i32,"))],
        &["error in src/lib.rs: file not found for module `proto`"],
    );
}

#[test]
fn follows_include_paths_that_can_be_evaluated() {
    for argument in [
        "concat!(\"pa\", \"rt.in\")",
        "concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/src/\", concat!(\"part.in\",),)",
    ] {
        let lib = format!("include!({argument});\n{}", cup("a: Part,"));
        check(&[("src/lib.rs", &lib), ("src/part.in", PART)], &[]);
    }
    let lib = format!("include!(env!(\"PARTS\"));\n{}", cup("a: i32,"));
    check(
        &[("src/lib.rs", &lib)],
        &["error in src/lib.rs: the path of this `include!` is not a string literal"],
    );
}

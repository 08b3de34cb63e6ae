//! After a change of the schema, stored objects may become unreadable, and we warn about them.

// The tests read and write files.
#![allow(clippy::disallowed_methods)]

use crate::support;

use support::Folder;

fn cup(field: &str) -> String {
    format!(
        "#[derive(kube::CustomResource, rbuilder::CrdSchema)]\n\
         #[kube(group = \"x.io\", version = \"v1\", kind = \"Cup\", namespaced)]\n\
         pub struct CupSpec {{\n    {field}\n}}\n"
    )
}

#[test]
fn warns_about_new_required_fields() {
    let folder = Folder::new();
    folder.write(
        "Cargo.toml",
        "[package]\nname = \"operator\"\nedition = \"2024\"\n",
    );
    folder.write("src/lib.rs", &cup("pub size: i32,"));
    let first = folder.run("manifests").ok();
    assert!(!first.err.contains("becomes required"), "{}", first.err);

    folder.write("src/lib.rs", &cup("pub size: i32,\n    pub colour: String,"));
    let expected = "warning[RB0801]: `.spec.colour` becomes required in version `v1` of `cups.x.io` and has no default: objects stored \
                    without it cannot be decoded\n --> src/lib.rs:5:9";
    let checked = folder.run("manifests --check");
    assert!(checked.err.contains(expected), "{}", checked.err);
    let second = folder.run("manifests").ok();
    assert!(second.err.contains(expected), "{}", second.err);
    assert!(second.err.contains("`#[kube(default = …)]`"), "{}", second.err);
    let third = folder.run("manifests").ok();
    assert!(!third.err.contains("becomes required"), "{}", third.err);

    folder.write(
        "src/lib.rs",
        &cup("pub size: i32,\n    pub colour: String,\n    #[kube(default = true)]\n    pub washed: bool,"),
    );
    let fourth = folder.run("manifests").ok();
    assert!(!fourth.err.contains("becomes required"), "{}", fourth.err);
}

/// A field becomes required. The warning about it has to be at `wanted` in the source.
fn check_place(before: &str, after: &str, path: &str, wanted: &str) {
    let folder = Folder::new();
    folder.write(
        "Cargo.toml",
        "[package]\nname = \"operator\"\nedition = \"2024\"\n",
    );
    folder.write("src/lib.rs", before);
    folder.run("manifests").ok();
    folder.write("src/lib.rs", after);
    let ran = folder.run("manifests").ok();
    let at = after.find(wanted).expect("it is in the source");
    let line = after[..at].lines().count();
    let column = at - after[..at].rfind('\n').expect("not the first line");
    let place = format!("--> src/lib.rs:{line}:{column}\n");
    let told = ran
        .err
        .split("warning[")
        .filter_map(|part| part.split_once("]: "))
        .map(|(_, said)| said)
        .find(|part| part.starts_with(&format!("`{path}` ")));
    assert!(
        told.is_some_and(|told| told.contains(&place)),
        "{path} at {place}: {}",
        ran.err
    );
}

#[test]
fn warning_is_located_at_the_field() {
    let kind = |fields: &str, rest: &str| {
        format!(
            "#[derive(kube::CustomResource, rbuilder::CrdSchema)]\n\
             #[kube(group = \"x.io\", version = \"v1\", kind = \"Cup\", status = \"CupStatus\")]\n\
             pub struct CupSpec {{\n    {fields}\n}}\n{rest}"
        )
    };
    let status = "#[derive(rbuilder::CrdSchema)]\npub struct CupStatus { ready: Option<bool> }\n";
    let inner = |name: &str, field: &str| {
        format!(
            "#[derive(rbuilder::CrdSchema)]\npub struct {name} {{\n    inner: Option<i32>,\n    {field}\n}}\n"
        )
    };
    for (fields, declared, added, path, wanted) in [
        (
            "a: Vec<Lid>,",
            "Lid",
            "weight: i32,",
            ".spec.a[*].weight",
            "weight",
        ),
        (
            "a: Option<Box<Lid>>,",
            "Lid",
            "weight: i32,",
            ".spec.a.weight",
            "weight",
        ),
        (
            "a: std::collections::BTreeMap<String, Lid>,",
            "Lid",
            "weight: i32,",
            ".spec.a.*.weight",
            "weight",
        ),
        (
            "#[serde(flatten)] a: Lid,",
            "Lid",
            "#[serde(rename = \"heavy\")] weight: i32,",
            ".spec.heavy",
            "weight",
        ),
        (
            "a: Wrapped<Lid>,",
            "Lid",
            "weight: i32,",
            ".spec.a.lid.weight",
            "weight",
        ),
        (
            "a: Shut,",
            "Lid",
            "weight: i32,",
            ".spec.a.Tight.weight",
            "weight",
        ),
    ] {
        let others = "#[derive(rbuilder::CrdSchema)]\npub struct Wrapped<T> { lid: T }\n\
                      #[derive(rbuilder::CrdSchema)]\npub enum Shut { Open(i32), Tight(Lid) }\n";
        let rest = |added: &str| format!("{status}{others}{}", inner(declared, added));
        check_place(
            &kind(fields, &rest("")),
            &kind(fields, &rest(added)),
            path,
            wanted,
        );
    }
    let grown = status.replace("ready: Option<bool>", "ready: Option<bool>, phase: String");
    check_place(
        &kind("a: i32,", status),
        &kind("a: i32,", &grown),
        ".status.phase",
        "phase",
    );
}

#[test]
fn warns_about_removed_enum_values() {
    let source = |variants: &str| {
        cup("phase: Phase,") + &format!("#[derive(rbuilder::CrdSchema)]\npub enum Phase {{ {variants} }}\n")
    };
    check_place(&source("Cold, Hot"), &source("Cold"), ".spec.phase", "phase");
}

#[test]
fn warns_about_changed_types() {
    check_place(
        &cup("pub size: i32,"),
        &cup("pub size: String,"),
        ".spec.size",
        "size",
    );
}

#[test]
fn warns_about_removed_fields_of_a_released_kind() {
    let folder = Folder::new();
    folder.write(
        "Cargo.toml",
        "[package]\nname = \"operator\"\nedition = \"2024\"\n",
    );
    let source = |field: &str| cup(&format!("pub size: i32,\n    {field}"));
    folder.write("src/lib.rs", &source("pub class_name: Option<String>,"));
    folder.run("manifests").ok();
    folder.write("src/lib.rs", &source("pub class: Option<String>,"));
    // Without git, only the author can have the CRD.
    let said = folder.run("manifests").ok().err;
    assert!(!said.contains("loses the field"), "{said}");
    folder.git("init --quiet");
    folder.git("add --all");
    folder.write("src/lib.rs", &source("pub kind: Option<String>,"));
    let said = folder.run("manifests").ok().err;
    let expected = "warning[RB0802]: `.spec` loses the field `class` in version `v1` of `cups.x.io`: the API server drops its value from \
                    stored objects\n --> src/lib.rs:3:";
    assert!(said.contains(expected), "{said}");
}

/// One field of a released kind has changed.
#[track_caller]
fn check_released(before: &str, after: &str, expected: Option<&str>) {
    let folder = Folder::new();
    folder.write(
        "Cargo.toml",
        "[package]\nname = \"operator\"\nedition = \"2024\"\n",
    );
    folder.write("src/lib.rs", &cup(before));
    folder.run("manifests").ok();
    folder.git("init --quiet");
    folder.git("add --all");
    folder.write("src/lib.rs", &cup(after));
    let said = folder.run("manifests --dry-run").ok().err;
    let breaks = said.contains("changes in version `v1` of `cups.x.io`");
    match expected {
        Some(expected) => assert!(said.contains(expected), "{before} to {after}: {said}"),
        None => assert!(!breaks, "{before} to {after}: {said}"),
    }
}

#[test]
fn warns_about_constraints_that_become_narrower() {
    let size = |marker: &str| format!("#[kube(validation({marker}))]\n    pub size: i32,");
    check_released(
        &size("maximum = 12"),
        &size("maximum = 9"),
        Some(
            "warning[RB0803]: `.spec.size` changes in version `v1` of `cups.x.io`: maximum 9 instead of 12; larger values are refused\n \
             --> src/lib.rs:5:9",
        ),
    );
    check_released(&size("maximum = 9"), &size("maximum = 12"), None);
    check_released(
        &size("minimum = 1"),
        &size("minimum = 2"),
        Some("smaller values are refused"),
    );
    let name = |marker: &str| format!("#[kube(validation({marker}))]\n    pub name: String,");
    check_released(
        &name("max_length = 9"),
        &name("max_length = 5"),
        Some("`.spec.name` changes in version `v1`"),
    );
    check_released(
        &name("pattern = \"^[a-z]*$\""),
        &name("pattern = \"^[a-m]*$\""),
        Some("`.spec.name` changes in version `v1`"),
    );
    check_released(
        "pub name: String,",
        "#[kube(validation(format = \"date\"))]\n    pub name: String,",
        Some("`.spec.name` changes in version `v1`"),
    );
}

#[test]
fn warns_about_rules_defaults_and_list_types() {
    check_released(
        "pub size: i32,",
        "#[kube(cel(rule = \"self > 3\"))]\n    pub size: i32,",
        Some("objects that violate it are refused"),
    );
    let size = |value: u8| format!("#[kube(default = {value})]\n    pub size: i32,");
    check_released(&size(1), &size(2), Some("the same manifest means something else"));
    check_released("pub size: i32,", &size(2), None);
    let names =
        |list_type: &str| format!("#[kube(list_type = \"{list_type}\")]\n    pub names: Vec<String>,");
    check_released(
        &names("set"),
        &names("atomic"),
        Some("server-side apply merges or replaces"),
    );
}

#[test]
fn constraints_of_a_kind_that_is_being_written_may_change() {
    let folder = Folder::new();
    folder.write(
        "Cargo.toml",
        "[package]\nname = \"operator\"\nedition = \"2024\"\n",
    );
    let size = |most: u8| {
        cup(&format!(
            "#[kube(validation(maximum = {most}))]\n    pub size: i32,"
        ))
    };
    folder.write("src/lib.rs", &size(12));
    folder.run("manifests").ok();
    folder.write("src/lib.rs", &size(9));
    let said = folder.run("manifests").ok().err;
    assert!(!said.contains("changes in version"), "{said}");
}

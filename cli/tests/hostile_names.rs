//! Tests with kinds whose names have another meaning in their scaffolded files.

use crate::support;

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use rbuilder_templates::USED_NAMES;
use support::Folder;

/// The kind has everything that `create` can add.
fn project(kind: &str) -> Folder {
    let folder = Folder::new();
    folder
        .run("init --domain example.com --project-name shop --license none")
        .ok();
    for version in ["v1", "v2"] {
        folder
            .run(&format!(
                "create api --group zoo --version {version} --kind {kind}"
            ))
            .ok();
    }
    let webhooks = "--defaulting --validation --conversion --spoke v2";
    folder
        .run(&format!(
            "create webhook --group zoo --version v1 --kind {kind} {webhooks}"
        ))
        .ok();
    folder
}

/// Collects the names in upper camel case. Comments and strings don't count.
fn names(tokens: TokenStream, found: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                let name = ident.to_string();
                let is_constant = name.len() > 1 && name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
                if name.starts_with(|first: char| first.is_ascii_uppercase()) && !is_constant {
                    found.insert(name);
                }
            }
            TokenTree::Group(group) => names(group.stream(), found),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

#[test]
fn names_used_in_templates_are_known() {
    let folder = project("Zebra");
    folder
        .run("create api --group zoo --version v1 --kind ZebraImage --image app --image-container-port 80")
        .ok();
    let mut found = BTreeSet::new();
    // The end-to-end test refers to no kind.
    let is_source = |path: &str| path.ends_with(".rs") && path != "tests/e2e.rs";
    for (path, text) in folder.tree().iter().filter(|(path, _)| is_source(path)) {
        let tokens = text.parse().unwrap_or_else(|error| panic!("{path}: {error}"));
        names(tokens, &mut found);
    }
    found.retain(|name| !name.starts_with("Zebra"));
    let known: BTreeSet<String> = USED_NAMES.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(found, known, "rbuilder_templates::USED_NAMES is out of date");
}

/// The second column is a part of the reason.
const REFUSED: [(&str, &str); 6] = [
    ("Default", "would shadow the Rust name"),
    ("Option", "would shadow the Rust name"),
    ("S", "would shadow the Rust name"),
    ("String", "would shadow the Rust name"),
    ("Vec", "would shadow the Rust name"),
    ("Self", "would shadow the Rust name"),
];

#[test]
fn rejects_impossible_names() {
    let folder = Folder::new();
    folder.run("init --domain example.com --project-name shop").ok();
    let before = folder.tree();
    for (kind, reason) in REFUSED {
        let ran = folder.run(&format!("create api --group zoo --version v1 --kind {kind}"));
        assert_eq!(ran.code, 1, "{kind}");
        assert!(
            ran.err.contains(reason) && ran.err.contains("--kind"),
            "{}",
            ran.err
        );
    }
    assert_eq!(folder.tree(), before);
}

/// The tests of a kind have a version in their names, since there may be a second one.
#[test]
fn kind_named_e2e_does_not_replace_the_end_to_end_test() {
    let tree = project("E2e").tree();
    assert!(tree["tests/e2e.rs"].contains("//! End-to-end test"));
    for path in ["tests/e2e_v1.rs", "tests/e2e_v2.rs", "tests/e2e_v1_webhook.rs"] {
        assert!(tree.contains_key(path), "{path} is missing");
    }
}

/// If the name of a kind is already used in its files, it's never imported by name alone. `cargo
/// xtask scaffold` checks that the files compile.
#[test]
fn kind_with_a_used_name_is_written_as_a_path() {
    for (kind, module) in [
        ("Action", "action"),
        ("Hub", "hub"),
        ("Spoke", "spoke"),
        ("Send", "send"),
        ("Box", "box_kind"),
    ] {
        let tree = project(kind).tree();
        for (path, expected) in [
            (format!("src/controller/{module}.rs"), format!("Arc<v1::{kind}>")),
            (
                format!("src/webhook/v1/{module}.rs"),
                format!("new: &v1::{kind},"),
            ),
            (
                format!("src/api/v2/{module}_conversion.rs"),
                format!("impl TryFrom<v2::{kind}> for v1::{kind} {{"),
            ),
            (
                format!("tests/{module}.rs"),
                format!("assert_generated_crd_matches::<v1::{kind}>()"),
            ),
            (
                format!("tests/{module}_v1_webhook.rs"),
                format!("assert_round_trip::<v1::{kind}, Spoke>()"),
            ),
        ] {
            let text = &tree[&path];
            assert!(text.contains(&expected), "{path} without {expected}:\n{text}");
            let mut imports = text.lines().filter(|line| line.starts_with("use "));
            assert!(
                !imports.any(|line| line.ends_with(&format!("v1::{kind};"))),
                "{path}:\n{text}"
            );
        }
    }
}

#[test]
fn module_named_like_a_crate_is_distinguished() {
    let folder = Folder::new();
    folder.run("init --domain example.com --project-name shop").ok();
    let manifest = folder.tree()["Cargo.toml"].replace("[dependencies]\n", "[dependencies]\nredis = \"1\"\n");
    folder.write("Cargo.toml", &manifest);
    for kind in ["Mug", "Redis", "Kube", "SerdeJson", "Zebra"] {
        folder
            .run(&format!("create api --group zoo --version v1 --kind {kind}"))
            .ok();
    }
    let exports: Vec<String> = folder.tree()["src/api/v1/mod.rs"]
        .lines()
        .filter(|line| line.starts_with("pub use "))
        .map(str::to_owned)
        .collect();
    assert_eq!(
        exports,
        [
            "pub use self::kube::*;",
            "pub use self::redis::*;",
            "pub use self::serde_json::*;",
            "pub use mug::*;",
            "pub use zebra::*;",
        ]
    );
}

#[test]
fn conversions_sort_imports_like_rustfmt() {
    let folder = Folder::new();
    folder.run("init --domain example.com --project-name shop").ok();
    for version in ["v1", "v2", "v10"] {
        folder
            .run(&format!(
                "create api --group zoo --version {version} --kind Zebra"
            ))
            .ok();
    }
    folder
        .run("create webhook --group zoo --version v2 --kind Zebra --conversion --spoke v1,v10")
        .ok();
    let tree = folder.tree();
    for (version, expected) in [
        (
            "v1",
            "use crate::api::v1::Zebra;\nuse crate::api::v2::Zebra as Hub;\n",
        ),
        (
            "v10",
            "use crate::api::v2::Zebra as Hub;\nuse crate::api::v10::Zebra;\n",
        ),
    ] {
        let text = &tree[&format!("src/api/{version}/zebra_conversion.rs")];
        assert!(text.contains(expected), "{text}");
    }
}

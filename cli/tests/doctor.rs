//! `rbuilder doctor`: what it finds in projects, and that it changes none. Findings about tools depend on the machine.

use crate::support;

use std::collections::BTreeMap;

use serde_json::Value;
use support::Folder;

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn project() -> Folder {
    let folder = Folder::new();
    for command in [
        "init --domain example.com --project-name shop",
        "create api --group cache --version v1 --kind Cup",
    ] {
        folder.run(command).ok();
    }
    folder
}

/// Findings about the project by name: status, message and help.
fn examine(folder: &Folder) -> (u8, BTreeMap<String, (String, String, String)>) {
    let before = folder.tree();
    let ran = folder.run("doctor --output json");
    assert_eq!(folder.tree(), before, "it changed the folder");
    let answer: Value = serde_json::from_str(&ran.out).expect("JSON");
    let findings = answer["findings"].as_array().expect("a list").iter();
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    let about = findings.map(|finding| {
        let content = ["status", "message", "help"].map(|key| text(finding, key));
        (text(finding, "check"), content.into())
    });
    (ran.code, about.collect())
}

/// Asserts one finding of a project, after a change to it.
#[track_caller]
fn check(change: impl Fn(&Folder), name: &str, status: &str, message: &str, help: &str) {
    let folder = project();
    change(&folder);
    let (code, findings) = examine(&folder);
    let found = &findings[name];
    assert_eq!(found.0, status, "{found:?}");
    assert!(found.1.contains(message) && found.2.contains(help), "{found:?}");
    assert!(status != "error" || code == 1);
    // The text says the same.
    let text = folder.run("doctor").out;
    assert!(
        text.contains(&format!("{status} {name}: {}\n", found.1)),
        "{text}"
    );
}

fn edit(path: &'static str, from: &'static str, to: &'static str) -> impl Fn(&Folder) {
    move |folder| {
        let text = folder.tree()[path].clone();
        assert!(text.contains(from), "{path}: {text}");
        folder.write(path, &text.replace(from, to));
    }
}

#[test]
fn a_new_project_is_well() {
    let (_, findings) = examine(&project());
    for name in ["project", "library", "scaffold", "manifests", "rust"] {
        assert_eq!(findings[name].0, "ok", "{:?}", findings[name]);
    }
    assert!(findings.contains_key("kubectl") && findings.contains_key("envtest"));
    assert!(findings["rust"].1.starts_with("rustc 1."), "{findings:?}");
}

#[test]
fn tools_that_are_too_old_are_errors() {
    let newer = |folder: &Folder| {
        let text = folder.tree()["Cargo.toml"].clone();
        let line = text
            .lines()
            .find(|line| line.starts_with("rust-version"))
            .expect("a line");
        folder.write("Cargo.toml", &text.replace(line, "rust-version = \"1.9999\""));
    };
    check(
        newer,
        "rust",
        "error",
        "the project needs 1.9999",
        "rustup update",
    );
}

#[test]
fn versions_that_disagree_are_found() {
    let set = |to: &'static str| {
        move |folder: &Folder| {
            let text = folder.tree()["PROJECT"].clone();
            folder.write(
                "PROJECT",
                &text.replace(&format!("cliVersion: {VERSION}"), &format!("cliVersion: {to}")),
            );
        }
    };
    check(
        set("0.0.1"),
        "project",
        "warning",
        "by rbuilder 0.0.1",
        "rbuilder update",
    );
    check(
        set("99.0.0"),
        "project",
        "error",
        "newer than this command",
        "cargo install rbuilder-cli --version 99.0.0",
    );
    check(set("(devel)"), "project", "error", "`(devel)`", "set it");
    let version = |folder: &Folder| drop(folder.run("library --set version --version 0.0.1").ok());
    check(version, "library", "warning", "version 0.0.1", "rbuilder update");
    let git = |folder: &Folder| {
        drop(
            folder
                .run("library --set git --url https://git.example.com/r --rev abc")
                .ok(),
        );
    };
    check(git, "library", "ok", "https://git.example.com/r at `abc`", "");
    let away = |folder: &Folder| {
        for path in ["Cargo.toml", "PROJECT"] {
            let text = folder.tree()[path].replace("/runtime", "/nowhere");
            folder.write(path, &text);
        }
    };
    check(
        away,
        "library",
        "error",
        "does not hold the library",
        "rbuilder library --set",
    );
}

#[test]
fn manifests_and_files_that_differ_are_found() {
    let field = edit(
        "src/api/v1/cup.rs",
        "pub foo: Option<String>",
        "pub size: Option<String>",
    );
    check(
        &field,
        "manifests",
        "warning",
        "config/crd/bases/cache.example.com_cups.yaml",
        "rbuilder manifests",
    );
    check(
        &field,
        "scaffold",
        "ok",
        "1 changed since (src/api/v1/cup.rs)",
        "",
    );
    let removed = |folder: &Folder| folder.remove("Dockerfile");
    check(removed, "scaffold", "ok", "1 deleted since (Dockerfile)", "");
    let broken = edit("src/api/v1/cup.rs", "max_length = 63", "max_lenght = 63");
    check(broken, "manifests", "error", "src/api/v1/cup.rs:", "all errors");
    let conflict = edit(
        "Makefile",
        "KIND ?= kind\n",
        "<<<<<<< this project\nKIND ?= kind\n",
    );
    check(conflict, "scaffold", "error", "Makefile:", "edit the lines");
}

#[test]
fn folders_without_a_project_of_ours_are_errors() {
    let (code, findings) = examine(&Folder::new());
    assert_eq!((code, findings["project"].0.as_str()), (1, "error"));
    let foreign = edit("PROJECT", "rust.rbuilder.dev/v1", "go.kubebuilder.io/v4");
    check(foreign, "project", "error", "unsupported layout", "");
}

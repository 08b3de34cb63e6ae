//! `rbuilder manifests --keep-going`, which is the default without a scaffold, writes the manifests
//! of kinds without errors and keeps all others.

// The tests read and write files.
#![allow(clippy::disallowed_methods)]

use crate::support;

use support::Folder;

const CUP: &str = "config/crd/bases/x.io_cups.yaml";
const POT: &str = "config/crd/bases/x.io_pots.yaml";
const CAN: &str = "config/crd/bases/x.io_cans.yaml";

fn kind(kind: &str, field: &str) -> String {
    format!(
        "#[derive(kube::CustomResource, schemars::JsonSchema)]\n\
         #[kube(group = \"x.io\", version = \"v1\", kind = \"{kind}\")]\n\
         pub struct {kind}Spec {{\n    {field},\n}}\n"
    )
}

/// The project has three kinds with manifests.
fn project() -> Folder {
    let folder = Folder::new();
    folder.write(
        "Cargo.toml",
        "[package]\nname = \"cafe\"\nedition = \"2024\"\n[dependencies]\nkube = \"3\"\nschemars = \"1\"\n",
    );
    folder.write("src/main.rs", "mod cup;\nmod pot;\nmod can;\nfn main() {}\n");
    folder.write("src/cup.rs", &kind("Cup", "pub size: i32"));
    folder.write("src/pot.rs", &kind("Pot", "pub size: i32"));
    folder.write("src/can.rs", &kind("Can", "pub size: i32"));
    folder.run("manifests").ok();
    folder
}

fn set_keep_going(folder: &Folder, value: bool) {
    let manifest = folder.tree()["Cargo.toml"].clone();
    let (own, _) = manifest
        .split_once("[package.metadata")
        .unwrap_or((&manifest, ""));
    folder.write(
        "Cargo.toml",
        &format!("{own}[package.metadata.rbuilder]\nkeep-going = {value}\n"),
    );
}

/// The command must fail with these messages, and change these files.
#[track_caller]
fn check(folder: &Folder, line: &str, said: &[&str], changed: &[&str]) {
    let before = folder.tree();
    let ran = folder.run(line);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    for part in said {
        let found = ran.err.contains(part) || ran.out.contains(part);
        assert!(found, "{part:?} is missing in\n{}{}", ran.out, ran.err);
    }
    let after = folder.tree();
    let differing: Vec<&str> = before
        .keys()
        .chain(after.keys().filter(|path| !before.contains_key(*path)))
        .filter(|path| before.get(*path) != after.get(*path))
        .map(String::as_str)
        .collect();
    assert_eq!(differing, changed, "{line}\n{}", ran.err);
}

#[test]
fn writes_readable_kinds_and_keeps_others() {
    let folder = project();
    folder.write("src/cup.rs", &kind("Cup", "pub size: i64"));
    folder.write("src/pot.rs", &kind("Pot", "pub size: Unknown"));
    // This kind doesn't exist anymore, but we only know that when nothing has errors.
    folder.write("src/can.rs", "");
    let refused = "no files were written: pass `--keep-going` to generate the manifests of the kinds without errors (1 of 2)";
    set_keep_going(&folder, false);
    check(&folder, "manifests", &[refused], &[]);
    let summary = [
        "found 1 error in the source; these manifests were left as they are: 1 of 2 kinds",
        "Pot (x.io): src/pot.rs:4:15: cannot find type `Unknown`",
    ];
    check(
        &folder,
        "manifests --keep-going --check",
        &[summary[0], summary[1], "the manifests are not up to date", CUP],
        &[],
    );
    check(&folder, "manifests --keep-going --dry-run", &summary, &[]);
    check(&folder, "manifests --keep-going", &summary, &[CUP]);
    assert!(folder.tree()[POT].contains("format: int32"));
    assert!(folder.tree().contains_key(CAN));
    // The second run has nothing to write, but must still fail.
    check(&folder, "manifests --keep-going", &summary, &[]);
    check(&folder, "manifests --keep-going --check", &summary, &[]);
    let ran = folder.run("manifests --keep-going --stdout");
    assert_eq!(ran.code, 1);
    assert!(
        ran.out.contains("kind: Cup") && !ran.out.contains("kind: Pot"),
        "{}",
        ran.out
    );
    let json: serde_json::Value =
        serde_json::from_str(&folder.run("manifests --keep-going --output json").out).expect("JSON");
    assert!(json["error"].as_str().expect("an error").contains("Pot (x.io)"));
}

#[test]
fn commands_without_manifests_report_omitted_kinds() {
    let folder = project();
    folder.write("src/cup.rs", &kind("Cup", "pub size: i64"));
    folder.write("src/pot.rs", &kind("Pot", "pub size: Unknown"));
    set_keep_going(&folder, true);
    let summary = [
        "found 1 error in the source; these were left out: 1 of 3 kinds",
        "Pot (x.io)",
    ];
    check(&folder, "manifests --stdout", &summary, &[]);
    check(&folder, "docs --stdout", &summary, &[]);
}

#[test]
fn stops_if_a_version_would_be_lost() {
    let folder = project();
    folder.write("src/main.rs", "mod cup;\nmod pot;\nfn main() {}\n");
    folder.write("src/pot.rs", &kind("Pot", "pub size: Unknown"));
    folder.write(
        "src/cup.rs",
        &kind("Cup", "pub size: i64").replace("\"v1\"", "\"v2\""),
    );
    folder.write("src/old.rs", &kind("Cup", "pub size: i32"));
    check(
        &folder,
        "manifests --keep-going",
        &["would lose version `v1`", "no files were written"],
        &[],
    );
}

#[test]
fn has_no_effect_without_errors() {
    let folder = project();
    folder.write("src/can.rs", "");
    folder.run("manifests --keep-going").ok();
    assert!(!folder.tree().contains_key(CAN));
    folder.run("manifests --keep-going --check").ok();
}

/// Every command that generates manifests has to follow the setting.
#[test]
fn docs_follow_the_setting_of_the_project() {
    let folder = project();
    folder.write("src/cup.rs", &kind("Cup", "pub size: Missing"));
    set_keep_going(&folder, false);
    check(&folder, "docs", &["cannot find"], &[]);
    check(&folder, "docs --stdout", &["cannot find"], &[]);
    set_keep_going(&folder, true);
    check(
        &folder,
        "docs",
        &["cannot find", "these were left out: 1 of 3 kinds"],
        &["docs/api.html"],
    );
    let ran = folder.run("docs --stdout");
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.out.contains("Pot") && !ran.out.contains("Cup"), "{}", ran.out);
}

const SCAFFOLD: &str = "domain: x.io\nlayout:\n- rust.rbuilder.dev/v1\nprojectName: cafe\nversion: \"3\"\n";
const SUMMARY: &str = "found 1 error in the source; these manifests were left as they are: 1 of 3 kinds";

#[test]
fn projects_without_a_scaffold_keep_going_by_default() {
    let folder = project();
    folder.write("src/cup.rs", &kind("Cup", "pub size: i64"));
    folder.write("src/pot.rs", &kind("Pot", "pub size: Unknown"));
    check(&folder, "manifests --check", &[SUMMARY, "Pot (x.io)", CUP], &[]);
    check(&folder, "manifests", &[SUMMARY, "Pot (x.io)"], &[CUP]);
    check(&folder, "manifests --check", &[SUMMARY, "Pot (x.io)"], &[]);
    check(&folder, "docs", &["1 of 3 kinds"], &["docs/api.html"]);
}

#[test]
fn projects_of_other_tools_keep_going_by_default() {
    let folder = project();
    folder.write(
        "PROJECT",
        "domain: x.io\nlayout:\n- go.kubebuilder.io/v4\nprojectName: cafe\nversion: \"3\"\n",
    );
    folder.write("src/cup.rs", &kind("Cup", "pub size: i64"));
    folder.write("src/pot.rs", &kind("Pot", "pub size: Unknown"));
    check(&folder, "manifests", &[SUMMARY], &[CUP]);
}

#[test]
fn errors_stop_all_kinds_of_a_scaffold() {
    let folder = project();
    folder.write("src/cup.rs", &kind("Cup", "pub size: i64"));
    folder.write("src/pot.rs", &kind("Pot", "pub size: Unknown"));
    for (project, said) in [
        (SCAFFOLD, "no files were written"),
        ("layout: [\n", "cannot parse PROJECT"),
    ] {
        folder.write("PROJECT", project);
        check(&folder, "manifests", &[said], &[]);
    }
}

#[test]
fn doctor_reports_kinds_with_errors() {
    let folder = project();
    folder.write("PROJECT", SCAFFOLD);
    folder.write("src/pot.rs", &kind("Pot", "pub size: Unknown"));
    for keep_going in [false, true] {
        set_keep_going(&folder, keep_going);
        let ran = folder.run("doctor");
        assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
        assert!(
            ran.out.contains("cannot find type `Unknown`"),
            "{}{}",
            ran.out,
            ran.err
        );
    }
}

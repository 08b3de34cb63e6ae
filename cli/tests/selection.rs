//! Kinds of the project become CRDs, but foreign kinds that it uses don't.

// The tests read and write files.
#![allow(clippy::disallowed_methods)]

use crate::support;

use support::{Folder, Ran};

const CUP: &str = "config/crd/bases/example.com_cups.yaml";
const MONITOR: &str = "config/crd/bases/monitoring.coreos.com_podmonitors.yaml";
const PLATE: &str = "config/crd/bases/elsewhere.org_plates.yaml";

fn kind(kind: &str, group: &str, more: &str) -> String {
    format!(
        "#[derive(kube::CustomResource, {derive})]\n\
         #[kube(group = \"{group}\", version = \"v1\", kind = \"{kind}\"{more})]\n\
         pub struct {kind}Spec {{\n    pub size: i32,\n}}\n",
        derive = if more.is_empty() {
            "schemars::JsonSchema"
        } else {
            "Clone"
        },
    )
}

/// The package has a kind of its own, a binding, and a kind that may be either.
fn package(metadata: &str) -> Folder {
    let folder = Folder::new();
    folder.write(
        "Cargo.toml",
        &format!("[package]\nname = \"operator\"\nedition = \"2024\"\n{metadata}"),
    );
    folder.write(
        "src/lib.rs",
        &[
            kind("Cup", "example.com", ""),
            kind("PodMonitor", "monitoring.coreos.com", ""),
            kind("Plate", "elsewhere.org", ""),
        ]
        .concat(),
    );
    folder
}

/// Returns the CRDs that we get, and the result of the run.
#[track_caller]
fn made(folder: &Folder, line: &str) -> (Vec<String>, Ran) {
    let ran = folder.run(line).ok();
    let tree = folder.tree();
    let crds = tree
        .into_keys()
        .filter(|path| path.starts_with("config/crd/bases/"));
    (crds.collect(), ran)
}

#[track_caller]
fn refused(folder: &Folder, line: &str, parts: &[&str]) {
    let ran = folder.run(line);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    for part in parts {
        assert!(ran.err.contains(part), "{part:?} is missing in\n{}", ran.err);
    }
}

#[test]
fn check_that_compares_nothing_is_an_error() {
    let folder = Folder::new();
    folder.write(
        "Cargo.toml",
        "[package]\nname = \"tool\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
    );
    folder.write("src/main.rs", "fn main() {}\n");
    let ran = folder.run("manifests --check");
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("no kinds or markers found"), "{}", ran.err);
    assert!(
        ran.err.contains("error: no manifests were compared"),
        "{}",
        ran.err
    );
    folder.run("manifests --check --allow-empty").ok();
    folder.run("manifests").ok();
}

#[test]
fn reports_foreign_kinds_and_does_not_write_them() {
    let folder = package("");
    let (crds, ran) = made(&folder, "manifests");
    assert_eq!(crds, [PLATE, CUP]);
    for part in [
        "note: skipping the CRD of kind `PodMonitor`: the group `monitoring.coreos.com` belongs to Prometheus Operator",
        "--> src/lib.rs:8:12",
        "only = [\"*.elsewhere.org\", \"*.example.com\", \"*.monitoring.coreos.com\"]",
        "`--kind PodMonitor`",
        "skip = [\"PodMonitor\"]",
    ] {
        assert!(ran.err.contains(part), "{part:?} is missing in\n{}", ran.err);
    }
    assert_eq!(ran.err.matches("note: ").count(), 1, "{}", ran.err);
    folder.run("manifests --check").ok();
    let ran = folder.run("manifests --message-format json").ok();
    assert!(ran.out.contains("\"level\":\"note\""), "{}", ran.out);
}

/// A binding may have a type without a schema.
#[test]
fn bindings_need_no_schema() {
    let folder = package("");
    let text = kind("PodMonitor", "monitoring.coreos.com", "").replace("i32", "(elsewhere::Unknown, i32)");
    folder.write("src/lib.rs", &format!("{}{text}", kind("Cup", "example.com", "")));
    assert_eq!(made(&folder, "manifests").0, [CUP]);
}

#[test]
fn following_the_advice_works() {
    let folder = package(
        "[package.metadata.rbuilder]\nonly = [\"*.elsewhere.org\", \"*.example.com\", \"*.monitoring.coreos.com\"]\n",
    );
    let (crds, ran) = made(&folder, "manifests");
    assert_eq!(crds, [PLATE, CUP, MONITOR]);
    assert_eq!(ran.err, "");
    let folder = package("[package.metadata.rbuilder]\nskip = [\"PodMonitor\"]\n");
    let (crds, ran) = made(&folder, "manifests");
    assert_eq!(crds, [PLATE, CUP]);
    assert_eq!(ran.err, "");
    assert_eq!(made(&package(""), "manifests --kind PodMonitor").0, [MONITOR]);
}

#[test]
fn flags_and_lists_select_kinds() {
    let only = |list: &str| package(&format!("[package.metadata.rbuilder]\nonly = [{list}]\n"));
    let folder = only("\"Cup\", \"PodMonitor.monitoring.coreos.com\"");
    let (crds, ran) = made(&folder, "manifests");
    assert_eq!(crds, [CUP, MONITOR]);
    let said =
        "note: skipping the CRD of kind `Plate`: `only` in `[package.metadata.rbuilder]` does not list it";
    assert!(ran.err.contains(said), "{}", ran.err);
    for (flags, expected) in [
        ("--skip-kind Plate", vec![CUP]),
        ("--skip-kind Plate.elsewhere.org,*.example.com", vec![]),
        ("--kind Plate", vec![PLATE]),
        ("--kind Plate --kind Cup", vec![PLATE, CUP]),
        (
            "--kind *.elsewhere.org,PodMonitor --skip-kind Plate",
            vec![MONITOR],
        ),
    ] {
        assert_eq!(
            made(&package(""), &format!("manifests {flags}")).0,
            expected,
            "{flags}"
        );
    }
}

/// If flags exclude a kind, it isn't stale. If Cargo.toml excludes it, `--prune` removes it.
#[test]
fn skipped_kinds_are_not_deleted() {
    let folder = package("");
    made(&folder, "manifests");
    assert_eq!(made(&folder, "manifests --kind Cup").0, [PLATE, CUP]);
    assert_eq!(made(&folder, "manifests --skip-kind Cup").0, [PLATE, CUP]);
    let manifest = folder.tree()["Cargo.toml"].clone();
    folder.write(
        "Cargo.toml",
        &format!("{manifest}[package.metadata.rbuilder]\nskip = [\"Plate\"]\n"),
    );
    refused(
        &folder,
        "manifests",
        &[
            "the kind is not selected",
            "elsewhere.org_plates.yaml` would be deleted",
        ],
    );
    assert_eq!(made(&folder, "manifests --prune").0, [CUP]);
}

#[test]
fn rejects_unknown_kinds() {
    let with = |text: &str| package(&format!("[package.metadata.rbuilder]\n{text}\n"));
    for (text, parts) in [
        (
            "only = [\"Cpu\"]",
            &[
                "the package has no kind `Cpu`",
                "did you mean `Cup`?",
                "--> Cargo.toml:5:9",
            ][..],
        ),
        (
            "skip = [\"Cup.example.org\"]",
            &["did you mean `Cup.example.com`?"],
        ),
        ("skip = [\"*.exmple.com\"]", &["did you mean `*.example.com`?"]),
        ("skp = [\"Cup\"]", &["unknown key `skp`", "did you mean `skip`?"]),
        (
            "skip = \"Cup\"",
            &["expected a list of kinds for `skip`", "skip = [\"Memcached\"]"],
        ),
        ("skip = [1]", &["expected a list of kinds for `skip`"]),
        (
            "only = [\"Cup\"]\nskip = [\"Cup\"]",
            &["`Cup` is in both `only` and `skip`"],
        ),
    ] {
        refused(&with(text), "manifests", parts);
    }
    refused(
        &package(""),
        "manifests --kind Cupp",
        &["no package has a kind `Cupp`", "did you mean `Cup`?"],
    );
    refused(
        &package(""),
        "manifests --skip-kind Podmon",
        &["no package has a kind `Podmon`"],
    );
}

/// If a disabled feature leaves out a kind, that's not a mistake.
#[test]
fn lists_may_contain_kinds_of_disabled_features() {
    let folder = package("[features]\nmore = []\n[package.metadata.rbuilder]\nskip = [\"More\"]\n");
    let text = folder.tree()["src/lib.rs"].clone();
    let more = kind("More", "example.com", "");
    folder.write("src/lib.rs", &format!("{text}#[cfg(feature = \"more\")]\n{more}"));
    folder.run("manifests").ok();
    assert_eq!(made(&folder, "manifests --all-features").0, [PLATE, CUP]);
}

#[test]
fn project_file_determines_own_kinds() {
    let folder = package("");
    let project = |resources: &str| {
        format!(
            "version: \"3\"\nprojectName: operator\ndomain: example.com\nlayout: [rust.rbuilder.dev/v1]\n{resources}"
        )
    };
    folder.write("PROJECT", &project(""));
    let (crds, ran) = made(&folder, "manifests");
    assert_eq!(crds, [PLATE, CUP]);
    let said = "warning: kind `Plate` has a CRD, but its group `elsewhere.org` is not in the project's domain `example.com`";
    assert!(ran.err.contains(said), "{}", ran.err);
    let listed = "resources:\n\
        - {group: elsewhere, domain: org, version: v1, kind: Plate, api: {crdVersion: v1}}\n\
        - {group: monitoring, domain: coreos.com, version: v1, kind: PodMonitor, api: {crdVersion: v1}}\n";
    folder.write("PROJECT", &project(listed));
    let (crds, ran) = made(&folder, "manifests");
    assert_eq!(crds, [PLATE, CUP, MONITOR]);
    assert_eq!(ran.err, "");
}

/// Kinds in the same group are reported together.
#[test]
fn warns_once_about_kinds_of_another_domain() {
    let folder = package("");
    folder.write(
        "PROJECT",
        "version: \"3\"\nprojectName: operator\ndomain: example.com\nlayout: [rust.rbuilder.dev/v1]\n",
    );
    let kinds: String = ["Plate", "Fork", "Knife"]
        .iter()
        .map(|name| kind(name, "elsewhere.org", ""))
        .collect();
    folder.write("src/lib.rs", &kinds);
    let ran = folder.run("manifests").ok();
    assert_eq!(ran.err.matches("warning").count(), 1, "{}", ran.err);
    for part in [
        "warning: kind `Plate` and 2 more have CRDs, but their group `elsewhere.org` is not in the project's domain `example.com`",
        "if another project installs the CRDs, add `skip = [\"*.elsewhere.org\"]`",
    ] {
        assert!(ran.err.contains(part), "{}", ran.err);
    }
}

/// In kube, this declares a kind that somebody else installs.
#[test]
fn kind_without_a_schema_is_a_binding() {
    let disabled = ", schema = \"disabled\"";
    let folder = package("");
    let write = |text: &str| folder.write("src/lib.rs", text);
    write(&format!(
        "{}{}",
        kind("Cup", "example.com", ""),
        kind("Plate", "elsewhere.org", disabled)
    ));
    let (crds, ran) = made(&folder, "manifests");
    assert_eq!(crds, [CUP]);
    let said = "note: skipping the CRD of kind `Plate`: `schema = \"disabled\"` means that its CRD comes from elsewhere";
    assert!(ran.err.contains(said), "{}", ran.err);
    assert_eq!(made(&folder, "manifests --kind Plate").0, [PLATE, CUP]);
}

#[test]
fn each_workspace_package_has_its_own_list() {
    let folder = Folder::new();
    folder.write("Cargo.toml", "[workspace]\nmembers = [\"a\", \"b\"]\n");
    for (name, list) in [
        ("a", ""),
        ("b", "[package.metadata.rbuilder]\nskip = [\"Plate\"]\n"),
    ] {
        folder.write(
            &format!("{name}/Cargo.toml"),
            &format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n{list}"),
        );
    }
    folder.write("a/src/lib.rs", &kind("Cup", "example.com", ""));
    folder.write("b/src/lib.rs", &kind("Plate", "elsewhere.org", ""));
    assert_eq!(made(&folder, "manifests").0, [CUP]);
    let manifest = folder.tree()["b/Cargo.toml"].replace("Plate", "Cup");
    folder.write("b/Cargo.toml", &manifest);
    refused(
        &folder,
        "manifests",
        &["the package has no kind `Cup`", "--> b/Cargo.toml:5:9"],
    );
}

//! Manifests are removed silently if their source was deleted, but only with `--prune` if it still
//! exists.

// The tests read and write files.
#![allow(clippy::disallowed_methods)]

use crate::support;

use support::{Folder, Ran};

const CRD: &str = "config/crd/bases/x.io_cups.yaml";
const ROLE: &str = "config/rbac/role.yaml";
const WEBHOOKS: &str = "config/webhook/manifests.yaml";

fn kind(kind: &str, version: &str) -> String {
    let storage = version == "v1";
    format!(
        "#[derive(kube::CustomResource, rbuilder::CrdSchema)]\n\
         #[kube(group = \"x.io\", version = \"{version}\", kind = \"{kind}\", namespaced, storage = {storage})]\n\
         pub struct {kind}Spec {{\n    pub size: i32,\n}}\n"
    )
}

fn rule(resource: &str) -> String {
    format!(
        "#[rbuilder::rbac(groups = \"apps\", resources = \"{resource}\", verbs = \"get;list\")]\npub fn f() {{}}\n"
    )
}

const WEBHOOK: &str =
    "#[rbuilder::webhook(validating)]\npub async fn check(cup: &crate::cup::Cup) -> Result<(), Denied> {}\n";

/// Each part of the operator is in a module of its own, and the manifests exist.
fn operator() -> Folder {
    let folder = Folder::new();
    folder.write(
        "Cargo.toml",
        "[package]\nname = \"operator\"\nedition = \"2024\"\n[features]\ndefault = [\"new\"]\nnew = []\n",
    );
    folder.write(
        "src/lib.rs",
        "pub mod cup;\npub mod old;\npub mod deploy;\npub mod hook;\npub mod pods;\n",
    );
    folder.write("src/cup.rs", &kind("Cup", "v1"));
    folder.write("src/old.rs", &kind("Cup", "v1beta1"));
    folder.write("src/deploy.rs", &rule("deployments"));
    folder.write("src/pods.rs", &rule("statefulsets"));
    folder.write("src/hook.rs", WEBHOOK);
    folder.write(
        "PROJECT",
        "version: \"3\"\nprojectName: operator\ndomain: x.io\nlayout: [rust.rbuilder.dev/v1]\n",
    );
    folder.run("manifests").ok();
    let tree = folder.tree();
    [CRD, ROLE, WEBHOOKS]
        .iter()
        .for_each(|path| assert!(tree.contains_key(*path), "{path}"));
    folder
}

/// The command must fail with these messages, and keep the manifests.
#[track_caller]
fn refused(folder: &Folder, line: &str, parts: &[&str]) -> Ran {
    let before = folder.tree();
    let ran = folder.run(line);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    for part in parts {
        assert!(ran.err.contains(part), "{part:?} is missing in\n{}", ran.err);
    }
    assert_eq!(before, folder.tree());
    ran
}

fn without(folder: &Folder, module: &str) {
    let text = folder.tree()["src/lib.rs"].replace(&format!("pub mod {module};\n"), "");
    folder.write("src/lib.rs", &text);
}

#[test]
fn missing_mod_line_deletes_no_crd() {
    let folder = operator();
    folder.write("src/lib.rs", "pub mod deploy;\npub mod pods;\n");
    let said = [
        "`config/crd/bases/x.io_cups.yaml` would be deleted, but the source still defines the kind: no `mod` declares the file",
        "--> src/cup.rs:3:12",
        "--> src/old.rs:3:12",
        "`config/webhook/manifests.yaml` would lose the webhook `vcup-v1.kb.io`",
        "add the `mod` declaration, or delete the file; to remove it anyway, run `rbuilder manifests --prune`",
        "no files were written",
    ];
    let ran = refused(&folder, "manifests", &said);
    assert!(!ran.err.contains("is ignored"), "said twice: {}", ran.err);
    refused(&folder, "manifests --check", &said);
    refused(&folder, "manifests --dry-run", &said);
    // With `--no-prune`, the command succeeds, but keeps the CRD.
    folder.run("manifests --no-prune --only crd").ok();
    assert!(folder.tree().contains_key(CRD));
    folder.run("manifests --prune").ok();
    assert!(!folder.tree().contains_key(CRD));
    assert!(!folder.tree().contains_key(WEBHOOKS));
    assert!(folder.run("manifests").ok().err.contains("is ignored"));
}

#[test]
fn crd_moves_to_the_file_of_its_name() {
    let folder = operator();
    let crd = folder.tree()[CRD].clone();
    folder.write("config/crd/bases/all.yaml", &crd);
    folder.remove(CRD);
    folder.run("manifests").ok();
    let tree = folder.tree();
    assert_eq!(tree[CRD], crd);
    assert!(!tree.contains_key("config/crd/bases/all.yaml"));
}

#[test]
fn missing_mod_line_removes_no_version() {
    let folder = operator();
    without(&folder, "old");
    let said =
        "`config/crd/bases/x.io_cups.yaml` would lose version `v1beta1`, which the source still defines";
    refused(&folder, "manifests", &[said, "--> src/old.rs:3:12"]);
    folder.run("manifests --prune").ok();
    assert!(!folder.tree()[CRD].contains("v1beta1"));
}

#[test]
fn missing_mod_line_removes_no_permission() {
    let said = "`config/rbac/role.yaml` would lose permissions that this marker requests";
    // Lose some of the permissions first, then all.
    let folder = operator();
    without(&folder, "deploy");
    refused(&folder, "manifests", &[said, "--> src/deploy.rs:1:1"]);
    without(&folder, "pods");
    refused(
        &folder,
        "manifests",
        &[said, "--> src/deploy.rs:1:1", "--> src/pods.rs:1:1"],
    );
    folder.run("manifests --prune").ok();
    assert!(folder.tree()[ROLE].contains("rules: []"));
}

/// Sometimes a marker has not belonged to a module for long. Then it must not get in the way.
#[test]
fn ignores_markers_without_a_manifest() {
    let folder = operator();
    folder.write(
        "src/lost.rs",
        &format!("{}{}", kind("Plate", "v1"), rule("daemonsets")),
    );
    folder.run("manifests").ok();
    folder.write("src/deploy.rs", "");
    folder.run("manifests").ok();
    assert!(!folder.tree()[ROLE].contains("deployments"));
    // Another marker still requests this permission.
    folder.write("src/lost.rs", &rule("statefulsets"));
    folder.write("src/pods.rs", &rule("statefulsets;replicasets"));
    folder.run("manifests").ok();
}

#[test]
fn deleted_source_is_removed_without_a_flag() {
    let folder = operator();
    for module in ["cup", "old", "deploy", "hook"] {
        without(&folder, module);
        folder.remove(&format!("src/{module}.rs"));
    }
    folder.run("manifests").ok();
    let tree = folder.tree();
    assert!(!tree.contains_key(CRD));
    assert!(!tree.contains_key(WEBHOOKS));
    assert!(!tree[ROLE].contains("deployments"));
    assert!(tree[ROLE].contains("statefulsets"));
}

/// If a kind is renamed, its manifest has another name, but comes from the same file.
#[test]
fn renamed_kind_is_replaced_without_a_flag() {
    let folder = operator();
    for (module, version) in [("cup", "v1"), ("old", "v1beta1")] {
        folder.write(&format!("src/{module}.rs"), &kind("Mug", version));
    }
    folder.write("src/hook.rs", &WEBHOOK.replace("Cup", "Mug"));
    folder.run("manifests").ok();
    assert!(!folder.tree().contains_key(CRD));
    assert!(folder.tree().contains_key("config/crd/bases/x.io_mugs.yaml"));
}

#[test]
fn tracked_crd_is_only_removed_with_prune() {
    const CONSEQUENCE: &str = "when `cups.x.io` is deleted from a cluster, as a GitOps tool that prunes does, every `Cup` there is deleted with it";
    let folder = operator();
    // Keep the git directory elsewhere, so that all files in the project are text.
    let repository = Folder::new();
    let place = repository.path().join("git");
    folder.git(&format!("init -q --separate-git-dir {}", place.display()));
    for module in ["cup", "old", "hook"] {
        without(&folder, module);
        folder.remove(&format!("src/{module}.rs"));
    }
    let untracked = folder.copy();
    let ran = untracked.run("manifests").ok();
    assert!(
        ran.err.contains(&format!(
            "warning[RB0805]: `{CRD}` is deleted, because the source no longer defines the kind"
        )),
        "{}",
        ran.err
    );
    assert!(ran.err.contains(CONSEQUENCE), "{}", ran.err);
    assert!(!untracked.tree().contains_key(CRD));

    folder.git(&format!("add {CRD}"));
    let error =
        format!("error[RB0805]: `{CRD}` would be deleted, because the source no longer defines the kind");
    for line in [
        "manifests",
        "manifests --check",
        "manifests --dry-run",
        "manifests --keep-going",
    ] {
        refused(
            &folder,
            line,
            &[
                &error,
                CONSEQUENCE,
                "run `rbuilder manifests --prune`",
                "no files were written",
            ],
        );
    }
    // When a kind is renamed, a CRD is deleted as well.
    folder.write("src/cup.rs", &kind("Mug", "v1"));
    let modules = format!("{}pub mod cup;\n", folder.tree()["src/lib.rs"]);
    folder.write("src/lib.rs", &modules);
    refused(&folder, "manifests", &[&error, CONSEQUENCE]);
    folder.run("manifests --no-prune").ok();
    assert!(folder.tree().contains_key(CRD));
    let ran = folder.run("manifests --prune").ok();
    assert!(ran.err.contains(CONSEQUENCE), "{}", ran.err);
    assert!(!folder.tree().contains_key(CRD));
    assert!(folder.tree().contains_key("config/crd/bases/x.io_mugs.yaml"));
}

#[test]
fn keeps_manifests_of_disabled_features() {
    let folder = operator();
    let modules =
        folder.tree()["src/lib.rs"].replace("pub mod old;", "#[cfg(feature = \"new\")]\npub mod old;");
    folder.write("src/lib.rs", &modules);
    let inline = format!("#[cfg(feature = \"new\")]\n{}", rule("deployments"));
    folder.write("src/deploy.rs", &inline);
    folder.run("manifests --check").ok();
    refused(
        &folder,
        "manifests --no-default-features",
        &[
            "would lose version `v1beta1`, which the source still defines: a `cfg` excludes it",
            "--> src/deploy.rs:2:1",
            "activate it with `--features`",
        ],
    );
    folder.run("manifests --no-default-features --prune").ok();
    assert!(!folder.tree()[CRD].contains("v1beta1"));
}

#[test]
fn keeps_kinds_of_unlisted_packages() {
    let folder = Folder::new();
    folder.write("Cargo.toml", "[workspace]\nmembers = [\"a\", \"libs/b\"]\n");
    for (name, text) in [("a", rule("deployments")), ("libs/b", kind("Cup", "v1"))] {
        let last = name.trim_start_matches("libs/");
        folder.write(
            &format!("{name}/Cargo.toml"),
            &format!("[package]\nname = \"{last}\"\nedition = \"2024\"\n"),
        );
        folder.write(&format!("{name}/src/lib.rs"), &text);
    }
    folder.run("manifests").ok();
    folder.write("Cargo.toml", "[workspace]\nmembers = [\"a\"]\n");
    refused(
        &folder,
        "manifests",
        &["the file is not part of this run", "--> libs/b/src/lib.rs:3:12"],
    );
}

/// `-p` leaves out packages, but that doesn't make them stale. All packages share a single file
/// with roles.
#[test]
fn single_package_keeps_manifests_of_others() {
    let folder = Folder::new();
    folder.write("Cargo.toml", "[workspace]\nmembers = [\"a\", \"b\", \"c\"]\n");
    folder.write("PROJECT", "version: \"3\"\nprojectName: operator\ndomain: x.io\n");
    let hook =
        "#[rbuilder::webhook(validating)]\npub async fn check(pod: &k8s_openapi::api::core::v1::Pod) {}\n";
    for (name, text) in [
        ("a", format!("{}{hook}", rule("deployments"))),
        ("b", kind("Cup", "v1")),
        ("c", rule("statefulsets")),
    ] {
        folder.write(
            &format!("{name}/Cargo.toml"),
            &format!(
                "[package]\nname = \"{name}\"\nedition = \"2024\"\n[dependencies]\nk8s-openapi = \"0.29\"\n"
            ),
        );
        folder.write(&format!("{name}/src/lib.rs"), &text);
    }
    folder.run("manifests").ok();
    let before = folder.tree();
    assert!(before.contains_key(WEBHOOKS));
    folder.run("manifests -p b").ok();
    assert_eq!(before, folder.tree());
    refused(
        &folder,
        "manifests -p a",
        &[
            "would lose permissions",
            "--> c/src/lib.rs:1:1",
            "the file is not part of this run",
        ],
    );
}

/// If a file is no longer valid Rust, or hides its kind in a macro, it still counts.
#[test]
fn unparsable_source_still_counts() {
    for text in [
        format!("{} }}", kind("Cup", "v1")),
        format!("kinds! {{ {} }}", kind("Cup", "v1")),
    ] {
        let folder = operator();
        without(&folder, "cup");
        without(&folder, "hook");
        folder.remove("src/hook.rs");
        folder.write("src/cup.rs", &text);
        without(&folder, "old");
        folder.remove("src/old.rs");
        refused(&folder, "manifests", &["would be deleted", "--> src/cup.rs:"]);
    }
}

/// Other commands also generate manifests, and must not remove them either.
#[test]
fn create_also_removes_nothing() {
    let folder = Folder::new();
    folder.run("init --domain example.com --project-name shop").ok();
    folder.run("create api --group shop --version v1 --kind Cup").ok();
    let api = folder.tree()["src/api/v1/mod.rs"].replace("mod cup;\n", "");
    folder.write("src/api/v1/mod.rs", &api.replace("pub use cup::*;\n", ""));
    refused(
        &folder,
        "create api --group shop --version v1 --kind Plate",
        &[
            "config/crd/bases/shop.example.com_cups.yaml` would be deleted",
            "--> src/api/v1/cup.rs:",
        ],
    );
}

//! `rbuilder init --in-package` adopts packages of any shape without changing their files, and the
//! other commands work afterwards.
#![allow(clippy::disallowed_methods)] // tests look at the disk themselves

use crate::older;
use crate::support;

use std::collections::BTreeMap;

use older::{OLDER, age, update};
use support::{Folder, golden};

const ADOPT: &str = "init --in-package --domain example.com";

const KIND: &str = "\
use kube::CustomResource;

/// TeaSpec defines the desired state of Tea.
#[derive(CustomResource)]
#[kube(group = \"shop.example.com\", version = \"v1\", kind = \"Tea\", namespaced)]
pub struct TeaSpec {
    /// cups is the number of cups.
    pub cups: u8,
}
";

const MANIFEST: &str = "\
[package]
name = \"tea_shop\"
version = \"0.3.0\"
edition = \"2021\"
license = \"MIT\"

[dependencies]
k8s-openapi = { version = \"0.29\", features = [\"v1_37\"] }
kube = \"5.0\"
tokio = \"1\"
";

/// A package with kube-rs that has only a binary.
fn plain() -> Folder {
    let folder = Folder::new();
    folder.write("Cargo.toml", MANIFEST);
    folder.write("src/main.rs", "mod api;\n\nfn main() {}\n");
    folder.write("src/api.rs", KIND);
    folder
}

/// Has the code that `create` requires, as its errors print it.
const MAIN: &str = "\
use clap::Parser;
use rbuilder::{Manager, ManagerArgs, Result};

#[tokio::main]
async fn main() -> Result<()> {
    let manager = Manager::new(\"lease\", ManagerArgs::parse()).await?;
    let manager = tea_shop::controller::register(manager);
    manager.start().await
}
";

/// A package that already runs rbuilder's manager.
fn with_manager() -> Folder {
    let folder = Folder::new();
    let dependencies = "clap = \"4\"\nrbuilder = { package = \"rbuilder-runtime\", version = \"0.1.0\" }\nschemars = \"1\"\nserde = \"1\"\nserde_json = \"1\"\ntracing = \"0.1\"\n\n[dev-dependencies]\nrbuilder = { package = \"rbuilder-runtime\", version = \"0.1.0\", features = [\"envtest\", \"fake\", \"testing\"] }\n";
    folder.write("Cargo.toml", &format!("{MANIFEST}{dependencies}"));
    folder.write("src/main.rs", MAIN);
    folder.write(
        "src/lib.rs",
        "//! The tea shop.\n\npub mod api;\npub mod controller;\n",
    );
    folder.write("src/api/mod.rs", "//! API types.\n");
    folder.write(
        "src/controller/mod.rs",
        "//! Controllers.\n\nuse rbuilder::Manager;\n\n/// Registers all controllers.\npub fn register(manager: Manager) -> Manager {\n    manager\n}\n",
    );
    folder
}

const API: &str = "create api --group shop --version v1 --kind Pot";
const WEBHOOK: &str = "create webhook --group shop --version v1 --kind Pot --defaulting";

/// Also checks that nothing has changed.
#[track_caller]
fn refused(folder: &Folder, command: &str, expected: &[&str]) {
    let before = folder.tree();
    let ran = folder.run(command);
    assert_eq!(ran.code, 1, "{command}: {}", ran.out);
    for part in expected {
        assert!(
            ran.err.contains(part),
            "{command}: `{part}` is not in\n{}",
            ran.err
        );
    }
    assert_eq!(folder.tree(), before, "{command}");
}

#[track_caller]
fn kept(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) {
    for (path, text) in before {
        assert_eq!(Some(text), after.get(path), "{path}");
    }
}

#[track_caller]
fn settled(folder: &Folder, commands: &[&str]) {
    let before = folder.tree();
    for command in commands
        .iter()
        .chain(&["manifests", "manifests --check", "update", "init"])
    {
        let ran = folder.run(command).ok();
        assert!(ran.out.starts_with("unchanged"), "{command}: {}", ran.out);
    }
    assert_eq!(folder.tree(), before);
}

#[test]
fn package_without_the_library_gets_only_deployment_files() {
    let folder = plain();
    let before = folder.tree();
    golden(
        "adopted/plain.diff",
        &folder.run(&format!("{ADOPT} --dry-run")).ok().out,
    );
    assert_eq!(folder.tree(), before);
    let ran = folder.run(ADOPT).ok();
    assert!(
        ran.err
            .contains("Next: set the arguments and probes of the container in config/manager/manager.yaml"),
        "{}",
        ran.err
    );
    let tree = folder.tree();
    kept(&before, &tree);
    assert!(
        tree["PROJECT"].contains("projectName: tea-shop\n"),
        "{}",
        tree["PROJECT"]
    );
    assert!(tree["config/crd/kustomization.yaml"].contains("- bases/shop.example.com_teas.yaml\n"));
    settled(&folder, &[ADOPT]);
}

#[test]
fn package_with_the_manager_gets_probes_and_metrics() {
    let folder = with_manager();
    let before = folder.tree();
    golden(
        "adopted/manager.diff",
        &folder.run(&format!("{ADOPT} --dry-run")).ok().out,
    );
    folder.run(ADOPT).ok();
    kept(&before, &folder.tree());
    settled(&folder, &[ADOPT]);
}

#[test]
fn keeps_and_lists_files_of_the_package() {
    let folder = plain();
    for path in [
        "Makefile",
        "Dockerfile",
        "README.md",
        ".dockerignore",
        "config/rbac/kustomization.yaml",
        "config/crd/kustomization.yaml",
    ] {
        folder.write(path, "resources: []\n");
    }
    let role = "kind: ClusterRole\nmetadata:\n  name: mine\nrules:\n- apiGroups: ['']\n  resources: [pods]\n  verbs: [get]\n";
    folder.write("config/rbac/role.yaml", role);
    folder.write("LICENSE", "MIT License\n");
    folder.write(".gitignore", "/target\n");
    let before = folder.tree();
    let ran = folder.run(ADOPT).ok();
    for line in [
        "Kept as they are: .dockerignore, Dockerfile, LICENSE, Makefile, README.md, config/crd/kustomization.yaml, config/rbac/kustomization.yaml, config/rbac/role.yaml\n",
        "Not added: .github/workflows/api.yml, ",
    ] {
        assert!(ran.err.contains(line), "{}", ran.err);
    }
    let tree = folder.tree();
    for (path, text) in &before {
        match path.as_str() {
            ".gitignore" => assert!(tree[path].starts_with(text) && tree[path].contains("/dist/\n")),
            // Every command may update the list of CRDs.
            "config/crd/kustomization.yaml" => assert!(tree[path].contains("shop.example.com_teas.yaml")),
            _ => assert_eq!(Some(text), tree.get(path), "{path}"),
        }
    }
    assert!(!tree.keys().any(|path| path.starts_with(".github/")));
    assert!(tree.contains_key("config/default/kustomization.yaml"));
    settled(&folder, &[ADOPT]);
    age(&folder);
    let ran = update(&folder, "update").ok();
    assert!(
        !ran.err.contains("Makefile") && !ran.err.contains(".github"),
        "{}",
        ran.err
    );
    assert_eq!(folder.tree()["Makefile"], before["Makefile"]);
    // Once the package's own file is gone, the scaffold can provide it.
    folder.remove("Dockerfile");
    folder.run(ADOPT).ok();
    assert!(folder.tree()["Dockerfile"].contains("--bin tea_shop "));
    assert!(!folder.tree()["PROJECT"].contains("- Dockerfile\n"));
    settled(&folder, &[ADOPT]);
}

#[test]
fn existing_ci_configuration_is_kept() {
    for path in [
        ".github/workflows/ci.yaml",
        ".gitlab-ci.yml",
        ".circleci/config.yml",
    ] {
        let folder = plain();
        folder.write(path, "on: push\n");
        let ran = folder.run(ADOPT).ok();
        assert!(
            ran.err
                .contains("Not added: .github/workflows/api.yml, .github/workflows/lint.yml, "),
            "{}",
            ran.err
        );
        assert!(folder.tree().contains_key("Makefile"));
        assert!(!folder.tree().contains_key(".github/workflows/lint.yml"));
        settled(&folder, &[ADOPT]);
    }
}

#[test]
fn rejects_unsuitable_packages() {
    let package = "[package]\nname = \"a\"\n";
    for (files, command, expected) in [
        (vec![], ADOPT, "no Cargo.toml found in"),
        (
            vec![("Cargo.toml", "[package\n")],
            ADOPT,
            "Cargo.toml: failed to parse `Cargo.toml` as TOML",
        ),
        (vec![("Cargo.toml", "")], ADOPT, "has no `[package]` with a name"),
        (
            vec![
                ("Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\n"),
                ("crates/op/Cargo.toml", package),
            ],
            ADOPT,
            "is a workspace without a package: run the command in the member to adopt, for example with `-C crates/op`",
        ),
        (
            vec![("Cargo.toml", package), ("src/lib.rs", "")],
            ADOPT,
            "package `a` has no binary",
        ),
        (
            vec![
                ("Cargo.toml", package),
                ("src/bin/b.rs", ""),
                ("src/bin/c.rs", ""),
            ],
            ADOPT,
            "name the one that the image runs with `--bin`, one of `b`, `c`",
        ),
        (
            vec![("Cargo.toml", package), ("src/main.rs", "")],
            "init --in-package --domain example.com --bin c",
            "package `a` has no binary `c`: pass `--bin` with one of `a`",
        ),
        (
            vec![("Cargo.toml", "[package]\nname = \"_\"\n"), ("src/main.rs", "")],
            ADOPT,
            "project name `-` must be a DNS-1035 label",
        ),
        (
            vec![("Cargo.toml", package), ("src/main.rs", "")],
            "init --in-package",
            "a domain is required",
        ),
        (
            vec![("Cargo.toml", package), ("src/main.rs", "")],
            "init --domain example.com --project-name a",
            "to adopt the existing package, pass `--in-package`",
        ),
    ] {
        let folder = Folder::new();
        for (path, text) in &files {
            folder.write(path, text);
        }
        refused(&folder, command, &[expected]);
    }
    let folder = plain();
    assert_eq!(folder.run(&format!("{ADOPT} --force")).code, 2);
    assert_eq!(folder.run("init --domain example.com --bin x").code, 2);
    let scaffolded = Folder::new();
    scaffolded.run("init --domain example.com --project-name a").ok();
    refused(
        &scaffolded,
        ADOPT,
        &["whose package is scaffolded: omit `--in-package`"],
    );
}

#[test]
fn selects_one_of_several_binaries() {
    for (rest, flags, expected) in [
        ("", "", "a"),
        ("", "--bin b", "b"),
        ("default-run = \"a\"\n", "", "a"),
        ("default-run = \"a\"\n", "--bin b", "b"),
    ] {
        let folder = Folder::new();
        folder.write("Cargo.toml", &format!("[package]\nname = \"a\"\n{rest}"));
        folder.write("src/main.rs", "fn main() {}\n");
        folder.write("src/bin/b.rs", "fn main() {}\n");
        folder.run(&format!("{ADOPT} {flags}")).ok();
        let tree = folder.tree();
        assert!(tree["Dockerfile"].contains(&format!("--bin {expected} ")));
        assert!(tree["Makefile"].contains(&format!("run --bin {expected}\n")));
        settled(&folder, &[ADOPT]);
        // If the user chooses another binary, the scaffold follows.
        folder.run(&format!("{ADOPT} --bin a")).ok();
        let tree = folder.tree();
        assert!(tree["Dockerfile"].contains("--bin a ") && tree["PROJECT"].contains("binary: a\n"));
        settled(&folder, &[ADOPT]);
    }
}

#[test]
fn inherited_keys_and_a_linked_manifest_are_read() {
    let folder = plain();
    let inherited = MANIFEST
        .replace("version = \"0.3.0\"", "version.workspace = true")
        .replace("license = \"MIT\"", "license.workspace = true");
    folder.write(
        "Cargo.toml",
        &format!("{inherited}\n[workspace.package]\nversion = \"1.0.0\"\nlicense = \"MIT\"\n"),
    );
    folder.run(ADOPT).ok();
    assert!(folder.tree()["PROJECT"].contains("license: none\n"));
    settled(&folder, &[ADOPT]);
    #[cfg(unix)]
    {
        let folder = plain();
        folder.write("manifest/Cargo.toml", MANIFEST);
        folder.remove("Cargo.toml");
        let linked = folder.path().join("Cargo.toml");
        std::os::unix::fs::symlink("manifest/Cargo.toml", &linked).expect("a link");
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("Makefile")).expect("a link");
        let ran = folder.run(ADOPT).ok();
        assert!(ran.err.contains("Kept as they are: Makefile\n"), "{}", ran.err);
        let is_link =
            |path: &std::path::Path| std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
        assert!(is_link(&linked) && is_link(&folder.path().join("Makefile")));
        settled(&folder, &[ADOPT]);
    }
}

#[test]
fn path_dependencies_that_the_image_lacks_are_reported() {
    let outside =
        "warning: the image is built from the directory of the package, which does not contain ../common\n";
    let no_member = "warning: the Dockerfile does not find common, which is no member of a workspace\n";
    for (dependency, warning) in [
        ("common = { path = \"../common\" }", outside),
        ("common = { path = \"common\" }", no_member),
        ("common = { path = \"common\" }\n[workspace]", ""),
    ] {
        let folder = Folder::new();
        folder.write("op/Cargo.toml", &format!("{MANIFEST}{dependency}\n"));
        folder.write("op/src/main.rs", "fn main() {}\n");
        for path in ["common", "op/common"] {
            folder.write(&format!("{path}/Cargo.toml"), "[package]\nname = \"common\"\n");
            folder.write(&format!("{path}/src/lib.rs"), "");
        }
        let ran = folder.inside("op").run(ADOPT).ok();
        for other in [outside, no_member] {
            assert_eq!(ran.err.contains(other), other == warning, "{}", ran.err);
        }
    }
}

#[test]
fn hand_written_permissions_are_kept() {
    let folder = plain();
    folder.run(ADOPT).ok();
    let role = "config/rbac/role.yaml";
    let text = folder.tree()[role].clone();
    assert!(
        text.contains("rules: []\n") && text.starts_with("# The permissions"),
        "{text}"
    );
    folder.write(
        role,
        &text.replace(
            "rules: []\n",
            "rules:\n- apiGroups: [\"\"]\n  resources: [pods]\n  verbs: [get]\n",
        ),
    );
    settled(&folder, &[ADOPT]);
}

#[test]
fn create_lists_everything_a_package_lacks() {
    let folder = plain();
    folder.run(ADOPT).ok();
    refused(
        &folder,
        API,
        &["src/api.rs exists, but the module needs the directory src/api/: move it to src/api/mod.rs"],
    );
    let text = folder.tree()["src/api.rs"].clone();
    folder.remove("src/api.rs");
    folder.write("src/tea.rs", &text);
    folder.write("src/main.rs", "mod tea;\n\nfn main() {}\n");
    let lines = [
        "  Cargo.toml, in `[dependencies]`:\n    clap = { version = \"4\", features = [\"derive\", \"env\"] }\n    rbuilder = { package = \"rbuilder-runtime\", ",
        "    schemars = \"1\"\n",
        "  Cargo.toml, in `[dev-dependencies]`:\n    rbuilder = { ",
        "  src/lib.rs:\n    pub mod api;\n    pub mod controller;\n",
        "  src/api/mod.rs:\n    // SPDX-License-Identifier: MIT\n\n    //! API types, by version.\n",
        "  src/controller/mod.rs:\n",
        "    pub fn register(manager: Manager) -> Manager {\n        manager\n    }\n",
        "  src/main.rs, to start the manager besides what it does now:\n",
        "    register(manager).start().await\n",
        "run `rbuilder init --in-package` and then the command again",
    ];
    refused(&folder, API, &lines);
    refused(
        &folder,
        &format!("{API} --controller=false"),
        &[
            "    rbuilder = { package = \"rbuilder-runtime\", ",
            lines[1],
            "  src/lib.rs:\n    pub mod api;\n  src/api",
        ],
    );
    // After these lines are added, the scaffold supports the manager and the command succeeds.
    for (path, text) in with_manager().tree() {
        folder.write(&path, &text);
    }
    let library = folder.tree()["src/lib.rs"].clone();
    folder.write("src/lib.rs", &format!("{library}pub mod tea;\n"));
    refused(&folder, API, &["run `rbuilder init --in-package` first"]);
    let before = folder.tree();
    let ran = folder.run("init").ok();
    assert!(
        ran.out.contains("create config/metrics/metrics_service.yaml"),
        "{}",
        ran.out
    );
    let tree = folder.tree();
    assert!(tree["config/manager/manager.yaml"].contains("- --leader-elect\n"));
    assert!(tree["config/default/kustomization.yaml"].contains("- ../metrics\n"));
    assert!(tree["config/rbac/kustomization.yaml"].contains("- leader_election_role.yaml\n"));
    for path in ["Cargo.toml", "src/main.rs", "src/lib.rs", "src/controller/mod.rs"] {
        assert_eq!(before[path], tree[path], "{path}");
    }
    folder.run(API).ok();
    settled(&folder, &[API, ADOPT]);
}

#[test]
fn create_and_delete_edit_the_adopted_package() {
    let folder = with_manager();
    folder.run(ADOPT).ok();
    let adopted = folder.tree();
    folder.run(API).ok();
    let tree = folder.tree();
    assert!(tree["src/controller/mod.rs"].contains("manager.controller(pot::controller())"));
    assert!(tree["tests/pot.rs"].contains("use tea_shop::controller;"));
    settled(&folder, &[API, ADOPT]);
    folder.run(WEBHOOK).ok();
    let tree = folder.tree();
    assert!(
        tree["src/main.rs"]
            .contains("tea_shop::webhook::register(manager);\n    let manager = tea_shop::controller"),
        "{}",
        tree["src/main.rs"]
    );
    settled(&folder, &[API, WEBHOOK, ADOPT]);
    folder
        .run("delete webhook --group shop --version v1 --kind Pot")
        .ok();
    folder.run("delete api --group shop --version v1 --kind Pot").ok();
    let after = folder.tree();
    for path in adopted.keys().chain(after.keys()) {
        // The role only becomes a generated file when the markers are written.
        if path != "config/rbac/role.yaml" {
            assert_eq!(adopted.get(path), after.get(path), "{path}");
        }
    }
}

#[test]
fn adopted_project_can_be_updated() {
    for (make, commands) in [
        (plain as fn() -> Folder, &[ADOPT] as &[&str]),
        (with_manager, &[ADOPT, API, WEBHOOK]),
    ] {
        let folder = make();
        commands.iter().for_each(|command| drop(folder.run(command).ok()));
        let today = folder.tree();
        age(&folder);
        assert!(folder.tree()["PROJECT"].contains(&format!("cliVersion: {OLDER}\n")));
        assert!(folder.tree()["Makefile"].contains("OLD ?= 1"));
        update(&folder, "update").ok();
        let after = folder.tree();
        for path in today.keys().chain(after.keys()) {
            if path != ".rbuilder/files.sum" {
                assert_eq!(today.get(path), after.get(path), "{path}");
            }
        }
        let ran = update(&folder, "update").ok();
        assert!(ran.out.starts_with("unchanged"), "{}", ran.out);
    }
}

#[test]
fn changing_settings_keeps_the_package() {
    let folder = with_manager();
    folder.run(ADOPT).ok();
    let before = folder.tree();
    let with_kind = folder.copy();
    with_kind.run(API).ok();
    refused(
        &with_kind,
        "edit --multigroup",
        &["`--multigroup` does not move the modules of an adopted package"],
    );
    let ran = folder.run("edit --namespaced --kubernetes 1.35 --owner Us").ok();
    assert!(
        ran.err.contains(
            "warning: Cargo.toml of an adopted package is not edited, so its k8s-openapi is unchanged"
        ),
        "{}",
        ran.err
    );
    let after = folder.tree();
    assert!(after["config/rbac/role_binding.yaml"].contains("kind: RoleBinding\n"));
    assert!(after["tests/e2e.rs"].starts_with("// Copyright Us\n"));
    for path in ["Cargo.toml", "src/lib.rs", "src/main.rs", "src/controller/mod.rs"] {
        assert_eq!(before[path], after[path], "{path}");
    }
}

#[test]
fn doctor_accepts_adopted_package() {
    let folder = plain();
    folder.run(ADOPT).ok();
    let ran = folder.run("doctor");
    assert!(
        ran.out.contains("the adopted package does not depend on it"),
        "{}",
        ran.out
    );
    let ran = folder.run("library");
    assert!(
        ran.err.contains("Cargo.toml has no dependency on the library"),
        "{}",
        ran.err
    );
}

#[test]
fn rejects_invalid_package_names_in_project() {
    let folder = plain();
    folder.run(ADOPT).ok();
    let text = folder.tree()["PROJECT"].clone();
    for (from, to) in [
        ("binary: tea_shop\n", "binary: $(id)\n"),
        ("main: src/main.rs\n", "main: ../main.rs\n"),
        ("name: tea_shop\n", "name: tea shop\n"),
    ] {
        assert!(text.contains(from), "{text}");
        folder.write("PROJECT", &text.replace(from, to));
        refused(&folder, ADOPT, &["of the package in PROJECT"]);
    }
}

//! `rbuilder init` in a Cargo workspace. The project becomes a member, or the command explains why
//! it does not.
#![allow(clippy::disallowed_methods)] // the tests access the disk

use crate::older;
use crate::support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use older::{OLDER, age_in, update_in};
use support::{Folder, golden};

const INIT: &str = "init --domain example.com --library version --library-version 0.1.0";
const ROOT: &str = "[workspace]\nresolver = \"3\"\nmembers = [\"tools/gen\"]\n";
const GENERATOR: &str = "[package]\nname = \"gen\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
const API: &str = "create api --group shop --version v1 --kind Pot";
const WEBHOOK: &str = "create webhook --group shop --version v1 --kind Pot --defaulting";

/// The workspace has a tool, and `manifest` is its own Cargo.toml.
fn workspace(manifest: &str) -> Folder {
    let folder = Folder::new();
    folder.write("Cargo.toml", manifest);
    folder.write("tools/gen/Cargo.toml", GENERATOR);
    folder.write("tools/gen/src/main.rs", "fn main() {}\n");
    folder.write(".git/HEAD", "ref: refs/heads/main\n");
    folder
}

fn member(folder: &Folder) -> BTreeMap<String, String> {
    let files = folder.tree().into_iter();
    files
        .filter_map(|(path, text)| Some((path.strip_prefix("crates/shop/")?.to_owned(), text)))
        .collect()
}

/// Cargo starts to look for packages in `dir`.
fn packages(dir: &Path) -> Vec<String> {
    let ran = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .current_dir(dir)
        .output()
        .expect("cargo runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let found: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    let packages = found["packages"].as_array().into_iter().flatten();
    packages
        .filter_map(|package| Some(package["name"].as_str()?.to_owned()))
        .collect()
}

/// Commands must have nothing left to do in the project.
#[track_caller]
fn settled(folder: &Folder, commands: &[&str]) {
    let before = folder.tree();
    let inside = folder.inside("crates/shop");
    for command in commands
        .iter()
        .chain(&["init", "manifests", "manifests --check", "update"])
    {
        let ran = inside.run(command).ok();
        assert!(ran.out.starts_with("unchanged"), "{command}: {}", ran.out);
    }
    assert_eq!(folder.tree(), before);
}

#[test]
fn project_joins_the_workspace() {
    let folder = workspace(ROOT);
    let before = folder.tree();
    golden(
        "member/init.diff",
        &folder.run(&format!("{INIT} crates/shop --dry-run")).ok().out,
    );
    assert_eq!(folder.tree(), before);
    let ran = folder.run(&format!("{INIT} crates/shop")).ok();
    golden("member/init.txt", &ran.err);
    let tree = folder.tree();
    assert_eq!(
        tree["Cargo.toml"],
        ROOT.replace("[\"tools/gen\"]", "[\"crates/shop\", \"tools/gen\"]")
    );
    for (path, text) in before.iter().filter(|(path, _)| *path != "Cargo.toml") {
        assert_eq!(Some(text), tree.get(path), "{path}");
    }
    settled(&folder, &[INIT]);
    for dir in ["", "crates/shop", "tools/gen"] {
        let mut found = packages(&folder.path().join(dir));
        found.sort();
        assert_eq!(found, ["gen", "shop"], "{dir}");
    }
    // Cargo only reads these sections in the root, so a member must not have them.
    assert!(
        !tree["crates/shop/Cargo.toml"].contains("[profile")
            && !tree["crates/shop/Cargo.toml"].contains("[workspace")
    );
}

#[test]
fn workspace_manifest_determines_membership() {
    let listed = "[workspace]\nmembers = [\"tools/*\", \"crates/*\"]\nresolver = \"3\"\n";
    let root_package = "[package]\nname = \"top\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[lib]\npath = \"top.rs\"\n\n[workspace]\n";
    for (manifest, is_member, after) in [
        (listed, true, listed.to_owned()),
        (root_package, true, format!("{root_package}members = [\"crates/shop\"]\n")),
        (
            "[workspace]\nmembers = [\n  \"tools/*\", # tools\n]\nresolver = \"3\"\n\n[workspace.package]\nversion = \"1.0.0\"\n\n[profile.release]\nlto = true\n",
            true,
            "[workspace]\nmembers = [\n  \"crates/shop\",\n  \"tools/*\", # tools\n]\nresolver = \"3\"\n\n[workspace.package]\nversion = \"1.0.0\"\n\n[profile.release]\nlto = true\n".to_owned(),
        ),
        (
            "[workspace]\nmembers = [\"tools/*\"]\nexclude = [\"crates\"]\nresolver = \"3\"\n",
            false,
            "[workspace]\nmembers = [\"tools/*\"]\nexclude = [\"crates\"]\nresolver = \"3\"\n".to_owned(),
        ),
    ] {
        let folder = workspace(manifest);
        folder.write("top.rs", "");
        let ran = folder.run(&format!("{INIT} crates/shop")).ok();
        let tree = folder.tree();
        assert_eq!(tree["Cargo.toml"], after);
        let own = member(&folder);
        assert_eq!(own["PROJECT"].contains("  member: crates/shop\n"), is_member, "{manifest}");
        assert_eq!(own["Cargo.toml"].contains("[profile.release]"), !is_member, "{manifest}");
        assert!(!own["Cargo.toml"].contains("[workspace]"));
        assert_eq!(own.contains_key("Dockerfile.dockerignore"), is_member);
        assert_eq!(ran.err.contains("add to it:\n  [profile.release]\n"), is_member && !manifest.contains("[profile"), "{}", ran.err);
        settled(&folder, &[INIT]);
        assert!(packages(&folder.path().join("crates/shop")).contains(&"shop".to_owned()));
    }
}

#[test]
fn reports_workspaces_that_cannot_be_joined() {
    let refused = |folder: &Folder, dir: &str, expected: &[&str]| {
        let before = folder.tree();
        let ran = folder.run(&format!("{INIT} {dir} --project-name shop"));
        assert_eq!(ran.code, 1, "{}", ran.out);
        for part in expected {
            assert!(ran.err.contains(part), "`{part}` is not in\n{}", ran.err);
        }
        assert_eq!(folder.tree(), before);
    };
    refused(
        &workspace("[workspace\n"),
        "crates/shop",
        &["cannot parse", "fix it first"],
    );
    refused(
        &workspace("workspace.resolver = \"3\"\n"),
        "crates/shop",
        &[
            "cannot edit ../../Cargo.toml: `[workspace]` has an unusual form; no files were written\nadd this member to the list by hand and run the command again:\n  [workspace]\n  members = [\"crates/shop\"]",
        ],
    );
    refused(
        &workspace(ROOT),
        "crates/$(id)",
        &[
            "the project would be the member `crates/$(id)`",
            "add it to `exclude`",
        ],
    );
    #[cfg(unix)]
    {
        let folder = workspace(ROOT);
        folder.write("real.toml", ROOT);
        folder.remove("Cargo.toml");
        let link = folder.path().join("Cargo.toml");
        std::os::unix::fs::symlink("real.toml", &link).expect("a link");
        refused(
            &folder,
            "crates/shop",
            &[
                "cannot edit ../../Cargo.toml",
                "is a symbolic link",
                "  members = [\"crates/shop\"]",
            ],
        );
        // Once the user has added the line, the command goes on.
        folder.write("real.toml", &ROOT.replace("tools/gen", "crates/shop"));
        folder.run(&format!("{INIT} crates/shop")).ok();
        assert!(member(&folder)["PROJECT"].contains("member: crates/shop\n"));
        assert!(std::fs::symlink_metadata(&link).is_ok_and(|found| found.is_symlink()));
        settled(&folder, &[INIT]);
    }
}

#[test]
fn keeps_workspaces_of_other_repositories() {
    let folder = workspace(ROOT);
    folder.write("crates/shop/.git/HEAD", "ref: refs/heads/main\n");
    let ran = folder.run(&format!("{INIT} crates/shop")).ok();
    assert!(
        ran.err
            .contains("is a workspace that does not list this project, in another repository"),
        "{}",
        ran.err
    );
    assert_eq!(folder.tree()["Cargo.toml"], ROOT);
    let own = member(&folder);
    assert!(own["Cargo.toml"].contains("\n[workspace]\n") && own.contains_key(".dockerignore"));
    assert_eq!(packages(&folder.path().join("crates/shop")), ["shop"]);
}

#[test]
fn warns_about_settings_of_the_root() {
    let folder = workspace("[workspace]\nmembers = []\n\n[profile.release]\npanic = \"abort\"\n");
    let ran = folder.run(&format!("{INIT} crates/shop")).ok();
    for part in [
        "warning: ../../Cargo.toml sets no `resolver`",
        "  = help: add `resolver = \"3\"` to `[workspace]` there",
        "warning: ../../Cargo.toml sets `panic = \"abort\"`",
        "warning: GitHub runs only workflows in the root of the repository",
        "mv .github/workflows/$name.yml ../../.github/workflows/shop-$name.yml; done",
    ] {
        assert!(ran.err.contains(part), "`{part}` is not in\n{}", ran.err);
    }
}

/// GitHub doesn't run workflows of a project below the root of its repository, even if there is no
/// workspace.
#[test]
fn records_the_path_below_the_repository() {
    let folder = Folder::new();
    folder.write(".git/HEAD", "ref: refs/heads/main\n");
    let ran = folder.run(&format!("{INIT} operators/shop")).ok();
    assert!(
        ran.err.contains("mkdir -p ../../.github/workflows && "),
        "{}",
        ran.err
    );
    let tree = folder.tree();
    let workflow = &tree["operators/shop/.github/workflows/release.yml"];
    for line in [
        "    working-directory: operators/shop/\n",
        "          context: operators/shop\n",
        "          subject-path: operators/shop/dist/install.yaml\n",
    ] {
        assert!(workflow.contains(line), "{line}: {workflow}");
    }
    let tests = &tree["operators/shop/.github/workflows/test.yml"];
    let key = "hashFiles('operators/shop/PROJECT', 'operators/shop/Cargo.toml')";
    assert!(tests.contains(key), "{tests}");
    let updates = &tree["operators/shop/.github/dependabot.yml"];
    assert!(updates.contains("    directory: /operators/shop/\n"), "{updates}");
    assert!(!workflow.contains("Dockerfile"), "{workflow}");
    assert!(tree["operators/shop/Cargo.toml"].contains("[profile.release]"));
    let again = folder.run(&format!("{INIT} operators/shop")).ok();
    assert!(again.out.starts_with("unchanged"), "{}", again.out);
}

#[test]
fn commands_work_in_a_member() {
    let folder = workspace(ROOT);
    folder.run(&format!("{INIT} crates/shop")).ok();
    let inside = folder.inside("crates/shop");
    let (root, init) = (folder.tree()["Cargo.toml"].clone(), member(&folder));
    inside.run(API).ok();
    inside.run(WEBHOOK).ok();
    settled(&folder, &[API, WEBHOOK]);
    let today = member(&folder);

    age_in(&folder.path().join("crates/shop"));
    assert!(member(&folder)["PROJECT"].contains(&format!("cliVersion: {OLDER}\n")));
    update_in(&folder.path().join("crates/shop"), "update").ok();
    for (path, text) in today.iter().filter(|(path, _)| *path != ".rbuilder/files.sum") {
        assert_eq!(Some(text), member(&folder).get(path), "{path}");
    }
    inside.run("edit --namespaced").ok();
    inside.run("edit --namespaced=false").ok();
    for command in ["delete webhook", "delete api"] {
        inside
            .run(&format!("{command} --group shop --version v1 --kind Pot"))
            .ok();
    }
    for (path, text) in init.iter().filter(|(path, _)| *path != ".rbuilder/files.sum") {
        assert_eq!(Some(text), member(&folder).get(path), "{path}");
    }
    assert_eq!(folder.tree()["Cargo.toml"], root);
    // We can read the workspace as a whole without PROJECT.
    folder.run("manifests --stdout").ok();
}

#[test]
fn adopts_a_member() {
    let folder = workspace(
        "[workspace]\nresolver = \"3\"\nmembers = [\"tools/*\"]\n\n[workspace.package]\nversion = \"1.2.3\"\nedition = \"2024\"\n",
    );
    folder.write(
        "tools/gen/Cargo.toml",
        "[package]\nname = \"gen\"\nversion.workspace = true\nedition.workspace = true\n",
    );
    let before = folder.tree();
    let ran = folder
        .inside("tools/gen")
        .run("init --in-package --domain example.com")
        .ok();
    assert!(
        ran.err.contains("../../.github/workflows/gen-$name.yml"),
        "{}",
        ran.err
    );
    let tree = folder.tree();
    for (path, text) in &before {
        assert_eq!(Some(text), tree.get(path), "{path}");
    }
    assert!(tree["tools/gen/PROJECT"].contains("  member: tools/gen\n"));
    assert!(tree["tools/gen/Dockerfile"].contains("--locked --package gen --bin gen "));
    let again = folder.inside("tools/gen").run("init --in-package").ok();
    assert!(again.out.starts_with("unchanged"), "{}", again.out);
    let ran = folder.run("init --in-package --domain example.com");
    assert!(ran.err.contains("for example with `-C tools/gen`"), "{}", ran.err);
}

#[test]
fn rejects_invalid_member_path_in_project() {
    let folder = workspace(ROOT);
    folder.run(&format!("{INIT} crates/shop")).ok();
    let text = member(&folder)["PROJECT"].clone();
    for (from, to) in [
        ("  member: crates/shop\n", "  member: ../$(id)\n"),
        ("  directory: crates/shop\n", "  directory: a b\n"),
    ] {
        assert!(text.contains(from), "{text}");
        folder.write("crates/shop/PROJECT", &text.replace(from, to));
        let ran = folder.inside("crates/shop").run("manifests");
        let ran = if ran.code == 0 {
            folder.inside("crates/shop").run("init")
        } else {
            ran
        };
        assert_eq!(ran.code, 1);
        assert!(ran.err.contains("in PROJECT"), "{}", ran.err);
    }
}

#[test]
fn follows_a_moved_member() {
    let folder = workspace(ROOT);
    folder.run(&format!("{INIT} crates/shop")).ok();
    folder.inside("crates/shop").run(API).ok();
    std::fs::create_dir(folder.path().join("libs")).expect("a folder");
    std::fs::rename(folder.path().join("crates/shop"), folder.path().join("libs/shop")).expect("it is free");
    folder.write("Cargo.toml", &ROOT.replace("tools/gen", "libs/*"));
    folder.inside("libs/shop").run("init").ok();
    let tree = folder.tree();
    assert!(tree["libs/shop/Dockerfile"].contains("--file libs/shop/Dockerfile ."));
    assert!(tree["libs/shop/Dockerfile.dockerignore"].contains("libs/shop/bin\n"));
    assert_eq!(tree["Cargo.toml"], ROOT.replace("tools/gen", "libs/*"));
    let again = folder.inside("libs/shop").run("init").ok();
    assert!(again.out.starts_with("unchanged"), "{}", again.out);
    // Outside of a workspace, the project needs the sections that Cargo reads in a root.
    folder.write("Cargo.toml", &format!("{}exclude = [\"libs\"]\n", ROOT));
    folder.inside("libs/shop").run("init").ok();
    let tree = folder.tree();
    assert!(
        tree["libs/shop/Cargo.toml"].contains("[profile.release]")
            && tree.contains_key("libs/shop/.dockerignore")
    );
    assert!(!tree.contains_key("libs/shop/Dockerfile.dockerignore"));
    let again = folder.inside("libs/shop").run("init").ok();
    assert!(again.out.starts_with("unchanged"), "{}", again.out);
}

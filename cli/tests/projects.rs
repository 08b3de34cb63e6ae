//! End-to-end tests of the commands in projects of every shape, alone and concurrently.
#![allow(clippy::disallowed_methods)] // the tests access the disk

use crate::support;

use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rbuilder_project::plan::apply::JOURNAL;
use support::Folder;

const INIT: &str = "init --domain example.com --project-name shop";
const API: &str = "create api --group cache --version v1alpha1 --kind Memcached";
const CUP: &str = "create api --group cache --version v1alpha1 --kind Cup";

fn project(flags: &str) -> Folder {
    let folder = Folder::new();
    folder.run(&format!("{INIT} {flags}")).ok();
    folder
}

fn answer(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("one JSON document")
}

/// The commands must have nothing to do.
fn settled(folder: &Folder, commands: &[&str]) {
    let before = folder.tree();
    for command in commands.iter().chain(&["manifests", "manifests --check"]) {
        let ran = folder.run(command).ok();
        assert!(ran.out.starts_with("unchanged"), "{command}: {}", ran.out);
    }
    assert_eq!(folder.tree(), before);
}

#[test]
fn generates_manifests_for_a_plain_package() {
    let folder = Folder::new();
    folder.write(
        "Cargo.toml",
        "[package]\nname = \"plain\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
    );
    folder.write(
        "src/lib.rs",
        "#[derive(CustomResource, CrdSchema)]\n\
         #[kube(group = \"x.io\", version = \"v1\", kind = \"Cup\", namespaced)]\n\
         pub struct CupSpec {\n    pub size: i32,\n}\n",
    );
    // Nothing says that this role is ours.
    folder.write("config/rbac/role.yaml", "kind: ClusterRole\n");
    assert_eq!(folder.run("manifests --check").code, 1);
    folder.run("manifests").ok();
    let tree = folder.tree();
    assert!(tree["config/crd/bases/x.io_cups.yaml"].contains("type: integer"));
    assert_eq!(tree["config/rbac/role.yaml"], "kind: ClusterRole\n");
    assert!(!tree.contains_key("PROJECT") && !tree.contains_key("config/crd/kustomization.yaml"));
    settled(&folder, &[]);

    let printed = answer(&folder.run("manifests --stdout --output json").ok().out);
    assert_eq!(printed["files"][0]["path"], "crd/bases/x.io_cups.yaml");
    folder.run("manifests --config-dir deploy/k8s").ok();
    assert!(folder.tree().contains_key("deploy/k8s/crd/bases/x.io_cups.yaml"));
    assert_eq!(folder.run("manifests --config-dir ../out").code, 1);
}

#[test]
fn webhook_manifests_follow_their_markers() {
    let folder = project("");
    folder.run(API).ok();
    let source = "src/webhook.rs";
    let handler = "use crate::api::v1alpha1::memcached::Memcached;\n\n\
                   #[rbuilder::webhook(mutating)]\npub fn default(memcached: &mut Memcached) {}\n";
    folder.write(source, handler);
    let lib = folder.tree()["src/lib.rs"].clone();
    folder.write("src/lib.rs", &format!("{lib}pub mod webhook;\n"));
    folder.write(
        "config/webhook/kustomization.yaml",
        "resources:\n- service.yaml\n",
    );
    folder.run("manifests").ok();
    let tree = folder.tree();
    let manifests = &tree["config/webhook/manifests.yaml"];
    assert!(
        manifests.contains("path: /mutate-cache-example-com-v1alpha1-memcached\n"),
        "{manifests}"
    );
    assert_eq!(
        tree["config/webhook/kustomization.yaml"],
        "resources:\n- service.yaml\n- manifests.yaml\n"
    );
    settled(&folder, &[]);

    folder.write(source, "");
    assert_eq!(folder.run("manifests --check").code, 1);
    folder.run("manifests").ok();
    let tree = folder.tree();
    assert!(!tree.contains_key("config/webhook/manifests.yaml"));
    assert_eq!(
        tree["config/webhook/kustomization.yaml"],
        "resources:\n- service.yaml\n"
    );

    // If a file also has other objects, it belongs to the user.
    let own = "kind: ValidatingWebhookConfiguration\n---\nkind: Service\n";
    folder.write("config/webhook/manifests.yaml", own);
    settled(&folder, &[]);
}

#[test]
fn concurrent_command_fails_with_a_message() {
    let folder = project("");
    let before = folder.tree();
    let other = File::create(folder.path().join(JOURNAL)).expect("a journal");
    other.lock().expect("the lock is free");
    for command in [API, "manifests", "init"] {
        let ran = folder.run(command);
        assert_eq!(ran.code, 1, "{command}");
        assert!(
            ran.err
                .starts_with("error: another rbuilder command is running in "),
            "{command}: {}",
            ran.err
        );
    }
    drop(other);
    std::fs::remove_file(folder.path().join(JOURNAL)).expect("it is there");
    assert_eq!(folder.tree(), before);
    folder.run(API).ok();
}

#[test]
fn concurrent_commands_lose_no_changes() {
    const KINDS: [&str; 4] = ["Cup", "Mug", "Pot", "Tray"];
    let folder = project("");
    let create = |kind: &str| {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let ran = folder.run(&format!("create api --group cache --version v1 --kind {kind}"));
            if ran.code == 0 {
                return;
            }
            assert!(
                ran.err.starts_with("error: another rbuilder command is running"),
                "{}",
                ran.err
            );
            assert!(Instant::now() < deadline, "{kind} never had its turn");
        }
    };
    std::thread::scope(|scope| {
        for kind in KINDS {
            scope.spawn(move || create(kind));
        }
    });
    let tree = folder.tree();
    let resources = tree["PROJECT"].matches("kind: ").count();
    assert_eq!(resources, KINDS.len(), "{}", tree["PROJECT"]);
    for kind in KINDS {
        let module = kind.to_lowercase();
        assert!(tree["src/controller/mod.rs"].contains(&format!(".controller({module}::controller())")));
        assert!(tree["config/crd/kustomization.yaml"].contains(&format!("cache.example.com_{module}s.yaml")));
    }
    assert!(
        !tree.keys().any(|path| path.contains("rbuilder-")),
        "{:?}",
        tree.keys()
    );
    settled(&folder, &[]);
}

#[test]
fn two_groups_can_have_the_same_kind() {
    let folder = project("--multigroup");
    let (crew, ship) = (
        "create api --group crew --version v1 --kind Captain",
        "create api --group ship --version v1 --kind Captain",
    );
    folder.run(crew).ok();
    folder.run(ship).ok();
    folder
        .run("create api --group ship --version v2 --kind Captain")
        .ok();
    let tree = folder.tree();
    for (path, expected) in [
        ("src/api/mod.rs", "pub mod crew;\npub mod ship;\n"),
        ("src/api/ship/mod.rs", "pub mod v1;\npub mod v2;\n"),
        ("src/api/ship/v1/mod.rs", "mod captain;\n\npub use captain::*;\n"),
        (
            "src/controller/mod.rs",
            ".controller(crew::captain::controller())",
        ),
        (
            "src/controller/mod.rs",
            ".controller(ship::captain::controller())",
        ),
        (
            "src/controller/ship/captain.rs",
            "use crate::api::ship::v1::Captain;",
        ),
        ("tests/ship_captain_v2.rs", "use shop::api::ship::v2::Captain;"),
        (
            "config/samples/crew_v1_captain.yaml",
            "apiVersion: crew.example.com/v1\n",
        ),
        (
            "config/rbac/ship_captain_editor_role.yaml",
            "name: ship-captain-editor-role\n",
        ),
        (
            "config/rbac/kustomization.yaml",
            "- crew_captain_viewer_role.yaml\n",
        ),
        (
            "config/rbac/role.yaml",
            "- crew.example.com\n  - ship.example.com\n",
        ),
        (
            "config/crd/kustomization.yaml",
            "- bases/crew.example.com_captains.yaml\n- bases/ship.example.com_captains.yaml\n",
        ),
        ("config/crd/bases/ship.example.com_captains.yaml", "name: v2\n"),
    ] {
        assert!(tree[path].contains(expected), "{path}:\n{}", tree[path]);
    }
    settled(&folder, &[crew, ship]);
}

#[test]
fn namespaced_project_keeps_its_role() {
    let folder = project("--namespaced");
    folder.run(API).ok();
    let role = "config/rbac/role.yaml";
    let tree = folder.tree();
    assert!(tree[role].contains("kind: Role\n") && !tree[role].contains("kind: ClusterRole\n"));
    assert!(tree["config/rbac/role_binding.yaml"].contains("kind: Role\n"));
    assert!(tree["config/manager/manager.yaml"].contains("name: WATCH_NAMESPACE\n"));
    settled(&folder, &[API]);

    // The role has to exist even if there is no marker, because the binding refers to it.
    for path in ["src/controller/mod.rs", "src/controller/memcached.rs"] {
        let text = tree[path].clone();
        let mut kept = String::new();
        let mut rest = text.as_str();
        while let Some(at) = rest.find("#[rbac(") {
            kept.push_str(&rest[..at]);
            let end = rest[at..].find(")]\n").expect("the marker ends");
            rest = &rest[at + end + 3..];
        }
        folder.write(path, &(kept + rest));
    }
    folder.run("manifests").ok();
    assert_eq!(
        folder.tree()[role],
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: manager-role\n  namespace: shop-system\nrules: []\n"
    );
    settled(&folder, &[]);
}

#[test]
fn binds_role_of_a_cluster_scoped_kind_in_a_namespaced_project() {
    let folder = project("--namespaced");
    let command = format!("{CUP} --namespaced=false");
    folder.run(&command).ok();
    let tree = folder.tree();
    let binding = &tree["config/rbac/cluster_role_binding.yaml"];
    assert!(binding.contains("kind: ClusterRoleBinding\n") && binding.contains("name: manager-role\n"));
    assert!(tree["config/rbac/kustomization.yaml"].contains("\n- cluster_role_binding.yaml\n"));
    // kube records events about cluster-scoped objects in `default`.
    let (cluster_role, _) = tree["config/rbac/role.yaml"]
        .split_once("kind: Role\n")
        .expect("a Role follows the ClusterRole");
    assert!(cluster_role.contains("  - events\n"), "{cluster_role}");
    settled(&folder, &[&command]);
    // Other cluster-scoped kinds share the binding, and no other kind needs it.
    folder.run(&command.replace("Cup", "Mug")).ok();
    folder.run(API).ok();
    assert_eq!(&folder.tree()["config/rbac/cluster_role_binding.yaml"], binding);
    let whole = project("");
    whole.run(&command).ok();
    assert!(!whole.tree().contains_key("config/rbac/cluster_role_binding.yaml"));
}

#[test]
fn warns_about_unbound_roles() {
    let folder = project("");
    folder.run(API).ok();
    let path = "src/controller/memcached.rs";
    let text = folder.tree()[path].clone();
    let marker = "#[rbac(groups = \"\", resources = \"secrets\", verbs = [\"get\"], role_name = \"vault\", namespace = \"vault\")]\npub async fn reconcile";
    let unbound = "no binding in config/ refers to Role `vault`: it grants nothing";
    let in_system = marker.replace("namespace = \"vault\"", "namespace = \"system\"");
    folder.write(path, &text.replace("pub async fn reconcile", &in_system));
    let said = folder.run("manifests").ok().err;
    assert!(said.contains(unbound), "{said}");
    // The warning isn't repeated if no role is added, but `doctor` still has it.
    assert_eq!(folder.run("manifests").ok().err, "");
    let found = folder.run("doctor").out;
    assert!(found.contains(unbound), "{found}");
    let binding = folder.tree()["config/rbac/role_binding.yaml"]
        .replace("ClusterRole", "Role")
        .replace("name: manager-role", "name: vault");
    folder.write("config/rbac/vault_role_binding.yaml", &binding);
    let found = folder.run("doctor").out;
    assert!(!found.contains(unbound), "{found}");
    // Roles for other namespaces are bound, and stay where they are.
    folder.write(path, &text.replace("pub async fn reconcile", marker));
    assert_eq!(folder.run("manifests").ok().err, "");
    let moved = "config/default/kustomization.yaml moves Role `vault` of namespace `vault` to namespace `shop-system`";
    assert!(!folder.run("doctor").out.contains(moved));
    folder.replace(
        "config/default/kustomization.yaml",
        "- ../rbac/namespaces",
        "# - ../rbac/namespaces",
    );
    let found = folder.run("doctor").out;
    assert!(found.contains(moved), "{found}");

    // A namespaced project can bind a Role, but no ClusterRole.
    let folder = project("--namespaced");
    folder.run(API).ok();
    let text = folder.tree()[path].clone();
    folder.write(
        path,
        &text.replace(
            "pub async fn reconcile",
            &marker.replace(", role_name = \"vault\", namespace = \"vault\"", ""),
        ),
    );
    let said = folder.run("manifests").ok().err;
    assert!(
        said.contains("no binding in config/ refers to ClusterRole `manager-role`"),
        "{said}"
    );
}

#[test]
fn keeps_user_changes_between_commands() {
    let folder = project("");
    folder.run(API).ok();
    let change = |path: &str, from: &str, to: &str| {
        let text = folder.tree()[path].clone();
        assert!(text.contains(from), "{path}:\n{text}");
        folder.write(path, &text.replacen(from, to, 1));
    };
    change(
        "src/controller/mod.rs",
        "pub mod memcached;\n",
        "pub mod memcached;\nmod shared; // ours\n",
    );
    folder.write("src/controller/shared.rs", "//! Ours.\n");
    change(
        "src/api/v1alpha1/mod.rs",
        "pub use memcached::*;",
        "pub use memcached::{Memcached, MemcachedSpec, MemcachedStatus};",
    );
    change(
        "config/samples/kustomization.yaml",
        "resources:\n",
        "namePrefix: x-\n\nresources:\n# The first.\n",
    );
    change(
        "config/default/kustomization.yaml",
        "# - ../prometheus",
        "- ../prometheus",
    );
    change(
        "src/api/v1alpha1/memcached.rs",
        "pub foo:",
        "/// Ours.\n    pub foo:",
    );
    change("README.md", "# shop\n", "# Our shop\n");
    folder.run("manifests").ok();
    let ours = folder.tree();

    folder.run(CUP).ok();
    let tree = folder.tree();
    for path in [
        "src/api/v1alpha1/memcached.rs",
        "README.md",
        "config/default/kustomization.yaml",
        "src/controller/shared.rs",
    ] {
        assert_eq!(tree[path], ours[path], "{path}");
    }
    for (path, expected) in [
        (
            "src/controller/mod.rs",
            "pub mod cup;\npub mod memcached;\nmod shared; // ours\n",
        ),
        ("src/controller/mod.rs", ".controller(cup::controller())"),
        (
            "src/api/v1alpha1/mod.rs",
            "pub use cup::*;\npub use memcached::{Memcached, MemcachedSpec, MemcachedStatus};\n",
        ),
        (
            "config/samples/kustomization.yaml",
            "# The first.\n- cache_v1alpha1_memcached.yaml\n- cache_v1alpha1_cup.yaml\n",
        ),
        ("config/crd/bases/cache.example.com_memcacheds.yaml", "Ours."),
    ] {
        assert!(tree[path].contains(expected), "{path}:\n{}", tree[path]);
    }
    settled(&folder, &[API, CUP, "init"]);
}

#[test]
fn license_is_only_named_where_it_was_chosen() {
    for (flags, spdx, heading) in [
        ("", Some("Apache-2.0"), "Apache License"),
        ("--license apache2", Some("Apache-2.0"), "Apache License"),
        ("--license mit", Some("MIT"), "MIT License"),
        ("--license none", None, ""),
    ] {
        let folder = project(&format!("--owner Shopkeepers {flags}"));
        folder.run(API).ok();
        let tree = folder.tree();
        let head = &tree["src/controller/memcached.rs"];
        assert!(head.starts_with("// Copyright Shopkeepers\n"), "{flags}: {head}");
        let line = spdx.map(|spdx| format!("// SPDX-License-Identifier: {spdx}\n"));
        assert_eq!(head.contains("SPDX"), line.is_some(), "{flags}: {head}");
        assert!(line.is_none_or(|line| head.contains(&line)), "{flags}: {head}");
        let license = tree["Cargo.toml"].contains("\nlicense = ");
        assert_eq!(license, spdx.is_some(), "{flags}");
        assert_eq!(
            tree["README.md"].contains("## License"),
            spdx.is_some(),
            "{flags}"
        );
        assert!(tree["README.md"].contains(heading), "{flags}");
    }
}

#[test]
fn asks_nothing_without_a_terminal() {
    let folder = project("");
    // Keep standard input open, but send nothing.
    let mut child = Command::new(env!("CARGO_BIN_EXE_rbuilder"))
        .args(API.split(' '))
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let input = child.stdin.take();
    let deadline = Instant::now() + Duration::from_secs(60);
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is ours") {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().expect("it is ours");
            panic!("it waits for an answer");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    drop(input);
    assert!(status.success());
    assert!(folder.tree().contains_key("src/controller/memcached.rs"));
}

#[test]
fn names_are_quoted_in_yaml() {
    let folder = Folder::new();
    folder.run("init --domain 5 --project-name on").ok();
    folder
        .run("create api --group 1 --version v1 --kind Null --plural yes")
        .ok();
    let tree = folder.tree();
    for (path, expected) in [
        ("config/manager/manager.yaml", "app.kubernetes.io/name: \"on\"\n"),
        (
            "config/rbac/null_viewer_role.yaml",
            "- \"1.5\"\n  resources:\n  - \"yes\"\n",
        ),
        ("config/samples/1_v1_null.yaml", "kind: \"Null\"\n"),
        ("config/crd/bases/1.5_yes.yaml", "group: \"1.5\"\n"),
        ("PROJECT", "kind: \"Null\"\n"),
    ] {
        assert!(tree[path].contains(expected), "{path}:\n{}", tree[path]);
    }
    for (path, text) in tree.iter().filter(|(path, _)| path.ends_with(".yaml")) {
        let bare = text.lines().find(|line| {
            let value = line.rsplit([' ']).next().unwrap_or_default();
            matches!(value, "on" | "yes" | "Null" | "1.5") && !line.trim_start().starts_with('#')
        });
        assert_eq!(bare, None, "{path}");
    }
    settled(&folder, &["init"]);
}

#[test]
fn keeps_files_of_a_new_repository() {
    for (license, expected) in [
        (
            "MIT License\n\nCopyright (c) 2026\n",
            "SPDX-License-Identifier: MIT",
        ),
        (
            "  Apache License\n  Version 2.0, January 2004\n",
            "SPDX-License-Identifier: Apache-2.0",
        ),
        ("All rights reserved.\n", "//! "),
    ] {
        let folder = Folder::new();
        folder.write("README.md", "# Mine\n");
        folder.write("LICENSE", license);
        folder.write(".gitignore", "target\n.env\n");
        folder.run(INIT).ok();
        let tree = folder.tree();
        assert_eq!(tree["README.md"], "# Mine\n");
        assert_eq!(tree["LICENSE"], license);
        assert!(tree["src/lib.rs"].contains(expected), "{}", tree["src/lib.rs"]);
        let ignored = &tree[".gitignore"];
        assert!(
            ignored.starts_with("target\n.env\n\n/bin/\n/dist/\n"),
            "{ignored}"
        );
        assert!(!ignored.contains("/target/") && ignored.contains(".rbuilder-journal\n"));
        settled(&folder, &["init"]);
    }
}

#[test]
fn lists_all_conflicting_files_in_one_error() {
    let folder = Folder::new();
    folder.write("Makefile", "all:\n");
    folder.write("src/api/mod.rs", "pub mod mine;\n");
    folder.write("notes/todo.txt", "keep\n");
    let before = folder.tree();
    for flags in ["", "--dry-run"] {
        let ran = folder.run(&format!("{INIT} {flags}"));
        assert_eq!(ran.code, 1);
        assert_eq!(
            ran.err,
            "error: these files already exist with different content:\n  Makefile\n  src/api/mod.rs\n\
             no files were written; move them away, or overwrite them with `--force`\n"
        );
        assert_eq!(folder.tree(), before);
    }
    folder.run(&format!("{INIT} --force")).ok();
    let tree = folder.tree();
    assert!(tree["Makefile"].starts_with("# Builds, tests"));
    assert_eq!(tree["notes/todo.txt"], "keep\n");

    // Files that `init` has created are also the user's, so `--force` keeps them.
    folder.run(API).ok();
    let tree = folder.tree();
    folder.run(&format!("{INIT} --force")).ok();
    assert_eq!(folder.tree(), tree);
}

#[test]
fn does_not_touch_projects_of_other_tools() {
    let folder = Folder::new();
    folder.write(
        "PROJECT",
        "domain: example.com\nlayout:\n- go.kubebuilder.io/v4\nprojectName: shop\nversion: \"3\"\n",
    );
    let before = folder.tree();
    for command in [API, "init", &format!("{INIT} --force")] {
        let ran = folder.run(command);
        assert_eq!(ran.code, 1, "{command}");
        assert!(ran.err.contains("layout `go.kubebuilder.io/v4`"), "{}", ran.err);
    }
    assert_eq!(folder.tree(), before);
}

#[test]
fn commands_report_mistakes_in_the_source_as_json() {
    let folder = project("");
    folder.run(API).ok();
    let path = "src/api/v1alpha1/memcached.rs";
    folder.write(path, &folder.tree()[path].replace("max_length", "max_lenght"));
    let before = folder.tree();
    for command in [CUP, "manifests", "manifests --check", "init"] {
        let ran = folder.run(&format!("{command} --output json"));
        assert_eq!(ran.code, 1, "{command}");
        let answer = answer(&ran.out);
        assert_eq!(answer["applied"], false, "{command}");
        assert!(
            answer["error"]
                .as_str()
                .is_some_and(|error| error.starts_with("found 1 error in the source; no files were written")),
            "{command}: {answer}"
        );
        assert_eq!(answer["diagnostics"][0]["path"], path, "{command}");
        assert_eq!(
            answer["diagnostics"][0]["start"]["line"], 25,
            "{command}: {answer}"
        );

        let ran = folder.run(command);
        assert!(
            ran.err.contains("--> src/api/v1alpha1/memcached.rs:25:"),
            "{command}: {}",
            ran.err
        );
    }
    assert_eq!(folder.tree(), before);
    // We can still add the kind, and fix the mistake later.
    folder.run(&format!("{CUP} --manifests=false")).ok();
    assert!(folder.tree().contains_key("src/api/v1alpha1/cup.rs"));
}

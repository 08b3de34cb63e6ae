//! `rbuilder edit`: changing a setting later has the same result as a project created with it, and
//! features of the deployment can be enabled and disabled without a trace.

#![allow(clippy::disallowed_methods)] // a test checks the mode of a file

use crate::support;

use support::Folder;

const INIT: &str = "init --domain example.com --project-name shop";

const COMMANDS: &[&str] = &[
    "create api --group cache --version v1 --kind Cup",
    "create api --group cache --version v1 --kind Pot --image pot:1 --image-container-port 80",
    "create webhook --group cache --version v1 --kind Cup --defaulting --validation",
    "create api --group cache --version v1 --kind Shelf --namespaced=false --controller=false",
];

fn project(flags: &str) -> Folder {
    begun(flags, COMMANDS)
}

#[test]
fn changing_a_setting_later_equals_starting_with_it() {
    for flags in [
        "--namespaced",
        "--owner Shopkeepers",
        "--license mit",
        "--license none --owner Shopkeepers --namespaced",
    ] {
        let folder = project("");
        let before = folder.tree();
        folder.run(&format!("edit {flags}")).ok();
        let (later, first) = (folder.tree(), project(flags).tree());
        for path in later.keys().chain(first.keys()) {
            assert_eq!(later.get(path), first.get(path), "{path} after {flags}");
        }

        let again = folder.run(&format!("edit {flags}")).ok();
        assert!(again.out.starts_with("unchanged"), "{flags}: {}", again.out);
        folder
            .run("edit --namespaced=false --license apache2 --owner=")
            .ok();
        let after = folder.tree();
        for path in before.keys().chain(after.keys()) {
            assert_eq!(
                after.get(path),
                before.get(path),
                "{path} after {flags}, and back"
            );
        }
    }
}

#[test]
fn kubernetes_minor_follows_the_dependency() {
    let folder = project("");
    let old = rbuilder_generator::versions::KUBERNETES;
    let minors = rbuilder_generator::Minor::all();
    let new = minors
        .rev()
        .find(|minor| *minor != old)
        .expect("there are several");
    folder.run(&format!("edit --kubernetes {new}")).ok();
    let tree = folder.tree();
    let feature = rbuilder_generator::versions::k8s_openapi_feature(new);
    assert!(tree["Cargo.toml"].contains(&feature), "{}", tree["Cargo.toml"]);
    assert!(tree["PROJECT"].contains(&format!("kubernetes: \"{new}\"")));
    let ran = folder.run("update").ok();
    assert!(ran.out.starts_with("unchanged"), "{}", ran.out);
}

#[test]
fn user_changes_are_kept() {
    let folder = project("");
    let path = "src/controller/cup.rs";
    let text = folder.tree()[path].replace("// Replace this example", "// Ours: replace this example");
    folder.write(path, &format!("{text}\nfn ours() {{}}\n"));
    folder.run("edit --namespaced").ok();
    let tree = folder.tree();
    assert!(tree[path].contains("// Ours") && tree[path].contains("fn ours() {}"));
    assert!(tree[path].contains("namespace = \"shop-system\""));
}

/// A manager in a single namespace is not bound to a ClusterRole. The command warns if markers
/// still request its permissions, and only then.
#[test]
fn warns_about_unbound_cluster_permissions() {
    let begin = || begun("", &COMMANDS[..1]);
    let scaffolded = begin().run("edit --namespaced").ok().err;
    assert!(
        !scaffolded.contains("ClusterRole") && !scaffolded.contains("cluster-wide"),
        "{scaffolded}"
    );

    let folder = begin();
    let path = "src/controller/cup.rs";
    let marker = "#[rbac(groups = \"\", resources = \"secrets\", verbs = [\"get\"])]\npub fn ours() {}\n";
    folder.write(path, &format!("{}\n{marker}", folder.tree()[path]));
    let unbound =
        "warning: config/rbac/role.yaml still has ClusterRole `manager-role`, which nothing binds any more\n";
    let said = folder.run("edit --namespaced").ok().err;
    assert!(
        said.contains(unbound) && said.contains("add `namespace = \"shop-system\"` to those"),
        "{said}"
    );
    // The warning still comes if the manifests have not changed yet.
    let said = begin().run("edit --namespaced --manifests=false").ok().err;
    assert!(
        said.contains("markers without `namespace` request cluster-wide permissions"),
        "{said}"
    );
}

#[test]
fn conflicts_are_shown_or_refused() {
    let folder = project("");
    let path = "config/rbac/role_binding.yaml";
    let text = folder.tree()[path].replace("kind: ClusterRoleBinding", "kind: OurRoleBinding");
    folder.write(path, &text);
    let before = folder.tree();
    let ran = folder.run("edit --namespaced --no-conflicts");
    assert_eq!(ran.code, 1);
    assert!(
        ran.err
            .contains("the edit has conflicts; no files were written:\n  config/rbac/role_binding.yaml:"),
        "{}",
        ran.err
    );
    assert_eq!(folder.tree(), before);

    let ran = folder.run("edit --namespaced");
    assert_eq!(ran.code, 1);
    assert!(folder.tree()[path].contains("<<<<<<< this project\nkind: OurRoleBinding\n"));
    let again = folder.run("edit --license mit");
    assert!(again.err.contains("unresolved"), "{}", again.err);
}

#[test]
fn rejects_invalid_settings() {
    let folder = project("");
    let before = folder.tree();
    for (flags, expected) in [
        ("", "required arguments"),
        ("--kubernetes 1.2", "expected a Kubernetes version from"),
        ("--kubernetes latest", "expected a Kubernetes version from"),
        ("--owner a\"b", "owner"),
    ] {
        let ran = folder.run(&format!("edit {flags}"));
        assert!(
            ran.code != 0 && ran.err.contains(expected),
            "{flags}: {}",
            ran.err
        );
        assert_eq!(folder.tree(), before, "{flags}");
    }
}

const DEPLOYMENT: &str = "config/default/kustomization.yaml";

#[test]
fn features_can_be_enabled_and_disabled() {
    for (features, on) in [
        ("metrics", "\n- ../metrics\n"),
        ("network-policy", "\n- ../network-policy\n"),
        ("sharding", "\n- ../sharding\n"),
        ("metrics,prometheus", "\n- ../prometheus\n"),
        (
            "metrics,prometheus,metrics-certificate",
            "\n- ../metrics-certificate\n",
        ),
        ("webhooks", "\n- ../webhook\n"),
        ("webhooks,cert-manager", "\n- ../webhook\n- ../certmanager\n"),
        (
            "prometheus --enable metrics,network-policy,sharding --enable webhooks,cert-manager",
            "\n- ../metrics\n",
        ),
    ] {
        let folder = project("");
        let names = features.replace(" --enable ", ",");
        folder.run(&format!("edit --disable {names}")).ok();
        let off = folder.tree();
        let again = folder.run(&format!("edit --disable {names}")).ok();
        assert!(again.out.starts_with("unchanged"), "{features}: {}", again.out);
        assert!(!off[DEPLOYMENT].contains(on), "{features}: {}", off[DEPLOYMENT]);

        folder.run(&format!("edit --enable {features}")).ok();
        assert!(folder.tree()[DEPLOYMENT].contains(on), "{features}");
        let again = folder.run(&format!("edit --enable {names}")).ok();
        assert!(again.out.starts_with("unchanged"), "{features}: {}", again.out);
        folder.run(&format!("edit --disable {names}")).ok();
        assert_eq!(folder.tree(), off, "{features}");
    }
}

#[test]
fn enabling_features_again_restores_them() {
    let folder = project("");
    let text = folder.tree()[DEPLOYMENT]
        .replace("- ../metrics\n", "- ../metrics # ours\n")
        .replace("- ../webhook\n", "- ../webhook # ours\n- ../ours\n");
    folder.write(DEPLOYMENT, &format!("{text}\nimages: []\n"));
    let before = folder.tree();
    for names in ["metrics", "webhooks", "metrics,webhooks"] {
        folder.run(&format!("edit --disable {names}")).ok();
        assert_ne!(folder.tree(), before, "{names}");
        folder.run(&format!("edit --enable {names}")).ok();
        assert_eq!(folder.tree()[DEPLOYMENT], before[DEPLOYMENT], "{names}");
    }
    assert_eq!(folder.tree(), before);
}

#[test]
fn one_command_can_change_settings_and_features() {
    let folder = project("");
    let ran = folder
        .run("edit --enable prometheus --disable webhooks --owner Us")
        .ok();
    let tree = folder.tree();
    let text = &tree[DEPLOYMENT];
    assert!(text.contains("\n- ../prometheus\n") && text.contains("\n- ../webhook/disabled\n"));
    assert!(
        text.contains("\ntransformers: []\n# - ../webhook/names\n"),
        "{text}"
    );
    assert!(tree["src/main.rs"].starts_with("// Copyright Us\n"));
    assert!(
        ran.err
            .contains("mutatingwebhookconfiguration/shop-mutating-webhook-configuration")
    );
    // If there is another webhook, the API server has to call it.
    folder
        .run("create webhook --group cache --version v1 --kind Shelf --validation")
        .ok();
    let text = &folder.tree()[DEPLOYMENT];
    assert!(text.contains("\n- ../webhook\n"), "{text}");
    assert!(text.contains("\ntransformers:\n- ../webhook/names\n"), "{text}");
}

#[test]
fn deleting_the_last_webhook_disables_its_features() {
    const DELETE: &str = "delete webhook --group cache --version v1 --kind Cup";
    let plain = project("");
    plain.run(DELETE).ok();
    let expected = &plain.tree()[DEPLOYMENT];
    for flags in ["--enable cert-manager", "--disable webhooks"] {
        let folder = project("");
        folder.run(&format!("edit {flags}")).ok();
        folder.run(DELETE).ok();
        let tree = folder.tree();
        assert_eq!(&tree[DEPLOYMENT], expected, "{flags}");
        assert!(
            !tree.keys().any(|path| path.starts_with("config/webhook/")),
            "{flags}"
        );
    }
}

#[test]
fn rejects_invalid_features() {
    let folder = project("");
    let none = Folder::new();
    none.run(INIT).ok();
    let converting = project("");
    for command in [
        "create api --group cache --version v2 --kind Cup",
        "create webhook --group cache --version v1 --kind Cup --conversion --spoke v2",
    ] {
        converting.run(command).ok();
    }
    let prometheus = project("");
    prometheus.run("edit --enable prometheus").ok();
    let certified = project("");
    certified.run("edit --enable cert-manager").ok();
    let flow = project("");
    let text = "components: [../metrics, ../webhook]\ntransformers: [../webhook/names]\n";
    flow.write(DEPLOYMENT, text);
    let misplaced = project("");
    let text = misplaced.tree()[DEPLOYMENT].replace("components:\n", "components:\n# - ../certmanager\n");
    misplaced.write(DEPLOYMENT, &text);
    let unordered = project("");
    let text =
        unordered.tree()[DEPLOYMENT].replace("components:\n", "components:\n# - ../metrics-certificate\n");
    unordered.write(DEPLOYMENT, &text);
    let leaderless = project("");
    let path = "config/manager/manager.yaml";
    let text = leaderless.tree()[path].replace("        - --leader-elect\n", "");
    leaderless.write(path, &text);
    let incomplete = project("");
    incomplete.remove("config/prometheus/kustomization.yaml");
    for (folder, flags, expected) in [
        (&folder, "--enable logs", "invalid value 'logs'"),
        (&folder, "--enable=", "a value is required"),
        (
            &folder,
            "--enable metrics,prometheus --disable prometheus",
            "`prometheus` is in `--enable` and in `--disable`",
        ),
        (
            &folder,
            "--enable prometheus --disable metrics",
            "disable both with `--disable prometheus,metrics`",
        ),
        (
            &folder,
            "--enable metrics-certificate --disable metrics",
            "disable both with `--disable metrics-certificate,metrics`",
        ),
        (
            &unordered,
            "--enable metrics-certificate",
            "move the first line below the second by hand and run the command again:\n  - ../metrics-certificate\n  - ../metrics",
        ),
        (
            &prometheus,
            "--disable metrics",
            "`prometheus` requires `metrics`, because it scrapes the metrics: disable both",
        ),
        (
            &certified,
            "--disable webhooks",
            "disable both with `--disable cert-manager,webhooks`",
        ),
        (
            &none,
            "--enable webhooks",
            "scaffold one with `rbuilder create webhook`",
        ),
        (&none, "--enable cert-manager", "so `cert-manager` has no effect"),
        (
            &converting,
            "--disable webhooks",
            "`rbuilder delete webhook --group cache --version v1 --kind Cup --conversion`",
        ),
        (
            &flow,
            "--disable metrics",
            "remove this entry by hand and run the command again:\n  - ../metrics",
        ),
        (
            &flow,
            "--disable webhooks",
            "remove this entry by hand and run the command again:\n  - ../webhook",
        ),
        (
            &misplaced,
            "--enable cert-manager",
            "move the first line below the second by hand and run the command again:\n  - ../certmanager\n  - ../webhook",
        ),
        (
            &leaderless,
            "--enable sharding",
            "expected `--leader-elect` in `args` of the container `manager` in config/manager/manager.yaml",
        ),
        (
            &incomplete,
            "--enable prometheus",
            "config/prometheus/kustomization.yaml, does not exist",
        ),
    ] {
        let before = folder.tree();
        let ran = folder.run(&format!("edit {flags}"));
        assert!(
            ran.code != 0 && ran.err.contains(expected),
            "{flags}: {}",
            ran.err
        );
        assert_eq!(folder.tree(), before, "{flags}");
    }
    let off = project("");
    off.run("edit --disable metrics").ok();
    let ran = off.run("edit --enable prometheus");
    assert!(ran.err.contains("`--enable metrics,prometheus`"), "{}", ran.err);
    // A feature that doesn't exist is already disabled.
    let ran = none.run("edit --disable webhooks,cert-manager").ok();
    assert!(ran.out.starts_with("unchanged"), "{}", ran.out);
}

#[test]
fn disabling_sharding_warns_about_deployed_replicas() {
    let folder = project("");
    let off = folder.run("edit --disable sharding").ok();
    assert!(!off.err.contains("replicas"), "{}", off.err);
    folder.run("edit --enable sharding").ok();
    let off = folder.run("edit --disable sharding").ok();
    let command = "`kubectl --namespace shop-system scale deployment/shop-controller-manager --replicas=0`";
    assert!(off.err.contains(command), "{}", off.err);
}

/// The layouts differ in everything that matters. `INIT` runs first.
const LAYOUTS: &[&[&str]] = &[
    &[],
    COMMANDS,
    &[
        "create api --group cache --version v1 --kind Cup",
        "create webhook --group cache --version v1 --kind Cup --defaulting",
        "create api --group cache --version v2 --kind Cup",
        "create webhook --group cache --version v2 --kind Cup --conversion --spoke v1 --validation",
        "create api --group cache --version v1 --kind Captain",
        "create api --group cache --version v1 --kind Captain --controller-name captain-backup",
    ],
    // Has webhooks for several groups in the same version, and a kind whose module has the name of
    // its group.
    &[
        "create api --group pot --version v1 --kind Pot",
        "create api --group apps --version v1 --kind ReplicaSet --controller",
        "create api --version v1 --kind Node --resource=false --controller-name node-labels",
        "create webhook --group pot --version v1 --kind Pot --validation",
        "create webhook --version v1 --kind Pod --defaulting --defaulting-path /mutate/pods",
    ],
    // If the group is empty, there is no directory for it.
    &[
        "create api --version v1 --kind Cup",
        "create webhook --version v1 --kind Cup --validation",
    ],
    // These modules have to state that they do not refer to the crate.
    &["create api --group tea-time --version v1alpha1 --kind Kube"],
];

fn begun(flags: &str, commands: &[&str]) -> Folder {
    let folder = Folder::new();
    folder.run(&format!("{INIT} {flags}")).ok();
    for command in commands {
        folder.run(command).ok();
    }
    folder
}

#[track_caller]
fn assert_same(left: &Folder, right: &Folder, what: &str) {
    let (left, right) = (left.tree(), right.tree());
    for path in left.keys().chain(right.keys()) {
        assert_eq!(left.get(path), right.get(path), "{path}, {what}");
    }
}

#[test]
fn multigroup_equals_starting_with_groups() {
    for (at, commands) in LAYOUTS.iter().enumerate() {
        let what = format!("layout {at}");
        let single = begun("", commands);
        let folder = begun("", commands);
        let several = begun("--multigroup", commands);
        folder.run("edit --multigroup").ok();
        assert_same(&folder, &several, &what);
        let again = folder.run("edit --multigroup").ok();
        assert!(again.out.starts_with("unchanged"), "{what}: {}", again.out);
        let updated = folder.run("update").ok();
        assert!(updated.out.starts_with("unchanged"), "{what}: {}", updated.out);

        folder.run("edit --multigroup=false").ok();
        assert_same(&folder, &single, &format!("{what}, and back"));
    }
    // We can change other settings in the same command.
    let folder = begun("", COMMANDS);
    folder.run("edit --multigroup --namespaced --owner Us").ok();
    assert_same(
        &folder,
        &begun("--multigroup --namespaced --owner Us", COMMANDS),
        "with settings",
    );
}

/// Has user code that a move must adapt.
fn worked_on() -> Folder {
    let folder = begun("", LAYOUTS[2]);
    let change = |path: &str, from: &str, to: &str| {
        let text = folder.tree()[path].clone();
        assert!(text.contains(from), "{path}: {text}");
        folder.write(path, &text.replacen(from, to, 1));
    };
    change(
        "src/controller/cup.rs",
        "use crate::api::v1::Cup;\n",
        "use super::names;\nuse crate::api::{v1::{Cup, CupSpec}, v2 as newer}; // both\n",
    );
    change(
        "src/controller/mod.rs",
        "pub mod cup;",
        "pub mod cup;\nmod names; // ours",
    );
    folder.write(
        "src/controller/names.rs",
        "//! Ours.\r\nuse crate::api::{self, v1};\r\nfn f(_: v1::Cup, _: api::v2::Cup) {}\r\n",
    );
    folder.write("src/api/v1/notes.md", "Ours.\n");
    change("src/api/v1/mod.rs", "mod cup;", "mod cup;\npub mod helpers;");
    folder.write(
        "src/api/v1/helpers.rs",
        "use super::super::v2::Cup;\nuse crate::api::v1::Cup as Old;\n",
    );
    folder.write(
        "tests/ours.rs",
        "use shop::api::v1::helpers;\n#[test]\nfn ours() { shop::controller::cup::controller(); }\n",
    );
    change(
        "config/rbac/cup_viewer_role.yaml",
        "  - watch\n",
        "  - watch\n# Ours.\n",
    );
    change(
        "config/rbac/kustomization.yaml",
        "- cup_viewer_role.yaml\n",
        "- cup_viewer_role.yaml # seen by all\n- ours.yaml\n",
    );
    folder.write("config/rbac/ours.yaml", "kind: Ours\nrole: cup-editor-role\n");
    folder.remove("tests/captain.rs");
    folder
}

#[test]
fn moves_keep_user_changes() {
    let folder = worked_on();
    let before = folder.tree();
    let ran = folder.run("edit --multigroup --no-conflicts").ok();
    for moved in [
        "    moved src/api/v1/notes.md -> src/api/cache/v1/notes.md\n",
        "    moved src/controller/cup.rs -> src/controller/cache/cup.rs\n",
        "    moved config/rbac/cup_viewer_role.yaml -> config/rbac/cache_cup_viewer_role.yaml\n",
        "     edit src/controller/names.rs\n",
    ] {
        assert!(ran.out.contains(moved), "{}", ran.out);
    }
    assert!(
        ran.err.contains("bindings in clusters refer to the old names"),
        "{}",
        ran.err
    );
    let role = "config/rbac/ours.yaml:2 names the role `cup-editor-role`, which has been renamed\n  = help: write `cache-cup-editor-role`";
    assert!(ran.err.contains(role), "{}", ran.err);
    let tree = folder.tree();
    for (path, expected) in [
        (
            "src/controller/cache/cup.rs",
            "use super::super::names;\nuse crate::api::{cache::v1::{Cup, CupSpec}, cache::v2 as newer}; // both\n",
        ),
        ("src/controller/mod.rs", "pub mod cache;\nmod names; // ours\n"),
        (
            "src/controller/names.rs",
            "//! Ours.\r\nuse crate::api::{self, cache::v1};\r\nfn f(_: v1::Cup, _: api::cache::v2::Cup) {}\r\n",
        ),
        ("src/api/cache/v1/notes.md", "Ours.\n"),
        ("src/api/cache/v1/mod.rs", "mod cup;\npub mod helpers;\n"),
        (
            "src/api/cache/v1/helpers.rs",
            "use super::super::v2::Cup;\nuse crate::api::cache::v1::Cup as Old;\n",
        ),
        (
            "tests/ours.rs",
            "use shop::api::cache::v1::helpers;\n#[test]\nfn ours() { shop::controller::cache::cup::controller(); }\n",
        ),
        (
            "config/rbac/cache_cup_viewer_role.yaml",
            "  name: cache-cup-viewer-role\n",
        ),
        ("config/rbac/cache_cup_viewer_role.yaml", "  - watch\n# Ours.\n"),
        (
            "config/rbac/kustomization.yaml",
            "- cache_cup_viewer_role.yaml # seen by all\n- ours.yaml\n",
        ),
    ] {
        assert!(tree[path].contains(expected), "{path}: {}", tree[path]);
    }
    // Files that the user deleted stay deleted.
    assert!(
        !tree
            .keys()
            .any(|path| path.ends_with("captain.rs") && path.starts_with("tests/"))
    );
    let old = [
        "src/api/v1/",
        "src/webhook/v1/",
        "src/controller/cup.rs",
        "tests/cup.rs",
    ];
    assert!(
        !tree
            .keys()
            .any(|path| old.iter().any(|old| path.starts_with(old)))
    );

    // All other commands work as if the project had been created with groups.
    let again = folder.run("update").ok();
    assert!(again.out.starts_with("unchanged"), "{}", again.out);
    folder.run("create api --group tea --version v1 --kind Leaf").ok();
    folder.run("delete api --group tea --version v1 --kind Leaf").ok();
    assert_eq!(folder.tree(), tree);
    let refused = folder.run("delete controller --group cache --version v1 --kind Cup");
    assert!(
        refused.err.contains("\n  src/controller/cache/cup.rs\n"),
        "{}",
        refused.err
    );

    folder.run("edit --multigroup=false --no-conflicts").ok();
    let after = folder.tree();
    for path in before.keys().chain(after.keys()) {
        assert_eq!(before.get(path), after.get(path), "{path}, there and back");
    }
}

#[test]
fn moves_are_shown_as_moves() {
    let folder = begun("", &["create api --group cache --version v1 --kind Cup"]);
    let before = folder.tree();
    let dry = folder.run("edit --multigroup --dry-run").ok();
    assert!(
        dry.out.contains(
            "diff --git a/src/api/v1/cup.rs b/src/api/cache/v1/cup.rs\nrename from src/api/v1/cup.rs\nrename to src/api/cache/v1/cup.rs\ndiff --git a/"
        ),
        "{}",
        dry.out
    );
    assert!(
        dry.out
            .contains("rename to tests/cache_cup.rs\n--- a/tests/cup.rs\n+++ b/tests/cache_cup.rs\n@@ "),
        "{}",
        dry.out
    );
    assert!(
        dry.err.contains("    moved tests/cup.rs -> tests/cache_cup.rs\n"),
        "{}",
        dry.err
    );
    let json = folder.run("edit --multigroup --dry-run --output json").ok();
    let json: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    let changes = json["changes"].as_array().expect("changes");
    let find = |path: &str| changes.iter().find(|change| change["path"] == path);
    let moved = find("tests/cache_cup.rs").expect("a move");
    assert_eq!(
        (&moved["action"], &moved["from"]),
        (&"move".into(), &"tests/cup.rs".into())
    );
    assert!(find("tests/cup.rs").is_none());
    assert_eq!(folder.tree(), before);
}

#[cfg(unix)]
#[test]
fn moved_file_keeps_its_mode() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = begun("", &["create api --group cache --version v1 --kind Cup"]);
    let path = |name: &str| folder.path().join(name);
    let mode = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(path("tests/cup.rs"), mode).expect("a mode");
    folder.run("edit --multigroup").ok();
    let moved = std::fs::metadata(path("tests/cache_cup.rs")).expect("it has moved");
    assert_eq!(moved.permissions().mode() & 0o777, 0o600);
}

#[test]
fn rejects_uncertain_moves() {
    for (path, from, to, expected) in [
        (
            "src/api/v1/cup.rs",
            "    pub foo:",
            "    #[serde(deserialize_with = \"crate::api::v1::read\")]\n    pub foo:",
            "\n  src/api/v1/cup.rs:27:32: `crate::api::v1::read` is in an attribute, and will be at another path\n    help: write `crate::api::cache::v1::read`\nchange them by hand and run the command again",
        ),
        (
            "src/api/mod.rs",
            "pub mod v1;",
            "/// The first version.\npub mod v1;",
            "src/api/mod.rs:5:1: `mod v1` moves, but has attributes, comments or another visibility",
        ),
        (
            "src/api/mod.rs",
            "pub mod v1;",
            "pub mod common;\npub mod v1; // ours",
            "src/api/mod.rs:6:1: `pub mod v1;` moves, but is not on a line of its own",
        ),
        (
            "src/controller/mod.rs",
            "pub mod cup;",
            "mod cup;",
            "help: write `pub mod cup;`",
        ),
        (
            "src/controller/mod.rs",
            "pub mod cup;",
            "pub mod cup;\nuse std::collections as cache;",
            "`cache` will be the name of a module here",
        ),
        (
            "src/lib.rs",
            "pub mod api;",
            "pub mod api",
            "src/lib.rs:1:1: it does not parse",
        ),
        (
            "Cargo.toml",
            "[dependencies]\n",
            "[[test]]\nname = \"cup\"\npath = \"tests/cup.rs\"\n\n[dependencies]\n",
            "`tests/cup.rs` is a file that moves to `tests/cache_cup.rs`",
        ),
        (
            "src/controller/cache.rs",
            "",
            "//! Ours.\n",
            "src/controller/cache.rs conflicts with the modules that move",
        ),
        (
            "tests/cache_cup.rs",
            "",
            "//! Ours.\n",
            "tests/cache_cup.rs exists, but tests/cup.rs moves there",
        ),
        (
            "config/rbac/kustomization.yaml",
            "resources:",
            "resources: &all",
            "replace the old entries with these by hand",
        ),
    ] {
        let folder = begun("", &["create api --group cache --version v1 --kind Cup"]);
        let text = folder.tree().get(path).cloned().unwrap_or_default();
        assert!(text.contains(from), "{path}: {text}");
        folder.write(path, &text.replacen(from, to, 1));
        let before = folder.tree();
        let ran = folder.run("edit --multigroup");
        assert!(ran.code != 0 && ran.err.contains(expected), "{path}: {}", ran.err);
        assert_eq!(folder.tree(), before, "{path}");
    }
    let folder = begun(
        "--multigroup",
        &[LAYOUTS[1][0], "create api --group tea --version v1 --kind Leaf"],
    );
    let before = folder.tree();
    let ran = folder.run("edit --multigroup=false");
    assert!(
        ran.err
            .contains("the project has APIs in the groups `cache.example.com`, `tea.example.com`"),
        "{}",
        ran.err
    );
    assert_eq!(folder.tree(), before);
    let folder = begun(
        "--multigroup",
        &["create api --group cache --version v1 --kind Cup"],
    );
    let path = "src/api/cache/mod.rs";
    folder.write(path, &format!("{}\npub fn ours() {{}}\n", folder.tree()[path]));
    let ran = folder.run("edit --multigroup=false");
    assert!(
        ran.err
            .contains("src/api/cache/mod.rs contains more than the modules that move"),
        "{}",
        ran.err
    );
}

/// A command that changes `config/` lists what was generated from it.
#[test]
fn reminds_of_outdated_chart_and_bundle() {
    let chart = "config/ has changed. To update the chart, run:\n  rbuilder helm\n";
    let both = "config/ has changed. To update the chart and the bundle, run:\n  rbuilder helm\n  rbuilder bundle   # with the options of \
                your release\n";
    let folder = project("");
    assert!(
        !folder
            .run("edit --enable network-policy")
            .ok()
            .err
            .contains("To update")
    );
    folder.run("helm").ok();
    let check = |command: &str, expected: &str| {
        let said = folder.run(command).ok().err;
        assert!(said.ends_with(expected), "{command}: {said}");
    };
    check("edit --disable network-policy", chart);
    let found = folder.run("doctor").out;
    assert!(
        found.contains("warning chart: not up to date: .rbuilder/chart.txt, charts/shop/"),
        "{found}"
    );
    check("grafana", chart);
    let again = folder.run("grafana").ok();
    assert!(!again.err.contains("To update"), "{}", again.err);
    folder.run("bundle --image shop:1").ok();
    check("edit --enable prometheus", both);
    check("create api --group cache --version v1 --kind Lid", both);
    check("delete api --group cache --version v1 --kind Lid", both);
    folder.replace("src/api/v1/cup.rs", "max_length = 63", "max_length = 64");
    check("manifests", both);
    folder.run("helm").ok();
    let found = folder.run("doctor").out;
    assert!(found.contains("ok chart: up to date\n"), "{found}");
}

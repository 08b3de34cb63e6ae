//! `rbuilder edit`: settings changed later are the settings of a project that began with them, and features of the
//! deployment come and go without a trace.

#[path = "support/mod.rs"]
mod support;

use support::Folder;

const INIT: &str = "init --domain example.com --project-name shop";

const COMMANDS: &[&str] = &[
    "create api --group cache --version v1 --kind Cup",
    "create api --group cache --version v1 --kind Pot --image pot:1 --image-container-port 80",
    "create webhook --group cache --version v1 --kind Cup --defaulting --validation",
    "create api --group cache --version v1 --kind Shelf --namespaced=false --controller=false",
];

fn project(flags: &str) -> Folder {
    let folder = Folder::in_memory();
    folder.run(&format!("{INIT} {flags}")).ok();
    for command in COMMANDS {
        folder.run(command).ok();
    }
    folder
}

#[test]
fn a_setting_can_come_later() {
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
fn the_kubernetes_minor_is_that_of_the_dependency() {
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
fn changes_of_the_user_are_kept() {
    let folder = project("");
    let path = "src/controller/cup.rs";
    let text = folder.tree()[path].replace("// Replace this example", "// Ours: replace this example");
    folder.write(path, &format!("{text}\nfn ours() {{}}\n"));
    folder.run("edit --namespaced").ok();
    let tree = folder.tree();
    assert!(tree[path].contains("// Ours") && tree[path].contains("fn ours() {}"));
    assert!(tree[path].contains("namespace = \"shop-system\""));
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
fn settings_that_make_no_sense_are_refused() {
    let folder = project("");
    let before = folder.tree();
    for (flags, expected) in [
        ("", "required arguments"),
        ("--kubernetes 1.2", "expected a minor from"),
        ("--kubernetes latest", "expected a minor from"),
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
fn features_come_and_go() {
    for (features, on) in [
        ("metrics", "\n- ../metrics\n"),
        ("network-policy", "\n- ../network-policy\n"),
        ("metrics,prometheus", "\n- ../prometheus\n"),
        ("webhooks", "\n- ../webhook\n"),
        ("webhooks,cert-manager", "\n- ../webhook\n- ../certmanager\n"),
        (
            "prometheus --enable metrics,network-policy --enable webhooks,cert-manager",
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
fn features_that_are_on_come_back_as_they_were() {
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
fn both_directions_and_settings_are_one_command() {
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
    // A further webhook is for the API server to call.
    folder
        .run("create webhook --group cache --version v1 --kind Shelf --validation")
        .ok();
    let text = &folder.tree()[DEPLOYMENT];
    assert!(text.contains("\n- ../webhook\n"), "{text}");
    assert!(text.contains("\ntransformers:\n- ../webhook/names\n"), "{text}");
}

#[test]
fn the_last_webhook_takes_its_features_with_it() {
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
fn features_that_make_no_sense_are_refused() {
    let folder = project("");
    let none = Folder::in_memory();
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
            "turn both off with `--disable prometheus,metrics`",
        ),
        (
            &prometheus,
            "--disable metrics",
            "`prometheus` scrapes the metrics, and is on: turn both off",
        ),
        (
            &certified,
            "--disable webhooks",
            "turn both off with `--disable cert-manager,webhooks`",
        ),
        (
            &none,
            "--enable webhooks",
            "scaffold one with `rbuilder create webhook`",
        ),
        (&none, "--enable cert-manager", "which `cert-manager` is about"),
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
    // What is not there is off already.
    let ran = none.run("edit --disable webhooks,cert-manager").ok();
    assert!(ran.out.starts_with("unchanged"), "{}", ran.out);
}

//! `rbuilder edit`: settings changed later are the settings of a project that began with them.

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

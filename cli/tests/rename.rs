//! `rbuilder edit --project-name` and `--domain`, and kinds from several domains in one project.

use crate::support::Folder;

const BASE: &str = ".rbuilder/scaffold.base";

fn project(name: &str) -> Folder {
    let folder = Folder::new();
    for command in [
        &*format!("init --domain example.com --project-name {name}"),
        "create api --group cache --version v1 --kind Cup",
        "create webhook --group cache --version v1 --kind Cup --validation",
    ] {
        folder.run(command).ok();
    }
    folder
}

#[test]
fn renamed_project_equals_one_created_with_the_name() {
    let folder = project("shop");
    let expected = project("new-store");
    // This is user code that refers to the library and the namespace.
    let added = "use shop::api::v1::Cup;\n\n#[test]\nfn own() {\n    let _ = (Cup::default, \"shop-system\", \"workshop\");\n}\n";
    folder.write("tests/own.rs", added);
    folder.replace(
        "src/main.rs",
        "async fn main()",
        "/// Ours: shop::controller.\nasync fn main()",
    );
    let ran = folder.run("edit --project-name new-store").ok();
    assert!(
        ran.err
            .contains("all deployed objects get new names, from `shop-…` to `new-store-…`"),
        "{}",
        ran.err
    );
    assert!(
        ran.err
            .contains("kubectl --namespace shop-system delete deployment shop-controller-manager"),
        "{}",
        ran.err
    );
    let mut tree = folder.tree();
    let own = tree.remove("tests/own.rs").expect("it is kept");
    assert_eq!(
        own,
        added
            .replace("shop::api", "new_store::api")
            .replace("shop-system", "new-store-system")
    );
    assert!(tree["src/main.rs"].contains("/// Ours: new_store::controller.\nasync fn main()"));
    for (path, text) in expected.tree() {
        if path != "src/main.rs" {
            assert_eq!(tree.get(&path), Some(&text), "{path}");
        }
    }
    let again = folder.run("update").ok();
    assert!(again.out.starts_with("unchanged"), "{}", again.out);
    for (flag, expected) in [
        ("--project-name Bad_Name", "project name"),
        ("--domain -x", "domain"),
    ] {
        let ran = folder.run(&format!("edit {flag}"));
        assert!(ran.code != 0 && ran.err.contains(expected), "{}", ran.err);
    }
}

#[test]
fn kinds_keep_their_domain() {
    let folder = project("shop");
    let before = folder.tree();
    let ran = folder.run("edit --domain example.org").ok();
    assert!(
        ran.err.contains("the Lease for leader election gets a new name"),
        "{}",
        ran.err
    );
    let tree = folder.tree();
    for (path, text) in before {
        let may_change = ["PROJECT", "src/main.rs", BASE, ".rbuilder/files.sum"].contains(&path.as_str());
        assert!(may_change || tree.get(&path) == Some(&text), "{path}");
    }
    // A further version of the kind stays in its group, and a new kind gets the new domain. A flag
    // can select a third domain.
    folder
        .run("create api --group cache --version v2 --kind Cup --controller=false")
        .ok();
    folder
        .run("create api --group cache --version v1 --kind Mug")
        .ok();
    folder
        .run("create api --group cache --domain example.net --version v1 --kind Pot")
        .ok();
    folder
        .run("create webhook --group cache --version v1 --kind Pot --defaulting")
        .ok();
    let tree = folder.tree();
    for crd in [
        "cache.example.com_cups",
        "cache.example.org_mugs",
        "cache.example.net_pots",
    ] {
        assert!(
            tree.contains_key(&format!("config/crd/bases/{crd}.yaml")),
            "{crd}: {:?}",
            tree.keys()
        );
    }
    assert!(tree["config/crd/bases/cache.example.com_cups.yaml"].contains("name: v2\n"));
    assert!(
        tree["src/api/v1/pot.rs"].contains("group = \"cache.example.net\""),
        "{}",
        tree["src/api/v1/pot.rs"]
    );
    assert!(tree["config/webhook/manifests.yaml"].contains("cache.example.net"));
    let again = folder.run("update").ok();
    assert!(again.out.starts_with("unchanged"), "{}", again.out);
    let doctor = folder.run("doctor");
    let reports = |status: &str, check: &str| {
        let lines = doctor.out.lines();
        let mut found = lines.filter(|line| line.trim_start().starts_with(status));
        found.any(|line| line.contains(&format!(" {check}: ")))
    };
    assert!(
        !reports("warning", "project") && !reports("error", "manifests"),
        "{}",
        doctor.out
    );

    folder
        .run("delete webhook --group cache --version v1 --kind Pot")
        .ok();
    folder
        .run("delete api --group cache --version v1 --kind Pot")
        .ok();
    assert!(
        !folder
            .tree()
            .contains_key("config/crd/bases/cache.example.net_pots.yaml")
    );
    let again = folder.run("update").ok();
    assert!(again.out.starts_with("unchanged"), "{}", again.out);
}

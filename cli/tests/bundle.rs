//! `rbuilder bundle`: the bundle follows config/, and changes of people stay. `cargo xtask bundle` asks the validators.

use crate::support;

use serde_json::Value;
use support::Folder;

const COMMANDS: [&str; 3] = [
    "init --domain example.com --project-name shop --owner Shopkeepers",
    "create api --group cache --version v1 --kind Cup",
    "create webhook --group cache --version v1 --kind Cup --defaulting --validation",
];
const BUNDLE: &str = "bundle --image registry.example.com/shop:v0.1.0";
const CSV: &str = "bundle/manifests/shop.clusterserviceversion.yaml";

fn project() -> Folder {
    let folder = Folder::in_memory();
    for command in COMMANDS.into_iter().chain([BUNDLE]) {
        folder.run(command).ok();
    }
    folder
}

fn csv(folder: &Folder) -> Value {
    serde_saphyr::from_str(&folder.tree()[CSV]).expect("YAML")
}

#[track_caller]
fn replace(folder: &Folder, path: &str, from: &str, to: &str) {
    let text = folder.tree()[path].clone();
    assert!(text.contains(from), "{path}:\n{text}");
    folder.write(path, &text.replacen(from, to, 1));
}

#[test]
fn a_bundle_is_these_files() {
    let folder = project();
    let is_of_bundle = |path: &str| path.starts_with("bundle") || path.starts_with("catalog");
    let tree = folder.tree();
    let files: Vec<&String> = tree.keys().filter(|path| is_of_bundle(path)).collect();
    let listing: String = files.iter().map(|path| format!("{path}\n")).collect();
    support::golden("bundle/tree.txt", &listing);
    for path in [
        CSV,
        "bundle.Dockerfile",
        "bundle/metadata/annotations.yaml",
        "bundle/tests/scorecard/config.yaml",
        "catalog/shop/catalog.yaml",
    ] {
        let name = path.rsplit('/').next().unwrap_or(path);
        support::golden(&format!("bundle/{name}"), &tree[path]);
    }
    for command in [BUNDLE, &format!("{BUNDLE} --check")] {
        let ran = folder.run(command).ok();
        assert!(ran.out.starts_with("unchanged"), "{command}: {}", ran.out);
    }
}

#[test]
fn what_people_describe_survives_a_release() {
    let folder = project();
    replace(
        &folder,
        CSV,
        "description: Shop manages Cup.",
        "description: Cups and more.",
    );
    replace(&folder, CSV, "displayName: Foo", "displayName: The foo");
    folder
        .run("bundle --version 0.2.0 --replaces 0.1.0 --skips 0.1.1 --image registry.example.com/shop:v0.2.0")
        .ok();
    let csv = csv(&folder);
    let (metadata, spec) = (&csv["metadata"], &csv["spec"]);
    assert_eq!(metadata["name"], "shop.v0.2.0");
    assert_eq!(spec["replaces"], "shop.v0.1.0");
    assert_eq!(spec["skips"][0], "shop.v0.1.1");
    assert_eq!(spec["description"], "Cups and more.");
    let owned = &spec["customresourcedefinitions"]["owned"][0];
    assert_eq!(owned["specDescriptors"][0]["displayName"], "The foo");
    assert_eq!(
        metadata["annotations"]["containerImage"],
        "registry.example.com/shop:v0.2.0"
    );
}

const CATALOG: &str = "catalog/shop/catalog.yaml";

/// The documents of a schema in the catalog.
fn documents(folder: &Folder, schema: &str) -> Vec<Value> {
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(&folder.tree()[CATALOG]).expect("YAML");
    documents.retain(|document| document["schema"] == schema);
    documents
}

#[test]
fn a_catalog_keeps_earlier_releases() {
    let folder = project();
    replace(
        &folder,
        CATALOG,
        "- name: shop.v0.1.0\n",
        "- name: shop.v0.1.0\n  skipRange: <0.1.0\n",
    );
    let text = folder.tree()[CATALOG].clone();
    folder.write(
        CATALOG,
        &format!("{text}---\nschema: olm.deprecations\npackage: shop\nentries: []\n"),
    );
    let release = "bundle --version 0.2.0 --image registry.example.com/shop:v0.2.0";
    folder.run(release).ok();
    let check = |channels: Value| {
        let found: Vec<Value> = documents(&folder, "olm.channel")
            .into_iter()
            .map(|channel| serde_json::json!([channel["name"], channel["entries"]]))
            .collect();
        assert_eq!(Value::from(found), channels);
    };
    let first = serde_json::json!({ "name": "shop.v0.1.0", "skipRange": "<0.1.0" });
    let second = serde_json::json!({ "name": "shop.v0.2.0", "replaces": "shop.v0.1.0" });
    check(serde_json::json!([["stable", [second, first]]]));
    assert_eq!(csv(&folder)["spec"]["replaces"], "shop.v0.1.0");
    let images: Vec<Value> = documents(&folder, "olm.bundle")
        .into_iter()
        .map(|bundle| bundle["image"].clone())
        .collect();
    assert_eq!(images, ["shop-bundle:v0.2.0", "shop-bundle:v0.1.0"]);
    assert_eq!(documents(&folder, "olm.deprecations").len(), 1);
    for command in [release, &format!("{release} --check")] {
        let ran = folder.run(command).ok();
        assert!(ran.out.starts_with("unchanged"), "{command}: {}", ran.out);
    }
    // What is skipped is not replaced as well.
    folder.run("bundle --version 0.2.1 --skips 0.2.0").ok();
    assert_eq!(csv(&folder)["spec"]["replaces"], "shop.v0.1.0");
    folder.run(release).ok();
    let third =
        serde_json::json!({ "name": "shop.v0.2.1", "replaces": "shop.v0.1.0", "skips": ["shop.v0.2.0"] });
    check(serde_json::json!([["stable", [third, second, first]]]));
    // A release in another channel replaces nothing there.
    folder.run("bundle --version 0.3.0 --channels beta").ok();
    let other = serde_json::json!({ "name": "shop.v0.3.0" });
    check(serde_json::json!([
        ["beta", [other]],
        ["stable", [third, second, first]]
    ]));
    folder.run(release).ok();
    assert_eq!(csv(&folder)["spec"]["replaces"], "shop.v0.1.0");
}

#[test]
fn a_catalog_that_cannot_be_read_is_left_alone() {
    let folder = project();
    folder.write(CATALOG, "a: [\n");
    let ran = folder.run("bundle --version 0.2.0");
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("expected YAML in catalog/shop/catalog.yaml"),
        "{}",
        ran.err
    );
    assert_eq!(folder.tree()[CATALOG], "a: [\n");
}

#[test]
fn a_manager_in_one_namespace_has_its_permissions_there() {
    let folder = Folder::new();
    folder.run(&format!("{} --namespaced", COMMANDS[0])).ok();
    folder.run(COMMANDS[1]).ok();
    folder.run(BUNDLE).ok();
    let csv = csv(&folder);
    let rules = |key: &str| csv["spec"]["install"]["spec"][key].to_string();
    assert!(rules("permissions").contains("cups/status"), "{csv:#}");
    assert!(!rules("clusterPermissions").contains("cups/status"), "{csv:#}");
    let modes = csv["spec"]["installModes"].to_string();
    assert!(
        modes.contains(r#"{"supported":false,"type":"AllNamespaces"}"#),
        "{modes}"
    );
}

#[test]
fn version_and_icon_are_those_of_the_project() {
    let folder = project();
    replace(
        &folder,
        "Cargo.toml",
        "version = \"0.1.0\"",
        "version = \"1.4.2-rc.1\"",
    );
    folder.write("icon.svg", "<svg/>");
    folder.run("bundle --icon icon.svg").ok();
    let csv = csv(&folder);
    assert_eq!(csv["spec"]["version"], "1.4.2-rc.1");
    assert_eq!(csv["spec"]["icon"][0]["base64data"], "PHN2Zy8+");
}

#[test]
fn what_cannot_be_a_bundle_is_refused() {
    let folder = Folder::new();
    folder.run(COMMANDS[0]).ok();
    for (command, expected) in [
        ("bundle", "the project has no CRD"),
        ("bundle --version 1.2", "expected a version such as `1.2.3`"),
        ("bundle --replaces v1.2.3", "expected a version such as `1.2.3`"),
    ] {
        let ran = folder.run(command);
        assert!(
            ran.code != 0 && ran.err.contains(expected),
            "{command}: {}",
            ran.err
        );
    }
    folder.run(COMMANDS[1]).ok();
    for (command, expected) in [
        ("bundle --icon gone.svg", "gone.svg does not exist"),
        ("bundle --icon Cargo.toml", "expected an SVG image in Cargo.toml"),
    ] {
        let ran = folder.run(command);
        assert!(
            ran.code == 1 && ran.err.contains(expected),
            "{command}: {}",
            ran.err
        );
    }
}

#[test]
fn what_a_bundle_cannot_say_is_a_warning() {
    let folder = project();
    replace(
        &folder,
        "config/webhook/manifests.yaml",
        "  failurePolicy: Fail\n",
        "  failurePolicy: Fail\n  namespaceSelector: {}\n",
    );
    let list = folder.tree()["config/rbac/kustomization.yaml"].clone();
    folder.write("config/rbac/kustomization.yaml", &format!("{list}- quota.yaml\n"));
    folder.write(
        "config/rbac/quota.yaml",
        "apiVersion: v1\nkind: ResourceQuota\nmetadata:\n  name: quota\n",
    );
    let ran = folder.run(&format!("{BUNDLE} --manifests=false")).ok();
    for expected in [
        "`namespaceSelector` of webhook `mcup-v1.kb.io`",
        "ResourceQuota `shop-quota` is not part",
    ] {
        assert!(ran.err.contains(expected), "{}", ran.err);
    }
}

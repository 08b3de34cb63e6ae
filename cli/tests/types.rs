//! `rbuilder types` converts a CRD to Rust, and `rbuilder manifests` converts it back.

use crate::support;

use support::Folder;

const CRD: &str = r#"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgets.shop.example.com
spec:
  group: shop.example.com
  names:
    kind: Gadget
    listKind: GadgetList
    plural: gadgets
    shortNames:
    - gg
    singular: gadget
  scope: Namespaced
  versions:
  - additionalPrinterColumns:
    - jsonPath: .spec.size
      name: Size
      type: integer
    name: v1
    schema:
      openAPIV3Schema:
        description: A gadget.
        properties:
          apiVersion:
            type: string
          kind:
            type: string
          metadata:
            type: object
          spec:
            description: GadgetSpec defines the desired state.
            properties:
              mode:
                default: fast
                description: The mode.
                enum:
                - fast
                - slow
                type: string
              selector:
                description: Which pods.
                properties:
                  podCIDRs:
                    items:
                      type: string
                    maxItems: 3
                    type: array
                    x-kubernetes-list-type: set
                  type:
                    minLength: 1
                    type: string
                required:
                - type
                type: object
                x-kubernetes-validations:
                - message: not "x"
                  rule: self.type != 'x'
              size:
                format: int32
                maximum: 9
                type: integer
            required:
            - size
            type: object
        type: object
    served: true
    storage: true
"#;

const MANIFEST: &str = r#"[package]
name = "shop"
version = "0.1.0"
edition = "2024"

[dependencies]
k8s-openapi = { version = "0.29", features = ["v1_37"] }
kube = "5"
rbuilder = { package = "rbuilder-runtime", version = "0.1" }
serde = "1"
serde_json = "1"
"#;

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("crds/gadgets.yaml", CRD);
    folder.write("crds/readme.yaml", "a: [");
    folder.write(
        "crds/chart.yaml",
        "kind: CustomResourceDefinition\n{{ if .Values.crds }}\n",
    );
    folder.write("Cargo.toml", MANIFEST);
    folder.write("src/lib.rs", "pub mod api;\n");
    folder
}

#[test]
fn types_form_one_module_tree() {
    let folder = folder();
    let ran = folder.run("types crds").ok();
    assert!(
        ran.err.contains("warning: skipping crds/chart.yaml: "),
        "{}",
        ran.err
    );
    assert!(!ran.err.contains("readme"), "{}", ran.err);
    let tree = folder.tree();
    support::golden("types/gadget.rs", &tree["src/api/v1/gadget.rs"]);
    assert!(tree["src/api/mod.rs"].ends_with("\n\npub mod v1;\n"));
    assert!(tree["src/api/v1/mod.rs"].ends_with("\n\npub mod gadget;\n"));
    let again = folder.run("types crds/gadgets.yaml").ok();
    assert!(again.out.starts_with("unchanged"), "{}", again.out);
    // A second CRD is added to the existing modules, and whatever else they contain is kept.
    folder.write(
        "src/api/v1/mod.rs",
        "//! Mine.\n\npub mod gadget;\n\npub const MINE: u8 = 1;\n",
    );
    folder.write(
        "widgets.yaml",
        &CRD.replace("gadget", "widget")
            .replace("Gadget", "Widget")
            .replace("- gg", "- ww"),
    );
    folder.run("types widgets.yaml").ok();
    assert_eq!(
        folder.tree()["src/api/v1/mod.rs"],
        "//! Mine.\n\npub mod gadget;\npub mod widget;\n\npub const MINE: u8 = 1;\n"
    );
}

#[test]
fn types_round_trip_to_the_crd() {
    let folder = folder();
    folder.run("types crds/gadgets.yaml").ok();
    folder.run("manifests --only crd --no-version-annotation").ok();
    let made = &folder.tree()["config/crd/bases/shop.example.com_gadgets.yaml"];
    let value = |text: &str| -> serde_json::Value {
        let mut value: serde_json::Value = serde_saphyr::from_str(text).expect("YAML");
        let root = &mut value["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        for name in ["apiVersion", "kind"] {
            root[name]
                .as_object_mut()
                .expect("a schema")
                .remove("description");
        }
        value
    };
    assert_eq!(value(made), value(CRD));
}

#[test]
fn user_edits_are_kept() {
    let folder = folder();
    folder.run("types crds/gadgets.yaml").ok();
    folder.write("src/api/v1/gadget.rs", "// mine\n");
    let before = folder.tree();
    let ran = folder.run("types crds/gadgets.yaml");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("src/api/v1/gadget.rs"), "{}", ran.err);
    assert_eq!(folder.tree(), before);
    folder.run("types crds/gadgets.yaml --force").ok();
    assert_ne!(folder.tree(), before);
}

#[test]
fn types_can_be_printed() {
    let folder = folder();
    let before = folder.tree();
    let ran = folder.run("types crds/gadgets.yaml --stdout").ok();
    assert!(
        ran.out.starts_with("//! The Gadget API in version v1"),
        "{}",
        ran.out
    );
    let ran = folder.run("types crds/gadgets.yaml --stdout --output json").ok();
    let answer: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(answer["files"][0]["path"], "v1/gadget.rs");
    assert_eq!(folder.tree(), before);
}

/// Projects check the license header of all their files.
#[test]
fn types_have_the_license_header() {
    let folder = folder();
    folder
        .run("init --domain example.com --project-name shop --owner Shopkeepers --license mit --force")
        .ok();
    folder.run("types crds/gadgets.yaml --into src/made").ok();
    let tree = folder.tree();
    let header = "// Copyright Shopkeepers\n// SPDX-License-Identifier: MIT\n\n//! ";
    for path in ["src/made/v1/gadget.rs", "src/made/v1/mod.rs", "src/made/mod.rs"] {
        assert!(tree[path].starts_with(header), "{}", tree[path]);
    }
    let printed = folder.run("types crds/gadgets.yaml --stdout").ok().out;
    assert_eq!(printed, tree["src/made/v1/gadget.rs"]);
    folder.run("types crds/gadgets.yaml --into src/made").ok();
    assert_eq!(folder.tree(), tree);
}

/// What remains to be done depends on what exists already.
#[test]
fn next_steps_list_remaining_work() {
    let folder = folder();
    let next = |line: &str| {
        let ran = folder.run(line).ok();
        let (_, next) = ran.err.split_once("Next: ").unwrap_or(("", &ran.err));
        next.to_owned()
    };
    let said = next("types crds/gadgets.yaml --into src/made");
    assert!(
        said.starts_with("declare `pub mod made;` beside src/made, then run:\n  cargo check\n`rbuilder manifests` generates their CRDs as well;"),
        "{said}"
    );
    folder.write("src/lib.rs", "pub mod again;\n");
    let manifest = folder.tree()["Cargo.toml"].clone();
    folder.write(
        "Cargo.toml",
        &format!("{manifest}\n[package.metadata.rbuilder]\nonly = []\n"),
    );
    let said = next("types crds/gadgets.yaml --into src/again");
    assert!(
        said.starts_with("run:\n  cargo check\nTo generate their CRDs as well, add the kinds to `only`"),
        "{said}"
    );
}

#[test]
fn rejects_invalid_input() {
    let folder = folder();
    folder.write("beta.yaml", &CRD.replace("k8s.io/v1", "k8s.io/v1alpha1"));
    folder.write("config.yaml", "kind: ConfigMap\n");
    let before = folder.tree();
    for (command, expected) in [
        ("types crds/chart.yaml", "cannot parse crds/chart.yaml:2:1: "),
        ("types none.yaml", "error: none.yaml does not exist\n"),
        ("types config.yaml", "no CustomResourceDefinition in config.yaml"),
        ("types beta.yaml", "found `apiextensions.k8s.io/v1alpha1`"),
        ("types crds/gadgets.yaml --into ../elsewhere", "../elsewhere"),
        (
            "types crds/gadgets.yaml crds/gadgets.yaml",
            "duplicate definition of the kind `Gadget`",
        ),
    ] {
        let ran = folder.run(command);
        assert_eq!(ran.code, 1, "{command}: {}", ran.err);
        assert!(
            ran.err.starts_with("error: ") && ran.err.contains(expected),
            "{command}: {}",
            ran.err
        );
        assert_eq!(folder.tree(), before, "{command}");
    }
}

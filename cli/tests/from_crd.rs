//! `rbuilder create api --from-crd`: a kind with all versions of its CRD.

use crate::support;

use support::Folder;

const INIT: &str = "init --domain example.com --project-name shop";
const CREATE: &str = "create api --from-crd gadgets.yaml";

/// The second version is stored. Both versions have types with the same names.
const CRD: &str = r#"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgets.tools.example.com
spec:
  group: tools.example.com
  names:
    categories:
    - all
    kind: Gadget
    listKind: GadgetList
    plural: gadgets
    shortNames:
    - gg
    singular: gadget
  scope: Namespaced
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          apiVersion:
            type: string
          kind:
            type: string
          metadata:
            type: object
          spec:
            properties:
              backend:
                properties:
                  host:
                    pattern: ^[a-z]{3}\.[a-z]+$
                    type: string
                type: object
            type: object
        type: object
    served: true
    storage: false
  - name: v2
    schema:
      openAPIV3Schema:
        properties:
          apiVersion:
            type: string
          kind:
            type: string
          metadata:
            type: object
          spec:
            properties:
              backend:
                oneOf:
                - required:
                  - host
                - required:
                  - url
                properties:
                  host:
                    pattern: ^[a-z]{3}\.[a-z]+$
                    type: string
                  ports:
                    items:
                      maximum: 65535
                      minimum: 1024
                      type: integer
                    minItems: 2
                    type: array
                    x-kubernetes-list-type: set
                  url:
                    format: uri
                    type: string
                required:
                - ports
                type: object
              mode:
                enum:
                - fast
                - slow
                type: string
              size:
                format: int32
                type: integer
            required:
            - backend
            - mode
            type: object
          status:
            properties:
              ready:
                type: boolean
            type: object
        type: object
    served: true
    storage: true
    subresources:
      status: {}
"#;

fn project() -> Folder {
    let folder = Folder::new();
    folder.write("gadgets.yaml", CRD);
    folder.run(INIT).ok();
    folder
}

fn widget() -> String {
    let text = CRD.replace("gadget", "widget").replace("Gadget", "Widget");
    text.replace("- gg", "- ww")
}

#[test]
fn scaffolds_every_version() {
    let folder = project();
    let ran = folder.run(CREATE).ok();
    // We get a warning because the versions differ and the CRD has no conversion.
    let warnings: Vec<&str> = ran
        .err
        .lines()
        .filter(|line| line.starts_with("warning"))
        .collect();
    assert_eq!(
        warnings,
        [
            "warning[RB0503]: only version `v2` of `Gadget` has `.status`: who writes an object as `v1` removes the field, because nothing converts it"
        ]
    );
    let tree = folder.tree();
    for (path, parts) in [
        (
            "PROJECT",
            &["    crdVersion: v1\n    imported: true\n    namespaced: true\n  controller: true\n"][..],
        ),
        (
            "src/api/v2/gadget.rs",
            &["    shortname = \"gg\",\n", "pub struct Backend {"],
        ),
        ("src/api/v1/gadget.rs", &["    storage = false\n"]),
        (
            "src/api/v2/mod.rs",
            &["pub mod gadget;\n\npub use gadget::Gadget;\n"],
        ),
        ("src/controller/gadget.rs", &["use crate::api::v2::Gadget;"]),
        ("tests/gadget.rs", &["the_sample_is_reconciled_on_a_fake_server"]),
        ("tests/gadget_v1.rs", &["the_sample_deserializes"]),
        (
            "config/samples/kustomization.yaml",
            &["tools_v1_gadget.yaml", "tools_v2_gadget.yaml"],
        ),
    ] {
        for part in parts {
            assert!(tree[path].contains(part), "{part} in {path}:\n{}", tree[path]);
        }
    }
    assert_eq!(
        tree["config/samples/tools_v2_gadget.yaml"],
        "apiVersion: tools.example.com/v2\nkind: Gadget\nmetadata:\n  labels:\n    app.kubernetes.io/managed-by: kustomize\n    \
         app.kubernetes.io/name: shop\n  name: gadget-sample\nspec:\n  backend:\n    host: aaa.a\n    ports:\n    - 1024\n    - 1025\n  \
         mode: fast\n"
    );
    let value = |text: &str| -> serde_json::Value { serde_saphyr::from_str(text).expect("YAML") };
    let made = value(&tree["config/crd/bases/tools.example.com_gadgets.yaml"]);
    let given = value(CRD);
    assert_eq!(made["spec"]["names"], given["spec"]["names"]);
    for at in 0..2 {
        let spec = |crd: &serde_json::Value| {
            crd["spec"]["versions"][at]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone()
        };
        assert_eq!(spec(&made), spec(&given));
    }
}

#[test]
fn second_run_changes_nothing_and_keeps_edits() {
    let folder = project();
    folder.run(CREATE).ok();
    let ran = folder.run(CREATE).ok();
    assert!(ran.out.starts_with("unchanged"), "{}", ran.out);
    let ran = folder.run("update").ok();
    assert!(ran.out.starts_with("unchanged"), "{}", ran.out);
    // As long as the CRD stays the same, edits are kept.
    let controller = format!("{}// mine\n", folder.tree()["src/controller/gadget.rs"]);
    folder.write("src/controller/gadget.rs", &controller);
    let ran = folder.run(CREATE).ok();
    assert!(ran.out.starts_with("unchanged"), "{}", ran.out);
    // If the CRD changes, the types would be overwritten.
    folder.write("gadgets.yaml", &CRD.replace("- slow", "- steady"));
    let before = folder.tree();
    let ran = folder.run(CREATE);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("\n  src/api/v2/gadget.rs\n"), "{}", ran.err);
    assert_eq!(folder.tree(), before);
    folder.run(&format!("{CREATE} --controller=false --force")).ok();
    let tree = folder.tree();
    assert!(tree["src/api/v2/gadget.rs"].contains("Steady"));
    assert_eq!(tree["src/controller/gadget.rs"], controller);
}

#[test]
fn adds_and_deletes_further_versions_and_kinds() {
    let folder = project();
    let empty = folder.tree();
    folder.run(CREATE).ok();
    folder.write("widgets.yaml", &widget());
    folder.run("create api --from-crd widgets.yaml").ok();
    let tree = folder.tree();
    assert!(
        tree["src/api/v2/mod.rs"].ends_with(
            "pub mod gadget;\npub mod widget;\n\npub use gadget::Gadget;\npub use widget::Widget;\n"
        )
    );
    // The new version is a copy of the newest one.
    folder
        .run("create api --group tools --version v3 --kind Gadget")
        .ok();
    let tree = folder.tree();
    assert!(
        tree["src/api/v3/gadget.rs"].contains("    storage = false,\n"),
        "{}",
        tree["src/api/v3/gadget.rs"]
    );
    assert!(tree["src/api/v3/mod.rs"].ends_with("pub mod gadget;\n\npub use gadget::Gadget;\n"));
    let ran = folder.run("update").ok();
    assert!(ran.out.starts_with("unchanged"), "{}", ran.out);
    for (version, kind) in [
        ("v3", "Gadget"),
        ("v1", "Gadget"),
        ("v2", "Gadget"),
        ("v1", "Widget"),
        ("v2", "Widget"),
    ] {
        folder
            .run(&format!(
                "delete api --group tools --version {version} --kind {kind}"
            ))
            .ok();
    }
    let mut left = folder.tree();
    left.remove("widgets.yaml");
    assert_eq!(left, empty);
}

#[test]
fn several_crds_need_a_kind() {
    let folder = project();
    folder.write(
        "both.yaml",
        &format!("---\n{CRD}---\nkind: ConfigMap\n---\n{}", widget()),
    );
    let before = folder.tree();
    for (flags, expected) in [
        (
            "",
            "both.yaml has several CRDs: pass one of the kinds `Gadget`, `Widget` with `--kind`",
        ),
        (
            "--kind Cup",
            "both.yaml has no CRD of the kind `Cup`: it has `Gadget`, `Widget`",
        ),
    ] {
        let ran = folder.run(&format!("create api --from-crd both.yaml {flags}"));
        assert_eq!(ran.code, 1);
        assert!(ran.err.contains(expected), "{}", ran.err);
        assert_eq!(folder.tree(), before);
    }
    folder.run("create api --from-crd both.yaml --kind Widget").ok();
    assert!(folder.tree().contains_key("src/api/v1/widget.rs"));
}

#[test]
fn rejects_flags_that_contradict_the_crd() {
    let folder = project();
    folder.write("other.yaml", &CRD.replace("example.com", "example.org"));
    folder.write("none.yaml", "kind: ConfigMap\n");
    folder.write("cluster.yaml", &CRD.replace("Namespaced", "Cluster"));
    let before = folder.tree();
    for (flags, expected) in [
        (
            "gadgets.yaml --group shop",
            "has the group `tools.example.com`, not `shop`: omit `--group`",
        ),
        (
            "gadgets.yaml --version v1",
            "has the versions `v1`, `v2`, and all of them are scaffolded: omit `--version`",
        ),
        (
            "gadgets.yaml --plural gadgetses",
            "has the plural `gadgets`, not `gadgetses`",
        ),
        (
            "gadgets.yaml --namespaced=false",
            "is namespaced: omit `--namespaced`",
        ),
        (
            "cluster.yaml --namespaced",
            "is cluster-scoped: omit `--namespaced`",
        ),
        ("gadgets.yaml --resource=false", "omit `--resource=false`"),
        (
            "other.yaml",
            "not in the domain `example.com` of the project: pass `--domain example.org`",
        ),
        ("none.yaml", "no CustomResourceDefinition in none.yaml"),
        ("absent.yaml", "absent.yaml"),
    ] {
        let ran = folder.run(&format!("create api --from-crd {flags}"));
        assert_eq!(ran.code, 1, "{flags}");
        assert!(ran.err.contains(expected), "{flags}: {}", ran.err);
        assert_eq!(folder.tree(), before);
    }
    for flags in [
        "--from-crd gadgets.yaml --image a",
        "--from-crd gadgets.yaml --external-path a::B",
        "--version v1",
    ] {
        assert_eq!(folder.run(&format!("create api {flags}")).code, 2, "{flags}");
    }
    // Flags may repeat what the CRD says.
    folder.run("create api --from-crd gadgets.yaml --group tools --kind Gadget --plural gadgets --namespaced --controller=false").ok();
    assert!(!folder.tree().contains_key("src/controller/gadget.rs"));
}

/// The webhook in the CRD belongs to the operator in the cluster, until this project has a
/// conversion.
#[test]
fn advises_how_to_scaffold_the_conversion() {
    let folder = project();
    let conversion = "  conversion:\n    strategy: Webhook\n    webhook:\n      clientConfig:\n        service:\n          name: gadgets\n          namespace: tools\n      conversionReviewVersions:\n      - v1\n";
    let text = CRD.replace("  scope:", &format!("{conversion}  scope:"));
    folder.write("gadgets.yaml", &text);
    let ran = folder.run(&format!("{CREATE} --manifests=false")).ok();
    assert!(
        ran.err.contains(
            "run `rbuilder create webhook --group tools --version v2 --kind Gadget --conversion --spoke v1`, and replace"
        ),
        "{}",
        ran.err
    );
}

/// The templates use the kind as the name of the type.
#[test]
fn rejects_kind_whose_type_needs_another_name() {
    let folder = project();
    folder.write("crd.yaml", &widget().replace("Widget", "Serialize"));
    let before = folder.tree();
    let ran = folder.run("create api --from-crd crd.yaml");
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains(
            "kind `Serialize` cannot be scaffolded, because its Rust type has to have another name: generate the types with `rbuilder types`"
        ),
        "{}",
        ran.err
    );
    assert_eq!(folder.tree(), before);
}

#[test]
fn path_is_relative_to_the_current_directory() {
    let folder = project();
    folder.write("crds/gadget.yaml", CRD);
    folder
        .inside("crds")
        .run("create api --from-crd gadget.yaml")
        .ok();
    assert!(folder.tree().contains_key("src/api/v2/gadget.rs"));
}

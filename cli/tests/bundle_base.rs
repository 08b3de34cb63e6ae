//! `rbuilder bundle` with a base of operator-sdk in `config/manifests/bases/`.

use crate::support;

use serde_json::{Value, json};
use support::Folder;

const BASE: &str = "config/manifests/bases/shop.clusterserviceversion.yaml";
const CSV: &str = "bundle/manifests/shop.clusterserviceversion.yaml";

fn project() -> Folder {
    let folder = Folder::new();
    for command in [
        "init --domain example.com --project-name shop --owner Shopkeepers",
        "create api --group cache --version v1 --kind Cup",
    ] {
        folder.run(command).ok();
    }
    folder
}

fn csv(folder: &Folder) -> Value {
    serde_saphyr::from_str(&folder.tree()[CSV]).expect("YAML")
}

/// A base with descriptions, as operator-sdk writes it.
const DESCRIBED: &str = r#"apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  annotations:
    alm-examples: '[]'
    capabilities: Deep Insights
    categories: Database
    containerImage: example.com/of-base:v1
    olm.skipRange: '<0.1.0'
  labels:
    operatorframework.io/arch.arm64: supported
  name: shop.v0.0.0
  namespace: placeholder
spec:
  apiservicedefinitions: {}
  customresourcedefinitions:
    owned:
    - name: cups.cache.example.com
      kind: Cup
      version: v1
      displayName: Cups of a shop
      resources:
      - {kind: Deployment, name: "", version: v1}
      specDescriptors:
      - {path: foo, displayName: The foo, value: 5}
      - {path: gone, displayName: Gone}
      statusDescriptors:
      - {path: 'conditions[0].reason', displayName: Reason}
    required:
    - {name: plates.example.com, version: v1, kind: Plate, displayName: Plates, description: Plates of others.}
  description: Cups and more.
  displayName: The shop
  icon:
  - base64data: ""
    mediatype: ""
  install:
    spec:
      deployments: null
    strategy: ""
  installModes:
  - {supported: false, type: OwnNamespace}
  - {supported: true, type: AllNamespaces}
  keywords: [cup, plate]
  links:
  - {name: Home, url: https://example.com}
  maintainers:
  - {email: shop@example.com, name: Shop}
  minKubeVersion: 1.31.0
  provider: {name: Example}
  relatedImages:
  - {name: plate, image: 'example.com/plate:v1'}
  replaces: shop.v0.0.9
  version: 0.0.0
"#;

#[test]
fn base_describes_the_operator() {
    let folder = project();
    folder.write(BASE, DESCRIBED);
    let command = "bundle --image example.com/shop:v0.1.0";
    let ran = folder.run(command).ok();
    let next = format!("Next: describe the operator in {BASE}, then run:");
    assert!(
        ran.out.contains(&next) || ran.err.contains(&next),
        "{}{}",
        ran.out,
        ran.err
    );
    let csv = csv(&folder);
    for (pointer, expected) in [
        ("/metadata/name", json!("shop.v0.1.0")),
        (
            "/metadata/labels",
            json!({ "operatorframework.io/arch.arm64": "supported" }),
        ),
        ("/metadata/annotations/capabilities", json!("Deep Insights")),
        ("/metadata/annotations/categories", json!("Database")),
        (
            "/metadata/annotations/containerImage",
            json!("example.com/shop:v0.1.0"),
        ),
        ("/metadata/annotations/olm.skipRange", json!("<0.1.0")),
        ("/spec/description", json!("Cups and more.")),
        ("/spec/displayName", json!("The shop")),
        (
            "/spec/installModes/0",
            json!({ "supported": false, "type": "OwnNamespace" }),
        ),
        ("/spec/keywords", json!(["cup", "plate"])),
        ("/spec/links/0/name", json!("Home")),
        ("/spec/maintainers/0/name", json!("Shop")),
        ("/spec/minKubeVersion", json!("1.31.0")),
        ("/spec/provider/name", json!("Example")),
        ("/spec/icon/0/mediatype", json!("image/svg+xml")),
        ("/spec/install/strategy", json!("deployment")),
        ("/spec/relatedImages/1/name", json!("plate")),
        ("/spec/replaces", Value::Null),
        ("/spec/version", json!("0.1.0")),
        ("/spec/apiservicedefinitions", Value::Null),
        ("/spec/customresourcedefinitions/required/0/kind", json!("Plate")),
        (
            "/spec/customresourcedefinitions/owned/0/displayName",
            json!("Cups of a shop"),
        ),
        (
            "/spec/customresourcedefinitions/owned/0/resources/0/kind",
            json!("Deployment"),
        ),
        (
            "/spec/customresourcedefinitions/owned/0/specDescriptors",
            json!([
                { "path": "foo", "displayName": "The foo", "value": 5,
                  "description": "foo is an example field; replace it.",
                  "x-descriptors": ["urn:alm:descriptor:com.tectonic.ui:text"] },
            ]),
        ),
        (
            "/spec/customresourcedefinitions/owned/0/statusDescriptors/1/displayName",
            json!("Reason"),
        ),
    ] {
        assert_eq!(
            csv.pointer(pointer).unwrap_or(&Value::Null),
            &expected,
            "{pointer}"
        );
    }
    let catalog = &folder.tree()["catalog/shop/catalog.yaml"];
    assert!(catalog.contains("skipRange: <0.1.0"), "{catalog}");
    folder.check_unchanged(command);
}

#[test]
fn source_overrides_base() {
    let folder = project();
    folder.write(BASE, DESCRIBED);
    folder.replace(
        "src/api/v1/cup.rs",
        "    pub foo:",
        "    #[csv(display_name = \"Foo of the source\")]\n    pub foo:",
    );
    folder.run("bundle").ok();
    let csv = csv(&folder);
    let foo = &csv["spec"]["customresourcedefinitions"]["owned"][0]["specDescriptors"][0];
    assert_eq!(foo["displayName"], "Foo of the source");
    assert_eq!(foo["value"], 5);
}

#[test]
fn flags_override_base() {
    let folder = project();
    folder.write(BASE, &DESCRIBED.replace("base64data: \"\"", "base64data: YQ=="));
    folder.run("bundle --skip-range <0.0.5").ok();
    let described = csv(&folder);
    assert_eq!(described["metadata"]["annotations"]["olm.skipRange"], "<0.0.5");
    assert_eq!(described["spec"]["icon"][0]["base64data"], "YQ==");
    folder.write("icon.svg", "<svg/>");
    folder.run("bundle --icon icon.svg").ok();
    assert_eq!(csv(&folder)["spec"]["icon"][0]["base64data"], "PHN2Zy8+");
}

/// If there is a conversion webhook, the lifecycle manager only accepts the install mode for all
/// namespaces.
#[test]
fn conversion_determines_install_modes() {
    let folder = project();
    for command in [
        "create api --group cache --version v2 --kind Cup --controller=false",
        "create webhook --group cache --version v1 --kind Cup --conversion --spoke v2",
    ] {
        folder.run(command).ok();
    }
    let other = DESCRIBED.replace(
        "{supported: false, type: OwnNamespace}",
        "{supported: true, type: OwnNamespace}",
    );
    folder.write(BASE, &other);
    folder.run("bundle").ok();
    let modes = &csv(&folder)["spec"]["installModes"];
    let supported: Vec<&Value> = modes
        .as_array()
        .expect("a list")
        .iter()
        .filter(|mode| mode["supported"] == true)
        .map(|mode| &mode["type"])
        .collect();
    assert_eq!(supported, ["AllNamespaces"], "{modes}");
}

#[test]
fn errors_in_the_base_are_reported() {
    for (from, to, expected) in [
        (
            "keywords: [cup, plate]",
            "keywords: cup",
            "error: expected a list for `spec.keywords` of config/manifests/bases/shop.clusterserviceversion.yaml, found `\"cup\"`",
        ),
        (
            "kind: ClusterServiceVersion",
            "kind: Other",
            "error: expected a ClusterServiceVersion in config/manifests/bases/shop.clusterserviceversion.yaml, found `Other`",
        ),
        (
            "  version: 0.0.0\n",
            "---\nkind: Other\n",
            "error: expected one YAML document in config/manifests/bases/shop.clusterserviceversion.yaml, found 2",
        ),
        (
            "keywords: [cup, plate]",
            "keywords: [",
            "error: cannot parse config/manifests/bases/shop.clusterserviceversion.yaml:",
        ),
        (
            "olm.skipRange: '<0.1.0'",
            "olm.skipRange: old",
            "error: expected a range such as `>=0.1.0 <0.3.0` as the annotation `olm.skipRange` in config/manifests/bases/shop.clusterserviceversion.yaml, found `old`",
        ),
        (
            "minKubeVersion: 1.31.0",
            "minKubeVersion: '1.31'",
            "error: expected a version such as `1.29.0` for `spec.minKubeVersion` of config/manifests/bases/shop.clusterserviceversion.yaml, found `1.31`",
        ),
        (
            "kind: Plate, ",
            "",
            "error: expected `kind` in `spec.customresourcedefinitions.required[0]` of config/manifests/bases/shop.clusterserviceversion.yaml, found nothing",
        ),
        (
            "- name: cups.cache.example.com",
            "- null\n    - name: cups.cache.example.com",
            "error: expected `name` in `spec.customresourcedefinitions.owned[0]` of config/manifests/bases/shop.clusterserviceversion.yaml, found nothing",
        ),
    ] {
        let folder = project();
        folder.write(BASE, &DESCRIBED.replace(from, to));
        let before = folder.tree();
        let ran = folder.run("bundle");
        assert!(ran.code == 1 && ran.err.contains(expected), "{from}: {}", ran.err);
        assert_eq!(folder.tree(), before, "{from}");
    }
    let folder = project();
    folder.write(BASE, &DESCRIBED.replace("name: cups.cache", "name: mugs.cache"));
    let ran = folder.run("bundle").ok();
    let expected = "no CRD `mugs.cache.example.com` is served in version `v1`";
    assert!(ran.err.contains(expected), "{}", ran.err);
}

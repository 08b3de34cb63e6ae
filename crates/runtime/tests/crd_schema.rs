//! Tests `derive(CrdSchema)` in combination with kube's `CustomResource`, based on the result of
//! `Kind::crd()`.
#![allow(
    missing_docs,
    reason = "a field without a comment is a case: it gets no description"
)]

use std::collections::{BTreeMap, HashSet};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{CustomResource, CustomResourceExt};
use rbuilder::CrdSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The compiler resolves type aliases before we build the schema.
type Maybe<T> = Option<T>;

/// The spec.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Rich",
    namespaced,
    status = "RichStatus"
)]
#[kube(validation = "self.metadata.name != 'bad'")]
#[serde(rename_all = "camelCase")]
pub struct RichSpec {
    /// Number of replicas.
    #[kube(validation(minimum = 1, maximum = 5), default = 1)]
    pub size_wanted: i32,
    pub small: u8,
    pub maybe: Maybe<String>,
    #[kube(list_type = "map", list_map_keys = ["name"], validation(max_items = 16))]
    #[serde(default)]
    pub items: Vec<Item>,
    pub shared: Option<Box<Item>>,
    #[kube(values(validation(max_length = 9)))]
    pub labels: BTreeMap<String, String>,
    pub ports: BTreeMap<u16, bool>,
    pub per_mode: BTreeMap<Mode, u32>,
    pub tags: HashSet<String>,
    pub pair: [i64; 2],
    pub source: Source,
    pub memory: Option<Quantity>,
    pub port: IntOrString,
    pub at: Option<Time>,
    pub raw: Value,
    pub object: serde_json::Map<String, Value>,
    #[serde(flatten)]
    pub tuning: Tuning,
    pub page: Page<Page<i32>>,
}

/// The status.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct RichStatus {
    #[kube(list_type = "map", list_map_keys = ["type"])]
    #[serde(default)]
    pub conditions: Vec<Condition>,
}

/// An item.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Item {
    #[kube(validation(max_length = 63))]
    pub name: String,
}

/// A mode.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    On,
    Off,
}

/// A source.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Source {
    Git { url: String },
    Oci { image: String, mode: Option<Mode> },
}

/// Tuning.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default)]
#[serde(default)]
pub struct Tuning {
    #[kube(default = 4)]
    pub threads: u32,
}

/// A generic type that contains itself with a different argument. This is not recursive.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Page<T> {
    pub entries: Vec<T>,
}

fn schema_of<T: JsonSchema>() -> Value {
    let mut generator = schemars::SchemaGenerator::default();
    T::json_schema(&mut generator).to_value()
}

fn check(property: &str, expected: &Value) {
    let schema = schema_of::<RichSpec>();
    assert_eq!(&schema["properties"][property], expected, "{property}");
}

#[test]
fn every_property_has_the_expected_schema() {
    let item = json!({"type": "object", "description": "An item.", "required": ["name"],
        "properties": {"name": {"type": "string", "maxLength": 63}}});
    let page = |entries: Value| {
        json!({"type": "object", "required": ["entries"],
            "description": "A generic type that contains itself with a different argument. This is not recursive.",
            "properties": {"entries": {"type": "array", "items": entries}}})
    };
    for (property, expected) in [
        (
            "sizeWanted",
            json!({"type": "integer", "format": "int32", "description": "Number of replicas.", "minimum": 1, "maximum": 5, "default": 1}),
        ),
        (
            "small",
            json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 255}),
        ),
        ("maybe", json!({"type": "string"})),
        (
            "items",
            json!({"type": "array", "items": item, "maxItems": 16, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}),
        ),
        ("shared", item.clone()),
        (
            "labels",
            json!({"type": "object", "additionalProperties": {"type": "string", "maxLength": 9}}),
        ),
        (
            "ports",
            json!({"type": "object", "additionalProperties": {"type": "boolean"}}),
        ),
        (
            "perMode",
            json!({"type": "object", "properties": {
                "On": {"type": "integer", "format": "int64", "minimum": 0, "maximum": u32::MAX},
                "Off": {"type": "integer", "format": "int64", "minimum": 0, "maximum": u32::MAX},
            }}),
        ),
        (
            "tags",
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        ),
        (
            "pair",
            json!({"type": "array", "items": {"type": "integer", "format": "int64"}, "minItems": 2, "maxItems": 2}),
        ),
        (
            "source",
            json!({"type": "object", "description": "A source.", "required": ["type"],
            "properties": {
                "type": {"type": "string", "enum": ["git", "oci"]},
                "url": {"type": "string"},
                "image": {"type": "string"},
                "mode": {"type": "string", "enum": ["On", "Off"], "description": "A mode."},
            },
            "oneOf": [
                {"allOf": [{"properties": {"type": {"enum": ["git"]}}, "required": ["url"]}]},
                {"allOf": [{"properties": {"type": {"enum": ["oci"]}}, "required": ["image"]}]},
            ]}),
        ),
        (
            "port",
            json!({"x-kubernetes-int-or-string": true, "nullable": false}),
        ),
        ("at", json!({"type": "string", "format": "date-time"})),
        ("raw", json!({"x-kubernetes-preserve-unknown-fields": true})),
        (
            "object",
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        ),
        (
            "threads",
            json!({"type": "integer", "format": "int64", "minimum": 0, "maximum": u32::MAX, "default": 4}),
        ),
        ("page", page(page(json!({"type": "integer", "format": "int32"})))),
    ] {
        check(property, &expected);
    }
}

#[test]
fn options_and_defaults_are_not_required() {
    let required = schema_of::<RichSpec>()["required"].take();
    let expected = [
        "labels",
        "object",
        "page",
        "pair",
        "perMode",
        "port",
        "ports",
        "raw",
        "sizeWanted",
        "small",
        "source",
        "tags",
    ];
    assert_eq!(required, json!(expected));
}

#[test]
fn kube_embeds_the_schema_in_the_crd() {
    let crd = serde_json::to_value(Rich::crd()).expect("JSON");
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    let spec = &schema["spec"]["properties"];
    assert_eq!(spec["sizeWanted"]["minimum"], json!(1.0));
    assert_eq!(spec["items"]["x-kubernetes-list-map-keys"], json!(["name"]));
    assert_eq!(spec["memory"]["x-kubernetes-int-or-string"], json!(true));
    assert_eq!(spec["raw"]["x-kubernetes-preserve-unknown-fields"], json!(true));
    assert_eq!(
        spec["source"]["properties"]["type"]["enum"],
        json!(["git", "oci"])
    );
    assert_eq!(spec["source"]["oneOf"][0]["allOf"][0]["required"], json!(["url"]));
    let condition = &schema["status"]["properties"]["conditions"];
    assert_eq!(condition["x-kubernetes-list-type"], json!("map"));
    assert_eq!(condition["items"]["properties"]["type"]["maxLength"], json!(316));
    assert!(
        !crd.to_string().contains("x-rbuilder"),
        "the mark of nested schemas is out"
    );
}

/// All four representations of enums.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Shape", namespaced)]
pub struct ShapeSpec {
    pub external: External,
    pub mixed: Mixed,
    pub internal: Source,
    pub adjacent: Adjacent,
    pub untagged: Untagged,
    pub either: Either,
    #[serde(flatten)]
    pub choice: Choice,
    #[kube(validation(maximum = 200))]
    pub small: u8,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub enum External {
    A { x: bool },
    B(Item),
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub enum Mixed {
    Off,
    On(Item),
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(tag = "t", content = "c")]
pub enum Adjacent {
    A(bool),
    B,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(untagged)]
pub enum Untagged {
    A { x: bool },
    B(Item),
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(untagged)]
pub enum Either {
    Number(i32),
    Text(String),
}

/// One of two alternatives. It's flattened into the parent.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[crd(exactly_one_of(left, right))]
pub struct Choice {
    #[kube(immutable)]
    pub left: Option<String>,
    pub right: Option<String>,
}

#[cfg(feature = "envtest")]
mod on_a_server {
    use std::time::Duration;

    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use kube::Api;
    use kube::api::{ApiResource, DynamicObject, PostParams};
    use rbuilder::envtest::{Environment, eventually};

    use super::*;

    /// Returns an object with a valid spec, except for the replaced field.
    fn shape(field: &str, value: Value) -> DynamicObject {
        let mut spec = json!({
            "external": {"A": {"x": true}}, "mixed": "Off", "internal": {"type": "git", "url": "u"},
            "adjacent": {"t": "B"}, "untagged": {"name": "n"}, "either": "text", "left": "l", "small": 1,
        });
        spec[field] = value;
        let resource = ApiResource::erase::<Shape>(&());
        DynamicObject::new("shape", &resource).data(json!({ "spec": spec }))
    }

    #[rbuilder::envtest::test]
    async fn api_server_enforces_the_schema(env: Environment) {
        let crds: Api<CustomResourceDefinition> = Api::all(env.client());
        for crd in [Rich::crd(), Shape::crd()] {
            crds.create(&PostParams::default(), &crd)
                .await
                .expect("the API server takes the CRD");
        }
        let namespace = env.namespace("shapes").await.expect("a namespace");
        let resource = ApiResource::erase::<Shape>(&());
        let shapes: Api<DynamicObject> = Api::namespaced_with(env.client(), &namespace, &resource);
        let dry_run = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let create = async |field: &str, value: Value| shapes.create(&dry_run, &shape(field, value)).await;
        eventually(Duration::from_secs(20), || async {
            create("small", json!(1)).await
        })
        .await;
        for (field, value, accepted) in [
            ("small", json!(200), true),
            ("small", json!(201), false),
            ("small", json!(-1), false),
            ("external", json!({"B": {"name": "n"}}), true),
            ("external", json!({"A": {"x": true}, "B": {"name": "n"}}), false),
            ("external", json!({}), false),
            ("mixed", json!({"On": {"name": "n"}}), true),
            ("mixed", json!("Of"), false),
            ("mixed", json!(""), false),
            ("mixed", json!({"Of": {}}), false),
            ("mixed", json!(1), false),
            ("mixed", json!(true), false),
            ("mixed", json!([]), false),
            ("internal", json!({"type": "oci", "image": "i"}), true),
            ("internal", json!({"type": "oci", "url": "u"}), false),
            ("internal", json!({"type": "svn", "url": "u"}), false),
            ("adjacent", json!({"t": "A", "c": true}), true),
            ("adjacent", json!({"t": "A"}), false),
            ("untagged", json!({"x": false}), true),
            ("untagged", json!({}), false),
            ("either", json!(7), true),
            ("either", json!(true), false),
            ("right", json!("r"), false),
        ] {
            let answer = create(field, value.clone()).await;
            assert_eq!(answer.is_ok(), accepted, "{field} = {value}: {answer:?}");
        }
    }
}

/// Contains itself via another type. The derive macro can only detect direct recursion, so we don't
/// notice this until the schema is built.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Node {
    pub children: Vec<Child>,
}

/// The other type in the cycle.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Child {
    pub node: Node,
}

/// The panic message recommends to do this.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct OpenNode {
    #[kube(schemaless, preserve_unknown_fields)]
    pub children: Vec<OpenNode>,
}

#[test]
fn recursive_type_panics_with_its_path() {
    let panic = std::panic::catch_unwind(schema_of::<Node>).expect_err("a panic");
    let text = panic.downcast_ref::<String>().expect("a string");
    assert!(
        text.contains("contains itself") && text.contains("crd_schema::Node` -> `"),
        "{text}"
    );
    assert_eq!(
        schema_of::<OpenNode>()["properties"]["children"],
        json!({"x-kubernetes-preserve-unknown-fields": true})
    );
    // The panic must not affect other types.
    assert_eq!(schema_of::<Mode>()["enum"], json!(["On", "Off"]));
}

/// `minimum` is used for a string here, but only the compiler knows that.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Hidden {
    #[kube(validation(minimum = 1))]
    pub name: Name,
}

type Name = String;

#[test]
fn error_about_unsuitable_marker_names_the_field() {
    let panic = std::panic::catch_unwind(schema_of::<Hidden>).expect_err("a panic");
    let text = panic.downcast_ref::<String>().expect("a string");
    assert!(
        text.contains("Hidden.name: `minimum` applies to numbers; this value is a string"),
        "{text}"
    );
}

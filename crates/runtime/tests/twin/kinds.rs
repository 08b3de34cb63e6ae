//! The kinds of the twin test, compiled as a module and passed to the generator as text.
//!
//! Every marker, every key of a kind and every representation of a type must appear at least once,
//! which a test checks. Paths start at `self` or `super`, because this file is the root of a
//! library to the generator and a module to the compiler.

pub mod docs;
pub mod filled_in;
pub mod forms;
pub mod kubernetes;
pub mod leaves;
pub mod markers;
pub mod names;
pub mod presence;
pub mod shapes;

use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// A kind with all that kube's keys can say.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "twin.example.com",
    version = "v1beta1",
    kind = "Keyed",
    root = "KeyedObject",
    plural = "keyeds",
    singular = "keyed",
    shortname = "ky",
    shortname = "kyd",
    category = "all",
    category = "twins",
    namespaced,
    doc = "A kind described by its key.",
    status = "KeyedStatus",
    derive = "PartialEq",
    attr = "allow(missing_docs)",
    schema = "derived",
    served = true,
    storage = true,
    deprecated = "use something else",
    selectable = ".spec.size",
    selectable = ".spec.image",
    scale(
        spec_replicas_path = ".spec.size",
        status_replicas_path = ".status.size",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size"),
    printcolumn = r#"{"name": "Image", "type": "string", "jsonPath": ".spec.image", "priority": 1, "description": "What runs"}"#,
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", format = "date-time"),
    annotation("twin.example.com/about", "objects"),
    label("twin.example.com/part", "keys"),
    validation = "self.metadata.name.size() < 40",
    validation = Rule::new("self.metadata.name != 'twin'").message("not that name").reason(Reason::FieldValueForbidden),
    crates(kube_core = "::kube::core")
)]
#[crd(
    annotation("twin.example.com/made-by", "hand"),
    label("twin.example.com/of", "the-definition"),
    title = "Keyed things",
    conversion(strategy = "None"),
    at_least_one_of(image, build)
)]
#[serde(rename_all = "camelCase")]
pub struct KeyedSpec {
    /// Number of items.
    pub size: i32,
    #[kube(validation(max_length = 64))]
    pub image: Option<String>,
    pub build: Option<String>,
}

/// The status of a [`KeyedObject`].
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct KeyedStatus {
    pub size: i32,
    pub selector: Option<String>,
}

/// A kind of the whole cluster, whose fields stand beside `metadata`.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "twin.example.com", version = "v1", kind = "Flat", no_spec)]
pub struct FlatFields {
    /// A word.
    pub word: String,
    #[kube(validation(minimum = 0))]
    pub number: Option<i64>,
}

/// A kind by kube's own plural rule, with a scale in kube's JSON form.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "twin.example.com",
    version = "v1",
    kind = "Policy",
    namespaced,
    status = "names::PolicyStatus",
    scale = r#"{"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}"#,
    deprecated
)]
#[crd(status_subresource = true)]
pub struct PolicySpec {
    pub size: i32,
}

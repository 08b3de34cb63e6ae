//! One of each mistake that only the finished schema shows.

use std::collections::BTreeMap;

use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Marked")]
pub struct MarkedSpec {
    pub since: String,
    pub many: i32,
    #[kube(validation(enum = ["x", "y"]))]
    pub disjoint: Letter,
    #[kube(validation(maximum = 3))]
    pub crossed: Bounded,
    #[kube(validation(maximum = 4))]
    pub inherited: Defaulted,
    #[kube(default = { "name": "a", "extra": 1 })]
    pub pruned: Entry,
    #[kube(default = {})]
    pub missing: Entry,
    #[kube(default = [1, 2, 3], validation(max_items = 2))]
    pub long: Vec<i32>,
    #[kube(example = { "name": 1 })]
    pub sample: Entry,
    #[kube(list_type = "map", list_map_keys = ["nope"])]
    pub keyed: Vec<Entry>,
    #[kube(list_type = "map", list_map_keys = ["maybe"])]
    pub loose: Vec<Entry>,
    #[kube(list_type = "map", list_map_keys = ["inner"])]
    pub nested: Vec<Entry>,
    #[kube(list_type = "set")]
    pub set: Vec<Entry>,
    #[kube(embedded_resource)]
    pub resource: BTreeMap<String, String>,
    #[kube(embedded_resource)]
    pub number: i32,
    #[kube(keys(nullable))]
    pub keys: BTreeMap<String, i32>,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct MarkedStatus {
    pub size: i32,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub enum Letter {
    A,
    B,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(validation(minimum = 5))]
pub struct Bounded(pub i32);

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(default = 5)]
pub struct Defaulted(pub i32);

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Entry {
    pub name: String,
    pub maybe: Option<String>,
    pub inner: Option<Bounded>,
}

/// What keys of the kind say about fields.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Pathed",
    status = "MarkedStatus",
    printcolumn(name = "Since", type_ = "date", json_path = ".spec.since"),
    printcolumn(name = "Since", type_ = "integer", json_path = ".spec.nope"),
    scale(spec_replicas_path = ".spec.since", status_replicas_path = ".status.nope", label_selector_path = ".spec.many"),
    selectable = ".spec.list",
    selectable = ".spec.nope"
)]
pub struct PathedSpec {
    pub since: String,
    pub many: i32,
    pub list: Vec<i32>,
    #[kube(items(nullable), list_type = "set")]
    pub nulls: Vec<Option<String>>,
}

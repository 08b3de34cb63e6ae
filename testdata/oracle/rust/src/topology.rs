//! How server-side apply merges.

use std::collections::BTreeMap;

use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// TopologySpec has each topology on a field, on a type and on both.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1",
    kind = "Topology",
    namespaced,
    doc = "Topology says how server-side apply merges."
)]
#[serde(rename_all = "camelCase")]
pub struct TopologySpec {
    /// AssociativeList is a list that is a map.
    #[kube(list_type = "map", list_map_keys = ["name", "secondary"])]
    pub associative_list: Vec<Associative>,
    #[kube(list_type = "map", list_map_keys = ["name"])]
    pub k8s_associative_list: Vec<Associative>,
    #[kube(list_type = "set")]
    pub k8s_set_list: Vec<String>,
    #[kube(list_type = "atomic")]
    pub k8s_atomic_list: Vec<String>,
    #[kube(list_type = "set")]
    pub set_list: Vec<i64>,
    #[kube(list_type = "atomic")]
    pub atomic_list: Vec<Associative>,
    #[serde(rename = "nestedassociativeList")]
    pub nested_associative_list: AssociativeList,
    pub k8s_nested_associative_list: K8sAssociativeList,
    /// MapOfInfo is merged key by key.
    #[kube(map_type = "granular")]
    pub map_of_info: BTreeMap<String, String>,
    #[kube(map_type = "atomic")]
    pub atomic_map: BTreeMap<String, String>,
    pub nested_map_of_info: NestedMapOfInfo,
    /// StructWithSeveralFields is merged as a whole.
    #[kube(struct_type = "atomic")]
    pub struct_with_several_fields: NestedObject,
    #[kube(struct_type = "granular")]
    pub granular_struct: NestedObject,
    pub nested_struct_with_several_fields: NestedStructWithSeveralFields,
    /// NestedStructWithSeveralFieldsDoubleMarked is marked twice.
    #[kube(struct_type = "atomic")]
    pub nested_struct_with_several_fields_double_marked: NestedStructWithSeveralFields,
}

/// Associative is an item with a name.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Associative {
    /// Name is the first key.
    pub name: String,
    /// Secondary is the second key.
    pub secondary: i32,
    /// Foo is content.
    pub foo: Option<String>,
}

/// AssociativeList is a list that is a map by its type.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(list_type = "map", list_map_keys = ["name"])]
pub struct AssociativeList(pub Vec<Associative>);

/// K8sAssociativeList is the same in the other dialect.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[crd(list_type = "map", list_map_keys = ["name"])]
pub struct K8sAssociativeList(pub Vec<Associative>);

/// NestedMapOfInfo is merged key by key, by its type.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(map_type = "granular")]
pub struct NestedMapOfInfo(pub BTreeMap<String, String>);

/// NestedObject is a struct.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct NestedObject {
    pub foo: String,
    pub bar: bool,
}

/// NestedStructWithSeveralFields is merged as a whole, by its type.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(struct_type = "atomic")]
pub struct NestedStructWithSeveralFields {
    pub foo: String,
    pub bar: bool,
}

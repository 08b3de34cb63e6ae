//! Lists and maps.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::ByteString;
use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// CollectionSpec has lists and maps of every sort.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1",
    kind = "Collection",
    namespaced,
    doc = "Collection has lists and maps."
)]
#[serde(rename_all = "camelCase")]
pub struct CollectionSpec {
    /// Words is a list of words.
    pub words: Vec<String>,
    pub maybe_words: Option<Vec<String>>,
    pub pointer_words: Vec<Box<str>>,
    pub counts: Vec<i64>,
    pub narrow: Vec<i16>,
    /// Objects is a list of structs.
    pub objects: Vec<Entry>,
    pub pointer_objects: Vec<Box<Entry>>,
    pub nested: Vec<Vec<String>>,
    pub nested_objects: Vec<Vec<Entry>>,
    /// Array has a length.
    pub array: [i32; 3],
    pub array_of_objects: [Entry; 2],
    pub labels: BTreeMap<String, String>,
    pub maybe_labels: Option<BTreeMap<String, String>>,
    pub flags: BTreeMap<String, bool>,
    /// ByName has structs by name.
    pub by_name: BTreeMap<String, Entry>,
    pub pointers_by_name: BTreeMap<String, Box<Entry>>,
    #[kube(schema_type = "BTreeMap<String, String>", values(validation(format = "byte")))]
    pub byte_slice_data: BTreeMap<String, ByteString>,
    pub string_slice_data: BTreeMap<String, Vec<String>>,
    pub ptr_data: BTreeMap<String, Box<str>>,
    pub nested_map: BTreeMap<String, BTreeMap<String, String>>,
    pub nested_nested_map: BTreeMap<String, BTreeMap<String, BTreeMap<String, String>>>,
    pub map_of_lists: BTreeMap<String, Vec<Entry>>,
    pub list_of_maps: Vec<BTreeMap<String, i32>>,
    pub map_of_arrays_of_floats: BTreeMap<String, Vec<f64>>,
    /// ByKind has keys of a type of their own.
    pub by_kind: BTreeMap<Kind, String>,
    pub nested_map_in_struct: NestedMap,
    /// Set refuses what is there already.
    pub set: BTreeSet<String>,
    pub named_list: Entries,
    pub named_map: Table,
}

/// Entry is what lists and maps hold.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Entry {
    /// Name of the entry.
    pub name: String,
    pub size: Option<i32>,
}

/// Kind is a word that is a key.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind(pub String);

/// NestedMap holds a map of maps.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct NestedMap {
    /// InnerMap is a map of maps.
    #[serde(default)]
    pub inner_map: BTreeMap<String, BTreeMap<String, String>>,
}

/// Entries is a list with a name.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Entries(pub Vec<Entry>);

/// Table is a map with a name.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Table(pub BTreeMap<String, Entry>);

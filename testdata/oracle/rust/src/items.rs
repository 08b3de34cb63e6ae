//! Every constraint, on the items of lists.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// ItemSpec has every constraint on the items of lists.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1",
    kind = "Item",
    namespaced,
    doc = "Item has every constraint on the items of lists."
)]
#[serde(rename_all = "camelCase")]
pub struct ItemSpec {
    /// Hosts are names.
    #[kube(
        list_type = "set",
        validation(max_items = 8),
        items(validation(min_length = 1, max_length = 253, pattern = "^[a-z0-9.-]+$"))
    )]
    pub hosts: Vec<String>,
    /// HostsAlias are names by their type.
    pub hosts_alias: Hosts,
    #[kube(items(validation(minimum = 1, maximum = 9, multiple_of = 2)))]
    pub numbers: Vec<i64>,
    #[kube(items(validation(minimum = 1, exclusive_minimum, maximum = 9, exclusive_maximum)))]
    pub exclusive: Vec<i32>,
    #[kube(items(validation(enum = ["a", "b"])))]
    pub letters: Vec<String>,
    #[kube(items(validation(format = "ipv4")))]
    pub addresses: Vec<String>,
    #[kube(items(validation(min_items = 1, max_items = 2)))]
    pub lists: Vec<Vec<String>>,
    #[kube(items(validation(min_properties = 1, max_properties = 2)))]
    pub maps: Vec<BTreeMap<String, String>>,
    #[kube(
        validation(max_items = 8),
        items(
            cel(rule = "self.size() > 1", message = "too short"),
            validation(max_length = 8)
        )
    )]
    pub checked: Vec<String>,
    #[kube(items(preserve_unknown_fields))]
    pub loose: Vec<Loose>,
    #[kube(items(embedded_resource, preserve_unknown_fields))]
    pub resources: Vec<RawExtension>,
    #[kube(items(int_or_string, validation(pattern = "^[0-9]+%?$")))]
    pub amounts: Vec<IntOrString>,
    #[kube(items(validation(type = "string")))]
    pub retyped: Vec<Raw>,
}

/// Hosts are names.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    list_type = "set",
    validation(max_items = 8),
    items(validation(min_length = 1, max_length = 253, pattern = "^[a-z0-9.-]+$"))
)]
pub struct Hosts(pub Vec<String>);

/// Loose keeps more than it names.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Loose {
    pub known: String,
}

/// Raw is read and written by hand.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(from = "String", into = "String")]
pub struct Raw {
    pub inner: usize,
}

impl From<String> for Raw {
    fn from(text: String) -> Self {
        Raw { inner: text.len() }
    }
}

impl From<Raw> for String {
    fn from(raw: Raw) -> Self {
        "x".repeat(raw.inner)
    }
}

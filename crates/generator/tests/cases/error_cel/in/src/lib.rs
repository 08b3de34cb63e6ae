use std::collections::BTreeMap;

use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// Every rule here is one that the API server refuses, or may refuse.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Ruled", namespaced)]
#[kube(validation = "self.metadata.nmae.size() < 5")]
#[kube(validation = Rule::new("self.spec.low < self.spec.hihg").message("low is above high"))]
#[serde(rename_all = "camelCase")]
#[crd(
    cel(rule = "self.high >= self.low", field_path = ".lwo"),
    cel(rule = "self.low <= self.high", message_expression = "self.low"),
    cel(rule = "self.first_name != ''"),
    validation = "self.low +",
    validation = "self.low",
    validation = "low < high",
    validation = "self.low < self.firstName",
    validation = "self.names.all(name, name.lenght() < 5)",
    validation = "self.low.startsWith('x')",
    validation = "self.anything.a == 1",
    validation = "self.firstName.matches('(?=x)')",
    validation = "['a', 1].exists(x, x == 'a')",
    validation = "self.names.futureFunction() > 1",
    validation = "self.namespace != ''"
)]
pub struct RuledSpec {
    pub low: i32,
    pub high: i32,
    pub first_name: String,
    pub namespace: Option<String>,
    pub anything: serde_json::Value,
    #[kube(items(cel(rule = "self.matches('^[a-z]+$')")))]
    pub names: Vec<String>,
    #[kube(validation(max_items = 100))]
    pub parts: Vec<Part>,
    #[kube(values(cel(rule = "self == oldSelf")))]
    pub labels: BTreeMap<String, String>,
    #[kube(cel(rule = "self > 0", optional_old_self))]
    pub late: i32,
    #[kube(cel(rule = "self == oldSelf.value()", optional_old_self), cel(rule = "oldSelf > self"))]
    pub fixed: i32,
    #[kube(cel(rule = "self.all(a, self.all(b, a == b))"))]
    pub pairs: Vec<String>,
    #[kube(cel(rule = "self != null"))]
    pub nothing: serde_json::Value,
    pub size: Size,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Part {
    /// Within a list of no type nothing tells which part was which.
    #[kube(cel(rule = "self == oldSelf"))]
    pub name: i32,
    #[kube(immutable)]
    pub fixed: i32,
    #[kube(validation(max_length = 2000), cel(rule = "self.contains(self + self)"))]
    pub text: String,
}

/// A rule of a newtype is reported where it stands: above the struct, or on its field.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[crd(cel(rule = "slef > 0"))]
pub struct Size(#[crd(cel(rule = "self.size() > 0"))] i32);

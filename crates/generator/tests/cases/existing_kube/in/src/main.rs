//! A program on kube and schemars alone, as their users write it.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// Which allocator there is has nothing to do with the API, and cannot be told from here.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
static ALLOCATOR: usize = 0;

/// What is brewed.
#[derive(CustomResource, JsonSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(group = "brewery.example.com", version = "v1", kind = "Brew", namespaced, status = "BrewStatus", schema = "derived")]
#[serde(rename_all = "camelCase")]
pub struct BrewSpec {
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z]+$"))]
    pub style: String,
    #[schemars(range(min = 0, max = u8::MAX))]
    pub bitterness: i32,
    /// Not what the schema says.
    #[schemars(description = "Each addition of hops.", inner(length(min = 2)))]
    #[serde(default)]
    pub hop_additions: Vec<String>,
    #[serde(with = "grams")]
    #[schemars(with = "u32")]
    pub malt: Grams,
    #[schemars(length(max = 4))]
    pub notes: BTreeMap<String, String>,
    #[schemars(length(max = 9))]
    pub label: Label,
    #[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub extra: Option<serde_json::Map<String, serde_json::Value>>,
    #[serde(default)]
    #[schemars(skip)]
    pub internal: Grams,
    pub steps: Vec<Step>,
    pub kettle: Kettle,
}

pub type Label = String;

/// What stands nowhere in the API.
pub struct Grams(u32);

#[derive(KubeSchema, Clone, Debug, Serialize, Deserialize)]
#[x_kube(validation = ("self.minutes > 0", "a step takes time"))]
pub struct Step {
    pub name: String,
    #[x_kube(validation = Rule::new("self < 600").message("too long").reason(Reason::FieldValueInvalid))]
    pub minutes: i32,
    #[x_kube(merge_strategy = ListMerge::Map(vec!["tool".into()]))]
    pub tools: Vec<Tool>,
}

#[derive(JsonSchema, Clone, Debug, Serialize, Deserialize)]
pub struct Tool {
    pub tool: String,
}

#[cfg_attr(feature = "schema", derive(NoSuchDerive))]
#[derive(JsonSchema, Clone, Debug, Serialize, Deserialize)]
#[schemars(title = "Kettle")]
#[serde(rename_all = "lowercase")]
pub enum Kettle {
    Copper,
    #[serde(rename = "inox")]
    Steel,
    #[serde(skip)]
    Broken,
}

#[derive(garde::Validate, JsonSchema, Clone, Debug, Serialize, Deserialize)]
pub struct BrewStatus {
    #[schemars(required)]
    pub phase: Option<String>,
    #[garde(url)]
    pub report: String,
}

// Whatever is wrong with it, nothing of the API refers to it.
#[derive(JsonSchema)]
pub struct Unused {
    #[schemars(schema_with = "anything")]
    pub pair: (u8, u8),
}

fn main() {}

//! The Gadget API in version v1 of the shop.example.com group.

use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// GadgetSpec defines the desired state.
#[derive(CustomResource, CrdSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "shop.example.com",
    version = "v1",
    kind = "Gadget",
    plural = "gadgets",
    shortname = "gg",
    doc = "A gadget.",
    namespaced,
    printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size")
)]
#[crd(optional_spec)]
pub struct GadgetSpec {
    /// The mode.
    #[kube(default = "fast")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Which pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<Selector>,
    #[kube(validation(maximum = 9))]
    pub size: i32,
}

/// The mode.
#[derive(CrdSchema, Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    Fast,
    Slow,
}

/// Which pods.
#[derive(CrdSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[crd(cel(rule = "self.type != 'x'", message = r#"not "x""#))]
pub struct Selector {
    #[kube(validation(max_items = 3), list_type = "set")]
    #[serde(rename = "podCIDRs", default, skip_serializing_if = "Option::is_none")]
    pub pod_cidrs: Option<Vec<String>>,
    #[kube(validation(min_length = 1))]
    pub r#type: String,
}

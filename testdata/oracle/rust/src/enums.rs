//! Values out of a few.

use std::collections::BTreeMap;

use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// EnumSpec has an enum in every place.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1",
    kind = "Enum",
    namespaced,
    doc = "Enum has values out of a few."
)]
#[serde(rename_all = "camelCase")]
pub struct EnumSpec {
    /// ConcurrencyPolicy says what happens to runs that overlap.
    pub concurrency_policy: ConcurrencyPolicy,
    pub maybe_concurrency_policy: Option<ConcurrencyPolicy>,
    /// K8sConcurrencyPolicy has its values from constants.
    pub k8s_concurrency_policy: K8sConcurrencyPolicy,
    /// Policies is a list of them.
    pub policies: Vec<ConcurrencyPolicy>,
    pub policies_by_name: BTreeMap<String, ConcurrencyPolicy>,
    /// Written has its values on the field.
    #[kube(validation(enum = ["A", "B", "C"]))]
    pub written: String,
    /// Quoted has values that need quotes.
    #[kube(validation(enum = ["", "with space", "y", "1"]))]
    pub quoted: String,
    /// Number is one of three.
    #[kube(validation(enum = [1, 2, 4]))]
    pub number: i32,
    /// Narrowed allows fewer than its type.
    #[kube(validation(enum = ["Allow", "Forbid"]))]
    pub narrowed: ConcurrencyPolicy,
    /// EnumSlice has items out of three.
    #[kube(items(validation(enum = [0, 1, 3])))]
    pub enum_slice: Vec<i32>,
    /// Protocol has a default.
    #[kube(default = "TCP")]
    pub protocol: Protocol,
}

/// ConcurrencyPolicy is what happens to runs that overlap.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub enum ConcurrencyPolicy {
    Allow,
    Forbid,
    Replace,
}

/// K8sConcurrencyPolicy has its values from constants.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub enum K8sConcurrencyPolicy {
    /// K8sAllow lets them overlap.
    Allow,
    /// K8sForbid skips the next.
    Forbid,
    /// K8sReplace stops the last.
    Replace,
}

/// Protocol is how to talk.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "UPPERCASE")]
pub enum Protocol {
    Sctp,
    Tcp,
    Udp,
}

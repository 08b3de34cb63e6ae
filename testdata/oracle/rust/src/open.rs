//! Values of no fixed form.

use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// OpenSpec has values of no fixed form.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1",
    kind = "Open",
    namespaced,
    doc = "Open has values of no fixed form."
)]
#[serde(rename_all = "camelCase")]
pub struct OpenSpec {
    /// EmbeddedResource is a whole object.
    #[kube(embedded_resource, preserve_unknown_fields)]
    pub embedded_resource: RawExtension,
    #[crd(embedded_resource, preserve_unknown_fields)]
    pub x_embedded_resource: RawExtension,
    /// UnprunedEmbeddedResource keeps what it does not name.
    #[kube(embedded_resource, preserve_unknown_fields)]
    pub unpruned_embedded_resource: Option<RawExtension>,
    /// UnprunedJSON keeps what it does not name.
    #[kube(preserve_unknown_fields)]
    #[serde(rename = "unprunedJSON")]
    pub unpruned_json: NestedObject,
    pub unpruned_from_type: Preserved,
    #[kube(preserve_unknown_fields)]
    pub unpruned_from_type_and_field: Preserved,
    pub raw: RawExtension,
    pub maybe_raw: Option<RawExtension>,
    /// JSON is anything.
    pub json: serde_json::Value,
    pub maybe_json: Option<serde_json::Value>,
    /// Schemaless is not looked at.
    #[kube(schemaless, preserve_unknown_fields)]
    pub schemaless: NestedObject,
    #[kube(schemaless, validation(type = "object"), preserve_unknown_fields)]
    pub schemaless_object: NestedObject,
    /// NoReallySuspend is written by hand.
    pub no_really_suspend: Option<TotallyABool>,
    #[kube(validation(type = "string", max_length = 5))]
    pub retyped: Option<TotallyABool>,
    pub amount: IntOrString,
    pub maybe_amount: Option<IntOrString>,
    #[kube(int_or_string, validation(pattern = "^((100|[0-9]{1,2})%|[0-9]+)$"))]
    pub int_or_string_with_a_pattern: Option<IntOrString>,
    #[kube(validation(enum = [0, 1, "half"]))]
    pub int_or_string_with_enum: Option<IntOrString>,
    #[kube(int_or_string, validation(min_length = 1, max_length = 4))]
    pub int_or_string_with_length: Option<IntOrString>,
    #[kube(items(int_or_string, validation(pattern = "^((100|[0-9]{1,2})%|[0-9]+)$")))]
    pub int_or_string_array_with_a_pattern: Option<Vec<IntOrString>>,
    #[kube(items(validation(enum = [0, 1, "half"])))]
    pub int_or_string_with_enum_slice: Option<Vec<IntOrString>>,
}

/// NestedObject is a struct.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct NestedObject {
    pub foo: String,
    pub bar: bool,
}

/// Preserved keeps what it does not name.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(preserve_unknown_fields)]
#[serde(rename_all = "camelCase")]
pub struct Preserved {
    pub concrete_field: String,
}

/// TotallyABool is a bool in a word.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(from = "String", into = "String")]
pub struct TotallyABool {
    pub value: bool,
}

impl From<String> for TotallyABool {
    fn from(text: String) -> Self {
        TotallyABool {
            value: text == "true",
        }
    }
}

impl From<TotallyABool> for String {
    fn from(it: TotallyABool) -> Self {
        it.value.to_string()
    }
}

//! Defaults, examples, titles and links.

use std::collections::BTreeMap;

use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// ValueSpec has defaults, examples, titles and links.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1",
    kind = "Value",
    namespaced,
    doc = "Value has defaults, examples, titles and links."
)]
#[crd(
    external_docs(url = "https://example.com/values", description = "All about values"),
    title = "A value"
)]
#[serde(rename_all = "camelCase")]
pub struct ValueSpec {
    /// DefaultedString has a default, an example and a title.
    #[kube(default = "forty-two", example = "forty-three", title = "DefaultedString")]
    pub defaulted_string: String,
    #[kube(default = r#"quoted "text""#)]
    pub quoted_default: String,
    #[kube(default = "")]
    pub empty_default: String,
    #[kube(default = "1")]
    pub number_like_default: String,
    #[kube(default = 42)]
    pub defaulted_number: i32,
    #[kube(default = -1, example = -2)]
    pub negative_number: i64,
    #[kube(default = 0.5)]
    pub defaulted_float: f64,
    #[kube(default = true)]
    pub defaulted_true: bool,
    #[kube(default = false)]
    pub defaulted_false: Option<bool>,
    /// DefaultedSlice has a list.
    #[kube(default = ["a", "b"], example = ["a", "b", "c"])]
    pub defaulted_slice: Vec<String>,
    /// DefaultedObject has a list of structs.
    #[kube(
        default = [
            { "nested": { "foo": "baz", "bar": true } },
            { "nested": { "foo": "qux", "bar": false } }
        ],
        example = [{ "nested": { "foo": "a", "bar": true } }]
    )]
    pub defaulted_object: Vec<RootObject>,
    #[kube(default = [])]
    pub defaulted_empty_slice: Vec<String>,
    #[kube(default = {})]
    pub defaulted_empty_map: BTreeMap<String, String>,
    #[kube(default = {})]
    pub defaulted_empty_object: EmptiableObject,
    #[kube(default = { "a b": 1, "c": 2 })]
    pub defaulted_map: BTreeMap<String, i32>,
    #[crd(default = "forty-two")]
    pub kubernetes_defaulted_string: String,
    #[crd(default = ["a", "b"])]
    pub kubernetes_defaulted_slice: Vec<String>,
    #[crd(default = [{ "nested": { "foo": "baz", "bar": true } }])]
    pub kubernetes_defaulted_object: Vec<RootObject>,
    #[crd(default = [])]
    pub kubernetes_defaulted_empty_slice: Vec<String>,
    #[crd(default = {})]
    pub kubernetes_defaulted_empty_map: BTreeMap<String, String>,
    #[crd(default = {})]
    pub kubernetes_defaulted_empty_object: EmptiableObject,
    /// Linked has a page of its own.
    #[kube(external_docs(url = "https://example.com/linked"))]
    pub linked: String,
    /// LinkedAndDescribed has a page, and words about it.
    #[kube(external_docs(url = "https://example.com/linked", description = "More of it"))]
    pub linked_and_described: String,
    pub linked_by_type: LinkedType,
    /// LinkedByBoth has a page in the place of its type's.
    #[kube(external_docs(url = "https://example.com/field"))]
    pub linked_by_both: LinkedType,
    pub titled_by_type: Titled,
    #[kube(title = "By the field")]
    pub titled_by_both: Titled,
}

/// RootObject holds another.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct RootObject {
    pub nested: NestedObject,
}

/// NestedObject is held.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct NestedObject {
    pub foo: String,
    pub bar: bool,
}

/// EmptiableObject may be empty.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct EmptiableObject {
    #[kube(default = "forty-two")]
    pub foo: Option<String>,
}

/// LinkedType has a page.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(external_docs(url = "https://example.com/type", description = "By the type"))]
pub struct LinkedType {
    pub a: i32,
}

/// Titled has a title.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(title = "By the type")]
pub struct Titled(pub String);

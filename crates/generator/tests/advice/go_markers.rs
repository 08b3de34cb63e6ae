//! Fields of types that derive schemars' `JsonSchema`, after applying the advice for Go markers.
//! `../advice.rs` checks that the advice is given and that rbuilder can read the result.
//! `crates/runtime/tests/advice.rs` compiles this file with the current schemars.

#![allow(dead_code, missing_docs, unreachable_pub)]

#[derive(schemars::JsonSchema)]
pub struct Default {
    #[schemars(extend("default" = 5))]
    pub a: i32,
}

#[derive(schemars::JsonSchema)]
pub struct Minimum {
    #[schemars(range(min = 1))]
    pub a: i32,
}

#[derive(schemars::JsonSchema)]
pub struct Maximum {
    #[schemars(range(max = 9))]
    pub a: i32,
}

#[derive(schemars::JsonSchema)]
pub struct MultipleOf {
    #[schemars(extend("multipleOf" = 2))]
    pub a: i32,
}

#[derive(schemars::JsonSchema)]
pub struct MinLength {
    #[schemars(length(min = 1))]
    pub a: String,
}

#[derive(schemars::JsonSchema)]
pub struct MaxItems {
    #[schemars(length(max = 9))]
    pub a: Vec<String>,
}

#[derive(schemars::JsonSchema)]
pub struct Pattern {
    #[schemars(regex(pattern = "^[a-z]$"))]
    pub a: String,
}

#[derive(schemars::JsonSchema)]
pub struct Format {
    #[schemars(extend("format" = "date"))]
    pub a: String,
}

#[derive(schemars::JsonSchema)]
pub struct Enum {
    #[schemars(extend("enum" = ["a", "b"]))]
    pub a: String,
}

#[derive(schemars::JsonSchema)]
pub struct Title {
    #[schemars(title = "Size")]
    pub a: i32,
}

#[derive(schemars::JsonSchema)]
pub struct Example {
    #[schemars(extend("example" = 5))]
    pub a: i32,
}

#[derive(schemars::JsonSchema)]
pub struct Nullable {
    #[schemars(extend("nullable" = true))]
    pub a: Option<i32>,
}

#[derive(schemars::JsonSchema)]
pub struct ListType {
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub a: Vec<String>,
}

#[derive(schemars::JsonSchema)]
pub struct Immutable {
    #[schemars(extend("x-kubernetes-validations" = [{ "rule": "self == oldSelf", "message": "the field is immutable" }]))]
    pub a: i32,
}

#[derive(schemars::JsonSchema)]
pub struct XValidation {
    #[schemars(extend("x-kubernetes-validations" = [{ "rule": "self > 1", "message": "no" }]))]
    pub a: i32,
}

#[derive(schemars::JsonSchema)]
pub struct MaxProperties {
    #[schemars(extend("maxProperties" = 9))]
    pub a: std::collections::BTreeMap<String, String>,
}

#[derive(schemars::JsonSchema)]
pub struct StructType {
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub a: std::collections::BTreeMap<String, String>,
}

#[derive(schemars::JsonSchema)]
pub struct XIntOrString {
    #[schemars(with = "k8s_openapi::apimachinery::pkg::util::intstr::IntOrString")]
    pub a: String,
}

#[derive(schemars::JsonSchema)]
pub struct EmbeddedResource {
    #[schemars(with = "serde_json::Value", extend("type" = "object", "x-kubernetes-embedded-resource" = true, "x-kubernetes-preserve-unknown-fields" = true))]
    pub a: String,
}

#[derive(schemars::JsonSchema)]
pub struct Schemaless {
    #[schemars(with = "serde_json::Value", extend("x-kubernetes-preserve-unknown-fields" = true))]
    pub a: String,
}

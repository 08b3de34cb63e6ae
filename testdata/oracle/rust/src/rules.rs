//! CEL rules.

use std::collections::BTreeMap;

use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// RuleSpec has rules with all their arguments.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1",
    kind = "Rule",
    namespaced,
    doc = "Rule has CEL rules.",
    validation = kube::core::Rule::new("size(self.metadata.name) < 40").message("the name is too long")
)]
#[crd(
    cel(
        rule = "self.low <= self.high",
        message = "low is above high",
        field_path = ".low",
        reason = "FieldValueInvalid"
    ),
    validation = "self.low > -100"
)]
#[serde(rename_all = "camelCase")]
pub struct RuleSpec {
    pub low: i32,
    pub high: i32,
    /// StringWithEvenLength has two rules.
    #[kube(
        cel(rule = "self.size() % 2 == 0", message = "the length must be even"),
        validation = "true"
    )]
    pub string_with_even_length: String,
    /// StringWithEvenLengthAndMessageExpression makes its message.
    #[kube(validation(max_length = 64))]
    #[kube(cel(
        rule = "self.size() % 2 == 0",
        message_expression = "self + ' has an odd length'"
    ))]
    pub string_with_even_length_and_message_expression: Option<String>,
    /// StringWithEvenLengthAndGoodPrefix adds a rule to those of its type.
    #[kube(
        validation(max_length = 20),
        cel(rule = "self.startsWith('good-')", message = "the prefix must be good-")
    )]
    pub string_with_even_length_and_good_prefix: EvenLength,
    /// ForbiddenInt must not be there.
    #[kube(cel(
        rule = "!has(self.forbidden)",
        message = "forbidden must not be set",
        field_path = ".forbidden",
        reason = "FieldValueForbidden"
    ))]
    pub forbidden_int: Forbidding,
    #[kube(cel(rule = "self != 1", reason = "FieldValueRequired"))]
    pub reason_required: i32,
    #[kube(cel(rule = "self != 1", reason = "FieldValueDuplicate"))]
    pub reason_duplicate: i32,
    /// OnlyAllowSettingOnUpdate cannot be set when the object is made.
    #[kube(cel(
        rule = "oldSelf.hasValue() || self == 0",
        optional_old_self = true,
        message = "cannot be set on create"
    ))]
    pub only_allow_setting_on_update: i32,
    #[kube(cel(rule = "self == oldSelf", optional_old_self = false))]
    pub not_optional: i32,
    pub unions: Unions,
    pub ordered: Ordered,
    /// MaybeUnions are unions that may be absent.
    pub maybe_unions: Option<Unions>,
    pub fixed: Fixed,
}

/// EvenLength has an even length.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(cel(rule = "self.size() % 2 == 0", message = "the length must be even"))]
pub struct EvenLength(pub String);

/// Forbidding has a field that must not be set.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Forbidding {
    pub forbidden: Option<i32>,
}

/// Unions has one of each.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    at_most_one_of(foo, bar),
    exactly_one_of(left, right),
    at_least_one_of(here, there),
    at_least_one_of(foo, here)
)]
pub struct Unions {
    pub foo: Option<String>,
    pub bar: Option<String>,
    pub left: Option<String>,
    pub right: Option<String>,
    pub here: Option<String>,
    pub there: Option<String>,
}

/// Ordered has a rule of its own before those of its unions.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    at_least_one_of(a, b, c),
    exactly_one_of(a, b),
    at_most_one_of(b, c),
    cel(rule = "true", message = "first")
)]
pub struct Ordered {
    pub a: Option<i32>,
    pub b: Option<i32>,
    pub c: Option<i32>,
}

/// Fixed has fields that stay as they are.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Fixed {
    /// Required is set once.
    #[kube(immutable)]
    pub required_string: String,
    #[kube(immutable)]
    pub optional_string: Option<String>,
    #[kube(immutable)]
    pub required_struct: FixedPart,
    #[kube(immutable)]
    pub optional_struct: Option<FixedPart>,
    #[kube(immutable)]
    pub required_list: Vec<String>,
    #[kube(immutable)]
    #[serde(default)]
    pub optional_list: Vec<String>,
    #[kube(immutable)]
    pub required_map: BTreeMap<String, String>,
    #[kube(immutable)]
    pub optional_map: Option<BTreeMap<String, String>>,
    /// Free may change.
    pub free: Option<String>,
}

/// FixedPart is a struct.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct FixedPart {
    pub a: i32,
}

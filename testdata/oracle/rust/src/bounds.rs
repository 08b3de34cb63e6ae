//! Every constraint, on fields, on types and on both.

use std::collections::BTreeMap;

use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// BoundSpec has every constraint, on fields and on types.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    group = "oracle.example.com",
    version = "v1",
    kind = "Bound",
    namespaced,
    doc = "Bound has every constraint."
)]
#[serde(rename_all = "camelCase")]
pub struct BoundSpec {
    #[kube(validation(minimum = -2, maximum = 2, multiple_of = 2))]
    pub int_with_validations: isize,
    #[kube(validation(minimum = -2, maximum = 2, multiple_of = 2))]
    pub int32_with_validations: i32,
    #[kube(validation(minimum = -1.5, maximum = 1.5, multiple_of = 0.5))]
    pub float_with_validations: f32,
    #[kube(validation(minimum = -1.5, maximum = 1.5, multiple_of = 0.5))]
    pub float64_with_validations: f64,
    #[kube(validation(minimum = 0, exclusive_minimum = true, maximum = 10, exclusive_maximum))]
    pub exclusive: i32,
    #[kube(validation(minimum = 0, exclusive_minimum = false))]
    pub not_exclusive: i32,
    #[kube(validation(maximum = 1e3))]
    pub exponent: i64,
    #[kube(validation(min_length = 1, max_length = 63, pattern = "^[a-z]{1,3}(,[a-z]+)*$"))]
    pub text: String,
    /// PatternObject is checked by a raw expression.
    #[kube(validation(pattern = r"^$|^((https):\/\/?)[^\s()<>]+(?:\([\w\d]+\)|([^[:punct:]\s]|\/?))$"))]
    pub pattern_object: String,
    #[kube(validation(format = "uuid"))]
    pub formatted: String,
    #[kube(validation(min_items = 1, max_items = 5))]
    pub list: Vec<String>,
    #[kube(validation(min_properties = 1, max_properties = 5))]
    pub map: BTreeMap<String, String>,
    /// MinMaxProperties is bounded by its type.
    pub min_max_properties: MinMaxObject,
    pub percent: Percent,
    pub fraction: Fraction,
    pub short_text: ShortText,
    pub few_words: FewWords,
    pub few_labels: FewLabels,
    /// TwoOfAKindPart0 takes its bound from the type.
    #[serde(rename = "twoOfAKindPart0")]
    pub two_of_a_kind_part0: LongerString,
    /// TwoOfAKindPart1 adds a bound to that of the type.
    #[kube(validation(min_length = 10, max_length = 10))]
    #[serde(rename = "twoOfAKindPart1")]
    pub two_of_a_kind_part1: LongerString,
    /// SameBound says what the type says.
    #[kube(validation(min_length = 4))]
    pub same_bound: LongerString,
    /// LocallyBoundedInteger has a bound on the field, another on the type.
    #[kube(validation(maximum = 50))]
    pub locally_bounded_integer: Percent,
    /// LocallyBoundedString has a pattern beside the type's length.
    #[kube(validation(pattern = "^[a-z]+$"))]
    pub locally_bounded_string: ShortText,
    /// FieldLevelAliasOverride has looser bounds than its type: those of the type hold.
    #[kube(validation(minimum = -10, maximum = 1000))]
    pub field_level_alias_override: Percent,
    /// FieldLevelLocalDeclarationOverride has one looser and one tighter bound.
    #[kube(validation(min_length = 1, max_length = 5))]
    pub field_level_local_declaration_override: ShortText,
    /// TwoPatterns has one of the type and one of its own.
    #[kube(validation(pattern = "z$"))]
    pub two_patterns: Lower,
    /// TwoFactors has one of the type and one of its own.
    #[kube(validation(multiple_of = 3))]
    pub two_factors: Even,
    /// LongerStringArray is a list of bounded texts.
    pub longer_string_array: Vec<LongerString>,
    /// StringPair has two items.
    #[kube(validation(min_items = 2, max_items = 2))]
    pub string_pair: Vec<String>,
    pub percent_by_name: BTreeMap<String, Percent>,
}

/// MinMaxObject has one or two fields.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(validation(min_properties = 1, max_properties = 2))]
pub struct MinMaxObject {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foo: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bar: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baz: Option<String>,
}

/// Percent is a share of a hundred.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(validation(minimum = 0, maximum = 100))]
pub struct Percent(pub i32);

/// Fraction lies between two others.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(validation(
    minimum = 0.25,
    exclusive_minimum,
    maximum = 0.75,
    exclusive_maximum,
    multiple_of = 0.125
))]
pub struct Fraction(pub f64);

/// ShortText is short.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(validation(min_length = 2, max_length = 9))]
pub struct ShortText(pub String);

/// FewWords are few.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(validation(min_items = 1, max_items = 3))]
pub struct FewWords(pub Vec<String>);

/// FewLabels are few.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(validation(min_properties = 1, max_properties = 3))]
pub struct FewLabels(pub BTreeMap<String, String>);

/// LongerString has a least length.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(validation(min_length = 4))]
pub struct LongerString(pub String);

/// Lower is in lower case.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(validation(pattern = "^[a-z]+$"))]
pub struct Lower(pub String);

/// Even is even.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(validation(multiple_of = 2))]
pub struct Even(pub i64);

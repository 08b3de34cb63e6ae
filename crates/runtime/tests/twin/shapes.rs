//! Enums in serde's four representations.

use std::collections::BTreeMap;

use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// Shapes.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "twin.example.com", version = "v1", kind = "Shape", namespaced)]
#[serde(rename_all = "camelCase")]
pub struct ShapeSpec {
    pub plain: Plain,
    /// Whether it may run.
    pub maybe_plain: Option<Plain>,
    #[kube(default = "Off")]
    pub default_plain: Option<Plain>,
    pub single: Single,
    pub external: External,
    pub maybe_external: Option<External>,
    pub only_one: OnlyOne,
    pub mixed: Mixed,
    pub maybe_mixed: Option<Mixed>,
    pub internal: Internal,
    pub internal_units: InternalUnits,
    pub maybe_internal: Option<Internal>,
    pub internal_alternatives: InternalAlternatives,
    pub adjacent: Adjacent,
    pub adjacent_units: AdjacentUnits,
    pub maybe_adjacent: Option<Adjacent>,
    pub untagged: Untagged,
    pub maybe_untagged: Option<Untagged>,
    pub either: Either,
    pub either_number: EitherNumber,
    pub either_text: EitherText,
    pub open: Open,
    pub lists: Vec<External>,
    pub maps: BTreeMap<String, Internal>,
    pub by_plain: BTreeMap<Plain, Untagged>,
    pub nested: Vec<BTreeMap<String, Vec<Adjacent>>>,
    pub generic: Generic<Plain>,
    pub empty: Empty,
    pub boxed_variants: BoxedVariants,
    pub lists_or_maps: ListOrList,
    pub counters: Counters,
    /// Whether each of them runs.
    pub deep_newtype: Outer<Vec<Plain>>,
    pub newtype_of_option: OfOption,
    #[serde(flatten)]
    pub hoisted: Hoisted,
    #[serde(flatten)]
    pub hoisted_maybe: Option<HoistedMaybe>,
    #[serde(flatten)]
    pub hoisted_untagged: Box<HoistedUntagged>,
    #[serde(flatten)]
    pub hoisted_external: HoistedExternal,
}

/// A switch.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plain {
    /// Running.
    On,
    /// Standing.
    Off,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub enum Single {
    Only,
}

/// A struct for variants to carry.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Carried {
    /// The name.
    #[kube(validation(max_length = 10))]
    pub name: String,
    pub note: Option<String>,
}

/// `{"Variant": …}`.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub enum External {
    /// With fields.
    Fields {
        x: bool,
        y: Option<i32>,
    },
    /// With a struct.
    Struct(Carried),
    /// With a number.
    #[kube(validation(maximum = 7))]
    Number(#[kube(validation(minimum = 3))] i32),
    List(Vec<Carried>),
    Maybe(Option<i32>),
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub enum OnlyOne {
    Struct(Carried),
}

/// Names and objects.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub enum Mixed {
    /// Nothing.
    Nothing,
    Neither,
    /// Something.
    Something(Carried),
    Other {
        size: i32,
    },
}

/// `{"kind": "Variant", …}`.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Internal {
    /// From git.
    Git {
        url: String,
        branch: Option<String>,
    },
    /// From a struct.
    Struct(Carried),
    Nothing,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(tag = "mode")]
pub enum InternalUnits {
    Fast,
    Slow,
}

/// A variant with alternatives and rules of its own.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(tag = "sort")]
pub enum InternalAlternatives {
    Choice(Choice),
    External(OneOfTwo),
    Bounded {
        #[kube(validation(minimum = 1, maximum = 9), default = 4)]
        weight: u8,
        #[kube(immutable)]
        fixed: String,
    },
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub enum OneOfTwo {
    Alpha { alpha: i32 },
    Beta { beta: i32 },
}

/// One of two.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[crd(exactly_one_of(left, right))]
pub struct Choice {
    pub left: Option<String>,
    pub right: Option<String>,
}

/// `{"t": "Variant", "c": …}`.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(tag = "t", content = "c")]
pub enum Adjacent {
    Flag(bool),
    Struct(Carried),
    Fields { size: i32 },
    Nothing,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(tag = "t", content = "c")]
pub enum AdjacentUnits {
    First,
    Second,
}

/// No tag: the fields tell.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(untagged)]
pub enum Untagged {
    Wide { width: i32, note: Option<String> },
    High { height: i32 },
    Struct(Carried),
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(untagged)]
pub enum Either {
    Number(i32),
    Text(String),
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(untagged)]
pub enum EitherNumber {
    Small(#[kube(validation(maximum = 5))] i32),
    Large(#[kube(validation(minimum = 50))] i32),
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(untagged)]
pub enum EitherText {
    Known(Plain),
    Custom(#[kube(validation(pattern = "^x-"))] String),
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(untagged)]
#[crd(preserve_unknown_fields)]
pub enum Open {
    Flag(bool),
    Any(serde_json::Value),
}

/// An enum with a parameter.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub enum Generic<T> {
    One(T),
    Many(Vec<T>),
}

/// An enum among its parent's fields.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(tag = "hoist")]
pub enum Hoisted {
    Up { crane: String },
    Down,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(tag = "maybeHoist", content = "hoistContent")]
pub enum HoistedMaybe {
    Load { weight: i32 },
    Empty,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(untagged)]
pub enum HoistedUntagged {
    Rope { rope: i32 },
    Chain { chain: bool },
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub enum HoistedExternal {
    ByHand(Carried),
    ByMotor { volts: f32 },
}

/// No fields at all.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Empty {}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(
    tag = "type",
    content = "value",
    rename_all_fields(serialize = "kebab-case", deserialize = "kebab-case")
)]
pub enum BoxedVariants {
    Boxed(Box<Carried>),
    Maybe(Option<Box<Carried>>),
    Map(BTreeMap<String, Empty>),
    #[serde(rename = "with-fields")]
    Fields {
        #[serde(default)]
        one_two: i32,
        #[serde(flatten)]
        carried: Carried,
        #[kube(validation(max_items = 3), items(validation(minimum = 2)))]
        three_four: Vec<u16>,
    },
    #[serde(other)]
    Other,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(untagged)]
pub enum ListOrList {
    Same(Vec<i32>),
    Again(Vec<i32>),
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(untagged)]
pub enum Counters {
    Whole(i64),
    Part(f32),
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Outer<T>(pub Inner<T>);

/// Described where it is declared.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Inner<T>(pub T);

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct OfOption(pub Option<i32>);

/// Kinds that are not plain structs.
pub mod roots {
    use super::*;

    /// A kind that is one of several.
    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "twin.example.com",
        version = "v2alpha1",
        kind = "Sum",
        status = "Carried"
    )]
    #[serde(rename_all = "camelCase")]
    pub enum SumSpec {
        FirstCase { size: i32 },
        SecondCase(Carried),
    }

    /// A kind that is another struct.
    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(group = "twin.example.com", version = "v1", kind = "Thin", plural = "thins")]
    pub struct ThinSpec(pub Carried);

    /// A kind with the fields of an alternative, and a status, at its root.
    #[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "twin.example.com",
        version = "v1",
        kind = "Open",
        no_spec,
        namespaced,
        status = "super::Internal",
        validation = "!has(self.spare) || self.spare != 'none'"
    )]
    #[crd(at_most_one_of(spare, other))]
    pub struct OpenFields {
        pub spare: Option<String>,
        pub other: Option<super::Plain>,
        pub choice: Choice,
        pub external: External,
    }
}

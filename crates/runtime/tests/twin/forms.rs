//! Representations that serde's attributes choose, and schemas that a marker sets.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::num::NonZero;

use kube::CustomResource;
use rbuilder::CrdSchema;
use serde::{Deserialize, Serialize};

/// Forms.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "twin.example.com", version = "v1", kind = "Form", namespaced)]
#[serde(rename_all = "camelCase")]
pub struct FormSpec {
    pub adjacent_objects: AdjacentObjects,
    pub adjacent_texts: AdjacentTexts,
    pub open_tag: OpenTag,
    pub open_names: OpenNames,
    pub open_mixed: OpenMixed,
    pub partly_tagged: PartlyTagged,
    pub fixed_or_auto: FixedOrAuto,
    pub one_or_named: OneOrNamed,
    pub tagged_struct: TaggedStruct,
    pub held: Held,
    pub seen_through: SeenThrough,
    pub read_from_option: ReadFromOption,
    pub nested_nulls: Vec<Option<BTreeMap<String, Option<i32>>>>,
    pub null_set: BTreeSet<Option<String>>,
    pub by_colour: BTreeMap<Colour, Option<bool>>,
    pub by_boolean: BTreeMap<bool, i32>,
    pub not_zero: NonZero<u16>,
    #[serde(with = "as_text")]
    #[kube(schema = { "type": "string", "title": "A stated text" })]
    pub stated: Unreadable,
    #[serde(default, with = "as_text")]
    #[kube(schema = { "type": "string" }, example = "7")]
    pub stated_maybe: Unreadable,
    pub by_hand: ByHand,
    pub by_hand_as: ByHandAs,
    #[kube(validation(minimum = -(1 << 4), maximum = u8::MAX), default = 2 + 3)]
    pub computed: i32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<i32>,
    #[doc = concat!("Made of ", 2, " parts.")]
    pub joined: bool,
}

/// Structs that fit together.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(tag = "t", content = "c")]
pub enum AdjacentObjects {
    First { x: bool, shared: i32 },
    Second(Ruled),
    Nothing,
    Maybe(Option<Ruled>),
}

/// A struct with rules of its own.
#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(
    validation = "self.low <= self.high",
    cel(
        rule = "self.low >= oldSelf.low",
        field_path = ".low",
        message = "low never falls"
    )
)]
pub struct Ruled {
    pub low: i32,
    pub high: i32,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(tag = "t", content = "c")]
pub enum AdjacentTexts {
    Short(#[kube(validation(max_length = 3))] String),
    Marked(#[kube(validation(pattern = "^x"))] String),
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(tag = "kind")]
pub enum OpenTag {
    /// Values with
    /// an order.
    Known(Ruled),
    /// Anything else.
    #[serde(other)]
    Unknown,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub enum OpenNames {
    /// This one.
    Known,
    #[serde(other)]
    Unknown,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub enum OpenMixed {
    Known {
        size: i32,
    },
    #[serde(other)]
    Unknown,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "lowercase")]
pub enum PartlyTagged {
    Low,
    High,
    #[serde(untagged)]
    Custom(#[kube(validation(pattern = "^x-"))] String),
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub enum FixedOrAuto {
    Auto,
    #[serde(untagged)]
    Fixed(u16),
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(untagged)]
pub enum OneOrNamed {
    Named(Named),
    One { one: i32 },
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub enum Named {
    Left { x: i32 },
    Right { y: i32 },
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(tag = "type", rename = "Small")]
pub struct TaggedStruct {
    pub size: i32,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
pub struct Held(pub Option<i32>);

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(transparent)]
pub struct SeenThrough {
    pub inner: Option<i32>,
    pub nothing: PhantomData<String>,
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[serde(from = "Option<String>", into = "Option<String>")]
pub struct ReadFromOption(Option<String>);

impl From<Option<String>> for ReadFromOption {
    fn from(text: Option<String>) -> Self {
        ReadFromOption(text)
    }
}

impl From<ReadFromOption> for Option<String> {
    fn from(read: ReadFromOption) -> Self {
        read.0
    }
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Colour {
    Red,
    Green,
}

/// A type without a schema.
#[derive(Clone, Debug, Default)]
pub struct Unreadable(String);

mod as_text {
    use super::{Deserialize, Unreadable};

    pub(super) fn serialize<S: serde::Serializer>(value: &Unreadable, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&value.0)
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Unreadable, D::Error> {
        String::deserialize(from).map(Unreadable)
    }
}

/// Writes and reads itself by hand.
#[derive(CrdSchema, Clone, Debug)]
#[crd(schema = { "type": "string", "title": "By hand", "description": "Said by the schema." })]
pub struct ByHand {
    pub inner: Unreadable,
}

impl Serialize for ByHand {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        as_text::serialize(&self.inner, to)
    }
}

impl<'de> Deserialize<'de> for ByHand {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        as_text::deserialize(from).map(|inner| ByHand { inner })
    }
}

/// The same, said by another type.
#[derive(CrdSchema, Clone, Debug)]
#[crd(schema_type = "Vec<String>")]
pub struct ByHandAs {
    pub inner: Unreadable,
}

impl Serialize for ByHandAs {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        [&self.inner.0].serialize(to)
    }
}

impl<'de> Deserialize<'de> for ByHandAs {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        Ok(ByHandAs {
            inner: Unreadable(texts.concat()),
        })
    }
}

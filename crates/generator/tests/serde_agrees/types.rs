//! Types that the test compiles with serde and that the generator reads as source.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
pub(super) enum Colour {
    Red,
    Blue,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Open {
    pub size: i32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Strict {
    pub name: String,
    pub note: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase", deny_unknown_fields)]
pub(super) enum TaggedStrict {
    Bucket { bucket: String },
    Volume { storage_class: Option<String> },
    Nothing,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "type")]
pub(super) enum TaggedOpen {
    Bucket { bucket: String },
    Volume { class: Option<String> },
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "type")]
pub(super) enum TaggedHolder {
    Strict(Strict),
    Open(Open),
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "type")]
pub(super) enum TaggedMap {
    Map(BTreeMap<String, i32>),
    Open(Open),
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "type")]
pub(super) enum TaggedByColour {
    Colours(BTreeMap<Colour, i32>),
    Open(Open),
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "t", content = "c", deny_unknown_fields)]
pub(super) enum AdjacentStrict {
    First { a: i32 },
    Second { b: String },
    Third,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "t", content = "c")]
pub(super) enum AdjacentOther {
    First {
        a: i32,
    },
    #[serde(other)]
    Rest,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "t", content = "c")]
pub(super) enum AdjacentOpen {
    First { a: i32 },
    Second(Open),
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "t", content = "c")]
pub(super) enum AdjacentTypes {
    Number(i32),
    Object(Open),
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "t", content = "c")]
pub(super) enum AdjacentHolder {
    Strict(Strict),
    Open(Open),
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(super) enum UntaggedStrict {
    First { a: i32 },
    Second { b: String, c: Option<bool> },
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum UntaggedOpen {
    First { a: i32 },
    Second { b: String },
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum UntaggedMap {
    Map(BTreeMap<String, i32>),
    Named { name: String },
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum UntaggedOneMap {
    Map(BTreeMap<String, i32>),
    Same(BTreeMap<String, i32>),
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum UntaggedHolder {
    Strict(Strict),
    Open(Open),
}

#[derive(Serialize, Deserialize)]
pub(super) struct OpenWithOption {
    pub size: i32,
    pub colour: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum UntaggedStrictFirst {
    Strict(Strict),
    Open(OpenWithOption),
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum UntaggedScalars {
    Number(i32),
    Text(String),
}

#[derive(Serialize, Deserialize)]
pub(super) struct FlattenedMap {
    pub name: String,
    #[serde(flatten)]
    pub rest: BTreeMap<String, i32>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct FlattenedAlone {
    #[serde(flatten)]
    pub rest: BTreeMap<String, i32>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct FlattenedAny {
    pub name: String,
    #[serde(flatten)]
    pub rest: BTreeMap<String, serde_json::Value>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct FlattenedByColour {
    pub name: String,
    #[serde(flatten)]
    pub rest: BTreeMap<Colour, i32>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ByColour {
    pub colours: BTreeMap<Colour, i32>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum External {
    Bucket(Strict),
    Open(Open),
}

#[derive(Serialize, Deserialize)]
pub(super) enum Mixed {
    Bucket(Strict),
    Nothing,
}

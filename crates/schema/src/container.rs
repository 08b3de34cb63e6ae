//! A struct or an enum the way serde serializes it. Names, presence and representation have been
//! resolved, and each type it mentions is a slot that is filled in later.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Markers, Schema};

/// A struct or enum. `derive(CrdSchema)` embeds it in the program as a JSON literal and the
/// generator builds it from source text. They share it so that they can't disagree.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Container {
    /// The Rust identifier, which we use in messages.
    pub name: String,
    /// The doc comment, after controller-gen's rules have been applied to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The markers on the type itself.
    #[serde(default)]
    pub markers: Markers,
    /// How it looks in JSON.
    pub shape: Shape,
    /// The field that `#[serde(tag = "…")]` adds to a struct, along with its value, which is the
    /// name of the struct.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<(String, String)>,
    /// True for `#[serde(transparent)]`, and if an attribute replaces the type by another one. A
    /// field of this type may then be absent if the inner type is an `Option`, whereas a plain
    /// newtype around an `Option` has to be there, although it may be `null`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub transparent: bool,
    /// `#[serde(deny_unknown_fields)]`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub denies_unknown: bool,
}

/// How a container looks in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Shape {
    /// A struct with named fields.
    Object(Vec<Field>),
    /// A newtype, or a `#[serde(transparent)]` struct. It looks like the value of its only slot.
    Transparent(usize),
    /// An enum.
    Enum {
        /// Which of serde's four representations it has.
        tagging: Tagging,
        /// The variants, in source order.
        variants: Vec<Variant>,
    },
}

impl Default for Shape {
    fn default() -> Self {
        Shape::Object(Vec::new())
    }
}

/// A field that serde reads or writes. Fields that it skips are left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// The Rust identifier without `r#`.
    pub ident: String,
    /// The name in JSON, after `rename` and `rename_all` have been applied.
    pub name: String,
    /// The doc comment, after controller-gen's rules have been applied to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The index of the slot that has the schema of its type.
    pub slot: usize,
    /// `#[serde(flatten)]`.
    #[serde(default)]
    pub flatten: bool,
    /// Whether it may be absent according to serde's attributes. A marker can override this.
    pub presence: Presence,
    /// True if the JSON representation doesn't follow from the Rust type, because a marker or a
    /// function determines it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stated: bool,
    /// The markers on the field.
    #[serde(default)]
    pub markers: Markers,
}

/// Whether serde accepts an object without the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Presence {
    /// It depends on the type: only an `Option` may be absent.
    ByType,
    /// The field or the container has `#[serde(default)]`, so it may be absent.
    Defaulted,
    /// It has to be there whatever its type is, e.g. because of `#[serde(with = "…")]`, with which
    /// serde requires even an `Option`.
    Required,
}

/// One of serde's four enum representations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tagging {
    /// `{"Variant": …}`, or just a string for a unit variant.
    External,
    /// `#[serde(tag = "…")]`.
    Internal(String),
    /// `#[serde(tag = "…", content = "…")]`.
    Adjacent(String, String),
    /// `#[serde(untagged)]`.
    Untagged,
}

/// A variant of an enum. Variants that serde skips are left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// The Rust identifier without `r#`.
    pub ident: String,
    /// The name in JSON.
    pub name: String,
    /// The doc comment, after controller-gen's rules have been applied to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What the variant holds.
    pub content: Content,
    /// The markers on the variant or on its only unnamed field. They apply to the content.
    #[serde(default)]
    pub markers: Markers,
    /// `#[serde(other)]`: it matches every name that isn't the name of another variant.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub other: bool,
    /// `#[serde(untagged)]` on the variant itself: it has no tag, even if the enum has one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untagged: bool,
}

/// What a variant of an enum holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Content {
    /// Nothing.
    Unit,
    /// A single unnamed field, given as the index of its slot.
    Newtype(usize),
    /// Named fields.
    Object(Vec<Field>),
}

/// The schema of a type that a container mentions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slot {
    /// The schema of the type. If the type is `Option<T>`, it's the schema of `T`.
    pub schema: Arc<Schema>,
    /// True if the type is an `Option`, possibly through an alias.
    pub optional: bool,
}

//! A struct or enum as serialized by serde. Names, presence and representation are resolved; types
//! are slots.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Markers, Schema};

/// A struct or enum. `derive(CrdSchema)` embeds this value in the program as a JSON literal, and
/// the generator builds it from source text, so both front ends agree by construction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Container {
    /// The Rust identifier, for messages.
    pub name: String,
    /// The doc comment, processed by controller-gen's rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Markers on the type itself.
    #[serde(default)]
    pub markers: Markers,
    /// The representation in JSON.
    pub shape: Shape,
    /// The field that `#[serde(tag = "…")]` adds to a struct, and its value, the struct's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<(String, String)>,
    /// True for `#[serde(transparent)]`, or if an attribute replaces the type with another one. A
    /// field of this type may then be absent if the inner type is an `Option`. (A plain newtype
    /// around an `Option` is required, and may be `null`.)
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub transparent: bool,
    /// `#[serde(deny_unknown_fields)]`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub denies_unknown: bool,
}

/// The representation of a container in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Shape {
    /// A struct with named fields.
    Object(Vec<Field>),
    /// A newtype, or `#[serde(transparent)]`: the value of its only slot.
    Transparent(usize),
    /// An enum.
    Enum {
        /// One of serde's four representations.
        tagging: Tagging,
        /// The variants in source order.
        variants: Vec<Variant>,
    },
}

impl Default for Shape {
    fn default() -> Self {
        Shape::Object(Vec::new())
    }
}

/// A field that serde reads or writes. Skipped fields are not listed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// The Rust identifier, without `r#`.
    pub ident: String,
    /// The name in JSON, after `rename` and `rename_all`.
    pub name: String,
    /// The doc comment, processed by controller-gen's rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Index of the slot with the schema of its type.
    pub slot: usize,
    /// `#[serde(flatten)]`.
    #[serde(default)]
    pub flatten: bool,
    /// Presence according to serde's attributes. Markers can override it.
    pub presence: Presence,
    /// True if a marker or a function, instead of the Rust type, determines the JSON
    /// representation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stated: bool,
    /// Markers on the field.
    #[serde(default)]
    pub markers: Markers,
}

/// Whether serde accepts an object without the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Presence {
    /// Depends on the type: an `Option` may be absent, other types may not.
    ByType,
    /// `#[serde(default)]` on the field or the container: may be absent.
    Defaulted,
    /// Must be present, no matter the type. With `#[serde(with = "…")]`, serde requires an
    /// `Option`, too.
    Required,
}

/// serde's four enum representations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tagging {
    /// `{"Variant": …}`, and a plain string for unit variants.
    External,
    /// `#[serde(tag = "…")]`.
    Internal(String),
    /// `#[serde(tag = "…", content = "…")]`.
    Adjacent(String, String),
    /// `#[serde(untagged)]`.
    Untagged,
}

/// An enum variant. Skipped variants are not listed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// The Rust identifier, without `r#`.
    pub ident: String,
    /// The name in JSON.
    pub name: String,
    /// The doc comment, processed by controller-gen's rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The content of the variant.
    pub content: Content,
    /// Markers on the variant or on its only unnamed field. They apply to the content.
    #[serde(default)]
    pub markers: Markers,
    /// `#[serde(other)]`: matches every name that no other variant has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub other: bool,
    /// `#[serde(untagged)]` on the variant: it has no tag even if the enum has one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untagged: bool,
}

/// The content of an enum variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Content {
    /// No content.
    Unit,
    /// A single unnamed field, as the index of its slot.
    Newtype(usize),
    /// Named fields.
    Object(Vec<Field>),
}

/// The schema of a type that a container mentions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slot {
    /// The schema of the type, or of `T` if the type is `Option<T>`.
    pub schema: Arc<Schema>,
    /// True if the type is an `Option`. Aliases are resolved.
    pub optional: bool,
}

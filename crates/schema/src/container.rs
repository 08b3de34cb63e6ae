//! A struct or enum as serialized by serde. Names, presence and representation are already
//! resolved, and each mentioned type is a slot to be filled in later.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Markers, Schema};

/// A struct or enum. `derive(CrdSchema)` embeds it in the program as a JSON literal, and the
/// generator builds it from source text. Sharing it ensures that they agree.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Container {
    /// The Rust identifier, for messages.
    pub name: String,
    /// The doc comment, processed by controller-gen's rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The markers on the type itself.
    #[serde(default)]
    pub markers: Markers,
    /// The representation in JSON.
    pub shape: Shape,
    /// The field that `#[serde(tag = "…")]` adds to a struct, with the name of the struct as its
    /// value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<(String, String)>,
    /// True for `#[serde(transparent)]`, and if an attribute replaces the type with another one. A
    /// field of this type may then be absent if the inner type is an `Option`, whereas a plain
    /// newtype around an `Option` must be present, although it may be `null`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub transparent: bool,
    /// `#[serde(deny_unknown_fields)]`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub denies_unknown: bool,
}

/// The JSON representation of a container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Shape {
    /// A struct with named fields.
    Object(Vec<Field>),
    /// A newtype or `#[serde(transparent)]` struct, represented by the value of its only slot.
    Transparent(usize),
    /// An enum.
    Enum {
        /// One of serde's four representations.
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

/// A field that serde reads or writes. Skipped fields are left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// The Rust identifier without `r#`.
    pub ident: String,
    /// The name in JSON, i.e. after `rename` and `rename_all`.
    pub name: String,
    /// The doc comment, processed by controller-gen's rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The index of the slot with the schema of its type.
    pub slot: usize,
    /// `#[serde(flatten)]`.
    #[serde(default)]
    pub flatten: bool,
    /// Whether the field may be absent according to serde's attributes. Overridden by markers.
    pub presence: Presence,
    /// True if the JSON representation is determined by a marker or a function, not by the Rust
    /// type.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stated: bool,
    /// The markers on the field.
    #[serde(default)]
    pub markers: Markers,
}

/// Whether serde accepts an object without the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Presence {
    /// Depends on the type: only an `Option` may be absent.
    ByType,
    /// May be absent, because the field or the container has `#[serde(default)]`.
    Defaulted,
    /// Must be present regardless of its type, e.g. because of `#[serde(with = "…")]`, with which
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

/// A variant of an enum. Skipped variants are left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// The Rust identifier without `r#`.
    pub ident: String,
    /// The name in JSON.
    pub name: String,
    /// The doc comment, processed by controller-gen's rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The content of the variant.
    pub content: Content,
    /// The markers on the variant or on its only unnamed field. They apply to the content.
    #[serde(default)]
    pub markers: Markers,
    /// `#[serde(other)]`: matches every name not used by another variant.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub other: bool,
    /// `#[serde(untagged)]` on the variant itself: no tag, even if the enum has one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untagged: bool,
}

/// The content of a variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Content {
    /// Nothing.
    Unit,
    /// A single unnamed field, given as the index of its slot.
    Newtype(usize),
    /// Named fields.
    Object(Vec<Field>),
}

/// The schema of a type mentioned in a container.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slot {
    /// The schema of the type, or of `T` for an `Option<T>`.
    pub schema: Arc<Schema>,
    /// True if the type is an `Option`, possibly through an alias.
    pub optional: bool,
}

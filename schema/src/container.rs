//! One struct or enum as serde writes it: names, presence and representation decided, types left as slots.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Markers, Schema};

/// One struct or enum. `derive(CrdSchema)` writes this value into the program as one JSON literal and the
/// generator builds it from source text, so that both front ends agree by construction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Container {
    /// The Rust identifier, for messages.
    pub name: String,
    /// The doc comment, by controller-gen's rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Markers on the type itself.
    #[serde(default)]
    pub markers: Markers,
    /// Its representation on the wire.
    pub shape: Shape,
    /// The field that `#[serde(tag = "…")]` adds to a struct, and its value: the struct's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<(String, String)>,
    /// `#[serde(transparent)]`, or a type that stands for this one: a field of the type may be absent where
    /// what it holds may be. (A plain newtype of an `Option` must be there, as `null`.)
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub transparent: bool,
    /// `#[serde(deny_unknown_fields)]`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub denies_unknown: bool,
}

/// The representation of a container on the wire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Shape {
    /// A struct with named fields.
    Object(Vec<Field>),
    /// A newtype, or `#[serde(transparent)]`: the value of its one slot.
    Transparent(usize),
    /// An enum.
    Enum {
        /// Which of serde's four representations.
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

/// One field that is on the wire; skipped fields are not listed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// The Rust identifier, without `r#`.
    pub ident: String,
    /// The name on the wire, after `rename` and `rename_all`.
    pub name: String,
    /// The doc comment, by controller-gen's rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Which slot holds the schema of its type.
    pub slot: usize,
    /// `#[serde(flatten)]`.
    #[serde(default)]
    pub flatten: bool,
    /// The presence that serde's attributes give it; markers can override it.
    pub presence: Presence,
    /// True where a marker or a function of the program, and not the Rust type, decides the representation on the wire.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stated: bool,
    /// Markers on the field.
    #[serde(default)]
    pub markers: Markers,
}

/// Returns whether serde accepts an object without the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Presence {
    /// As the type says: an `Option` may be absent, anything else may not.
    ByType,
    /// `#[serde(default)]` on the field or the container: may be absent.
    Defaulted,
    /// Must be present whatever the type: serde does not excuse an `Option` that is read `with` a function.
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

/// One variant of an enum; skipped variants are not listed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// The Rust identifier, without `r#`.
    pub ident: String,
    /// The name on the wire.
    pub name: String,
    /// The doc comment, by controller-gen's rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The content of the variant.
    pub content: Content,
    /// Markers on the variant, or on its one unnamed field: they apply to what it carries.
    #[serde(default)]
    pub markers: Markers,
    /// `#[serde(other)]`: it stands for every name that is not another variant's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub other: bool,
    /// `#[serde(untagged)]` on the variant: it has no tag, though the enum has one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untagged: bool,
}

/// The content of an enum variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Content {
    /// Nothing.
    Unit,
    /// One unnamed field: the slot.
    Newtype(usize),
    /// Named fields.
    Object(Vec<Field>),
}

/// The schema of one mentioned type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slot {
    /// Its schema; of `T` where the type is `Option<T>`.
    pub schema: Arc<Schema>,
    /// True where the type is an `Option`, seen through aliases.
    pub optional: bool,
}

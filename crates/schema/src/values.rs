//! The values of schema keys that are more complex than a number or a string.

use serde::{Deserialize, Serialize};

use crate::origin::Origin;

/// A CEL rule, an item of `x-kubernetes-validations`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Cel {
    /// The path of the field to report an error at, relative to the value with the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_path: Option<String>,
    /// The API server's message if the rule fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// A CEL expression that evaluates to the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_expression: Option<String>,
    /// Makes `oldSelf` optional, so that the rule also runs on creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional_old_self: Option<bool>,
    /// A machine-readable reason for the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The expression. `self` is the value with the rule.
    pub rule: String,
    /// The location of the rule.
    #[serde(skip)]
    pub origin: Origin,
    /// The location of the message expression.
    #[serde(skip)]
    pub message_expression_origin: Origin,
    /// The location of the field path.
    #[serde(skip)]
    pub field_path_origin: Origin,
}

/// The four reasons for a CEL rule that the API server accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, clippy::enum_variant_names)] // the API server's own words
pub enum Reason {
    FieldValueRequired,
    FieldValueInvalid,
    FieldValueForbidden,
    FieldValueDuplicate,
}

impl Reason {
    /// Returns the name used in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::FieldValueRequired => "FieldValueRequired",
            Reason::FieldValueInvalid => "FieldValueInvalid",
            Reason::FieldValueForbidden => "FieldValueForbidden",
            Reason::FieldValueDuplicate => "FieldValueDuplicate",
        }
    }
}

/// How server-side apply merges a list (`x-kubernetes-list-type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ListType {
    /// Each applier replaces the entire list.
    Atomic,
    /// The items are scalars, and lists are merged as sets.
    Set,
    /// The items are objects, which are merged if their keys are equal.
    Map,
}

impl ListType {
    /// Returns the name used in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            ListType::Atomic => "atomic",
            ListType::Set => "set",
            ListType::Map => "map",
        }
    }
}

/// How server-side apply merges an object (`x-kubernetes-map-type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MapType {
    /// Each applier replaces the entire object.
    Atomic,
    /// Each key is merged separately.
    Granular,
}

impl MapType {
    /// Returns the name used in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            MapType::Atomic => "atomic",
            MapType::Granular => "granular",
        }
    }
}

/// A link to further documentation (`externalDocs`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalDocs {
    /// The topic of the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The URL of the document.
    pub url: String,
}

//! The values of those schema keys that need more than a number or a string.

use serde::{Deserialize, Serialize};

use crate::origin::Origin;

/// A CEL rule, which is an item of `x-kubernetes-validations`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Cel {
    /// The path of the field that an error points at, relative to the value that has the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_path: Option<String>,
    /// What the API server says if the rule fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// A CEL expression that returns the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_expression: Option<String>,
    /// Makes `oldSelf` optional, so that the rule also runs when an object is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional_old_self: Option<bool>,
    /// A machine-readable reason for the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The expression, in which `self` is the value that has the rule.
    pub rule: String,
    /// Where the rule is in the source.
    #[serde(skip)]
    pub origin: Origin,
    /// Where the message expression is in the source.
    #[serde(skip)]
    pub message_expression_origin: Origin,
    /// Where the field path is in the source.
    #[serde(skip)]
    pub field_path_origin: Origin,
}

/// The four reasons that the API server accepts in a CEL rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, clippy::enum_variant_names)] // the API server's own words
pub enum Reason {
    FieldValueRequired,
    FieldValueInvalid,
    FieldValueForbidden,
    FieldValueDuplicate,
}

impl Reason {
    /// Returns the name that manifests use.
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
    /// Whoever applies the list replaces all of it.
    Atomic,
    /// The items are scalars, and the lists are merged as sets.
    Set,
    /// The items are objects, and those with the same keys are merged.
    Map,
}

impl ListType {
    /// Returns the name that manifests use.
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
    /// Whoever applies the object replaces all of it.
    Atomic,
    /// Each key is merged on its own.
    Granular,
}

impl MapType {
    /// Returns the name that manifests use.
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
    /// What the document is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The URL of the document.
    pub url: String,
}

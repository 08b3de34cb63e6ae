//! Markers as values: the common vocabulary of both front ends.

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::{Descriptor, Schema, SchemaType};

/// Everything `#[kube(…)]` and `#[crd(…)]` may say about one value: a field, a type, or a list's items.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Markers {
    /// `validation(…)`.
    #[serde(skip_serializing_if = "is_default")]
    pub validation: Validation,
    /// `items(…)`: the same grammar for the items of a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Box<Markers>>,
    /// `keys(…)`: the same grammar for the keys of a map, written as a CEL rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Box<Markers>>,
    /// `values(…)`: the same grammar for the values of a map.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Box<Markers>>,
    /// `cel(…)` and `validation = "…"`, in source order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cel: Vec<Cel>,
    /// `exactly_one_of(…)`, `at_most_one_of(…)`, `at_least_one_of(…)`, in source order. Names are Rust
    /// identifiers; [`assemble`](crate::assemble) writes the wire names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<OneOf>,
    /// `immutable`.
    #[serde(skip_serializing_if = "is_default")]
    pub immutable: bool,
    /// `default = …`. `null` takes away the default of the type: the API server has no default of `null`.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "keep_null")]
    pub default: Option<Value>,
    /// `example = …`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<Value>,
    /// `optional` (`Some(true)`) or `required` (`Some(false)`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
    /// `nullable`.
    #[serde(skip_serializing_if = "is_default")]
    pub nullable: bool,
    /// `list_type`, `list_map_keys`, `map_type`, `struct_type`.
    #[serde(skip_serializing_if = "is_default")]
    pub topology: Topology,
    /// `embedded_resource`.
    #[serde(skip_serializing_if = "is_default")]
    pub embedded_resource: bool,
    /// `preserve_unknown_fields`.
    #[serde(skip_serializing_if = "is_default")]
    pub preserve_unknown_fields: bool,
    /// `int_or_string`.
    #[serde(skip_serializing_if = "is_default")]
    pub int_or_string: bool,
    /// `schemaless`: the Rust type is not looked at; only markers and the description count.
    #[serde(skip_serializing_if = "is_default")]
    pub schemaless: bool,
    /// `schema = { … }`: the schema itself, in place of the Rust type's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Box<Schema>>,
    /// `title = "…"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// `description = "…"`; empty to remove the description of the type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `external_docs(url = "…", description = "…")`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_docs: Option<ExternalDocs>,
    /// `embedded_object_meta`: the metadata of objects in the value is kept; with `= false`, it is dropped without a warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedded_object_meta: Option<bool>,
    /// `max_description_length = …`, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_description_length: Option<usize>,
    /// `#[csv(…)]` on a field. The program needs none of it.
    #[serde(skip)]
    pub descriptor: Option<Arc<Descriptor>>,
    /// The place of a marker that stands for rules: `immutable`, `keys(…)`, `exactly_one_of(…)`.
    #[serde(skip)]
    pub origin: Origin,
}

impl Markers {
    /// The markers of a value that has none, made once: nearly every value is compared with them.
    pub(crate) fn none() -> &'static Markers {
        static NONE: LazyLock<Markers> = LazyLock::new(Markers::default);
        &NONE
    }

    /// Fills up these markers from others about the same value: a newtype and its field. Rules add up; of anything
    /// else that both say, these markers win.
    #[must_use]
    pub fn or(self, other: Markers) -> Markers {
        // Written out, so that a new marker cannot be forgotten here.
        Markers {
            validation: self.validation.or(other.validation),
            items: self.items.or(other.items),
            keys: self.keys.or(other.keys),
            values: self.values.or(other.values),
            cel: [self.cel, other.cel].concat(),
            one_of: [self.one_of, other.one_of].concat(),
            immutable: self.immutable || other.immutable,
            default: self.default.or(other.default),
            example: self.example.or(other.example),
            optional: self.optional.or(other.optional),
            nullable: self.nullable || other.nullable,
            topology: self.topology.or(other.topology),
            embedded_resource: self.embedded_resource || other.embedded_resource,
            preserve_unknown_fields: self.preserve_unknown_fields || other.preserve_unknown_fields,
            int_or_string: self.int_or_string || other.int_or_string,
            schemaless: self.schemaless || other.schemaless,
            schema: self.schema.or(other.schema),
            title: self.title.or(other.title),
            description: self.description.or(other.description),
            external_docs: self.external_docs.or(other.external_docs),
            embedded_object_meta: self.embedded_object_meta.or(other.embedded_object_meta),
            max_description_length: self.max_description_length.or(other.max_description_length),
            descriptor: self.descriptor.or(other.descriptor),
            origin: self.origin.or(other.origin),
        }
    }
}

impl Validation {
    /// Fills up these constraints from others; of what both say, these win.
    fn or(self, other: Validation) -> Validation {
        Validation {
            minimum: self.minimum.or(other.minimum),
            maximum: self.maximum.or(other.maximum),
            exclusive_minimum: self.exclusive_minimum || other.exclusive_minimum,
            exclusive_maximum: self.exclusive_maximum || other.exclusive_maximum,
            multiple_of: self.multiple_of.or(other.multiple_of),
            min_length: self.min_length.or(other.min_length),
            max_length: self.max_length.or(other.max_length),
            pattern: self.pattern.or(other.pattern),
            min_items: self.min_items.or(other.min_items),
            max_items: self.max_items.or(other.max_items),
            min_properties: self.min_properties.or(other.min_properties),
            max_properties: self.max_properties.or(other.max_properties),
            min_size: self.min_size.or(other.min_size),
            max_size: self.max_size.or(other.max_size),
            enumeration: first_filled(self.enumeration, other.enumeration),
            alternatives: self.alternatives.or(other.alternatives),
            format: self.format.or(other.format),
            schema_type: self.schema_type.or(other.schema_type),
        }
    }
}

impl Topology {
    /// Fills up these keys from others; of what both say, these win.
    fn or(self, other: Topology) -> Topology {
        Topology {
            list_type: self.list_type.or(other.list_type),
            list_map_keys: first_filled(self.list_map_keys, other.list_map_keys),
            map_type: self.map_type.or(other.map_type),
        }
    }
}

/// Returns the first list, or the second when the first is empty.
fn first_filled<T>(first: Vec<T>, second: Vec<T>) -> Vec<T> {
    if first.is_empty() { second } else { first }
}

/// The keys of `validation(…)`: plain OpenAPI constraints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs)] // each field is the OpenAPI keyword of the same name; see `Schema`
pub struct Validation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum: Option<Number>,
    #[serde(skip_serializing_if = "is_default")]
    pub exclusive_minimum: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub exclusive_maximum: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiple_of: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_items: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_properties: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_properties: Option<u64>,
    /// Fewest characters, items or keys: schemars' `length`, where only the finished schema tells which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_size: Option<u64>,
    /// Most characters, items or keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_size: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub enumeration: Vec<Value>,
    /// Alternatives that `extend("oneOf" = …)` and its kin write: `all_of`, `any_of`, `one_of` and `not` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alternatives: Option<Box<Schema>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema_type: Option<SchemaType>,
}

/// One CEL rule: an item of `x-kubernetes-validations`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Cel {
    /// Path of the field blamed in the refusal, relative to the value the rule is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_path: Option<String>,
    /// The message of a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// A CEL expression that makes the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_expression: Option<String>,
    /// Makes `oldSelf` an optional, so that the rule also runs on create.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional_old_self: Option<bool>,
    /// The machine-readable reason of the refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The expression; `self` is the value the rule is on.
    pub rule: String,
    /// The place of the rule.
    #[serde(skip)]
    pub origin: Origin,
    /// The place of the message expression.
    #[serde(skip)]
    pub message_expression_origin: Origin,
    /// The place of the field path.
    #[serde(skip)]
    pub field_path_origin: Origin,
}

/// The place of a rule, or of a description, in source, for messages: a file and a place in it, numbered by the reader. It
/// does not take part in comparisons.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin {
    /// The file.
    pub file: u32,
    /// The place in the file: two numbers, whatever they count.
    pub span: Option<(u32, u32)>,
}

impl Origin {
    /// Returns this place, or another when this is none.
    pub fn or(self, other: Origin) -> Origin {
        if self.span.is_some() { self } else { other }
    }
}

impl PartialEq for Origin {
    fn eq(&self, _: &Origin) -> bool {
        true
    }
}

impl Eq for Origin {}

/// The four reasons the API server accepts for a CEL rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, clippy::enum_variant_names)] // the API server's own words
pub enum Reason {
    FieldValueRequired,
    FieldValueInvalid,
    FieldValueForbidden,
    FieldValueDuplicate,
}

impl Reason {
    /// The word in a manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::FieldValueRequired => "FieldValueRequired",
            Reason::FieldValueInvalid => "FieldValueInvalid",
            Reason::FieldValueForbidden => "FieldValueForbidden",
            Reason::FieldValueDuplicate => "FieldValueDuplicate",
        }
    }
}

/// A rule about how many of some fields are set, by Rust field identifiers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum OneOf {
    /// `at_most_one_of(a, b)`.
    AtMost(Vec<String>),
    /// `exactly_one_of(a, b)`.
    Exactly(Vec<String>),
    /// `at_least_one_of(a, b)`.
    AtLeast(Vec<String>),
}

/// The way in which server-side apply merges a list or an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Topology {
    /// `list_type = "map" | "set" | "atomic"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_type: Option<ListType>,
    /// `list_map_keys = ["…"]`, wire names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub list_map_keys: Vec<String>,
    /// `map_type` of a map, or `struct_type` of a struct.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map_type: Option<MapType>,
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ListType {
    /// Replaced as a whole.
    Atomic,
    /// Scalars merged as a set.
    Set,
    /// Objects merged by key.
    Map,
}

impl ListType {
    /// The word in a manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            ListType::Atomic => "atomic",
            ListType::Set => "set",
            ListType::Map => "map",
        }
    }
}

/// `x-kubernetes-map-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MapType {
    /// Replaced as a whole.
    Atomic,
    /// Merged key by key.
    Granular,
}

impl MapType {
    /// The word in a manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            MapType::Atomic => "atomic",
            MapType::Granular => "granular",
        }
    }
}

/// `externalDocs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalDocs {
    /// The description of the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The address.
    pub url: String,
}

/// serde takes `null` for an absent option.
fn keep_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

//! The structural schema: what `spec.versions[].schema.openAPIV3Schema` may say, and nothing more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::{Cel, Descriptor, ExternalDocs, ListType, MapType, WeightSlot};

/// The six types an OpenAPI v3 schema may have; the API server refuses any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SchemaType {
    /// A list.
    Array,
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// A struct or a map.
    Object,
    /// Text.
    String,
}

impl SchemaType {
    /// The word in a manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            SchemaType::Array => "array",
            SchemaType::Boolean => "boolean",
            SchemaType::Integer => "integer",
            SchemaType::Number => "number",
            SchemaType::Object => "object",
            SchemaType::String => "string",
        }
    }

    /// Returns the noun for a value of this type in messages.
    pub fn noun(self) -> &'static str {
        match self {
            SchemaType::Array => "a list",
            SchemaType::Boolean => "a boolean",
            SchemaType::Integer => "an integer",
            SchemaType::Number => "a number",
            SchemaType::Object => "an object",
            SchemaType::String => "a string",
        }
    }
}

/// One node of a structural schema (`JSONSchemaProps` of `apiextensions.k8s.io/v1`).
///
/// There is no `$ref` and no `uniqueItems`: the API server refuses both, so they cannot be written.
/// Parts and texts are shared: a type that is mentioned in many places has one schema, and a clone copies one node.
/// [`Arc::make_mut`] changes a part without changing it for others.
///
/// The field order is the alphabetical order in which manifests print it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Schema {
    /// Schema of the values of a map; excludes `properties`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_properties: Option<Arc<Schema>>,
    /// Value validations that must all hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub all_of: Vec<Schema>,
    /// Value validations of which at least one must hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub any_of: Vec<Schema>,
    /// The value that the API server fills in when the field is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The text `kubectl explain` shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Arc<str>>,
    /// The values allowed.
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty")]
    pub enumeration: Vec<Value>,
    /// A sample value, for readers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<Value>,
    /// Excludes `maximum` itself (the boolean form of OpenAPI 3.0).
    #[serde(skip_serializing_if = "is_false")]
    pub exclusive_maximum: bool,
    /// Excludes `minimum` itself (the boolean form of OpenAPI 3.0).
    #[serde(skip_serializing_if = "is_false")]
    pub exclusive_minimum: bool,
    /// A link to further documentation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_docs: Option<Box<ExternalDocs>>,
    /// One of the formats the API server knows: `int32`, `date-time`, `byte`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Arc<str>>,
    /// Schema of the items of a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Arc<Schema>>,
    /// Most items a list may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
    /// Most characters a string may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    /// Most keys an object may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_properties: Option<u64>,
    /// Largest number allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum: Option<Number>,
    /// Fewest items a list may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_items: Option<u64>,
    /// Fewest characters a string may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    /// Fewest keys an object may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_properties: Option<u64>,
    /// Smallest number allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<Number>,
    /// The number must be a multiple of this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiple_of: Option<Number>,
    /// A value validation that must not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not: Option<Arc<Schema>>,
    /// Keeps `null` as a value; without it the API server drops a `null`.
    #[serde(skip_serializing_if = "is_false")]
    pub nullable: bool,
    /// Value validations of which exactly one must hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<Schema>,
    /// The regular expression (RE2) a string must match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Arc<str>>,
    /// The fields of an object, by wire name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<Arc<str>, Arc<Schema>>,
    /// The wire names that must be present.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub required: BTreeSet<Arc<str>>,
    /// A short name, for readers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Arc<str>>,
    /// The type; absent only under value validations and where `int-or-string` or preserved content allows it.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub schema_type: Option<SchemaType>,
    /// The object is a whole Kubernetes object, with `apiVersion`, `kind` and `metadata`.
    #[serde(rename = "x-kubernetes-embedded-resource", skip_serializing_if = "is_false")]
    pub embedded_resource: bool,
    /// The value is an integer or a string.
    #[serde(rename = "x-kubernetes-int-or-string", skip_serializing_if = "is_false")]
    pub int_or_string: bool,
    /// The fields that identify an item of a list of type `map`, in the order written.
    #[serde(rename = "x-kubernetes-list-map-keys", skip_serializing_if = "Vec::is_empty")]
    pub list_map_keys: Vec<String>,
    /// The way in which server-side apply merges the list.
    #[serde(rename = "x-kubernetes-list-type", skip_serializing_if = "Option::is_none")]
    pub list_type: Option<ListType>,
    /// The way in which server-side apply merges the object.
    #[serde(rename = "x-kubernetes-map-type", skip_serializing_if = "Option::is_none")]
    pub map_type: Option<MapType>,
    /// Fields the schema does not name are kept instead of pruned.
    #[serde(
        rename = "x-kubernetes-preserve-unknown-fields",
        skip_serializing_if = "is_false"
    )]
    pub preserve_unknown_fields: bool,
    /// CEL rules, in the order written.
    #[serde(rename = "x-kubernetes-validations", skip_serializing_if = "Vec::is_empty")]
    pub validations: Vec<Cel>,
    /// The form of a map's keys, for messages.
    #[serde(skip)]
    pub keys: KeyForm,
    /// Set if serde rejects unknown fields; for messages.
    #[serde(skip)]
    pub closed: Closed,
    /// Set if serde fills in the field where it is absent, with a value that is not a default here; for messages.
    #[serde(skip)]
    pub lacks_default: LacksDefault,
    /// Set on the bare `metadata` of an object inside another if a marker says that the API server may drop its content;
    /// for messages.
    #[serde(skip)]
    pub drops_object_meta: DropsObjectMeta,
    /// Set if the rules that it breaks have been reported where it is written out, so that whoever uses it need not report
    /// them again.
    #[serde(skip)]
    pub is_reported: IsReported,
    /// `#[csv(…)]` of the field, for the ClusterServiceVersion.
    #[serde(skip)]
    pub descriptor: DescriptorSlot,
    /// The weight of the schema, once it is known.
    #[serde(skip)]
    pub weight: WeightSlot,
}

impl Schema {
    /// Returns the noun for a value in messages, "this value is …".
    pub(crate) fn noun(&self) -> &'static str {
        match self.schema_type {
            Some(schema_type) => schema_type.noun(),
            None if self.int_or_string => "an integer or a string",
            None => "of any type",
        }
    }
}

/// The descriptor of a field. It is not part of the schema, so that two schemas are the same whatever it is.
#[derive(Clone, Debug, Default)]
pub struct DescriptorSlot(pub Option<Arc<Descriptor>>);

impl PartialEq for DescriptorSlot {
    fn eq(&self, _: &DescriptorSlot) -> bool {
        true
    }
}

/// The form in which the program reads the keys of a map; nothing where it takes any text. The schema language has no word
/// for it, so that two schemas are the same whatever it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyForm(pub Option<&'static str>);

impl PartialEq for KeyForm {
    fn eq(&self, _: &KeyForm) -> bool {
        true
    }
}

/// Set if the program rejects fields that the schema does not name. The API server drops them instead, so that two schemas are
/// the same whatever it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Closed(pub bool);

impl PartialEq for Closed {
    fn eq(&self, _: &Closed) -> bool {
        true
    }
}

/// Set if serde gives an absent field a value that the API server does not. The schema language has no word for it, so
/// that two schemas are the same whatever it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct LacksDefault(pub bool);

impl PartialEq for LacksDefault {
    fn eq(&self, _: &LacksDefault) -> bool {
        true
    }
}

/// Set if a marker says that metadata is dropped, which is otherwise a warning. The schema language has no word for it, so
/// that two schemas are the same whatever it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct DropsObjectMeta(pub bool);

impl PartialEq for DropsObjectMeta {
    fn eq(&self, _: &DropsObjectMeta) -> bool {
        true
    }
}

/// Set on a schema whose mistakes have been reported. Nothing of it is in a manifest, so that two schemas are the same
/// whatever it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct IsReported(pub bool);

impl PartialEq for IsReported {
    fn eq(&self, _: &IsReported) -> bool {
        true
    }
}

fn is_false(value: &bool) -> bool {
    !*value
}

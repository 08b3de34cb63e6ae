//! The structural schema: everything that `spec.versions[].schema.openAPIV3Schema` may contain, and
//! nothing else.
//!
//! # Adding a key
//!
//! Add a field to [`Schema`], in the order in which Go marshals the keys. The compiler then
//! requires it in `crates/generator/src/crd/print.rs`. It does not report these places:
//!
//! | what | where |
//! |---|---|
//! | its name in schemas that users write, and the types that it applies to | `SCHEMA_KEYS` and `misplaced` in `literal.rs`, `idle.rs` |
//! | reading it from schemas of `schemars` | `import/` |
//! | the API server's rules about it | `structural.rs`, and for whole objects `root.rs` and `crates/generator/src/root.rs` |
//! | in `root_schema`, which users write for whole objects | `ROOT_SCHEMA_KEYS` in `crates/syntax/src/marker/raw.rs` |
//! | merging flattened structs and the variants of enums | `object.rs`, `enumeration/` |
//! | validating values | `validate/`, `satisfy.rs` |
//! | judging objects | `values/`, `prune.rs`, `lists.rs`, `correlate.rs` and `embedded.rs` in `crates/judge/src/` |
//! | generating objects in tests | `crates/testing/src/values.rs`, `crates/testing/src/objects.rs` |
//! | server-side apply on the fake server, for keys of lists, maps and unknown fields | `crates/testing/src/fake/fields.rs`, `crates/testing/src/fake/typed.rs` |
//! | classifying changes | `schema/`, `rules.rs`, `witness/edges.rs` and `witness/make.rs` in `crates/compatibility/src/` |
//! | bounds on sizes, for the cost of CEL rules | `crates/cel/src/types.rs`, `crates/cel/src/rules.rs`, `crates/cel/src/bounds.rs` |
//! | reading values in CEL, for keys of lists and unknown fields | `crates/cel/src/evaluate/json.rs` |
//! | importing it from CRDs | `crates/importer/src/fit.rs`, `crates/importer/src/classes.rs`, `crates/importer/src/sample.rs` |
//! | API references | `facts.rs` in `crates/products/src/api_docs/`; if it is not a constraint, also `html/field.rs` and `markdown.rs` |
//! | comparing CRDs in `rbuilder adopt` | `cli/src/commands/adopt/compare/schema.rs` |
//! | Kubernetes' own types, if they have it | `crates/catalogue/src/{format,catalogue,write}.rs`, `xtask/src/catalogue/openapi.rs` |
//!
//! The marker that sets the key: see `crates/syntax/src/marker/mod.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::{Cel, Descriptor, ExternalDocs, ListType, MapType, WeightSlot};

/// The six types of an OpenAPI v3 schema. The API server rejects all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SchemaType {
    /// A list.
    Array,
    /// `true` or `false`.
    Boolean,
    /// An integer.
    Integer,
    /// Any number.
    Number,
    /// A struct or a map.
    Object,
    /// A string.
    String,
}

impl SchemaType {
    /// Returns the value in a manifest.
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
/// There is no `$ref` and no `uniqueItems`, because the API server rejects both.
///
/// Parts and strings are shared: a type that is used in many places has one schema, and a clone
/// only copies one node. [`Arc::make_mut`] changes a part without affecting other users.
///
/// Fields are in alphabetical order, which is also their order in manifests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Schema {
    /// Schema of the values of a map. Excludes `properties`.
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
    /// The description that `kubectl explain` shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Arc<str>>,
    /// The allowed values.
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty")]
    pub enumeration: Vec<Value>,
    /// An example, for documentation.
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
    /// A format that the API server knows, such as `int32`, `date-time` or `byte`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Arc<str>>,
    /// Schema of the items of a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Arc<Schema>>,
    /// Maximum number of items in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u64>,
    /// Maximum number of characters in a string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u64>,
    /// Maximum number of keys in an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_properties: Option<u64>,
    /// Maximum of a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum: Option<Number>,
    /// Minimum number of items in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_items: Option<u64>,
    /// Minimum number of characters in a string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u64>,
    /// Minimum number of keys in an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_properties: Option<u64>,
    /// Minimum of a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<Number>,
    /// The number must be a multiple of this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiple_of: Option<Number>,
    /// A value validation that must not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not: Option<Arc<Schema>>,
    /// Allows `null`. Otherwise the API server drops a `null`.
    #[serde(skip_serializing_if = "is_false")]
    pub nullable: bool,
    /// Value validations of which exactly one must hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<Schema>,
    /// The regular expression (RE2) that a string must match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Arc<str>>,
    /// The fields of an object, by their names in JSON.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<Arc<str>, Arc<Schema>>,
    /// The names of required fields.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub required: BTreeSet<Arc<str>>,
    /// A short name, for documentation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Arc<str>>,
    /// The type. Absent only in value validations, and if `int_or_string` or
    /// `preserve_unknown_fields` is set.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub schema_type: Option<SchemaType>,
    /// The value is a complete Kubernetes object, with `apiVersion`, `kind` and `metadata`.
    #[serde(rename = "x-kubernetes-embedded-resource", skip_serializing_if = "is_false")]
    pub embedded_resource: bool,
    /// The value is an integer or a string.
    #[serde(rename = "x-kubernetes-int-or-string", skip_serializing_if = "is_false")]
    pub int_or_string: bool,
    /// The fields that identify an item in a list of type `map`, in source order.
    #[serde(rename = "x-kubernetes-list-map-keys", skip_serializing_if = "Vec::is_empty")]
    pub list_map_keys: Vec<String>,
    /// How server-side apply merges the list.
    #[serde(rename = "x-kubernetes-list-type", skip_serializing_if = "Option::is_none")]
    pub list_type: Option<ListType>,
    /// How server-side apply merges the object.
    #[serde(rename = "x-kubernetes-map-type", skip_serializing_if = "Option::is_none")]
    pub map_type: Option<MapType>,
    /// Fields that the schema does not define are preserved instead of pruned.
    #[serde(
        rename = "x-kubernetes-preserve-unknown-fields",
        skip_serializing_if = "is_false"
    )]
    pub preserve_unknown_fields: bool,
    /// CEL rules, in source order.
    #[serde(rename = "x-kubernetes-validations", skip_serializing_if = "Vec::is_empty")]
    pub validations: Vec<Cel>,
    /// The expected form of a map's keys, for messages.
    #[serde(skip)]
    pub keys: KeyForm,
    /// True if serde rejects unknown fields, for messages.
    #[serde(skip)]
    pub closed: Closed,
    /// True if serde fills in a value for the absent field that is not a default in the schema, for
    /// messages.
    #[serde(skip)]
    pub lacks_default: LacksDefault,
    /// True on the bare `metadata` of an embedded object if a marker allows the API server to drop
    /// its content, for messages.
    #[serde(skip)]
    pub drops_object_meta: DropsObjectMeta,
    /// True if its errors have been reported at its definition, so that they are not reported for
    /// every use.
    #[serde(skip)]
    pub is_reported: IsReported,
    /// `#[csv(…)]` on the field, for the ClusterServiceVersion.
    #[serde(skip)]
    pub descriptor: DescriptorSlot,
    /// The cached weight of the schema.
    #[serde(skip)]
    pub weight: WeightSlot,
}

impl Schema {
    /// Returns the noun for a value, as in "this value is …".
    pub(crate) fn noun(&self) -> &'static str {
        match self.schema_type {
            Some(schema_type) => schema_type.noun(),
            None if self.int_or_string => "an integer or a string",
            None => "of any type",
        }
    }
}

/// The descriptor of a field. It is not part of the manifest, so comparisons ignore it.
#[derive(Clone, Debug, Default)]
pub struct DescriptorSlot(pub Option<Arc<Descriptor>>);

impl PartialEq for DescriptorSlot {
    fn eq(&self, _: &DescriptorSlot) -> bool {
        true
    }
}

/// The form in which the program parses the keys of a map. `None` if it accepts any string. A
/// manifest cannot express it, so comparisons ignore it.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyForm(pub Option<&'static str>);

impl PartialEq for KeyForm {
    fn eq(&self, _: &KeyForm) -> bool {
        true
    }
}

/// Whether the program rejects fields that the schema does not define. The API server prunes them
/// either way, so comparisons ignore it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Closed(pub bool);

impl PartialEq for Closed {
    fn eq(&self, _: &Closed) -> bool {
        true
    }
}

/// Whether serde fills in a value for an absent field that the API server does not. A manifest
/// cannot express it, so comparisons ignore it.
#[derive(Clone, Copy, Debug, Default)]
pub struct LacksDefault(pub bool);

impl PartialEq for LacksDefault {
    fn eq(&self, _: &LacksDefault) -> bool {
        true
    }
}

/// Whether a marker allows metadata to be dropped, which is a warning otherwise. A manifest cannot
/// express it, so comparisons ignore it.
#[derive(Clone, Copy, Debug, Default)]
pub struct DropsObjectMeta(pub bool);

impl PartialEq for DropsObjectMeta {
    fn eq(&self, _: &DropsObjectMeta) -> bool {
        true
    }
}

/// Whether the errors in a schema have been reported. It is not part of the manifest, so
/// comparisons ignore it.
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

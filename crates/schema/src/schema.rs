//! The structural schema: everything allowed in `spec.versions[].schema.openAPIV3Schema`, and
//! nothing else.
//!
//! # Adding a key
//!
//! 1. Add a field to [`Schema`], in the order in which Go marshals the keys. The compiler then
//!    requires a line in [`Schema::each_key`].
//! 2. Add a row to [`KEYS`](crate::KEYS) in `keys/table.rs`. The argument of `validation(…)` and
//!    its reference, the checks of its subject, `root_schema`, alternatives, merging of sizes,
//!    `extend(…)` of schemars, advice about Go markers, imports of CRDs, API references, the bounds
//!    in `rbuilder diff` and `rbuilder adopt`, and Kubernetes' own types are all derived from it.
//! 3. Implement the key's effect on values, in the code that handles each key separately because
//!    they all differ.
//!
//! | what | where | needed for |
//! |---|---|---|
//! | validating values | `validate/`, `satisfy.rs` | constraints |
//! | validating objects, with the API server's messages | `values/`, `prune.rs`, `lists.rs`,
//! `correlate.rs` and `embedded.rs` in `crates/judge/src/` | constraints, structure |
//! | generating objects | `crates/testing/src/values.rs`, `crates/importer/src/sample.rs`, `witness/edges.rs` and `witness/make.rs` in `crates/compatibility/src/` | constraints |
//! | the API server's rules about the key | `structural.rs`, `root.rs`, `unfinished` in
//! `literal.rs` | keys with rules |
//! | merging it when two constraints apply at once | `apply/constrain.rs`, `apply/parts.rs`; flattened structs and variants: `object.rs`, `enumeration/` | constraints other than sizes |
//! | a separate marker instead of `validation(…)` | `crates/syntax/src/marker/mod.rs`, which lists
//! the steps | words, structure |
//! | classifying changes | `schema/` and `rules.rs` in `crates/compatibility/src/` | keys other than bounds and words |
//! | server-side apply on the fake server, for keys of lists, maps and unknown fields | `crates/apiserver/src/` | structure |
//! | the cost of CEL rules, and reading values in CEL | `types.rs`, `rules.rs`, `bounds.rs` and `evaluate/json.rs` in `crates/cel/src/` | sizes, structure |
//! | showing it in API references | `crates/products/src/api_docs/` | keys other than bounds and patterns |
//!
//! These lists of keys are intentional: a validator that looped over a table would not produce the
//! API server's messages in its order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::{
    Cel, Closed, DescriptorSlot, DropsObjectMeta, ExternalDocs, IsReported, KeyForm, LacksDefault, ListType,
    MapType, WeightSlot,
};

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
    /// Returns the name used in manifests.
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

    /// Returns the noun for a value of this type in messages, e.g. "a list".
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

/// A node of a structural schema (`JSONSchemaProps` in `apiextensions.k8s.io/v1`).
///
/// `$ref` and `uniqueItems` are missing, because the API server rejects both.
///
/// Parts and strings are shared, so a type that is used in many places has just one schema, and a
/// clone copies a single node. Call [`Arc::make_mut`] to change a part without affecting its other
/// users.
///
/// Fields are in alphabetical order, as in a manifest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Schema {
    /// The schema of the values of a map. Excludes `properties`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_properties: Option<Arc<Schema>>,
    /// Value validations that must all hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub all_of: Vec<Schema>,
    /// Value validations of which at least one must hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub any_of: Vec<Schema>,
    /// The value that the API server fills in for an absent field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The description shown by `kubectl explain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Arc<str>>,
    /// The allowed values.
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty")]
    pub enumeration: Vec<Value>,
    /// An example, for documentation only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<Value>,
    /// Excludes `maximum` itself. In OpenAPI 3.0, this is a boolean.
    #[serde(skip_serializing_if = "is_false")]
    pub exclusive_maximum: bool,
    /// Excludes `minimum` itself. In OpenAPI 3.0, this is a boolean.
    #[serde(skip_serializing_if = "is_false")]
    pub exclusive_minimum: bool,
    /// A link to further documentation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_docs: Option<Box<ExternalDocs>>,
    /// A format known to the API server, e.g. `int32`, `date-time` or `byte`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Arc<str>>,
    /// The schema of the items of a list.
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
    /// The largest allowed number.
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
    /// The smallest allowed number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<Number>,
    /// Numbers must be a multiple of this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiple_of: Option<Number>,
    /// A value validation that must not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not: Option<Arc<Schema>>,
    /// Allows `null`. Without this, the API server drops fields whose value is `null`.
    #[serde(skip_serializing_if = "is_false")]
    pub nullable: bool,
    /// Value validations of which exactly one must hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<Schema>,
    /// The regular expression (RE2) that strings must match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Arc<str>>,
    /// The fields of an object, by JSON name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<Arc<str>, Arc<Schema>>,
    /// The names of required fields.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub required: BTreeSet<Arc<str>>,
    /// A short name, for documentation only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Arc<str>>,
    /// The type. Only absent in value validations, or if `int_or_string` or
    /// `preserve_unknown_fields` is set.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub schema_type: Option<SchemaType>,
    /// The value is an entire Kubernetes object with `apiVersion`, `kind` and `metadata`.
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
    /// The API server keeps fields not defined in the schema instead of pruning them.
    #[serde(
        rename = "x-kubernetes-preserve-unknown-fields",
        skip_serializing_if = "is_false"
    )]
    pub preserve_unknown_fields: bool,
    /// CEL rules, in source order.
    #[serde(rename = "x-kubernetes-validations", skip_serializing_if = "Vec::is_empty")]
    pub validations: Vec<Cel>,
    /// The format of map keys. Only used in messages.
    #[serde(skip)]
    pub keys: KeyForm,
    /// True if serde rejects unknown fields. Only used in messages.
    #[serde(skip)]
    pub closed: Closed,
    /// True if serde fills in a value for the absent field that isn't a default in the schema. Only
    /// used in messages.
    #[serde(skip)]
    pub lacks_default: LacksDefault,
    /// True for the bare `metadata` of an embedded object if a marker allows the API server to drop
    /// its content. Only used in messages.
    #[serde(skip)]
    pub drops_object_meta: DropsObjectMeta,
    /// True if the errors in this schema were reported at its definition, so that they aren't
    /// reported again at each use.
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
    /// Calls `look` with each key of the schema and its value, in manifest order.
    pub fn each_key<'s>(&'s self, mut look: impl FnMut(&'static str, KeyValue<'s>)) {
        // Destructured so that a new field can't be forgotten.
        let Schema {
            additional_properties,
            all_of,
            any_of,
            default,
            description,
            enumeration,
            example,
            exclusive_maximum,
            exclusive_minimum,
            external_docs,
            format,
            items,
            max_items,
            max_length,
            max_properties,
            maximum,
            min_items,
            min_length,
            min_properties,
            minimum,
            multiple_of,
            not,
            nullable,
            one_of,
            pattern,
            properties,
            required,
            title,
            schema_type,
            embedded_resource,
            int_or_string,
            list_map_keys,
            list_type,
            map_type,
            preserve_unknown_fields,
            validations,
            keys: _,
            lacks_default: _,
            descriptor: _,
            drops_object_meta: _,
            is_reported: _,
            closed: _,
            weight: _,
        } = self;
        let mut each = |key, value: Option<KeyValue<'s>>| {
            if let Some(value) = value {
                look(key, value);
            }
        };
        each("additionalProperties", part(additional_properties));
        each("allOf", filled(all_of, KeyValue::Parts));
        each("anyOf", filled(any_of, KeyValue::Parts));
        each("default", default.as_ref().map(KeyValue::Value));
        each("description", text(description));
        each("enum", filled(enumeration, KeyValue::Values));
        each("example", example.as_ref().map(KeyValue::Value));
        each("exclusiveMaximum", flag(*exclusive_maximum));
        each("exclusiveMinimum", flag(*exclusive_minimum));
        each("externalDocs", external_docs.as_deref().map(KeyValue::Docs));
        each("format", text(format));
        each("items", part(items));
        each("maxItems", max_items.map(KeyValue::Count));
        each("maxLength", max_length.map(KeyValue::Count));
        each("maxProperties", max_properties.map(KeyValue::Count));
        each("maximum", maximum.as_ref().map(KeyValue::Number));
        each("minItems", min_items.map(KeyValue::Count));
        each("minLength", min_length.map(KeyValue::Count));
        each("minProperties", min_properties.map(KeyValue::Count));
        each("minimum", minimum.as_ref().map(KeyValue::Number));
        each("multipleOf", multiple_of.as_ref().map(KeyValue::Number));
        each("not", part(not));
        each("nullable", flag(*nullable));
        each("oneOf", filled(one_of, KeyValue::Parts));
        each("pattern", text(pattern));
        each(
            "properties",
            (!properties.is_empty()).then_some(KeyValue::Fields(properties)),
        );
        each(
            "required",
            (!required.is_empty()).then_some(KeyValue::Names(required)),
        );
        each("title", text(title));
        each("type", schema_type.map(|value| KeyValue::Word(value.as_str())));
        each("x-kubernetes-embedded-resource", flag(*embedded_resource));
        each("x-kubernetes-int-or-string", flag(*int_or_string));
        each(
            "x-kubernetes-list-map-keys",
            filled(list_map_keys, KeyValue::Texts),
        );
        each(
            "x-kubernetes-list-type",
            list_type.map(|value| KeyValue::Word(value.as_str())),
        );
        each(
            "x-kubernetes-map-type",
            map_type.map(|value| KeyValue::Word(value.as_str())),
        );
        each(
            "x-kubernetes-preserve-unknown-fields",
            flag(*preserve_unknown_fields),
        );
        each("x-kubernetes-validations", filled(validations, KeyValue::Rules));
    }

    /// Returns the noun after "this value is …" in a message.
    pub(crate) fn noun(&self) -> &'static str {
        match self.schema_type {
            Some(schema_type) => schema_type.noun(),
            None if self.int_or_string => "an integer or a string",
            None => "of any type",
        }
    }
}

/// The value of a schema key.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // like `Form`
pub enum KeyValue<'s> {
    Count(u64),
    Number(&'s Number),
    /// `true`.
    Flag,
    Text(&'s str),
    Texts(&'s [String]),
    /// One of a fixed set of strings, which manifests never quote.
    Word(&'static str),
    Value(&'s Value),
    Values(&'s [Value]),
    Part(&'s Schema),
    Parts(&'s [Schema]),
    Fields(&'s BTreeMap<Arc<str>, Arc<Schema>>),
    Names(&'s BTreeSet<Arc<str>>),
    Docs(&'s ExternalDocs),
    Rules(&'s [Cel]),
}

fn part(part: &Option<Arc<Schema>>) -> Option<KeyValue<'_>> {
    part.as_deref().map(KeyValue::Part)
}

fn text(text: &Option<Arc<str>>) -> Option<KeyValue<'_>> {
    text.as_deref().map(KeyValue::Text)
}

fn flag(is_set: bool) -> Option<KeyValue<'static>> {
    is_set.then_some(KeyValue::Flag)
}

fn filled<'s, T>(list: &'s [T], value: fn(&'s [T]) -> KeyValue<'s>) -> Option<KeyValue<'s>> {
    (!list.is_empty()).then(|| value(list))
}

fn is_false(value: &bool) -> bool {
    !*value
}

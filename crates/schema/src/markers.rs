//! Markers as data, shared by both front ends.

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::origin::Origin;
use crate::values::{Cel, ListType, MapType};
use crate::{Descriptor, Schema};

/// The arguments of `#[kube(…)]` and `#[crd(…)]` on a value: a field, a type, or the items of a
/// list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Markers {
    /// The keys set by `validation(…)`, `title`, `description`, `example` and `external_docs`, as a
    /// schema with no other keys. Constraints tighten those of the type, whereas texts replace
    /// those of the type. An empty description removes the type's description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stated: Option<Box<Schema>>,
    /// The minimum number of characters, items or keys. schemars' `length` applies to whichever of
    /// them fits the type, which is only known once the schema is finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_size: Option<u64>,
    /// The maximum number of characters, items or keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_size: Option<u64>,
    /// `items(…)`: the same arguments, for the items of a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Box<Markers>>,
    /// `keys(…)`: the same arguments, for the keys of a map. Converted to CEL rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Box<Markers>>,
    /// `values(…)`: the same arguments, for the values of a map.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Box<Markers>>,
    /// `cel(…)` and `validation = "…"`, in source order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cel: Vec<Cel>,
    /// `exactly_one_of(…)`, `at_most_one_of(…)` and `at_least_one_of(…)`, in source order. Fields
    /// are Rust identifiers, which [`assemble`](crate::assemble) replaces with JSON names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<OneOf>,
    /// `immutable`.
    #[serde(skip_serializing_if = "is_default")]
    pub immutable: bool,
    /// `default = …`. `null` removes the default of the type; the API server doesn't support `null`
    /// as a default anyway.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "keep_null")]
    pub default: Option<Value>,
    /// `optional` is `Some(true)`, and `required` is `Some(false)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
    /// `nullable`.
    #[serde(skip_serializing_if = "is_default")]
    pub nullable: bool,
    /// `list_type`, `list_map_keys`, `map_type` and `struct_type`.
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
    /// `schemaless`: ignores the Rust type and uses only the markers and the description.
    #[serde(skip_serializing_if = "is_default")]
    pub schemaless: bool,
    /// `schema = { … }`: replaces the schema of the Rust type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Box<Schema>>,
    /// `embedded_object_meta`: keeps the metadata of objects in the value. With `= false`, it may
    /// be dropped without a warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedded_object_meta: Option<bool>,
    /// `max_description_length = …`, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_description_length: Option<usize>,
    /// `#[csv(…)]` on a field. The derive doesn't embed it in the program.
    #[serde(skip)]
    pub descriptor: Option<Arc<Descriptor>>,
    /// The location of the marker that adds rules (`immutable`, `keys(…)`, `exactly_one_of(…)`).
    #[serde(skip)]
    pub origin: Origin,
}

impl Markers {
    /// No markers. A shared value, because nearly everything is compared with it.
    pub(crate) fn none() -> &'static Markers {
        static NONE: LazyLock<Markers> = LazyLock::new(Markers::default);
        &NONE
    }

    /// Returns the keys set by markers.
    pub fn stated(&self) -> &Schema {
        static NONE: LazyLock<Schema> = LazyLock::new(Schema::default);
        self.stated.as_deref().unwrap_or(&NONE)
    }

    /// Returns the keys set by markers, for adding another one.
    pub fn stated_mut(&mut self) -> &mut Schema {
        self.stated.get_or_insert_default()
    }

    /// Merges the markers of a newtype with those of its field. The rules of both are kept; for
    /// everything else, `self` wins over `other`.
    #[must_use]
    pub fn or(self, other: Markers) -> Markers {
        // List every field, so that a new marker doesn't compile until it's merged here.
        Markers {
            stated: merge_stated(self.stated, other.stated),
            min_size: self.min_size.or(other.min_size),
            max_size: self.max_size.or(other.max_size),
            items: self.items.or(other.items),
            keys: self.keys.or(other.keys),
            values: self.values.or(other.values),
            cel: [self.cel, other.cel].concat(),
            one_of: [self.one_of, other.one_of].concat(),
            immutable: self.immutable || other.immutable,
            default: self.default.or(other.default),
            optional: self.optional.or(other.optional),
            nullable: self.nullable || other.nullable,
            topology: self.topology.or(other.topology),
            embedded_resource: self.embedded_resource || other.embedded_resource,
            preserve_unknown_fields: self.preserve_unknown_fields || other.preserve_unknown_fields,
            int_or_string: self.int_or_string || other.int_or_string,
            schemaless: self.schemaless || other.schemaless,
            schema: self.schema.or(other.schema),
            embedded_object_meta: self.embedded_object_meta.or(other.embedded_object_meta),
            max_description_length: self.max_description_length.or(other.max_description_length),
            descriptor: self.descriptor.or(other.descriptor),
            origin: self.origin.or(other.origin),
        }
    }
}

fn merge_stated(own: Option<Box<Schema>>, other: Option<Box<Schema>>) -> Option<Box<Schema>> {
    match (own, other) {
        (Some(own), Some(mut merged)) => {
            merged.overlay(&own);
            Some(merged)
        }
        (own, other) => own.or(other),
    }
}

impl Topology {
    fn or(self, other: Topology) -> Topology {
        Topology {
            list_type: self.list_type.or(other.list_type),
            list_map_keys: first_filled(self.list_map_keys, other.list_map_keys),
            map_type: self.map_type.or(other.map_type),
        }
    }
}

fn first_filled<T>(first: Vec<T>, second: Vec<T>) -> Vec<T> {
    if first.is_empty() { second } else { first }
}

/// A rule on how many of several fields may be set. Fields are Rust identifiers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum OneOf {
    /// `at_most_one_of(a, b)`.
    AtMost(Vec<String>),
    /// `exactly_one_of(a, b)`.
    Exactly(Vec<String>),
    /// `at_least_one_of(a, b)`.
    AtLeast(Vec<String>),
}

/// How server-side apply merges a list or an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Topology {
    /// `list_type = "map" | "set" | "atomic"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list_type: Option<ListType>,
    /// `list_map_keys = ["…"]`, with JSON field names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub list_map_keys: Vec<String>,
    /// `map_type` on a map, or `struct_type` on a struct.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map_type: Option<MapType>,
}

/// Keeps an explicit `null`, which serde would otherwise read as `None`.
fn keep_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

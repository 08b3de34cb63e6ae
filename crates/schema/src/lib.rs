//! The CRD schema language.
//!
//! A [`Container`] describes how serde serializes a struct or an enum, with a slot for the schema
//! of every type that it mentions. [`assemble`] combines a container and the schemas for its slots
//! into a structural [`Schema`]. Both front ends of rbuilder use this: the static generator, which
//! finds the types in source text, and `derive(CrdSchema)`, for which the compiler does so. The
//! *meaning* of a marker is defined in this crate only, so that the front ends can't disagree.
//!
//! This crate doesn't parse Rust, resolve names or perform I/O: `rbuilder-syntax` reads the markers
//! and serde's attributes, and `rbuilder-generator` finds the types.

mod absent;
mod address;
mod apply;
mod assemble;
mod build;
mod cel_name;
mod container;
mod csv;
mod enumeration;
mod field_path;
mod format;
mod idle;
mod import;
mod keys;
mod known;
#[cfg(feature = "schemars")]
mod kube_quirks;
mod leaves;
mod literal;
mod markers;
mod notes;
mod number;
mod object;
mod origin;
#[cfg(feature = "schemars")]
#[doc(hidden)]
pub mod private;
mod refused;
mod rework;
mod root;
mod rules;
mod satisfy;
mod schema;
mod site;
mod structural;
#[cfg(feature = "schemars")]
mod type_name;
mod validate;
mod values;
mod variant_docs;
mod weight;
mod weight_slot;

pub use apply::{check_markers, with_bounds_of_parts};
pub use assemble::{Assembled, assemble, assemble_with_defaults};
pub use build::{
    any, any_object, array_of, array_of_length, int_or_string, map_of, of_type, or_null, set_of,
};
pub use cel_name::{cel_name, is_cel_word};
pub use container::{Container, Content, Field, Presence, Shape, Slot, Tagging, Variant};
pub use csv::{CsvKind, CsvMarkers, CsvResource, Descriptor, RequiredCrd, fits_descriptor_path};
pub use enumeration::{Unchecked, find_unchecked};
pub use field_path::{PathEnd, find_field, find_near_field, is_open, items_of, member};
pub use format::{FORMATS, accepts_format, example_of_format, format_type};
pub use idle::{IdleKey, remove_idle_keys};
pub use import::{mark_structural, read_json_schema};
pub use keys::{Access, Form, KEYS, Key, Role, Root, Side, SizePair, Subject};
pub use known::{is_known, is_quantity, known};
#[cfg(feature = "schemars")]
pub use kube_quirks::undo_kube_quirks;
pub use literal::{SchemaError, check_literal, misplaced_keys};
pub use markers::{Markers, OneOf, Topology};
pub use notes::{Closed, DescriptorSlot, DropsObjectMeta, IsReported, KeyForm, LacksDefault};
pub use number::compare_numbers;
pub use origin::Origin;
#[cfg(feature = "schemars")]
#[doc(hidden)]
pub use private as __private;
pub use refused::{ESCAPE, RECURSION, refused, refused_tuple};
pub use rework::{
    dropped_object_meta, embedded_object_meta, fill_object_meta, is_bare, is_dropped_meta, keep_object_meta,
    keep_unmarked_object_meta, shorten_descriptions, whole_object_meta,
};
pub use root::{ObjectParts, check_root};
pub use rules::{find_repeated_rule, unite_rules};
pub use schema::{KeyValue, Schema, SchemaType};
pub use site::{MarkerName, Part, Site};
pub use structural::check_structural;
pub use validate::{check_created, check_default, is_same as is_same_value, validate};
pub use values::{Cel, ExternalDocs, ListType, MapType, Reason};
pub use weight_slot::{Weight, WeightSlot};

//! The CRD schema language.
//!
//! A [`Container`] says how serde writes one struct or enum, with a slot for the schema of every type it
//! mentions; [`assemble`] turns it and the slots' schemas into one structural [`Schema`]. Both doors of
//! rbuilder go through that call: the static generator with types it resolved in source text, and
//! `derive(CrdSchema)` with types the compiler resolved. What a marker *means* is written here once.
//!
//! This crate knows no Rust syntax, resolves no names and does no I/O. Reading markers and serde attributes
//! is `rbuilder-syntax`; finding types is `rbuilder-generator`.

mod assemble;
mod container;
mod known;
mod markers;
mod number;
mod schema;

pub use assemble::{Problem, Site, assemble};
pub use container::{Container, Content, Field, Presence, Shape, Slot, Tagging, Variant};
pub use known::known;
pub use markers::{Cel, ExternalDocs, ListType, MapType, Markers, OneOf, Reason, Topology, Validation};
pub use number::compare_numbers;
pub use schema::{Schema, SchemaType};

//! The binary format of an archive, shared by the reader and the writer.
//!
//! All numbers are little endian. A *varint* has seven bits per byte, least significant first. A
//! *text* is a varint length followed by that many bytes.
//!
//! ```text
//! magic       8 bytes
//! minors      u8 count, then a u8 each
//! modules     table of names: k8s-openapi's modules below the crate, sorted
//! types       table of names: in the order of modules, sorted within one
//! firsts      u16 for each module, and one more: index of its first type
//! records     u16 for each type and minor: its record, or NONE
//! nodes       blocks of records: a varint length and a node each
//! texts       blocks of texts: descriptions
//! ```
//! A *table of names* is a u16 count, a u16 offset for each name and one more, and the names.
//! *Blocks* are a u16 count, an entry for each block (u32 number of its first item, u32 offset, u32
//! inflated length), a u32 end, and the deflated blocks. A block contains types of the same module,
//! which are often looked up together.
//!
//! A *node* is a varint of the flags below, followed by the data for each flag, in the order of the
//! flags. Types are referenced by their index in the table of types, and descriptions by their
//! index in the texts.
//!
//! We could store nodes as plain JSON schemas instead. With the types of all five minors, the
//! archive would grow from 263 to 440 kB, because every minor repeats the descriptions of a type
//! that changed in a single word. The schema of `PodTemplateSpec` would cost 15.2 instead of 10.1
//! million instructions.

pub(crate) const MAGIC: &[u8; 8] = b"rbk8s\0\0\x01";
pub(crate) const NONE: u16 = u16::MAX;
/// Size at which a block is closed, in bytes before compression.
#[cfg(feature = "write")]
pub(crate) const BLOCK: usize = 16 * 1024;

/// Index of the type in [`TYPES`] plus one, or zero.
pub(crate) const TYPE_MASK: u32 = 0b111;
pub(crate) const REQUIRED: u32 = 1 << 3;
pub(crate) const REFERENCE: u32 = 1 << 4;
pub(crate) const DESCRIPTION: u32 = 1 << 5;
pub(crate) const FORMAT: u32 = 1 << 6;
pub(crate) const DEFAULT: u32 = 1 << 7;
/// Index of `x-kubernetes-list-type` in [`LIST_TYPES`] plus one.
pub(crate) const LIST_TYPE_SHIFT: u32 = 8;
/// Index of `x-kubernetes-map-type` in [`MAP_TYPES`] plus one.
pub(crate) const MAP_TYPE_SHIFT: u32 = 10;
pub(crate) const LIST_MAP_KEYS: u32 = 1 << 12;
/// Keywords that are too rare for a flag, as a JSON schema.
pub(crate) const REST: u32 = 1 << 13;
pub(crate) const ITEMS: u32 = 1 << 14;
pub(crate) const VALUES: u32 = 1 << 15;
pub(crate) const PROPERTIES: u32 = 1 << 16;

use rbuilder_schema::{ListType, MapType, SchemaType};

pub(crate) const TYPES: [SchemaType; 6] = [
    SchemaType::Array,
    SchemaType::Boolean,
    SchemaType::Integer,
    SchemaType::Number,
    SchemaType::Object,
    SchemaType::String,
];
pub(crate) const LIST_TYPES: [ListType; 3] = [ListType::Atomic, ListType::Set, ListType::Map];
pub(crate) const MAP_TYPES: [MapType; 2] = [MapType::Atomic, MapType::Granular];

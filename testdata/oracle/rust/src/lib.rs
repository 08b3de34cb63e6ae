//! The APIs of `../go/api`, in Rust: type for type, field for field and word for word.
//!
//! `generator/tests/oracle.rs` compares the manifests of the two; a difference that is meant is a row of the
//! table there. A module is a package over there. Paths start at `self` or `super`, since the tests compile
//! this file as a module of their own.

pub mod bounds;
pub mod collections;
pub mod docs;
pub mod enums;
pub mod items;
pub mod kubernetes;
pub mod named;
pub mod open;
pub mod presence;
pub mod rbac;
pub mod rules;
pub mod scalars;
pub mod shared;
pub mod structs;
pub mod topology;
pub mod values;
pub mod versions;
pub mod webhook;
pub mod workloads;

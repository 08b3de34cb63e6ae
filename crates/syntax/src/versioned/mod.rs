//! stackable-versioned's `#[versioned]`, which generates a module for each version of an API.
//!
//! The source describes the newest version of each type. Actions on fields and variants specify how
//! earlier versions differ: `added(since = "…")`, `changed(since = "…", from_name = "…")` and
//! `deprecated(since = "…")`. [`read_versioned_module`] reads a module's versions, and `at_version`
//! converts an item to what the macro generates for a version.

mod actions;
mod item;
mod module;

pub(crate) use item::at_version;
pub use module::{ModuleVersion, VersionedModule, read_versioned_item, read_versioned_module};

/// The name of the attribute.
pub(crate) const VERSIONED: &str = "versioned";

//! stackable-versioned's `#[versioned]` generates a module for each version of an API.
//!
//! The source describes the newest version of each type. Actions on fields and variants
//! (`added(since = "…")`, `changed(since = "…", from_name = "…")` and `deprecated(since = "…")`)
//! tell how earlier versions differ. [`read_versioned_module`] reads the versions of a module, and
//! `at_version` converts an item to what the macro generates for a version.

mod actions;
mod item;
mod module;

pub(crate) use item::at_version;
pub use module::{ModuleVersion, VersionedModule, read_versioned_item, read_versioned_module};

pub(crate) const VERSIONED: &str = "versioned";

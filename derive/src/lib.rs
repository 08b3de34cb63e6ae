//! The procedural macros of rbuilder; the `rbuilder` crate re-exports and documents them.

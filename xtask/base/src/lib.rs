//! Helpers used by both xtask and the tour: running programs, finding files in the repository, and
//! parsing the pages of docs/.
//!
//! Note that this crate must be compiled before `cargo tour` (the first command in README.md) can
//! print anything. Please keep the number of dependencies small.

#![allow(missing_docs)] // the fields of page steps are self-explanatory

pub mod page;
pub mod repo;
pub mod sh;

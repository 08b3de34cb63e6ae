//! The parts of xtask that the tour shares: running programs, paths in the repository, and pages of
//! docs/.
//!
//! This crate is compiled before the first command of README.md prints anything, so it has almost
//! no dependencies.

#![allow(missing_docs)] // the fields of page steps are self-explanatory

pub mod page;
pub mod repo;
pub mod sh;

//! The parts of the automation that the tour shares: running programs, places in the repository, pages of docs/.
//!
//! Everything here is compiled before the first command of README.md says a word, so it depends on almost nothing.

#![allow(missing_docs)] // fields of the steps of a page are what they are called

pub mod page;
pub mod repo;
pub mod sh;

//! Operator projects on disk.
//!
//! A command reads a project through a [`tree::Tree`], collects its changes in a [`plan::Plan`],
//! and then shows, compares or applies the plan. Only [`plan::apply`] writes and only [`tree`]
//! reads; both keep directories open. File contents come from two modules: [`render`] creates a
//! scaffold from PROJECT alone, and [`edit`] makes minimal changes to files that users own.
//!
//! The crate knows nothing about flags or the command's messages. Modules only depend on modules
//! above them in this list:
//!
//! | module | responsibility |
//! |---|---|
//! | [`color`], [`conflict`], [`count`], [`hash`], [`labels`], [`line_ends`], [`paths`], [`posix`]| texts |
//! | [`programs`] | finding and querying other programs |
//! | [`disk`] | open directories that follow no links |
//! | [`tree`] | reading a project |
//! | [`overlay`] | reading kustomizations |
//! | [`library`] | where a project gets the library from |
//! | [`project`] | the PROJECT file |
//! | [`edit`] | edits of files that users own |
//! | [`plan`] | changes of files as a value, and applying them |
//! | [`render`] | PROJECT to all scaffolded files |

pub mod color;
pub mod conflict;
pub mod count;
pub mod disk;
pub mod edit;
pub mod hash;
pub mod labels;
pub mod library;
pub mod line_ends;
pub mod overlay;
pub mod paths;
pub mod plan;
pub mod posix;
pub mod programs;
pub mod project;
pub mod render;
pub mod tree;

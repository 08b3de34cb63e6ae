//! Rust source as rustfmt writes it, with its default settings.
//!
//! rustfmt is not run: it may be absent, and the files of a large project would take it seconds. `attribute` follows its
//! rules for the few forms that are printed here, and `cargo xtask import` asks rustfmt itself about thousands of them.

mod attribute;
mod csv;
mod markers;
mod types;
mod value;

pub(crate) use attribute::{Meta, print_attribute};
pub(crate) use csv::{csv_args, kind_csv_args};
pub(crate) use markers::{marker_args, rule_arg};
pub(crate) use types::{TypeText, print_typed};
pub(crate) use value::{literal, string_literal};

/// The width of a line.
pub(crate) const WIDTH: usize = 100;

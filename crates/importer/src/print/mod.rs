//! Prints Rust source the way rustfmt lays it out by default.
//!
//! We don't run rustfmt itself, because it may not be installed, and would take seconds for the
//! files of a large project. prettyplease would be one more dependency of the command, and would
//! have to parse what we have just printed. Since we only print a few forms, `attribute` has the
//! rules for these. `cargo xtask import` compares thousands of attributes with what rustfmt makes
//! of them.

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

pub(crate) const WIDTH: usize = 100;

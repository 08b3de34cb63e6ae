//! Prints Rust source in rustfmt's default format.
//!
//! rustfmt itself may not be installed, and would take seconds for the files of a large project.
//! prettyplease would be another dependency, and would have to parse what we just printed. There
//! are only a few forms to print, whose rules are in `attribute`. `cargo xtask import` compares
//! thousands of attributes with rustfmt's output.

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

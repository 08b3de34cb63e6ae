//! Prints Rust source in the layout of rustfmt's defaults.
//!
//! We do not run rustfmt: it may not be installed, and it would take seconds for the files of a
//! large project. prettyplease would be another dependency of the command, and would parse what was
//! just printed. Instead, `attribute` implements the rules for the few forms that we print.
//! `cargo xtask import` compares thousands of attributes with rustfmt.

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

/// Maximum width of a line.
pub(crate) const WIDTH: usize = 100;

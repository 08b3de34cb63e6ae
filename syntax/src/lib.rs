//! Rust as written, read into a model of types and markers.
//!
//! `derive` and the static generator call the same functions here on one item at a time, so that they
//! accept the same items and complain in the same words. Nothing in this crate resolves a path to another
//! item or opens a file: rules that need a second item live in `rbuilder-generator`.

mod diagnostic;
mod model;
mod span;

pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use model::{
    CustomResource, PrintColumn, RbacRule, Scale, Type, TypeKind, TypeRef,
};
pub use span::{SpanId, Spans};

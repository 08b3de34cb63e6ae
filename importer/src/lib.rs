//! CustomResourceDefinitions to Rust types that lose nothing: `rbuilder manifests` makes the same definitions of them.
//!
//! ```text
//! documents ─▶ definitions ─▶ shapes, one type each ─▶ names ─▶ markers ─▶ source text
//! ```
//!
//! The markers of a field are found by asking the builder of `rbuilder-schema`, which makes the manifests, for the schema
//! that it would have; where it is another than the one in the definition, the schema itself is written into the source.
//! A part that cannot be kept even so is a warning, one for each cause.
//!
//! This crate reads no file: documents come in as JSON values, source goes out as text.

mod classes;
mod clean;
mod definition;
mod descriptors;
mod file;
mod fit;
mod kind;
mod layout;
mod lints;
mod naming;
mod print;
mod recognize;
mod repeated;
mod sample;
mod shared_file;
mod sharing;
mod single;
mod source;
mod structs;
mod v1beta1;
mod words;

use serde_json::Value;

pub use definition::is_definition;
pub use layout::{Imported, ModuleFolder, SourceFile};
pub use rbuilder_catalogue::Minor;
pub use single::{ImportedKind, ImportedVersion, import_kind};
pub use v1beta1::convert_definition;

/// An error or a warning about a place in a definition: its name, the version, and the path of a field.
pub type Diagnostic = rbuilder_diagnostic::Diagnostic<String>;

/// Writes the types of all versions of the definitions. Documents that are not definitions are passed over.
///
/// `minor` is the Kubernetes whose types k8s-openapi has in the program. Types that several files have are written once if
/// `shares` is set, in a module `shared` of the folder above them; otherwise each file stands alone.
pub fn import_definitions(documents: &[Value], minor: Minor, shares: bool) -> Imported {
    layout::import(documents, minor, shares)
}

//! Converts CustomResourceDefinitions to Rust types without loss: `rbuilder manifests` generates
//! the same definitions from them.
//!
//! ```text
//! documents ─▶ definitions ─▶ shapes, one type each ─▶ names ─▶ markers ─▶ source text
//! ```
//!
//! To find a field's markers, the importer runs the schema builder of `rbuilder-schema`, which also
//! creates the manifests. If the result differs from the definition, the schema is written out in
//! source. If even that cannot preserve something, there is a warning for each cause.
//!
//! This crate performs no I/O: it takes documents as JSON values and returns source text.

mod classes;
mod clean;
mod definition;
mod descriptors;
mod file;
mod fit;
mod interner;
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
pub use layout::{Definitions, Imported, ModuleFolder, SourceFile};
pub use rbuilder_catalogue::Minor;
pub use single::{ImportedKind, ImportedVersion, import_kind};
pub use v1beta1::convert_definition;

/// An error or a warning about a place in a definition: its name, the version, and a field path.
pub type Diagnostic = rbuilder_diagnostic::Diagnostic<String>;

/// Writes the types of all versions of the definitions. Ignores documents that are not definitions.
///
/// `minor` is the Kubernetes version for which the program enables k8s-openapi. If `shares` is set,
/// a type needed in several files is written once, in a module `shared` in their common folder.
/// Otherwise, every file is self-contained.
pub fn import_definitions(documents: &[Value], minor: Minor, shares: bool) -> Imported {
    let mut definitions = Definitions::default();
    for document in documents {
        definitions.add(document.clone());
    }
    definitions.import(minor, shares)
}

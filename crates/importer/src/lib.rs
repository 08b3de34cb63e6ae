//! Converts CustomResourceDefinitions to Rust types without loss: `rbuilder manifests` generates
//! the same definitions from them.
//!
//! ```text
//! documents ─▶ definitions ─▶ shapes, one type each ─▶ names ─▶ markers ─▶ source text
//! ```
//!
//! To find the markers of a field, we run the schema builder of `rbuilder-schema`, which also
//! generates the manifests. If its result differs from the definition, the schema is written out in
//! source. If even that is lossy, there is a warning for each cause.
//!
//! This crate does no I/O. It takes documents as JSON values and returns source text.

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

pub use layout::{Definitions, Imported, ModuleFolder, SourceFile};
pub use rbuilder_catalogue::Minor;
pub use single::{ImportedKind, ImportedVersion, import_kind};
pub use v1beta1::convert_definition;

/// An error or warning about a place in a definition: its name, the version, and the path of a
/// field.
pub type Diagnostic = rbuilder_diagnostic::Diagnostic<String>;

/// Writes the types of all versions of the definitions. Other documents are ignored.
///
/// `minor` is the Kubernetes version that the program enables in k8s-openapi. With `shares`, a type
/// needed by several files is written only once, in a module `shared` of their common folder.
/// Otherwise, every file is self-contained.
pub fn import_definitions(documents: &[Value], minor: Minor, shares: bool) -> Imported {
    let mut definitions = Definitions::default();
    for document in documents {
        definitions.add(document.clone());
    }
    definitions.import(minor, shares)
}

//! The schemas of Kubernetes' own types: a table from k8s-openapi's Rust paths
//! (`k8s_openapi::api::core::v1::PodSpec`) to structural schemas, for every Kubernetes minor that k8s-openapi
//! supports.
//!
//! The table is made by `cargo xtask catalogue` from the OpenAPI v3 documents that kube-apiserver serves (types, list
//! types and their keys, map types, requiredness) and from the Go source they come from (line breaks of descriptions,
//! and the defaults and constraints that are written as markers). It is embedded, compressed: a lookup inflates the few
//! blocks its types are in.
//!
//! Types whose wire form is not what their fields say (`Quantity`, `IntOrString`, `Time`, …) are not in the
//! table: [`rbuilder_schema::known`] knows them, and the table refers to it. Finding out which type and which minor a
//! program means is left to the generator and to the library.

mod archive;
mod catalogue;
#[cfg(feature = "k8s-openapi")]
mod compiled;
mod format;
mod minor;
pub mod versions;
#[cfg(feature = "write")]
pub mod write;

pub use catalogue::Catalogue;
#[cfg(feature = "k8s-openapi")]
pub use compiled::KUBERNETES;
pub use minor::Minor;

/// The archive that `cargo xtask catalogue` writes.
static DATA: &[u8] = include_bytes!("../data/kubernetes.bin");

//! The schemas of Kubernetes types: a table from the Rust paths of k8s-openapi
//! (`k8s_openapi::api::core::v1::PodSpec`) to structural schemas, for every Kubernetes minor that
//! k8s-openapi supports.
//!
//! `cargo xtask catalogue` creates the table. Types, list types and their keys, map types and
//! required fields come from the OpenAPI v3 documents of kube-apiserver. Line breaks in
//! descriptions, and the defaults and constraints in markers, come from its Go source. The table is
//! embedded and compressed. A lookup only inflates the blocks that contain its types.
//!
//! The table does not contain types that do not serialize as their fields (`Quantity`,
//! `IntOrString`, `Time`, …). It refers to [`rbuilder_schema::known`] for them. The generator and
//! the library determine which type and which minor a program uses.

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

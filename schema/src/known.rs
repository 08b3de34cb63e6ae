//! Leaf types whose schema is fixed: the primitives, std's containers of text, and the Kubernetes types
//! that are not what their fields say (`Quantity`, `IntOrString`, `Time`, …).

use crate::Schema;

/// The schema of a leaf type by its full Rust path (`std::string::String`, `i32`,
/// `k8s_openapi::apimachinery::pkg::api::resource::Quantity`), or nothing when the path is not known here.
pub fn known(path: &str) -> Option<Schema> {
    let _ = path;
    None
}

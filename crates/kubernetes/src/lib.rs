//! Rules that Kubernetes defines, each in one function.
//!
//! Everything here is a pure function of text and JSON values. It answers as kube-apiserver does,
//! including for input that the server accepts although nobody should write it.

pub mod crd;
pub mod go;
pub mod gvk;
pub mod ip;
pub mod json_path;
pub mod names;
pub mod patch;
pub mod quantity;
pub mod rbac;
pub mod selector;
pub mod time;
pub mod version;

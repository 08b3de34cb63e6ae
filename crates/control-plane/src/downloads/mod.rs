//! Binaries for test environments: etcd, kube-apiserver and kubectl, as published by the Kubernetes
//! project.
//!
//! An [index] lists archives with their checksums. The [store](crate::Store) on disk has a
//! directory for each version and platform. Both use the layout of `setup-envtest`, so that either
//! program finds what the other one installed.
//!
//! Installations are atomic: a release appears either completely or not at all. Error messages are
//! written for `rbuilder envtest` and mention its flags.

pub mod archive;
pub mod download;
pub mod index;
pub mod selector;
pub mod store;

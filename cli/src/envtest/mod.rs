//! Binaries for test environments: etcd, kube-apiserver and kubectl, as published by the Kubernetes
//! project.
//!
//! An [index](index) lists archives with their checksums. The
//! [store](rbuilder_control_plane::Store) on disk has a directory for each version and platform.
//! Both use the layout of `setup-envtest`, so either program finds what the other one installed.
//!
//! The store is not part of a project, and its files are too large to hold in memory, so they are
//! not written through a [plan](crate::plan). Installations are still atomic: a release appears
//! completely or not at all.

pub(crate) mod archive;
pub(crate) mod download;
pub(crate) mod index;
pub(crate) mod selector;
pub(crate) mod store;

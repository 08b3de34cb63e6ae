//! The binaries of test environments: etcd, kube-apiserver and kubectl, as the Kubernetes project publishes them.
//!
//! An [index](index) lists archives with their checksums; the [store](rbuilder_control_plane::Store) on disk has one directory for each version
//! and platform. Both have the layout of `setup-envtest`, so that either program finds what the other has installed.
//!
//! The store is not part of a project, and its files are too large to be held in memory, so they do not go through a
//! [plan](crate::plan). What a plan promises holds nevertheless: an installation appears as a whole or not at all.

pub(crate) mod archive;
pub(crate) mod download;
pub(crate) mod index;
pub(crate) mod selector;
pub(crate) mod store;

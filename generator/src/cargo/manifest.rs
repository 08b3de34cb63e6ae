//! The manifests of a run, as the later stages need them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use rbuilder_catalogue::Minor;

use super::metadata::Selection;
use super::targets::Library;
use crate::package::Dependency;

/// All manifests of a run.
#[derive(Debug)]
pub(crate) struct Manifests {
    pub(crate) packages: Vec<Manifest>,
    pub(crate) k8s_openapi: K8sOpenapi,
}

/// The manifest of a package.
#[derive(Debug)]
pub(crate) struct Manifest {
    /// The folder of the package.
    pub(crate) folder: String,
    pub(crate) library: Option<Library>,
    /// The roots of the other targets whose kinds are wanted.
    pub(crate) roots: Vec<String>,
    /// True if the kinds and markers of the library are wanted; otherwise only types that others use.
    pub(crate) selected: bool,
    /// The features that are on.
    pub(crate) features: BTreeSet<String>,
    /// By name in source.
    pub(crate) dependencies: BTreeMap<String, Dependency>,
    /// True in edition 2015.
    pub(crate) is_2015: bool,
    /// The kinds that are written, where the package is asked for.
    pub(crate) selection: Selection,
}

/// The dependency on k8s-openapi, of all packages together.
#[derive(Debug, Default)]
pub(crate) struct K8sOpenapi {
    pub(crate) features: BTreeSet<String>,
    /// The first manifest that has the dependency, and the bytes in it.
    pub(crate) place: Option<(String, Range<usize>)>,
}

impl K8sOpenapi {
    /// Returns the minor of Kubernetes that a feature chooses.
    pub(crate) fn minor(&self) -> Option<Minor> {
        self.features
            .iter()
            .find_map(|feature| Minor::from_feature(feature))
    }
}

//! The schemas of Kubernetes' own types for the version that k8s-openapi is built for.

use std::ops::Range;
use std::sync::Arc;

use rbuilder_catalogue::{Catalogue, Minor};
use rbuilder_schema::Schema;

use crate::{Diagnostic, FileRange};

/// The chosen minor version of Kubernetes and a remark about the choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MinorChoice {
    /// `None` if nothing selects a version.
    pub(crate) minor: Option<Minor>,
    /// Why the version differs from the requested one, or where it comes from.
    pub(crate) remark: Option<String>,
    /// Whether the catalogue lacks the requested version.
    pub(crate) is_other: bool,
}

/// The types of the chosen version.
#[derive(Default)]
pub(crate) struct KubernetesTypes {
    catalogue: Catalogue<'static>,
    doubt: Option<Doubt>,
}

/// A choice that is uncertain, or that differs from the requested version.
struct Doubt {
    /// The file for diagnostics about the choice.
    path: String,
    range: Range<usize>,
    /// A remark about the choice, if there is one.
    remark: Option<String>,
    /// The types in the versions that may be meant. Empty if any type may differ.
    others: Vec<Catalogue<'static>>,
}

impl KubernetesTypes {
    /// Creates the types in the chosen version, or in the newest version. `place` is the dependency
    /// on k8s-openapi, given as the path of a manifest and the bytes there.
    pub(crate) fn new(choice: MinorChoice, place: Option<(String, Range<usize>)>) -> Self {
        let MinorChoice {
            minor,
            remark,
            is_other,
        } = choice;
        let chosen = minor.unwrap_or_default();
        let is_doubtful = minor.is_none() || remark.is_some();
        let doubt = place.filter(|_| is_doubtful).map(|(path, range)| Doubt {
            path,
            range,
            remark,
            others: if is_other {
                Vec::new()
            } else {
                let others = Minor::all().filter(|other| *other != chosen);
                others.map(Catalogue::new).collect()
            },
        });
        KubernetesTypes {
            catalogue: Catalogue::new(chosen),
            doubt,
        }
    }

    /// Returns whether k8s-openapi contains a type or module with this path.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.contains(path) || rbuilder_schema::is_known(path) || self.catalogue.is_module(path)
    }

    /// Returns whether the catalogue contains a schema for a type.
    pub(crate) fn contains(&self, path: &str) -> bool {
        self.catalogue.contains(path)
    }

    /// Returns the paths of all types with a given name.
    pub(crate) fn find_by_name(&self, name: &str) -> Vec<String> {
        let mut paths = self.catalogue.paths();
        paths.retain(|path| path.rsplit("::").next() == Some(name));
        paths
    }

    /// Returns the schema of a type.
    pub(crate) fn schema(&self, path: &str) -> Option<Arc<Schema>> {
        self.catalogue.schema(path)
    }

    /// Returns help for a type that only exists in other versions.
    pub(crate) fn advice(&self, path: &str) -> Option<String> {
        let here = self.catalogue.minor();
        let has = |minor: &Minor| Catalogue::new(*minor).contains(path);
        let newer = Minor::all().filter(|minor| *minor > here).find(has);
        let minor = newer.or_else(|| Minor::all().rev().find(has))?;
        Some(format!(
            "enable the feature `v1_{}` of k8s-openapi: Kubernetes {minor} has the type, {here} does not",
            minor.number()
        ))
    }

    /// Returns a diagnostic if the version is uncertain and the type differs between versions.
    pub(crate) fn doubt(&self, path: &str) -> Option<Diagnostic> {
        let doubt = self.doubt.as_ref()?;
        let here = self.schema(path);
        if !doubt.others.is_empty() && doubt.others.iter().all(|other| other.schema(path) == here) {
            return None;
        }
        let place = FileRange::new(doubt.path.clone(), doubt.range.clone());
        let minor = self.catalogue.minor();
        let diagnostic = match &doubt.remark {
            Some(remark) => return Some(Diagnostic::note(place, remark.clone())),
            None => Diagnostic::warning(
                place,
                format!("no feature of k8s-openapi selects a Kubernetes version; using the types of {minor}"),
            ),
        };
        Some(diagnostic.help(format!(
            "enable a feature of k8s-openapi, such as `v1_{}`",
            minor.number()
        )))
    }
}

//! The schemas of Kubernetes' own types, in the version that k8s-openapi is built for.

use std::ops::Range;
use std::sync::Arc;

use rbuilder_catalogue::{Catalogue, Minor};
use rbuilder_schema::Schema;

use crate::{Diagnostic, FileRange};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MinorChoice {
    /// `None` if nothing selects a version.
    pub(crate) minor: Option<Minor>,
    /// The origin of the version, or the reason why it isn't the requested one.
    pub(crate) remark: Option<String>,
    /// True if the requested version isn't available.
    pub(crate) is_other: bool,
}

#[derive(Default)]
pub(crate) struct KubernetesTypes {
    catalogue: Catalogue<'static>,
    doubt: Option<Doubt>,
}

/// The version is uncertain, or isn't the requested one.
struct Doubt {
    path: String,
    range: Range<usize>,
    remark: Option<String>,
    /// Candidates for the actual version. Empty if any type could differ.
    others: Vec<Catalogue<'static>>,
}

impl KubernetesTypes {
    /// Uses the newest version if there is no choice. `place` is where a manifest declares
    /// k8s-openapi.
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

    /// Returns true if k8s-openapi has a type or module with this path, even if we have no schema
    /// for it.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.contains(path) || rbuilder_schema::is_known(path) || self.catalogue.is_module(path)
    }

    pub(crate) fn contains(&self, path: &str) -> bool {
        self.catalogue.contains(path)
    }

    pub(crate) fn find_by_name(&self, name: &str) -> Vec<String> {
        let mut paths = self.catalogue.paths();
        paths.retain(|path| path.rsplit("::").next() == Some(name));
        paths
    }

    pub(crate) fn schema(&self, path: &str) -> Option<Arc<Schema>> {
        self.catalogue.schema(path)
    }

    /// If another version has the type, returns help on how to select that version.
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

    /// Returns a diagnostic if the version is uncertain and the type differs between the
    /// candidates.
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

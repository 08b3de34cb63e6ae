//! Kubernetes' own types: the minor that a package's k8s-openapi is for, and their schemas.

use std::ops::Range;
use std::sync::Arc;

use rbuilder_catalogue::{Catalogue, Minor};
use rbuilder_schema::Schema;

use crate::{Diagnostic, FileRange};

/// The minor of Kubernetes whose types are used, and a remark on the choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MinorChoice {
    /// `None` if nothing selects a minor.
    pub(crate) minor: Option<Minor>,
    /// The reason for a minor other than the requested one, or its source.
    pub(crate) remark: Option<String>,
    /// True if the catalogue does not have the types of the requested minor.
    pub(crate) is_other: bool,
}

/// The catalogue of a package.
#[derive(Default)]
pub(crate) struct KubernetesTypes {
    catalogue: Catalogue<'static>,
    doubt: Option<Doubt>,
}

/// The minor is not certain, or not the one that is meant.
struct Doubt {
    /// The file that a diagnostic would name.
    path: String,
    range: Range<usize>,
    /// A remark on the choice, if one was made.
    remark: Option<String>,
    /// The types of other minors; none where each type may differ.
    others: Vec<Catalogue<'static>>,
}

impl KubernetesTypes {
    /// Returns the types of the minor that was chosen, or those of the newest when nothing chooses one. `place` is the
    /// dependency on k8s-openapi, whose feature would choose: the path of a manifest, and the bytes in it.
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

    /// Returns whether k8s-openapi has a type or a module of this path.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.contains(path) || rbuilder_schema::is_known(path) || self.catalogue.is_module(path)
    }

    /// Returns whether the catalogue has a schema for a type.
    pub(crate) fn contains(&self, path: &str) -> bool {
        self.catalogue.contains(path)
    }

    /// Returns the paths of all types with a name.
    pub(crate) fn find_by_name(&self, name: &str) -> Vec<String> {
        let mut paths = self.catalogue.paths();
        paths.retain(|path| path.rsplit("::").next() == Some(name));
        paths
    }

    /// The schema of a type.
    pub(crate) fn schema(&self, path: &str) -> Option<Arc<Schema>> {
        self.catalogue.schema(path)
    }

    /// Returns the help for a type of k8s-openapi that only other minors have.
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

    /// A diagnostic about a type that is not the same in all minors, when it is not certain which is meant.
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

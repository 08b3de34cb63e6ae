//! Kubernetes' own types: the minor that a package's k8s-openapi is for, and their schemas.

use std::ops::Range;
use std::sync::Arc;

use rbuilder_catalogue::{Catalogue, Minor};
use rbuilder_schema::Schema;

use crate::{Diagnostic, FileRange};

/// The catalogue of a package.
#[derive(Default)]
pub(crate) struct KubernetesTypes {
    catalogue: Catalogue<'static>,
    doubt: Option<Doubt>,
}

/// Nothing says which minor is meant.
struct Doubt {
    /// The file that a diagnostic would name.
    path: String,
    range: Range<usize>,
    others: Vec<Catalogue<'static>>,
}

impl KubernetesTypes {
    /// Returns the types of a minor, or those of the newest when nothing chooses one. `place` is the dependency on
    /// k8s-openapi, whose feature would choose: the path of a manifest, and the bytes in it.
    pub(crate) fn choose(minor: Option<Minor>, place: Option<(String, Range<usize>)>) -> Self {
        let others = |(path, range)| Doubt {
            path,
            range,
            others: Minor::all()
                .filter(|minor| *minor != Minor::LATEST)
                .map(Catalogue::new)
                .collect(),
        };
        KubernetesTypes {
            catalogue: Catalogue::new(minor.unwrap_or_default()),
            doubt: match minor {
                Some(_) => None,
                None => place.map(others),
            },
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

    /// A warning about a type that is not the same in all minors, when nothing says which is meant.
    pub(crate) fn doubt(&self, path: &str) -> Option<Diagnostic> {
        let doubt = self.doubt.as_ref()?;
        let here = self.schema(path);
        if doubt.others.iter().all(|other| other.schema(path) == here) {
            return None;
        }
        let minor = self.catalogue.minor();
        Some(
            Diagnostic::warning(
                FileRange::new(doubt.path.clone(), doubt.range.clone()),
                format!("no feature of k8s-openapi selects a Kubernetes version; using the types of {minor}"),
            )
            .help(format!(
                "enable a feature of k8s-openapi, such as `v1_{}`",
                minor.number()
            )),
        )
    }
}

//! What later stages need from a package's manifest, and the dependency on k8s-openapi.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use rbuilder_catalogue::{Minor, versions};

use super::metadata::Selection;
use super::targets::Library;
use crate::kubernetes_types::MinorChoice;
use crate::package::Dependency;

#[derive(Debug)]
pub(crate) struct Manifest {
    pub(crate) folder: String,
    pub(crate) library: Option<Library>,
    /// Root files of the other targets to read, such as binaries.
    pub(crate) roots: Vec<String>,
    /// True if the package's own kinds and markers are generated. Otherwise only its types are
    /// used.
    pub(crate) selected: bool,
    /// True for packages from a registry or from git, which users cannot edit.
    pub(crate) is_published: bool,
    pub(crate) features: BTreeSet<String>,
    /// Keyed by the name in Rust code, e.g. `k8s_openapi`.
    pub(crate) dependencies: BTreeMap<String, Dependency>,
    /// Paths start at the crate root in edition 2015.
    pub(crate) is_2015: bool,
    pub(crate) selection: Selection,
}

/// The dependency on k8s-openapi, merged from all packages.
#[derive(Debug, Default)]
pub(crate) struct K8sOpenapi {
    pub(crate) features: BTreeSet<String>,
    /// Location of the first declaration.
    pub(crate) place: Option<(String, Range<usize>)>,
    /// The minor version in `Cargo.lock`, e.g. 20 for 0.20.
    pub(crate) locked: Option<u8>,
}

impl K8sOpenapi {
    pub(crate) fn is_chosen(&self) -> bool {
        self.features.iter().any(|feature| minor_of(feature).is_some())
    }

    /// Chooses the Kubernetes minor version.
    ///
    /// A feature of k8s-openapi wins over `asked`, because that is what the program compiles
    /// against. Otherwise `asked` wins over the newest version that the locked k8s-openapi
    /// supports. A version that is missing from our catalogue is replaced by the nearest one.
    pub(crate) fn choose(&self, asked: Option<Minor>) -> MinorChoice {
        let feature = self
            .features
            .iter()
            .find_map(|name| Some((name, minor_of(name)?)));
        let newest = self.locked.map(versions::newest_minor_of);
        let locked = self.locked.unwrap_or_default();
        match (feature, asked, newest) {
            (Some((name, Asked::Minor(number))), ..) => near(
                number,
                format!("the feature `{name}` of k8s-openapi selects"),
                false,
            ),
            (Some((name, Asked::Latest)), _, Some(newest)) => {
                let is_told = newest != Minor::LATEST.number();
                near(
                    newest,
                    format!("the feature `{name}` of k8s-openapi 0.{locked} selects"),
                    is_told,
                )
            }
            (Some((_, Asked::Latest)), _, None) => exact(Minor::LATEST),
            (Some((_, Asked::Earliest)), ..) => exact(Minor::EARLIEST),
            (None, Some(asked), _) => exact(asked),
            (None, None, Some(newest)) => {
                let why = format!(
                    "no feature of k8s-openapi selects a Kubernetes version; k8s-openapi 0.{locked} has"
                );
                near(newest, why, true)
            }
            (None, None, None) => MinorChoice::default(),
        }
    }
}

#[derive(Clone, Copy)]
enum Asked {
    Minor(u8),
    Latest,
    Earliest,
}

fn minor_of(feature: &str) -> Option<Asked> {
    match feature {
        "latest" => Some(Asked::Latest),
        "earliest" => Some(Asked::Earliest),
        _ => feature.strip_prefix("v1_")?.parse().ok().map(Asked::Minor),
    }
}

fn exact(minor: Minor) -> MinorChoice {
    MinorChoice {
        minor: Some(minor),
        ..MinorChoice::default()
    }
}

/// `is_told` forces a remark even if the catalogue has exactly the version `number`.
fn near(number: u8, why: String, is_told: bool) -> MinorChoice {
    let minor = Minor::nearest(number);
    let is_other = minor.number() != number;
    let remark = if is_other {
        Some(format!(
            "{why} Kubernetes 1.{number}, whose types are not built in; using those of {minor}"
        ))
    } else {
        is_told.then(|| format!("{why} Kubernetes {minor}, whose types are used"))
    };
    MinorChoice {
        minor: Some(minor),
        remark,
        is_other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(features: &[&str], locked: Option<u8>, asked: Option<u8>, minor: Option<u8>, remark: &str) {
        let dependency = K8sOpenapi {
            features: features.iter().map(|name| (*name).to_owned()).collect(),
            place: None,
            locked,
        };
        let choice = dependency.choose(asked.and_then(Minor::new));
        assert_eq!(choice.minor.map(Minor::number), minor, "{features:?} {locked:?}");
        assert_eq!(
            choice.remark.unwrap_or_default(),
            remark,
            "{features:?} {locked:?}"
        );
    }

    #[test]
    fn features_and_lock_file_determine_minor() {
        check(&["v1_35", "schemars"], Some(29), None, Some(35), "");
        check(
            &["v1_28"],
            Some(20),
            Some(36),
            Some(33),
            "the feature `v1_28` of k8s-openapi selects Kubernetes 1.28, whose types are not built in; using those of 1.33",
        );
        check(&["latest"], Some(29), None, Some(37), "");
        check(&["latest"], None, None, Some(37), "");
        check(
            &["latest"],
            Some(28),
            None,
            Some(36),
            "the feature `latest` of k8s-openapi 0.28 selects Kubernetes 1.36, whose types are used",
        );
        check(
            &["latest"],
            Some(20),
            None,
            Some(33),
            "the feature `latest` of k8s-openapi 0.20 selects Kubernetes 1.28, whose types are not built in; using those of 1.33",
        );
        check(&["earliest"], Some(29), None, Some(33), "");
        check(&["default"], Some(28), Some(35), Some(35), "");
        check(
            &[],
            Some(28),
            None,
            Some(36),
            "no feature of k8s-openapi selects a Kubernetes version; k8s-openapi 0.28 has Kubernetes 1.36, whose types are used",
        );
        check(&[], None, None, None, "");
    }
}

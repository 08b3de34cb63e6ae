//! The kinds of a run, and what became of each.

use std::collections::BTreeSet;

use crate::package::Skipped;
use crate::report::Concern;
use crate::selection::fits;
use crate::{Diagnostic, FileRange};

/// A kind of the packages that are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindSummary {
    /// The kind; the name of the struct if its attributes could not be read.
    pub kind: String,
    /// Its group; empty if its attributes could not be read.
    pub group: String,
    /// Its plural; empty if its attributes could not be read.
    pub plural: String,
    /// True if its objects are in namespaces.
    pub is_namespaced: bool,
    /// Its versions, by name.
    pub versions: Vec<String>,
    /// The struct of its first version.
    pub place: FileRange,
    /// The folder of its package.
    pub package: String,
    /// The positions among the diagnostics of the warnings about places where the program changes the CRD that `crd()` returns.
    pub patches: Vec<usize>,
    /// The outcome.
    pub outcome: KindOutcome,
}

impl KindSummary {
    /// Returns whether an item of `skip` or `only` names the kind: `Kind`, `Kind.group`, or `*.group` for all kinds of a group.
    pub fn is_named(&self, item: &str) -> bool {
        fits(item, &self.kind, &self.group)
    }
}

/// The outcome of a run for a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindOutcome {
    /// Its CRD can be made. It is, unless an error elsewhere holds back everything.
    Readable {
        /// The path of the manifest.
        path: String,
    },
    /// No CRD is made, because the kind is another project's or not selected.
    Skipped {
        /// The reason, a phrase.
        reason: String,
    },
    /// Errors hold its CRD back.
    HeldBack {
        /// Their positions among the diagnostics.
        errors: Vec<usize>,
    },
}

/// A kind, while the run lasts.
pub(crate) struct Kind {
    pub(crate) kind: String,
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) is_namespaced: bool,
    pub(crate) versions: Vec<String>,
    pub(crate) place: FileRange,
    pub(crate) package: String,
    pub(crate) patches: Vec<FileRange>,
    pub(crate) state: State,
}

/// A kind before its outcome is known, which depends on the others.
pub(crate) enum State {
    Skipped(Skipped),
    /// A CRD is to be made. An error may concern the kind by this position.
    Asked(usize),
}

/// Says what became of each kind, from what the diagnostics concern.
pub(crate) fn summarize_kinds(
    kinds: Vec<Kind>,
    diagnostics: &[Diagnostic],
    concerns: &[BTreeSet<Concern>],
) -> Vec<KindSummary> {
    let errors_of = |position: usize| -> Vec<usize> {
        let all = diagnostics.iter().zip(concerns).enumerate();
        all.filter(|(_, (diagnostic, concerns))| {
            diagnostic.is_error()
                && (concerns.contains(&Concern::Run) || concerns.contains(&Concern::Kind(position)))
        })
        .map(|(at, _)| at)
        .collect()
    };
    let outcome = |kind: &Kind| match kind.state {
        State::Skipped(skipped) => KindOutcome::Skipped {
            reason: skipped.describe(&kind.group),
        },
        State::Asked(position) => match errors_of(position) {
            errors if errors.is_empty() => KindOutcome::Readable {
                path: format!("crd/bases/{}_{}.yaml", kind.group, kind.plural),
            },
            errors => KindOutcome::HeldBack { errors },
        },
    };
    let patches_of = |kind: &Kind| -> Vec<usize> {
        let State::Asked(position) = kind.state else {
            return Vec::new();
        };
        let all = diagnostics.iter().zip(concerns).enumerate();
        all.filter(|(_, (diagnostic, concerns))| {
            concerns.contains(&Concern::Kind(position)) && kind.patches.contains(&diagnostic.place)
        })
        .map(|(at, _)| at)
        .collect()
    };
    kinds
        .into_iter()
        .map(|kind| KindSummary {
            outcome: outcome(&kind),
            patches: patches_of(&kind),
            kind: kind.kind,
            group: kind.group,
            plural: kind.plural,
            is_namespaced: kind.is_namespaced,
            versions: kind.versions,
            place: kind.place,
            package: kind.package,
        })
        .collect()
}

impl Skipped {
    /// The reason, a phrase.
    fn describe(self, group: &str) -> String {
        match self {
            Skipped::Flag => "a flag excludes it".to_owned(),
            Skipped::Listed => "`skip` in Cargo.toml lists it".to_owned(),
            Skipped::Disowned => "PROJECT lists it as another project's".to_owned(),
            Skipped::Unlisted => "`only` in Cargo.toml does not list it".to_owned(),
            Skipped::Foreign(owner) => format!("its group `{group}` belongs to {owner}"),
            Skipped::Seems(sign) => format!("it seems to belong to another project: {}", sign.describe()),
            Skipped::NoSchema => "it has no schema (`schema = \"disabled\"`)".to_owned(),
        }
    }
}

//! The kinds of a run and their outcomes.

use std::collections::BTreeSet;

use crate::package::Skipped;
use crate::report::Concern;
use crate::selection::fits;
use crate::{Diagnostic, FileRange};

/// A kind in the selected packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindSummary {
    /// The kind, or the name of the struct if its attributes can't be parsed.
    pub kind: String,
    /// The API group. Empty if the attributes can't be parsed.
    pub group: String,
    /// The plural. Empty if the attributes can't be parsed.
    pub plural: String,
    /// True if the kind is namespaced.
    pub is_namespaced: bool,
    /// The names of the versions.
    pub versions: Vec<String>,
    /// Where the struct of the first version is.
    pub place: FileRange,
    /// The folder of the package with the first version.
    pub package: String,
    /// The folders of all packages with a version of the kind, starting with `package`.
    pub packages: Vec<String>,
    /// The definitions, if several packages define the same version. None of them is written, so
    /// the outcome is [`KindOutcome::HeldBack`]. Empty for every other kind.
    pub duplicates: Vec<Duplicate>,
    /// Warnings about code that modifies the result of `crd()`, as indexes into the list of
    /// diagnostics.
    pub patches: Vec<usize>,
    /// The outcome of the run for the kind.
    pub outcome: KindOutcome,
}

impl KindSummary {
    /// Returns true if an item of `skip` or `only` selects the kind. An item is `Kind`,
    /// `Kind.group`, or `*.group` for all kinds of a group.
    pub fn is_named(&self, item: &str) -> bool {
        fits(item, &self.kind, &self.group)
    }
}

/// One of several definitions of a kind, each in a package of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// Where the struct of its first version is, and thus its error.
    pub place: FileRange,
    /// The folder of the package.
    pub package: String,
    /// The CRD of this definition alone. `None` if the definition has errors of its own.
    pub crd: Option<String>,
}

/// The help of the errors at [`KindSummary::duplicates`]. Callers that know the existing CRD can
/// replace it by better advice.
pub const KEEP_ONE: &str = "keep one: in the Cargo.toml of each other package, list the kind in `skip` below `[package.metadata.rbuilder]`";

/// The outcome of a run for a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindOutcome {
    /// The CRD can be generated. It is written, unless an error elsewhere stops the run.
    Readable {
        /// The path of its manifest.
        path: String,
    },
    /// No CRD, because the kind belongs to another project or isn't selected.
    Skipped {
        /// The reason for skipping the kind, as a phrase for messages.
        reason: String,
    },
    /// The CRD can't be generated because of errors.
    HeldBack {
        /// The errors, as indexes into the list of diagnostics.
        errors: Vec<usize>,
    },
}

pub(crate) struct Kind {
    pub(crate) kind: String,
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) is_namespaced: bool,
    pub(crate) versions: Vec<String>,
    pub(crate) place: FileRange,
    pub(crate) package: String,
    pub(crate) packages: Vec<String>,
    pub(crate) duplicates: Vec<Duplicate>,
    pub(crate) patches: Vec<FileRange>,
    pub(crate) state: State,
}

/// The preliminary outcome for a kind, before all errors are known.
pub(crate) enum State {
    Skipped(Skipped),
    /// The CRD is requested. The index is the one in [`Concern::Kind`].
    Asked(usize),
}

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
            packages: kind.packages,
            duplicates: kind.duplicates,
        })
        .collect()
}

impl Skipped {
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

//! Surveys a repository's kinds and their committed CRDs.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use rbuilder_compatibility::Budget;
use rbuilder_generator::{Findings, KindOutcome, KindSummary, Sources};

use super::committed::{CommittedCrd, CommittedCrds, find_committed};
use super::compare::Comparison;
use crate::commands::manifests::{self, CrdPlace, ExistingCrd, Request};
use crate::commands::written_roles::OfferedMarkers;
use crate::edit::selection::RUN_AGAIN;
use crate::plan::Plan;
use crate::report;
use crate::tree::{Tree, TreeSources};

pub(super) struct Survey {
    pub(super) kinds: Vec<SurveyedKind>,
    /// Names and files of committed CRDs that belong to none of the kinds.
    pub(super) others: Vec<(String, String)>,
    /// Errors unrelated to a kind, with their locations.
    pub(super) errors: Vec<String>,
    /// Feature to add to the settings, because there are no kinds without it.
    pub(super) feature: Option<String>,
    pub(super) roles: Vec<OfferedMarkers>,
    /// Whether the project is deployed from `config/`, which then always contains its CRDs.
    pub(super) is_deployed: bool,
}

pub(super) struct KnownPlaces {
    pub(super) place: CrdPlace,
    /// Whether the project is deployed from `config/`, which then always contains its CRDs.
    pub(super) is_deployed: bool,
}

impl KnownPlaces {
    /// Moves the file that `manifests` writes to the front. The deployed file is dropped if there
    /// are others.
    fn sort(&self, committed: &mut CommittedCrds) {
        for (name, files) in committed {
            let (plural, group) = name.split_once('.').unwrap_or((name, ""));
            if let Some(path) = self.place.path(group, plural) {
                files.sort_by_key(|file| file.path != path);
            }
            if self.is_deployed
                && files
                    .iter()
                    .any(|file| !is_deployed(&file.path) && !file.is_outside)
            {
                files.retain(|file| !is_deployed(&file.path));
            }
        }
    }
}

pub(super) fn is_deployed(path: &str) -> bool {
    path.starts_with("config/crd/")
}

pub(super) struct SurveyedKind {
    pub(super) summary: KindSummary,
    pub(super) state: KindState,
    /// The files with its CRD, of which the first one is written.
    pub(super) committed: Vec<CommittedCrd>,
    /// Plural of the committed CRD, if it differs from the source. The CRD's name then differs as
    /// well.
    pub(super) other_plural: Option<String>,
    /// Whether the kind probably belongs to another project: CRDs of other groups are committed,
    /// but none of this group.
    pub(super) is_doubtful: bool,
    /// What happens to the `skip` item of a kind that is readable by now.
    pub(super) readable_by_now: Option<ReadableByNow>,
    /// Warnings, with locations, about code that modifies the CRD at run time.
    pub(super) patches: Vec<String>,
}

impl SurveyedKind {
    /// Why rbuilder doesn't write the CRD of a readable kind, if so.
    pub(super) fn obstacle(&self, is_deployed: bool) -> Option<String> {
        let file = self.committed.first();
        if let (Some(file), Some(plural)) = (file, &self.other_plural) {
            return Some(format!(
                "the plural of the committed CRD is `{plural}` ({}): add `plural = \"{plural}\"` to `#[kube(…)]` and {RUN_AGAIN}",
                file.path
            ));
        }
        // A project deployed from `config/` always has its CRDs there, even if other files contain
        // them too.
        if let Some(file) = file.filter(|_| !is_deployed)
            && let Some(obstacle) = file.obstacle()
        {
            return Some(format!(
                "{obstacle} ({}): {}, and {RUN_AGAIN}",
                file.path,
                file.advise(&self.summary.kind)
            ));
        }
        self.is_doubtful.then(|| {
            format!(
                "no CRD of the group `{}` is committed, so the kind probably belongs to another project: if it is yours, remove it from `skip`",
                self.summary.group
            )
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadableByNow {
    /// Added by `adopt`, which now removes it.
    Removed,
    /// Added by the user, so it stays.
    Kept,
    /// Added by `adopt` because the committed CRD can't be replaced, which is still the case.
    Hindered,
}

pub(super) enum KindState {
    /// Its CRD can be generated. Contains the comparison with the committed CRD, if that is
    /// readable.
    Readable(Option<Comparison>),
    /// Not selected, or belongs to another project. Contains the reason.
    Skipped(String),
    Unreadable(Vec<Reason>),
}

pub(super) struct Reason {
    pub(super) text: String,
    pub(super) help: Option<String>,
}

pub(super) fn examine(plan: &Plan, tree: &Tree, request: &Request, places: &KnownPlaces) -> Result<Survey> {
    let mut committed = find_committed(tree)?;
    places.sort(&mut committed);
    let mut comparisons: BTreeMap<String, Comparison> = BTreeMap::new();
    let budget = Budget::default();
    // To save memory, compare and drop each CRD as soon as it is generated.
    let (sources, mut found) = manifests::generate_in_memory(plan, tree, request, &mut |file| {
        if let Some(comparison) = compare(&committed, &file.text, &budget) {
            comparisons.insert(file.path, comparison);
        }
    })?;
    manifests::compare_duplicates(&mut found, &sources, &|kind| Ok(find_existing(&committed, kind)))?;
    let mut kinds: Vec<SurveyedKind> = found
        .kinds
        .iter()
        .map(|summary| {
            let name = format!("{}.{}", summary.plural, summary.group);
            let (other_plural, committed) = take_committed(&mut committed, summary, &name);
            SurveyedKind {
                other_plural,
                state: state(summary, &found, &sources, &mut comparisons),
                committed,
                summary: summary.clone(),
                is_doubtful: false,
                readable_by_now: None,
                patches: list_patches(summary, &found, &sources),
            }
        })
        .collect();
    mark_doubtful(&mut kinds);
    let others = committed.into_iter();
    Ok(Survey {
        kinds,
        others: others
            .filter_map(|(name, files)| Some((name, files.into_iter().next()?)))
            .filter(|(_, file)| !file.is_outside)
            .map(|(name, file)| (name, file.path))
            .collect(),
        errors: list_other_errors(&found, &sources),
        feature: None,
        roles: Vec::new(),
        is_deployed: places.is_deployed,
    })
}

/// Marks readable kinds as doubtful if CRDs of other groups are committed, but none of theirs.
fn mark_doubtful(kinds: &mut [SurveyedKind]) {
    let committed = kinds.iter().filter(|kind| !kind.committed.is_empty());
    let groups: BTreeSet<String> = committed.map(|kind| kind.summary.group.clone()).collect();
    if groups.is_empty() {
        return;
    }
    for kind in kinds {
        let is_readable = matches!(kind.state, KindState::Readable(_));
        kind.is_doubtful = is_readable && !groups.contains(&kind.summary.group);
    }
}

/// Takes a kind's CRDs out of `committed`. Also returns the committed plural if it differs and the
/// source doesn't specify one.
fn take_committed(
    committed: &mut CommittedCrds,
    summary: &KindSummary,
    name: &str,
) -> (Option<String>, Vec<CommittedCrd>) {
    if let Some(files) = committed.remove(name) {
        return (None, files);
    }
    let found = find_by_kind(committed, &summary.group, &summary.kind);
    let plural = found
        .as_ref()
        .and_then(|name| Some(name.split_once('.')?.0.to_owned()));
    let files = found.and_then(|name| committed.remove(&name));
    (plural, files.unwrap_or_default())
}

fn find_by_kind(committed: &CommittedCrds, group: &str, kind: &str) -> Option<String> {
    let mut crds = committed.iter();
    let found = crds.find(|(_, files)| files.iter().any(|file| file.is_of(group, kind)));
    found.map(|(name, _)| name.clone())
}

/// The committed CRD that `manifests` writes.
fn find_existing(committed: &CommittedCrds, kind: &KindSummary) -> Option<ExistingCrd> {
    let files = committed.get(&format!("{}.{}", kind.plural, kind.group))?;
    let file = files.first()?;
    Some(ExistingCrd {
        path: file.path.clone(),
        value: file.value.clone()?,
    })
}

fn compare(committed: &CommittedCrds, generated: &str, budget: &Budget) -> Option<Comparison> {
    let new = rbuilder_yaml::parse_value(generated).ok()?;
    let name = new["metadata"]["name"].as_str()?.to_owned();
    let (group, kind) = (
        new["spec"]["group"].as_str()?,
        new["spec"]["names"]["kind"].as_str()?,
    );
    let name = if committed.contains_key(&name) {
        name
    } else {
        find_by_kind(committed, group, kind)?
    };
    let old = committed.get(&name)?.first()?.value.as_ref()?;
    Some(Comparison::of(old, &new, budget))
}

fn state(
    summary: &KindSummary,
    found: &Findings,
    sources: &TreeSources,
    comparisons: &mut BTreeMap<String, Comparison>,
) -> KindState {
    match &summary.outcome {
        KindOutcome::Skipped { reason } => KindState::Skipped(reason.clone()),
        KindOutcome::HeldBack { errors } => {
            let errors = errors.iter().map(|at| &found.diagnostics[*at]);
            let reason = |error: &rbuilder_generator::Diagnostic| Reason {
                text: format!("{}: {}", report::locate(error, sources), error.message),
                help: error.help.clone(),
            };
            KindState::Unreadable(errors.map(reason).collect())
        }
        KindOutcome::Readable { path } => KindState::Readable(comparisons.remove(path)),
    }
}

fn list_patches(summary: &KindSummary, found: &Findings, sources: &dyn Sources) -> Vec<String> {
    let warnings = summary.patches.iter().map(|at| &found.diagnostics[*at]);
    warnings
        .map(|warning| format!("{}: {}", report::locate(warning, sources), warning.message))
        .collect()
}

fn list_other_errors(found: &Findings, sources: &dyn Sources) -> Vec<String> {
    let is_of_kind = |position: usize| {
        found.kinds.iter().any(|kind| match &kind.outcome {
            KindOutcome::HeldBack { errors } => errors.contains(&position),
            _ => false,
        })
    };
    let errors = found.diagnostics.iter().enumerate();
    errors
        .filter(|(position, error)| error.is_error() && !is_of_kind(*position))
        .map(|(_, error)| format!("{}: {}", report::locate(error, sources), error.message))
        .collect()
}

//! Finds skipped kinds that are readable by now.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use rbuilder_generator::{KindOutcome, KindSummary};

use super::survey::{KindState, ReadableByNow, SurveyedKind};
use super::{edit, manifest_of};
use crate::commands::manifests::{self, Request};
use crate::edit::selection::{SkipReason, SkippedKind, list_skipped, unskip_kinds};
use crate::plan::Plan;
use crate::tree::Tree;

type Key = (String, String, String);

/// The `skip` items whose kinds are readable by now.
#[derive(Default)]
pub(super) struct Reconsidered(BTreeMap<Key, ReadableByNow>);

impl Reconsidered {
    pub(super) fn removes_items(&self) -> bool {
        self.0.values().any(|item| *item == ReadableByNow::Removed)
    }

    pub(super) fn mark(&self, kinds: &mut [SurveyedKind]) {
        for kind in kinds {
            let item = self.0.get(&key_of(&kind.summary)).copied();
            // The kind stays skipped if the user has an item for it as well.
            kind.readable_by_now = match (&kind.state, item) {
                (KindState::Skipped(_), Some(ReadableByNow::Removed)) => None,
                (_, item) => item,
            };
        }
    }
}

/// Finds skipped kinds that are readable by now. Plans to remove items that `adopt` added because
/// the kind was unreadable, or because a committed CRD couldn't be replaced and now can be.
pub(super) fn reconsider_skips(
    plan: &mut Plan,
    tree: &Tree,
    request: &Request,
    kinds: &[SurveyedKind],
    is_deployed: bool,
) -> Result<Reconsidered> {
    let mut items: BTreeMap<String, Vec<SkippedKind>> = BTreeMap::new();
    for kind in kinds {
        for folder in &kind.summary.packages {
            if matches!(kind.state, KindState::Skipped(_)) && !items.contains_key(folder) {
                let text = tree.read(&manifest_of(folder))?.unwrap_or_default();
                items.insert(folder.clone(), list_skipped(&text));
            }
        }
    }
    // Reading the kinds again takes time, so only do it if `skip` has items.
    items.retain(|_, items| !items.is_empty());
    if items.is_empty() {
        return Ok(Reconsidered::default());
    }
    let names: BTreeSet<&str> = items.values().flatten().map(|item| item.kind.as_str()).collect();
    let mut without_skips = request.clone();
    without_skips.options.kinds = names.into_iter().map(str::to_owned).collect();
    let mut reconsidered = Reconsidered::default();
    let mut removed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (_, found) = manifests::generate_in_memory(plan, tree, &without_skips, &mut drop)?;
    for summary in found.kinds {
        if !matches!(summary.outcome, KindOutcome::Readable { .. }) {
            continue;
        }
        let key = key_of(&summary);
        let is_hindered = || {
            let mut surveyed = kinds.iter().filter(|kind| key_of(&kind.summary) == key);
            surveyed.any(|kind| kind.obstacle(is_deployed).is_some())
        };
        for folder in &summary.packages {
            let of_package = items.get(folder);
            let item = of_package.and_then(|items| items.iter().find(|item| summary.is_named(&item.kind)));
            let Some(item) = item else { continue };
            let outcome = match item.reason {
                None => ReadableByNow::Kept,
                Some(SkipReason::Hindered) if is_hindered() => ReadableByNow::Hindered,
                Some(_) => ReadableByNow::Removed,
            };
            reconsidered.0.insert(key.clone(), outcome);
            if outcome == ReadableByNow::Removed {
                removed.entry(folder.clone()).or_default().push(item.kind.clone());
            }
        }
    }
    for (folder, kinds) in &removed {
        edit(plan, tree, &manifest_of(folder), |text| unskip_kinds(text, kinds))?;
    }
    Ok(reconsidered)
}

fn key_of(summary: &KindSummary) -> Key {
    (
        summary.package.clone(),
        summary.group.clone(),
        summary.kind.clone(),
    )
}

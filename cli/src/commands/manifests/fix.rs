//! `rbuilder manifests --fix`: applies the replacements proposed by the help of messages, first to
//! the source, and then to the samples and PROJECT, which are checked against the source.
//!
//! The manifests are generated again after each round, because one mistake may hide or cause
//! another. A replacement that doesn't fix its mistake must not be applied twice.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use rbuilder_generator::replacement::Replacement;
use rbuilder_generator::{Diagnostic, KindSummary, Minor, Sources};

use super::project_keys::find_misspelled_keys;
use super::rendered::has_errors;
use super::samples::{check_sample_by, list_samples};
use super::versions::find_unlisted;
use super::{Request, apply_levels, generate_in_memory};
use crate::commands::verdicts::Judges;
use crate::plan::Plan;
use crate::project::{FILE, Project};
use crate::replacement::{correct, find_replacement, replace_all};
use crate::tree::Tree;

const ROUNDS: usize = 16;

pub(super) fn add_fixes(plan: &mut Plan, tree: &Tree, request: &Request) -> Result<()> {
    let request = request.with_settings(tree)?;
    let mut tried = Mistakes::new();
    for _ in 0..ROUNDS {
        let (fixes, mistakes) = find_fixes(plan, tree, &request, &tried)?;
        if fixes.is_empty() {
            return add_yaml_fixes(plan, tree, &request);
        }
        for (path, replacements) in fixes {
            let text = plan.read(tree, &path)?.unwrap_or_default();
            plan.merge(tree, &path, &replace_all(&text, replacements).0)?;
        }
        tried.extend(mistakes);
    }
    Ok(())
}

/// Adds the corrected samples, as validated by the CRDs of the source, and PROJECT.
fn add_yaml_fixes(plan: &mut Plan, tree: &Tree, request: &Request) -> Result<()> {
    let mut request = request.clone();
    request.options.definitions = true;
    let (_, mut found) = generate_in_memory(plan, tree, &request, &mut |_| {})?;
    // Samples can't be validated without the CRDs.
    if has_errors(&found.diagnostics) {
        return Ok(());
    }
    let mut crds = Judges::new(Minor::LATEST);
    crds.add_all(std::mem::take(&mut found.definitions));
    let levels = &request.options.levels;
    let mut keep = |said: Vec<Diagnostic>| apply_levels(said, &mut found.allows, levels);
    for path in list_samples(plan, tree) {
        correct_file(plan, tree, &path, &mut |text| {
            keep(check_sample_by(&path, text, &crds))
        })?;
    }
    if request.reads_all() {
        correct_file(plan, tree, FILE, &mut |text| {
            keep(check_project(text, &found.kinds))
        })?;
    }
    Ok(())
}

/// Adds a corrected file to a plan. Unreadable files, e.g. symlinks, are skipped.
fn correct_file(
    plan: &mut Plan,
    tree: &Tree,
    path: &str,
    judge: &mut dyn FnMut(&str) -> Vec<Diagnostic>,
) -> Result<()> {
    match plan.read(tree, path) {
        Ok(Some(text)) => match correct(&text, judge) {
            Some(corrected) => plan.merge(tree, path, &corrected),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn check_project(text: &str, kinds: &[KindSummary]) -> Vec<Diagnostic> {
    match Project::parse(text) {
        Ok(project) if project.foreign_layout().is_none() => {
            let mut found = find_unlisted(text, &project.known, kinds);
            found.extend(find_misspelled_keys(text));
            found
        }
        _ => Vec::new(),
    }
}

type Fixes = BTreeMap<String, Vec<Replacement>>;

/// Number of occurrences of a message in a file.
type Mistakes = BTreeMap<(String, String), usize>;

/// Stages of replacements, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Error,
    /// Warnings and notes come later, because an error may have caused them.
    Warning,
    /// Comes last: the code to insert may already be there with a mistake, e.g. a permission with a
    /// misspelled name.
    Insertion,
}

fn stage_of(diagnostic: &Diagnostic, replacement: &Replacement) -> Stage {
    if diagnostic.is_error() {
        Stage::Error
    } else if replacement.range.is_empty() {
        Stage::Insertion
    } else {
        Stage::Warning
    }
}

/// Finds the replacements of the first non-empty stage, and the number of occurrences of their
/// messages.
fn find_fixes(plan: &Plan, tree: &Tree, request: &Request, tried: &Mistakes) -> Result<(Fixes, Mistakes)> {
    let (sources, found) = generate_in_memory(plan, tree, request, &mut |_| {})?;
    let key = |said: &Diagnostic| (said.place.path.clone(), said.text());
    let mut counts = Mistakes::new();
    for diagnostic in &found.diagnostics {
        *counts.entry(key(diagnostic)).or_default() += 1;
    }
    let mut stages: BTreeMap<Stage, (Fixes, BTreeSet<_>)> = BTreeMap::new();
    for diagnostic in &found.diagnostics {
        let path = &diagnostic.place.path;
        let key = key(diagnostic);
        // If a message occurs just as often after its replacement was tried, the replacement didn't
        // help.
        let is_stuck = tried.get(&key).is_some_and(|before| counts[&key] >= *before);
        let Ok(Some(source)) = sources.text(path) else {
            continue;
        };
        // Files of other packages aren't in the tree.
        let is_own = || {
            let own = plan.read(tree, path);
            own.is_ok_and(|own| own.as_deref() == Some(&*source))
        };
        let replacement = find_replacement(diagnostic, &source);
        if let Some(replacement) = replacement.filter(|_| !is_stuck && is_own()) {
            let stage = stage_of(diagnostic, &replacement);
            let (fixes, fixed) = stages.entry(stage).or_default();
            fixes.entry(path.clone()).or_default().push(replacement);
            fixed.insert(key);
        }
    }
    let (fixes, fixed) = stages.into_values().next().unwrap_or_default();
    counts.retain(|key, _| fixed.contains(key));
    Ok((fixes, counts))
}

//! `rbuilder manifests --fix`: applies the replacements that the help of messages proposes: first in
//! the source, then in the samples and in PROJECT, which are compared with the source.
//!
//! The manifests are generated again after each round, because one mistake may hide another or be its
//! consequence, and because a replacement that does not correct its mistake is not applied twice.

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

/// Maximum number of times to generate manifests again.
const ROUNDS: usize = 16;

/// Adds the changed files to a plan.
///
/// # Errors
/// Returns an error if the settings or a directory cannot be read.
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

/// Adds the corrected samples, by the CRDs that the source has, and PROJECT. None if the source has
/// errors.
fn add_yaml_fixes(plan: &mut Plan, tree: &Tree, request: &Request) -> Result<()> {
    let mut request = request.clone();
    request.options.definitions = true;
    let (_, mut found) = generate_in_memory(plan, tree, &request, &mut |_| {})?;
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

/// Adds a corrected file to a plan. Skips files that cannot be read, such as links.
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

/// Returns the warnings about the text of PROJECT.
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

/// The replacements in each file.
type Fixes = BTreeMap<String, Vec<Replacement>>;

/// The number of times that a file has a message.
type Mistakes = BTreeMap<(String, String), usize>;

/// Replacements in the order of their rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Of errors.
    Error,
    /// Of warnings and notes, which an error may have caused.
    Warning,
    /// What is inserted may be there already, with a mistake: a permission with a wrong name.
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

/// Returns the replacements of the first stage that has any, without those of messages that are as
/// frequent as when they were tried, and the number of each message with one.
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
        let is_stuck = tried.get(&key).is_some_and(|before| counts[&key] >= *before);
        let Ok(Some(source)) = sources.text(path) else {
            continue;
        };
        // Files of other packages are not in the tree.
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

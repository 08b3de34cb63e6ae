//! `rbuilder manifests --fix`: applies the replacements that the help of messages proposes.
//!
//! The manifests are generated again after each round, because one mistake may hide another or be its
//! consequence, and because a replacement that does not correct its mistake is not applied twice.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use rbuilder_generator::{Diagnostic, Replacement, Sources, find_replacement};

use super::{Request, generate_in_memory};
use crate::plan::Plan;
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
            return Ok(());
        }
        for (path, replacements) in fixes {
            let mut text = plan.read(tree, &path)?.unwrap_or_default();
            // From the end, so that the other ranges stay valid.
            for Replacement { range, text: new } in select(replacements).into_iter().rev() {
                if text.get(range.clone()).is_some() {
                    text.replace_range(range, &new);
                }
            }
            plan.merge(tree, &path, &text)?;
        }
        tried.extend(mistakes);
    }
    Ok(())
}

/// Returns the replacements to apply together, in the order of their places. Of two that overlap,
/// the second waits for the next round. Two texts for one place are a choice, so neither is applied.
fn select(mut found: Vec<Replacement>) -> Vec<Replacement> {
    found.sort_by(|one, two| {
        let key = |found: &Replacement| (found.range.start, found.range.end, found.text.clone());
        key(one).cmp(&key(two))
    });
    found.dedup();
    let is_choice = |one: &Replacement| {
        let mut others = found.iter().filter(|other| other.range == one.range);
        !one.range.is_empty() && others.any(|other| other.text != one.text)
    };
    let choices: Vec<bool> = found.iter().map(is_choice).collect();
    let mut selected: Vec<Replacement> = Vec::new();
    for (replacement, is_choice) in found.into_iter().zip(choices) {
        let end = selected.last().map_or(0, |last| last.range.end);
        if !is_choice && replacement.range.start >= end {
            selected.push(replacement);
        }
    }
    selected
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_and_contradictory_replacements_are_left_out() {
        let all = |list: &[(usize, usize, &str)]| -> Vec<Replacement> {
            let replacement = |(start, end, text): &(usize, usize, &str)| Replacement {
                range: *start..*end,
                text: (*text).to_owned(),
            };
            list.iter().map(replacement).collect()
        };
        for (found, expected) in [
            (&[(5, 6, "b"), (1, 2, "a")][..], &[(1, 2, "a"), (5, 6, "b")][..]),
            (&[(1, 4, "a"), (2, 5, "b")], &[(1, 4, "a")]),
            (&[(1, 4, "a"), (1, 4, "a")], &[(1, 4, "a")]),
            (&[(1, 4, "a"), (1, 4, "b")], &[]),
            (&[(1, 1, "a"), (1, 1, "b")], &[(1, 1, "a"), (1, 1, "b")]),
        ] {
            assert_eq!(select(all(found)), all(expected));
        }
    }
}

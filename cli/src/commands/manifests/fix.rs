//! `rbuilder manifests --fix`: replaces wrong names in the source by those that the help proposes.

use std::collections::BTreeMap;

use anyhow::Result;
use rbuilder_generator::Sources;

use super::{Request, generate_in_memory};
use crate::plan::Plan;
use crate::replacement::{Replacement, find_replacement};
use crate::tree::Tree;

/// Maximum number of times to generate manifests again. One mistake may hide another.
const ROUNDS: usize = 8;

/// Adds the changed files to a plan.
///
/// # Errors
/// Returns an error if the settings or a directory cannot be read.
pub(super) fn add_fixes(plan: &mut Plan, tree: &Tree, request: &Request) -> Result<()> {
    let request = request.with_settings(tree)?;
    for _ in 0..ROUNDS {
        let fixes = find_fixes(plan, tree, &request)?;
        if fixes.is_empty() {
            return Ok(());
        }
        for (path, replacements) in fixes {
            let mut text = plan.read(tree, &path)?.unwrap_or_default();
            // From the end, so that the other ranges stay valid.
            for Replacement { range, text: new } in replacements.into_values().rev() {
                if text.get(range.clone()).is_some() {
                    text.replace_range(range, &new);
                }
            }
            plan.merge(tree, &path, &text)?;
        }
    }
    Ok(())
}

/// The replacements in each file, by their positions.
type Fixes = BTreeMap<String, BTreeMap<usize, Replacement>>;

fn find_fixes(plan: &Plan, tree: &Tree, request: &Request) -> Result<Fixes> {
    let (sources, found) = generate_in_memory(plan, tree, request, &mut |_| {})?;
    let mut fixes = Fixes::new();
    for diagnostic in &found.diagnostics {
        let path = &diagnostic.place.path;
        let Ok(Some(source)) = sources.text(path) else {
            continue;
        };
        // Files of other packages are not in the tree.
        let is_own = plan
            .read(tree, path)
            .is_ok_and(|own| own.as_deref() == Some(&*source));
        if let Some(replacement) = find_replacement(diagnostic, &source).filter(|_| is_own) {
            let file = fixes.entry(path.clone()).or_default();
            file.insert(replacement.range.start, replacement);
        }
    }
    Ok(fixes)
}

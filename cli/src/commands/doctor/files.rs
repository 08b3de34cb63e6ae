//! Finds scaffolded files that were edited or deleted, and unresolved conflicts.

use std::collections::BTreeSet;

use anyhow::Result;

use super::Finding;
use crate::commands::generated_merge::{
    BUNDLE, CHART, DASHBOARDS, Product, find_conflict_in_base, parse_base,
};
use crate::commands::scaffold_merge::Written;
use crate::line_ends::is_same_text;
use crate::project::{BASE, Project, RECORD, ScaffoldBase};
use crate::render::Scaffold;
use crate::tree::Tree;
use rbuilder_project::conflict::find_conflict;

const LIBRARY: &str = "src/lib.rs";
const MOST_PATHS: usize = 8;

const PRODUCTS: [Product; 3] = [CHART, BUNDLE, DASHBOARDS];

/// Compares the scaffolded files with what commands wrote. Edits and deletions are fine, unless the
/// project doesn't work without the file.
pub(super) fn examine_files(
    tree: &Tree,
    project: &Project,
    written: Option<&Written>,
) -> Result<Vec<Finding>> {
    if project.scaffolded_files().is_empty() {
        let message = format!("{RECORD} lists no files, so the scaffolded ones are not known");
        let help = format!("restore it: `git checkout HEAD -- {RECORD}`");
        return Ok(vec![Finding::warning("scaffold", message, help)]);
    }
    // Commands that update the scaffold fail on such a base.
    ScaffoldBase::parse(&tree.read(BASE)?.unwrap_or_default())?;
    let (mut changed, mut deleted, mut count) = (Vec::new(), Vec::new(), 0);
    for path in project.scaffolded_files().paths() {
        count += 1;
        let scaffolded = written.and_then(|written| written.files.get(path));
        // Several commands add to a file such as `src/main.rs`, so it differs from its record. Also
        // compare it with the current scaffold, so that only the user's edits count.
        let is_scaffolded = |text: &str| {
            project.recorded(path, text) || scaffolded.is_some_and(|known| is_same_text(known, text))
        };
        match tree.read(path)? {
            None => deleted.push(path.to_owned()),
            Some(text) if !is_scaffolded(&text) => changed.push(path.to_owned()),
            Some(_) => {}
        }
    }
    let mut parts = vec![format!("{count} files that rbuilder wrote")];
    for (word, paths) in [("changed", &changed), ("deleted", &deleted)] {
        if !paths.is_empty() {
            parts.push(format!("{} {word} since ({})", paths.len(), list_paths(paths)));
        }
    }
    let mut findings = vec![Finding::good("scaffold", parts.join(", "))];
    let (main, binary) = (project.main_file(), project.binary());
    for (path, use_of_it) in [
        (main, &*format!("the binary `{binary}` is built from it")),
        (LIBRARY, "the binary and the tests use it"),
    ] {
        if deleted.iter().any(|deleted| deleted == path) {
            findings.push(Finding::error(
                "scaffold",
                format!("{path} does not exist, and {use_of_it}"),
                format!("restore it with `rbuilder update --restore {path}`"),
            ));
        }
    }
    Ok(findings)
}

/// If the scaffolded file of a module was deleted, returns help with the command that restores it.
pub(super) fn find_deleted_module(tree: &Tree, scaffold: &Scaffold, module: &str) -> Result<Option<String>> {
    let is_its = |path: &&String| {
        path.ends_with(&format!("/{module}.rs")) || path.ends_with(&format!("/{module}/mod.rs"))
    };
    let mut deleted = None;
    for path in scaffold.files.keys().filter(is_its) {
        if tree.read(path)?.is_none() {
            deleted = deleted.or_else(|| scaffold.restore_command(path));
        }
    }
    Ok(deleted.map(|command| format!("restore it with {command}, or remove `mod {module};`")))
}

pub(super) fn examine_conflicts(tree: &Tree, project: &Project) -> Result<Vec<Finding>> {
    let record = project.scaffolded_files().paths().map(str::to_owned);
    let mut paths: BTreeSet<String> = record.collect();
    let mut places = Vec::new();
    for product in PRODUCTS {
        let text = tree.read(product.base)?.unwrap_or_default();
        match find_conflict_in_base(&text) {
            Some(line) => places.push(format!("{}:{line}", product.base)),
            None => paths.extend(parse_base(product.base, &text)?.into_keys()),
        }
    }
    for path in paths {
        let text = tree.read(&path)?.unwrap_or_default();
        places.extend(find_conflict(&text).map(|line| format!("{path}:{line}")));
    }
    if places.is_empty() {
        return Ok(Vec::new());
    }
    Ok(vec![Finding::error(
        "conflicts",
        format!("conflicts of a merge are unresolved: {}", list_paths(&places)),
        "edit the lines between `<<<<<<<` and `>>>>>>>`",
    )])
}

pub(super) fn list_paths(paths: &[String]) -> String {
    let more = paths.len().saturating_sub(MOST_PATHS);
    let shown = paths[..paths.len() - more].join(", ");
    match more {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

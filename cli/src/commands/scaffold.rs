//! Code shared by `init` and `create`: reads the project, and adds rendered files to a plan.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow, bail};
use rbuilder_templates::{OnExists, Rendered};

use super::{cli_version, manifests};
use crate::edit::library::read_dependencies;
use crate::library::Library;
use crate::line_ends::is_same_text;
use crate::plan::Plan;
use crate::project::{FILE, Project, RECORD, check_conflict, names};
use crate::tree::Tree;

pub(super) fn read_project(tree: &Tree) -> Result<Option<Project>> {
    let Some(mut project) = Project::read(tree)? else {
        return match tree.read(FILE)? {
            Some(_) => Err(foreign_project(tree, "unsupported format")),
            None => Ok(None),
        };
    };
    // Projects of other tools have a different layout.
    if let Some(layout) = project.foreign_layout() {
        return Err(foreign_project(tree, &format!("unsupported layout `{layout}`")));
    }
    // Older commands didn't record the source of the library.
    if project.known.rbuilder.library.is_none() {
        project.known.rbuilder.library = read_library(tree);
    }
    Ok(Some(project))
}

/// The error for a PROJECT file of another tool, e.g. of a Go operator beside the Rust package.
fn foreign_project(tree: &Tree, what: &str) -> anyhow::Error {
    let advice = match tree.read("Cargo.toml") {
        Ok(None) => {
            "to create a Rust project from one of kubebuilder, run `rbuilder import <its directory>` in a new directory"
        }
        _ => {
            "for the package beside it, use `rbuilder adopt` and `rbuilder manifests`, which need no PROJECT, or move the package \
             to a directory of its own"
        }
    };
    anyhow!(
        "{what} of the project in {}: this command supports projects created by `rbuilder init`; {advice}",
        tree.shown()
    )
}

pub(super) fn read_library(tree: &Tree) -> Option<Library> {
    // In an adopted package, Cargo.toml may be a symlink, which only `sources` follows.
    let text = tree.read("Cargo.toml").ok().flatten().unwrap_or_default();
    let found = read_dependencies(&text).unwrap_or_default();
    let mut sources = found.sources.into_iter();
    sources.find_map(|source| Library::try_from(source).ok())
}

/// Reads the project that `create` adds to. Fails if there is none.
pub(super) fn require_project(tree: &Tree) -> Result<Project> {
    match read_project(tree)? {
        Some(project) => Ok(project),
        None if is_deleted(tree)? => Err(deleted_project(tree)),
        None => bail!(
            "no {FILE} file found in {} or above it: initialize a project with `rbuilder init`",
            tree.shown()
        ),
    }
}

/// Checks a project before a command changes it: PROJECT must exist and not be written by a newer
/// command.
pub(super) fn check_project(tree: &Tree) -> Result<()> {
    // If PROJECT can't be read, the command reports that.
    if let Ok(Some(text)) = tree.read(FILE) {
        check_conflict(&text)?;
    }
    match Project::read(tree) {
        Ok(None) if is_deleted(tree)? => Err(deleted_project(tree)),
        Ok(Some(project)) if project.foreign_layout().is_none() => cli_version::refuse_newer(&project),
        _ => Ok(()),
    }
}

fn is_deleted(tree: &Tree) -> Result<bool> {
    Ok(tree.read(FILE)?.is_none() && tree.read(RECORD)?.is_some())
}

fn deleted_project(tree: &Tree) -> anyhow::Error {
    anyhow!(
        "{FILE} was deleted in {}, which still has {RECORD}: restore it with `git checkout HEAD -- {FILE}`, or delete .rbuilder as well if this is no longer a project",
        tree.shown()
    )
}

pub(super) fn add_manifests(
    plan: &mut Plan,
    tree: &Tree,
    asked: bool,
) -> Result<manifests::RenderedDiagnostics> {
    if !asked {
        return Ok(manifests::RenderedDiagnostics::default());
    }
    manifests::add_to_plan(plan, tree, &manifests_request())
}

pub(super) fn manifests_request() -> manifests::Request {
    manifests::Request {
        advice: "fix these errors first, or pass `--manifests=false` and run `rbuilder manifests` later",
        ..manifests::Request::default()
    }
}

pub(super) fn check_names(
    results: impl IntoIterator<Item = Result<(), names::FlagDiagnostic>>,
) -> Result<()> {
    let errors: Vec<String> = results
        .into_iter()
        .filter_map(Result::err)
        .map(|diagnostic| format!("{} (`{}`)", diagnostic.message, diagnostic.place))
        .collect();
    if errors.is_empty() {
        return Ok(());
    }
    bail!("{}", errors.join("\nerror: "))
}

/// Adds rendered files to a plan, and records their hashes.
///
/// A recorded hash of the rendered text means that the file was scaffolded before. Later edits by
/// the user are kept unless `force` is set.
pub(super) fn add_files(
    plan: &mut Plan,
    tree: &Tree,
    project: &mut Project,
    files: &[Rendered],
    force: bool,
) -> Result<()> {
    for Rendered {
        path,
        text,
        on_exists,
    } in files
    {
        let there = plan.read(tree, path)?;
        let is_theirs =
            there.as_ref().is_some_and(|there| !is_same_text(there, text)) && !project.recorded(path, text);
        let settled = match on_exists {
            OnExists::Shared => true,
            OnExists::Owned => project.recorded(path, text) && !force,
            OnExists::Kept | OnExists::Merged => !force,
        };
        match &there {
            Some(there) if is_theirs && settled && *on_exists == OnExists::Merged => {
                plan.edit(tree, path, &merge_lines(there, text))?;
            }
            Some(_) if settled => plan.keep(path),
            _ => plan.put_owned(tree, path, text, force)?,
        }
        let is_ours = *on_exists == OnExists::Owned || (*on_exists != OnExists::Shared && !is_theirs);
        if is_ours || force && *on_exists != OnExists::Shared {
            project.record(path, text);
        }
    }
    Ok(())
}

fn merge_lines(there: &str, wanted: &str) -> String {
    let entry = |line: &str| line.trim().trim_matches('/').to_owned();
    let known: BTreeSet<String> = there.lines().map(entry).collect();
    let end = if there.contains("\r\n") { "\r\n" } else { "\n" };
    let (mut added, mut comments) = (String::new(), String::new());
    for line in wanted.lines() {
        let name = entry(line);
        if name.is_empty() {
            comments.clear();
        } else if line.starts_with('#') {
            comments = format!("{line}{end}");
        } else if !known.contains(&name) {
            if !comments.is_empty() && !added.is_empty() {
                added.push_str(end);
            }
            added.push_str(&std::mem::take(&mut comments));
            added.push_str(&format!("{line}{end}"));
        }
    }
    if added.is_empty() {
        return there.to_owned();
    }
    let mut merged = there.to_owned();
    if !merged.is_empty() && !merged.ends_with('\n') {
        merged.push_str(end);
    }
    if !merged.is_empty() {
        merged.push_str(end);
    }
    merged + &added
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_missing_lines_to_list() {
        let wanted = "/target/\n/bin/\n\n# Editors\n*.swp\n/.idea/\n";
        for (there, expected) in [
            ("", wanted),
            (wanted, wanted),
            ("target\n", "target\n\n/bin/\n\n# Editors\n*.swp\n/.idea/\n"),
            (
                "a\r\n*.swp\r\n/bin",
                "a\r\n*.swp\r\n/bin\r\n\r\n/target/\r\n\r\n# Editors\r\n/.idea/\r\n",
            ),
        ] {
            let merged = merge_lines(there, wanted);
            assert_eq!(merged, expected, "{there:?}");
            assert_eq!(merge_lines(&merged, wanted), expected);
        }
    }
}

//! `rbuilder update`: brings a project's scaffold up to date with a three-way merge.
//!
//! The base is the project's existing scaffold, as recorded by commands, or found by content for
//! files of older commands ([`Written`]). The new side is the current scaffold for the same
//! PROJECT, and the user's side is the project. Neither scaffold contains files generated from
//! source; these are generated again after a merge without conflicts.

use std::path::Path;

use anyhow::{Result, bail};
use rbuilder_templates::Archive;

use super::cli_version::{VERSION, check_version};
use super::scaffold_merge::{Report, ScaffoldMerge, Written, find_name_before};
use super::{Mode, Outcome, execute, scaffold};
use crate::edit::merge::Labels;
use crate::library::Library;
use crate::project::{ATTRIBUTES, BASE, FILE, Project, RECORD};
use crate::render::render;
use crate::request::{MergeRequest, UpdateRequest};
use crate::shell::Shell;
use crate::tree::Tree;

/// Runs the command with an archive's released templates.
///
/// # Errors
/// Fails for the same reasons as [`plan_update`], or if a file cannot be written.
pub fn run_update(
    dir: &Path,
    mode: Mode,
    requested: &UpdateRequest,
    archive: &'static Archive,
    shell: &mut Shell,
) -> Result<u8> {
    execute("update", dir, mode, shell, &mut |tree| {
        plan_update(tree, requested, archive)
    })
}

/// Plans the changes made by `update`. The exit code is 1 on conflicts.
///
/// # Errors
/// Fails if the project is newer than this command or has an unknown version, if its name in PROJECT
/// was changed by hand, if conflicts of an
/// earlier update are unresolved, if there are conflicts and `--no-conflicts` is set, if a path for
/// `--restore` exists or is not scaffolded, or if manifests cannot be generated.
pub fn plan_update(tree: &Tree, requested: &UpdateRequest, archive: &'static Archive) -> Result<Outcome> {
    let (mut outcome, report) = merge_today(tree, requested, archive)?;
    report.add_to(&mut outcome);
    Ok(outcome)
}

pub(super) struct Comparison {
    pub(super) outdated: Vec<String>,
    /// Edited files that `update` can't bring up to date.
    pub(super) unknown: Vec<String>,
}

pub(super) fn compare_scaffold(tree: &Tree, archive: &'static Archive) -> Result<Comparison> {
    let requested = UpdateRequest {
        restore: Vec::new(),
        accept: Vec::new(),
        merge: MergeRequest {
            no_conflicts: false,
            manifests: false,
        },
    };
    let (outcome, report) = merge_today(tree, &requested, archive)?;
    let changes = outcome.plan.changes().keys();
    let is_record = |path: &&String| [FILE, RECORD, BASE, ATTRIBUTES].contains(&path.as_str());
    Ok(Comparison {
        outdated: changes.filter(|path| !is_record(path)).cloned().collect(),
        unknown: report.into_unknown(),
    })
}

fn merge_today(
    tree: &Tree,
    requested: &UpdateRequest,
    archive: &'static Archive,
) -> Result<(Outcome, Report)> {
    let project = scaffold::require_project(tree)?;
    let from = check_version(&project)?;
    if let Some(change) = describe_name_change(tree, &project)? {
        bail!("{change}");
    }
    let mut target = project.clone();
    target.set_cli_version(VERSION);
    move_library(&mut target, &from);
    let labels = Labels {
        base: format!("rbuilder {from}"),
        theirs: format!("rbuilder {VERSION}"),
    };
    let scaffolds = (Written::find(tree, &project, archive)?, render(&target, None)?);
    let merge = ScaffoldMerge::new("update", tree, project, scaffolds, labels, archive)?
        .refresh_roles()
        .restore(&requested.restore)?
        .accept(&requested.accept)?;
    let library = target.known.rbuilder.library.clone();
    let (mut outcome, report) = merge.run(target, requested.merge)?;
    if from != VERSION {
        warn_library(library.as_ref(), &mut outcome);
    }
    Ok((outcome, report))
}

/// Describes a name in PROJECT that was changed by hand. Only `edit` renames the whole project.
pub(super) fn describe_name_change(tree: &Tree, project: &Project) -> Result<Option<String>> {
    let name = &project.known.project_name;
    Ok(find_name_before(tree, project)?.map(|before| {
        format!(
            "`projectName` in {FILE} was changed by hand from `{before}` to `{name}`, and the project still has the old name: set it back to `{before}`, and run `rbuilder edit --project-name {name}`"
        )
    }))
}

fn move_library(project: &mut Project, from: &str) {
    // An adopted package's manifest isn't merged.
    let is_scaffolded = project.known.rbuilder.package.is_none();
    if let Some(Library::Version { version }) = &mut project.known.rbuilder.library
        && version == from
        && is_scaffolded
    {
        VERSION.clone_into(version);
    }
}

/// Warns about an unchanged library, because new templates may use newer features.
fn warn_library(library: Option<&Library>, outcome: &mut Outcome) {
    let current = Library::Version {
        version: VERSION.into(),
    };
    if let Some(library) = library.filter(|library| **library != current) {
        outcome.warn(
            &format!("the project still gets the library from {library}"),
            "if that is older than this command, run `rbuilder library --set version`, `git` or `path`",
        );
    }
}

//! `rbuilder update`: brings the scaffold of a project up to date by a three-way merge.
//!
//! The base is the scaffold that the project was made with, rebuilt from PROJECT and the archive of released templates;
//! the new side is today's scaffold of the same PROJECT; the user's side is the project. Files that commands generate
//! from source are in neither scaffold: they are generated again after a merge without conflicts.

mod version;

use std::cmp::Ordering;
use std::path::Path;

use anyhow::{Result, bail};
use rbuilder_templates::{Archive, Release};

pub(super) use self::version::compare_versions;
use super::scaffold_merge::{ScaffoldMerge, rebuild_scaffold};
use super::{Outcome, execute, scaffold};
use crate::edit::merge::Labels;
use crate::flags::UpdateFlags;
use crate::library::Library;
use crate::project::{FILE, Project};
use crate::shell::Shell;
use crate::tree::Tree;

/// The version that projects are brought to.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs the command with the released templates of an archive.
///
/// # Errors
/// Fails as [`plan_update`] does, or if a file cannot be written.
pub fn run_update(
    dir: &Path,
    flags: &UpdateFlags,
    archive: &'static Archive,
    shell: &mut Shell,
) -> Result<u8> {
    execute("update", dir, flags.plan, shell, &mut |tree| {
        plan_update(tree, flags, archive)
    })
}

/// Returns the changes that `update` makes. Its exit code is 1 if there are conflicts.
///
/// # Errors
/// Fails if the project is newer than this command or of an unknown version, if conflicts of an earlier update are
/// unresolved, with `--no-conflicts` if there are any, with `--restore` for what exists or is not scaffolded, or if
/// manifests cannot be generated.
pub fn plan_update(tree: &Tree, flags: &UpdateFlags, archive: &'static Archive) -> Result<Outcome> {
    let project = scaffold::require_project(tree)?;
    let (from, release) = find_base(&project, archive)?;
    let mut target = project.clone();
    target.set_cli_version(VERSION);
    move_library(&mut target, &from);
    let labels = Labels {
        base: format!("rbuilder {from}"),
        theirs: format!("rbuilder {VERSION}"),
    };
    let scaffolds = (
        rebuild_scaffold(&project, release)?,
        rebuild_scaffold(&target, None)?,
    );
    let merge = ScaffoldMerge::new("update", tree, project, scaffolds, labels, archive)?
        .refresh_roles()
        .restore(&flags.restore)?;
    let library = target.known.rbuilder.library.clone();
    let (mut outcome, report) = merge.run(target, flags.merge)?;
    if from != VERSION {
        warn_library(library.as_ref(), &mut outcome);
    }
    report.add_to(&mut outcome);
    Ok(outcome)
}

/// Returns the version that the project was scaffolded with, and its templates; `None` for those of this version.
pub(super) fn find_base(
    project: &Project,
    archive: &'static Archive,
) -> Result<(String, Option<&'static Release>)> {
    let from = project.cli_version().unwrap_or_default();
    let Some(order) = compare_versions(from, VERSION) else {
        bail!(
            "expected the version of rbuilder that scaffolded the project as `cliVersion` in {FILE}, found `{}`: set it, for example to `{VERSION}`",
            from.escape_debug()
        );
    };
    if order == Ordering::Greater {
        bail!(
            "the project was scaffolded by rbuilder {from}, which is newer than this command ({VERSION}): {}",
            advise_installation(project, from)
        );
    }
    // A released version is in the archive, also if this command is a later build of the same version.
    match archive.find(from) {
        Some(release) => Ok((from.to_owned(), Some(release))),
        None if from == VERSION => Ok((from.to_owned(), None)),
        None => {
            let known = archive.releases().iter();
            let known: Vec<&str> = known.map(|release| release.versions.rbuilder.as_str()).collect();
            let known = match known.as_slice() {
                [] => String::new(),
                known => format!(", only those of {}", known.join(", ")),
            };
            bail!(
                "this command does not have the templates of rbuilder {from}{known}: set `cliVersion` in {FILE} to the released version that is closest to the project's scaffold"
            )
        }
    }
}

/// Returns the remedy for a project that is newer than this command: to install a command of its version, from where the
/// project gets the library.
pub(super) fn advise_installation(project: &Project, version: &str) -> String {
    match &project.known.rbuilder.library {
        Some(library) => format!(
            "install that version or a newer one, for example with `{}`",
            library.install_command(version)
        ),
        None => "install that version or a newer one".to_owned(),
    }
}

/// Moves a library that follows the version of the command to the new version.
fn move_library(project: &mut Project, from: &str) {
    // The manifest of an adopted package is not merged.
    let is_scaffolded = project.known.rbuilder.package.is_none();
    if let Some(Library::Version { version }) = &mut project.known.rbuilder.library
        && version == from
        && is_scaffolded
    {
        VERSION.clone_into(version);
    }
}

/// Warns about a library that stays as it is, although new templates may use what it does not have.
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

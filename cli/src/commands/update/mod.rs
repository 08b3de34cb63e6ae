//! `rbuilder update`: brings the scaffold of a project up to date by a three-way merge.
//!
//! The base is the scaffold that the project was made with, rebuilt from PROJECT and the archive of released templates;
//! the new side is today's scaffold of the same PROJECT; the user's side is the project. Files that commands generate
//! from source are in neither scaffold: they are generated again after a merge without conflicts.

mod rebuild;
mod version;

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use rbuilder_templates::{Archive, Release};
use serde_json::json;

pub use self::rebuild::rebuild_files;
use self::rebuild::{Scaffold, rebuild_scaffold};
pub(super) use self::version::compare_versions;
use super::{Outcome, execute, scaffold};
use crate::edit::merge::{Labels, Merged, find_markers, merge_scaffold};
use crate::flags::UpdateFlags;
use crate::library::Library;
use crate::plan::Plan;
use crate::project::{FILE, Project};
use crate::shell::Shell;
use crate::tree::Tree;

/// The version that projects are brought to.
const VERSION: &str = env!("CARGO_PKG_VERSION");

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
/// unresolved, with `--no-conflicts` if there are any, or if manifests cannot be generated.
pub fn plan_update(tree: &Tree, flags: &UpdateFlags, archive: &'static Archive) -> Result<Outcome> {
    let project = scaffold::require_project(tree)?;
    let (from, release) = find_base(&project, archive)?;
    let mut target = project.clone();
    target.set_cli_version(VERSION);
    move_library(&mut target, &from);
    let mut update = Update {
        tree,
        labels: Labels {
            base: format!("rbuilder {from}"),
            theirs: format!("rbuilder {VERSION}"),
        },
        base: rebuild_scaffold(&project, release)?,
        theirs: rebuild_scaffold(&target, None)?,
        older: OnceCell::new(),
        archive,
        project,
        plan: Plan::default(),
        report: Report::default(),
    };
    update.check_markers()?;
    update.merge_files(&mut target)?;
    let Update { mut plan, report, .. } = update;
    if flags.no_conflicts {
        report.refuse_conflicts()?;
    }
    target.write(&mut plan, tree)?;
    let mut outcome = if plan.is_empty() || !report.conflicts.is_empty() {
        Outcome {
            plan,
            ..Outcome::default()
        }
    } else {
        scaffold::add_manifests(&mut plan, tree, flags.manifests)?.into_outcome(plan)
    };
    if from != VERSION {
        warn_library(&target, &mut outcome);
    }
    report.add_to(&mut outcome);
    Ok(outcome)
}

/// Returns the version that the project was scaffolded with, and its templates; `None` for those of this version.
fn find_base(project: &Project, archive: &'static Archive) -> Result<(String, Option<&'static Release>)> {
    let from = project.cli_version().unwrap_or_default();
    let Some(order) = compare_versions(from, VERSION) else {
        bail!(
            "expected the version of rbuilder that scaffolded the project as `cliVersion` in {FILE}, found `{}`: set it, for example to `{VERSION}`",
            from.escape_debug()
        );
    };
    if order == Ordering::Greater {
        bail!(
            "the project was scaffolded by rbuilder {from}, which is newer than this command ({VERSION}): install that version or a newer one, for example with `cargo install rbuilder-cli --version {from}`"
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

/// Moves a library that follows the version of the command to the new version.
fn move_library(project: &mut Project, from: &str) {
    if let Some(Library::Version { version }) = &mut project.known.rbuilder.library
        && version == from
    {
        VERSION.clone_into(version);
    }
}

/// Warns about a library that stays as it is, although new templates may use what it does not have.
fn warn_library(project: &Project, outcome: &mut Outcome) {
    match &project.known.rbuilder.library {
        Some(library)
            if *library
                != (Library::Version {
                    version: VERSION.into(),
                }) =>
        {
            outcome.warn(
                &format!("the project still gets the library from {library}"),
                "if that is older than this command, run `rbuilder library --set version`, `git` or `path`",
            )
        }
        _ => {}
    }
}

/// An update while it is computed.
struct Update<'a> {
    tree: &'a Tree,
    labels: Labels,
    /// The project before the update.
    project: Project,
    base: Scaffold,
    theirs: Scaffold,
    /// The scaffolds of all releases, once they are needed.
    older: OnceCell<Vec<Scaffold>>,
    archive: &'static Archive,
    plan: Plan,
    report: Report,
}

/// The result for a file.
enum Fate {
    /// It stays as it is.
    Keep,
    /// It is written by rbuilder alone.
    Replace(String),
    /// It has changes of both sides.
    Merge(Merged),
    /// It is no longer scaffolded.
    Delete,
}

impl Update<'_> {
    /// Returns the paths of both scaffolds.
    fn paths(&self) -> BTreeSet<String> {
        let paths = self.base.files.keys().chain(self.theirs.files.keys());
        paths.cloned().collect()
    }

    /// Fails if conflicts of an earlier update are unresolved.
    fn check_markers(&self) -> Result<()> {
        let mut places = String::new();
        for path in self.paths() {
            let text = self.tree.read(&path)?.unwrap_or_default();
            if let Some(line) = find_markers(&text).first() {
                places.push_str(&format!("\n  {path}:{line}"));
            }
        }
        if places.is_empty() {
            return Ok(());
        }
        bail!("conflicts of an earlier update are unresolved; no files were written:{places}")
    }

    /// Decides about every file of both scaffolds, and records the new ones.
    fn merge_files(&mut self, target: &mut Project) -> Result<()> {
        for path in self.paths() {
            let ours = self.tree.read(&path)?;
            let fate = self.decide(&path, ours.as_deref())?;
            self.record(target, &path, ours.as_deref(), &fate);
            match fate {
                Fate::Keep => self.plan.keep(&path),
                Fate::Replace(text) => self.plan.replace(self.tree, &path, &text)?,
                Fate::Delete => self.plan.delete(self.tree, &path)?,
                Fate::Merge(merged) => {
                    let places = merged.conflicts.iter().map(|line| (path.clone(), *line));
                    self.report.conflicts.extend(places);
                    self.plan.merge(self.tree, &path, &merged.text)?;
                }
            }
        }
        Ok(())
    }

    fn decide(&mut self, path: &str, ours: Option<&str>) -> Result<Fate> {
        let base = self.base.files.get(path);
        let theirs = self.theirs.files.get(path);
        let (ours, theirs) = match (ours, base, theirs) {
            _ if base == theirs => return Ok(Fate::Keep),
            (None, None, Some(theirs)) => return Ok(Fate::Replace(theirs.clone())),
            (None, _, theirs) => {
                if theirs.is_some() {
                    self.report.deleted.push(path.to_owned());
                }
                return Ok(Fate::Keep);
            }
            (Some(_), Some(_), _) if self.is_users(path) => return Ok(Fate::Keep),
            (Some(ours), Some(base), None) if ours == base => return Ok(Fate::Delete),
            (Some(ours), Some(_), None) if self.is_pristine(path, ours)? => return Ok(Fate::Delete),
            (Some(_), _, None) => {
                self.report.unused.push(path.to_owned());
                return Ok(Fate::Keep);
            }
            (Some(ours), _, Some(theirs)) => (ours, theirs.clone()),
        };
        let base = base.cloned().unwrap_or_default();
        if ours == base || self.is_pristine(path, ours)? {
            return Ok(Fate::Replace(theirs));
        }
        Ok(Fate::Merge(merge_scaffold(
            path,
            (&base, ours, &theirs),
            &self.labels,
        )))
    }

    /// Returns whether a file was there before the project was initialized, and has been left alone: one that only a
    /// command writes, and that is not in the record.
    fn is_users(&self, path: &str) -> bool {
        let record = self.project.scaffolded_files();
        self.base.record.has(path) && !record.has(path) && !record.is_empty()
    }

    /// Returns whether a file is byte for byte what a released version scaffolds for this project, such as for a kind
    /// that was created after a newer command had been installed.
    fn is_pristine(&self, path: &str, text: &str) -> Result<bool> {
        let older = match self.older.get() {
            Some(older) => older,
            None => {
                let releases = self.archive.releases().iter();
                let older = releases.map(|release| rebuild_scaffold(&self.project, Some(release)));
                let older = older.collect::<Result<Vec<_>>>()?;
                self.older.get_or_init(|| older)
            }
        };
        let mut texts = older.iter().filter_map(|scaffold| scaffold.files.get(path));
        Ok(texts.any(|older| older == text))
    }

    /// Records a file as scaffolded in its new form, so that a command that scaffolds it again finds nothing to do.
    fn record(&self, target: &mut Project, path: &str, ours: Option<&str>, fate: &Fate) {
        if self.base.files.get(path) == self.theirs.files.get(path) || self.is_users(path) {
            return;
        }
        let Some(theirs) = self.theirs.files.get(path) else {
            return target.forget(path);
        };
        if !self.theirs.record.has(path) {
            return;
        }
        let is_unchanged = ours.is_some_and(|ours| self.project.recorded(path, ours));
        match fate {
            // Only the command has changed it: the copy of another version's types, for example.
            Fate::Merge(merged) if is_unchanged && merged.conflicts.is_empty() => {
                target.record(path, &merged.text);
            }
            _ => target.record(path, theirs),
        }
    }
}

/// What the user has to know or to do after an update.
#[derive(Default)]
struct Report {
    /// Places of conflicts: path and line.
    conflicts: Vec<(String, usize)>,
    /// Files that the user has deleted and whose templates have changed.
    deleted: Vec<String>,
    /// Files that are no longer scaffolded, and that the user has changed.
    unused: Vec<String>,
}

impl Report {
    fn places(&self) -> String {
        let places = self.conflicts.iter();
        places.map(|(path, line)| format!("\n  {path}:{line}")).collect()
    }

    /// Fails if there are conflicts.
    fn refuse_conflicts(&self) -> Result<()> {
        if self.conflicts.is_empty() {
            return Ok(());
        }
        Err(anyhow!(
            "the update has conflicts; no files were written:{}\nto get them with markers in the files, run it without `--no-conflicts`",
            self.places()
        ))
    }

    fn add_to(&self, outcome: &mut Outcome) {
        for path in &self.deleted {
            outcome.warn(
                &format!("{path} was deleted in this project, so the changes of its template are left out"),
                "if the project needs the file again, copy it from a new project of this version",
            );
        }
        for path in &self.unused {
            outcome.warn(
                &format!("{path} is no longer scaffolded, and was kept because it has changes of yours"),
                "delete it if the project does not need it",
            );
        }
        if self.conflicts.is_empty() {
            outcome.next =
                "Next: read the changes with `git diff`, then run:\n  make manifests test\n".to_owned();
            return;
        }
        outcome.exit_code = 1;
        let help = "edit the lines between `<<<<<<<` and `>>>>>>>`, then run `make manifests test`";
        outcome.warnings.push_str(&format!(
            "error: the update has conflicts to resolve:{}\n  = help: {help}\n",
            self.places()
        ));
        for (path, line) in &self.conflicts {
            outcome.diagnostics.push(json!({
                "severity": "error",
                "message": "conflict between a change of the scaffold and one of this project",
                "help": help,
                "path": path,
                "start": { "line": line, "column": 1 },
            }));
        }
    }
}

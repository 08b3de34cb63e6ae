//! Merges the difference between two scaffolds of a project into the project.
//!
//! Both scaffolds are rendered from PROJECT: one as the project was created, and one for different
//! templates or settings. The third side of the merge is the project itself, with the user's edits.

mod markers;
mod record;
mod watched_namespace;
mod written;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, anyhow, bail};
use rbuilder_templates::objects::NAME_LABEL;
use rbuilder_templates::{Archive, Release};
use serde_json::json;

use self::record::base_of;
pub(super) use self::record::record_scaffold;
use self::written::read_base;
pub(super) use self::written::{Written, find_name_before};
use super::{Outcome, features, scaffold};
use crate::edit::merge::{Labels, Merged, find_markers, merge_scaffold};
use crate::line_ends::is_same_text;
use crate::overlay::DEPLOYMENT;
use crate::plan::{FileMove, Plan};
use crate::project::{BASE, MANAGER_FILE, Project, RECORD};
use crate::render::{Scaffold, render};
use crate::request::MergeRequest;
use crate::tree::{Tree, with_slashes};

/// Renders a project's scaffold with the templates of a release or this version, without generated
/// manifests and PROJECT.
///
/// # Errors
/// Fails if the directory contains no project, or if the scaffold cannot be derived from its
/// PROJECT.
pub fn rebuild_files(tree: &Tree, release: Option<&'static Release>) -> Result<BTreeMap<String, String>> {
    let Scaffold { mut files, record } = render(&scaffold::require_project(tree)?, release)?;
    files.insert(RECORD.to_owned(), record.print());
    Ok(files)
}

pub(super) struct ScaffoldMerge<'a> {
    tree: &'a Tree,
    relocated: Relocated,
    labels: Labels,
    project: Project,
    base: Written,
    theirs: Scaffold,
    /// Scaffolds of all releases, computed on demand.
    older: OnceCell<Vec<Scaffold>>,
    archive: &'static Archive,
    restored: BTreeSet<String>,
    /// Files that the user accepts as up to date.
    accepted: BTreeSet<String>,
    /// Whether to rewrite unchanged roles whose names don't match the kind in PROJECT.
    refreshes_roles: bool,
    plan: Plan,
    report: Report,
}

/// Changes to the user's files before the merge, e.g. moves to another layout.
#[derive(Default)]
pub(super) struct Relocated {
    pub(super) moves: Vec<FileMove>,
    /// New texts of files that don't move, or `None` for a deleted file.
    pub(super) texts: BTreeMap<String, Option<String>>,
}

impl Relocated {
    fn read(&self, tree: &Tree, path: &str) -> Result<Option<String>> {
        if let Some(moved) = self.moves.iter().find(|moved| moved.to == path) {
            return Ok(Some(moved.text.clone()));
        }
        let is_away = || self.moves.iter().any(|moved| moved.from == path);
        match self.texts.get(path) {
            Some(text) => Ok(text.clone()),
            None if is_away() => Ok(None),
            None => tree.read(path),
        }
    }

    fn add_to(&self, plan: &mut Plan, tree: &Tree) -> Result<()> {
        plan.move_files(tree, &self.moves)?;
        for (path, text) in &self.texts {
            match text {
                Some(text) => plan.merge(tree, path, text)?,
                None => plan.delete(tree, path)?,
            }
        }
        Ok(())
    }
}

/// A project's file and the base of its merge after a change was made in both, so that the merge only
/// has the other changes.
struct Followed {
    base: String,
    ours: String,
}

enum Fate {
    Keep,
    /// New text of a file that only rbuilder has written.
    Replace(String),
    Merge(Merged),
    /// The file is no longer scaffolded.
    Delete,
}

impl<'a> ScaffoldMerge<'a> {
    /// Prepares a merge of two scaffolds of `project`, the current one and a new one. `command` is
    /// its name in messages. Fails if conflicts of an earlier merge are unresolved.
    pub(super) fn new(
        command: &'static str,
        tree: &'a Tree,
        project: Project,
        (base, theirs): (Written, Scaffold),
        labels: Labels,
        archive: &'static Archive,
    ) -> Result<Self> {
        let report = Report::new(command, project.test_command());
        let merge = ScaffoldMerge {
            tree,
            relocated: Relocated::default(),
            labels,
            base,
            theirs,
            older: OnceCell::new(),
            archive,
            project,
            restored: BTreeSet::new(),
            accepted: BTreeSet::new(),
            refreshes_roles: false,
            plan: Plan::default(),
            report,
        };
        merge.check_markers()?;
        Ok(merge)
    }

    /// Merges into the files after the given moves. The project and both scaffolds must be those
    /// after the moves as well.
    pub(super) fn after(self, relocated: Relocated) -> Self {
        ScaffoldMerge { relocated, ..self }
    }

    pub(super) fn refresh_roles(self) -> Self {
        ScaffoldMerge {
            refreshes_roles: true,
            ..self
        }
    }

    /// Restores deleted files of the new scaffold. Each path is a file, or a directory for all
    /// deleted files in it. Fails if a file exists, since its edits would be lost.
    pub(super) fn restore(self, paths: &[String]) -> Result<Self> {
        let mut restored = BTreeSet::new();
        for path in paths {
            let path = with_slashes(path);
            let path = path.strip_prefix("./").unwrap_or(&path);
            restored.extend(self.find_deleted(path.trim_end_matches('/'))?);
        }
        Ok(ScaffoldMerge { restored, ..self })
    }

    /// Accepts files as up to date, e.g. because the user merged template changes by hand.
    pub(super) fn accept(self, paths: &[String]) -> Result<Self> {
        let mut accepted = BTreeSet::new();
        for path in paths {
            let path = with_slashes(path);
            let path = path.strip_prefix("./").unwrap_or(&path);
            if !self.theirs.files.contains_key(path) {
                bail!("cannot accept {path}: it is not a scaffolded file of this project");
            }
            if self.tree.read(path)?.is_none() {
                bail!(
                    "cannot accept {path}: it does not exist; to write it, run `rbuilder update --restore {path}`"
                );
            }
            accepted.insert(path.to_owned());
        }
        Ok(ScaffoldMerge { accepted, ..self })
    }

    fn find_deleted(&self, path: &str) -> Result<Vec<String>> {
        if self.theirs.files.contains_key(path) {
            return match self.tree.read(path)? {
                None => Ok(vec![path.to_owned()]),
                Some(_) => bail!("cannot restore {path}: it exists; move it away first"),
            };
        }
        let mut inner = self.theirs.find_below(path).peekable();
        if inner.peek().is_none() {
            let help = match path.starts_with("config/") {
                true => "generated files are written by `rbuilder manifests`",
                false => "`rbuilder doctor` lists the files that were deleted",
            };
            bail!("cannot restore {path}: it is not a scaffolded file of this project; {help}");
        }
        let mut deleted = Vec::new();
        for file in inner {
            if self.tree.read(file)?.is_none() {
                deleted.push(file.to_owned());
            }
        }
        match deleted.is_empty() {
            true => bail!("cannot restore {path}: all files that were scaffolded in it exist"),
            false => Ok(deleted),
        }
    }

    /// Plans the changes that turn the project into `target`, and reports on them.
    pub(super) fn run(mut self, mut target: Project, requested: MergeRequest) -> Result<(Outcome, Report)> {
        self.relocated.add_to(&mut self.plan, self.tree)?;
        self.merge_files(&mut target)?;
        let is_settled = |path: &str| self.accepted.contains(path) || self.restored.contains(path);
        let base = base_of(
            &self.theirs,
            &target,
            &self.base,
            is_settled,
            read_base(self.tree, &self.project)?,
        );
        self.plan.replace(self.tree, BASE, &base.print())?;
        let ScaffoldMerge {
            tree,
            mut plan,
            report,
            ..
        } = self;
        if requested.no_conflicts {
            refuse_conflicts(report.command, &report.conflicts)?;
        }
        plan.write_project(&target, tree)?;
        let asked = requested.manifests && !plan.is_empty() && report.conflicts.is_empty();
        let outcome = scaffold::add_manifests(&mut plan, tree, asked)?.into_outcome(plan);
        Ok((outcome, report))
    }

    fn paths(&self) -> BTreeSet<String> {
        let paths = self.base.files.keys().chain(self.theirs.files.keys());
        paths.cloned().collect()
    }

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

    fn merge_files(&mut self, target: &mut Project) -> Result<()> {
        for path in self.paths() {
            let ours = self.relocated.read(self.tree, &path)?;
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
            (None, _, Some(theirs)) if self.restored.contains(path) => {
                return Ok(Fate::Replace(theirs.clone()));
            }
            (Some(ours), _, Some(theirs))
                if base == Some(theirs) && self.is_role_of_old_names(path, ours, theirs) =>
            {
                return Ok(Fate::Replace(theirs.clone()));
            }
            (Some(_), ..) if self.accepted.contains(path) => return Ok(Fate::Keep),
            _ if self.is_users(path) => return Ok(Fate::Keep),
            (Some(ours), _, Some(theirs)) if is_same_text(ours, theirs) => return Ok(Fate::Keep),
            (ours, ..) if self.base.unknown.contains(path) => {
                self.report.add_unknown(path, ours.is_some());
                return Ok(Fate::Keep);
            }
            _ if base == theirs => return Ok(Fate::Keep),
            (None, None, Some(theirs)) => return Ok(Fate::Replace(theirs.clone())),
            (None, _, theirs) => {
                if theirs.is_some() {
                    self.report.deleted.push(path.to_owned());
                }
                return Ok(Fate::Keep);
            }
            (Some(ours), Some(base), None) if is_same_text(ours, base) => return Ok(Fate::Delete),
            (Some(ours), Some(_), None) if self.is_pristine(path, ours)? => return Ok(Fate::Delete),
            (Some(_), _, None) => {
                self.report.unused.push(path.to_owned());
                return Ok(Fate::Keep);
            }
            (Some(ours), _, Some(theirs)) => (ours, theirs.clone()),
        };
        let mut base = base.cloned().unwrap_or_default();
        let mut theirs = theirs;
        if path == DEPLOYMENT {
            // Other commands made these settings, so they are no edits of the user.
            base = features::with_entries_of(&base, ours);
            theirs = features::with_entries_of(&theirs, ours);
        }
        if is_same_text(ours, &base) || self.is_pristine(path, ours)? {
            return Ok(Fate::Replace(theirs));
        }
        // The order of added lines depends on the order of commands and merged branches.
        if !self.theirs.record.has(path) && has_same_lines(ours, &theirs) {
            return Ok(Fate::Keep);
        }
        Ok(Fate::Merge(self.merge(path, (&base, ours, &theirs))))
    }

    /// Merges a file. Changes of settings that conflict with lines of the project are made in the
    /// project's own lines instead.
    fn merge(&self, path: &str, sides: (&str, &str, &str)) -> Merged {
        let merged = merge_scaffold(path, sides, &self.labels);
        if merged.conflicts.is_empty() {
            return merged;
        }
        let followed = match path {
            MANAGER_FILE => watched_namespace::follow(self.project.known.rbuilder.names.container(), sides),
            path if path.ends_with(".rs") => markers::follow(sides),
            _ => None,
        };
        let Some(followed) = followed else { return merged };
        let again = merge_scaffold(path, (&followed.base, &followed.ours, sides.2), &self.labels);
        match again.conflicts.len() < merged.conflicts.len() {
            true => again,
            false => merged,
        }
    }

    /// Whether a file is a role or a script for Argo CD that only the command has written, with
    /// names that are outdated because the kind's names in PROJECT changed since.
    fn is_role_of_old_names(&self, path: &str, ours: &str, theirs: &str) -> bool {
        let is_role =
            path.starts_with("config/") && path.ends_with("_role.yaml") || path.starts_with("config/argocd/");
        self.refreshes_roles
            && is_role
            && self.project.is_as_scaffolded(path, ours)
            && !has_same_lines(&without_name(ours), &without_name(theirs))
    }

    /// Whether a file existed before the project was initialized, i.e. belongs to the user.
    fn is_users(&self, path: &str) -> bool {
        self.base.foreign.contains(path)
    }

    /// Whether a file equals a release's scaffold for this project, apart from line endings. For
    /// example, a kind may have been created after a newer command was installed.
    fn is_pristine(&self, path: &str, text: &str) -> Result<bool> {
        // Rendering is fallible, and `OnceCell::get_or_try_init` isn't stable yet.
        let older = match self.older.get() {
            Some(older) => older,
            None => {
                let releases = self.archive.releases().iter();
                let older = releases.map(|release| render(&self.project, Some(release)));
                let older = older.collect::<Result<Vec<_>>>()?;
                self.older.get_or_init(|| older)
            }
        };
        let mut texts = older.iter().filter_map(|scaffold| scaffold.files.get(path));
        Ok(texts.any(|older| is_same_text(older, text)))
    }

    /// Records a file as scaffolded in its new form, so that scaffolding it again is a no-op.
    fn record(&self, target: &mut Project, path: &str, ours: Option<&str>, fate: &Fate) {
        let is_same = self.base.files.get(path) == self.theirs.files.get(path);
        // A rename makes both sides equal, but the record is still the old one.
        let is_same = is_same && !self.relocated.texts.contains_key(path);
        let is_unknown = self.base.unknown.contains(path) && matches!(fate, Fate::Keep);
        if (is_same && !matches!(fate, Fate::Replace(_))) || self.is_users(path) {
            return;
        }
        if is_unknown && !self.accepted.contains(path) {
            return;
        }
        if !self.theirs.files.contains_key(path) {
            return target.forget(path);
        }
        if !self.theirs.record.has(path) {
            return;
        }
        let is_unchanged = ours.is_some_and(|ours| self.project.recorded(path, ours));
        match fate {
            // Only a command has changed the file, e.g. by copying the types of another version.
            Fate::Merge(merged) if is_unchanged && merged.conflicts.is_empty() => {
                target.record(path, &merged.text);
            }
            _ => target.record_as(path, &self.theirs.record),
        }
    }
}

/// A manifest without the label that has the name of the project.
fn without_name(manifest: &str) -> String {
    let lines = manifest.lines();
    let others = lines.filter(|line| !line.trim_start().starts_with(NAME_LABEL));
    others.map(|line| format!("{line}\n")).collect()
}

fn has_same_lines(one: &str, other: &str) -> bool {
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    sorted(one) == sorted(other)
}

pub(super) struct Report {
    command: &'static str,
    test_command: &'static str,
    conflicts: Vec<ConflictPlace>,
    /// Files deleted by the user whose templates have changed.
    deleted: Vec<String>,
    /// Files that are no longer scaffolded but were edited by the user.
    unused: Vec<String>,
    /// Edited files that can't be merged because their original text is unknown.
    unknown: Vec<String>,
}

impl Report {
    fn new(command: &'static str, test_command: &'static str) -> Report {
        Report {
            command,
            test_command,
            conflicts: Vec::new(),
            deleted: Vec::new(),
            unused: Vec::new(),
            unknown: Vec::new(),
        }
    }

    pub(super) fn into_unknown(self) -> Vec<String> {
        self.unknown
    }

    fn add_unknown(&mut self, path: &str, is_there: bool) {
        match is_there {
            true => self.unknown.push(path.to_owned()),
            false => self.deleted.push(path.to_owned()),
        }
    }

    pub(super) fn add_to(&self, outcome: &mut Outcome) {
        for path in &self.deleted {
            outcome.warn(
                &format!("{path} was deleted in this project, so changes of its template are skipped"),
                &format!("to restore the file, run `rbuilder update --restore {path}`"),
            );
        }
        for path in &self.unused {
            outcome.warn(
                &format!("{path} is no longer scaffolded, and was kept because you have changed it"),
                "delete it if the project does not need it",
            );
        }
        self.add_outdated(outcome);
        if self.conflicts.is_empty() {
            outcome.next = format!(
                "Next: review the changes with `git diff`, then run:\n  {}\n",
                self.test_command
            );
            return;
        }
        add_conflicts(outcome, self.command, &self.conflicts, self.test_command);
    }
}

impl Report {
    fn add_outdated(&self, outcome: &mut Outcome) {
        let Some(first) = self.unknown.first() else {
            return;
        };
        outcome.exit_code = 1;
        let message = "these files were not brought up to date: they were edited, and the project does not record as what they were scaffolded";
        let help = format!(
            "for each file, move it away, write it with `rbuilder update --restore {first}`, and make your changes in it again; to keep a file as it is, run `rbuilder update --accept {first}`"
        );
        let list: String = self.unknown.iter().map(|path| format!("\n  {path}")).collect();
        outcome
            .warnings
            .push_str(&format!("error: {message}:{list}\n  = help: {help}\n"));
        for path in &self.unknown {
            outcome.diagnostics.push(json!({
                "severity": "error",
                "message": "the file was not brought up to date: it was edited, and the project does not record as what it was scaffolded",
                "help": help,
                "path": path,
            }));
        }
    }
}

pub(super) type ConflictPlace = (String, usize);

fn list_places(conflicts: &[ConflictPlace]) -> String {
    let places = conflicts.iter();
    places.map(|(path, line)| format!("\n  {path}:{line}")).collect()
}

pub(super) fn refuse_conflicts(command: &str, conflicts: &[ConflictPlace]) -> Result<()> {
    if conflicts.is_empty() {
        return Ok(());
    }
    Err(anyhow!(
        "the {command} has conflicts; no files were written:{}\nto write them to the files as conflict markers, run it without `--no-conflicts`",
        list_places(conflicts)
    ))
}

/// Adds conflicts as errors with exit code 1. `next` is the command to run after resolving them.
pub(super) fn add_conflicts(outcome: &mut Outcome, command: &str, conflicts: &[ConflictPlace], next: &str) {
    outcome.exit_code = 1;
    let help = format!("edit the lines between `<<<<<<<` and `>>>>>>>`, then run `{next}`");
    outcome.warnings.push_str(&format!(
        "error: the {command} has conflicts to resolve:{}\n  = help: {help}\n",
        list_places(conflicts)
    ));
    for (path, line) in conflicts {
        outcome.diagnostics.push(json!({
            "severity": "error",
            "message": "conflict between a change of the scaffold and one of this project",
            "help": help,
            "path": path,
            "start": { "line": line, "column": 1 },
        }));
    }
}

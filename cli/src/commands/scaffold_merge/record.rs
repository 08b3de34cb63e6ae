//! Records what a command has scaffolded, as the base for later merges.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use anyhow::Result;

use super::written::{Written, carry, find_foreign, read_base};
use crate::line_ends::is_same_text;
use crate::plan::Plan;
use crate::project::{BASE, FILE, Project, RECORD, ScaffoldBase};
use crate::render::{Scaffold, render};
use crate::tree::Tree;

/// Adds a project's base to a plan that changes the scaffold. No-op if the plan already contains
/// the base, e.g. after a merge.
pub(in crate::commands) fn record_scaffold(plan: &mut Plan, tree: &Tree) -> Result<()> {
    let is_changed = [FILE, RECORD]
        .iter()
        .any(|path| plan.changes().contains_key(*path));
    if !is_changed || plan.has(BASE) {
        return Ok(());
    }
    let Some(project) = plan.read_project(tree)? else {
        return Ok(());
    };
    // If a manual edit makes PROJECT unrenderable, the base stays the same.
    let Ok(after) = render(&project, None) else {
        return Ok(());
    };
    let recorder = Recorder {
        plan,
        tree,
        before: OnceCell::new(),
    };
    let current = Project::read(tree)?;
    let mut base = read_base(tree, current.as_ref().unwrap_or(&project))?;
    if !recorder.update(&mut base, &after, &project)? {
        return Ok(());
    }
    // With the names that the texts have, which the file may not record.
    base.set(FILE, &project.print());
    plan.replace(tree, BASE, &base.print())
}

struct Recorder<'a> {
    plan: &'a Plan,
    tree: &'a Tree,
    /// Files that this version scaffolds for the PROJECT before the command, rebuilt on demand.
    /// `None` if impossible.
    before: OnceCell<Option<BTreeMap<String, String>>>,
}

impl Recorder<'_> {
    /// Updates a base. Returns false if that's impossible.
    fn update(&self, base: &mut ScaffoldBase, after: &Scaffold, project: &Project) -> Result<bool> {
        let gone = base.texts().map(|(path, _)| path.to_owned());
        let gone: Vec<String> = gone.filter(|path| !after.files.contains_key(path)).collect();
        for path in gone {
            let Some(before) = self.before()? else {
                return Ok(false);
            };
            // A file that only older templates have is removed by the next update.
            if before.contains_key(&path) {
                base.forget(&path);
            }
        }
        for path in find_foreign(after, project) {
            if !base.has(path) && self.plan.read(self.tree, path)?.is_some() {
                base.set_foreign(path);
            }
        }
        for (path, text) in &after.files {
            if base.is_foreign(path) {
                continue;
            }
            let ours = self.plan.read(self.tree, path)?;
            if ours.is_some_and(|ours| is_same_text(&ours, text)) {
                base.set(path, text);
                continue;
            }
            let Some(before) = self.before()? else {
                return Ok(false);
            };
            let text = match (before.get(path), base.text(path)) {
                (None, _) => Some(text.clone()),
                // On a conflict, keep the older text, so that the next update still brings the file
                // up to date.
                (Some(old), Some(written)) => carry(path, written, (old, text)),
                (Some(_), None) => None,
            };
            if let Some(text) = text {
                base.set(path, &text);
            }
        }
        Ok(true)
    }

    fn before(&self) -> Result<Option<&BTreeMap<String, String>>> {
        if self.before.get().is_none() {
            let files = match Project::read(self.tree)? {
                Some(project) => render(&project, None).ok().map(|scaffold| scaffold.files),
                None => Some(BTreeMap::new()),
            };
            self.before.get_or_init(|| files);
        }
        Ok(self.before.get().and_then(Option::as_ref))
    }
}

/// The base after a merge to `scaffold`, without files whose original text is unknown.
pub(super) fn base_of(
    scaffold: &Scaffold,
    target: &Project,
    written: &Written,
    is_settled: impl Fn(&str) -> bool,
    old: ScaffoldBase,
) -> ScaffoldBase {
    let mut base = old;
    let gone: Vec<String> = base
        .texts()
        .map(|(path, _)| path.to_owned())
        .filter(|path| !scaffold.files.contains_key(path))
        .collect();
    gone.iter().for_each(|path| base.forget(path));
    for (path, text) in &scaffold.files {
        let is_unknown = written.unknown.contains(path) || written.assumed.contains(path);
        match (written.foreign.contains(path), is_unknown) {
            _ if is_settled(path) => base.set(path, text),
            (true, _) => base.set_foreign(path),
            (_, true) => base.forget(path),
            _ => base.set(path, text),
        }
    }
    base.set(FILE, &target.print());
    base
}

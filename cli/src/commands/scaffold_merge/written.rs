//! A project's scaffold as written by commands, without the user's edits.
//!
//! A project records it in `.rbuilder/` (see [`ScaffoldBase`]). The text of a file that an older
//! command didn't record is found by content: an unedited file has the recorded hash, and for an
//! edited file the hash reveals which former templates wrote it. The version in PROJECT only
//! matters if the templates of that release are known, because builds of the same version differ. A
//! file with an unknown base is reported, and never counts as up to date.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use rbuilder_templates::Archive;
use similar::{ChangeTag, TextDiff};

use crate::edit::merge::{Labels, merge_scaffold};
use crate::line_ends::{is_same_text, unify};
use crate::project::{BASE, FILE, Project, ScaffoldBase, ScaffoldedFiles};
use crate::render::{Scaffold, render};
use crate::tree::Tree;

/// A project's existing scaffold, which is the base of a merge.
#[derive(Debug, Default)]
pub(in crate::commands) struct Written {
    pub(in crate::commands) files: BTreeMap<String, String>,
    pub(in crate::commands) foreign: BTreeSet<String>,
    pub(in crate::commands) unknown: BTreeSet<String>,
    /// Unknown files for which the scaffold of this version is assumed.
    pub(in crate::commands) assumed: BTreeSet<String>,
}

impl Written {
    pub(in crate::commands) fn rebuilt(scaffold: Scaffold, project: &Project) -> Written {
        Written {
            foreign: find_foreign(&scaffold, project).map(str::to_owned).collect(),
            files: scaffold.files,
            ..Written::default()
        }
    }

    /// Finds a project's scaffold. Fails if the templates of PROJECT's release reject PROJECT.
    pub(in crate::commands) fn find(
        tree: &Tree,
        project: &Project,
        archive: &'static Archive,
    ) -> Result<Written> {
        let base = read_base(tree, project)?;
        let mut written = Written::default();
        for (path, text) in base.texts() {
            written.files.insert(path.to_owned(), text.to_owned());
        }
        written.foreign = base.foreign().map(str::to_owned).collect();
        if project.scaffolded_files().paths().all(|path| base.has(path)) && !base.is_empty() {
            return Ok(written);
        }
        let older = match project.cli_version().and_then(|version| archive.find(version)) {
            Some(release) => Written::rebuilt(render(project, Some(release))?, project),
            None => Former::find(project).written(tree)?,
        };
        let is_new = |path: &String| !base.has(path);
        written
            .files
            .extend(older.files.into_iter().filter(|(path, _)| is_new(path)));
        written.foreign.extend(older.foreign.into_iter().filter(is_new));
        written.unknown.extend(older.unknown.into_iter().filter(is_new));
        Ok(written)
    }

    pub(in crate::commands) fn is_same(&self, scaffold: &Scaffold) -> bool {
        let is_in = |path: &String, text: &String| {
            self.foreign.contains(path)
                || self
                    .files
                    .get(path)
                    .is_some_and(|known| is_same_text(known, text))
        };
        self.unknown.is_empty()
            && self.files.keys().all(|path| scaffold.files.contains_key(path))
            && scaffold.files.iter().all(|(path, text)| is_in(path, text))
    }

    /// The scaffold after a change to PROJECT. `before` and `after` are the scaffolds of this
    /// version before and after the change. Where the change conflicts with an older text, the text
    /// of this version is used.
    pub(in crate::commands) fn with_change(&self, before: &Scaffold, after: Scaffold) -> Scaffold {
        let mut files: BTreeMap<String, String> = self
            .files
            .iter()
            .filter(|(path, _)| !before.files.contains_key(*path))
            .map(|(path, text)| (path.clone(), text.clone()))
            .collect();
        for (path, text) in after.files {
            let old = before.files.get(&path);
            let text = match (old, self.files.get(&path)) {
                (Some(old), Some(written)) => carry(&path, written, (old, &text)).unwrap_or(text),
                // `update` adds files that only the templates of this version have.
                (Some(_), None) if !self.unknown.contains(&path) && !self.foreign.contains(&path) => continue,
                _ => text,
            };
            files.insert(path, text);
        }
        Scaffold {
            files,
            record: after.record,
        }
    }

    pub(in crate::commands) fn or_todays(mut self, today: &Scaffold) -> Written {
        self.assumed = std::mem::take(&mut self.unknown);
        for path in &self.assumed {
            if let Some(text) = today.files.get(path) {
                self.files.insert(path.clone(), text.clone());
            }
        }
        self
    }
}

/// The name of the project as commands have written it, if PROJECT was edited by hand since.
pub(in crate::commands) fn find_name_before(tree: &Tree, project: &Project) -> Result<Option<String>> {
    let base = ScaffoldBase::parse(&tree.read(BASE)?.unwrap_or_default())?;
    let recorded = base.text(FILE).and_then(|text| Project::parse(text).ok());
    let name = recorded.map(|recorded| recorded.known.project_name);
    Ok(name.filter(|name| *name != project.known.project_name))
}

/// Reads a project's base. If PROJECT was edited by hand since, the base follows the edit; the
/// corresponding changes to the scaffold are up to the user.
pub(super) fn read_base(tree: &Tree, project: &Project) -> Result<ScaffoldBase> {
    let mut base = ScaffoldBase::parse(&tree.read(BASE)?.unwrap_or_default())?;
    let recorded = base.text(FILE).and_then(|text| Project::parse(text).ok());
    if let Some(mut recorded) = recorded.filter(|recorded| recorded.known != project.known) {
        recorded.set_scaffolded_files(project.scaffolded_files().clone());
        let scaffolds = (render(&recorded, None), render(project, None));
        if let (Ok(before), Ok(after)) = scaffolds {
            follow_change(&mut base, &before, &after);
        }
    }
    Ok(base)
}

fn follow_change(base: &mut ScaffoldBase, before: &Scaffold, after: &Scaffold) {
    let gone = before
        .files
        .keys()
        .filter(|path| !after.files.contains_key(*path));
    gone.for_each(|path| base.forget(path));
    for (path, text) in &after.files {
        let text = match (before.files.get(path), base.text(path)) {
            (Some(old), Some(written)) if old != text => carry(path, written, (old, text)),
            (None, None) => Some(text.clone()),
            _ => None,
        };
        if let Some(text) = text {
            base.set(path, &text);
        }
    }
}

/// Applies the change between two scaffolds to an older version of a file. Returns `None` on a
/// conflict.
pub(super) fn carry(path: &str, written: &str, (before, after): (&str, &str)) -> Option<String> {
    if is_same_text(written, before) {
        return Some(after.to_owned());
    }
    let labels = Labels {
        base: String::new(),
        theirs: String::new(),
    };
    let merged = merge_scaffold(path, (before, written, after), &labels);
    merged.conflicts.is_empty().then_some(merged.text)
}

/// Finds unrecorded files that only commands write, i.e. that existed before.
pub(super) fn find_foreign<'a>(
    scaffold: &'a Scaffold,
    project: &'a Project,
) -> impl Iterator<Item = &'a str> {
    let record = project.scaffolded_files();
    let paths = scaffold.record.paths();
    paths.filter(|path| !record.is_empty() && !record.has(path))
}

/// Scaffolds that an older command may have created for a project, newest first.
struct Former<'a> {
    project: &'a Project,
    scaffolds: Vec<Scaffold>,
    /// Indices of the scaffolds that match the most recorded hashes.
    best: OnceCell<Vec<usize>>,
}

impl<'a> Former<'a> {
    /// Rebuilds scaffolds until one of them matches all recorded files.
    fn find(project: &'a Project) -> Former<'a> {
        let mut scaffolds = Vec::new();
        let sets = Archive::former().releases().iter().rev();
        // The templates of this version first, then those of releases, newest first.
        let sets = std::iter::once(None).chain(sets.map(Some));
        for release in sets {
            // Templates that can't scaffold the project didn't create it.
            let Ok(scaffold) = render(project, release) else {
                continue;
            };
            let named = count_recorded(project, &scaffold);
            let is_whole = named == scaffold.record.paths().count();
            // The project may have been scaffolded before its objects were renamed.
            let record = match project.known.rbuilder.names.is_default() {
                true => None,
                false => render(&project.with_default_names(), release).ok(),
            };
            let record = record.map(|scaffold| scaffold.record);
            let record = record.filter(|record| count_shared(project, record) > named);
            scaffolds.push(Scaffold {
                record: record.unwrap_or(scaffold.record),
                files: scaffold.files,
            });
            if is_whole {
                break;
            }
        }
        Former {
            project,
            scaffolds,
            best: OnceCell::new(),
        }
    }

    fn written(&self, tree: &Tree) -> Result<Written> {
        let mut written = Written::default();
        let paths: BTreeSet<&String> = self
            .scaffolds
            .iter()
            .flat_map(|scaffold| scaffold.files.keys())
            .collect();
        for path in paths {
            let ours = tree.read(path)?;
            let found = self.find_text(path, ours.as_deref());
            let is_owned = self.scaffolds.iter().any(|scaffold| scaffold.record.has(path));
            let is_recorded = self.project.scaffolded_files().has(path);
            if is_owned && !is_recorded {
                if self.is_before_today(path) {
                    written.foreign.insert(path.clone());
                }
            } else if let Some(text) = found {
                written.files.insert(path.clone(), text);
            } else if is_recorded || (ours.is_some() && self.is_before_today(path)) {
                written.unknown.insert(path.clone());
            }
        }
        Ok(written)
    }

    fn find_text(&self, path: &str, ours: Option<&str>) -> Option<String> {
        let record = self.project.scaffolded_files();
        if record.has(path) {
            let known: Vec<&String> = self
                .scaffolds
                .iter()
                .filter(|scaffold| scaffold.record.shares(path, record))
                .filter_map(|scaffold| scaffold.files.get(path))
                .collect();
            let is_ours = |text: &&&String| ours.is_some_and(|ours| is_same_text(ours, text));
            if let Some(text) = known.iter().find(is_ours).or(known.first()) {
                return Some((*text).clone());
            }
            // An unedited file of templates that are not known. With two hashes, `import` may have
            // recorded its own text, which is the base of no template.
            let ours = ours.filter(|ours| record.contains(path, ours) && record.count(path) == 1);
            return ours.map(|ours| unify(ours).into_owned());
        }
        // Files written by several commands have no recorded hash. Assume that they are as old as
        // the other files.
        let candidates = self
            .best()
            .iter()
            .filter_map(|index| self.scaffolds[*index].files.get(path));
        candidates
            .min_by_key(|text| ours.map_or(0, |ours| count_differences(text, ours)))
            .cloned()
    }

    /// Whether one of the best matching scaffolds contains a file.
    fn is_before_today(&self, path: &str) -> bool {
        let mut best = self.best().iter();
        best.any(|index| self.scaffolds[*index].files.contains_key(path))
    }

    fn best(&self) -> &[usize] {
        self.best.get_or_init(|| {
            let counts = self
                .scaffolds
                .iter()
                .map(|scaffold| count_recorded(self.project, scaffold));
            let counts: Vec<usize> = counts.collect();
            let most = counts.iter().copied().max().unwrap_or_default();
            let indices = counts
                .iter()
                .enumerate()
                .filter(|(_, count)| **count == most && most > 0);
            indices.map(|(index, _)| index).collect()
        })
    }
}

fn count_recorded(project: &Project, scaffold: &Scaffold) -> usize {
    count_shared(project, &scaffold.record)
}

fn count_shared(project: &Project, scaffolded: &ScaffoldedFiles) -> usize {
    let record = project.scaffolded_files();
    let paths = scaffolded.paths();
    paths.filter(|path| scaffolded.shares(path, record)).count()
}

fn count_differences(one: &str, other: &str) -> usize {
    let diff = TextDiff::from_lines(one, other);
    let changes = diff.iter_all_changes();
    changes.filter(|change| change.tag() != ChangeTag::Equal).count()
}

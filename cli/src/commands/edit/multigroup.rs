//! `rbuilder edit --multigroup`: moves the files of each API group into separate directories, or
//! back.
//!
//! The moves follow from PROJECT: from each kind's paths in the old layout to its paths in the new
//! one. Both the project and the scaffold that it was created with are moved, by the same code. The
//! remaining changes, e.g. headings and the files of groups, result from merging the moved
//! scaffold, the moved project and the scaffold for the new layout. For an unchanged file, the
//! merge simply takes the new scaffold.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, anyhow, bail};
use rbuilder_templates::{OnExists, Rendered};
use rbuilder_yaml::is_yaml;

use crate::commands::Outcome;
use crate::commands::scaffold_merge::Relocated;
use crate::edit::dependency::library_name;
use crate::edit::rust::relocate::{FileFate, ModuleMoves, Obstruction, relocate_paths, replace_declarations};
use crate::edit::{Obstacle, kustomization};
use crate::plan::FileMove;
use crate::project::{FILE, Project, ScaffoldedFiles};
use crate::render::{self, ApiPlaces, Scaffold, webhook_context};
use crate::tree::Tree;

type Files = BTreeMap<String, String>;

const CODE: [&str; 4] = ["src", "tests", "examples", "benches"];
/// Directories with manifests whose file names contain the group.
const MANIFESTS: [&str; 2] = ["config/rbac", "config/webhook"];

pub(super) fn check_layout(project: &Project, target: &Project) -> Result<()> {
    let resources = &target.known.resources;
    if project.known.multigroup == target.known.multigroup || resources.is_empty() {
        return Ok(());
    }
    if project.known.rbuilder.package.is_some() {
        bail!(
            "`--multigroup` does not move the modules of an adopted package: move the directories of each group by hand, then set `multigroup` in {FILE}"
        );
    }
    if target.known.multigroup {
        for resource in resources {
            render::check_group_directory(target, resource)?;
        }
        return Ok(());
    }
    let own = resources.iter().filter(|resource| resource.api.is_some());
    let groups: BTreeMap<&str, String> = own
        .map(|resource| (resource.group.as_str(), resource.qualified_group()))
        .collect();
    if groups.len() > 1 {
        let groups: Vec<String> = groups.into_values().collect();
        bail!(
            "the project has APIs in the groups `{}`, but a layout without directories for groups supports only one: delete the APIs of the others first with `rbuilder delete api`, or keep `--multigroup`",
            groups.join("`, `")
        );
    }
    Ok(())
}

pub(super) struct Relocation {
    pub(super) project: Project,
    pub(super) base: Scaffold,
    pub(super) relocated: Relocated,
    pub(super) role_references: Vec<RoleReference>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RoleReference {
    path: String,
    line: usize,
    old: String,
    new: String,
}

/// Moves a project, and the scaffold that it was created with, to the layout of `target`. Fails
/// with all paths that can't be rewritten, or with a file that is in the way.
pub(super) fn relocate(
    tree: &Tree,
    project: &Project,
    target: &Project,
    base: Scaffold,
    theirs: &Scaffold,
) -> Result<Relocation> {
    let library = library_name(&tree.read("Cargo.toml")?.unwrap_or_default())
        .unwrap_or_else(|| render::crate_ident(project));
    let ours_layout = LayoutChange::new(project, target)?;
    let files = read_files(tree, &base, &ours_layout)?;
    let ours = ours_layout.move_all(&files, &library)?;

    // File names in the base don't depend on this project's record.
    let mut unrecorded = project.clone();
    unrecorded.set_scaffolded_files(ScaffoldedFiles::default());
    let base_layout = LayoutChange::new(&unrecorded, target)?;
    let moved_base = base_layout.move_all(&base.files, &render::crate_ident(project))?;

    let record = move_record(project, (&files, &ours), (&base, theirs));
    let mut base_record = base.record;
    for (from, to) in &moved_base.moves {
        base_record.rename(from, to);
    }
    let mut project = project.clone();
    project.known.multigroup = target.known.multigroup;
    project.set_scaffolded_files(record);
    Ok(Relocation {
        project,
        base: Scaffold {
            files: moved_base.files,
            record: base_record,
        },
        relocated: ours.into_relocated(&files),
        role_references: ours_layout.find_role_references(tree)?,
    })
}

/// Derives the project's record after the moves. Unchanged files must stay unchanged, and anything
/// that matched the old scaffold's record must match the new one's.
fn move_record(
    project: &Project,
    (files, moved): (&Files, &MovedFiles),
    (base, theirs): (&Scaffold, &Scaffold),
) -> ScaffoldedFiles {
    let before = project.scaffolded_files();
    let mut record = ScaffoldedFiles::default();
    for from in before.paths() {
        let to = moved.moves.get(from).map_or(from, String::as_str);
        let text = files.get(from).zip(moved.files.get(to));
        if before.agrees(from, &base.record) && theirs.record.has(to) {
            record.copy(to, &theirs.record);
        } else if let Some((_, after)) = text.filter(|(text, _)| project.recorded(from, text)) {
            record.record(to, after);
        } else {
            record.copy(from, before);
            record.rename(from, to);
        }
    }
    record
}

fn read_files(tree: &Tree, base: &Scaffold, layout: &LayoutChange) -> Result<Files> {
    let mut paths: BTreeSet<String> = base.files.keys().cloned().collect();
    let mut folders: Vec<String> = CODE
        .iter()
        .chain(&MANIFESTS)
        .map(|folder| (*folder).to_owned())
        .collect();
    while let Some(folder) = folders.pop() {
        folders.extend(tree.list_folders(&folder)?);
        let listed = tree.list(&folder)?.into_iter();
        paths.extend(listed.filter(|path| path.ends_with(".rs") || layout.fate(path) != FileFate::Stays));
    }
    let mut files = Files::new();
    for path in paths {
        if let Some(text) = tree.read(&path)? {
            files.insert(path, text);
        }
    }
    Ok(files)
}

struct LayoutChange {
    modules: ModuleMoves,
    files: BTreeMap<String, String>,
    /// Modules of webhooks from which only some parts move.
    kept: BTreeSet<Vec<String>>,
    roles: BTreeMap<String, String>,
}

#[derive(Default)]
struct Declarations {
    removed: BTreeSet<String>,
    added: BTreeSet<String>,
}

struct MovedFiles {
    files: Files,
    moves: BTreeMap<String, String>,
}

impl LayoutChange {
    fn new(project: &Project, target: &Project) -> Result<LayoutChange> {
        let mut change = LayoutChange {
            modules: ModuleMoves::default(),
            files: BTreeMap::new(),
            kept: BTreeSet::new(),
            roles: BTreeMap::new(),
        };
        let mut webhooks = Vec::new();
        let (old_context, new_context) = (render::project_context(project), render::project_context(target));
        for resource in &project.known.resources {
            for places in ApiPlaces::each(project, resource) {
                let old = places.clone().context();
                let new = places.in_project(target).context();
                if old.resource {
                    change.modules.insert(&old.api_path, &new.api_path);
                    change.rename_roles(&old.role_prefix, &new.role_prefix);
                }
                if old.controller {
                    change.modules.insert(&old.controller_path, &new.controller_path);
                }
                change.pair_files(
                    rbuilder_templates::api_files(&old_context, &old)?,
                    rbuilder_templates::api_files(&new_context, &new)?,
                );
            }
            if let Some(own) = &resource.webhooks {
                let places = ApiPlaces::of(project, resource).with_types();
                let (old, new) = (places.clone().context(), places.in_project(target).context());
                let old_webhook = webhook_context(project, resource, own, &old);
                let new_webhook = webhook_context(target, resource, own, &new);
                change.pair_files(
                    rbuilder_templates::webhook_files(&old_context, &old, &old_webhook)?,
                    rbuilder_templates::webhook_files(&new_context, &new, &new_webhook)?,
                );
                webhooks.push((old_webhook.path, new_webhook.path));
            }
        }
        change.move_webhooks(&webhooks);
        change.remove_empty_modules();
        Ok(change)
    }

    fn pair_files(&mut self, old: Vec<Rendered>, new: Vec<Rendered>) {
        let own = |files: Vec<Rendered>| {
            let owned = files.into_iter().filter(|file| file.on_exists == OnExists::Owned);
            owned.map(|file| file.path).collect::<Vec<_>>()
        };
        for (from, to) in own(old).into_iter().zip(own(new)) {
            // Paths of Rust modules follow from the module moves. A file shared by several kinds
            // has no group in its name, so it stays.
            if from != to && !from.starts_with("src/") {
                self.files.insert(from, to);
            }
        }
    }

    fn rename_roles(&mut self, old: &str, new: &str) {
        for role in ["admin", "editor", "viewer", "conversion"] {
            if old != new {
                self.roles
                    .insert(format!("{old}-{role}-role"), format!("{new}-{role}-role"));
            }
        }
    }

    fn find_role_references(&self, tree: &Tree) -> Result<Vec<RoleReference>> {
        let mut found = Vec::new();
        let mut folders = vec!["config".to_owned()];
        while let Some(folder) = folders.pop() {
            folders.extend(tree.list_folders(&folder)?);
            for path in tree.list(&folder)?.into_iter().filter(|path| is_yaml(path)) {
                if self.fate(&path) != FileFate::Stays {
                    continue;
                }
                let text = tree.read(&path)?.unwrap_or_default();
                for (index, line) in text.lines().enumerate() {
                    let is_word = |letter: char| letter.is_alphanumeric() || letter == '-';
                    for word in line.split(|letter| !is_word(letter)) {
                        if let Some(new) = self.roles.get(word) {
                            found.push(RoleReference {
                                path: path.clone(),
                                line: index + 1,
                                old: word.to_owned(),
                                new: new.clone(),
                            });
                        }
                    }
                }
            }
        }
        found.sort();
        Ok(found)
    }

    fn move_webhooks(&mut self, webhooks: &[(String, String)]) {
        let above = |path: &str| path.rsplit_once("::").map_or("", |(above, _)| above).to_owned();
        let pairs: BTreeSet<(String, String)> = webhooks
            .iter()
            .map(|(old, new)| (above(old), above(new)))
            .collect();
        for (old, new) in webhooks {
            let (from, to) = (above(old), above(new));
            let related = pairs.iter().filter(|(other, into)| *other == from || *into == to);
            // Move the whole module of a version, unless it has webhooks for several groups.
            if related.count() == 1 {
                self.modules.insert(&from, &to);
            } else {
                self.modules.insert(old, new);
            }
        }
        let kept = pairs.iter().filter(|(from, to)| from == to);
        let parts = |path: &str| path.split("::").map(str::to_owned).collect();
        self.kept = kept.map(|(from, _)| parts(from)).collect();
    }

    /// Records modules that only contain moved modules, e.g. those of groups and of webhook
    /// versions.
    fn remove_empty_modules(&mut self) {
        let moved: Vec<Vec<String>> = self.modules.iter().map(|(from, _)| from.to_vec()).collect();
        for from in moved {
            // Top-level modules, e.g. `api`, exist in both layouts.
            for above in (2..from.len()).map(|length| &from[..length]) {
                if !self.kept.contains(above) {
                    self.modules.insert_gone(above);
                }
            }
        }
    }

    fn fate(&self, path: &str) -> FileFate {
        match self.files.get(path) {
            Some(to) => FileFate::Moves(to.clone()),
            None => self.modules.file(path),
        }
    }

    /// Moves all files, and rewrites paths, module declarations and kustomization entries.
    fn move_all(&self, files: &Files, library: &str) -> Result<MovedFiles> {
        check_cargo_manifest(files, self)?;
        let mut texts = files.clone();
        let is_code = |path: &str| {
            let mut folders = CODE.iter();
            path.ends_with(".rs") && folders.any(|folder| path.starts_with(&format!("{folder}/")))
        };
        let code: Files = files
            .iter()
            .filter(|(path, _)| is_code(path))
            .map(|(path, text)| (path.clone(), text.clone()))
            .collect();
        let rewritten = relocate_paths(&code, library, &self.modules).map_err(refuse)?;
        texts.extend(rewritten);
        self.move_declarations(&mut texts)?;
        self.rename_entries(&mut texts)?;
        self.place(texts)
    }

    fn move_declarations(&self, texts: &mut Files) -> Result<()> {
        let mut obstructions = Vec::new();
        for (path, Declarations { removed, added }) in self.declarations(texts)? {
            let Some(text) = texts.get(&path) else { continue };
            let (removed, added): (Vec<&str>, Vec<&str>) = (
                removed.iter().map(String::as_str).collect(),
                added.iter().map(String::as_str).collect(),
            );
            match replace_declarations(&path, text, &removed, &added) {
                Ok(edited) => drop(texts.insert(path, edited)),
                Err(obstruction) => obstructions.push(obstruction),
            }
        }
        match obstructions.is_empty() {
            true => Ok(()),
            false => Err(refuse(obstructions)),
        }
    }

    fn declarations(&self, texts: &Files) -> Result<BTreeMap<String, Declarations>> {
        let file_of = |module: &[String]| format!("src/{}/mod.rs", module.join("/"));
        let mut changes: BTreeMap<String, Declarations> = BTreeMap::new();
        for (_, to) in self.modules.iter() {
            for length in 1..to.len() {
                let path = file_of(&to[..length]);
                // Below a new module, all declarations come from the new scaffold.
                if !texts.contains_key(&path) || self.fate(&path) != FileFate::Stays {
                    break;
                }
                self.check_free_module(texts, &to[..length + 1], to)?;
                changes.entry(path).or_default().added.insert(to[length].clone());
            }
        }
        let targets = self.modules.iter().map(|(_, to)| to);
        let replaced: BTreeSet<&[String]> = targets
            .flat_map(|to| (1..=to.len()).map(|length| &to[..length]))
            .collect();
        for from in self
            .modules
            .iter()
            .map(|(from, _)| from)
            .chain(self.modules.gone())
        {
            // A group's new module may have the same name as a module that moves into it.
            let is_replaced = replaced.contains(from);
            if let (Some((name, above)), false) = (from.split_last(), is_replaced) {
                let change = changes.entry(file_of(above)).or_default();
                change.removed.insert(name.clone());
            }
        }
        Ok(changes)
    }

    fn check_free_module(&self, texts: &Files, module: &[String], to: &[String]) -> Result<()> {
        let folder = format!("src/{}", module.join("/"));
        let paths = [format!("{folder}.rs"), format!("{folder}/mod.rs")];
        let mut there = paths
            .iter()
            .filter(|path| texts.contains_key(*path) && self.fate(path) == FileFate::Stays);
        match there.next() {
            Some(path) if module.len() < to.len() && !self.kept.contains(module) => bail!(
                "{path} conflicts with the modules that move to {folder}/; no files were written: rename its module"
            ),
            _ => Ok(()),
        }
    }

    /// Renames the entries of moved files, in one edit for each kustomization.
    fn rename_entries(&self, texts: &mut Files) -> Result<()> {
        let mut renamed: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
        for (from, to) in &self.files {
            if let (Some((folder, old)), Some((_, new))) = (from.rsplit_once('/'), to.rsplit_once('/'))
                && MANIFESTS.contains(&folder)
            {
                renamed.entry(folder).or_default().insert(old, new);
            }
        }
        for (folder, names) in renamed {
            let list = format!("{folder}/kustomization.yaml");
            let Some(text) = texts.get(&list) else { continue };
            let edited = kustomization::replace_all(text, kustomization::RESOURCES, &names);
            let edited = edited.map_err(|reason| {
                let entries = names.values().map(|new| format!("- {new}"));
                let entries = entries.collect::<Vec<_>>().join("\n");
                let obstacle = Obstacle::new(reason);
                anyhow!(
                    obstacle
                        .with_lines("replace the old entries with these", entries)
                        .in_file(&list, "")
                )
            })?;
            texts.insert(list, edited);
        }
        Ok(())
    }

    fn place(&self, texts: Files) -> Result<MovedFiles> {
        let mut placed = MovedFiles {
            files: Files::new(),
            moves: BTreeMap::new(),
        };
        for (path, text) in texts {
            let to = match self.fate(&path) {
                FileFate::Stays => path.clone(),
                FileFate::Moves(to) => to,
                FileFate::Gone if has_declarations_only(&text) => continue,
                FileFate::Gone => bail!(
                    "{path} contains more than the modules that move, and will be deleted; no files were written: move the rest to another file"
                ),
            };
            if to != path {
                placed.moves.insert(path.clone(), to.clone());
            }
            if placed.files.insert(to.clone(), text).is_some() {
                let mut moves = placed.moves.iter();
                let moved = moves.find(|(_, target)| **target == to);
                bail!(
                    "{to} exists, but {} moves there; no files were written: move it away",
                    moved.map_or(&path, |(from, _)| from)
                );
            }
        }
        Ok(placed)
    }
}

impl MovedFiles {
    fn into_relocated(self, files: &Files) -> Relocated {
        let mut relocated = Relocated::default();
        for (from, to) in &self.moves {
            relocated.moves.push(FileMove {
                from: from.clone(),
                to: to.clone(),
                text: self.files.get(to).cloned().unwrap_or_default(),
            });
        }
        let targets: BTreeSet<&String> = self.moves.values().collect();
        let is_moved = |path: &String| self.moves.contains_key(path) || targets.contains(path);
        for (path, before) in files.iter().filter(|(path, _)| !is_moved(path)) {
            match self.files.get(path) {
                Some(text) if text == before => {}
                after => drop(relocated.texts.insert(path.clone(), after.cloned())),
            }
        }
        relocated
    }
}

/// Whether only a module's heading is left without the declarations of moved modules.
fn has_declarations_only(text: &str) -> bool {
    let is_heading = |line: &str| line.is_empty() || line.starts_with("//");
    text.lines().all(|line| is_heading(line.trim()))
}

fn check_cargo_manifest(files: &Files, layout: &LayoutChange) -> Result<()> {
    const MANIFEST: &str = "Cargo.toml";
    let Some(text) = files.get(MANIFEST) else {
        return Ok(());
    };
    let mut obstructions = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let code = line.split('#').next().unwrap_or_default();
        // Every other part is within quotes.
        for quoted in code.split('"').skip(1).step_by(2) {
            if let FileFate::Moves(to) = layout.fate(quoted.trim_start_matches("./")) {
                let byte = start + code.find(quoted).unwrap_or(0);
                obstructions.push(Obstruction::at(
                    MANIFEST,
                    text,
                    byte,
                    format!("`{quoted}` is a file that moves to `{to}`"),
                    "remove the entry, and write it with the new path after the command".to_owned(),
                ));
            }
        }
        start += line.len();
    }
    match obstructions.is_empty() {
        true => Ok(()),
        false => Err(refuse(obstructions)),
    }
}

fn refuse(obstructions: Vec<Obstruction>) -> anyhow::Error {
    let places = obstructions.into_iter().map(|obstruction| {
        let Obstruction {
            path,
            line,
            column,
            reason,
            help,
        } = obstruction;
        format!("\n  {path}:{line}:{column}: {reason}\n    help: {help}")
    });
    anyhow!(
        "files move, but these places cannot be rewritten reliably; no files were written:{}\nchange them by hand and run the command again",
        places.collect::<String>()
    )
}

pub(super) fn warn_renamed_roles(references: &[RoleReference], outcome: &mut Outcome) {
    for RoleReference { path, line, old, new } in references {
        outcome.warn(
            &format!("{path}:{line} names the role `{old}`, which has been renamed"),
            &format!("write `{new}`"),
        );
    }
    let mut paths = outcome.plan.changes().keys();
    if paths.any(|path| path.starts_with("config/rbac/") && outcome.plan.moved_from(path).is_some()) {
        outcome.warn(
            "the admin, editor and viewer roles of kinds have been renamed, but bindings in clusters refer to the old names",
            "after the next `make deploy`, bind users to the new roles and delete the old ones",
        );
    }
}

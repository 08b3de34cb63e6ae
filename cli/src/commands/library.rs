//! `rbuilder library`: shows or changes where a project gets the library from.

use std::path::Path;

use anyhow::{Result, anyhow};
use rbuilder_generator::versions;
use serde_json::{Map, Value, json};

use super::{Outcome, decide, execute, scaffold};
use crate::edit::Obstacle;
use crate::edit::library::{Dependencies, read_dependencies, set_library, set_releases};
use crate::flags::{LibraryFlags, Output};
use crate::library::choose::choose_library;
use crate::library::{DEPENDENCY, Library};
use crate::plan::Plan;
use crate::project::{FILE, Project};
use crate::render;
use crate::shell::Shell;
use crate::tree::{Tree, check_relative};

const MANIFEST: &str = "Cargo.toml";

pub(super) fn run(dir: &Path, flags: &LibraryFlags, shell: &mut Shell) -> Result<u8> {
    if flags.set.is_none() {
        return show(dir, flags, shell);
    }
    let next = "Next: run `cargo check` to update Cargo.lock, and commit both\n";
    execute("library", dir, flags.plan.mode(), shell, &mut |tree| {
        Ok(plan_library(tree, flags)?.with_next(next))
    })
}

/// Plans the changes made by `library --set`.
///
/// # Errors
/// Fails if the directory contains no project, if the source is invalid, or if Cargo.toml has no
/// library dependency that can be edited.
pub fn plan_library(tree: &Tree, flags: &LibraryFlags) -> Result<Outcome> {
    let mut project = scaffold::require_project(tree)?;
    let choice = choose_library(&flags.source(), tree.root())?;
    let mut plan = Plan::default();
    edit_manifests(&mut plan, tree, &choice.library)?;
    if choice.library.is_of_this_command() {
        move_releases(&mut plan, tree)?;
    }
    let mut outcome = Outcome::default();
    if let Some(old) = project.known.rbuilder.library.clone() {
        record_manifest(&mut project, &old, &choice.library)?;
    }
    project.known.rbuilder.library = Some(choice.library);
    plan.write_project(&project, tree)?;
    for (message, help) in &choice.warnings {
        outcome.warn(message, help);
    }
    Ok(Outcome { plan, ..outcome })
}

fn edit_manifests(plan: &mut Plan, tree: &Tree, library: &Library) -> Result<()> {
    let root = edit_manifest(plan, tree, MANIFEST, library)?;
    let mut has_source = !root.sources.is_empty();
    for member in list_members(tree, &root.members)? {
        let path = format!("{member}/{MANIFEST}");
        if plan.read(tree, &path)?.is_some() {
            let depth = member.split('/').count();
            has_source |= !edit_manifest(plan, tree, &path, &library.seen_from(depth))?
                .sources
                .is_empty();
        }
    }
    if has_source {
        return Ok(());
    }
    let reason = match root.inherits {
        true => {
            "it takes the library from a workspace above this directory, whose Cargo.toml is not part of the project"
        }
        false => "it has no dependency on the library",
    };
    Err(by_hand(Obstacle::new(reason), MANIFEST, library))
}

/// Moves kube and k8s-openapi to the releases that the library of this command is built on.
fn move_releases(plan: &mut Plan, tree: &Tree) -> Result<()> {
    const RELEASES: [(&str, &str); 2] = [("kube", versions::KUBE), ("k8s-openapi", versions::K8S_OPENAPI)];
    let text = plan.read(tree, MANIFEST)?.unwrap_or_default();
    let root = read_dependencies(&text).map_err(|obstacle| obstacle.in_file(MANIFEST, ""))?;
    let members = list_members(tree, &root.members)?;
    let members = members.iter().map(|member| format!("{member}/{MANIFEST}"));
    for path in std::iter::once(MANIFEST.to_owned()).chain(members) {
        if let Some(text) = plan.read(tree, &path)? {
            let moved = set_releases(&text, &RELEASES);
            let moved = moved.map_err(|obstacle| obstacle.in_file(&path, ""))?;
            plan.edit(tree, &path, &moved)?;
        }
    }
    Ok(())
}

/// Edits a Cargo.toml and returns its previous dependencies on the library.
fn edit_manifest(plan: &mut Plan, tree: &Tree, path: &str, library: &Library) -> Result<Dependencies> {
    let text = plan
        .read(tree, path)?
        .ok_or_else(|| anyhow!("no {path} found in {}", tree.shown()))?;
    let found = read_dependencies(&text).map_err(|obstacle| by_hand(obstacle, path, library))?;
    let edited = set_library(&text, library).map_err(|obstacle| by_hand(obstacle, path, library))?;
    plan.edit(tree, path, &edited)?;
    Ok(found)
}

fn by_hand(obstacle: Obstacle, path: &str, library: &Library) -> anyhow::Error {
    let line = format!("{DEPENDENCY} = {{ {} }}", library.dependency());
    obstacle
        .with_lines("write this dependency", line)
        .in_file(path, "")
        .into()
}

/// Lists the directories of workspace members. `crates/*` expands to all directories in `crates`.
fn list_members(tree: &Tree, listed: &[String]) -> Result<Vec<String>> {
    let mut members = Vec::new();
    for member in listed {
        let member = member.trim_start_matches("./").trim_end_matches('/');
        match member.strip_suffix("/*") {
            Some(folder) if check_relative(folder).is_ok() => members.extend(tree.list_folders(folder)?),
            None if check_relative(member).is_ok() => members.push(member.to_owned()),
            // A member outside of the project is left alone.
            _ => {}
        }
    }
    Ok(members)
}

/// If Cargo.toml is recorded as scaffolded with the old source, records it with the new one.
fn record_manifest(project: &mut Project, old: &Library, new: &Library) -> Result<()> {
    let (before, after) = (render_manifest(project, old)?, render_manifest(project, new)?);
    if project.recorded(MANIFEST, &before) {
        // No other scaffolded file contains the source.
        project.record(MANIFEST, &after);
    }
    Ok(())
}

fn render_manifest(project: &Project, library: &Library) -> Result<String> {
    let mut project = project.clone();
    project.known.rbuilder.library = Some(library.clone());
    let files = rbuilder_templates::init_files(&render::project_context(&project))?;
    let manifest = files.into_iter().find(|file| file.path == MANIFEST);
    Ok(manifest.map(|file| file.text).unwrap_or_default())
}

fn show(dir: &Path, flags: &LibraryFlags, shell: &mut Shell) -> Result<u8> {
    let (_, (source, outcome)) = decide(dir, shell, &mut describe)?;
    if flags.plan.output == Output::Json {
        let answer = json!({
            "command": "library",
            "applied": false,
            "changes": [],
            "library": source,
            "diagnostics": outcome.diagnostics,
        });
        shell.out(&format!("{answer:#}\n"));
        return Ok(0);
    }
    shell.message(&outcome.warnings);
    for (key, value) in &source {
        shell.out(&format!("{key}: {}\n", value.as_str().unwrap_or_default()));
    }
    Ok(0)
}

/// Describes the source in Cargo.toml by its form and keys. Warns if PROJECT or another dependency
/// differs.
pub(super) fn describe(tree: &Tree) -> Result<(Map<String, Value>, Outcome)> {
    let project = scaffold::require_project(tree)?;
    let text = tree
        .read(MANIFEST)?
        .ok_or_else(|| anyhow!("no {MANIFEST} found in {}", tree.shown()))?;
    let found = read_dependencies(&text).map_err(|obstacle| obstacle.in_file(MANIFEST, ""))?;
    let recorded = project.known.rbuilder.library;
    let library = match found.sources.first() {
        Some(source) => Library::try_from(source.clone()).map_err(|error| anyhow!("{MANIFEST}: {error}"))?,
        None => recorded.clone().ok_or_else(|| {
            anyhow!("{MANIFEST} has no dependency on the library, and {FILE} records no source of it")
        })?,
    };
    let mut outcome = Outcome::default();
    let is_same =
        |source: &crate::library::Record| Library::try_from(source.clone()).as_ref() == Ok(&library);
    if !found.sources.iter().all(is_same) {
        outcome.warn(
            &format!("the dependencies on the library in {MANIFEST} have different sources"),
            "choose one with `rbuilder library --set <version|git|path>`",
        );
    }
    if recorded.as_ref() != Some(&library) {
        outcome.warn(
            &format!("{FILE} does not record the source of the library that {MANIFEST} has"),
            "choose one with `rbuilder library --set <version|git|path>`",
        );
    }
    let mut source = Map::new();
    source.insert("form".into(), json!(library.form().name()));
    for (key, value) in library.keys() {
        source.insert(key.into(), json!(value));
    }
    Ok((source, outcome))
}

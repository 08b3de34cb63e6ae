//! Edits of project files that several commands share.

use anyhow::{Result, anyhow, bail};
use rbuilder_templates::ApiContext;

use crate::edit::{Obstacle, rust};
use crate::plan::Plan;
use crate::tree::Tree;

/// Edits a file. Fails with the lines to add by hand if the edit is not possible.
pub(super) fn edit_file<E: Into<Obstacle>>(
    plan: &mut Plan,
    tree: &Tree,
    path: &str,
    lines: &str,
    change: impl Fn(&str) -> Result<String, E>,
) -> Result<()> {
    let unrecognised = |obstacle: Obstacle| anyhow!(obstacle.in_file(path, lines));
    let Some(text) = plan.read(tree, path)? else {
        return Err(unrecognised("the file does not exist".into()));
    };
    let edited = change(&text).map_err(|obstacle| unrecognised(obstacle.into()))?;
    if edited == text {
        plan.keep(path);
        return Ok(());
    }
    plan.edit(tree, path, &edited)
}

/// Adds a `pub mod` line for each part of a module path to its parent module.
pub(super) fn add_modules(plan: &mut Plan, tree: &Tree, parts: &[&str]) -> Result<()> {
    for end in 1..parts.len() {
        let path = format!("src/{}/mod.rs", parts[..end].join("/"));
        let name = parts[end];
        edit_file(plan, tree, &path, &format!("pub mod {name};"), |text| {
            rust::add_module(text, name, true)
        })?;
    }
    Ok(())
}

/// Checks that a module to be written as `a/mod.rs` does not exist as `a.rs`, because Rust rejects
/// both.
pub(super) fn check_module_place(tree: &Tree, path: &str) -> Result<()> {
    let Some(folder) = path.strip_suffix("/mod.rs") else {
        return Ok(());
    };
    if tree.read(&format!("{folder}.rs"))?.is_some() {
        bail!("{folder}.rs exists, but the module needs the directory {folder}/: move it to {path}");
    }
    Ok(())
}

/// Returns the file that defines a kind: the scaffolded file, or another file in the module of its
/// version.
pub(super) fn find_types(plan: &Plan, tree: &Tree, api: &ApiContext) -> Result<String> {
    let folder = format!("src/{}", api.api_path.replace("::", "/"));
    let usual = format!("{folder}/{}.rs", api.module);
    let mut places = vec![usual.clone(), format!("{folder}/{}/mod.rs", api.module)];
    places.extend(
        tree.list(&folder)?
            .into_iter()
            .filter(|path| path.ends_with(".rs")),
    );
    for path in places {
        let text = plan.read(tree, &path)?;
        if text.is_some_and(|text| rust::defines_kind(&text, &api.kind)) {
            return Ok(path);
        }
    }
    Ok(usual)
}

/// Returns the group and version as shown to users.
pub(super) fn shown_version(group: &str, version: &str) -> String {
    match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    }
}

/// Returns the obstacle for a list from which an entry cannot be removed.
pub(super) fn unlisted(reason: String, entry: &str) -> Obstacle {
    Obstacle::new(reason).with_lines("remove this entry", format!("- {entry}"))
}

//! Edits of project files shared by several commands.

use anyhow::{Result, anyhow, bail};
use rbuilder_templates::ApiContext;

use crate::edit::{Obstacle, rust};
use crate::plan::Plan;
use crate::render::Line;
use crate::tree::Tree;

/// Edits a file. If the edit isn't possible, the error contains the lines to add by hand.
pub(super) fn edit_file<E: Into<Obstacle>>(
    plan: &mut Plan,
    tree: &Tree,
    path: &str,
    lines: &str,
    change: impl Fn(&str) -> Result<String, E>,
) -> Result<()> {
    let unrecognised = |obstacle: Obstacle| anyhow!(obstacle.in_file(path, lines));
    let Some(text) = plan.read(tree, path)? else {
        return Err(match is_scaffolded(plan, tree, path) {
            true => anyhow!(
                "cannot edit {path}: the file does not exist; no files were written: restore it with `rbuilder update \
                 --restore {path}` and run the command again"
            ),
            false => unrecognised("the file does not exist".into()),
        });
    };
    let edited = change(&text).map_err(|obstacle| unrecognised(obstacle.into()))?;
    if edited == text {
        plan.keep(path);
        return Ok(());
    }
    plan.edit(tree, path, &edited)
}

fn is_scaffolded(plan: &Plan, tree: &Tree, path: &str) -> bool {
    let project = plan.read_project(tree).ok().flatten();
    project.is_some_and(|project| project.scaffolded_files().has(path))
}

pub(super) fn add_lines(plan: &mut Plan, tree: &Tree, lines: &[Line]) -> Result<()> {
    let mut lines = lines.iter();
    lines.try_for_each(|line| edit_file(plan, tree, &line.path, &line.shown(), |text| line.add_to(text)))
}

pub(super) fn check_module_place(tree: &Tree, path: &str) -> Result<()> {
    let Some(folder) = path.strip_suffix("/mod.rs") else {
        return Ok(());
    };
    // Rust rejects a module with both files.
    if tree.read(&format!("{folder}.rs"))?.is_some() {
        bail!("{folder}.rs exists, but the module needs the directory {folder}/: move it to {path}");
    }
    Ok(())
}

pub(super) fn find_types(plan: &Plan, tree: &Tree, api: &ApiContext) -> Result<String> {
    let folder = format!("src/{}", api.api_path.replace("::", "/"));
    let usual = format!("{folder}/{}.rs", api.module);
    let mut places = vec![usual.clone(), format!("{folder}/{}/mod.rs", api.module)];
    // The user may have moved the type to another file in its version's module.
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

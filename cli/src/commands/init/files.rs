//! The files of a project without APIs.

use anyhow::Result;
use rbuilder_templates::OnExists;

use super::ignored::choose_lines;
use crate::commands::scaffold;
use crate::plan::Plan;
use crate::project::{FILE, Project};
use crate::render;
use crate::tree::Tree;

pub(super) fn plan_own_files(tree: &Tree, project: &mut Project, force: bool) -> Result<Plan> {
    let mut files = render::init_files(project)?;
    if tree.read(FILE)?.is_some() && !force {
        // `.gitignore` belongs to the user by now, who may have removed lines from it.
        files.retain(|file| file.on_exists != OnExists::Merged);
    }
    let mut plan = Plan::default();
    let is_new = tree.read(FILE)?.is_none();
    if project.known.rbuilder.package.is_some() {
        for file in files.iter_mut().filter(|file| file.on_exists == OnExists::Merged) {
            if tree.read(&file.path)?.is_some() {
                file.text = choose_lines(tree, &file.text)?;
            }
        }
    } else if is_new {
        // Nothing here is ours yet, so files that later commands add to must start with our text.
        for file in files.iter().filter(|file| file.on_exists == OnExists::Shared) {
            plan.put_owned(tree, &file.path, &file.text, force)?;
        }
    }
    scaffold::add_files(&mut plan, tree, project, &files, force)?;
    plan.check_conflicts()?;
    Ok(plan)
}

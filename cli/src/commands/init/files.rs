//! The files of a project without APIs.

use anyhow::Result;
use rbuilder_templates::{OnExists, Rendered};

use super::ignored::choose_lines;
use crate::commands::scaffold;
use crate::plan::Plan;
use crate::project::{FILE, Project};
use crate::tree::Tree;

/// Returns the files of a project without APIs, and records them as scaffolded.
///
/// # Errors
/// Fails if files conflict.
pub(in crate::commands) fn plan_files(tree: &Tree, project: &mut Project, force: bool) -> Result<Plan> {
    let files = rbuilder_templates::init_files(&scaffold::project_context(project))?;
    plan_rendered(tree, project, files, force)
}

/// Returns the files that `init` writes. In a project that it initializes again, `.gitignore`
/// belongs to the user, so lines that the user removed are not added again. `force` adds them.
///
/// # Errors
/// Fails if files conflict.
pub(super) fn plan_own_files(tree: &Tree, project: &mut Project, force: bool) -> Result<Plan> {
    let mut files = rbuilder_templates::init_files(&scaffold::project_context(project))?;
    if tree.read(FILE)?.is_some() && !force {
        files.retain(|file| file.on_exists != OnExists::Merged);
    }
    plan_rendered(tree, project, files, force)
}

fn plan_rendered(tree: &Tree, project: &mut Project, mut files: Vec<Rendered>, force: bool) -> Result<Plan> {
    let mut plan = Plan::default();
    let is_new = tree.read(FILE)?.is_none();
    if let Some(package) = &project.known.rbuilder.package {
        files.retain(|file| !package.leaves_out(&file.path));
        for file in files.iter_mut().filter(|file| file.on_exists == OnExists::Merged) {
            if tree.read(&file.path)?.is_some() {
                file.text = choose_lines(tree, &file.text)?;
            }
        }
    } else if is_new {
        // Nothing here is ours yet, so files to which later commands will add must start with our
        // text.
        for file in files.iter().filter(|file| file.on_exists == OnExists::Shared) {
            plan.put_owned(tree, &file.path, &file.text, force)?;
        }
    }
    scaffold::add_files(&mut plan, tree, project, &files, force)?;
    plan.check_conflicts()?;
    Ok(plan)
}

/// Returns the files that an adopted package provides itself, as scaffolded for a new package. They
/// are not part of the scaffold, but commands that run again to rebuild the scaffold edit them.
pub(in crate::commands) fn render_stand_ins(project: &Project) -> Result<Vec<Rendered>> {
    let Some(package) = &project.known.rbuilder.package else {
        return Ok(Vec::new());
    };
    let mut context = scaffold::project_context(project);
    let own = rbuilder_templates::init_files(&context)?;
    (context.adopted, context.manager) = (false, true);
    let mut files = rbuilder_templates::init_files(&context)?;
    let is_scaffolded = |path: &str| !package.leaves_out(path) && own.iter().any(|file| file.path == path);
    for file in &mut files {
        if file.path == "src/main.rs" {
            file.path.clone_from(&package.main);
        }
    }
    files.retain(|file| !is_scaffolded(&file.path));
    Ok(files)
}

//! `rbuilder import`: creates a Rust project from a kubebuilder project in Go.
//!
//! ```text
//! PROJECT, config/, Go source ─▶ kinds ─▶ init, create api, create webhook in memory ─▶ edits where the original differs
//!   ─▶ plan ─▶ generated manifests ─▶ table and MIGRATION.md
//! ```
//!
//! The project is scaffolded in memory with the commands that a user would run, and then edited
//! where the original differs. So `update` works as on any other project. Anything that we don't
//! recognize becomes a row of the table and of MIGRATION.md. We never guess.

mod applied;
mod blocks;
mod comparison;
mod compose;
mod composed;
mod controllers;
mod counterparts;
mod csv;
mod deployment;
mod kinds;
mod migration;
mod objects;
mod permissions;
mod pod;
mod programs;
mod published;
mod report;
mod rust_paths;
mod samples;
mod webhooks;
mod workload;

use std::path::Path;

use anyhow::{Result, anyhow};

use super::scaffold_merge::record_scaffold;
use super::{Outcome, decide, decide_and_apply, init, manifests};
use crate::flags::{ImportFlags, InitFlags, Output};
use crate::plan::{Plan, render_diff, render_json};
use crate::shell::Shell;
use crate::tree::Tree;
use rbuilder_go_project::GoProject;

use comparison::Report;
use compose::compose;
use migration::MIGRATION;

pub(super) fn run(dir: &Path, flags: &ImportFlags, shell: &mut Shell) -> Result<u8> {
    let source = Tree::new(dir.join(&flags.folder));
    let mut report = None;
    let make = &mut |tree: &Tree| {
        let (mut outcome, found) = plan_import(tree, flags, &source)?;
        report = Some(found);
        record_scaffold(&mut outcome.plan, tree)?;
        Ok(outcome)
    };
    let outcome = if flags.plan.dry_run {
        let (_, outcome) = decide(dir, shell, make)?;
        outcome.plan.check_conflicts()?;
        outcome
    } else {
        decide_and_apply(dir, shell, make)?
    };
    let report = report.ok_or_else(|| anyhow!("the project was not examined"))?;
    if flags.plan.output == Output::Json {
        let mut answer = render_json(&outcome.plan, "import", !flags.plan.dry_run);
        answer["diagnostics"] = outcome.diagnostics.into();
        answer["table"] = report.to_json();
        shell.out(&format!("{answer:#}\n"));
        return Ok(0);
    }
    shell.message(&outcome.warnings);
    if flags.plan.dry_run && !outcome.plan.is_empty() {
        shell.diff(&render_diff(&outcome.plan));
        shell.note("dry run: no files were written\n");
    }
    shell.summary(&outcome.plan, !flags.plan.dry_run);
    shell.report(&format!("\n{}", report.render()));
    if !outcome.plan.is_empty() {
        shell.note(&outcome.next);
    }
    Ok(0)
}

/// Plans the changes made by `import`, and compares the result with the original.
fn plan_import(tree: &Tree, flags: &ImportFlags, source: &Tree) -> Result<(Outcome, Report)> {
    let mut original = GoProject::read(source)?;
    // PROJECT only records this if a command added the second group.
    original.project.known.multigroup |= kinds::count_groups(&original) > 1;
    let (mut project, warnings) = init::new_project(tree, &init_flags(flags, &original))?;
    project.known.resources.clear();
    project.known.rbuilder.names = deployment::find_names(&original, &project);
    let composed = compose(&original, &project)?;

    let mut plan = Plan::default();
    for (path, text) in &composed.files {
        plan.put_owned(tree, path, text, flags.force)?;
    }
    plan.check_conflicts()?;
    let found = manifests::add_to_plan(&mut plan, tree, &manifests::Request::default())?;
    let report = report::compare(&original, &plan, tree, &composed)?;
    plan.put_owned(
        tree,
        MIGRATION,
        &migration::render(&original, &composed, &report),
        flags.force,
    )?;
    plan.check_conflicts()?;
    let mut outcome = found.into_outcome(plan);
    for (message, help) in &warnings {
        outcome.warn(message, help);
    }
    init::join_workspace(&mut outcome, tree, &project)?;
    let next = format!(
        "Next: read {MIGRATION}, then run:\n  {}\n",
        project.test_command()
    );
    Ok((outcome.with_next(&next), report))
}

fn init_flags(flags: &ImportFlags, original: &GoProject) -> InitFlags {
    let known = &original.project.known;
    InitFlags {
        folder: None,
        domain: Some(known.domain.clone()),
        project_name: flags
            .project_name
            .clone()
            .or_else(|| Some(known.project_name.clone())),
        owner: flags.owner.clone(),
        license: flags.license,
        namespaced: Some(known.namespaced),
        multigroup: Some(known.multigroup),
        force: flags.force,
        in_package: false,
        bin: None,
        library: flags.library.clone(),
        plan: flags.plan,
    }
}

//! `rbuilder edit`: changes a project's settings by a three-way merge, and enables and disables
//! deployment features.
//!
//! The merge base is the scaffold for the current PROJECT, and the new side is the scaffold for
//! PROJECT with the new settings, both with the templates that the project was created with.
//! Features aren't settings; they are listed in a file that users edit.

mod multigroup;
mod rename;

use std::path::Path;

use anyhow::{Result, bail};
use rbuilder_templates::Archive;

use super::manifests::find_losing_bindings;
use super::scaffold_merge::{ScaffoldMerge, Written};
use super::{Outcome, cli_version, execute, features, init, scaffold};
use crate::edit::merge::Labels;
use crate::flags::{EditFlags, SettingFlags};
use crate::project::{Known, Project, names};
use crate::render::render;
use crate::shell::Shell;
use crate::tree::Tree;

pub(super) fn run(dir: &Path, flags: &EditFlags, shell: &mut Shell) -> Result<u8> {
    execute("edit", dir, flags.plan.mode(), shell, &mut |tree| {
        plan_edit(tree, flags, Archive::embedded())
    })
}

/// Plans the changes made by `edit`. The exit code is 1 on conflicts.
///
/// # Errors
/// Fails if a setting is invalid or not applicable to the project, if a file cannot be edited, or
/// if there are conflicts and `--no-conflicts` is set.
pub fn plan_edit(tree: &Tree, flags: &EditFlags, archive: &'static Archive) -> Result<Outcome> {
    let settings = &flags.settings;
    scaffold::check_names([
        init::check_owner(settings.owner.as_deref()),
        settings
            .project_name
            .as_deref()
            .map_or(Ok(()), names::check_project_name),
        settings.domain.as_deref().map_or(Ok(()), names::check_domain),
    ])?;
    features::check_features(settings)?;
    let project = scaffold::require_project(tree)?;
    let mut outcome = if settings.change_scaffold() {
        merge_settings(tree, flags, project.clone(), archive)?
    } else {
        let next = format!(
            "Next: review the changes with `git diff`, then run:\n  {}\n",
            project.deploy_command()
        );
        Outcome::default().with_next(&next)
    };
    if settings.name_features() {
        features::add_features(&mut outcome, tree, &project, settings)?;
    }
    Ok(outcome)
}

fn merge_settings(
    tree: &Tree,
    flags: &EditFlags,
    project: Project,
    archive: &'static Archive,
) -> Result<Outcome> {
    cli_version::check_version(&project)?;
    let mut target = project.clone();
    apply_settings(&mut target.known, &flags.settings);
    let becomes_namespaced = target.known.namespaced && !project.known.namespaced;
    let is_adopted = project.known.rbuilder.package.is_some();
    let labels = Labels {
        base: "scaffold with the settings before".to_owned(),
        theirs: "scaffold with the new settings".to_owned(),
    };
    multigroup::check_layout(&project, &target)?;
    let project_name = target.known.project_name.clone();
    let theirs = render(&target, None)?;
    let base = render(&project, None)?;
    let written = Written::find(tree, &project, archive)?;
    let mut role_references = Vec::new();
    let mut warnings = Vec::new();
    let (mut outcome, report) = if target.known.multigroup == project.known.multigroup {
        let theirs = written.with_change(&base, theirs);
        let renamed = rename::Renamed::find(tree, &project, &target)?;
        let mut written = written.or_todays(&base);
        renamed.rename_written(&mut written);
        let scaffolds = (written, theirs);
        warnings = renamed.warnings(&project, &target);
        let merge = ScaffoldMerge::new("edit", tree, project, scaffolds, labels, archive)?;
        merge
            .after(renamed.into_relocated())
            .run(target, flags.merge.into())?
    } else {
        if target.known.project_name != project.known.project_name {
            bail!(
                "`--multigroup` and `--project-name` both move code: run one `rbuilder edit` after the other"
            );
        }
        if !written.is_same(&base) {
            bail!(
                "the scaffold is not up to date, and `--multigroup` moves its files: run `rbuilder update` first"
            );
        }
        let moved = multigroup::relocate(tree, &project, &target, base, &theirs)?;
        role_references = moved.role_references;
        let mut target = moved.project.clone();
        apply_settings(&mut target.known, &flags.settings);
        let base = Written {
            files: moved.base.files,
            ..written
        };
        let scaffolds = (base, theirs);
        let merge = ScaffoldMerge::new("edit", tree, moved.project, scaffolds, labels, archive)?;
        merge.after(moved.relocated).run(target, flags.merge.into())?
    };
    report.add_to(&mut outcome);
    for (message, help) in &warnings {
        outcome.warn(message, help);
    }
    multigroup::warn_renamed_roles(&role_references, &mut outcome);
    if is_adopted && flags.settings.kubernetes.is_some() {
        outcome.warn(
            "Cargo.toml of an adopted package is not edited, so its k8s-openapi is unchanged",
            "set the feature of that minor version in `[dependencies]`",
        );
    }
    if becomes_namespaced {
        // After a conflict or with `--manifests=false`, the roles don't match the merged markers
        // yet.
        let is_generated = flags.merge.manifests && outcome.exit_code == 0;
        warn_cluster_roles(tree, &project_name, is_generated, &mut outcome)?;
    }
    Ok(outcome)
}

fn apply_settings(known: &mut Known, settings: &SettingFlags) {
    if let Some(name) = &settings.project_name {
        known.project_name.clone_from(name);
    }
    if let Some(domain) = &settings.domain {
        known.domain.clone_from(domain);
    }
    known.namespaced = settings.namespaced.unwrap_or(known.namespaced);
    known.multigroup = settings.multigroup.unwrap_or(known.multigroup);
    if let Some(owner) = &settings.owner {
        known.rbuilder.owner.clone_from(owner);
    }
    if let Some(license) = settings.license {
        known.rbuilder.license = license.name().to_owned();
    }
    if let Some(minor) = settings.kubernetes {
        known.rbuilder.kubernetes = Some(minor.to_string());
    }
}

/// Warns about markers that the merge doesn't change. `is_generated`: the roles already match the
/// merged markers.
fn warn_cluster_roles(
    tree: &Tree,
    project_name: &str,
    is_generated: bool,
    outcome: &mut Outcome,
) -> Result<()> {
    let namespace = format!("`namespace = \"{project_name}-system\"`");
    if !is_generated {
        outcome.warn(
            "`#[rbac]` markers without `namespace` request cluster-wide permissions, which the manager no longer has",
            &format!("add {namespace} to those of namespaced resources"),
        );
        return Ok(());
    }
    // A manager limited to its own namespace only gets the permissions of a ClusterRole if the
    // project binds it there.
    let (path, roles) = find_losing_bindings(&outcome.plan, tree)?;
    if !roles.is_empty() {
        outcome.warn(
            &format!(
                "{path} still has {}, which nothing binds any more",
                roles.join(" and ")
            ),
            &format!(
                "`#[rbac]` markers without `namespace` request it: add {namespace} to those of namespaced resources; for cluster-scoped resources, add a ClusterRoleBinding to config/rbac"
            ),
        );
    }
    Ok(())
}

//! `rbuilder init`: scaffolds a project without APIs, or adopts an existing package.

mod adopt;
mod files;
mod guess;
mod ignored;
mod role;
mod workspace;

use std::path::Path;

use anyhow::{Result, anyhow, bail};

use rbuilder_generator::PackageSummary;

use self::files::plan_own_files;
use self::workspace::{find_workspace, join, record_place, suggest_profile, warn_workflows};
use super::{Outcome, execute, manifests, scaffold};
use crate::flags::{InitFlags, License};
use crate::library::choose::choose_library;
use crate::posix::quote_word;
use crate::project::{FILE, Project, names};
use crate::shell::Shell;
use crate::tree::Tree;

pub(super) fn run(dir: &Path, flags: &InitFlags, shell: &mut Shell) -> Result<u8> {
    let dir = flags
        .folder
        .as_ref()
        .map_or_else(|| dir.to_owned(), |folder| dir.join(folder));
    scaffold::check_project(&Tree::new(&dir))?;
    execute("init", &dir, flags.plan.mode(), shell, &mut |tree| {
        plan_init(tree, flags)
    })
}

fn enter(flags: &InitFlags) -> String {
    let folder = flags.folder.as_ref();
    folder
        .map(|folder| format!("  cd {}\n", quote_word(&folder.display().to_string())))
        .unwrap_or_default()
}

/// Plans the changes made by `init`.
///
/// # Errors
/// Fails if a name is invalid, or if the directory contains another project or conflicting files.
pub fn plan_init(tree: &Tree, flags: &InitFlags) -> Result<Outcome> {
    if flags.in_package || adopt::is_adopted(tree)? {
        return adopt::plan_adoption(tree, flags);
    }
    let mut project = request(tree, flags, None)?;
    let warnings = settle_library(&mut project, tree, flags)?;
    let workspace = find_workspace(tree)?;
    if tree.read(FILE)?.is_none() {
        record_place(&mut project, tree, workspace.as_ref())?;
    } else if !project.known.rbuilder.member.is_empty() {
        // The project may have moved within its repository since it was created.
        let mut moved = project.clone();
        record_place(&mut moved, tree, workspace.as_ref())?;
        if moved.known != project.known {
            let mut outcome = adopt::merge_change(tree, project, moved.clone())?;
            join(&mut outcome, tree, &moved, workspace.as_ref())?;
            return Ok(outcome);
        }
    }
    let mut plan = plan_own_files(tree, &mut project, flags.force)
        .map_err(|error| adopt::suggest_adoption(tree, flags, error))?;
    let found = manifests::add_to_plan(&mut plan, tree, &manifests::Request::default())?;
    plan.write_project(&project, tree)?;
    let mut outcome = found.into_outcome(plan);
    for (message, help) in &warnings {
        outcome.warn(message, help);
    }
    if let Some(workspace) = workspace.as_ref().filter(|_| project.known.rbuilder.workspace) {
        workspace.warn_unjoined(&mut outcome);
    }
    join(&mut outcome, tree, &project, workspace.as_ref())?;
    warn_workflows(&project, &mut outcome);
    let enter = enter(flags);
    let profile = suggest_profile(tree, &project)?;
    Ok(outcome.with_next(&format!(
        "Next: define a resource with:\n{enter}  rbuilder create api --group <group> --version v1alpha1 --kind <Kind>\n{profile}"
    )))
}

/// The project that `init` would create, and warnings about its library with their help.
pub(super) fn new_project(tree: &Tree, flags: &InitFlags) -> Result<(Project, Vec<(String, String)>)> {
    let mut project = request(tree, flags, None)?;
    let warnings = settle_library(&mut project, tree, flags)?;
    record_place(&mut project, tree, find_workspace(tree)?.as_ref())?;
    Ok((project, warnings))
}

pub(super) fn join_workspace(outcome: &mut Outcome, tree: &Tree, project: &Project) -> Result<()> {
    let workspace = find_workspace(tree)?;
    join(outcome, tree, project, workspace.as_ref())
}

/// Sets the library's source: the recorded one, or the requested one for a new project. Returns
/// warnings with their help.
fn settle_library(project: &mut Project, tree: &Tree, flags: &InitFlags) -> Result<Vec<(String, String)>> {
    let asked = flags.library.source();
    let recorded = &mut project.known.rbuilder.library;
    if recorded.is_some() && asked.form.is_none() {
        return Ok(Vec::new());
    }
    let choice = choose_library(&asked, tree.root())?;
    match recorded {
        Some(recorded) if *recorded != choice.library => bail!(
            "the project already gets the library from {}: change it with `rbuilder library --set <version|git|path>`",
            recorded
        ),
        _ => *recorded = Some(choice.library),
    }
    Ok(choice.warnings)
}

/// The requested project. Flags take precedence over PROJECT, and PROJECT over the defaults, which
/// come from the adopted package if there is one.
fn request(tree: &Tree, flags: &InitFlags, adopted: Option<&PackageSummary>) -> Result<Project> {
    let known = scaffold::read_project(tree)?;
    let recorded = known.as_ref().map(|project| &project.known);
    let name = flags
        .project_name
        .clone()
        .or_else(|| recorded.map(|known| known.project_name.clone()))
        .or_else(|| adopt::default_name(adopted?))
        .or_else(|| Some(tree.folder_name()?.to_lowercase()))
        .ok_or_else(|| {
            anyhow!("cannot take the project name from the directory: set it with `--project-name`")
        })?;
    let domain = flags
        .domain
        .clone()
        .or_else(|| recorded.map(|known| known.domain.clone()))
        .ok_or_else(|| {
            anyhow!("a domain is required: set it with `--domain`, for example `--domain example.com`")
        })?;
    scaffold::check_names([
        names::check_project_name(&name),
        names::check_domain(&domain),
        check_owner(flags.owner.as_deref()),
    ])?;

    let mut project = match known {
        None => Project::new(&name, &domain),
        Some(project) => {
            if project.known.project_name != name || project.known.domain != domain {
                bail!(
                    "{} is already initialized as project `{}` with domain `{}`: use another directory",
                    tree.shown(),
                    project.known.project_name,
                    project.known.domain
                );
            }
            project
        }
    };
    let kinds = !project.known.resources.is_empty();
    let known = &mut project.known;
    for (flag, asked, set) in [
        ("--namespaced", flags.namespaced, &mut known.namespaced),
        ("--multigroup", flags.multigroup, &mut known.multigroup),
    ] {
        let asked = asked.unwrap_or(*set);
        if kinds && asked != *set {
            bail!(
                "`init` cannot set `{flag}={asked}` in a project that has APIs: run `rbuilder edit {flag}={asked}`"
            );
        }
        *set = asked;
    }
    if let Some(owner) = &flags.owner {
        known.rbuilder.owner = owner.clone();
    }
    if let Some(license) = flags.license {
        known.rbuilder.license = license.name().to_owned();
    } else if known.rbuilder.license.is_empty() {
        let license = match (find_license(tree)?, adopted) {
            (Some(license), _) => license,
            (None, Some(package)) => adopt::license_of(package),
            (None, None) => License::Apache2,
        };
        known.rbuilder.license = license.name().to_owned();
    }
    Ok(project)
}

fn find_license(tree: &Tree) -> Result<Option<License>> {
    for path in [
        "LICENSE",
        "LICENSE.md",
        "LICENSE.txt",
        "LICENSE-APACHE",
        "COPYING",
    ] {
        let Some(text) = tree.read(path)? else {
            continue;
        };
        // Copies of a license differ in line breaks and indentation.
        let words = text.split_whitespace().take(60).collect::<Vec<_>>().join(" ");
        return Ok(Some(if words.contains("Apache License Version 2.0") {
            License::Apache2
        } else if words.contains("MIT License")
            || words.starts_with("Permission is hereby granted, free of charge")
        {
            License::Mit
        } else {
            License::None
        }));
    }
    Ok(None)
}

/// Checks the owner, which ends up in comments and in Cargo.toml.
pub(super) fn check_owner(owner: Option<&str>) -> Result<(), names::FlagDiagnostic> {
    match owner {
        Some(owner) if owner.chars().any(|c| c.is_control() || c == '"' || c == '\\') => {
            Err(names::FlagDiagnostic::error(
                "--owner",
                format!(
                    "owner `{}` must be a single line without quotes, backslashes or control characters",
                    owner.escape_debug()
                ),
            ))
        }
        _ => Ok(()),
    }
}

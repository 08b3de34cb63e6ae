//! `rbuilder create api`: scaffolds a kind and its controller, and registers both in the project.

mod further;
mod places;
mod request;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use rbuilder_templates::{ApiContext, Rendered};

pub(super) use self::places::ApiPlaces;

use self::further::types_path;
use self::request::Request;
use super::adopted::{Parts, check_places};
use super::{Outcome, execute, foreign_kind, owners, scaffold};
use crate::edit::{Obstacle, dependency, kustomization, rust};
use crate::flags::{ApiFlags, Output};
use crate::plan::Plan;
use crate::project::{Image, names};
use crate::shell::Shell;
use crate::tree::Tree;

/// The binding of the manager to the ClusterRole, in a project whose manager is restricted to a namespace.
pub(super) const BINDING: &str = "config/rbac/cluster_role_binding.yaml";

pub(super) fn run(dir: &Path, flags: &ApiFlags, shell: &mut Shell) -> Result<u8> {
    check_flags(flags)?;
    check_image_flags(flags)?;
    let mut flags = flags.clone();
    ask(&mut flags, shell);
    execute("create api", dir, flags.plan, shell, &mut |tree| {
        plan_create_api(tree, &flags)
    })
}

/// Asks for the flags that were not passed, if the terminal is interactive. "Yes" leaves the flag unset, so that the
/// default depends on the project.
fn ask(flags: &mut ApiFlags, shell: &mut Shell) {
    // A controller for an image is scaffolded as a whole.
    if flags.plan.output == Output::Json || flags.image.name.is_some() {
        return;
    }
    let questions = [
        (&mut flags.resource, "Generate the API types?"),
        (&mut flags.controller, "Generate a controller?"),
    ];
    for (flag, question) in questions {
        if flag.is_none() && !shell.confirm(question, true) {
            *flag = Some(false);
        }
    }
}

/// Returns the changes that `create api` makes.
///
/// # Errors
/// Fails if a name is invalid or taken, if files conflict, or if a file cannot be edited.
pub fn plan_create_api(tree: &Tree, flags: &ApiFlags) -> Result<Outcome> {
    check_flags(flags)?;
    let mut project = scaffold::require_project(tree)?;
    let mut request = Request::new(&project, tree, flags)?;
    let taken = request.read_previous(&project, tree, flags)?;
    request.check_free_names(&project, tree)?;
    let parts = Parts {
        types: request.types,
        controller: request.controller.is_some(),
        webhooks: false,
    };
    check_places(tree, &project, parts)?;
    let context = scaffold::project_context(&project);
    let mut api = request.context(&project);
    api.kube_arguments.clone_from(&taken.arguments);
    if read_crate_names(tree)?.contains(&api.module) {
        api.reexport = format!("self::{}", api.module);
    }
    if let Some(name) = taken.sample_name() {
        api.sample_name = name.to_owned();
    }
    let mut files = rbuilder_templates::api_files(&context, &api)?;
    taken.replace(&mut files, &api);

    let mut plan = Plan::default();
    for file in &files {
        check_module_place(tree, &file.path)?;
    }
    owners::check_file_owners(&project, &request.resource, &files)?;
    let wanted = if request.further && !flags.force {
        further::keep_existing_files(&mut plan, tree, &files, &api, request.known)?
    } else {
        files.clone()
    };
    scaffold::add_files(&mut plan, tree, &mut project, &wanted, flags.force)?;
    plan.check_conflicts()?;
    foreign_kind::add_crate(&mut plan, tree, &request.resource)?;
    add_lines(&mut plan, tree, &files, &api)?;
    project.add_resource(request.resource.clone());
    project.write(&mut plan, tree)?;
    let found = scaffold::add_manifests(&mut plan, tree, flags.manifests)?;
    let mut outcome = found
        .into_outcome(plan)
        .with_next(&next_steps(&api, project.test_command()));
    taken.warn(&api, &mut outcome);
    if request.types {
        further::warn_unconverted(&project, &request.resource, &mut outcome);
    }
    Ok(outcome)
}

/// Returns the next steps: the files to edit, and the command that builds and tests them.
fn next_steps(api: &ApiContext, test_command: &str) -> String {
    let mut files = Vec::new();
    if api.resource {
        files.push(types_path(api));
    }
    if api.controller {
        files.push(format!("src/{}.rs", api.controller_path.replace("::", "/")));
    }
    format!(
        "Next: edit {}, then run:\n  {test_command}\n",
        files.join(" and ")
    )
}

/// Checks that a module `a/mod.rs` to write does not exist as `a.rs`: Rust rejects both at once.
pub(super) fn check_module_place(tree: &Tree, path: &str) -> Result<()> {
    let Some(folder) = path.strip_suffix("/mod.rs") else {
        return Ok(());
    };
    if tree.read(&format!("{folder}.rs"))?.is_some() {
        bail!("{folder}.rs exists, but the module needs the directory {folder}/: move it to {path}");
    }
    Ok(())
}

/// Checks the flags of a controller that runs an image: it is scaffolded as a whole, whatever is left of it later.
fn check_image_flags(flags: &ApiFlags) -> Result<()> {
    let is_whole = flags.resource != Some(false) && flags.controller != Some(false);
    if flags.image.name.is_some() && (flags.controller_name.is_some() || flags.external.path.is_some()) {
        bail!(
            "`--image` scaffolds a kind of the project with one controller: omit `--controller-name` and `--external-path`"
        );
    }
    if flags.image.name.is_some() && !(is_whole && flags.namespaced != Some(false)) {
        bail!(
            "`--image` scaffolds the types and the controller of a namespaced kind: omit `--resource=false`, \
             `--controller=false` and `--namespaced=false`"
        );
    }
    Ok(())
}

/// Checks the rules that do not depend on the project.
fn check_flags(flags: &ApiFlags) -> Result<()> {
    let plural = flags.plural.as_deref().map_or(Ok(()), names::check_plural);
    let controller = flags.controller_name.as_deref();
    scaffold::check_names([
        names::check_version(&flags.version),
        names::check_kind(&flags.kind),
        plural,
        Image::requested(&flags.image).map_or(Ok(()), |image| image.check()),
        controller.map_or(Ok(()), names::check_controller_name),
    ])?;
    if controller.is_some() && flags.controller == Some(false) {
        bail!("`--controller-name` names a controller: omit `--controller=false`");
    }
    if flags.external.path.is_some() && flags.resource == Some(true) {
        bail!("the types of another project's kind are in its crate: omit `--resource`");
    }
    Ok(())
}

/// Returns group and version as people write them.
pub(super) fn shown_version(group: &str, version: &str) -> String {
    match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    }
}

/// Registers the new files in the files that list them.
fn add_lines(plan: &mut Plan, tree: &Tree, files: &[Rendered], api: &ApiContext) -> Result<()> {
    if api.resource {
        let parts: Vec<&str> = api.api_path.split("::").collect();
        add_modules(plan, tree, &parts)?;
        let version = format!("src/{}/mod.rs", parts.join("/"));
        edit_file(
            plan,
            tree,
            &version,
            &format!("mod {};\npub use {}::*;", api.module, api.reexport),
            |text| rust::add_reexport(&rust::add_module(text, &api.module, false)?, &api.reexport),
        )?;
        for file in files {
            let Some((folder @ ("config/samples" | "config/rbac"), name)) = file.path.rsplit_once('/') else {
                continue;
            };
            let list = format!("{folder}/kustomization.yaml");
            edit_file(plan, tree, &list, &format!("resources:\n- {name}"), |text| {
                kustomization::add_resource(text, name)
            })?;
        }
        edit_file(
            plan,
            tree,
            "config/default/kustomization.yaml",
            "resources:\n- ../crd",
            |text| kustomization::add_resource(text, "../crd"),
        )?;
    }
    if !api.resource && files.iter().any(|file| file.path == BINDING) {
        let list = "config/rbac/kustomization.yaml";
        edit_file(
            plan,
            tree,
            list,
            "resources:\n- cluster_role_binding.yaml",
            |text| kustomization::add_resource(text, "cluster_role_binding.yaml"),
        )?;
    }
    if api.controller {
        let mut parts: Vec<&str> = api.controller_path.split("::").collect();
        add_modules(plan, tree, &parts)?;
        let call = format!("{}::controller()", parts.split_off(1).join("::"));
        edit_file(
            plan,
            tree,
            "src/controller/mod.rs",
            &format!("manager.controller({call})"),
            |text| rust::add_registration(text, "controller", &call),
        )?;
    }
    Ok(())
}

/// Returns the crates that the library of the project can name: a module with the same name needs `self::` before it.
fn read_crate_names(tree: &Tree) -> Result<BTreeSet<String>> {
    let manifest = tree.read("Cargo.toml")?.unwrap_or_default();
    let mut crates = dependency::crate_names(&manifest, &["dependencies", "dev-dependencies"]);
    crates.extend(["core", "std"].map(str::to_owned));
    Ok(crates)
}

/// Adds a `pub mod` line for each part of a module path to the file of its parent.
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

/// Edits a file; fails with the lines to add by hand if that is not possible.
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

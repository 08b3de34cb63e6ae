//! Files that belong to one kind, so that no command for another kind takes them for its own.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use rbuilder_templates::{OnExists, Rendered};

use super::create_api::ApiPlaces;
use super::{create_webhook, scaffold};
use crate::project::{Known, Project, Resource, names};
use crate::tree::Tree;

/// Fails when a file that would be written belongs to another kind of PROJECT. `--force` does not help: it is for
/// files of the kind that is asked for.
///
/// # Errors
/// Names the file, and the kind that it belongs to.
pub(super) fn check(project: &Project, tree: &Tree, wanted: &Resource, files: &[Rendered]) -> Result<()> {
    let is_owned = |file: &&Rendered| file.on_exists == OnExists::Owned;
    let paths: BTreeSet<&str> = files
        .iter()
        .filter(is_owned)
        .map(|file| file.path.as_str())
        .collect();
    // Versions of one kind share its roles.
    for other in project
        .known
        .resources
        .iter()
        .filter(|other| !other.same_kind(wanted))
    {
        let theirs = owned_paths(project, tree, other)?;
        if let Some(path) = theirs.iter().find(|path| paths.contains(path.as_str())) {
            bail!(
                "{path} belongs to the kind `{}` of {}/{}, and `{}` would have its file in the same place; nothing was written: choose another kind or group",
                other.kind,
                other.group,
                other.version,
                wanted.kind
            );
        }
    }
    Ok(())
}

/// The files that a kind in one version has for itself, as PROJECT tells.
fn owned_paths(project: &Project, tree: &Tree, resource: &Resource) -> Result<BTreeSet<String>> {
    let context = scaffold::project_context(project, tree.root());
    let api = ApiPlaces::of(project, resource).with_all().context();
    let mut files = rbuilder_templates::api_files(&context, &api).map_err(anyhow::Error::new)?;
    if let Some(webhooks) = &resource.webhooks {
        let webhook = create_webhook::context(project, resource, webhooks, &api);
        let made = rbuilder_templates::webhook_files(&context, &api, &webhook).map_err(anyhow::Error::new)?;
        // What is in config/ serves every webhook of the project.
        files.extend(made.into_iter().filter(|file| !file.path.starts_with("config/")));
    }
    let owned = files.into_iter().filter(|file| file.on_exists == OnExists::Owned);
    Ok(owned.map(|file| file.path).collect())
}

/// Fails when another group of the project has the same folder.
///
/// # Errors
/// Names the group, and the folder.
pub(super) fn check_group(known: &Known, group: &str) -> Result<()> {
    if !known.multigroup {
        return Ok(());
    }
    let folder = names::group_module(group);
    let has_it = |other: &&Resource| other.group != group && names::group_module(&other.group) == folder;
    match (known.resources.iter().find(has_it), &folder) {
        (Some(other), Ok(folder)) => bail!(
            "group `{group}` and group `{}` would share the folder src/api/{folder}/: choose another group (`--group`)",
            other.group
        ),
        _ => Ok(()),
    }
}

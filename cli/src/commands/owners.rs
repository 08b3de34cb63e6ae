//! The files that belong to each kind. A command for one kind must never overwrite files of another
//! kind.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use rbuilder_templates::{OnExists, Rendered};

use super::edits::shown_version;
use super::places::ApiPlaces;
use super::scaffold;
use super::webhook_context::webhook_context;
use crate::project::{Known, Project, Resource, names};

/// Checks that no file to write belongs to another kind in PROJECT. `--force` does not override
/// this check, because it only applies to files of the requested kind.
///
/// # Errors
/// Fails with the file and the kind that owns it.
pub(super) fn check_file_owners(project: &Project, wanted: &Resource, files: &[Rendered]) -> Result<()> {
    let is_owned = |file: &&Rendered| file.on_exists == OnExists::Owned;
    let paths: BTreeSet<&str> = files
        .iter()
        .filter(is_owned)
        .map(|file| file.path.as_str())
        .collect();
    // The versions of a kind share its roles.
    for other in project
        .known
        .resources
        .iter()
        .filter(|other| !other.same_kind(wanted))
    {
        let theirs = owned_paths(project, other)?;
        if let Some(path) = theirs.iter().find(|path| paths.contains(path.as_str())) {
            bail!(
                "{path} belongs to kind `{}` of {}, and kind `{}` would use the same path; no files were written: {}",
                other.kind,
                shown_version(&other.qualified_group(), &other.version),
                wanted.kind,
                if wanted.is_foreign() {
                    "choose another name for the controller (`--controller-name`)"
                } else {
                    "choose another kind or group"
                }
            );
        }
    }
    Ok(())
}

/// Returns the files that belong to a version of a kind according to PROJECT.
fn owned_paths(project: &Project, resource: &Resource) -> Result<BTreeSet<String>> {
    let context = scaffold::project_context(project);
    let mut files = Vec::new();
    for places in ApiPlaces::each(project, resource) {
        files.extend(rbuilder_templates::api_files(&context, &places.context())?);
    }
    let api = ApiPlaces::of(project, resource).with_types().context();
    if let Some(webhooks) = &resource.webhooks {
        let webhook = webhook_context(project, resource, webhooks, &api);
        let made = rbuilder_templates::webhook_files(&context, &api, &webhook)?;
        // Files in config/ serve all webhooks of the project.
        files.extend(made.into_iter().filter(|file| !file.path.starts_with("config/")));
    }
    let owned = files.into_iter().filter(|file| file.on_exists == OnExists::Owned);
    Ok(owned.map(|file| file.path).collect())
}

/// Checks that no other group in the project uses the same directory.
///
/// # Errors
/// Fails with the other group and the directory.
pub(super) fn check_group_directory(known: &Known, group: &str) -> Result<()> {
    if !known.multigroup || group.is_empty() {
        return Ok(());
    }
    let folder = names::group_module(group);
    let has_it = |other: &&Resource| other.group != group && names::group_module(&other.group) == folder;
    match known.resources.iter().find(has_it) {
        Some(other) => bail!(
            "group `{group}` and group `{}` would share the directory src/api/{folder}/: choose another group (`--group`)",
            other.group
        ),
        None => Ok(()),
    }
}

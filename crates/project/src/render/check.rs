//! Rejects PROJECT entries that no command writes.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow, bail};

use crate::project::{Project, Resource, names};

/// Checks that a kind's names and parts can be scaffolded alongside the other kinds. Fails with
/// what the entry lacks, or with the conflicting kind. `share_names` is the result of
/// [`share_names`].
pub(super) fn check_resource(project: &Project, resource: &Resource, share_names: bool) -> Result<()> {
    let Resource { kind, version, .. } = resource;
    if resource.api.is_none() && !resource.is_foreign() {
        bail!("kind `{kind}` has no API types in version `{version}`");
    }
    if !resource.is_foreign() {
        let names = [
            names::check_domain(&resource.domain),
            names::check_group(&resource.group, &resource.domain),
            names::check_version(version),
            names::check_kind(kind),
            names::check_plural(&resource.plural),
        ];
        for name in names {
            name.map_err(|found| anyhow!(found.message))?;
        }
        if let Some(other) = find_other_group(project, resource) {
            bail!(
                "multiple groups are not enabled, and kind `{}` has the group `{}`",
                other.kind,
                other.group
            );
        }
        if share_names {
            check_free_names(project, resource)?;
        }
    }
    check_group_directory(project, resource)?;
    check_spokes(project, resource)
}

/// Finds a kind in another group, if the project only supports a single group.
pub fn find_other_group<'p>(project: &'p Project, wanted: &Resource) -> Option<&'p Resource> {
    let is_other = |other: &&Resource| other.api.is_some() && other.group != wanted.group;
    let mut known = project.known.resources.iter();
    known.find(is_other).filter(|_| !project.known.multigroup)
}

/// Whether [`check_free_names`] fails for any kind of the project. That function compares a kind with
/// all others, so calling it for each kind takes time quadratic in their number.
pub(super) fn share_names(project: &Project) -> bool {
    let mut owners = BTreeMap::new();
    project.known.resources.iter().any(|resource| {
        let kind = &resource.kind;
        let names = [
            ("module", names::module_name(kind)),
            ("object", kind.to_lowercase()),
            ("plural", resource.plural.clone()),
            ("type", kind.clone()),
            ("type", format!("{kind}Spec")),
            ("type", format!("{kind}Status")),
        ];
        let group = (&resource.group, &resource.domain);
        names
            .into_iter()
            .any(|name| *owners.entry((group, name)).or_insert(kind) != kind)
    })
}

/// Checks that no other kind in the group would have the same names.
///
/// # Errors
/// Fails with the kind that already uses a name.
pub fn check_free_names(project: &Project, wanted: &Resource) -> Result<()> {
    let kind = &wanted.kind;
    let module = names::module_name(kind);
    let is_in_group = |other: &&Resource| (&other.group, &other.domain) == (&wanted.group, &wanted.domain);
    let known = project.known.resources.iter().filter(is_in_group);
    for other in known.filter(|other| other.kind != *kind) {
        let taken = &other.kind;
        if names::module_name(taken) == module || taken.to_lowercase() == kind.to_lowercase() {
            bail!(
                "kind `{kind}` has the same file or object names as kind `{taken}`: choose another kind (`--kind`)"
            );
        }
        if other.plural == wanted.plural {
            bail!(
                "kind `{taken}` already has the plural `{}`: choose another plural (`--plural`)",
                other.plural
            );
        }
        for end in ["Spec", "Status"] {
            // Only the longer name can end with the suffix.
            let both = std::cmp::max_by_key(kind, taken, |name| name.len());
            if *both == format!("{taken}{end}") || *both == format!("{kind}{end}") {
                bail!(
                    "kind `{kind}` and kind `{taken}` would both define a type `{both}`: choose another kind (`--kind`)"
                );
            }
        }
    }
    Ok(())
}

/// Checks that no other group in the project uses the same directory.
///
/// # Errors
/// Fails with the other group and the directory.
pub fn check_group_directory(project: &Project, wanted: &Resource) -> Result<()> {
    let (known, group) = (&project.known, &wanted.group);
    if !known.multigroup || group.is_empty() {
        return Ok(());
    }
    let folder = names::group_module(group);
    let has_it = |other: &&Resource| other.group != *group && names::group_module(&other.group) == folder;
    match known.resources.iter().find(has_it) {
        Some(other) => bail!(
            "group `{group}` and group `{}` would share the directory src/api/{folder}/: choose another group (`--group`)",
            other.group
        ),
        None => Ok(()),
    }
}

fn check_spokes(project: &Project, hub: &Resource) -> Result<()> {
    let known = &project.known.resources;
    let is_version = |version: &String| {
        let mut versions = known
            .iter()
            .filter(|other| other.same_kind(hub) && !other.same(hub));
        versions.any(|other| other.version == *version && other.api.is_some())
    };
    let mut spokes = hub.webhooks.iter().flat_map(|webhooks| &webhooks.spoke);
    match spokes.find(|spoke| !is_version(spoke)) {
        Some(spoke) => bail!("`{spoke}` is not a version that kind `{}` can convert", hub.kind),
        None => Ok(()),
    }
}

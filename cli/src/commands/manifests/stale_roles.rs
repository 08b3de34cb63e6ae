//! Roles for resources whose CRD is no longer part of the project.
//!
//! Some roles are created along with a kind, e.g. for its users, or for injecting the CA bundle
//! into its CRD. Changing the group or the plural in the source doesn't update these roles, or the
//! markers of controllers, and Kubernetes doesn't complain about roles for missing resources. As
//! for samples, we only look for names that were removed from a CRD. `doctor` checks all roles.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use anyhow::Result;
use rbuilder_generator::{Diagnostic, FileRange};
use rbuilder_kubernetes::crd::Crd;
use rbuilder_yaml::{Document, is_yaml, read_documents};
use serde_json::Value;

use super::Request;
use super::definition::{ChangedFile, list_crds, names_of, read_objects};
use super::layout::Layout;
use crate::plan::Plan;
use crate::project::Project;
use crate::tree::Tree;

const FOLDERS: [&str; 2] = ["config/rbac", "config/webhook"];

const OF_FILES: &str = "update the groups, resources and names in its rules, or delete it and its entry in the kustomization; once \
                        PROJECT has the new group and plural, `rbuilder update` updates each role that you have not changed";

const OF_MARKERS: &str = "update the `#[rbac(…)]` markers in the source that name this resource";

type Resource = (String, String);

pub(super) fn find_stale(
    changed: &[ChangedFile],
    plan: &Plan,
    tree: &Tree,
    layout: &Layout,
) -> Vec<Diagnostic> {
    let before = changed
        .iter()
        .flat_map(|file| list_crds(&file.before))
        .map(resource_of);
    let after: BTreeSet<Resource> = changed
        .iter()
        .flat_map(|file| list_crds(&file.after))
        .map(resource_of)
        .collect();
    let lost: BTreeSet<Resource> = before.filter(|resource| !after.contains(resource)).collect();
    if lost.is_empty() {
        return Vec::new();
    }
    check_roles(plan, tree, layout, &|_, resource| lost.contains(resource))
}

/// Warns about each resource in scaffolded roles that is in one of the project's groups but has no
/// CRD.
pub(in crate::commands) fn find_stale_roles(tree: &Tree, project: &Project) -> Result<Vec<Diagnostic>> {
    let layout = Request::default().with_settings(tree)?.layout;
    let mut known = BTreeSet::new();
    for path in layout.list_crds(tree)? {
        let objects = read_objects(&tree.read(&path)?.unwrap_or_default());
        known.extend(list_crds(&objects).map(resource_of));
    }
    let is_stale = |path: &str, resource: &Resource| {
        project.has_scaffolded_for(path, &resource.0) && !known.contains(resource)
    };
    Ok(check_roles(&Plan::default(), tree, &layout, &is_stale))
}

fn resource_of(crd: Crd<'_>) -> Resource {
    let (group, plural) = names_of(crd);
    (group.to_owned(), plural.to_owned())
}

/// Checks the roles that will exist after the plan. Gives one warning per resource, which points to
/// the first role that contains it. Unreadable files are skipped.
fn check_roles(
    plan: &Plan,
    tree: &Tree,
    layout: &Layout,
    is_stale: &dyn Fn(&str, &Resource) -> bool,
) -> Vec<Diagnostic> {
    // Hand-written roles sort before the generated one.
    let mut stale: BTreeMap<(bool, Resource), Vec<FileRange>> = BTreeMap::new();
    let paths = FOLDERS
        .iter()
        .flat_map(|folder| tree.list(folder).unwrap_or_default());
    for path in paths.filter(|path| is_yaml(path) && !layout.is_webhooks(path)) {
        let Ok(Some(text)) = plan.read(tree, &path) else {
            continue;
        };
        for document in read_documents(&path, &text).unwrap_or_default() {
            let mut named = list_named(&document.value).into_iter();
            if let Some(resource) = named.find(|resource| is_stale(&path, resource)) {
                let place = FileRange::new(&path, find_line(&text, &document, &resource));
                stale
                    .entry((layout.is_role(&path), resource))
                    .or_default()
                    .push(place);
            }
        }
    }
    let warnings = stale
        .into_iter()
        .filter_map(|((is_generated, resource), places)| {
            let help = if is_generated { OF_MARKERS } else { OF_FILES };
            Some(warn_of_roles(&resource, places)?.help(help))
        });
    warnings.collect()
}

fn list_named(role: &Value) -> Vec<Resource> {
    if !matches!(role["kind"].as_str(), Some("Role" | "ClusterRole")) {
        return Vec::new();
    }
    let mut named = Vec::new();
    for rule in role["rules"].as_array().into_iter().flatten() {
        let list = |key: &str| -> Vec<&str> {
            let values = rule[key].as_array().into_iter().flatten();
            values.filter_map(Value::as_str).collect()
        };
        let resources = list("resources");
        for group in list("apiGroups") {
            // A subresource counts as its resource.
            let plurals = resources.iter().filter_map(|resource| resource.split('/').next());
            named.extend(plurals.map(|plural| (group.to_owned(), plural.to_owned())));
        }
        if resources.contains(&"customresourcedefinitions") {
            let crds = list("resourceNames").into_iter();
            let parts = crds.filter_map(|name| name.split_once('.'));
            named.extend(parts.map(|(plural, group)| (group.to_owned(), plural.to_owned())));
        }
    }
    named.retain(|(_, plural)| plural != "*");
    named
}

fn find_line(text: &str, document: &Document, (group, plural): &Resource) -> Range<usize> {
    let crd = format!("{plural}.{group}");
    let names_it = |line: &str| {
        let entry = line.trim().trim_start_matches("- ");
        entry == crd || entry.split('/').next() == Some(plural)
    };
    let first = document.line.saturating_sub(1);
    let mut lines = text.split_inclusive('\n').enumerate().skip(first);
    let line = lines.find(|(_, line)| names_it(line)).map_or(first, |(at, _)| at);
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let length = text[start..].lines().next().map_or(0, str::len);
    start..start + length
}

fn warn_of_roles((group, plural): &Resource, places: Vec<FileRange>) -> Option<Diagnostic> {
    let mut others: Vec<String> = places.iter().skip(1).map(|place| place.path.clone()).collect();
    let first = places.into_iter().next()?;
    others.retain(|path| *path != first.path);
    others.dedup();
    let mut message =
        format!("this role is for `{plural}` of {group}, and no CRD of the project has this resource");
    if !others.is_empty() {
        message.push_str(&format!("; so are {}", others.join(", ")));
    }
    Some(Diagnostic::warning(first, message))
}

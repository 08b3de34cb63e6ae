//! Warnings about names and versions that have changed in the source: against the CRD that was there, and against PROJECT.
//!
//! A version, a kind or a scope is changed in the source with one edit, and the CRD then is one that a cluster does not take: the API
//! server rejects a CRD without a version of `status.storedVersions`, in which objects may be stored, and a change of its kind or scope.
//! In PROJECT the old names stay, by which other commands look for files and write roles.

use std::ops::Range;

use rbuilder_generator::{Diagnostic, FileRange, KindSummary};
use serde::Deserialize;

use super::layout::Layout;
use crate::commands::places::sample_file;
use crate::plan::{Change, Plan};
use crate::project::{FILE, Known, Resource, names, naming_flags, strip_domain};

/// Returns a warning for each CRD that a plan leaves without the version in which its objects are stored.
pub(super) fn find_lost_storage(plan: &Plan, layout: &Layout, kinds: &[KindSummary]) -> Vec<Diagnostic> {
    let crds = plan.changes().iter().filter(|(path, _)| layout.holds_crd(path));
    crds.flat_map(|(path, change)| match change {
        Change::Edit { before, after } | Change::Replace { before, after } => {
            let lost = compare_versions(before, after).into_iter();
            lost.map(|lost| warn_of_storage(path, &lost, kinds)).collect()
        }
        Change::Create { .. } | Change::Delete { .. } => Vec::new(),
    })
    .collect()
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Crd {
    spec: Spec,
}

/// Returns a warning for each CRD of which a plan changes what the API server lets nobody change.
pub(super) fn find_immutable(plan: &Plan, layout: &Layout, kinds: &[KindSummary]) -> Vec<Diagnostic> {
    let crds = plan.changes().iter().filter(|(path, _)| layout.holds_crd(path));
    let mut found = Vec::new();
    for (path, change) in crds {
        let (Change::Edit { before, after } | Change::Replace { before, after }) = change else {
            continue;
        };
        let (before, after) = (read_specs(before), read_specs(after));
        for old in &before {
            let Some(new) = after.iter().find(|new| new.is_same_crd(old)) else {
                continue;
            };
            for (what, old_value, new_value) in [
                ("kind", &old.names.kind, &new.names.kind),
                ("scope", &old.scope, &new.scope),
            ] {
                if old_value != new_value {
                    let message = format!(
                        "the {what} of the CRD `{}.{}` changes from `{old_value}` to `{new_value}`: the API server rejects this for an \
                         installed CRD",
                        new.names.plural, new.group
                    );
                    let help = "undo it, or delete the CRD and all its objects from each cluster first";
                    found.push(Diagnostic::warning(new.place(path, kinds), message).help(help));
                }
            }
        }
    }
    found
}

fn read_specs(text: &str) -> Vec<Spec> {
    let crds = serde_saphyr::from_multiple::<Crd>(text).unwrap_or_default();
    crds.into_iter().map(|crd| crd.spec).collect()
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    group: String,
    scope: String,
    names: Names,
    versions: Vec<Version>,
}

impl Spec {
    /// Returns whether both are of the CRD with the same name.
    fn is_same_crd(&self, other: &Spec) -> bool {
        (&self.group, &self.names.plural) == (&other.group, &other.names.plural)
    }

    /// Returns the place of the kind in the source, or else the manifest.
    fn place(&self, path: &str, kinds: &[KindSummary]) -> FileRange {
        let names = (&self.group, &self.names.plural);
        let kind = kinds.iter().find(|kind| (&kind.group, &kind.plural) == names);
        kind.map_or_else(|| FileRange::new(path, 0..0), |kind| kind.place.clone())
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Names {
    kind: String,
    plural: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Version {
    name: String,
    storage: bool,
}

/// A CRD that has lost the version in which its objects are stored.
struct LostStorage {
    group: String,
    kind: String,
    plural: String,
    version: String,
    /// The version in which they would be stored.
    new: String,
}

fn compare_versions(before: &str, after: &str) -> Vec<LostStorage> {
    let after = read_specs(after);
    let lost = |spec: Spec| -> Option<LostStorage> {
        let new = after.iter().find(|new| new.is_same_crd(&spec))?;
        let stored = spec.versions.into_iter().find(|version| version.storage)?;
        let is_kept = new.versions.iter().any(|version| version.name == stored.name);
        let storage = new.versions.iter().find(|version| version.storage)?;
        (!is_kept).then(|| LostStorage {
            group: spec.group,
            kind: spec.names.kind,
            plural: spec.names.plural,
            version: stored.name,
            new: storage.name.clone(),
        })
    };
    read_specs(before).into_iter().filter_map(lost).collect()
}

fn warn_of_storage(path: &str, lost: &LostStorage, kinds: &[KindSummary]) -> Diagnostic {
    let LostStorage {
        group,
        kind,
        plural,
        version,
        new,
    } = lost;
    let summary = kinds
        .iter()
        .find(|summary| (&summary.group, &summary.plural) == (group, plural));
    let place = summary.map_or_else(|| FileRange::new(path, 0..0), |summary| summary.place.clone());
    let message = format!(
        "the CRD of `{kind}` loses its storage version `{version}`: a cluster that stores objects in this version rejects the CRD"
    );
    let help = format!(
        "keep `{version}` beside `{new}`, with `storage = false`, until no object is stored in it; if the CRD is \
         installed in no cluster, there is nothing to do"
    );
    Diagnostic::warning(place, message).help(help)
}

/// Returns a warning for each version of a kind that PROJECT lists and the source does not have. `text` is that of PROJECT.
pub(super) fn find_unlisted(text: &str, known: &Known, kinds: &[KindSummary]) -> Vec<Diagnostic> {
    let own = known.resources.iter().filter(|resource| resource.api.is_some());
    own.filter_map(|resource| {
        let group = resource.qualified_group();
        let mut same = kinds
            .iter()
            .filter(|kind| kind.group == group && kind.kind == resource.kind);
        let (message, help) = match same.next() {
            Some(kind) if kind.versions.contains(&resource.version) => describe_difference(resource, kind)?,
            Some(kind) => describe_version(known, resource, kind),
            None => describe_kind(known, resource, kinds),
        };
        let place = FileRange::new(FILE, find_entry(text, resource));
        Some(Diagnostic::warning(place, message).help(help))
    })
    .collect()
}

/// Returns true if PROJECT lists a version of a kind.
fn is_listed(known: &Known, kind: &KindSummary, version: &str) -> bool {
    let mut own = known.resources.iter();
    own.any(|resource| {
        resource.qualified_group() == kind.group && resource.kind == kind.kind && resource.version == version
    })
}

/// Keys of an entry in PROJECT that say which version of a kind it is of.
const NAMES: [&str; 3] = ["kind", "group", "version"];

/// Returns the line of PROJECT with the version of a resource.
fn find_entry(text: &str, resource: &Resource) -> Range<usize> {
    let mut entries: Vec<([&str; 3], Range<usize>)> = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with('-') {
            entries.push(Default::default());
        }
        let content = line.strip_prefix("- ").or(line.strip_prefix("  "));
        let (key, value) = content
            .and_then(|content| content.trim_end().split_once(": "))
            .unwrap_or_default();
        let name = NAMES.iter().position(|name| *name == key);
        if let (Some(name), Some((values, place))) = (name, entries.last_mut()) {
            values[name] = value.trim_matches('"');
            if key == "version" {
                *place = start + 2..start + line.trim_end().len();
            }
        }
        start += line.len();
    }
    let wanted = [&*resource.kind, &*resource.group, &*resource.version];
    let mut entries = entries.into_iter();
    let found = entries.find(|(values, _)| *values == wanted);
    found.map_or(0..0, |(_, place)| place)
}

/// Returns message and help about a version that the source does not have of a kind.
fn describe_version(known: &Known, resource: &Resource, kind: &KindSummary) -> (String, String) {
    let (name, version) = (&resource.kind, &resource.version);
    let message = format!("{FILE} lists version `{version}` of `{name}`, but the source has no such version");
    let mut versions = kind.versions.iter();
    let help = match versions.find(|version| !is_listed(known, kind, version)) {
        Some(new) => format!(
            "keep `{version}` in the source, and add `{new}` with `rbuilder create api {}`",
            naming_flags(&resource.group, new, name)
        ),
        None => format!("remove it from {FILE} with `{}`", delete_command(resource)),
    };
    (message, help)
}

/// Returns message and help about a kind whose plural or scope differs in the source; `None` if neither does.
fn describe_difference(resource: &Resource, kind: &KindSummary) -> Option<(String, String)> {
    let Resource {
        kind: name, plural, ..
    } = resource;
    let scope = |is_namespaced| {
        if is_namespaced {
            "namespaced"
        } else {
            "cluster-scoped"
        }
    };
    if !plural.is_empty() && *plural != kind.plural {
        return Some((
            format!(
                "{FILE} has the plural `{plural}` for `{name}`, but the source has `{}`",
                kind.plural
            ),
            format!(
                "write `plural: {}` in all its entries in {FILE}, and run `rbuilder update`, which updates its roles",
                kind.plural
            ),
        ));
    }
    let (listed, found) = (resource.is_namespaced(), kind.is_namespaced);
    (listed != found).then(|| {
        let message = format!(
            "`{name}` is {} according to {FILE}, but {} in the source",
            scope(listed),
            scope(found)
        );
        let entry = match found {
            true => "write `namespaced: true` below `api`",
            false => "remove `namespaced: true` below `api`",
        };
        (
            message,
            format!("{entry} in all its entries in {FILE}, and adapt its tests"),
        )
    })
}

/// Returns message and help about a kind that the source does not have.
fn describe_kind(known: &Known, resource: &Resource, kinds: &[KindSummary]) -> (String, String) {
    let (name, version, group) = (&resource.kind, &resource.version, resource.qualified_group());
    let message =
        format!("{FILE} lists the kind `{name}` of {group}/{version}, but the source has no such kind");
    let delete = delete_command(resource);
    let otherwise = format!("otherwise restore its type, or remove it with `{delete}`");
    let help = match find_renamed(known, resource, kinds) {
        Some(renamed) => format!("{}; {otherwise}", explain_rename(known, resource, renamed)),
        None => format!("restore its type, or remove it with `{delete}`"),
    };
    (message, help)
}

/// Returns the kind that one of PROJECT has become: that of the same name in another group, or the only one that is not listed.
fn find_renamed<'k>(known: &Known, resource: &Resource, kinds: &'k [KindSummary]) -> Option<&'k KindSummary> {
    let is_unlisted = |kind: &&KindSummary| {
        kind.versions.contains(&resource.version)
            && !kind
                .versions
                .iter()
                .any(|version| is_listed(known, kind, version))
    };
    let mut unlisted = kinds.iter().filter(is_unlisted);
    let mut same_name = kinds
        .iter()
        .filter(is_unlisted)
        .filter(|kind| kind.kind == resource.kind);
    if let (Some(renamed), None) = (same_name.next(), same_name.next()) {
        return Some(renamed);
    }
    match (unlisted.next(), unlisted.next()) {
        (Some(renamed), None) => Some(renamed),
        _ => None,
    }
}

/// Returns what to do about a kind that has another name or group.
///
/// The group is part of few paths in a project with one group: PROJECT is corrected, and `update` corrects the roles. All else that
/// has the name of a kind, or of a group among several, is files and modules, which `create` and `delete` make and remove.
fn explain_rename(known: &Known, resource: &Resource, renamed: &KindSummary) -> String {
    let Resource { kind, version, .. } = resource;
    let has_become = format!("if it has become `{}` of {}", renamed.kind, renamed.group);
    let group = strip_domain(&renamed.group, &known.domain);
    match group {
        Some(group) if renamed.kind == *kind && !known.multigroup => {
            let edit = match group {
                "" => "remove `group` from its entry".to_owned(),
                group => format!("write `group: {group}` in its entry"),
            };
            format!(
                "{has_become}, {edit} in {FILE}, run `rbuilder update`, which updates its roles, and rename its sample to {}",
                sample_file(group, version, kind)
            )
        }
        Some(group) => format!(
            "{has_become}, restore `{kind}`, run `rbuilder create api {}{}`, move your code to the new files, and run `{} --force`",
            naming_flags(group, version, &renamed.kind),
            flags_like(resource, renamed),
            delete_command(resource)
        ),
        None => format!("{has_become}, correct its entry in {FILE}"),
    }
}

/// Returns the flags of `create api` for a kind that takes the place of another, after those that name it.
fn flags_like(resource: &Resource, renamed: &KindSummary) -> String {
    let mut flags = String::new();
    if renamed.plural != resource.plural && renamed.plural != names::plural_of(&renamed.kind) {
        flags.push_str(&format!(" --plural {}", renamed.plural));
    }
    for (name, has_it) in [
        ("namespaced", renamed.is_namespaced),
        ("controller", resource.has_controller()),
    ] {
        if !has_it {
            flags.push_str(&format!(" --{name}=false"));
        }
    }
    flags
}

fn delete_command(resource: &Resource) -> String {
    format!("rbuilder delete api {}", resource.naming_flags())
}

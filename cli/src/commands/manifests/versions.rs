//! Warnings about versions that a kind has lost: in its CRD, or since PROJECT was written.
//!
//! A version is renamed in the source with one edit, and the CRD then is one that a cluster does not take: the API server
//! refuses a CRD without a version of `status.storedVersions`, in which objects may be stored. In PROJECT the version keeps its
//! old name, by which other commands look for its files.

use std::ops::Range;

use rbuilder_generator::{Diagnostic, FileRange, KindSummary};
use serde::Deserialize;

use super::layout::Layout;
use crate::plan::{Change, Plan};
use crate::project::{FILE, Known, Resource, naming_flags};

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

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    group: String,
    names: Names,
    versions: Vec<Version>,
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
    let read = |text: &str| serde_saphyr::from_multiple::<Crd>(text).unwrap_or_default();
    let after = read(after);
    let lost = |Crd { spec }: Crd| -> Option<LostStorage> {
        let mut new = after.iter().map(|crd| &crd.spec);
        let new = new.find(|new| (&new.group, &new.names.plural) == (&spec.group, &spec.names.plural))?;
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
    read(before).into_iter().filter_map(lost).collect()
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
            Some(kind) if kind.versions.contains(&resource.version) => return None,
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

/// Returns message and help about a kind that the source does not have.
fn describe_kind(known: &Known, resource: &Resource, kinds: &[KindSummary]) -> (String, String) {
    let (name, version, group) = (&resource.kind, &resource.version, resource.qualified_group());
    let message =
        format!("{FILE} lists the kind `{name}` of {group}/{version}, but the source has no such kind");
    let mut unlisted = kinds.iter().filter(|kind| {
        kind.versions.contains(version)
            && !kind
                .versions
                .iter()
                .any(|version| is_listed(known, kind, version))
    });
    let help = match (unlisted.next(), unlisted.next()) {
        (Some(renamed), None) => format!(
            "if it has become `{}` of {}, correct its entry in {FILE}; otherwise restore its type, or remove it with `{}`",
            renamed.kind,
            renamed.group,
            delete_command(resource)
        ),
        _ => format!(
            "restore its type, or remove it with `{}`",
            delete_command(resource)
        ),
    };
    (message, help)
}

fn delete_command(resource: &Resource) -> String {
    format!("rbuilder delete api {}", resource.naming_flags())
}

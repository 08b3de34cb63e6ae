//! Warns about names and versions in the source that differ from the existing CRD and PROJECT.
//!
//! It's easy to change a version, a kind or its scope, but a cluster may reject the resulting CRD.
//! The API server doesn't allow removing a version listed in `status.storedVersions`, since objects
//! may be stored in it. The kind and the scope can't be changed at all. In addition, PROJECT still
//! contains the old names, which other commands use to find files and to write roles.

use std::ops::Range;

use rbuilder_generator::{Diagnostic, FileRange, KindSummary};

use super::definition::{ChangedFile, place_of};
use crate::project::{FILE, Known, Resource, describe_scope, names, naming_flags, strip_domain};
use crate::render::sample_file;

pub(super) fn find_lost_storage(changed: &[ChangedFile], kinds: &[KindSummary]) -> Vec<Diagnostic> {
    let kept = changed
        .iter()
        .flat_map(|file| file.kept().map(move |(old, new)| (&file.path, old, new)));
    kept.filter_map(|(path, old, new)| {
        let (stored, storage) = (old.storage()?, new.storage()?);
        let is_kept = new.version(stored.name).is_some();
        (!is_kept).then(|| {
            let message = format!(
                "the CRD of `{}` loses its storage version `{}`: a cluster that stores objects in this version rejects the CRD",
                old.kind(), stored.name
            );
            let help = format!(
                "keep `{}` beside `{}`, with `storage = false`, until no object is stored in it; if the CRD is \
                 installed in no cluster, there is nothing to do",
                stored.name, storage.name
            );
            Diagnostic::warning(place_of(old, path, kinds), message).help(help)
        })
    })
    .collect()
}

pub(super) fn find_immutable(changed: &[ChangedFile], kinds: &[KindSummary]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for file in changed {
        for (old, new) in file.kept() {
            for (what, old_value, new_value) in [
                ("kind", old.kind(), new.kind()),
                ("scope", old.scope(), new.scope()),
            ] {
                if old_value != new_value {
                    let message = format!(
                        "the {what} of the CRD `{}` changes from `{old_value}` to `{new_value}`: the API server rejects this for an \
                         installed CRD",
                        new.expected_name()
                    );
                    let help = "undo it, or delete the CRD and all its objects from each cluster first";
                    found.push(Diagnostic::warning(place_of(new, &file.path, kinds), message).help(help));
                }
            }
        }
    }
    found
}

/// Warns about each version in PROJECT that is missing from the source. `text` is the content of
/// PROJECT.
pub(super) fn find_unlisted(text: &str, known: &Known, kinds: &[KindSummary]) -> Vec<Diagnostic> {
    let own = known.resources.iter().filter(|resource| resource.api.is_some());
    own.filter_map(|resource| {
        let group = resource.qualified_group();
        let mut same = kinds
            .iter()
            .filter(|kind| kind.group == group && kind.kind == resource.kind);
        let Unlisted { key, message, help } = match same.next() {
            Some(kind) if kind.versions.contains(&resource.version) => describe_difference(resource, kind)?,
            Some(kind) => describe_version(known, resource, kind),
            None => describe_kind(known, resource, kinds),
        };
        let place = FileRange::new(FILE, find_line(text, resource, key));
        Some(Diagnostic::warning(place, message).help(help))
    })
    .collect()
}

struct Unlisted {
    key: &'static str,
    message: String,
    help: String,
}

fn is_listed(known: &Known, kind: &KindSummary, version: &str) -> bool {
    let mut own = known.resources.iter();
    own.any(|resource| {
        resource.qualified_group() == kind.group && resource.kind == kind.kind && resource.version == version
    })
}

struct Line<'t> {
    key: &'t str,
    value: &'t str,
    range: Range<usize>,
}

/// Line of a resource with the given key, or else with the version.
fn find_line(text: &str, resource: &Resource, key: &str) -> Range<usize> {
    let names = [
        ("kind", &resource.kind),
        ("group", &resource.group),
        ("version", &resource.version),
    ];
    let entries = read_entries(text);
    let is_its = |entry: &&Vec<Line<'_>>| {
        let has = |key: &str, name: &str| line_of(entry, key).map_or("", |line| line.value) == name;
        names.iter().all(|(key, name)| has(key, name))
    };
    let entry = entries.iter().find(is_its);
    let line = entry.and_then(|entry| line_of(entry, key).or_else(|| line_of(entry, "version")));
    line.map_or(0..0, |line| line.range.clone())
}

fn line_of<'e, 't>(entry: &'e [Line<'t>], key: &str) -> Option<&'e Line<'t>> {
    entry.iter().find(|line| line.key == key)
}

/// Splits PROJECT into its entries. It must be formatted like our output.
fn read_entries(text: &str) -> Vec<Vec<Line<'_>>> {
    let mut entries: Vec<Vec<Line<'_>>> = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with('-') {
            entries.push(Vec::new());
        }
        let content = line.strip_prefix("- ").or(line.strip_prefix("  "));
        let (key, value) = content
            .and_then(|content| content.trim_end().split_once(':'))
            .unwrap_or_default();
        if let Some(entry) = entries.last_mut() {
            entry.push(Line {
                key,
                value: value.trim().trim_matches('"'),
                // Without the `- ` or the indentation.
                range: start + 2..start + line.trim_end().len(),
            });
        }
        start += line.len();
    }
    entries
}

fn describe_version(known: &Known, resource: &Resource, kind: &KindSummary) -> Unlisted {
    let (name, version) = (&resource.kind, &resource.version);
    let message = format!("{FILE} lists version `{version}` of `{name}`, but the source has no such version");
    let mut versions = kind.versions.iter();
    let help = match versions.find(|version| !is_listed(known, kind, version)) {
        // The new version is at the path that `create api` would use.
        Some(new) if kind.place.path.split('/').any(|part| part == new) => {
            format!("write `version: {new}` in its entry in {FILE}")
        }
        Some(new) => format!(
            "keep `{version}` in the source, and add `{new}` with `rbuilder create api {}`",
            naming_flags(&resource.group, new, name)
        ),
        None => format!("remove it from {FILE} with `{}`", delete_command(resource)),
    };
    Unlisted {
        key: "version",
        message,
        help,
    }
}

/// Describes a kind whose plural or scope differs in the source. `None` if both are the same.
fn describe_difference(resource: &Resource, kind: &KindSummary) -> Option<Unlisted> {
    let Resource {
        kind: name, plural, ..
    } = resource;
    if !plural.is_empty() && *plural != kind.plural {
        return Some(Unlisted {
            key: "plural",
            message: format!(
                "{FILE} has the plural `{plural}` for `{name}`, but the source has `{}`",
                kind.plural
            ),
            help: format!(
                "write `plural: {}` in all its entries in {FILE}, and run `rbuilder update`, which updates its roles",
                kind.plural
            ),
        });
    }
    let (listed, found) = (resource.is_namespaced(), kind.is_namespaced);
    (listed != found).then(|| {
        let message = format!(
            "`{name}` is {} according to {FILE}, but {} in the source",
            describe_scope(listed),
            describe_scope(found)
        );
        let entry = match found {
            true => "write `namespaced: true` below `api`",
            false => "remove `namespaced: true` below `api`",
        };
        Unlisted {
            key: "api",
            message,
            help: format!("{entry} in all its entries in {FILE}, and adapt its tests"),
        }
    })
}

fn describe_kind(known: &Known, resource: &Resource, kinds: &[KindSummary]) -> Unlisted {
    let (name, version, group) = (&resource.kind, &resource.version, resource.qualified_group());
    let message =
        format!("{FILE} lists the kind `{name}` of {group}/{version}, but the source has no such kind");
    let delete = delete_command(resource);
    let otherwise = format!("otherwise restore its type, or remove it with `{delete}`");
    let renamed = find_renamed(known, resource, kinds);
    let help = match renamed {
        Some(renamed) => format!("{}; {otherwise}", explain_rename(known, resource, renamed)),
        None => format!("restore its type, or remove it with `{delete}`"),
    };
    let has_other_group = renamed.is_some_and(|renamed| renamed.kind == *name);
    Unlisted {
        key: if has_other_group { "group" } else { "kind" },
        message,
        help,
    }
}

/// Finds the kind that replaced a kind in PROJECT: one of the same name in a different group, or
/// the only one that isn't listed.
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

fn explain_rename(known: &Known, resource: &Resource, renamed: &KindSummary) -> String {
    let Resource { kind, version, .. } = resource;
    let has_become = format!("if it has become `{}` of {}", renamed.kind, renamed.group);
    let group = strip_domain(&renamed.group, &known.domain);
    match group {
        // With a single group, most paths don't contain the group. So editing PROJECT is enough,
        // and `update` takes care of the roles.
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
        // Files and modules are named after the kind (and the group, if there are several). Only
        // `create` and `delete` can change them.
        Some(group) => format!(
            "{has_become}, restore `{kind}`, run `rbuilder create api {}{}`, move your code to the new files, and run `{} --force`",
            naming_flags(group, version, &renamed.kind),
            flags_like(resource, renamed),
            delete_command(resource)
        ),
        None => format!("{has_become}, correct its entry in {FILE}"),
    }
}

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

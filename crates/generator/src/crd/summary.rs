//! Lists the kinds in the packages, including those without a CRD.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_reader::Span;

use super::merge::Versions;
use super::patched::Patches;
use crate::FileRange;
use crate::kinds::{Kind, State};
use crate::package::{Package, TypeId, TypeItem};
use crate::report::Report;

pub(super) fn list_kinds(
    package: &Package,
    asked: &BTreeMap<(&str, &str), Versions<'_>>,
    patches: &Patches,
    report: &Report,
) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = asked
        .iter()
        .enumerate()
        .map(|(position, ((group, kind), versions))| Kind {
            kind: (*kind).to_owned(),
            group: (*group).to_owned(),
            plural: versions[0].1.plural_name(),
            is_namespaced: versions[0].1.namespaced,
            versions: versions
                .iter()
                .map(|(_, version)| version.version.clone())
                .collect(),
            patches: patches
                .get(&position)
                .into_iter()
                .flatten()
                .map(|place| FileRange::new(report.files.path(place.file), place.span.range()))
                .collect(),
            state: State::Asked(position),
            packages: list_packages(package, versions),
            ..unnamed(package, package.item(versions[0].0), report)
        })
        .collect();
    let unread = (asked.len()..).zip(find_unread(package));
    kinds.extend(unread.map(|(position, id)| Kind {
        state: State::Asked(position),
        ..unnamed(package, package.item(id), report)
    }));
    let mut skipped: BTreeMap<(&str, &str), Kind> = BTreeMap::new();
    for item in &package.types {
        let resource = item
            .model
            .as_ref()
            .and_then(|model| model.custom_resource.as_ref());
        let (Some(resource), Some(why)) = (resource, item.skipped) else {
            continue;
        };
        let key = (resource.group.as_str(), resource.kind.as_str());
        let known = skipped.entry(key).or_insert_with(|| Kind {
            kind: resource.kind.clone(),
            group: resource.group.clone(),
            plural: resource.plural_name(),
            is_namespaced: resource.namespaced,
            versions: Vec::new(),
            state: State::Skipped(why),
            ..unnamed(package, item, report)
        });
        if !known.versions.contains(&resource.version) {
            known.versions.push(resource.version.clone());
        }
        let folder = &package.member(item.module).folder;
        if !known.packages.contains(folder) {
            known.packages.push(folder.clone());
        }
    }
    kinds.extend(skipped.into_values());
    kinds
}

/// Lists the folders of the packages with a version of a kind, in the order of the versions.
fn list_packages(package: &Package, versions: &Versions<'_>) -> Vec<String> {
    let mut folders: Vec<String> = Vec::new();
    for (id, _) in versions {
        let folder = &package.member(package.item(*id).module).folder;
        if !folders.contains(folder) {
            folders.push(folder.clone());
        }
    }
    folders
}

pub(super) fn find_unread(package: &Package) -> Vec<TypeId> {
    let items = package.types.iter().enumerate();
    let mut known = BTreeSet::new();
    let unread = items.filter(|(_, item)| {
        let resource = item
            .model
            .as_ref()
            .and_then(|model| model.custom_resource.as_ref());
        let is_unread = item.is_checked && item.kind_struct.is_some() && resource.is_none();
        // A module may belong to both the library and a binary; list each struct only once.
        is_unread && known.insert((item.file, place_of_struct(item)))
    });
    unread.map(|(index, _)| TypeId(index)).collect()
}

/// Falls back to the location of an error if the location of the name is unknown.
fn place_of_struct(item: &TypeItem) -> Span {
    let name = item.model.as_ref().map(|model| model.span);
    let error = item.reserved.first().map(|error| error.place);
    name.or(error).unwrap_or_default()
}

fn unnamed(package: &Package, item: &TypeItem, report: &Report) -> Kind {
    let range = item.model.as_ref().map_or(0..0, |model| model.span.range());
    Kind {
        kind: item.kind_struct.clone().unwrap_or_default(),
        group: String::new(),
        plural: String::new(),
        is_namespaced: false,
        versions: Vec::new(),
        place: FileRange::new(report.files.path(item.file), range),
        package: package.member(item.module).folder.clone(),
        packages: vec![package.member(item.module).folder.clone()],
        duplicates: Vec::new(),
        patches: Vec::new(),
        state: State::Asked(usize::MAX),
    }
}

//! Kinds that several packages of a workspace define. A cluster has one CRD of a kind, and only the
//! author knows which of the definitions is the real one, so none of them is written.

use std::collections::BTreeMap;

use super::merge::Versions;
use super::{Version, file, storage};
use crate::kinds::{Duplicate, KEEP_ONE};
use crate::package::{Package, TypeId};
use crate::place::Place;
use crate::report::Report;
use crate::{FileRange, Options};

/// A version in the list of [`Versions`].
type Position = usize;

/// Groups the versions of a kind by package, if two packages define the same version. Otherwise
/// there is nothing to choose, and the result is empty.
pub(super) fn group_by_package(package: &Package, versions: &Versions<'_>) -> Vec<Vec<Position>> {
    let owner = |id: TypeId| package.module(package.item(id).module).package.0;
    let is_duplicate = versions.windows(2).any(|pair| {
        let [(first, one), (second, other)] = pair else {
            return false;
        };
        one.version == other.version && owner(*first) != owner(*second)
    });
    // A macro may give its item other attributes than the source shows.
    let is_rewritten = versions.iter().any(|(id, _)| package.item(*id).is_rewritten);
    if !is_duplicate || is_rewritten {
        return Vec::new();
    }
    let mut groups: BTreeMap<usize, Vec<Position>> = BTreeMap::new();
    for (position, (id, _)) in versions.iter().enumerate() {
        groups.entry(owner(*id)).or_default().push(position);
    }
    groups.into_values().collect()
}

/// Reports an error at each definition.
pub(super) fn report_duplicates(
    package: &Package,
    versions: &Versions<'_>,
    groups: &[Vec<Position>],
    report: &mut Report,
) {
    let place = |group: &Vec<Position>| {
        let (id, resource) = versions[group[0]];
        Place {
            file: package.item(id).file,
            span: resource.span,
        }
    };
    let times = match groups.len() {
        2 => "twice".to_owned(),
        many => format!("{many} times"),
    };
    let resource = versions[0].1;
    for (at, group) in groups.iter().enumerate() {
        let others = groups.iter().enumerate().filter(|(other, _)| *other != at);
        let others: Vec<String> = others
            .map(|(_, other)| format!("`{}`", report.files.path(place(other).file)))
            .collect();
        let message = format!(
            "kind `{}` in group `{}` is defined {times}, here and in {}",
            resource.kind,
            resource.group,
            others.join(" and in ")
        );
        report.error(place(group), message, KEEP_ONE);
    }
}

/// Prints the CRD of each definition, so that the caller can compare it with the existing one.
/// `made` has the versions without errors.
pub(super) fn print_duplicates(
    package: &Package,
    versions: &Versions<'_>,
    groups: &[Vec<Position>],
    mut made: Vec<Option<Version<'_>>>,
    options: &Options,
    report: &Report,
) -> Vec<Duplicate> {
    let print = |group: &Vec<Position>| {
        let own: Versions<'_> = group.iter().map(|position| versions[*position]).collect();
        let stored = storage::find_stored(package, &own);
        let made = group.iter().enumerate().map(|(at, position)| {
            let made = made[*position].take()?;
            let is_stored = stored.map_or(own[at].1.storage, |stored| stored == at);
            Some(Version { is_stored, ..made })
        });
        let made: Option<Vec<Version<'_>>> = made.collect();
        let (id, resource) = own[0];
        let item = package.item(id);
        Duplicate {
            place: FileRange::new(report.files.path(item.file), resource.span.range()),
            package: package.member(item.module).folder.clone(),
            crd: made.map(|made| file(&made, options).text),
        }
    };
    groups.iter().map(print).collect()
}

//! Groups versions by kind, and checks that the versions of a kind fit into a single CRD.

use std::collections::BTreeMap;

use rbuilder_diagnostic::Severity;
use rbuilder_syntax::{Conversion, CustomResource};

use super::{Names, duplicates, storage};
use crate::advice;
use crate::gap::{Gap, GapSort};
use crate::package::Orphan;
use crate::package::{Package, TypeId};
use crate::place::Place;
use crate::report::{Concern, PlacedDiagnostic, Report};

/// Sorted by version name.
pub(super) type Versions<'a> = Vec<(TypeId, &'a CustomResource)>;

pub(super) fn group_versions<'a>(
    package: &'a Package,
    report: &mut Report,
) -> BTreeMap<(&'a str, &'a str), Versions<'a>> {
    let mut kinds: BTreeMap<(&str, &str), Versions<'a>> = BTreeMap::new();
    for (index, item) in package.types.iter().enumerate() {
        let Some(resource) = item
            .model
            .as_ref()
            .and_then(|model| model.custom_resource.as_ref())
        else {
            continue;
        };
        // The package is not selected, or the kind is skipped.
        if package.module(item.module).is_foreign || item.skipped.is_some() {
            continue;
        }
        let versions = kinds.entry((&resource.group, &resource.kind)).or_default();
        // A library and a binary may both include the file.
        if !versions
            .iter()
            .any(|(other, known)| is_same(package, *other, known, TypeId(index), resource))
        {
            versions.push((TypeId(index), resource));
        }
    }
    for (position, versions) in kinds.values_mut().enumerate() {
        versions.sort_by(|(_, a), (_, b)| a.version.cmp(&b.version));
        report.set_concern(Concern::Kind(position));
        // A macro may change the attributes of this item, so there is nothing to compare.
        if !versions.iter().any(|(id, _)| package.item(*id).is_rewritten) {
            check(package, versions, report);
        }
        check_gaps(package, versions[0].1, report);
    }
    check_plurals(package, &kinds, report);
    check_list_kinds(package, &kinds, report);
    report.set_concern(Concern::Run);
    kinds
}

fn check_gaps(package: &Package, resource: &CustomResource, report: &mut Report) {
    for gap in find_gaps(package, resource) {
        report.add_all(gap.file, [gap.reason.clone()]);
    }
}

fn find_gaps<'a>(package: &'a Package, resource: &'a CustomResource) -> impl Iterator<Item = &'a Gap> {
    let mut mentioned = package.gaps.iter().filter(|gap| gap.mentions(&resource.kind));
    // If a macro mentions the kind, it may expand any other macro that contains
    // `derive(CustomResource)`.
    let is_called = mentioned.any(|gap| gap.sort == GapSort::Macro);
    let hiding = package.gaps.iter().filter(|gap| gap.hides_kind);
    hiding.filter(move |gap| gap.mentions(&resource.kind) || is_called && gap.sort == GapSort::Macro)
}

/// Returns true if `a` and `b` are the same type, read twice because several targets include its
/// file. The versions of a `#[versioned]` module share a place, so compare the versions as well.
fn is_same(package: &Package, a: TypeId, at_a: &CustomResource, b: TypeId, at_b: &CustomResource) -> bool {
    package.item(a).file == package.item(b).file && at_a.span == at_b.span && at_a.version == at_b.version
}

fn place(package: &Package, (id, resource): &(TypeId, &CustomResource)) -> Place {
    Place {
        file: package.item(*id).file,
        span: resource.span,
    }
}

fn check(package: &Package, versions: &Versions<'_>, report: &mut Report) {
    let groups = duplicates::group_by_package(package, versions);
    if !groups.is_empty() {
        // The definitions are alternatives, so they don't have to fit into a single CRD.
        return duplicates::report_duplicates(package, versions, &groups, report);
    }
    let mut is_repeated = false;
    for pair in versions.windows(2) {
        let [(_, first), (_, second)] = pair else { continue };
        if first.version == second.version {
            is_repeated = true;
            let message = format!(
                "duplicate version of kind `{}` in group `{}`: `{}`",
                second.kind, second.group, second.version
            );
            let other = report.files.path(package.item(pair[0].0).file);
            let help = format!("remove this one or the one in `{other}`");
            report.error(place(package, &pair[1]), message, &help);
        }
    }
    let (first, rest) = (&versions[0], &versions[1..]);
    for version in rest {
        // The broken attribute may be what sets the value.
        if has_wrong_attribute(package, first, report) || has_wrong_attribute(package, version, report) {
            continue;
        }
        if let Some(what) = disagreement(first.1, version.1) {
            let message = format!(
                "versions `{}` and `{}` of `{}` differ in {what}",
                first.1.version, version.1.version, version.1.kind
            );
            let help =
                "use the same value in both: a CustomResourceDefinition has one set of names and one scope";
            report.error(place(package, version), message, help);
        }
    }
    // A version that couldn't be read may be the storage version or a served one.
    let is_whole = find_gaps(package, versions[0].1).next().is_none()
        && !versions
            .iter()
            .any(|version| has_wrong_attribute(package, version, report));
    if is_whole && !is_repeated {
        check_storage(package, versions, report);
    }
    check_conversion(package, versions, report);
    check_approval(package, versions, report);
    check_annotations(package, versions, report);
}

/// A CRD has only one conversion, which any of its versions may declare.
fn check_conversion(package: &Package, versions: &Versions<'_>, report: &mut Report) {
    let mut said: Option<&Conversion> = None;
    for version in versions {
        let Some(conversion) = &version.1.conversion else {
            continue;
        };
        // Conversions are the same if they only differ in their spans.
        let same = |first: &Conversion| {
            Conversion {
                span: first.span,
                ..conversion.clone()
            } == *first
        };
        if said.is_some_and(|first| !same(first)) {
            let message = format!("versions of `{}` differ in their conversion", version.1.kind);
            let at = Place {
                span: conversion.span,
                ..place(package, version)
            };
            report.error(at, message, "write `conversion` on one version only");
        }
        said = said.or(Some(conversion));
    }
}

fn check_approval(package: &Package, versions: &Versions<'_>, report: &mut Report) {
    const KEY: &str = "api-approved.kubernetes.io";
    let group = &versions[0].1.group;
    // Groups reserved for the Kubernetes project require an approval annotation.
    let is_protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .filter_map(|domain| group.strip_suffix(domain))
        .any(|before| before.is_empty() || before.ends_with('.'));
    if !is_protected {
        return;
    }
    let mut annotations = versions.iter().flat_map(|(_, resource)| &resource.annotations);
    match annotations.find(|(key, _)| key == KEY) {
        Some((_, value)) if value.starts_with("unapproved") || is_url(value) => {}
        found => {
            let message = match found {
                Some((_, value)) => {
                    format!("expected a URL or a value that begins with `unapproved`, found `{value}`")
                }
                None => format!("kinds in the group `{group}` need an approval annotation"),
            };
            let help = format!(
                "use a group of your own, or add `#[crd(annotation(\"{KEY}\", \"https://…\"))]` with the URL of the approval, or with the value `unapproved, …`"
            );
            let help = advice::for_type(&help, package.item(versions[0].0).is_ours);
            report.error(place(package, &versions[0]), message, &help);
        }
    }
}

/// The API server's limit in bytes, for all annotation keys and values together.
const MOST_ANNOTATIONS: usize = 256 * 1024;

fn check_annotations(package: &Package, versions: &Versions<'_>, report: &mut Report) {
    // The CRD merges the annotations of all versions, so count each key only once.
    let annotations: BTreeMap<&str, &str> = versions
        .iter()
        .flat_map(|(_, resource)| &resource.annotations)
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    let size: usize = annotations
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum();
    if size > MOST_ANNOTATIONS {
        let kind = &versions[0].1.kind;
        let message = format!(
            "expected at most {MOST_ANNOTATIONS} bytes of annotations on the definition of `{kind}`, found {size}"
        );
        let help = "shorten the annotations";
        report.error(place(package, &versions[0]), message, help);
    }
}

/// The API server only requires a scheme and a host.
fn is_url(text: &str) -> bool {
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    text.split_once("://").is_some_and(|(scheme, rest)| {
        is_scheme(scheme)
            && !rest.starts_with('/')
            && !rest.is_empty()
            && !text.contains(|c: char| c.is_control() || c == ' ')
    })
}

fn has_wrong_attribute(
    package: &Package,
    (id, resource): &(TypeId, &CustomResource),
    report: &Report,
) -> bool {
    let item = package.item(*id);
    let start = item
        .model
        .as_ref()
        .map_or(resource.span.start, |model| model.start);
    report.has_error_within(item.file, start as usize..resource.span.range().start)
}

/// Returns the name of the property that differs, among those that a CRD has only once.
fn disagreement(a: &CustomResource, b: &CustomResource) -> Option<&'static str> {
    let (names_a, names_b) = (Names::of(a), Names::of(b));
    [
        ("the plural", names_a.plural != names_b.plural),
        ("the singular", names_a.singular != names_b.singular),
        ("the short names", names_a.short_names != names_b.short_names),
        ("the categories", names_a.categories != names_b.categories),
        ("`namespaced`", a.namespaced != b.namespaced),
    ]
    .into_iter()
    .find_map(|(what, differs)| differs.then_some(what))
}

fn check_storage(package: &Package, versions: &Versions<'_>, report: &mut Report) {
    let kind = &versions[0].1.kind;
    if let Some(stored) = storage::explain(package, versions) {
        let at = place(package, &versions[stored.position]);
        // Warn only about an assumed version: a version added later could then change the storage
        // version of existing objects.
        let severity = if stored.is_assumed {
            Severity::Warning
        } else {
            Severity::Note
        };
        let diagnostic = PlacedDiagnostic::new(severity, at, stored.message);
        report.add(diagnostic.maybe_help(stored.help.map(str::to_owned)));
    } else {
        let mut stored = versions.iter().filter(|(_, resource)| resource.storage);
        match (stored.next(), stored.next()) {
            // The storage version may be in a file that wasn't found.
            (None, _) if report.holds_back(Concern::Run) => {}
            (None, _) => {
                let (message, help) = explain_no_storage(package, versions[0].1);
                report.error(place(package, &versions[0]), message, &help);
            }
            (Some((_, first)), Some(second)) => {
                let message = format!(
                    "`{kind}` has two storage versions, `{}` and `{}`",
                    first.version, second.1.version
                );
                let help = "write `storage = false` on all versions but one";
                report.error(place(package, second), message, help);
            }
            _ => {}
        }
    }
    if !versions.iter().any(|(_, resource)| resource.served) {
        // The API server accepts this for kinds that are being retired but still have stored
        // objects.
        let message = format!("no version of `{kind}` is served: nobody can read or write its objects");
        report.warning(
            place(package, &versions[0]),
            message,
            "remove `served = false` from one version, unless the kind is being retired",
        );
    }
}

fn explain_no_storage(package: &Package, version: &CustomResource) -> (String, String) {
    let (kind, group) = (&version.kind, &version.group);
    // The versions read so far are fine, so point to one that may be missing, perhaps in a file
    // that no `mod` declares.
    if let Some(orphan) = package.orphans.iter().find(|orphan| orphan.declares(kind)) {
        let Orphan {
            path, declaration, ..
        } = orphan;
        return (
            format!("the storage version of `{kind}` may be in `{path}`, which no `mod` declares"),
            format!("add {declaration}"),
        );
    }
    // If another group has a kind of this name, the two may belong in the same group.
    let kinds = package.own_kinds();
    let mut others = kinds.iter().map(|own| own.kind);
    match others.find(|other| other.kind == *kind && other.group != *group) {
        Some(other) => (
            format!("no version of `{kind}` in `{group}` is the storage version"),
            format!(
                "write `storage = true` on one version, or, if this is a version of `{kind}` in `{0}`, write `group = \"{0}\"`",
                other.group
            ),
        ),
        None => (
            format!("no version of `{kind}` is the storage version"),
            "write `storage = true` on one version".to_owned(),
        ),
    }
}

/// If two kinds in a group share a plural, singular or short name, the API server never serves the
/// second one.
fn check_plurals(package: &Package, kinds: &BTreeMap<(&str, &str), Versions<'_>>, report: &mut Report) {
    let mut owners: BTreeMap<(&str, String), (&str, usize)> = BTreeMap::new();
    for (position, ((group, kind), versions)) in kinds.iter().enumerate() {
        let names = Names::of(versions[0].1);
        let plural = [("plural", names.plural), ("singular", names.singular)];
        let short = names.short_names.into_iter().map(|name| ("short name", name));
        let mut own = Vec::new();
        for (what, name) in plural.into_iter().chain(short) {
            // A kind may use a name twice: the singular and plural of `Sheep` are both `sheep`.
            if own.contains(&name) {
                continue;
            }
            own.push(name.clone());
            if let Some((owner, other)) = owners.insert((group, name.clone()), (kind, position)) {
                let message =
                    format!("kinds `{kind}` and `{owner}` of group `{group}` share the name `{name}`");
                let help = match what {
                    "short name" => format!("remove `shortname = \"{name}\"` from one of them"),
                    what => format!("write `{what} = \"…\"` on one of them"),
                };
                for position in [other, position] {
                    report.set_concern(Concern::Kind(position));
                    report.error(place(package, &versions[0]), message.as_str(), &help);
                }
            }
        }
    }
}

/// If one kind is named like the list of another, e.g. `Cup` and `CupList`, the API server never
/// serves the second one.
fn check_list_kinds(package: &Package, kinds: &BTreeMap<(&str, &str), Versions<'_>>, report: &mut Report) {
    for (position, ((group, kind), versions)) in kinds.iter().enumerate() {
        let Some(listed) = kind.strip_suffix("List") else {
            continue;
        };
        if let Some(other) = kinds.keys().position(|key| *key == (*group, listed)) {
            let message =
                format!("kind `{kind}` conflicts with the list kind of `{listed}` in group `{group}`");
            let help = "rename this kind: the API server serves only one of them";
            for position in [other, position] {
                report.set_concern(Concern::Kind(position));
                report.error(place(package, &versions[0]), message.as_str(), help);
            }
        }
    }
}

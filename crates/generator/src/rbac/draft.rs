//! Drafts markers for the permissions that calls need, for programs whose role is written by hand.

use std::collections::{BTreeMap, BTreeSet};

use super::fit::{allow, describe_unseen, hides_calls, rules_of};
use super::marker::{Permission, write_marker};
use crate::collect::{Build, collect_packages};
use crate::kubernetes_types::KubernetesTypes;
use crate::package::Package;
use crate::permissions::{Needs, REQUEST_VERBS, Strength, Unseen, Why, find_needs};
use crate::place::{Files, Place};
use crate::report::{Concern, Report};
use crate::sources::Sources;
use crate::{Calls, FileRange, Options, Product, cargo};

/// A role drafted from the calls in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DraftedRole {
    /// The markers, by group and resource. Permissions already granted by markers in the source are
    /// left out.
    pub markers: Vec<DraftedMarker>,
    /// Everything that calls need, whether markers grant it or not.
    pub needed: Vec<NeededPermission>,
    /// Code that couldn't be followed, by place.
    pub unfollowed: Vec<Unfollowed>,
}

/// A marker with the permissions that calls need on one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftedMarker {
    /// The API group. `""` is the core group.
    pub group: String,
    /// The plural, with the subresource if there is one, e.g. `deployments/status`.
    pub resource: String,
    /// The verbs, in the order of the API documentation.
    pub verbs: Vec<&'static str>,
    /// The entire attribute, `#[rbac(…)]`.
    pub text: String,
    /// The calls that need these permissions, by place.
    pub calls: Vec<DraftedCall>,
}

/// A permission that a call needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NeededPermission {
    /// The API group. `""` is the core group.
    pub group: String,
    /// The plural, with the subresource if there is one.
    pub resource: String,
    /// The verb.
    pub verb: &'static str,
}

/// A call that needs permissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftedCall {
    /// The name of the called function.
    pub name: String,
    /// Where the name occurs in the source.
    pub place: FileRange,
}

/// A part of the source that may need more permissions than drafted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfollowed {
    /// The location of the call, or a part of a file.
    pub place: FileRange,
    /// What is unknown about the call.
    pub message: String,
}

/// Drafts markers with the permissions that the calls of kube and the library in all selected
/// packages need. [`Options::products`] and [`Options::calls`] have no effect.
pub fn draft_role(sources: &dyn Sources, options: &Options) -> DraftedRole {
    let mut report = Report::default();
    let options = Options {
        products: vec![Product::Roles],
        calls: Calls::All,
        ..options.clone()
    };
    let package = collect(sources, &options, &mut report);
    let mut drafted = DraftedRole::default();
    if let Some(package) = package {
        let needs = find_needs(&package);
        drafted.markers = draft_markers(&package, &needs, &report.files);
        drafted.needed = list_needed(&needs);
        drafted.unfollowed = list_unfollowed(&package, &needs, &report.files);
    }
    add_unread(report, &mut drafted.unfollowed);
    drafted
        .unfollowed
        .sort_by_key(|unfollowed| (unfollowed.place.path.clone(), unfollowed.place.range.start));
    drafted.unfollowed.dedup();
    drafted
}

fn collect(sources: &dyn Sources, options: &Options, report: &mut Report) -> Option<Package> {
    let manifests = cargo::read_manifests(sources, options, report)?;
    let choice = manifests.k8s_openapi.choose(options.kubernetes);
    let kubernetes = KubernetesTypes::new(choice, manifests.k8s_openapi.place);
    let collected = collect_packages(
        sources,
        manifests.packages,
        Some(manifests.published),
        kubernetes,
        Build::Asked,
        options,
        report,
    );
    Some(collected.package)
}

/// The required verbs, and the place and name of each call.
type Found<'n> = (BTreeSet<&'static str>, BTreeSet<(Place, &'n str)>);

fn draft_markers(package: &Package, needs: &Needs, files: &Files) -> Vec<DraftedMarker> {
    let rules = rules_of(package);
    let mut found: BTreeMap<Permission, Found<'_>> = BTreeMap::new();
    let known = needs.known.iter();
    for need in known.filter(|need| need.strength >= Strength::Optional) {
        let permission = Permission::of(need);
        let is_missing = |verb: &&&'static str| !allow(&rules, &permission, verb);
        let missing: Vec<&'static str> = need.verbs.iter().filter(is_missing).copied().collect();
        if missing.is_empty() {
            continue;
        }
        let (verbs, calls) = found.entry(permission).or_default();
        verbs.extend(missing);
        calls.insert((need.place, &need.call));
    }
    let drafted = found.into_iter().map(|(permission, (verbs, calls))| {
        let order = REQUEST_VERBS.iter().copied();
        let verbs: Vec<&'static str> = order.filter(|verb| verbs.contains(verb)).collect();
        let calls = calls.into_iter().map(|(place, name)| DraftedCall {
            name: name.to_owned(),
            place: range_of(place, files),
        });
        let mut calls: Vec<DraftedCall> = calls.collect();
        calls.sort_by_key(|call| (call.place.path.clone(), call.place.range.start));
        DraftedMarker {
            text: write_marker(&permission, &verbs, None),
            group: permission.group,
            resource: permission.resource,
            verbs,
            calls,
        }
    });
    drafted.collect()
}

fn list_needed(needs: &Needs) -> Vec<NeededPermission> {
    let wanted = needs
        .known
        .iter()
        .filter(|need| need.strength >= Strength::Optional);
    let needed: BTreeSet<NeededPermission> = wanted
        .flat_map(|need| {
            let Permission { group, resource, .. } = Permission::of(need);
            need.verbs.iter().map(move |verb| NeededPermission {
                group: group.clone(),
                resource: resource.clone(),
                verb,
            })
        })
        .collect();
    needed.into_iter().collect()
}

fn list_unfollowed(package: &Package, needs: &Needs, files: &Files) -> Vec<Unfollowed> {
    let unseen = needs.unseen.iter();
    let mut unfollowed: Vec<Unfollowed> = unseen
        .filter_map(|unseen| {
            Some(Unfollowed {
                place: range_of(unseen.place, files),
                message: describe(unseen)?,
            })
        })
        .collect();
    let hidden = package.gaps.iter().filter(|gap| hides_calls(gap));
    unfollowed.extend(hidden.map(|gap| {
        let place = Place {
            file: gap.file,
            span: gap.reason.place,
        };
        Unfollowed {
            place: range_of(place, files),
            message: gap.reason.message.clone(),
        }
    }));
    unfollowed
}

fn describe(unseen: &Unseen) -> Option<String> {
    let Unseen { call, resource, .. } = unseen;
    match (describe_unseen(unseen), &unseen.why, resource) {
        (Some(what), ..) => Some(what),
        (None, Why::Passed, Some(resource)) => Some(format!(
            "`{call}` receives an `Api` of `{}` and is not followed",
            resource.plural
        )),
        (None, Why::Passed, None) => Some(format!("`{call}` receives a client and is not followed")),
        (None, ..) => None,
    }
}

fn add_unread(report: Report, unfollowed: &mut Vec<Unfollowed>) {
    let about_reading = |concerns: &BTreeSet<Concern>| concerns.contains(&Concern::Run);
    for (diagnostic, concerns) in report.into_sorted() {
        if diagnostic.is_error() && about_reading(&concerns) {
            unfollowed.push(Unfollowed {
                place: diagnostic.place,
                message: diagnostic.message,
            });
        }
    }
}

fn range_of(place: Place, files: &Files) -> FileRange {
    FileRange::new(files.path(place.file), place.span.range())
}

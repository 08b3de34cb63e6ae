//! Reports webhooks that are never called, or called with objects that their handler does not
//! accept.
//!
//! Webhooks are compared with the built-in resources of Kubernetes and with the package's own
//! kinds. A webhook that matches nothing is an error, or just a warning if it may be meant for
//! another project or version.

use rbuilder_diagnostic::{Severity, suggest};
use rbuilder_syntax::{CustomResource, Diagnostic, resources};

use super::Entry;
use crate::package::{OwnKind, Package};
use crate::report::Report;

pub(super) fn check_reach(package: &Package, entries: &[Entry<'_>], report: &mut Report) {
    if entries.is_empty() {
        return;
    }
    let kinds = package.own_kinds();
    for entry in entries {
        let found = judge_kind(&kinds, entry)
            .into_iter()
            .chain(judge_subresource(&kinds, entry))
            .chain(judge_scope(&kinds, entry))
            .chain(judge_operations(&kinds, entry));
        found.for_each(|diagnostic| report.add(diagnostic.map_place(|span| entry.at(span))));
    }
}

/// Explicit groups, versions and resources should match the kind of the handler.
fn judge_kind(kinds: &[OwnKind<'_>], entry: &Entry<'_>) -> Option<Diagnostic> {
    let webhook = entry.webhook;
    let kind = entry.kind.as_ref()?;
    // Versions of a kind can be alike, and built-in kinds have moved between groups, so a mismatch
    // there is only a warning.
    let is_own = own(kinds, &kind.group, &kind.plural).is_some();
    let certain = if is_own {
        Severity::Error
    } else {
        Severity::Warning
    };
    let wholes: Vec<String> = entry
        .resources
        .iter()
        .map(|resource| split(resource).0.to_owned())
        .collect();
    let lists = [
        ("groups", &entry.groups, &kind.group, webhook.groups_span, certain),
        (
            "resources",
            &wholes,
            &kind.plural,
            webhook.resources_span,
            certain,
        ),
        (
            "versions",
            &entry.versions,
            &kind.version,
            webhook.versions_span,
            Severity::Warning,
        ),
    ];
    let (name, _, expected, span, severity) = lists
        .into_iter()
        .find(|(_, list, expected, ..)| !list.iter().any(|word| word == *expected || word == "*"))?;
    Some(
        Diagnostic::new(
            severity,
            span,
            format!(
                "the handler takes `{}`, but the webhook matches other {name}",
                kind.kind
            ),
        )
        .help(format!("write `{name} = \"{expected}\"`, or remove `{name}`")),
    )
}

/// Checks that a webhook's subresources exist in own kinds.
fn judge_subresource(kinds: &[OwnKind<'_>], entry: &Entry<'_>) -> Option<Diagnostic> {
    entry.resources.iter().find_map(|resource| {
        let (plural, part) = split(resource);
        let part = part.filter(|part| *part != "*")?;
        let groups = entry.groups.iter();
        let named: Vec<&CustomResource> = groups.filter_map(|group| own(kinds, group, plural)).collect();
        if named.is_empty() {
            return None;
        }
        // `finalizers` only exists for authorization; there are no requests for it.
        let has = |part: &str| {
            named.iter().any(|kind| match part {
                "status" => kind.status.is_some(),
                "scale" => kind.scale.is_some(),
                _ => false,
            })
        };
        let known: Vec<&str> = ["status", "scale"].into_iter().filter(|part| has(part)).collect();
        (!has(part)).then(|| {
            Diagnostic::warning(
                entry.webhook.resources_span,
                format!("`{plural}` has no subresource `{part}`"),
            )
            .help(match known.is_empty() {
                true => format!("write `{plural}`"),
                false => suggest::describe_candidates(part, known),
            })
        })
    })
}

fn judge_scope(kinds: &[OwnKind<'_>], entry: &Entry<'_>) -> Option<Diagnostic> {
    let expected = match entry.webhook.scope {
        Some("Namespaced") => true,
        Some("Cluster") => false,
        _ => return None,
    };
    let scopes: Option<Vec<bool>> = entry
        .resources
        .iter()
        .map(|resource| is_namespaced(kinds, entry, split(resource).0))
        .collect();
    if scopes?.contains(&expected) {
        return None;
    }
    let (where_they_are, other) = match expected {
        true => ("cluster-scoped", "Cluster"),
        false => ("namespaced", "Namespaced"),
    };
    let resources = entry.resources.join("`, `");
    Some(
        Diagnostic::error(
            entry.webhook.scope_span,
            format!("the webhook is never called: `{resources}` are {where_they_are}"),
        )
        .help(format!("write `scope = \"{other}\"`, or remove it")),
    )
}

fn judge_operations(kinds: &[OwnKind<'_>], entry: &Entry<'_>) -> Vec<Diagnostic> {
    let asked = &entry.webhook.operations;
    if asked.contains(&"*") {
        return Vec::new();
    }
    let never: Vec<(&String, &[&str])> = entry
        .resources
        .iter()
        .filter_map(|resource| Some((resource, operations(kinds, entry, resource)?)))
        .filter(|(_, operations)| !operations.iter().any(|operation| asked.contains(operation)))
        .collect();
    // Only an error if the webhook is never called at all.
    let severity = match never.len() == entry.resources.len() {
        true => Severity::Error,
        false => Severity::Warning,
    };
    let diagnostic = |(resource, operations): (&String, &[&str])| {
        let (reason, help) = match operations {
            [] => (
                "which clients can only read",
                "remove it: the API server calls webhooks for changes only".to_owned(),
            ),
            operations => (
                "which has other operations",
                format!("write `operations = \"{}\"`", operations.join(";").to_lowercase()),
            ),
        };
        let message = format!("the webhook is never called for `{resource}`, {reason}");
        Diagnostic::new(severity, entry.webhook.operations_span, message).help(help)
    };
    never.into_iter().map(diagnostic).collect()
}

fn split(resource: &str) -> (&str, Option<&str>) {
    match resource.split_once('/') {
        Some((plural, part)) => (plural, Some(part)),
        None => (resource, None),
    }
}

fn own<'k>(kinds: &'k [OwnKind<'_>], group: &str, plural: &str) -> Option<&'k CustomResource> {
    let found = kinds
        .iter()
        .find(|own| own.plural == plural && own.kind.group == group)?;
    Some(found.kind)
}

/// Returns whether the resource is namespaced, or `None` if that is unknown or differs between the
/// groups.
fn is_namespaced(kinds: &[OwnKind<'_>], entry: &Entry<'_>, plural: &str) -> Option<bool> {
    let mut scopes = entry.groups.iter().map(|group| {
        let own = own(kinds, group, plural).map(|kind| kind.namespaced);
        own.or_else(|| resources::find_resource(group, plural).map(|resource| resource.is_namespaced))
    });
    let first = scopes.next()??;
    scopes.all(|scope| scope == Some(first)).then_some(first)
}

fn operations(kinds: &[OwnKind<'_>], entry: &Entry<'_>, resource: &str) -> Option<&'static [&'static str]> {
    let (plural, part) = split(resource);
    let [group] = entry.groups.as_slice() else {
        return None;
    };
    if own(kinds, group, plural).is_some() {
        return match part {
            None => Some(&["CREATE", "UPDATE", "DELETE"]),
            Some("status" | "scale") => Some(&["UPDATE"]),
            Some(_) => None,
        };
    }
    resources::find_resource(group, plural)?.operations(part)
}

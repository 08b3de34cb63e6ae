//! Webhooks that are never asked, or about objects that their handler does not read.

use rbuilder_syntax::{CustomResource, Severity, resources};

use super::Entry;
use crate::package::Package;
use crate::report::Report;

/// Checks what each webhook is asked about.
pub(super) fn check_reach(package: &Package, entries: &[Entry<'_>], report: &mut Report) {
    for entry in entries {
        check_kind(package, entry, report);
        check_scope(package, entry, report);
        check_operations(package, entry, report);
    }
}

/// Groups, versions and resources that are written must take in the kind of the handler's type.
fn check_kind(package: &Package, entry: &Entry<'_>, report: &mut Report) {
    let (Some(kind), webhook) = (&entry.kind, entry.webhook) else {
        return;
    };
    // Versions of a kind may be alike, and so may kinds of Kubernetes that moved between groups.
    let is_own = own(package, &kind.group, &kind.plural).next().is_some();
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
    for (name, list, expected, span, severity) in lists {
        if list.iter().any(|word| word == expected || word == "*") {
            continue;
        }
        let message = format!(
            "the handler reads `{}`, and is asked about other {name}",
            kind.kind
        );
        let help = format!("write `{name} = \"{expected}\"`, or remove `{name}`");
        report.say(package, entry.at(span), severity, message, Some(help));
        return;
    }
}

/// `scope` must be that of the resources.
fn check_scope(package: &Package, entry: &Entry<'_>, report: &mut Report) {
    let expected = match entry.webhook.scope {
        Some("Namespaced") => true,
        Some("Cluster") => false,
        _ => return,
    };
    let scopes: Option<Vec<bool>> = entry
        .resources
        .iter()
        .map(|resource| is_namespaced(package, entry, split(resource).0))
        .collect();
    if scopes.is_some_and(|scopes| scopes.iter().all(|namespaced| *namespaced != expected)) {
        let (where_they_are, other) = match expected {
            true => ("in no namespace", "Cluster"),
            false => ("in namespaces", "Namespaced"),
        };
        let message = format!(
            "the webhook is never asked: `{}` are {where_they_are}",
            entry.resources.join("`, `")
        );
        let help = format!("write `scope = \"{other}\"`, or remove it");
        report.error(package, entry.at(entry.webhook.scope_span), message, &help);
    }
}

/// The operations must be some that the resources have.
fn check_operations(package: &Package, entry: &Entry<'_>, report: &mut Report) {
    let asked = &entry.webhook.operations;
    if asked.contains(&"*") {
        return;
    }
    let known: Vec<_> = entry
        .resources
        .iter()
        .map(|resource| (resource, operations(package, entry, resource)))
        .collect();
    let is_never = |operations: &Option<&[&str]>| {
        operations.is_some_and(|operations| !operations.iter().any(|operation| asked.contains(operation)))
    };
    let severity = match known.iter().all(|(_, operations)| is_never(operations)) {
        true => Severity::Error,
        false => Severity::Warning,
    };
    for (resource, operations) in known.iter().filter(|(_, operations)| is_never(operations)) {
        let operations = operations.unwrap_or_default();
        let help = match operations {
            [] => "remove it: the API server asks webhooks about changes only".to_owned(),
            operations => format!("write `operations = \"{}\"`", operations.join(";").to_lowercase()),
        };
        let message = format!("the webhook is never asked about `{resource}`, which has other operations");
        let at = entry.at(entry.webhook.operations_span);
        report.say(package, at, severity, message, Some(help));
    }
}

/// The plural, and the subresource.
fn split(resource: &str) -> (&str, Option<&str>) {
    match resource.split_once('/') {
        Some((plural, part)) => (plural, Some(part)),
        None => (resource, None),
    }
}

fn own<'p>(package: &'p Package, group: &str, plural: &str) -> impl Iterator<Item = &'p CustomResource> {
    package
        .kinds()
        .filter(move |kind| kind.group == group && kind.plural_name() == plural)
}

/// Whether the objects of a resource are in namespaces; `None` where that is not known, or not the same in all groups.
fn is_namespaced(package: &Package, entry: &Entry<'_>, plural: &str) -> Option<bool> {
    let mut scopes = entry.groups.iter().map(|group| {
        let own = own(package, group, plural).next().map(|kind| kind.namespaced);
        own.or_else(|| resources::find_resource(group, plural).map(|resource| resource.is_namespaced))
    });
    let first = scopes.next()??;
    scopes.all(|scope| scope == Some(first)).then_some(first)
}

/// The operations on a resource; `None` where they are not known.
fn operations(package: &Package, entry: &Entry<'_>, resource: &str) -> Option<&'static [&'static str]> {
    let (plural, part) = split(resource);
    let [group] = entry.groups.as_slice() else {
        return None;
    };
    if own(package, group, plural).next().is_some() {
        return match part {
            None => Some(&["CREATE", "UPDATE", "DELETE"]),
            Some("status" | "scale") => Some(&["UPDATE"]),
            Some(_) => None,
        };
    }
    resources::find_resource(group, plural)?.operations(part)
}

//! Checks rules against the package's own kinds. `rbuilder-syntax` has already checked them against
//! Kubernetes' built-in resources.
//!
//! A rule that grants nothing is an error, or just a warning if it may be meant for another project
//! or version.

use rbuilder_diagnostic::suggest;
use rbuilder_syntax::{CustomResource, Diagnostic, RbacRule, resources};

use crate::package::{OwnKind, Package, PlacedRule};
use crate::place::Place;
use crate::report::Report;

/// Rules that can't be about the package's own kinds are not checked.
pub(super) fn check_rules(package: &Package, report: &mut Report) {
    if package.rules.is_empty() {
        return;
    }
    let kinds = package.own_kinds();
    if kinds.is_empty() {
        return;
    }
    for PlacedRule { file, rule } in &package.rules {
        // May refer to a kind in any group.
        if rule.groups.iter().any(|group| group == "*") {
            continue;
        }
        for resource in rule
            .resources
            .iter()
            .filter(|resource| !resource.starts_with('*'))
        {
            if let Some(found) = judge(&kinds, rule, resource) {
                report.add(found.map_place(|span| Place { file: *file, span }));
            }
        }
    }
}

fn judge(kinds: &[OwnKind<'_>], rule: &RbacRule, resource: &str) -> Option<Diagnostic> {
    let (plural, part) = match resource.split_once('/') {
        Some((plural, part)) => (plural, Some(part)),
        None => (resource, None),
    };
    let is_of_groups = |own: &&OwnKind<'_>| rule.groups.contains(&own.kind.group);
    let named: Vec<&CustomResource> = kinds
        .iter()
        .filter(|own| own.plural == plural)
        .filter(is_of_groups)
        .map(|own| own.kind)
        .collect();
    if named.is_empty() {
        let of_groups: Vec<&OwnKind<'_>> = kinds.iter().filter(is_of_groups).collect();
        return judge_plural(&of_groups, rule, plural).or_else(|| judge_group(kinds, rule, plural));
    }
    let is_alone = rule.groups.len() == 1;
    if is_alone && rule.namespace.is_some() && named.iter().all(|kind| !kind.namespaced) {
        return Some(
            Diagnostic::error(
                rule.resources_span,
                format!("`{plural}` are cluster-scoped, so a Role has no effect on them"),
            )
            .help("remove `namespace`: only a ClusterRole can grant access to them"),
        );
    }
    judge_subresource(&named, rule, plural, part?)
}

fn judge_subresource(
    versions: &[&CustomResource],
    rule: &RbacRule,
    plural: &str,
    part: &str,
) -> Option<Diagnostic> {
    let has_status = versions.iter().any(|kind| kind.status.is_some());
    let has_scale = versions.iter().any(|kind| kind.scale.is_some());
    // `finalizers` is never served. It exists only for authorization, to control who may block the
    // deletion of an owner.
    let known: Vec<&str> = [("status", has_status), ("scale", has_scale), ("finalizers", true)]
        .into_iter()
        .filter_map(|(name, is_there)| is_there.then_some(name))
        .collect();
    if known.contains(&part) {
        return None;
    }
    Some(
        Diagnostic::warning(
            rule.resources_span,
            format!("`{plural}` has no subresource `{part}`"),
        )
        .help(suggest::describe_candidates(part, known)),
    )
}

fn judge_plural(of_groups: &[&OwnKind<'_>], rule: &RbacRule, plural: &str) -> Option<Diagnostic> {
    let other_name = of_groups.iter().find(|OwnKind { kind, .. }| {
        kind.singular_name() == plural
            || kind.kind.to_lowercase() == plural
            || kind.short_names.iter().any(|name| name == plural)
    });
    let near = match other_name {
        Some(own) => &own.plural,
        None => suggest::find_nearest(plural, of_groups.iter().map(|own| own.plural.as_str()))?,
    };
    Some(
        Diagnostic::warning(
            rule.resources_span,
            format!("this group has no kind with the plural `{plural}` in this project"),
        )
        .help(format!("did you mean `{near}`?")),
    )
}

/// Reports the plural of a kind in a group that is misspelled or can't have it.
fn judge_group(kinds: &[OwnKind<'_>], rule: &RbacRule, plural: &str) -> Option<Diagnostic> {
    let own = &kinds.iter().find(|own| own.plural == plural)?.kind.group;
    let is_meant = |group: &String| {
        let is_within = own.ends_with(&format!(".{group}")) || group.ends_with(&format!(".{own}"));
        let is_foreign = resources::is_kubernetes_group(group);
        is_within || is_foreign || suggest::find_nearest(group, [own.as_str()]).is_some()
    };
    let has = |group: &String| resources::find_resource(group, plural).is_some();
    if !rule.groups.iter().all(is_meant) || rule.groups.iter().any(has) {
        return None;
    }
    Some(
        Diagnostic::warning(
            rule.groups_span,
            format!("the kind with the plural `{plural}` is in another group of this project"),
        )
        .help(format!("write `groups = \"{own}\"`")),
    )
}

//! Compares the rules with the permissions that the code needs.
//!
//! A missing permission is a warning at the call that needs it. An unnecessary one is a note at its
//! marker, unless code that isn't followed may need it. A program without any markers has a
//! handwritten role, which isn't read.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_kubernetes::rbac::{Rule, Target};
use rbuilder_syntax::RbacRule;

use super::marker::{Permission, find_namespace, write_marker};
use super::normalize::rule_of;
use crate::gap::{Gap, GapSort};
use crate::package::{Package, PlacedRule};
use crate::permissions::{Need, Needs, REQUEST_VERBS, Strength, Unseen, Why};
use crate::place::Place;
use crate::report::Report;

/// The API server lets users grant only permissions that they have themselves, so a program that
/// writes these needs every permission that it grants.
const GRANTING: [&str; 4] = ["roles", "clusterroles", "rolebindings", "clusterrolebindings"];

pub(super) fn compare(package: &Package, needs: &Needs, report: &mut Report) {
    if package.rules.is_empty() || needs.is_empty() {
        return;
    }
    // A derived rule has all known permissions, and its marker reports the unknown ones.
    if !package.rules.iter().any(|placed| placed.rule.derived) {
        // A rule that couldn't be read may allow what seems to be missing.
        if !package.has_unread_rules {
            report_missing(package, needs, report);
        }
        report_unseen(needs, report);
    }
    report_unneeded(package, needs, report);
}

fn report_missing(package: &Package, needs: &Needs, report: &mut Report) {
    let rules = rules_of(package);
    let mut reported = BTreeSet::new();
    let mut by_call: BTreeMap<(Place, &str, Permission), Vec<&'static str>> = BTreeMap::new();
    let required = needs
        .known
        .iter()
        .filter(|need| need.strength == Strength::Required);
    for need in required {
        let permission = Permission::of(need);
        let is_missing = |verb: &&&'static str| !allow(&rules, &permission, verb);
        let missing: Vec<&'static str> = need.verbs.iter().filter(is_missing).copied().collect();
        for verb in missing {
            if reported.insert((permission.clone(), verb)) {
                let key = (need.place, need.call.as_str(), permission.clone());
                by_call.entry(key).or_default().push(verb);
            }
        }
    }
    for ((place, call, permission), verbs) in by_call {
        let message = format!(
            "the role does not allow `{}` on `{}`, which `{call}` needs",
            verbs.join("`, `"),
            permission.describe(),
        );
        let marker = write_marker(&permission, &verbs, find_namespace(package, &permission));
        report.warning(place, message, &format!("add `{marker}` to the function"));
    }
}

fn report_unseen(needs: &Needs, report: &mut Report) {
    for unseen in &needs.unseen {
        if let Some(what) = describe_unseen(unseen) {
            report.note(
                unseen.place,
                format!("{what}, so this is not compared with the role"),
            );
        }
    }
}

/// Returns `None` if the call merely might need more permissions than are known.
pub(super) fn describe_unseen(unseen: &Unseen) -> Option<String> {
    let call = &unseen.call;
    let verbs = unseen.verbs.join("`, `");
    Some(match &unseen.why {
        Why::Type => format!("cannot tell the kind for which `{call}` needs `{verbs}`"),
        Why::Dynamic => format!("the kind for which `{call}` needs `{verbs}` is known only at run time"),
        Why::Foreign(path) => {
            format!("`{call}` needs `{verbs}` on the resource of `{path}`, which another crate declares")
        }
        Why::AnyKind | Why::Passed => return None,
    })
}

fn report_unneeded(package: &Package, needs: &Needs, report: &mut Report) {
    if may_hide_calls(package) || grants_permissions(needs) {
        return;
    }
    for PlacedRule { file, rule } in &package.rules {
        if rule.role_name.is_some() || !rule.urls.is_empty() || rule.derived {
            continue;
        }
        let mut unneeded: BTreeMap<Vec<&str>, Vec<&str>> = BTreeMap::new();
        for resource in &rule.resources {
            let verbs: Vec<&str> = rule.verbs.iter().map(String::as_str).collect();
            let left: Vec<&str> = verbs
                .into_iter()
                .filter(|verb| {
                    !rule
                        .groups
                        .iter()
                        .any(|group| is_needed(needs, group, resource, verb))
                })
                .collect();
            if !left.is_empty() {
                unneeded.entry(left).or_default().push(resource);
            }
        }
        let place = Place {
            file: *file,
            span: rule.span,
        };
        for message in describe_wildcards(rule, needs) {
            report.note(place, message);
        }
        for (verbs, resources) in unneeded {
            let message = format!(
                "nothing in the source needs `{}` on `{}`",
                verbs.join("`, `"),
                resources.join("`, `")
            );
            report.note(place, message);
        }
    }
}

/// What `*` grants beyond the needs: other verbs, or Secrets among all resources.
fn describe_wildcards(rule: &RbacRule, needs: &Needs) -> Vec<String> {
    let has_any = |words: &[String]| words.iter().any(|word| word == "*");
    let mut messages = Vec::new();
    if has_any(&rule.verbs) {
        let named = rule.resources.iter().filter(|resource| !resource.contains('*'));
        for resource in named.filter(|_| !has_any(&rule.groups)) {
            let is_used = |verb: &&&str| {
                let mut groups = rule.groups.iter();
                groups.any(|group| is_needed(needs, group, resource, verb))
            };
            let used: Vec<&str> = REQUEST_VERBS.iter().filter(is_used).copied().collect();
            if used.is_empty() {
                messages.push(format!("nothing in the source needs `*` on `{resource}`"));
            } else if used.len() < REQUEST_VERBS.len() {
                messages.push(format!(
                    "the source only needs `{}` on `{resource}`, not `*`",
                    used.join("`, `")
                ));
            }
        }
    }
    let reaches_core = rule
        .groups
        .iter()
        .any(|group| ["", "core", "*"].contains(&group.as_str()));
    if reaches_core && has_any(&rule.resources) {
        let is_used = REQUEST_VERBS
            .iter()
            .any(|verb| is_needed(needs, "", "secrets", verb));
        if !is_used {
            messages.push(format!(
                "nothing in the source needs `{}` on `secrets`, which `*` includes",
                rule.verbs.join("`, `")
            ));
        }
    }
    messages
}

fn may_hide_calls(package: &Package) -> bool {
    package.gaps.iter().any(hides_calls)
}

pub(super) fn hides_calls(gap: &Gap) -> bool {
    matches!(gap.sort, GapSort::Unread | GapSort::Built)
        || ["Api", "Client", "Ctx"].iter().any(|name| gap.mentions(name))
}

fn grants_permissions(needs: &Needs) -> bool {
    needs.known.iter().any(|need| {
        let is_write = need
            .verbs
            .iter()
            .any(|verb| matches!(*verb, "create" | "patch" | "update"));
        is_write && GRANTING.contains(&need.resource.plural.as_str())
    })
}

/// Returns true if the code needs the permission, or if that is unknown.
fn is_needed(needs: &Needs, group: &str, resource: &str, verb: &str) -> bool {
    // Wildcards, and verbs that aren't requests such as `escalate`, can't be compared.
    if !REQUEST_VERBS.contains(&verb) || group == "*" || resource.contains('*') {
        return true;
    }
    let group = if group == "core" { "" } else { group };
    let main = resource.split('/').next().unwrap_or(resource);
    let is_of = |need: &Need| {
        let is_part = need.rule_resource() == resource;
        // Permission to list or watch objects includes reading each of them.
        let is_read = verb == "get"
            && need.resource.plural == main
            && need.verbs.iter().any(|verb| matches!(*verb, "list" | "watch"));
        need.resource.group == group && (is_part && need.verbs.contains(&verb) || is_read)
    };
    needs.known.iter().any(is_of)
        || needs.unseen.iter().any(|unseen| {
            let is_verb = unseen.verbs.is_empty() || unseen.verbs.contains(&verb) || verb == "get";
            let of = unseen.resource.as_ref();
            is_verb && of.is_none_or(|of| of.group == group && of.plural == main)
        })
}

/// Returns true if any of the rules grants the permission, regardless of the names and namespaces of
/// the objects.
pub(super) fn allow(rules: &[Rule], permission: &Permission, verb: &str) -> bool {
    let target = |name: Option<&String>| Target::Resource {
        group: permission.group.clone(),
        resource: permission.resource.clone(),
        name: name.cloned(),
    };
    let unnamed = target(None);
    rules.iter().any(|rule| match rule.names.first() {
        // When an object is created, the API server does not know its name yet.
        Some(name) if verb != "create" => rule.grants(verb, &target(Some(name))),
        _ => rule.grants(verb, &unnamed),
    })
}

/// Returns what the markers of a package request.
pub(super) fn rules_of(package: &Package) -> Vec<Rule> {
    package.rules.iter().map(|placed| rule_of(&placed.rule)).collect()
}

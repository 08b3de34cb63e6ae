//! Merges rules without changing what they grant.
//!
//! Like controller-gen, merges rules that differ in a single list: first by verbs, then by
//! resources, names and groups. This keeps the rules of projects that migrate. Unlike
//! controller-gen, merging never replaces another rule and repeats until a fixed point, so no
//! permission is lost and the order of markers does not matter.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_kubernetes::rbac::Rule;
use rbuilder_syntax::RbacRule;

type Names = BTreeSet<String>;

/// A rule of a role. Its lists are sorted and free of duplicates.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyRule {
    /// `apiGroups`. `""` is the core group.
    pub groups: Names,
    /// `resources`, possibly with subresources (e.g. `pods/log`).
    pub resources: Names,
    /// `resourceNames`. Empty if the rule applies to all objects.
    pub resource_names: Names,
    /// `nonResourceURLs`. Excludes the three lists above.
    pub urls: Names,
    /// `verbs`. `*` is never combined with others.
    pub verbs: Names,
}

/// Merges rules without changing what they grant. The result is in controller-gen's order.
pub fn normalize<'a>(rules: impl IntoIterator<Item = &'a RbacRule>) -> Vec<PolicyRule> {
    let mut out: Vec<PolicyRule> = rules.into_iter().flat_map(single_resources).collect();
    loop {
        let before = out.len();
        for list in [verbs, resources, names, groups, urls] {
            out = join(out, list);
        }
        if out.len() == before {
            break;
        }
    }
    out.sort_by_cached_key(sort_key);
    out
}

/// Selects the list to merge rules by.
type List = fn(&mut PolicyRule) -> &mut Names;

fn verbs(rule: &mut PolicyRule) -> &mut Names {
    &mut rule.verbs
}

fn resources(rule: &mut PolicyRule) -> &mut Names {
    &mut rule.resources
}

fn names(rule: &mut PolicyRule) -> &mut Names {
    &mut rule.resource_names
}

fn groups(rule: &mut PolicyRule) -> &mut Names {
    &mut rule.groups
}

fn urls(rule: &mut PolicyRule) -> &mut Names {
    &mut rule.urls
}

fn join(rules: Vec<PolicyRule>, list: List) -> Vec<PolicyRule> {
    let mut joined = BTreeMap::<(PolicyRule, bool), Names>::new();
    for mut rule in rules {
        let members = std::mem::take(list(&mut rule));
        joined
            // Keep empty lists apart from others: a rule without resource names applies to all
            // objects.
            .entry((rule, members.is_empty()))
            .or_default()
            .extend(members);
    }
    joined
        .into_iter()
        .map(|((mut rule, _), members)| {
            *list(&mut rule) = members;
            keep_wildcard_alone(&mut rule.verbs);
            rule
        })
        .collect()
}

fn single_resources(rule: &RbacRule) -> Vec<PolicyRule> {
    let names = |list: &[String]| list.iter().cloned().collect::<Names>();
    let mut verbs = names(&rule.verbs);
    keep_wildcard_alone(&mut verbs);
    let whole = PolicyRule {
        groups: rule.groups.iter().map(|group| core_is_empty(group)).collect(),
        resources: Names::new(),
        resource_names: names(&rule.resource_names),
        urls: names(&rule.urls),
        verbs,
    };
    if rule.resources.is_empty() {
        return vec![whole];
    }
    let of = |resource: &String| PolicyRule {
        resources: Names::from([resource.clone()]),
        ..whole.clone()
    };
    rule.resources.iter().map(of).collect()
}

/// Returns the rule that a marker requests.
#[must_use]
pub fn rule_of(marker: &RbacRule) -> Rule {
    Rule {
        groups: marker.groups.iter().map(|group| core_is_empty(group)).collect(),
        resources: marker.resources.clone(),
        names: marker.resource_names.clone(),
        urls: marker.urls.clone(),
        verbs: marker.verbs.clone(),
    }
}

fn core_is_empty(group: &str) -> String {
    if group == "core" {
        String::new()
    } else {
        group.to_owned()
    }
}

fn keep_wildcard_alone(verbs: &mut Names) {
    if verbs.contains("*") {
        verbs.retain(|verb| verb == "*");
    }
}

/// controller-gen compares rules by this text, which sorts URLs first, then the core group.
fn sort_key(rule: &PolicyRule) -> String {
    let join = |names: &Names| names.iter().map(String::as_str).collect::<Vec<_>>().join("&");
    [&rule.groups, &rule.resources, &rule.resource_names, &rule.urls]
        .map(join)
        .join(" + ")
}

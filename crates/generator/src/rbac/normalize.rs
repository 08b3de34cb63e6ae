//! Merges rules without changing what they grant.
//!
//! Like controller-gen, we merge rules that differ in a single list: first by verbs, then by
//! resources, names and groups. That way, projects that migrate keep their rules. Unlike
//! controller-gen, we never replace another rule when merging, and we repeat it until nothing
//! changes. So no permission is lost, and the order of markers does not matter.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_syntax::RbacRule;

type Names = BTreeSet<String>;

/// A rule of a role, whose lists are sorted and have no duplicates.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyRule {
    /// `apiGroups`, where `""` is the core group.
    pub groups: Names,
    /// `resources`, which may have subresources (e.g. `pods/log`).
    pub resources: Names,
    /// `resourceNames`, which is empty if the rule is about all objects.
    pub resource_names: Names,
    /// `nonResourceURLs`. If there are any, the three lists above are empty.
    pub urls: Names,
    /// `verbs`. If `*` is one of them, there are no others.
    pub verbs: Names,
}

/// Returns rules that grant the same as `rules` do, in the order of controller-gen.
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

/// Selects the list that rules are merged in.
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

/// Merges rules that differ only in `list`.
fn join(rules: Vec<PolicyRule>, list: List) -> Vec<PolicyRule> {
    let mut joined = BTreeMap::<(PolicyRule, bool), Names>::new();
    for mut rule in rules {
        let members = std::mem::take(list(&mut rule));
        joined
            // Keep empty and other lists apart, because a rule without resource names is for all
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

fn core_is_empty(group: &str) -> String {
    if group == "core" {
        String::new()
    } else {
        group.to_owned()
    }
}

/// `*` includes the other verbs, so drop them.
fn keep_wildcard_alone(verbs: &mut Names) {
    if verbs.contains("*") {
        verbs.retain(|verb| verb == "*");
    }
}

/// controller-gen compares rules by this text, which puts URLs first, then the core group.
fn sort_key(rule: &PolicyRule) -> String {
    let join = |names: &Names| names.iter().map(String::as_str).collect::<Vec<_>>().join("&");
    [&rule.groups, &rule.resources, &rule.resource_names, &rule.urls]
        .map(join)
        .join(" + ")
}

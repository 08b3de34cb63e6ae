//! Rules to fewer rules that grant the same.
//!
//! Rules that agree in all but one list are joined in that list, verbs first, then resources, names and groups, as
//! controller-gen does, so that a project that comes from there keeps its rules. Unlike controller-gen's, a join never
//! takes the place of another rule, and joining goes on until nothing is left to join: no permission is lost, and the
//! order of the markers does not matter.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_syntax::RbacRule;

type Names = BTreeSet<String>;

/// One rule of a role, each list sorted and without duplicates.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyRule {
    /// `apiGroups`; `""` is the core group.
    pub groups: Names,
    /// `resources`, subresources as `pods/log`.
    pub resources: Names,
    /// `resourceNames`; empty means every object.
    pub resource_names: Names,
    /// `nonResourceURLs`; excludes the three lists above.
    pub urls: Names,
    /// `verbs`; `*` stands alone.
    pub verbs: Names,
}

/// The rules that grant what `rules` grant together, in controller-gen's order.
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

/// The lists by which rules are joined.
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

/// Joins the rules that differ in one list only. An empty list is not part of a longer one: without names a rule is
/// about every object.
fn join(rules: Vec<PolicyRule>, list: List) -> Vec<PolicyRule> {
    let mut joined = BTreeMap::<(PolicyRule, bool), Names>::new();
    for mut rule in rules {
        let members = std::mem::take(list(&mut rule));
        joined
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

/// A rule of a marker as one rule for each resource; a rule about URLs stays as it is.
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

/// `*` grants every verb beside it.
fn keep_wildcard_alone(verbs: &mut Names) {
    if verbs.contains("*") {
        verbs.retain(|verb| verb == "*");
    }
}

/// controller-gen compares rules as this text, which puts URLs first and the core group next.
fn sort_key(rule: &PolicyRule) -> String {
    let join = |names: &Names| names.iter().map(String::as_str).collect::<Vec<_>>().join("&");
    [&rule.groups, &rule.resources, &rule.resource_names, &rule.urls]
        .map(join)
        .join(" + ")
}

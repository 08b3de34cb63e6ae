//! Rules to the fewest equivalent rules.
//!
//! Every rule is taken apart into single permissions, their union is taken, and rules are formed anew, so no
//! permission can be lost on the way, and the outcome does not depend on how the markers were cut. Regrouping
//! starts with the groups of a resource and a verb, then joins verbs, names and resources; on markers that
//! do not overlap this gives the rules that controller-gen gives.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_syntax::RbacRule;

type Names = BTreeSet<String>;

/// One rule of a role, each list sorted and without duplicates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    let mut on_resources: BTreeMap<(&str, &str, Option<&str>), Names> = BTreeMap::new();
    let mut on_urls: BTreeMap<&str, Names> = BTreeMap::new();
    for rule in rules {
        for url in &rule.urls {
            on_urls.entry(url).or_default().extend(rule.verbs.iter().cloned());
        }
        for target in targets(rule) {
            on_resources
                .entry(target)
                .or_default()
                .extend(rule.verbs.iter().cloned());
        }
    }
    on_resources
        .values_mut()
        .chain(on_urls.values_mut())
        .for_each(keep_wildcard_alone);
    let mut out = resource_rules(on_resources);
    out.extend(url_rules(on_urls));
    out.sort_by_cached_key(sort_key);
    out
}

/// Every (group, resource, name) of a rule.
fn targets(rule: &RbacRule) -> Vec<(&str, &str, Option<&str>)> {
    let names: Vec<Option<&str>> = match &rule.resource_names[..] {
        [] => vec![None],
        names => names.iter().map(|name| Some(name.as_str())).collect(),
    };
    let mut targets = Vec::new();
    for group in &rule.groups {
        let group = if group == "core" { "" } else { group };
        for resource in &rule.resources {
            targets.extend(names.iter().map(|name| (group, resource.as_str(), *name)));
        }
    }
    targets
}

/// `*` grants every verb beside it.
fn keep_wildcard_alone(verbs: &mut Names) {
    if verbs.contains("*") {
        verbs.retain(|verb| verb == "*");
    }
}

fn resource_rules(granted: BTreeMap<(&str, &str, Option<&str>), Names>) -> Vec<PolicyRule> {
    let single = granted.into_iter().flat_map(|((group, resource, name), verbs)| {
        verbs
            .into_iter()
            .map(move |verb| ((resource, name, verb), group.to_owned()))
    });
    let groups = gather(single);
    let verbs = gather(
        groups
            .into_iter()
            .map(|((resource, name, verb), groups)| ((groups, resource, name), verb)),
    );
    let named = gather(verbs.into_iter().map(|((groups, resource, name), verbs)| {
        (
            (groups, resource, verbs, name.is_some()),
            name.unwrap_or_default().to_owned(),
        )
    }));
    let resources = gather(
        named
            .into_iter()
            .map(|((groups, resource, verbs, is_named), names)| {
                let names = if is_named { names } else { Names::new() };
                ((groups, names, verbs), resource.to_owned())
            }),
    );
    resources
        .into_iter()
        .map(|((groups, resource_names, verbs), resources)| PolicyRule {
            groups,
            resources,
            resource_names,
            urls: Names::new(),
            verbs,
        })
        .collect()
}

fn url_rules(granted: BTreeMap<&str, Names>) -> Vec<PolicyRule> {
    gather(granted.into_iter().map(|(url, verbs)| (verbs, url.to_owned())))
        .into_iter()
        .map(|(verbs, urls)| PolicyRule {
            urls,
            verbs,
            ..PolicyRule::default()
        })
        .collect()
}

/// Collects the members that share a key.
fn gather<K: Ord>(pairs: impl Iterator<Item = (K, String)>) -> BTreeMap<K, Names> {
    let mut out: BTreeMap<K, Names> = BTreeMap::new();
    for (key, member) in pairs {
        out.entry(key).or_default().insert(member);
    }
    out
}

/// controller-gen compares rules as this text, which puts URLs first and the core group next.
fn sort_key(rule: &PolicyRule) -> String {
    let join = |names: &Names| names.iter().map(String::as_str).collect::<Vec<_>>().join("&");
    [&rule.groups, &rule.resources, &rule.resource_names, &rule.urls]
        .map(join)
        .join(" + ")
}

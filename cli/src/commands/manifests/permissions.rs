//! Splits roles into individual permissions, to find those that would be removed.

use std::collections::BTreeSet;

use rbuilder_generator::rbac::PolicyRule;
use serde::Deserialize;

/// Permission for a single verb on a single resource or URL, either in a namespace or cluster-wide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Permission {
    namespace: Option<String>,
    on: On,
    verb: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum On {
    Resource {
        group: String,
        resource: String,
        name: Option<String>,
    },
    Url(String),
}

impl Permission {
    pub(super) fn subject(&self) -> &str {
        match &self.on {
            On::Resource { resource, .. } => resource,
            On::Url(url) => url,
        }
    }
}

pub(super) fn lost_permissions(before: &str, after: &str) -> Vec<Permission> {
    let kept = granted(after);
    granted(before)
        .iter()
        .flat_map(Granted::permissions)
        .filter(|permission| !kept.iter().any(|granted| granted.covers(permission)))
        .collect()
}

#[derive(Debug, Default)]
pub(super) struct Granted {
    namespace: Option<String>,
    rule: Rule,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Role {
    metadata: Metadata,
    rules: Vec<Rule>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    namespace: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Rule {
    api_groups: Vec<String>,
    resources: Vec<String>,
    resource_names: Vec<String>,
    verbs: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    urls: Vec<String>,
}

/// Rules of all roles in a manifest. Empty if it can't be parsed, and so isn't ours.
fn granted(text: &str) -> Vec<Granted> {
    let roles: Vec<Role> = rbuilder_yaml::parse_all(text).unwrap_or_default();
    let mut granted = Vec::new();
    for Role { metadata, rules } in roles {
        granted.extend(rules.into_iter().map(|rule| Granted {
            namespace: metadata.namespace.clone(),
            rule,
        }));
    }
    granted
}

impl Granted {
    /// Creates a rule, which is cluster-wide without a namespace.
    pub(super) fn of(namespace: Option<&str>, rule: PolicyRule) -> Granted {
        let list = |names: BTreeSet<String>| names.into_iter().collect();
        Granted {
            namespace: namespace.map(str::to_owned),
            rule: Rule {
                api_groups: list(rule.groups),
                resources: list(rule.resources),
                resource_names: list(rule.resource_names),
                verbs: list(rule.verbs),
                urls: list(rule.urls),
            },
        }
    }

    fn permissions(&self) -> Vec<Permission> {
        let rule = &self.rule;
        let mut subjects: Vec<On> = rule.urls.iter().cloned().map(On::Url).collect();
        for (group, resource) in rule
            .api_groups
            .iter()
            .flat_map(|group| rule.resources.iter().map(move |resource| (group, resource)))
        {
            let on = |name: Option<&String>| On::Resource {
                group: group.clone(),
                resource: resource.clone(),
                name: name.cloned(),
            };
            if rule.resource_names.is_empty() {
                subjects.push(on(None));
            }
            subjects.extend(rule.resource_names.iter().map(|name| on(Some(name))));
        }
        let mut all = Vec::new();
        for on in subjects {
            all.extend(rule.verbs.iter().map(|verb| Permission {
                namespace: self.namespace.clone(),
                on: on.clone(),
                verb: verb.clone(),
            }));
        }
        all
    }

    pub(super) fn covers(&self, permission: &Permission) -> bool {
        let has = |list: &[String], word: &String| list.contains(word) || list.iter().any(|any| any == "*");
        let rule = &self.rule;
        // A cluster-wide rule applies to every namespace.
        let is_there = self.namespace.is_none() || self.namespace == permission.namespace;
        is_there
            && has(&rule.verbs, &permission.verb)
            && match &permission.on {
                On::Url(url) => rule.urls.iter().any(|granted| match granted.strip_suffix('*') {
                    Some(start) => url.starts_with(start),
                    None => granted == url,
                }),
                On::Resource {
                    group,
                    resource,
                    name,
                } => {
                    has(&rule.api_groups, group)
                        && has(&rule.resources, resource)
                        && (rule.resource_names.is_empty()
                            || name
                                .as_ref()
                                .is_some_and(|name| rule.resource_names.contains(name)))
                }
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(rules: &str) -> String {
        format!("kind: ClusterRole\nmetadata:\n  name: a\nrules:\n{rules}")
    }

    fn check(before: &str, after: &str, expected: &[&str]) {
        let lost: Vec<String> = lost_permissions(&role(before), &role(after))
            .into_iter()
            .map(|lost| format!("{} {}", lost.verb, lost.subject()))
            .collect();
        assert_eq!(lost, expected, "{before} -> {after}");
    }

    #[test]
    fn reports_lost_permissions() {
        let pods = "- {apiGroups: [''], resources: [pods], verbs: [get, list]}\n";
        check(pods, pods, &[]);
        check(pods, "", &["get pods", "list pods"]);
        check(
            pods,
            "- {apiGroups: [''], resources: [pods], verbs: [list]}",
            &["get pods"],
        );
        check(pods, "- {apiGroups: ['*'], resources: ['*'], verbs: ['*']}", &[]);
        check(
            pods,
            "- {apiGroups: [''], resources: [pods], resourceNames: [a], verbs: [get, list]}",
            &["get pods", "list pods"],
        );
        check(
            "- {nonResourceURLs: [/metrics/x], verbs: [get]}",
            "- {nonResourceURLs: [/metrics/*], verbs: [get]}",
            &[],
        );
        assert!(lost_permissions("rules: [", "").is_empty());
    }
}

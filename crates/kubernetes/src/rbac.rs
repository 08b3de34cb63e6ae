//! What the rules of roles grant.
//!
//! Follows `RuleAllows` in `plugin/pkg/auth/authorizer/rbac` and `ruleCovers` in
//! `k8s.io/component-helpers/auth/rbac/validation` of Kubernetes, which agree.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use crate::gvk;

/// Matches all groups, resources or verbs.
const ANY: &str = "*";

/// A rule of a role, a `PolicyRule`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// `apiGroups`. `""` is the core group.
    pub groups: Vec<String>,
    /// `resources`, possibly with a subresource (e.g. `pods/log`).
    pub resources: Vec<String>,
    /// `resourceNames`. Empty if the rule applies to all objects.
    pub names: Vec<String>,
    /// `nonResourceURLs`.
    pub urls: Vec<String>,
    /// `verbs`.
    pub verbs: Vec<String>,
}

/// A single verb on a single resource or URL, either in a namespace or everywhere.
///
/// Its parts may be wildcards: such a permission is only granted by the same wildcards.
///
/// Formatted for messages, e.g. `` `get` on `deployments.apps` named `cups` ``. Leaves out the
/// namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// The namespace; `None` for the whole cluster.
    pub namespace: Option<String>,
    /// What the verb applies to.
    pub target: Target,
    /// The verb.
    pub verb: String,
}

/// What a permission is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// Objects of a kind, or one of them.
    Resource {
        /// The API group; empty for the core group.
        group: String,
        /// The plural, possibly with a subresource (e.g. `pods/log`).
        resource: String,
        /// The name of one object; `None` for all, and for requests without a name, e.g. to create.
        name: Option<String>,
    },
    /// A path that is not a resource, e.g. `/metrics`.
    Url(String),
}

impl Rule {
    /// Reads a rule. Fields of other types than the API's count as absent.
    #[must_use]
    pub fn read(rule: &Value) -> Rule {
        Rule {
            groups: texts(&rule["apiGroups"]),
            resources: texts(&rule["resources"]),
            names: texts(&rule["resourceNames"]),
            urls: texts(&rule["nonResourceURLs"]),
            verbs: texts(&rule["verbs"]),
        }
    }

    /// Reads all rules of a Role or ClusterRole.
    #[must_use]
    pub fn list(role: &Value) -> Vec<Rule> {
        let rules = role["rules"].as_array().into_iter().flatten();
        rules.map(Rule::read).collect()
    }

    /// Returns everything that this rule grants in a namespace, or everywhere without one. Verbs are
    /// in the rule's order.
    #[must_use]
    pub fn permissions(&self, namespace: Option<&str>) -> Vec<Permission> {
        let targets = self.targets();
        let pairs = targets
            .iter()
            .flat_map(|target| self.verbs.iter().map(move |verb| (target, verb)));
        let permissions = pairs.map(|(target, verb)| Permission {
            namespace: namespace.map(str::to_owned),
            target: target.clone(),
            verb: verb.clone(),
        });
        permissions.collect()
    }

    fn targets(&self) -> Vec<Target> {
        let mut targets: Vec<Target> = self.urls.iter().cloned().map(Target::Url).collect();
        let names: Vec<Option<String>> = match self.names.as_slice() {
            [] => vec![None],
            names => names.iter().cloned().map(Some).collect(),
        };
        for group in &self.groups {
            for resource in &self.resources {
                targets.extend(names.iter().map(|name| Target::Resource {
                    group: group.clone(),
                    resource: resource.clone(),
                    name: name.clone(),
                }));
            }
        }
        targets
    }

    /// Whether the rule grants a verb on a target.
    #[must_use]
    pub fn grants(&self, verb: &str, target: &Target) -> bool {
        let any_is = |list: &[String], wanted: &str| list.iter().any(|own| word_grants(own, wanted));
        any_is(&self.verbs, verb)
            && match target {
                Target::Url(url) => self.urls.iter().any(|own| url_grants(own, url)),
                Target::Resource {
                    group,
                    resource,
                    name,
                } => {
                    any_is(&self.groups, group)
                        && self.resources.iter().any(|own| resource_grants(own, resource))
                        && (self.names.is_empty()
                            || name.as_ref().is_some_and(|name| self.names.contains(name)))
                }
            }
    }
}

impl Permission {
    /// Whether who has this permission has the other as well.
    #[must_use]
    pub fn grants(&self, other: &Permission) -> bool {
        let is_there = self.namespace.is_none() || self.namespace == other.namespace;
        is_there && word_grants(&self.verb, &other.verb) && self.target.includes(&other.target)
    }
}

impl Target {
    fn includes(&self, other: &Target) -> bool {
        match (self, other) {
            (Target::Url(own), Target::Url(url)) => url_grants(own, url),
            (
                Target::Resource {
                    group: own_group,
                    resource: own_resource,
                    name: own_name,
                },
                Target::Resource {
                    group,
                    resource,
                    name,
                },
            ) => {
                word_grants(own_group, group)
                    && resource_grants(own_resource, resource)
                    && (own_name.is_none() || own_name == name)
            }
            _ => false,
        }
    }

    /// The resource or URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Target::Url(url) => url,
            Target::Resource { resource, .. } => resource,
        }
    }
}

fn word_grants(own: &str, wanted: &str) -> bool {
    own == ANY || own == wanted
}

/// `*` includes all subresources, and `*/scale` is that subresource of any resource.
fn resource_grants(own: &str, wanted: &str) -> bool {
    let part = wanted.split_once('/').map(|(_, part)| part);
    word_grants(own, wanted) || own.strip_prefix("*/").is_some_and(|own| Some(own) == part)
}

fn url_grants(own: &str, wanted: &str) -> bool {
    let is_prefix = own.ends_with('*') && wanted.starts_with(own.trim_end_matches('*'));
    own == wanted || is_prefix
}

/// Whether any of the permissions grants the wanted one.
#[must_use]
pub fn is_granted(wanted: &Permission, granted: &BTreeSet<Permission>) -> bool {
    granted.contains(wanted) || granted.iter().any(|own| own.grants(wanted))
}

/// Returns everything that a Role grants in its namespace, or a ClusterRole everywhere.
#[must_use]
pub fn permissions_of(role: &Value) -> BTreeSet<Permission> {
    let namespace = role["metadata"]["namespace"].as_str();
    let rules = Rule::list(role).into_iter();
    rules.flat_map(|rule| rule.permissions(namespace)).collect()
}

/// The name of the first service account to which a RoleBinding or ClusterRoleBinding binds a role.
/// `None` if there is none, and for objects of other kinds.
#[must_use]
pub fn service_account(binding: &Value) -> Option<&str> {
    if !matches!(
        binding["kind"].as_str(),
        Some("ClusterRoleBinding" | "RoleBinding")
    ) {
        return None;
    }
    let mut subjects = binding["subjects"].as_array()?.iter();
    let account = subjects.find(|subject| subject["kind"] == "ServiceAccount")?;
    account["name"].as_str()
}

fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(|item| Some(item.as_str()?.to_owned())).collect()
}

impl fmt::Display for Permission {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = &self.verb;
        match &self.target {
            Target::Url(url) => write!(formatter, "`{verb}` on the URL `{url}`"),
            Target::Resource {
                group,
                resource,
                name,
            } => {
                write!(formatter, "`{verb}` on `{}`", gvk::qualify(resource, group))?;
                name.as_ref()
                    .map_or(Ok(()), |name| write!(formatter, " named `{name}`"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn namespaces_restrict() {
        let pods = json!({ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] });
        let get_pods = |namespace| Rule::read(&pods).permissions(namespace).remove(0);
        for (wanted, granted, expected) in [
            (Some("a"), None, true),
            (Some("a"), Some("a"), true),
            (Some("a"), Some("b"), false),
            (None, Some("a"), false),
        ] {
            let [wanted, granted] = [wanted, granted].map(get_pods);
            assert_eq!(granted.grants(&wanted), expected, "{granted:?} {wanted:?}");
        }
    }

    #[test]
    fn permissions_read_as_sentences() {
        let role = json!({
            "rules": [
                { "apiGroups": ["", "apps"], "resources": ["cups"], "resourceNames": ["a"], "verbs": ["get"] },
                { "nonResourceURLs": ["/metrics"], "verbs": ["get"] },
            ],
        });
        let shown: Vec<String> = permissions_of(&role).iter().map(Permission::to_string).collect();
        let expected = [
            "`get` on `cups` named `a`",
            "`get` on `cups.apps` named `a`",
            "`get` on the URL `/metrics`",
        ];
        assert_eq!(shown, expected);
    }
}

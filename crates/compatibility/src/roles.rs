//! Compares the permissions granted by roles.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use crate::change::Change;
use crate::place::{Place, list, text};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Permission {
    Resource {
        group: String,
        resource: String,
        name: Option<String>,
        verb: String,
    },
    Url {
        url: String,
        verb: String,
    },
}

impl Permission {
    fn covers(&self, other: &Permission) -> bool {
        let fits = |own: &str, other: &str| own == "*" || own == other;
        match (self, other) {
            (
                Permission::Resource {
                    group,
                    resource,
                    name,
                    verb,
                },
                Permission::Resource {
                    group: g,
                    resource: r,
                    name: n,
                    verb: v,
                },
            ) => {
                fits(group, g)
                    && grants_resource(resource, r)
                    && fits(verb, v)
                    && (name.is_none() || name == n)
            }
            (Permission::Url { url, verb }, Permission::Url { url: u, verb: v }) => {
                let is_prefix = url.strip_suffix('*').is_some_and(|prefix| u.starts_with(prefix));
                (url == u || is_prefix) && fits(verb, v)
            }
            _ => false,
        }
    }
}

fn grants_resource(own: &str, other: &str) -> bool {
    let subresource = other.split_once('/').map(|(_, subresource)| subresource);
    // `*/scale` matches that subresource of any resource.
    own == "*" || own == other || own.strip_prefix("*/").is_some_and(|own| Some(own) == subresource)
}

impl fmt::Display for Permission {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Permission::Url { url, verb } => write!(formatter, "`{verb}` on the URL `{url}`"),
            Permission::Resource {
                group,
                resource,
                name,
                verb,
            } => {
                let group = match group.as_str() {
                    "" => String::new(),
                    group => format!(".{group}"),
                };
                write!(formatter, "`{verb}` on `{resource}{group}`")?;
                name.as_ref()
                    .map_or(Ok(()), |name| write!(formatter, " named `{name}`"))
            }
        }
    }
}

pub(crate) fn compare_roles(old: Option<&Value>, new: Option<&Value>, place: &Place) -> Vec<Change> {
    let (Some(before), Some(after)) = (old, new) else {
        return vec![match new {
            Some(_) => place.change("role-added", "", "new".to_owned()),
            None => place.change("role-removed", "", "removed".to_owned()),
        }];
    };
    let (before, after) = (permissions(before), permissions(after));
    let mut changes = Vec::new();
    for (rule, these, others, verb) in [
        ("permission-added", &after, &before, "may"),
        ("permission-removed", &before, &after, "may not"),
    ] {
        // Compare the union of the rules, however they are split.
        let lacking = these
            .iter()
            .filter(|permission| !others.iter().any(|other| other.covers(permission)));
        changes.extend(lacking.map(|permission| place.change(rule, "rules", format!("{verb} {permission}"))));
    }
    changes
}

fn permissions(role: &Value) -> BTreeSet<Permission> {
    let mut found = BTreeSet::new();
    for rule in list(&role["rules"]) {
        let texts = |key: &str| -> Vec<String> { list(&rule[key]).into_iter().map(text).collect() };
        let names = match texts("resourceNames") {
            names if names.is_empty() => vec![None],
            names => names.into_iter().map(Some).collect(),
        };
        for verb in texts("verbs") {
            for url in texts("nonResourceURLs") {
                found.insert(Permission::Url {
                    url,
                    verb: verb.clone(),
                });
            }
            for group in texts("apiGroups") {
                for resource in texts("resources") {
                    found.extend(names.iter().map(|name| Permission::Resource {
                        group: group.clone(),
                        resource: resource.clone(),
                        name: name.clone(),
                        verb: verb.clone(),
                    }));
                }
            }
        }
    }
    found
}

//! Permissions granted by roles and requested by markers, and the markers of rules.

use std::collections::BTreeSet;

use rbuilder_generator::rbac::check_marker;
use rbuilder_generator::{RBAC_URL_VERBS, RBAC_VERBS};
use serde_json::Value;

use super::attributes::{print_attribute, quoted};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) groups: Vec<String>,
    pub(super) resources: Vec<String>,
    pub(super) names: Vec<String>,
    pub(super) urls: Vec<String>,
    pub(super) verbs: Vec<String>,
    pub(super) namespace: String,
    pub(super) role: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct MarkedRule {
    pub(super) rule: Rule,
    pub(super) marker: String,
}

impl MarkedRule {
    /// Creates the marker for a rule. The error is the generator's reason for rejecting it.
    pub(super) fn new(rule: Rule) -> Result<MarkedRule, String> {
        let marker = rule.print()?;
        let arguments = marker
            .strip_prefix("#[rbac(")
            .and_then(|rest| rest.strip_suffix(")]"));
        check_marker(arguments.unwrap_or_default())?;
        Ok(MarkedRule { rule, marker })
    }
}

/// A single permission: namespace, group or URL, resource, name and verb.
pub(super) type Permission = (String, String, String, String, String);

pub(super) fn is_granted(wanted: &Permission, granted: &BTreeSet<Permission>) -> bool {
    let (namespace, group, resource, name, verb) = wanted;
    let is = |own: &String, wanted: &String| own == wanted || own == "*";
    granted.contains(wanted)
        || granted.iter().any(|own| {
            (own.0 == *namespace || own.0.is_empty())
                && is(&own.1, group)
                && is(&own.2, resource)
                && (own.3 == *name || own.3.is_empty())
                && is(&own.4, verb)
        })
}

pub(super) fn list_strings(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}

pub(super) fn is_role(object: &Value) -> bool {
    object["kind"] == "ClusterRole" || object["kind"] == "Role"
}

pub(super) fn permissions_of(role: &Value) -> BTreeSet<Permission> {
    let rules = Rule::of_role(role).into_iter();
    rules.flat_map(|rule| rule.permissions()).collect()
}

impl Rule {
    /// Parses a marker, e.g. `kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list`.
    /// Returns `None` for other markers.
    pub(super) fn parse_marker(marker: &str) -> Option<Rule> {
        let mut rule = Rule::default();
        for argument in split_arguments(marker.strip_prefix("kubebuilder:rbac:")?) {
            let (key, value) = argument.split_once('=')?;
            let words = || -> Vec<String> {
                let value = value.trim().trim_matches(['{', '}']);
                value
                    .split([';', ','])
                    .map(|word| word.trim().trim_matches('"').to_owned())
                    .collect()
            };
            // An empty group is the core group. Elsewhere, an empty string comes from a trailing
            // semicolon.
            let named = || words().into_iter().filter(|word| !word.is_empty());
            match key.trim() {
                "groups" => {
                    rule.groups = words()
                        .into_iter()
                        .map(|group| if group == "core" { String::new() } else { group })
                        .collect()
                }
                "resources" => rule.resources = named().collect(),
                "resourceNames" => rule.names = named().collect(),
                "urls" => rule.urls = named().collect(),
                "verbs" => rule.verbs = named().map(|verb| verb.to_lowercase()).collect(),
                "namespace" => rule.namespace = words().concat(),
                "roleName" => rule.role = words().concat(),
                _ => return None,
            }
        }
        Some(rule)
    }

    pub(super) fn of_role(role: &Value) -> Vec<Rule> {
        let rules = role["rules"].as_array().into_iter().flatten();
        rules
            .map(|rule| Rule {
                groups: list_strings(&rule["apiGroups"]),
                resources: list_strings(&rule["resources"]),
                names: list_strings(&rule["resourceNames"]),
                urls: list_strings(&rule["nonResourceURLs"]),
                verbs: list_strings(&rule["verbs"]),
                namespace: role["metadata"]["namespace"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
                role: String::new(),
            })
            .collect()
    }

    pub(super) fn permissions(&self) -> BTreeSet<Permission> {
        let mut found = BTreeSet::new();
        let names = if self.names.is_empty() {
            vec![String::new()]
        } else {
            self.names.clone()
        };
        for verb in &self.verbs {
            for url in &self.urls {
                found.insert((
                    self.namespace.clone(),
                    url.clone(),
                    String::new(),
                    String::new(),
                    verb.clone(),
                ));
            }
            for group in &self.groups {
                for resource in &self.resources {
                    found.extend(names.iter().map(|name| {
                        (
                            self.namespace.clone(),
                            group.clone(),
                            resource.clone(),
                            name.clone(),
                            verb.clone(),
                        )
                    }));
                }
            }
        }
        found
    }

    /// Formats the rule as a Rust attribute. The error is the generator's reason for rejecting it.
    fn print(&self) -> Result<String, String> {
        let is_whole = !self.groups.is_empty() && !self.resources.is_empty();
        if self.verbs.is_empty()
            || is_whole != self.urls.is_empty()
            || !self.urls.is_empty() && !self.namespace.is_empty()
        {
            return Err("it needs verbs, and either groups with resources or URLs".to_owned());
        }
        let known = if self.urls.is_empty() {
            RBAC_VERBS
        } else {
            RBAC_URL_VERBS
        };
        let (verbs, custom_verbs): (Vec<_>, Vec<_>) = self
            .verbs
            .iter()
            .cloned()
            .partition(|verb| known.contains(&verb.as_str()));
        let mut arguments = Vec::new();
        for (key, words) in [
            ("groups", &self.groups),
            ("resources", &self.resources),
            ("resource_names", &self.names),
            ("urls", &self.urls),
            ("verbs", &verbs),
            ("custom_verbs", &custom_verbs),
        ] {
            if !words.is_empty() {
                arguments.push(format!("{key} = {}", print_words(words)));
            }
        }
        for (key, word) in [("namespace", &self.namespace), ("role_name", &self.role)] {
            if !word.is_empty() {
                arguments.push(format!("{key} = {}", quoted(word)));
            }
        }
        Ok(print_attribute("rbac", &arguments))
    }
}

fn print_words(words: &[String]) -> String {
    match words {
        [word] => quoted(word),
        words if words.iter().any(String::is_empty) => {
            let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
            format!("[{}]", words.join(", "))
        }
        words => quoted(&words.join(";")),
    }
}

/// Splits a text at commas outside of quotes and braces.
fn split_arguments(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut is_quoted) = (Vec::new(), 0, 0_usize, false);
    for (at, c) in text.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            '{' if !is_quoted => depth += 1,
            '}' if !is_quoted => depth = depth.saturating_sub(1),
            ',' if !is_quoted && depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_translated() {
        for (marker, expected) in [
            (
                "groups=apps,resources=deployments,verbs=get;list",
                Some("#[rbac(groups = \"apps\", resources = \"deployments\", verbs = \"get;list\")]"),
            ),
            (
                "groups=core,resources=pods,verbs=get",
                Some("#[rbac(groups = \"\", resources = \"pods\", verbs = \"get\")]"),
            ),
            (
                "groups=\"\",resources=\"pods\",verbs=\"get\"",
                Some("#[rbac(groups = \"\", resources = \"pods\", verbs = \"get\")]"),
            ),
            (
                "groups=\"\";events.k8s.io,resources=events,verbs=create",
                Some(
                    "#[rbac(groups = [\"\", \"events.k8s.io\"], resources = \"events\", verbs = \"create\")]",
                ),
            ),
            (
                "urls=/metrics,verbs=get",
                Some("#[rbac(urls = \"/metrics\", verbs = \"get\")]"),
            ),
            (
                "groups=a,resources={b,c},verbs={get,list},namespace=x",
                Some("#[rbac(groups = \"a\", resources = \"b;c\", verbs = \"get;list\", namespace = \"x\")]"),
            ),
            (
                "groups=a,resources=b,verbs=get;connect;brew",
                Some(
                    "#[rbac(\n    groups = \"a\",\n    resources = \"b\",\n    verbs = \"get;connect\",\n    custom_verbs = \"brew\"\n)]",
                ),
            ),
            (
                "urls=/brew,verbs=post;list",
                Some("#[rbac(urls = \"/brew\", verbs = \"post\", custom_verbs = \"list\")]"),
            ),
            ("groups=a,verbs=get", None),
        ] {
            let rule = Rule::parse_marker(&format!("kubebuilder:rbac:{marker}")).expect(marker);
            assert_eq!(rule.print().ok().as_deref(), expected, "{marker}");
        }
        for other in [
            "kubebuilder:object:root=true",
            "kubebuilder:rbac:nothing",
            "kubebuilder:rbac:a=b",
        ] {
            assert_eq!(Rule::parse_marker(other), None, "{other}");
        }
    }
}

//! Rules that markers request, and the markers of rules.

use rbuilder_generator::rbac::check_marker;
use rbuilder_generator::{RBAC_URL_VERBS, RBAC_VERBS};
use rbuilder_kubernetes::rbac;
use serde_json::Value;

use super::attributes::{print_attribute, quoted};

/// A rule with its role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) granted: rbac::Rule,
    /// `None` in a ClusterRole.
    pub(super) namespace: Option<String>,
    /// The name that a marker states for the role.
    pub(super) role: Option<String>,
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

pub(super) fn list_strings(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}

pub(super) fn is_role(object: &Value) -> bool {
    object["kind"] == "ClusterRole" || object["kind"] == "Role"
}

impl Rule {
    /// Parses a marker, e.g. `kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list`.
    /// Returns `None` for other markers.
    pub(super) fn parse_marker(marker: &str) -> Option<Rule> {
        let mut rule = Rule::default();
        let granted = &mut rule.granted;
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
                    granted.groups = words()
                        .into_iter()
                        .map(|group| if group == "core" { String::new() } else { group })
                        .collect()
                }
                "resources" => granted.resources = named().collect(),
                "resourceNames" => granted.names = named().collect(),
                "urls" => granted.urls = named().collect(),
                "verbs" => granted.verbs = named().map(|verb| verb.to_lowercase()).collect(),
                "namespace" => rule.namespace = named().next(),
                "roleName" => rule.role = named().next(),
                _ => return None,
            }
        }
        Some(rule)
    }

    pub(super) fn of_role(role: &Value) -> Vec<Rule> {
        let rules = rbac::Rule::list(role).into_iter();
        rules
            .map(|granted| Rule {
                granted,
                namespace: role["metadata"]["namespace"].as_str().map(str::to_owned),
                role: None,
            })
            .collect()
    }

    pub(super) fn permissions(&self) -> Vec<rbac::Permission> {
        self.granted.permissions(self.namespace.as_deref())
    }

    /// Formats the rule as a Rust attribute. The error is the generator's reason for rejecting it.
    fn print(&self) -> Result<String, String> {
        let rbac::Rule {
            groups,
            resources,
            names,
            urls,
            verbs,
        } = &self.granted;
        let is_whole = !groups.is_empty() && !resources.is_empty();
        if verbs.is_empty() || is_whole != urls.is_empty() || !urls.is_empty() && self.namespace.is_some() {
            return Err("it needs verbs, and either groups with resources or URLs".to_owned());
        }
        let known = if urls.is_empty() {
            RBAC_VERBS
        } else {
            RBAC_URL_VERBS
        };
        let (verbs, custom_verbs): (Vec<_>, Vec<_>) = verbs
            .iter()
            .cloned()
            .partition(|verb| known.contains(&verb.as_str()));
        let mut arguments = Vec::new();
        for (key, words) in [
            ("groups", groups),
            ("resources", resources),
            ("resource_names", names),
            ("urls", urls),
            ("verbs", &verbs),
            ("custom_verbs", &custom_verbs),
        ] {
            if !words.is_empty() {
                arguments.push(format!("{key} = {}", print_words(words)));
            }
        }
        for (key, word) in [("namespace", &self.namespace), ("role_name", &self.role)] {
            if let Some(word) = word {
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

//! An operator's hand-written roles, in a chart or elsewhere: what they grant, and markers that
//! grant the same.

use std::collections::BTreeSet;

use anyhow::Result;
use rbuilder_generator::OutputFile;
use rbuilder_kubernetes::rbac::{self, Permission, is_granted, permissions_of};
use rbuilder_yaml::parse_documents;
use serde_json::Value;

use super::permissions::{MarkedRule, Rule, is_role};
use crate::crd_file::{FILLED_IN, without_template};
use crate::paths::folder_of;
use crate::tree::Tree;

const TESTS: [&str; 5] = ["test", "tests", "testdata", "e2e", "fixtures"];

/// Label prefix of roles that are aggregated to the built-in roles for users.
const AGGREGATED: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// Common suffixes of roles for the users of a kind.
const FOR_USERS: [&str; 6] = [
    "-admin",
    "-admin-role",
    "-editor",
    "-editor-role",
    "-viewer",
    "-viewer-role",
];

#[derive(Clone, Debug)]
pub(super) struct WrittenRole {
    pub(super) path: String,
    pub(super) kind: String,
    pub(super) name: String,
    value: Value,
}

/// Markers for what a role grants but the source doesn't request yet.
#[derive(Debug)]
pub(super) struct OfferedMarkers {
    pub(super) role: WrittenRole,
    pub(super) markers: Vec<String>,
    /// Rules that no marker can express, as their resources or URLs followed by the reason.
    pub(super) without_marker: Vec<String>,
}

impl WrittenRole {
    /// E.g. ``ClusterRole `cafe` in deploy/rbac.yaml``.
    pub(super) fn describe(&self) -> String {
        match self.name.contains(FILLED_IN) {
            true => format!("{} in {}", self.kind, self.path),
            false => format!("{} `{}` in {}", self.kind, self.name, self.path),
        }
    }

    /// Whether the markers would grant the rules in more namespaces than the role does. That's the
    /// case for a Role without a fixed namespace.
    pub(super) fn is_narrower_than_markers(&self) -> bool {
        !self.is_cluster_wide() && !self.value["metadata"]["namespace"].is_string()
    }

    pub(super) fn is_cluster_wide(&self) -> bool {
        self.kind == "ClusterRole"
    }

    pub(super) fn rules(&self) -> Vec<Value> {
        let rules = self.value["rules"].as_array().into_iter().flatten();
        rules.filter(|rule| !is_filled_in(rule)).cloned().collect()
    }

    pub(super) fn has_filled_in_rules(&self) -> bool {
        is_filled_in(&self.value["rules"])
    }

    fn folder(&self) -> &str {
        folder_of(&self.path)
    }

    fn names_group(&self, groups: &BTreeSet<String>) -> bool {
        let rules = rbac::Rule::list(&self.value);
        rules
            .iter()
            .any(|rule| rule.groups.iter().any(|group| groups.contains(group)))
    }
}

/// Finds the roles of the operator that defines kinds in these groups. A role is the operator's if
/// it is bound to an account and mentions one of the groups, or if another such role next to it is
/// bound to the same account. `generated` is the file written by `manifests`, which doesn't count.
pub(super) fn find_written_roles(
    tree: &Tree,
    groups: &BTreeSet<String>,
    generated: &str,
) -> Result<Vec<WrittenRole>> {
    let (mut roles, mut bindings): (Vec<WrittenRole>, Vec<(String, Value)>) = (Vec::new(), Vec::new());
    for path in tree.find_yaml()? {
        let is_for_tests = path.split('/').any(|folder| TESTS.contains(&folder));
        let Ok(Some(text)) = tree.read(&path) else {
            continue;
        };
        if is_for_tests || path == generated || !text.contains("Role") {
            continue;
        }
        for object in parse_documents(&without_template(&text)).unwrap_or_default() {
            if object["roleRef"].is_object() {
                bindings.push((path.clone(), object));
            } else if is_role(&object) && !is_for_users(&object) {
                let mut object = object;
                if let Some(metadata) = object["metadata"].as_object_mut()
                    && metadata.get("namespace").is_some_and(is_filled_in)
                {
                    metadata.remove("namespace");
                }
                let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                roles.push(WrittenRole {
                    path: path.clone(),
                    kind: word(&object["kind"]),
                    name: word(&object["metadata"]["name"]),
                    value: object,
                });
            }
        }
    }
    Ok(choose(roles, &bindings, groups))
}

fn choose(
    roles: Vec<WrittenRole>,
    bindings: &[(String, Value)],
    groups: &BTreeSet<String>,
) -> Vec<WrittenRole> {
    let accounts_of = |role: &WrittenRole| -> BTreeSet<String> {
        let folder = role.folder();
        let bound = bindings.iter().filter(|(path, binding)| {
            let to = &binding["roleRef"];
            folder_of(path) == folder && to["kind"] == role.kind.as_str() && to["name"] == role.name.as_str()
        });
        let subjects = bound.flat_map(|(_, binding)| binding["subjects"].as_array().into_iter().flatten());
        let accounts = subjects.filter(|subject| subject["kind"] == "ServiceAccount");
        accounts
            .filter_map(|account| Some(format!("{folder}/{}", account["name"].as_str()?)))
            .collect()
    };
    let own: Vec<&WrittenRole> = roles.iter().filter(|role| role.names_group(groups)).collect();
    let accounts: BTreeSet<String> = own.iter().flat_map(|role| accounts_of(role)).collect();
    let is_chosen = |role: &&WrittenRole| match accounts.is_empty() {
        true => role.names_group(groups),
        false => !accounts_of(role).is_disjoint(&accounts),
    };
    let mut chosen: Vec<WrittenRole> = Vec::new();
    // Skip copies, which grant nothing new.
    for role in roles.iter().filter(is_chosen) {
        let granted: BTreeSet<Permission> = chosen
            .iter()
            .flat_map(|role| permissions_of(&role.value))
            .collect();
        if !permissions_of(&role.value)
            .iter()
            .all(|wanted| is_granted(wanted, &granted))
        {
            chosen.push(role.clone());
        }
    }
    chosen
}

fn is_filled_in(value: &Value) -> bool {
    value.to_string().contains(FILLED_IN)
}

fn is_for_users(role: &Value) -> bool {
    let labels = role["metadata"]["labels"].as_object();
    let is_aggregated = labels.is_some_and(|labels| labels.keys().any(|label| label.starts_with(AGGREGATED)));
    let name = role["metadata"]["name"].as_str().unwrap_or_default();
    is_aggregated || FOR_USERS.iter().any(|ending| name.ends_with(ending))
}

pub(super) fn offer_markers(roles: Vec<WrittenRole>, generated: Option<&OutputFile>) -> Vec<OfferedMarkers> {
    let documents = generated.map(|file| parse_documents(&file.text).unwrap_or_default());
    let granted: BTreeSet<Permission> = documents.iter().flatten().flat_map(permissions_of).collect();
    let mut offered = Vec::new();
    for role in roles {
        let (mut markers, mut without_marker) = (Vec::new(), Vec::new());
        for rule in Rule::of_role(&role.value) {
            if rule
                .permissions()
                .iter()
                .all(|wanted| is_granted(wanted, &granted))
            {
                continue;
            }
            let subject = [&rule.granted.resources, &rule.granted.urls].map(|names| names.join(", "));
            let subject = subject.concat();
            match MarkedRule::new(rule) {
                Ok(marked) if marked.marker.contains(FILLED_IN) => {
                    without_marker.push(format!("{subject}: Helm fills in parts of the rule"));
                }
                Ok(marked) => markers.push(marked.marker),
                Err(reason) => without_marker.push(format!("{subject}: {reason}")),
            }
        }
        if !markers.is_empty() || !without_marker.is_empty() {
            offered.push(OfferedMarkers {
                role,
                markers,
                without_marker,
            });
        }
    }
    offered
}

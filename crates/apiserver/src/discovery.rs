//! Discovery of the server version and of served kinds.

use std::collections::BTreeMap;
use std::sync::Arc;

use rbuilder_catalogue::Minor;
use rbuilder_kubernetes::gvk;
use rbuilder_kubernetes::version;
use serde_json::{Value, json};

use super::kinds::{Definition, Version};
use super::request::Verb;
use super::store::State;

/// In the order of discovery documents.
const VERBS: [Verb; 8] = [
    Verb::Create,
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Update,
    Verb::Watch,
];

impl State {
    pub(super) fn document(&self, path: &str, accept: &str) -> Option<Value> {
        let aggregated = accept.contains("as=APIGroupDiscoveryList");
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        match *segments.as_slice() {
            ["version"] => Some(version(self.minor)),
            ["api"] if aggregated => Some(self.aggregated(|group| group.is_empty())),
            ["apis"] if aggregated => Some(self.aggregated(|group| !group.is_empty())),
            ["api"] => Some(json!({
                "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [],
            })),
            ["apis"] => {
                let groups = self.groups();
                let groups = groups.iter().filter(|(group, _)| !group.is_empty());
                let groups: Vec<Value> = groups
                    .map(|(group, versions)| describe_group(group, versions))
                    .collect();
                Some(json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups }))
            }
            ["apis", group] => {
                let mut found = describe_group(group, self.groups().get(group)?);
                found["kind"] = "APIGroup".into();
                found["apiVersion"] = "v1".into();
                Some(found)
            }
            ["openapi", "v3"] => Some(self.openapi_index()),
            ["openapi", "v3", "api", version] => self.openapi("", version),
            ["openapi", "v3", "apis", group, version] => self.openapi(group, version),
            ["api", version] => self.resources("", version),
            ["apis", group, version] => self.resources(group, version),
            _ => None,
        }
    }

    /// Versions of each group, preferred version first.
    pub(super) fn groups(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for definition in self.kinds() {
            let versions = groups.entry(&definition.id.group).or_default();
            versions.extend(
                definition
                    .versions
                    .iter()
                    .filter(|version| version.served)
                    .map(|version| &*version.name),
            );
        }
        for versions in groups.values_mut() {
            versions.sort_by(|one, other| version::compare(other, one));
            versions.dedup();
        }
        groups
    }

    pub(super) fn kinds_in(&self, group: &str, version: &str) -> Vec<(&Arc<Definition>, &Version)> {
        let kinds = self.kinds().filter(|definition| definition.id.group == group);
        kinds
            .filter_map(|definition| Some((definition, definition.version(version)?)))
            .collect()
    }

    fn resources(&self, group: &str, version: &str) -> Option<Value> {
        let kinds = self.kinds_in(group, version);
        let group_version = kinds.first()?.0.api_version(version);
        let resources = kinds
            .iter()
            .flat_map(|(definition, version)| describe(definition, version));
        Some(json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version,
            "resources": resources.collect::<Vec<_>>(),
        }))
    }

    fn aggregated(&self, wanted: impl Fn(&str) -> bool) -> Value {
        let groups = self.groups();
        let groups = groups.iter().filter(|(group, _)| wanted(group)).map(|(group, versions)| {
            let versions = versions.iter().map(|name| {
                let kinds = self.kinds_in(group, name);
                let resources = kinds.iter().map(|(definition, version)| describe_aggregated(definition, version));
                json!({ "version": name, "freshness": "Current", "resources": resources.collect::<Vec<_>>() })
            });
            json!({ "metadata": { "name": group }, "versions": versions.collect::<Vec<_>>() })
        });
        json!({
            "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
            "items": groups.collect::<Vec<_>>(),
        })
    }
}

fn version(minor: Minor) -> Value {
    let minor = minor.number();
    json!({
        "major": "1", "minor": minor.to_string(), "gitVersion": format!("v1.{minor}.0-fake"),
        "gitCommit": "", "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "", "compiler": "", "platform": "",
    })
}

fn describe_group(group: &str, versions: &[&str]) -> Value {
    let describe =
        |version: &&str| json!({ "groupVersion": gvk::api_version(group, version), "version": version });
    let versions: Vec<Value> = versions.iter().map(describe).collect();
    json!({ "name": group, "preferredVersion": versions.first(), "versions": versions })
}

fn verbs(definition: &Definition) -> Vec<&'static str> {
    let verbs = VERBS
        .iter()
        .filter(|verb| !definition.review || **verb == Verb::Create);
    verbs.map(|verb| verb.as_str()).collect()
}

fn subresources(version: &Version) -> Vec<&'static str> {
    let scale = version.scale.as_ref().map(|_| "scale");
    scale
        .into_iter()
        .chain(version.status.then_some("status"))
        .collect()
}

fn describe(definition: &Definition, version: &Version) -> Vec<Value> {
    let plural = &definition.id.plural;
    let mut own = json!({
        "name": plural, "singularName": definition.singular, "namespaced": definition.namespaced,
        "kind": definition.kind, "verbs": verbs(definition), "shortNames": definition.short_names,
    });
    if !definition.categories.is_empty() {
        own["categories"] = json!(definition.categories);
    }
    let mut found = vec![own];
    for subresource in subresources(version) {
        let mut entry = json!({
            "name": format!("{plural}/{subresource}"), "singularName": "", "namespaced": definition.namespaced,
            "kind": definition.kind, "verbs": ["get", "patch", "update"],
        });
        if subresource == "scale" {
            entry["group"] = "autoscaling".into();
            entry["version"] = "v1".into();
            entry["kind"] = "Scale".into();
        }
        found.push(entry);
    }
    found
}

fn describe_aggregated(definition: &Definition, version: &Version) -> Value {
    let kind =
        |kind: &str, group: &str, version: &str| json!({ "group": group, "version": version, "kind": kind });
    let own = kind(&definition.kind, &definition.id.group, &version.name);
    let subresources = subresources(version).into_iter().map(|name| {
        let kind = if name == "scale" {
            kind("Scale", "autoscaling", "v1")
        } else {
            own.clone()
        };
        json!({ "subresource": name, "responseKind": kind, "verbs": ["get", "patch", "update"] })
    });
    json!({
        "resource": definition.id.plural, "responseKind": own,
        "scope": if definition.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": definition.singular, "verbs": verbs(definition),
        "shortNames": definition.short_names, "categories": definition.categories,
        "subresources": subresources.collect::<Vec<_>>(),
    })
}

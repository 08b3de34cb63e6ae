//! Webhooks in the original's configurations, and the kinds whose handlers serve them in the Rust
//! project.

use serde_json::Value;

use super::composed::{Composed, webhook_key};
use super::kinds::Kind;
use crate::commands::permissions::list_strings;
use crate::project::Resource;
use rbuilder_go_project::GoProject;

pub(super) const CONFIGURATIONS: [(&str, &str); 2] = [
    ("MutatingWebhookConfiguration", "mutating"),
    ("ValidatingWebhookConfiguration", "validating"),
];

const MANIFESTS: &str = "config/webhook/manifests.yaml";

pub(super) struct Published<'a> {
    /// `mutating` or `validating`.
    pub(super) what: &'static str,
    pub(super) webhook: &'a Value,
}

impl<'a> Published<'a> {
    pub(super) fn name(&self) -> &'a str {
        self.webhook["name"].as_str().unwrap_or_default()
    }

    pub(super) fn path(&self) -> &'a str {
        path_of(self.webhook)
    }

    pub(super) fn is_of_kind(&self, resource: &Resource, plural: &str) -> bool {
        let mut rules = self.rules();
        rules.any(|rule| {
            has_text(&rule["apiGroups"], &resource.qualified_group()) && has_text(&rule["resources"], plural)
        })
    }

    /// The version of a kind whose handler serves the webhook: the version in the webhook's path,
    /// else a version in its rules for which PROJECT lists such a webhook, else the first version
    /// in its rules.
    pub(super) fn version_of<'k>(&self, kind: &'k Kind<'_>) -> Option<&'k Resource> {
        let plural = plural_of(kind, &kind.resource);
        if !self.is_of_kind(&kind.resource, &plural) {
            return None;
        }
        let is_for = |version: &&Resource| {
            let mut rules = self.rules();
            rules.any(|rule| {
                has_text(&rule["apiVersions"], &version.version) || has_text(&rule["apiVersions"], "*")
            })
        };
        let is_named = |version: &&Resource| {
            let end = format!("-{}-{}", version.version, version.kind.to_lowercase());
            self.path().ends_with(&end)
        };
        let is_listed = |version: &&Resource| {
            let listed = version.webhooks.as_ref();
            listed.is_some_and(|listed| match self.what {
                "mutating" => listed.defaulting,
                _ => listed.validation,
            })
        };
        let versions: Vec<&Resource> = kind.versions.iter().filter(is_for).collect();
        let find =
            |is_it: &dyn Fn(&&Resource) -> bool| versions.iter().copied().find(|version| is_it(version));
        find(&is_named)
            .or_else(|| find(&is_listed))
            .or_else(|| versions.first().copied())
    }

    fn rules(&self) -> impl Iterator<Item = &'a Value> {
        self.webhook["rules"].as_array().into_iter().flatten()
    }

    pub(super) fn explain_missing(&self, composed: &Composed<'_>) -> String {
        const ADVICE: &str = "write it as a function with `#[webhook(…)]`";
        let of_kind = |kind: &&Kind<'_>| self.is_of_kind(&kind.resource, &plural_of(kind, &kind.resource));
        let all = |key: &str| -> String {
            let words = self.rules().flat_map(|rule| list_strings(&rule[key]));
            words
                .map(|word| format!("`{word}`"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let Some(kind) = composed.kinds.iter().find(of_kind) else {
            return format!(
                "no kind that was imported has the resource {} of {}: {ADVICE}",
                all("resources"),
                all("apiGroups")
            );
        };
        let name = &kind.resource.kind;
        let Some(version) = self.version_of(kind) else {
            return format!(
                "the CRD of `{name}` has no version {}: {ADVICE}",
                all("apiVersions")
            );
        };
        let served = composed.served_paths.get(&(self.what, webhook_key(version)));
        let version = &version.version;
        match served {
            Some(served) => format!(
                "its path `{}` is not `{served}`, which the handler of `{name}` in `{version}` serves: {ADVICE}",
                self.path()
            ),
            None => format!("`{name}` has no handler in `{version}`: {ADVICE}"),
        }
    }
}

pub(super) fn path_of(webhook: &Value) -> &str {
    webhook["clientConfig"]["service"]["path"]
        .as_str()
        .unwrap_or_default()
}

fn has_text(list: &Value, text: &str) -> bool {
    list.as_array().into_iter().flatten().any(|item| item == text)
}

pub(super) fn find_published(original: &GoProject) -> Vec<Published<'_>> {
    let mut found = Vec::new();
    for (kind, _) in CONFIGURATIONS {
        let documents = original.documents(MANIFESTS.trim_end_matches(".yaml"), kind);
        found.extend(documents.flat_map(|(_, document)| webhooks_of(document)));
    }
    found
}

/// The webhooks in a configuration. Empty for other objects.
pub(super) fn webhooks_of(document: &Value) -> impl Iterator<Item = Published<'_>> {
    let of_kind = CONFIGURATIONS.iter().find(|(kind, _)| document["kind"] == *kind);
    let webhooks = document["webhooks"].as_array().into_iter().flatten();
    of_kind
        .into_iter()
        .flat_map(move |(_, what)| webhooks.clone().map(|webhook| Published { what, webhook }))
}

/// Whether a project's webhooks were generated by `make manifests`, in which case clusters have no
/// other webhooks.
pub(super) fn has_configurations(original: &GoProject) -> bool {
    original.manifest(MANIFESTS).is_some() || !find_published(original).is_empty()
}

pub(super) fn plural_of(kind: &Kind<'_>, version: &Resource) -> String {
    let of_crd = kind
        .crd
        .and_then(|(_, crd)| crd["spec"]["names"]["plural"].as_str());
    let built_in = || {
        let found =
            rbuilder_generator::find_kubernetes_kind(None, &version.group, &version.version, &version.kind);
        found.filter(|_| version.core).map(|found| found.plural)
    };
    let recorded = Some(version.plural.clone()).filter(|plural| !plural.is_empty());
    of_crd
        .map(str::to_owned)
        .or(recorded)
        .or_else(built_in)
        .unwrap_or_default()
}

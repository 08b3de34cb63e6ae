//! The names of the objects that deploy the manager, where they differ from scaffolded ones.
//!
//! A project imported from Go keeps the names that its objects have in clusters, and users rename
//! objects in `config/`. Later commands must refer to the same objects. So [`Project::read`] takes
//! the names from the manifests, and PROJECT records them for manifests that can't be read.
//!
//! [`Project::read`]: super::Project::read

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use rbuilder_kubernetes::names::{is_qualified_name, is_subdomain};
use rbuilder_templates::objects::{
    CONTAINER, MANAGER, MANAGER_LABEL, METRICS_SERVICE, NAME_LABEL, WEBHOOK_SERVICE,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::names::is_label_value;
use super::{FILE, Known};
use crate::overlay::{DEPLOYMENT, Kustomization, resolve_entry};

const MANAGER_FOLDER: &str = "config/manager";
/// The manifest of the manager's Deployment.
pub const MANAGER_FILE: &str = "config/manager/manager.yaml";
const ACCOUNT_FILE: &str = "config/rbac/service_account.yaml";
const METRICS_FILE: &str = "config/metrics/metrics_service.yaml";
const WEBHOOK_FILE: &str = "config/webhook/service.yaml";

/// Names that differ from scaffolded ones. `None` is the scaffolded name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectNames {
    /// The manager's container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The Deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
    /// Value of the label [`MANAGER_LABEL`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The Lease for leader election. Not part of the manifests, so only PROJECT has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
    /// The Service for metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_service: Option<String>,
    /// Prefix of all names, which may be empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name_prefix: Option<String>,
    /// Namespace of the manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels that select the manager's pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<BTreeMap<String, String>>,
    /// The service account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
    /// The Service for webhooks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_service: Option<String>,
}

/// The objects that have the names.
#[derive(Clone, Copy, Debug, Default)]
pub struct NamedObjects<'a> {
    /// The manager's Deployment.
    pub deployment: Option<&'a Value>,
    /// Names of the service accounts in the manifests.
    pub accounts: &'a [String],
    /// Name of the Service for metrics.
    pub metrics_service: Option<&'a str>,
    /// Name of the Service for webhooks.
    pub webhook_service: Option<&'a str>,
    /// `namePrefix` of the deployment's kustomization.
    pub name_prefix: Option<&'a str>,
    /// `namespace` of the deployment's kustomization.
    pub namespace: Option<&'a str>,
}

impl ObjectNames {
    /// Whether all names are scaffolded ones.
    pub fn is_default(&self) -> bool {
        *self == ObjectNames::default()
    }

    /// Name of the Deployment.
    pub fn deployment(&self) -> &str {
        self.deployment.as_deref().unwrap_or(MANAGER)
    }

    /// Name of the service account.
    pub fn service_account(&self) -> &str {
        self.service_account.as_deref().unwrap_or(MANAGER)
    }

    /// Name of the manager's container.
    pub fn container(&self) -> &str {
        self.container.as_deref().unwrap_or(CONTAINER)
    }

    /// Name of the Service for metrics.
    pub fn metrics_service(&self) -> &str {
        self.metrics_service.as_deref().unwrap_or(METRICS_SERVICE)
    }

    /// Name of the Service for webhooks.
    pub fn webhook_service(&self) -> &str {
        self.webhook_service.as_deref().unwrap_or(WEBHOOK_SERVICE)
    }

    /// Value of the label [`MANAGER_LABEL`].
    pub fn label(&self) -> &str {
        self.label.as_deref().unwrap_or(MANAGER)
    }

    /// Namespace of the manager in a project of this name.
    pub fn namespace(&self, project: &str) -> String {
        self.namespace
            .clone()
            .unwrap_or_else(|| default_namespace(project))
    }

    /// Prefix of all names in a project of this name.
    pub fn name_prefix(&self, project: &str) -> String {
        self.name_prefix
            .clone()
            .unwrap_or_else(|| default_prefix(project))
    }

    /// Reads the names from the manifests of a project. A name that can't be read stays as recorded
    /// in PROJECT.
    pub(crate) fn find(known: &Known, read: &dyn Fn(&str) -> Option<String>) -> ObjectNames {
        let documents = |path: &str| -> Vec<Value> {
            let parsed = read(path).and_then(|text| rbuilder_yaml::parse_documents(&text).ok());
            parsed.unwrap_or_default()
        };
        let recorded = &known.rbuilder.names;
        let deployments = find_deployments(read, &documents);
        let accounts: Vec<String> = documents(ACCOUNT_FILE)
            .iter()
            .filter(|object| object["kind"] == "ServiceAccount")
            .filter_map(|object| object["metadata"]["name"].as_str().map(str::to_owned))
            .collect();
        let service = |path: &str| {
            let services: Vec<Value> = documents(path)
                .into_iter()
                .filter(|object| object["kind"] == "Service")
                .collect();
            match services.as_slice() {
                [only] => only["metadata"]["name"].as_str().map(str::to_owned),
                _ => None,
            }
        };
        let kustomization = read(DEPLOYMENT).and_then(|text| Kustomization::parse(DEPLOYMENT, &text).ok());
        let (metrics_service, webhook_service) = (service(METRICS_FILE), service(WEBHOOK_FILE));
        let objects = NamedObjects {
            deployment: choose_deployment(&deployments, recorded.deployment()),
            accounts: &accounts,
            metrics_service: metrics_service.as_deref(),
            webhook_service: webhook_service.as_deref(),
            name_prefix: kustomization
                .as_ref()
                .map(|list| list.name_prefix().unwrap_or_default()),
            namespace: kustomization.as_ref().and_then(Kustomization::namespace),
        };
        recorded.with_objects(&known.project_name, &objects)
    }

    /// Replaces the names with those of objects. Invalid names and missing objects change nothing.
    #[must_use]
    pub fn with_objects(&self, project: &str, objects: &NamedObjects<'_>) -> ObjectNames {
        let mut names = self.clone();
        let set = |name: &mut Option<String>, found: Option<&str>, default: &str, is_valid: bool| {
            if let Some(found) = found.filter(|_| is_valid) {
                *name = (found != default).then(|| found.to_owned());
            }
        };
        let is_name = |name: Option<&str>| name.is_some_and(is_subdomain);
        let prefix = objects.name_prefix;
        let is_prefix = prefix.is_some_and(is_prefix);
        set(
            &mut names.name_prefix,
            prefix,
            &default_prefix(project),
            is_prefix,
        );
        let namespace = objects.namespace;
        let default = default_namespace(project);
        set(&mut names.namespace, namespace, &default, is_name(namespace));
        for (name, found, default) in [
            (
                &mut names.metrics_service,
                objects.metrics_service,
                METRICS_SERVICE,
            ),
            (
                &mut names.webhook_service,
                objects.webhook_service,
                WEBHOOK_SERVICE,
            ),
        ] {
            set(name, found, default, is_name(found));
        }
        let Some(deployment) = objects.deployment else {
            return names;
        };
        let name = deployment["metadata"]["name"].as_str();
        set(&mut names.deployment, name, MANAGER, is_name(name));
        let pod = &deployment["spec"]["template"];
        let container = find_container(deployment, self.container());
        let container = container.and_then(|container| container["name"].as_str());
        set(&mut names.container, container, CONTAINER, is_name(container));
        let account = find_account(&pod["spec"], objects.accounts, prefix.unwrap_or_default());
        set(&mut names.service_account, account, MANAGER, is_name(account));
        let selector = read_labels(&deployment["spec"]["selector"]["matchLabels"]);
        let label = selector
            .get(MANAGER_LABEL)
            .map(String::as_str)
            .or(pod["metadata"]["labels"][MANAGER_LABEL].as_str())
            .or(deployment["metadata"]["labels"][MANAGER_LABEL].as_str());
        set(
            &mut names.label,
            label,
            MANAGER,
            label.is_some_and(is_label_value),
        );
        if !selector.is_empty() && are_labels(&selector) {
            names.selector = (selector != default_selector(names.label(), project)).then_some(selector);
        }
        names
    }

    /// Checks the names in PROJECT, which end up in manifests and in shell commands.
    ///
    /// # Errors
    /// Fails with the key of an invalid name.
    pub(super) fn check(&self) -> Result<()> {
        let prefix = self.name_prefix.as_deref();
        if let Some(prefix) = prefix.filter(|prefix| !is_prefix(prefix)) {
            bail!(
                "invalid namePrefix `{}` in `names` of {FILE}",
                prefix.escape_debug()
            );
        }
        for (key, name) in [
            ("container", self.container.as_deref()),
            ("deployment", self.deployment.as_deref()),
            ("lease", self.lease.as_deref()),
            ("metricsService", self.metrics_service.as_deref()),
            ("namespace", self.namespace.as_deref()),
            ("serviceAccount", self.service_account.as_deref()),
            ("webhookService", self.webhook_service.as_deref()),
        ] {
            if let Some(name) = name.filter(|name| !is_subdomain(name)) {
                bail!("invalid {key} `{}` in `names` of {FILE}", name.escape_debug());
            }
        }
        if let Some(label) = self.label.as_deref().filter(|label| !is_label_value(label)) {
            bail!("invalid label `{}` in `names` of {FILE}", label.escape_debug());
        }
        match &self.selector {
            Some(selector) if selector.is_empty() || !are_labels(selector) => bail!(
                "invalid selector in `names` of {FILE}: expected labels, such as `{MANAGER_LABEL}: {MANAGER}`"
            ),
            _ => Ok(()),
        }
    }

    pub(super) fn print(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

fn is_prefix(prefix: &str) -> bool {
    prefix.is_empty() || is_subdomain(prefix.trim_end_matches('-'))
}

/// Labels that select the manager's pods in a scaffold.
pub(crate) fn default_selector(label: &str, project: &str) -> BTreeMap<String, String> {
    [(MANAGER_LABEL, label), (NAME_LABEL, project)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

pub(crate) fn default_namespace(project: &str) -> String {
    format!("{project}-system")
}

pub(crate) fn default_prefix(project: &str) -> String {
    format!("{project}-")
}

/// The manager's container in a Deployment: the one with the given name, else the one with the
/// scaffolded name, else the first that is not the proxy of older kubebuilder projects.
pub fn find_container<'v>(deployment: &'v Value, name: &str) -> Option<&'v Value> {
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array()?;
    let named = |name: &str| containers.iter().find(|container| container["name"] == name);
    let mut others = containers.iter();
    let first = others.find(|container| container["name"] != "kube-rbac-proxy");
    named(name).or_else(|| named(CONTAINER)).or(first)
}

/// The Deployments in `config/manager`: those in the scaffolded file, then those in other listed
/// files.
fn find_deployments(
    read: &dyn Fn(&str) -> Option<String>,
    documents: &dyn Fn(&str) -> Vec<Value>,
) -> Vec<Value> {
    let find = |path: &str| -> Vec<Value> {
        let objects = documents(path).into_iter();
        objects.filter(|object| object["kind"] == "Deployment").collect()
    };
    let own = find(MANAGER_FILE);
    if !own.is_empty() {
        return own;
    }
    let list = Kustomization::find(MANAGER_FOLDER, |path| Ok(read(path)));
    let list = list.ok().flatten().unwrap_or_default();
    let files = list.included().filter(|entry| rbuilder_yaml::is_yaml(entry));
    files
        .filter_map(|entry| resolve_entry(MANAGER_FOLDER, entry))
        .filter(|path| path != MANAGER_FILE)
        .flat_map(|path| find(&path))
        .collect()
}

fn choose_deployment<'a>(deployments: &'a [Value], name: &str) -> Option<&'a Value> {
    let named = |object: &&Value| object["metadata"]["name"] == name;
    let labeled = |object: &&Value| object["metadata"]["labels"][MANAGER_LABEL].is_string();
    let mut all = deployments.iter();
    let found = all.clone().find(named).or_else(|| all.clone().find(labeled));
    found.or_else(|| all.next())
}

/// The service account of a pod, without the prefix that kustomize adds if a manifest has it
/// without.
fn find_account<'v>(pod: &'v Value, accounts: &[String], prefix: &str) -> Option<&'v str> {
    let account = pod["serviceAccountName"]
        .as_str()
        .or(pod["serviceAccount"].as_str())?;
    let is_there = |name: &str| accounts.iter().any(|known| known == name);
    match account.strip_prefix(prefix) {
        Some(short) if !is_there(account) && is_there(short) => Some(short),
        _ => Some(account),
    }
}

fn read_labels(labels: &Value) -> BTreeMap<String, String> {
    let labels = labels.as_object().into_iter().flatten();
    labels
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

fn are_labels(labels: &BTreeMap<String, String>) -> bool {
    let mut labels = labels.iter();
    labels.all(|(key, value)| is_qualified_name(key) && is_label_value(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(files: &[(&str, &str)]) -> Value {
        let known = Known {
            project_name: "shop".into(),
            ..Known::default()
        };
        let read = |path: &str| {
            let mut files = files.iter();
            files
                .find(|(known, _)| *known == path)
                .map(|(_, text)| (*text).to_owned())
        };
        ObjectNames::find(&known, &read).print()
    }

    const MANIFEST: &str = "\
apiVersion: v1
kind: Namespace
metadata: {name: system}
---
kind: Deployment
metadata: {name: till}
spec:
  selector: {matchLabels: {control-plane: till}}
  template:
    metadata: {labels: {control-plane: till}}
    spec:
      serviceAccountName: shop-clerk
      containers: [{name: kube-rbac-proxy}, {name: till}]
";

    #[test]
    fn names_are_those_of_the_objects() {
        let account = "kind: ServiceAccount\nmetadata: {name: clerk}\n";
        let found = find(&[
            (
                "config/default/kustomization.yaml",
                "namespace: kitchen\nnamePrefix: shop-\n",
            ),
            ("config/manager/manager.yaml", MANIFEST),
            ("config/rbac/service_account.yaml", account),
            (
                "config/webhook/service.yaml",
                "kind: Service\nmetadata: {name: hooks}\n",
            ),
        ]);
        let expected = serde_json::json!({
            "container": "till",
            "deployment": "till",
            "label": "till",
            "namespace": "kitchen",
            "selector": { "control-plane": "till" },
            "serviceAccount": "clerk",
            "webhookService": "hooks",
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn scaffolded_and_unreadable_names_are_not_recorded() {
        let scaffolded = MANIFEST
            .replace(
                "control-plane: till",
                "control-plane: controller-manager, app.kubernetes.io/name: shop",
            )
            .replace("name: till}\nspec", "name: controller-manager}\nspec")
            .replace("shop-clerk", "controller-manager")
            .replace("name: till}]", "name: manager}]");
        for text in [
            scaffolded.as_str(),
            "kind: Deployment\n",
            "a: [",
            "kind: [a]",
            "- 1\n",
        ] {
            let found = find(&[("config/manager/manager.yaml", text)]);
            assert_eq!(found, serde_json::json!({}), "{text}");
        }
        for name in ["a\"b", "Upper", "-", "a b"] {
            let text = format!("kind: Deployment\nmetadata: {{name: '{name}'}}\n");
            let found = find(&[("config/manager/manager.yaml", &text)]);
            assert_eq!(found, serde_json::json!({}), "{text}");
        }
    }

    #[test]
    fn a_deployment_in_another_file_is_found() {
        let found = find(&[
            (
                "config/manager/kustomization.yaml",
                "resources: [deployment.yaml, ../x]\n",
            ),
            (
                "config/manager/deployment.yaml",
                "kind: Deployment\nmetadata: {name: till}\n",
            ),
        ]);
        assert_eq!(found, serde_json::json!({ "deployment": "till" }));
    }

    #[test]
    fn invalid_names_in_project_are_errors() {
        let valid = ObjectNames {
            deployment: Some("till".into()),
            name_prefix: Some("shop-".into()),
            ..ObjectNames::default()
        };
        assert!(valid.check().is_ok());
        for names in [
            ObjectNames {
                service_account: Some("a\nb".into()),
                ..valid.clone()
            },
            ObjectNames {
                label: Some("$(id)".into()),
                ..valid.clone()
            },
            ObjectNames {
                selector: Some([("a b".to_owned(), "c".to_owned())].into()),
                ..valid
            },
        ] {
            let error = names.check().expect_err("invalid").to_string();
            assert!(error.contains("in `names` of PROJECT"), "{error}");
        }
    }
}

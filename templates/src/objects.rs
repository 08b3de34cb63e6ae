//! Names of the manager's objects that differ from the names in templates.
//!
//! Templates contain the names of a new project, such as `controller-manager`. For a project with
//! other names, all of them are replaced after rendering. So a template needs no variable for a
//! name, cannot forget one, and templates of older releases follow the names as well.

use crate::{ProjectContext, Rendered};

/// Name of the Deployment, of objects named after it, and of the service account.
pub const MANAGER: &str = "controller-manager";
/// Name of the manager's container.
pub const CONTAINER: &str = "manager";
/// Name of the Service for metrics.
pub const METRICS_SERVICE: &str = "controller-manager-metrics-service";
/// Name of the Service for webhooks.
pub const WEBHOOK_SERVICE: &str = "webhook-service";
/// Label of the manager's objects and pods, with the value [`MANAGER`].
pub const MANAGER_LABEL: &str = "control-plane";
/// Label with the name of the project.
pub const NAME_LABEL: &str = "app.kubernetes.io/name";

/// Directory of the manifests, and the part whose objects are not the manager's.
const CONFIG: &str = "config/";
const SAMPLES: &str = "config/samples/";
const DEPLOYMENT_FILE: &str = "config/manager/manager.yaml";
const ROOT: &str = "config/default/kustomization.yaml";

/// Kinds of objects with the name of the Deployment.
const NAMED_AFTER_DEPLOYMENT: [&str; 3] = ["Deployment", "HorizontalPodAutoscaler", "PodDisruptionBudget"];

/// A name as plain text and as a YAML value, which may be quoted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    /// The name.
    pub plain: String,
    /// The name as a YAML value.
    pub yaml: String,
}

/// Names in place of those in the templates. `None` keeps a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherNames {
    /// The manager's container.
    pub container: Option<ObjectName>,
    /// The Deployment.
    pub deployment: Option<ObjectName>,
    /// Value of the label [`MANAGER_LABEL`].
    pub label: Option<ObjectName>,
    /// The Service for metrics.
    pub metrics_service: Option<ObjectName>,
    /// Prefix of all names.
    pub name_prefix: Option<ObjectName>,
    /// Namespace of the manager.
    pub namespace: Option<ObjectName>,
    /// Labels that select the manager's pods, sorted by key. Both parts are YAML values.
    pub selector: Option<Vec<(String, String)>>,
    /// The service account.
    pub service_account: Option<ObjectName>,
    /// The Service for webhooks.
    pub webhook_service: Option<ObjectName>,
}

impl OtherNames {
    pub(crate) fn apply(&self, project: &ProjectContext, file: &mut Rendered) {
        if *self == OtherNames::default() {
            return;
        }
        let is_manifest = file.path.starts_with(CONFIG) && !file.path.starts_with(SAMPLES);
        if is_manifest {
            file.text = self.rename_in_manifest(project, &file.path, &file.text);
        } else if let Some(label) = &self.label {
            // Commands that select the manager.
            let selector = |value: &str| format!("{MANAGER_LABEL}={value}");
            file.text = file.text.replace(&selector(MANAGER), &selector(&label.plain));
        }
    }

    fn rename_in_manifest(&self, project: &ProjectContext, path: &str, text: &str) -> String {
        let mut lines = text.split_inclusive('\n');
        let (mut kind, mut owner) = ("", "");
        let mut out = String::with_capacity(text.len());
        while let Some(line) = lines.next() {
            let entry = line.trim_start_matches([' ', '-']).trim_end();
            if let Some(found) = entry.strip_prefix("kind: ") {
                kind = found;
                // The kind of a whole object, whose selector follows.
                if line.starts_with("kind: ") {
                    owner = found;
                }
            }
            out += &self.rename_in_line(line, entry, kind);
            // A ServiceMonitor selects a Service, whose labels stay.
            let is_selector = entry == "matchLabels:" || entry == "selector:";
            if is_selector && owner != "ServiceMonitor" {
                self.replace_selector(project, &mut lines, &mut out);
            } else if path == DEPLOYMENT_FILE && line == "      labels:\n" {
                self.extend_pod_labels(project, &mut lines, &mut out);
            }
        }
        if path == ROOT {
            out = self.replace_root(project, out);
        }
        out
    }

    /// Replaces the names in one line. `kind` is that of the object to which the line belongs or
    /// refers: in templates, a name follows its kind.
    fn rename_in_line(&self, line: &str, entry: &str, kind: &str) -> String {
        let (key, value) = entry.split_once(": ").unwrap_or_default();
        let name = match (key, value) {
            ("name", CONTAINER) if kind == "Deployment" => &self.container,
            ("name", MANAGER) if NAMED_AFTER_DEPLOYMENT.contains(&kind) => &self.deployment,
            ("name", MANAGER) if kind == "ServiceAccount" => &self.service_account,
            ("name", METRICS_SERVICE) if kind == "Service" => &self.metrics_service,
            ("name", WEBHOOK_SERVICE) if kind == "Service" => &self.webhook_service,
            ("value", WEBHOOK_SERVICE) => &self.webhook_service,
            ("serviceAccountName", MANAGER) => &self.service_account,
            ("kubectl.kubernetes.io/default-container", CONTAINER) => &self.container,
            (MANAGER_LABEL, MANAGER) => &self.label,
            _ => return self.rename_in_paths(line),
        };
        match name {
            Some(name) => line.replacen(&format!(": {value}"), &format!(": {}", name.yaml), 1),
            None => line.to_owned(),
        }
    }

    /// Replaces the names in host names and in paths of fields.
    fn rename_in_paths(&self, line: &str) -> String {
        let mut line = line.to_owned();
        for (before, name) in [
            (METRICS_SERVICE, &self.metrics_service),
            (WEBHOOK_SERVICE, &self.webhook_service),
        ] {
            if let Some(name) = name {
                let host = |name: &str| format!(" {name}.system.svc");
                line = line.replace(&host(before), &host(&name.plain));
            }
        }
        match &self.container {
            Some(name) => line.replace(&format!("[name={CONTAINER}]"), &format!("[name={}]", name.plain)),
            None => line,
        }
    }

    /// Replaces the labels below the line of a selector.
    fn replace_selector<'t>(
        &self,
        project: &ProjectContext,
        lines: &mut (impl Iterator<Item = &'t str> + Clone),
        out: &mut String,
    ) {
        let Some(selector) = &self.selector else {
            return;
        };
        let Some(indent) = read_own_labels(project, lines) else {
            return;
        };
        for (key, value) in selector {
            *out += &format!("{indent}{key}: {value}\n");
        }
    }

    /// Writes the labels of pods, with those of the selector.
    fn extend_pod_labels<'t>(
        &self,
        project: &ProjectContext,
        lines: &mut (impl Iterator<Item = &'t str> + Clone),
        out: &mut String,
    ) {
        let Some(selector) = &self.selector else {
            return;
        };
        let Some(indent) = read_own_labels(project, lines) else {
            return;
        };
        let label = self.label.as_ref().map_or(MANAGER, |label| label.yaml.as_str());
        let own = [(MANAGER_LABEL, label), (NAME_LABEL, project.name_yaml.as_str())];
        for (key, value) in own {
            let selected = selector.iter().find(|(known, _)| known == key);
            let value = selected.map_or(value, |(_, value)| value.as_str());
            *out += &format!("{indent}{key}: {value}\n");
        }
        let is_own = |key: &str| own.iter().any(|(known, _)| *known == key);
        for (key, value) in selector.iter().filter(|(key, _)| !is_own(key)) {
            *out += &format!("{indent}{key}: {value}\n");
        }
    }

    fn replace_root(&self, project: &ProjectContext, text: String) -> String {
        let mut text = text;
        for (key, default, name) in [
            ("namespace", format!("{}-system", project.name), &self.namespace),
            ("namePrefix", format!("{}-", project.name), &self.name_prefix),
        ] {
            if let Some(name) = name {
                let line = |value: &str| format!("\n{key}: {value}\n");
                let other = match name.plain.as_str() {
                    "" => "\n".to_owned(),
                    _ => line(&name.yaml),
                };
                text = text.replacen(&line(&default), &other, 1);
            }
        }
        text
    }
}

/// Reads the labels of the manager's pods in a template, and returns their indentation. Reads
/// nothing if other lines follow.
fn read_own_labels<'t>(
    project: &ProjectContext,
    lines: &mut (impl Iterator<Item = &'t str> + Clone),
) -> Option<&'t str> {
    let mut ahead = lines.clone();
    let expected = [
        format!("{MANAGER_LABEL}: {MANAGER}"),
        format!("{NAME_LABEL}: {}", project.name_yaml),
    ];
    let mut indent = None;
    for wanted in expected {
        let line = ahead.next()?;
        if line.trim() != wanted {
            return None;
        }
        indent = Some(&line[..line.len() - line.trim_start().len()]);
    }
    *lines = ahead;
    indent
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "\
kind: Deployment
metadata:
  labels:
    control-plane: controller-manager
    app.kubernetes.io/name: shop
  name: controller-manager
spec:
  selector:
    matchLabels:
      control-plane: controller-manager
      app.kubernetes.io/name: shop
  template:
    metadata:
      annotations:
        kubectl.kubernetes.io/default-container: manager
      labels:
        control-plane: controller-manager
        app.kubernetes.io/name: shop
    spec:
      containers:
      - name: manager
      serviceAccountName: controller-manager
---
kind: Service
metadata:
  name: webhook-service
spec:
  selector:
    control-plane: controller-manager
    app.kubernetes.io/name: shop
---
kind: RoleBinding
metadata:
  name: manager-rolebinding
subjects:
- kind: ServiceAccount
  name: controller-manager
---
kind: ServiceMonitor
spec:
  selector:
    matchLabels:
      control-plane: controller-manager
      app.kubernetes.io/name: shop
---
kind: Certificate
spec:
  dnsNames:
  - webhook-service.system.svc
";

    fn rename(names: &OtherNames, path: &str, text: &str) -> String {
        let (project, _) = crate::tests::contexts(false);
        let mut file = Rendered {
            path: path.to_owned(),
            text: text.to_owned(),
            on_exists: crate::OnExists::Owned,
        };
        names.apply(&project, &mut file);
        file.text
    }

    fn name(plain: &str) -> Option<ObjectName> {
        Some(ObjectName {
            plain: plain.to_owned(),
            yaml: plain.to_owned(),
        })
    }

    #[test]
    fn every_name_and_reference_is_replaced() {
        let names = OtherNames {
            container: name("till"),
            deployment: name("deployment"),
            label: name("label"),
            selector: Some(vec![
                ("app".into(), "x".into()),
                ("control-plane".into(), "label".into()),
            ]),
            service_account: name("account"),
            webhook_service: name("hooks"),
            ..OtherNames::default()
        };
        let own = "control-plane: controller-manager\n";
        let mut expected = MANIFEST.to_owned();
        for (before, after) in [
            (
                "    matchLabels:\n      control-plane: controller-manager\n      app.kubernetes.io/name: shop\n  template",
                "    matchLabels:\n      app: x\n      control-plane: label\n  template",
            ),
            (
                "        control-plane: controller-manager\n        app.kubernetes.io/name: shop\n    spec",
                "        control-plane: label\n        app.kubernetes.io/name: shop\n        app: x\n    spec",
            ),
            (
                "  selector:\n    control-plane: controller-manager\n    app.kubernetes.io/name: shop\n",
                "  selector:\n    app: x\n    control-plane: label\n",
            ),
            ("default-container: manager", "default-container: till"),
            ("- name: manager\n", "- name: till\n"),
            (
                "serviceAccountName: controller-manager",
                "serviceAccountName: account",
            ),
            (
                "ServiceAccount\n  name: controller-manager",
                "ServiceAccount\n  name: account",
            ),
            ("  name: controller-manager\nspec", "  name: deployment\nspec"),
            ("name: webhook-service", "name: hooks"),
            ("webhook-service.system", "hooks.system"),
        ] {
            assert_eq!(expected.matches(before).count(), 1, "{before}");
            expected = expected.replacen(before, after, 1);
        }
        let expected = expected.replace(own, "control-plane: label\n");
        assert_eq!(rename(&names, "config/manager/manager.yaml", MANIFEST), expected);
        assert_eq!(rename(&names, "config/samples/a.yaml", MANIFEST), MANIFEST);
        let command = "kubectl logs --selector control-plane=controller-manager\n";
        assert_eq!(
            rename(&names, "Makefile", command),
            "kubectl logs --selector control-plane=label\n"
        );
        let none = OtherNames::default();
        assert_eq!(rename(&none, "config/manager/manager.yaml", MANIFEST), MANIFEST);
    }

    #[test]
    fn namespace_and_prefix_are_replaced_in_the_root() {
        let names = OtherNames {
            name_prefix: name("till-"),
            namespace: name("kitchen"),
            ..OtherNames::default()
        };
        let text = "kind: Kustomization\nnamespace: shop-system\nnamePrefix: shop-\n";
        assert_eq!(
            rename(&names, ROOT, text),
            "kind: Kustomization\nnamespace: kitchen\nnamePrefix: till-\n"
        );
        assert_eq!(rename(&names, "config/crd/kustomization.yaml", text), text);
    }
}

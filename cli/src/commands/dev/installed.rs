//! The objects that the command installs in the cluster, and the objects that they replace.
//!
//! A control plane started by this process disappears with all its objects. In an existing cluster,
//! webhook configurations and conversions of CRDs only call this machine while the command runs, so
//! they are restored afterwards. CRDs stay, because deleting a CRD deletes its objects.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::super::conversions::is_converted;
use super::super::local::LABEL;
use super::rendered::Rendered;
use crate::cluster::{Kubectl, apply, to_list};
use crate::shell::Shell;

/// Options of `kubectl apply`. A separate field manager keeps the fields set by other managers.
const OPTIONS: [&str; 2] = ["--field-manager=rbuilder-dev", "--output=name"];

type Key = (String, String);

pub(super) struct Installed {
    kubectl: Kubectl,
    is_disposable: bool,
    /// The original webhook configurations, or `None` if a configuration did not exist.
    configurations: BTreeMap<Key, Option<Value>>,
    conversions: BTreeMap<String, Value>,
}

impl Installed {
    pub(super) fn new(kubectl: Kubectl, is_disposable: bool) -> Installed {
        Installed {
            kubectl,
            is_disposable,
            configurations: BTreeMap::new(),
            conversions: BTreeMap::new(),
        }
    }

    pub(super) fn apply_crds(&mut self, rendered: &Rendered, shell: &mut Shell) -> Result<()> {
        if rendered.crds.is_empty() {
            return Ok(());
        }
        for crd in rendered.crds.iter().filter(|crd| is_converted(crd)) {
            self.remember_conversion(crd)?;
        }
        let list = to_list(&rendered.crds);
        apply(&self.kubectl, &rendered.crds, &OPTIONS, shell)?;
        self.kubectl.wait_until_established(&list)
    }

    pub(super) fn apply_roles(&self, rendered: &Rendered, shell: &mut Shell) -> Result<()> {
        match rendered.roles.is_empty() {
            true => Ok(()),
            false => apply(&self.kubectl, &rendered.roles, &OPTIONS, shell),
        }
    }

    pub(super) fn apply_configurations(&mut self, rendered: &Rendered, shell: &mut Shell) -> Result<()> {
        let wanted: Vec<Key> = rendered.configurations.iter().map(key_of).collect();
        let is_gone = |key: &&Key| !wanted.contains(key);
        let gone: Vec<Key> = self.configurations.keys().filter(is_gone).cloned().collect();
        for key in gone {
            self.restore_configuration(&key, shell)?;
        }
        if wanted.is_empty() {
            return Ok(());
        }
        for key in wanted {
            self.remember_configuration(key)?;
        }
        apply(&self.kubectl, &rendered.configurations, &OPTIONS, shell)
    }

    /// Restores everything, continuing after errors.
    pub(super) fn restore(&mut self, shell: &mut Shell) -> Result<()> {
        if self.is_disposable {
            return Ok(());
        }
        let mut result = Ok(());
        for key in self.configurations.keys().cloned().collect::<Vec<_>>() {
            result = result.and(self.restore_configuration(&key, shell));
        }
        for (name, conversion) in std::mem::take(&mut self.conversions) {
            let restored = self.set_conversion(&name, &conversion);
            if restored.is_ok() {
                shell.note(&format!("restored the conversion of {name}\n"));
            }
            result = result.and(restored.with_context(|| format!("cannot restore the conversion of {name}")));
        }
        result
    }

    fn remember_configuration(&mut self, key: Key) -> Result<()> {
        if self.configurations.contains_key(&key) {
            return Ok(());
        }
        let mut before = None;
        if !self.is_disposable {
            before = self.get(&key.0, &key.1)?;
            // Applying ours on top would give a configuration with both the deployed manager's
            // Service and our URL, which the API server rejects.
            if before.is_some() {
                self.kubectl
                    .read(&["delete", &key.0, &key.1, "--ignore-not-found"], "")?;
            }
        }
        let before = before.filter(|before| !is_left_over(before));
        self.configurations.insert(key, before);
        Ok(())
    }

    fn remember_conversion(&mut self, crd: &Value) -> Result<()> {
        let name = name_of(crd);
        if self.is_disposable || self.conversions.contains_key(name) {
            return Ok(());
        }
        let before = self.get("CustomResourceDefinition", name)?;
        let exists = before.is_some();
        let before = before.and_then(|before| before.pointer("/spec/conversion").cloned());
        let none = || json!({ "strategy": "None" });
        self.conversions
            .insert(name.to_owned(), before.unwrap_or_else(none));
        match exists {
            // Replace rather than merge: a conversion with both a Service and a URL would be
            // rejected as well.
            true => self.set_conversion(name, &crd["spec"]["conversion"]),
            false => Ok(()),
        }
    }

    fn set_conversion(&self, name: &str, conversion: &Value) -> Result<()> {
        let patch = json!([{ "op": "add", "path": "/spec/conversion", "value": conversion }]).to_string();
        let arguments = ["patch", "crd", name, "--type=json", "-p", &patch];
        self.kubectl.read(&arguments, "").map(drop)
    }

    fn restore_configuration(&mut self, key: &Key, shell: &mut Shell) -> Result<()> {
        let (kind, name) = key;
        let Some(before) = self.configurations.remove(key) else {
            return Ok(());
        };
        let restored = match before {
            None => self
                .kubectl
                .read(&["delete", kind, name, "--ignore-not-found"], ""),
            Some(mut before) => {
                strip_server_fields(&mut before);
                // Delete ours first. It may be missing if it could not be applied.
                self.kubectl
                    .read(&["delete", kind, name, "--ignore-not-found"], "")
                    .and_then(|_| self.kubectl.read(&["create", "-f", "-"], &before.to_string()))
            }
        };
        restored.with_context(|| format!("cannot restore {kind} {name}"))?;
        shell.note(&format!("restored {kind} {name}\n"));
        Ok(())
    }

    fn get(&self, kind: &str, name: &str) -> Result<Option<Value>> {
        let text = self
            .kubectl
            .read(&["get", kind, name, "--ignore-not-found", "--output=json"], "")?;
        match text.trim() {
            "" => Ok(None),
            text => Ok(Some(
                serde_json::from_str(text).context("the output of kubectl is not JSON")?,
            )),
        }
    }
}

/// Whether a configuration was left behind by an earlier run. It calls a process that is gone, so
/// don't restore it.
fn is_left_over(configuration: &Value) -> bool {
    configuration["metadata"]["labels"][LABEL.0] == LABEL.1
}

/// Removes fields set by the API server, which would otherwise reject the saved object.
fn strip_server_fields(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in [
            "resourceVersion",
            "uid",
            "generation",
            "creationTimestamp",
            "managedFields",
        ] {
            metadata.remove(field);
        }
    }
}

fn key_of(object: &Value) -> Key {
    let kind = object["kind"].as_str().unwrap_or_default();
    (kind.to_owned(), name_of(object).to_owned())
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

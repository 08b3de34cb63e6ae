//! Reads the manifests in `config/` for a chart.
//!
//! Only the parts of kustomize that scaffolds use are supported: resources, components and patches,
//! in a component without JSON patches. We warn about any other field. The component of a feature is read even
//! if `config/default` doesn't list it, because in the chart a value turns the feature on and off.
//!
//! The transformers in `config/rbac/namespaces` restore the namespaces of some objects. Charts and
//! bundles keep these objects in their namespaces (`kept_namespaces`).

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use serde_json::Value;

use super::sharding;
use rbuilder_project::overlay::{Kustomization, Matches, Patch, apply_patch, resolve_entry};
use rbuilder_project::plan::Plan;
use rbuilder_project::project::ObjectNames;
use rbuilder_project::tree::Tree;
use rbuilder_yaml::describe_failure;

const ROOT: &str = "config/default";
const DEEPEST: usize = 16;

/// A feature that is toggled by a value of the chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Feature {
    pub(crate) folder: &'static str,
    pub(crate) value: &'static str,
    /// Conditions for its objects and patches, all of which must hold.
    conditions: &'static [Condition],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Condition {
    pub(crate) value: &'static str,
    /// Required state of the value.
    pub(crate) is_true: bool,
}

pub(super) const fn on(value: &'static str) -> Condition {
    Condition { value, is_true: true }
}

impl Condition {
    pub(crate) fn inverse(self) -> Condition {
        Condition {
            is_true: !self.is_true,
            ..self
        }
    }
}

pub(super) const METRICS: &str = "metrics.enabled";
pub(super) const MONITOR: &str = "metrics.serviceMonitor.enabled";
/// Alerts are in the same component as the ServiceMonitor, but have their own value.
pub(super) const RULES: &str = "metrics.prometheusRule.enabled";
pub(crate) const METRICS_CERTIFICATE: &str = "metrics.certManager.enabled";
const POLICIES: &str = "networkPolicy.enabled";
pub(crate) const WEBHOOKS: &str = "webhooks.enabled";
pub(crate) const CERTIFICATES: &str = "webhooks.certManager.enabled";
pub(crate) const SHARDING: &str = "sharding.enabled";
/// Turns on the chart's own PodDisruptionBudget, which replaces those in the manifests.
pub(super) const BUDGET: &str = "podDisruptionBudget.enabled";

/// Features in the order in which their patches apply.
pub(crate) const FEATURES: &[Feature] = &[
    Feature {
        folder: "config/metrics",
        value: METRICS,
        conditions: &[on(METRICS)],
    },
    Feature {
        folder: "config/prometheus",
        value: MONITOR,
        conditions: &[on(METRICS), on(MONITOR)],
    },
    Feature {
        folder: "config/metrics-certificate",
        value: METRICS_CERTIFICATE,
        conditions: &[on(METRICS), on(METRICS_CERTIFICATE)],
    },
    Feature {
        folder: "config/network-policy",
        value: POLICIES,
        conditions: &[on(POLICIES)],
    },
    Feature {
        folder: "config/webhook",
        value: WEBHOOKS,
        conditions: &[on(WEBHOOKS)],
    },
    Feature {
        folder: DISABLED,
        value: WEBHOOKS,
        conditions: &[Condition {
            value: WEBHOOKS,
            is_true: false,
        }],
    },
    Feature {
        folder: "config/certmanager",
        value: CERTIFICATES,
        conditions: &[on(WEBHOOKS), on(CERTIFICATES)],
    },
    Feature {
        folder: "config/sharding",
        value: SHARDING,
        conditions: &[on(SHARDING)],
    },
];

/// The component that keeps the manager from serving webhooks.
const DISABLED: &str = "config/webhook/disabled";
/// Tell kustomize where names are referenced. Our templates already take care of that.
const NAMES: [&str; 2] = ["config/webhook/names", "config/metrics-certificate/names"];
/// Transformers in this directory keep roles and bindings in their namespaces.
const KEPT_FOLDER: &str = "config/rbac/namespaces";
/// File with these transformers.
pub const KEPT: &str = "config/rbac/namespaces/transformers.yaml";

/// Namespaces in which the transformers keep roles and bindings. Empty if they can't be parsed.
pub fn read_kept_namespaces(transformers: &str) -> BTreeSet<String> {
    let documents = rbuilder_yaml::parse_documents(transformers).unwrap_or_default();
    let namespaces = documents
        .iter()
        .filter(|document| document["kind"] == "PatchTransformer")
        .filter_map(|document| document["target"]["namespace"].as_str());
    namespaces.map(str::to_owned).collect()
}

#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) path: String,
    /// The object with all unconditional patches applied.
    pub(crate) value: Value,
    /// Conditions for rendering the object, all of which must hold.
    pub(crate) conditions: Vec<Condition>,
    pub(crate) patches: Vec<(Vec<Condition>, Value)>,
}

impl Object {
    pub(crate) fn kind(&self) -> &str {
        self.value["kind"].as_str().unwrap_or_default()
    }

    pub(crate) fn name(&self) -> &str {
        self.value["metadata"]["name"].as_str().unwrap_or_default()
    }
}

/// Content of `config/`: objects to deploy, and optional features.
#[derive(Debug, Default)]
pub(crate) struct Config {
    pub(crate) objects: Vec<Object>,
    pub(crate) namespace: String,
    pub(crate) kept_namespaces: BTreeSet<String>,
    /// Names of the manager's objects.
    pub(crate) names: ObjectNames,
    pub(crate) features: Vec<Feature>,
    /// Values of the features that are enabled by default.
    pub(crate) enabled: BTreeSet<&'static str>,
    /// Whether the sharding component turns off the leader election argument.
    pub(crate) turns_off_leader: bool,
    /// Warnings about unsupported kustomize fields, as message and help.
    pub(crate) warnings: Vec<(String, String)>,
}

impl Config {
    pub(crate) fn read(plan: &Plan, tree: &Tree) -> Result<Config> {
        let mut reader = Reader {
            plan,
            tree,
            config: Config::default(),
            visited: BTreeSet::new(),
        };
        let Some(root) = reader.read_kustomization(ROOT)? else {
            bail!(
                "{ROOT}/kustomization.yaml does not exist: run `rbuilder update --restore {ROOT}/kustomization.yaml`"
            );
        };
        let project = plan.read_project(tree)?;
        let names = project.map(|project| project.known.rbuilder.names);
        reader.config.names = names.unwrap_or_default();
        reader.config.namespace = root.namespace().unwrap_or_default().to_owned();
        let transformers = reader.resolve_entries(&root, "transformers");
        if transformers.iter().any(|entry| entry == KEPT_FOLDER) {
            let text = plan.read(tree, KEPT)?.unwrap_or_default();
            reader.config.kept_namespaces = read_kept_namespaces(&text);
        }
        let known = |entry: &String| FEATURES.iter().any(|feature| feature.folder == entry);
        let listed = reader.resolve_entries(&root, "components");
        let (features, others): (Vec<String>, Vec<String>) = listed.into_iter().partition(known);
        reader.add_resources(&root, &[], 0)?;
        for feature in FEATURES {
            reader.add_feature(feature, features.iter().any(|entry| entry == feature.folder))?;
        }
        for folder in others {
            reader.add(&folder, &[], 1)?;
        }
        // As in kustomize, these patches also apply to objects of components.
        reader.add_patches(&root, &[])?;
        reader.config.objects.retain(|object| !object.value.is_null());
        Ok(reader.config)
    }

    /// Reads the samples listed in the kustomization in `config/samples`. Empty if there is none.
    pub(crate) fn read_samples(plan: &Plan, tree: &Tree) -> Result<Vec<Value>> {
        const SAMPLES: &str = "config/samples";
        let mut reader = Reader {
            plan,
            tree,
            config: Config::default(),
            visited: BTreeSet::new(),
        };
        if reader.read_kustomization(SAMPLES)?.is_some() {
            reader.add(SAMPLES, &[], 1)?;
        }
        let objects = reader.config.objects.into_iter();
        Ok(objects
            .map(|object| object.value)
            .filter(|value| !value.is_null())
            .collect())
    }

    /// The namespace in which kustomize keeps a role or binding. `None` for the manager's namespace
    /// and for other kinds.
    pub(crate) fn kept_namespace<'v>(&self, object: &'v Value) -> Option<&'v str> {
        let is_role = ["Role", "RoleBinding"].iter().any(|kind| object["kind"] == *kind);
        let namespace = object["metadata"]["namespace"].as_str()?;
        (is_role && self.kept_namespaces.contains(namespace)).then_some(namespace)
    }

    pub(crate) fn has(&self, value: &str) -> bool {
        self.features.iter().any(|feature| feature.value == value)
    }
}

struct Reader<'a> {
    plan: &'a Plan,
    tree: &'a Tree,
    config: Config,
    visited: BTreeSet<String>,
}

impl Reader<'_> {
    fn add_feature(&mut self, feature: &Feature, is_enabled: bool) -> Result<()> {
        if self.read_kustomization(feature.folder)?.is_none() {
            return Ok(());
        }
        if feature.folder != DISABLED {
            self.config.features.push(*feature);
            if is_enabled {
                self.config.enabled.insert(feature.value);
            }
        }
        self.add(feature.folder, feature.conditions, 1)
    }

    fn read_kustomization(&self, folder: &str) -> Result<Option<Kustomization>> {
        Kustomization::find(folder, |path| self.plan.read(self.tree, path))
    }

    fn add(&mut self, entry: &str, conditions: &[Condition], depth: usize) -> Result<()> {
        if depth > DEEPEST {
            bail!("{entry}: kustomizations refer to each other more than {DEEPEST} levels deep");
        }
        if !self.visited.insert(entry.to_owned()) {
            return Ok(());
        }
        if let Some(text) = self.read_file(entry)? {
            return self.add_file(entry, &text, conditions);
        }
        match self.read_kustomization(entry)? {
            Some(found) => {
                self.add_resources(&found, conditions, depth)?;
                self.add_patches(&found, conditions)
            }
            None => bail!("{entry} does not exist, but a kustomization in config/ lists it"),
        }
    }

    /// Reads a file. A path without an extension is a directory.
    fn read_file(&self, path: &str) -> Result<Option<String>> {
        let name = path.rsplit('/').next().unwrap_or(path);
        match name.contains('.') {
            true => self.plan.read(self.tree, path),
            false => Ok(None),
        }
    }

    fn add_file(&mut self, path: &str, text: &str, conditions: &[Condition]) -> Result<()> {
        for value in parse_objects(path, text)? {
            self.config.objects.push(Object {
                path: path.to_owned(),
                value,
                conditions: conditions.to_vec(),
                patches: Vec::new(),
            });
        }
        Ok(())
    }

    /// Adds the objects in a kustomization. Patches are left to the caller, which may have more
    /// objects to add first.
    fn add_resources(&mut self, found: &Kustomization, conditions: &[Condition], depth: usize) -> Result<()> {
        self.warn_unknown(found, conditions);
        // Components of the root are features, which `read` adds in its own order.
        let components = (found.folder() != ROOT).then_some("components");
        for key in ["resources", "bases"].into_iter().chain(components) {
            for entry in self.resolve_entries(found, key) {
                self.add(&entry, conditions, depth + 1)?;
            }
        }
        Ok(())
    }

    fn add_patches(&mut self, found: &Kustomization, conditions: &[Condition]) -> Result<()> {
        let is_leader_off = found.list("replacements").iter().any(sharding::turns_off_leader);
        self.config.turns_off_leader |= is_leader_off && conditions == [on(SHARDING)];
        let mut patches = found.patches().into_iter();
        patches.try_for_each(|patch| self.add_patch(&patch, conditions))
    }

    fn resolve_entries(&mut self, found: &Kustomization, key: &str) -> Vec<String> {
        let mut paths = Vec::new();
        for entry in found.entries(key) {
            match resolve_entry(found.folder(), entry) {
                Some(path) => paths.push(path),
                None => self.warn(
                    format!(
                        "`{entry}` in {} is not in the project, so it is not in the chart",
                        found.path
                    ),
                    "make it a dependency in Chart.yaml, or install it separately",
                ),
            }
        }
        paths
    }

    fn add_patch(&mut self, patch: &Patch, conditions: &[Condition]) -> Result<()> {
        let text = match &patch.text {
            Some(text) => text.clone(),
            None => match self.plan.read(self.tree, &patch.path)? {
                Some(text) => text,
                None => bail!(
                    "{} does not exist, but a kustomization in config/ lists it",
                    patch.path
                ),
            },
        };
        for document in parse_documents(&patch.path, &text)? {
            if !self.apply_patch(patch, &document, conditions) {
                self.warn(
                    format!("a patch in {} is not part of the chart", patch.path),
                    "change the manifest that it patches, or the template in the chart: later changes are merged with yours",
                );
            }
        }
        Ok(())
    }

    /// Applies a patch to the selected objects. Returns false if it can't be, or if there should be
    /// some objects but aren't.
    fn apply_patch(&mut self, patch: &Patch, document: &Value, conditions: &[Condition]) -> bool {
        if document.is_array() && !conditions.is_empty() && !is_tls_patch(document) {
            return false;
        }
        // A chart has one namespace. `doctor` reports patches for another one.
        let selector = patch.selector(document).in_any_namespace();
        let mut count = 0;
        for object in self
            .config
            .objects
            .iter_mut()
            .filter(|object| !object.value.is_null())
        {
            match selector.matches(&object.value) {
                Matches::No => continue,
                Matches::Unknown => return false,
                Matches::Yes => count += 1,
            }
            if apply(object, document, conditions).is_err() {
                return false;
            }
        }
        // A patch with a selector, e.g. for mutating webhooks, may match nothing.
        count > 0 || patch.has_target()
    }

    fn warn_unknown(&mut self, found: &Kustomization, conditions: &[Condition]) {
        const KNOWN: [&str; 10] = [
            "apiVersion",
            "bases",
            "components",
            "configurations",
            "kind",
            "metadata",
            "patches",
            "patchesJson6902",
            "patchesStrategicMerge",
            "resources",
        ];
        const KNOWN_IN_ROOT: [&str; 2] = ["namespace", "namePrefix"];
        for key in found.keys() {
            let is_known = KNOWN.contains(&key)
                || (found.folder() == ROOT && KNOWN_IN_ROOT.contains(&key))
                || (key == "transformers"
                    && self
                        .resolve_entries(found, key)
                        .iter()
                        .all(|entry| NAMES.contains(&entry.as_str()) || entry == KEPT_FOLDER))
                || (key == "replacements"
                    && conditions == [on(SHARDING)]
                    && found.list(key).iter().all(sharding::turns_off_leader));
            if !is_known {
                self.warn(
                    format!("`{key}` in {} is not part of the chart", found.path),
                    "set the same in values.yaml or in a template of the chart: later changes are merged with yours",
                );
            }
        }
    }

    fn warn(&mut self, message: String, help: &str) {
        let warning = (message, help.to_owned());
        if !self.config.warnings.contains(&warning) {
            self.config.warnings.push(warning);
        }
    }
}

/// If a JSON patch operation sets the TLS settings of a ServiceMonitor endpoint, returns the
/// endpoint's index and the settings.
pub(crate) fn read_tls_operation(operation: &Value) -> Option<(usize, &Value)> {
    let path = operation["path"].as_str()?.strip_prefix("/spec/endpoints/")?;
    let endpoint = path.strip_suffix("/tlsConfig")?.parse().ok()?;
    let is_set = ["add", "replace"].contains(&operation["op"].as_str()?);
    is_set.then(|| (endpoint, &operation["value"]))
}

/// Whether a JSON patch only sets TLS settings, which is all we support.
fn is_tls_patch(patch: &Value) -> bool {
    let operations = patch.as_array();
    operations.is_some_and(|all| {
        all.iter()
            .all(|operation| read_tls_operation(operation).is_some())
    })
}

/// Applies a patch to an object, or records it there if it is conditional.
fn apply(object: &mut Object, patch: &Value, conditions: &[Condition]) -> Result<(), String> {
    let is_removal = patch["$patch"] == "delete";
    match (conditions.last(), is_removal) {
        (None, true) => object.value = Value::Null,
        (None, false) => apply_patch(&mut object.value, patch)?,
        // Only invert the last condition: a component's conditions start with those of the component
        // that it extends.
        (Some(last), true) => object.conditions.push(last.inverse()),
        (Some(_), false) => object.patches.push((conditions.to_vec(), patch.clone())),
    }
    Ok(())
}

fn parse_documents(path: &str, text: &str) -> Result<Vec<Value>> {
    rbuilder_yaml::parse_documents(text).map_err(|error| describe_failure(path, text, &error))
}

fn parse_objects(path: &str, text: &str) -> Result<Vec<Value>> {
    let documents = parse_documents(path, text)?;
    let documents: Vec<Value> = documents
        .into_iter()
        .flat_map(rbuilder_yaml::list_items)
        .collect();
    let is_object = |value: &Value| value["kind"].is_string() && value["metadata"]["name"].is_string();
    match documents.iter().all(is_object) {
        true => Ok(documents),
        false => bail!("expected objects with `kind` and `metadata.name` in {path}"),
    }
}

//! Reads the manifests in `config/` for a chart.
//!
//! Only the parts of kustomize that scaffolds use are supported: resources, components and
//! strategic merge patches. We warn about any other field. The component of a feature is read even
//! if `config/default` doesn't list it, because in the chart a value turns the feature on and off.
//!
//! The transformers in `config/rbac/namespaces` restore the namespaces of some objects. Charts and
//! bundles keep these objects in their namespaces (`kept_namespaces`).

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use serde_json::{Map, Value};

use super::{sharding, strategic};
use rbuilder_kubernetes::selector::LabelSelector;
use rbuilder_project::edit::kustomization::{self, resolve_entry};
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
        let namespace = root.get("namespace").and_then(Value::as_str);
        reader.config.namespace = namespace.unwrap_or_default().to_owned();
        let transformers = reader.resolve_entries(ROOT, &root, "transformers");
        if transformers.iter().any(|entry| entry == KEPT_FOLDER) {
            let text = plan.read(tree, KEPT)?.unwrap_or_default();
            reader.config.kept_namespaces = read_kept_namespaces(&text);
        }
        let known = |entry: &String| FEATURES.iter().any(|feature| feature.folder == entry);
        let listed = reader.resolve_entries(ROOT, &root, "components");
        let (features, others): (Vec<String>, Vec<String>) = listed.into_iter().partition(known);
        reader.add_resources(ROOT, &root, &[], 0)?;
        for feature in FEATURES {
            reader.add_feature(feature, features.iter().any(|entry| entry == feature.folder))?;
        }
        for folder in others {
            reader.add(&folder, &[], 1)?;
        }
        // As in kustomize, these patches also apply to objects of components.
        reader.add_patches(ROOT, &root, &[])?;
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

    fn read_kustomization(&self, folder: &str) -> Result<Option<Map<String, Value>>> {
        for name in kustomization::FILE_NAMES {
            let path = format!("{folder}/{name}");
            let Some(text) = self.plan.read(self.tree, &path)? else {
                continue;
            };
            let parsed = serde_saphyr::from_str(&text);
            return Ok(Some(
                parsed.map_err(|error| describe_failure(&path, &text, &error))?,
            ));
        }
        Ok(None)
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
            Some(map) => {
                self.add_resources(entry, &map, conditions, depth)?;
                self.add_patches(entry, &map, conditions)
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
    fn add_resources(
        &mut self,
        folder: &str,
        map: &Map<String, Value>,
        conditions: &[Condition],
        depth: usize,
    ) -> Result<()> {
        self.warn_unknown(folder, map, conditions);
        // Components of the root are features, which `read` adds in its own order.
        let components = if folder == ROOT { None } else { Some("components") };
        for key in ["resources"].into_iter().chain(components) {
            for entry in self.resolve_entries(folder, map, key) {
                self.add(&entry, conditions, depth + 1)?;
            }
        }
        Ok(())
    }

    fn add_patches(
        &mut self,
        folder: &str,
        map: &Map<String, Value>,
        conditions: &[Condition],
    ) -> Result<()> {
        let is_leader_off = list(map, "replacements").iter().any(sharding::turns_off_leader);
        self.config.turns_off_leader |= is_leader_off && conditions == [on(SHARDING)];
        let mut patches = list(map, "patches").iter();
        patches.try_for_each(|patch| self.add_patch(folder, patch, conditions))
    }

    fn resolve_entries(&mut self, folder: &str, map: &Map<String, Value>, key: &str) -> Vec<String> {
        let mut paths = Vec::new();
        for entry in list(map, key).iter().filter_map(Value::as_str) {
            match resolve_entry(folder, entry) {
                Some(path) => paths.push(path),
                None => self.warn(
                    format!("`{entry}` in {folder}/kustomization.yaml is not in the project, so it is not in the chart"),
                    "make it a dependency in Chart.yaml, or install it separately",
                ),
            }
        }
        paths
    }

    fn add_patch(&mut self, folder: &str, entry: &Value, conditions: &[Condition]) -> Result<()> {
        let inline = format!("{folder}/kustomization.yaml");
        let (path, text) = match (entry["path"].as_str(), entry["patch"].as_str()) {
            (Some(file), _) => match resolve_entry(folder, file) {
                Some(path) => (
                    path.clone(),
                    self.plan.read(self.tree, &path)?.unwrap_or_default(),
                ),
                None => (inline, String::new()),
            },
            (None, Some(text)) => (inline, text.to_owned()),
            (None, None) => return Ok(()),
        };
        for patch in parse_documents(&path, &text)? {
            let is_applied = match Target::of(entry, &patch) {
                Some(target) if patch.is_object() || is_tls_patch(&patch) => {
                    self.apply_patch(&target, &patch, conditions)
                }
                _ => false,
            };
            if !is_applied {
                self.warn(
                    format!("a patch in {path} is not part of the chart"),
                    "change the manifest that it patches, or the template in the chart: later changes are merged with yours",
                );
            }
        }
        Ok(())
    }

    /// Applies a patch to the selected objects. Returns false if there should be some but aren't.
    fn apply_patch(&mut self, target: &Target, patch: &Value, conditions: &[Condition]) -> bool {
        let objects = self.config.objects.iter_mut();
        let selected = objects.filter(|object| target.selects(&object.value));
        let count = selected.map(|object| apply(object, patch, conditions)).count();
        // A patch with a selector, e.g. for mutating webhooks, may match nothing.
        count > 0 || target.is_selector
    }

    fn warn_unknown(&mut self, folder: &str, map: &Map<String, Value>, conditions: &[Condition]) {
        const KNOWN: [&str; 7] = [
            "apiVersion",
            "kind",
            "metadata",
            "resources",
            "components",
            "patches",
            "configurations",
        ];
        const KNOWN_IN_ROOT: [&str; 2] = ["namespace", "namePrefix"];
        for (key, value) in map {
            let is_empty = value.as_array().is_some_and(Vec::is_empty) || value.is_null();
            let is_known = KNOWN.contains(&key.as_str())
                || (folder == ROOT && KNOWN_IN_ROOT.contains(&key.as_str()))
                || (key == "transformers"
                    && self
                        .resolve_entries(folder, map, key)
                        .iter()
                        .all(|entry| NAMES.contains(&entry.as_str()) || entry == KEPT_FOLDER))
                || (key == "replacements"
                    && conditions == [on(SHARDING)]
                    && list(map, key).iter().all(sharding::turns_off_leader));
            if !is_known && !is_empty {
                self.warn(
                    format!("`{key}` in {folder}/kustomization.yaml is not part of the chart"),
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

struct Target {
    kind: Option<String>,
    name: Option<String>,
    labels: LabelSelector,
    /// Whether the kustomization entry has a selector. Otherwise the patch itself names an object.
    is_selector: bool,
}

impl Target {
    /// Returns `None` for an unsupported selector.
    fn of(entry: &Value, patch: &Value) -> Option<Target> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let Some(target) = entry["target"].as_object() else {
            return Some(Target {
                kind: text(&patch["kind"]),
                name: text(&patch["metadata"]["name"]),
                labels: LabelSelector::default(),
                is_selector: false,
            });
        };
        let mut chosen = Target {
            kind: None,
            name: None,
            labels: LabelSelector::default(),
            is_selector: true,
        };
        for (key, value) in target {
            match (key.as_str(), value.as_str()?) {
                ("kind", kind) => chosen.kind = Some(kind.to_owned()),
                ("name", name) => chosen.name = Some(name.to_owned()),
                ("labelSelector", selector) => chosen.labels = LabelSelector::parse(selector).ok()?,
                ("group" | "version", _) => {}
                _ => return None,
            }
        }
        Some(chosen)
    }

    fn selects(&self, object: &Value) -> bool {
        let is = |wanted: &Option<String>, found: &Value| {
            wanted.as_ref().is_none_or(|wanted| found == wanted.as_str())
        };
        let metadata = &object["metadata"];
        is(&self.kind, &object["kind"])
            && is(&self.name, &metadata["name"])
            && self.labels.matches_map(&metadata["labels"])
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
fn apply(object: &mut Object, patch: &Value, conditions: &[Condition]) {
    if let (Some(operations), []) = (patch.as_array(), conditions) {
        apply_tls_operations(&mut object.value, operations);
        return;
    }
    let is_removal = patch["$patch"] == "delete";
    if conditions.is_empty() {
        if is_removal {
            object.value = Value::Null;
        } else {
            let mut patch = patch.clone();
            // With an explicit target, the identity in the patch may differ.
            for key in ["apiVersion", "kind"] {
                patch[key] = object.value[key].clone();
            }
            patch["metadata"]["name"] = object.value["metadata"]["name"].clone();
            strategic::merge(&mut object.value, &patch);
        }
        return;
    }
    if is_removal {
        // Only invert the last condition: a component's conditions start with those of the
        // component that it extends.
        let last = conditions.last().map(|condition| condition.inverse());
        object.conditions.extend(last);
        return;
    }
    object.patches.push((conditions.to_vec(), patch.clone()));
}

pub(crate) fn apply_tls_operations(object: &mut Value, operations: &[Value]) {
    for (endpoint, settings) in operations.iter().filter_map(read_tls_operation) {
        if let Some(endpoint) = object["spec"]["endpoints"].get_mut(endpoint) {
            endpoint["tlsConfig"] = settings.clone();
        }
    }
}

fn list<'a>(map: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    map.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
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

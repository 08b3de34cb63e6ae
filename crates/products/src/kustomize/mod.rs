//! Builds a kustomization in memory, to find out before a deployment what kustomize would refuse,
//! and which references it would leave without an object.
//!
//! Supports what scaffolds and most projects use: resources, components, patches in all notations,
//! replacements, generators. Where a kustomization has something else that changes objects, such as
//! a remote resource, the build is incomplete, and no reference counts as broken.

pub mod json_patch;
mod references;
mod selector;

use std::collections::BTreeSet;

use anyhow::Result;
use rbuilder_diagnostic::suggest::is_misspelling;
use rbuilder_kubernetes::gvk;
use rbuilder_project::edit::kustomization::{FILE_NAMES, resolve_entry};
use rbuilder_yaml::{describe_failure, is_yaml, list_items, parse_documents};
use serde_json::{Map, Value, json};

use self::json_patch::apply_json_patch;
use self::selector::{Matches, Selector};
use crate::chart::strategic;

/// Kustomization that `deploy` applies.
pub const ROOT: &str = "config/default";
const DEEPEST: usize = 16;
const MOST_FILES: usize = 5_000;
/// Kinds that run pods.
const WORKLOADS: [&str; 7] = [
    "CronJob",
    "DaemonSet",
    "Deployment",
    "Job",
    "Pod",
    "ReplicaSet",
    "StatefulSet",
];

/// Something in a kustomization that can't be deployed as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// File with the fault.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
    /// Whether kustomize or the API server fails, or the deployment can't work. Otherwise another
    /// project may have what is missing.
    pub is_error: bool,
}

/// An object of a kustomization, with all patches applied.
#[derive(Clone, Debug)]
struct Object {
    path: String,
    value: Value,
}

impl Object {
    fn kind(&self) -> &str {
        self.value["kind"].as_str().unwrap_or_default()
    }

    fn name(&self) -> &str {
        self.value["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// What must be unique in a kustomization.
    fn id(&self) -> (String, String, String, String) {
        let api_version = self.value["apiVersion"].as_str().unwrap_or_default();
        let group = gvk::group_of(api_version);
        let namespace = self.value["metadata"]["namespace"].as_str();
        (
            group.to_owned(),
            self.kind().to_owned(),
            namespace_of(namespace).to_owned(),
            self.name().to_owned(),
        )
    }
}

/// For kustomize, objects without a namespace are in `default`.
fn namespace_of(namespace: Option<&str>) -> &str {
    namespace.unwrap_or("default")
}

/// Message about a deployment that runs nothing.
pub const NO_WORKLOAD: &str = "config/default has no Deployment: it deploys no manager";

/// Reads a file. Fails if it exists but can't be read; the build is incomplete then.
pub type Read<'a> = &'a dyn Fn(&str) -> Result<Option<String>>;

/// Finds what prevents `config/default` from being deployed: what kustomize refuses or, if it builds
/// the objects, references to missing ones.
pub fn find_faults(read: Read<'_>) -> Vec<Fault> {
    let (faults, references) = find_each(read);
    faults.into_iter().chain(references).collect()
}

/// Like [`find_faults`], separately: what kustomize refuses, then references to missing objects.
pub fn find_each(read: Read<'_>) -> (Vec<Fault>, Vec<Fault>) {
    let mut build = Build {
        read,
        faults: Vec::new(),
        files: 0,
        is_incomplete: false,
        root: Map::new(),
    };
    let mut objects = Vec::new();
    build.add_folder(ROOT, &mut objects, 0);
    let has_workload = objects.iter().any(|object| WORKLOADS.contains(&object.kind()));
    if !build.is_incomplete && !has_workload && build.faults.iter().all(|fault| !fault.is_error) {
        build.faults.push(Fault {
            path: format!("{ROOT}/{}", FILE_NAMES[0]),
            message: NO_WORKLOAD.to_owned(),
            help: "list `../manager` in `resources`, and manager.yaml in config/manager/kustomization.yaml"
                .to_owned(),
            is_error: false,
        });
    }
    let mut references = Vec::new();
    if !build.is_incomplete && build.faults.iter().all(|fault| !fault.is_error) {
        let prefix = build.root.get("namePrefix").and_then(Value::as_str);
        let namespace = build.root.get("namespace").and_then(Value::as_str);
        references::check(&objects, prefix.unwrap_or_default(), namespace, &mut references);
    }
    (build.faults, references)
}

struct Build<'a> {
    read: Read<'a>,
    faults: Vec<Fault>,
    files: usize,
    is_incomplete: bool,
    /// The outermost kustomization.
    root: Map<String, Value>,
}

impl Build<'_> {
    fn fault(&mut self, path: &str, message: String, help: &str) {
        if self.is_incomplete {
            return;
        }
        let fault = Fault {
            path: path.to_owned(),
            message,
            help: help.to_owned(),
            is_error: true,
        };
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    fn read(&mut self, path: &str) -> Option<String> {
        match (self.read)(path) {
            Ok(text) => text,
            Err(_) => {
                self.is_incomplete = true;
                None
            }
        }
    }

    fn find_kustomization(&mut self, folder: &str) -> Option<(String, String)> {
        let mut paths = FILE_NAMES.iter().map(|name| format!("{folder}/{name}"));
        paths.find_map(|path| self.read(&path).map(|text| (path, text)))
    }

    fn parse(&mut self, path: &str, text: &str) -> Vec<Value> {
        match parse_documents(text) {
            Ok(documents) => documents,
            Err(error) => {
                let message = format!("{:#}", describe_failure(path, text, &error));
                self.fault(path, message, "correct the file");
                Vec::new()
            }
        }
    }

    /// Adds the objects of a directory to those of the kustomization that lists it.
    fn add_folder(&mut self, folder: &str, objects: &mut Vec<Object>, depth: usize) {
        let Some((list, text)) = self.find_kustomization(folder) else {
            return self.fault(
                folder,
                format!("{folder} has no kustomization"),
                "add one, or remove the entry",
            );
        };
        let documents = self.parse(&list, &text);
        let Some(Value::Object(map)) = documents.into_iter().next() else {
            return;
        };
        let is_component = map.get("kind").is_some_and(|kind| kind == "Component");
        if depth == 0 {
            self.root.clone_from(&map);
        } else if ["namePrefix", "nameSuffix", "namespace"]
            .iter()
            .any(|key| map.contains_key(*key))
        {
            self.is_incomplete = true;
        }
        let unknown = [
            "helmCharts",
            "helmChartInflationGenerator",
            "generators",
            "nameSuffix",
            "vars",
        ];
        self.is_incomplete |= unknown.iter().any(|key| map.contains_key(*key));
        if is_component {
            return self.add_contents(folder, &list, &map, objects, depth);
        }
        // Patches only apply to the objects of their own kustomization.
        let mut own = Vec::new();
        self.add_contents(folder, &list, &map, &mut own, depth);
        for object in own {
            self.add_object(object, objects);
        }
    }

    fn add_contents(
        &mut self,
        folder: &str,
        list: &str,
        map: &Map<String, Value>,
        objects: &mut Vec<Object>,
        depth: usize,
    ) {
        for key in ["resources", "bases", "components"] {
            for entry in entries(map, key) {
                self.add_entry(folder, list, &entry, objects, depth);
            }
        }
        add_generated(list, map, objects);
        self.add_patches(folder, list, map, objects);
        let inline = map.get("replacements").and_then(Value::as_array);
        for replacement in inline.into_iter().flatten() {
            self.check_replacement(list, replacement, objects);
        }
        for entry in entries(map, "transformers") {
            self.add_transformers(folder, &entry, objects);
        }
    }

    fn add_entry(&mut self, folder: &str, list: &str, entry: &str, objects: &mut Vec<Object>, depth: usize) {
        let Some(path) = resolve_entry(folder, entry).filter(|_| !is_remote(entry)) else {
            self.is_incomplete = true;
            return;
        };
        self.files += 1;
        if depth > DEEPEST || self.files > MOST_FILES {
            self.is_incomplete = true;
            return;
        }
        let name = path.rsplit('/').next().unwrap_or(&path);
        let text = if name.contains('.') {
            self.read(&path)
        } else {
            None
        };
        match text {
            Some(_) if objects.iter().any(|object| object.path == path) => self.fault(
                list,
                format!("`{entry}` is included twice: kustomize fails"),
                "remove one of the entries that include it",
            ),
            Some(text) => {
                for value in self.read_objects(&path, &text) {
                    let path = path.clone();
                    self.add_object(Object { path, value }, objects);
                }
            }
            None if self.find_kustomization(&path).is_some() => self.add_folder(&path, objects, depth + 1),
            None => self.fault(
                list,
                format!("this kustomization names `{entry}`, but {path} does not exist"),
                "correct the entry, or remove it",
            ),
        }
    }

    fn read_objects(&mut self, path: &str, text: &str) -> Vec<Value> {
        // The schemas of CRDs refer to nothing, and are by far the longest manifests.
        let is_crd = text.matches("\nkind: CustomResourceDefinition\n").count() == 1;
        let head = text.split("\nspec:\n").next().unwrap_or(text);
        let is_head = is_crd && !text.contains("clientConfig:") && head.len() < text.len();
        let documents = self.parse(path, if is_head { head } else { text });
        let documents: Vec<Value> = documents.into_iter().flat_map(list_items).collect();
        let is_object = |value: &Value| value["kind"].is_string() && value["metadata"]["name"].is_string();
        if !documents.iter().all(is_object) {
            self.fault(
                path,
                "expected objects with `kind` and `metadata.name`".to_owned(),
                "correct the file, or remove its entry in the kustomization",
            );
        }
        documents.into_iter().filter(is_object).collect()
    }

    fn add_object(&mut self, object: Object, objects: &mut Vec<Object>) {
        if let Some(other) = objects.iter().find(|other| other.id() == object.id()) {
            let message = format!(
                "{} `{}` is defined twice, here and in {}: kustomize fails",
                object.kind(),
                object.name(),
                other.path
            );
            return self.fault(
                &object.path,
                message,
                "remove one of them, or give it another name",
            );
        }
        objects.push(object);
    }

    fn add_patches(&mut self, folder: &str, list: &str, map: &Map<String, Value>, objects: &mut Vec<Object>) {
        let mut patches: Vec<(Option<String>, Option<String>, Value)> = Vec::new();
        for key in ["patches", "patchesJson6902"] {
            for entry in map.get(key).and_then(Value::as_array).into_iter().flatten() {
                let text = |key: &str| entry[key].as_str().map(str::to_owned);
                patches.push((text("path"), text("patch"), entry["target"].clone()));
            }
        }
        for entry in entries(map, "patchesStrategicMerge") {
            patches.push(match entry.contains('\n') {
                true => (None, Some(entry), Value::Null),
                false => (Some(entry), None, Value::Null),
            });
        }
        for (file, inline, target) in patches {
            let (path, text) = match (file, inline) {
                (Some(file), _) => {
                    let path = resolve_entry(folder, &file).unwrap_or_default();
                    match self.read(&path) {
                        Some(text) => (path, text),
                        None => {
                            let message =
                                format!("this kustomization names `{file}`, but {path} does not exist");
                            self.fault(list, message, "correct the entry, or remove it");
                            continue;
                        }
                    }
                }
                (None, Some(text)) => (list.to_owned(), text),
                (None, None) => continue,
            };
            for patch in self.parse(&path, &text) {
                self.apply(&path, &patch, &target, objects);
            }
        }
    }

    fn apply(&mut self, path: &str, patch: &Value, target: &Value, objects: &mut Vec<Object>) {
        let selector = match target.is_object() {
            true => Selector::of_target(target),
            false => Selector::of_patch(patch),
        };
        let mut selected = BTreeSet::new();
        for (index, object) in objects.iter().enumerate() {
            match selector.matches(&object.value) {
                Matches::Yes => {
                    selected.insert(index);
                }
                Matches::No => {}
                Matches::Unknown => self.is_incomplete = true,
            }
        }
        if selected.is_empty() {
            return self.report_missing_target(path, &selector, target.is_object(), objects);
        }
        if patch["$patch"] == "delete" {
            let mut index = 0;
            objects.retain(|_| {
                index += 1;
                !selected.contains(&(index - 1))
            });
            return;
        }
        for index in selected {
            let object = &mut objects[index];
            if let Err((message, help)) = merge(object, patch) {
                self.fault(path, message, &help);
            }
        }
    }

    fn report_missing_target(
        &mut self,
        path: &str,
        selector: &Selector,
        has_target: bool,
        objects: &[Object],
    ) {
        let (Some(kind), Some(name)) = (selector.kind(), selector.name()) else {
            return;
        };
        if self.is_incomplete {
            return;
        }
        let others: Vec<&Object> = objects.iter().filter(|object| object.kind() == kind).collect();
        if has_target && others.is_empty() {
            // The component that has the object may be disabled.
            return;
        }
        let fails = if has_target {
            "it changes nothing"
        } else {
            "kustomize fails"
        };
        let message = match others.iter().find(|object| object.name() == name) {
            Some(other) => format!(
                "this patch is for {kind} `{name}` of namespace `{}`, but {} has it in namespace `{}`: {fails}",
                selector.namespace().unwrap_or("default"),
                other.path,
                namespace_of(other.value["metadata"]["namespace"].as_str())
            ),
            None => format!("this patch is for {kind} `{name}`, which {ROOT} does not have: {fails}"),
        };
        let help = match others.as_slice() {
            [] => "remove the patch, or list the object in a kustomization".to_owned(),
            others => format!("{ROOT} has {}: correct the name", list_names(others)),
        };
        self.faults.push(Fault {
            path: path.to_owned(),
            message,
            help,
            is_error: !has_target,
        });
    }

    /// Checks the transformers in a directory or file. Only replacements name objects.
    fn add_transformers(&mut self, folder: &str, entry: &str, objects: &[Object]) {
        let Some(path) = resolve_entry(folder, entry) else {
            self.is_incomplete = true;
            return;
        };
        let files: Vec<(String, String)> = if is_yaml(&path) {
            let text = self.read(&path);
            text.map(|text| (path.clone(), text)).into_iter().collect()
        } else {
            let list = self.find_kustomization(&path);
            let documents = list.map(|(list, text)| self.parse(&list, &text));
            let map = documents.and_then(|documents| documents.into_iter().next());
            let map = map.and_then(|map| map.as_object().cloned()).unwrap_or_default();
            let names = entries(&map, "resources");
            let paths = names.iter().filter_map(|name| resolve_entry(&path, name));
            let mut files = Vec::new();
            for path in paths {
                files.extend(self.read(&path).map(|text| (path, text)));
            }
            files
        };
        if files.is_empty() {
            self.fault(
                folder,
                format!("the transformers `{entry}` do not exist"),
                "correct the entry, or remove it",
            );
        }
        for (path, text) in files {
            for document in self.parse(&path, &text) {
                for replacement in document["replacements"].as_array().into_iter().flatten() {
                    self.check_replacement(&path, replacement, objects);
                }
            }
        }
    }

    fn check_replacement(&mut self, path: &str, replacement: &Value, objects: &[Object]) {
        let sides = [
            ("source", vec![&replacement["source"]]),
            (
                "target",
                replacement["targets"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|target| &target["select"])
                    .collect(),
            ),
        ];
        for (side, selections) in sides {
            for select in selections {
                let selector = Selector::of_target(select);
                let (Some(kind), Some(name)) = (selector.kind(), selector.name()) else {
                    continue;
                };
                let is_selected = |object: &Object| selector.matches(&object.value) != Matches::No;
                if objects.iter().any(is_selected) {
                    continue;
                }
                let others: Vec<&Object> = objects.iter().filter(|object| object.kind() == kind).collect();
                let mut names = others.iter().map(|object| object.name());
                // A disabled component has the target, unless its name is misspelled.
                let is_disabled = side == "target" && !names.any(|other| is_misspelling(name, other));
                if self.is_incomplete || is_disabled {
                    continue;
                }
                let message = format!(
                    "a replacement has {kind} `{name}` as its {side}, which {ROOT} does not have: {}",
                    if side == "source" {
                        "kustomize fails"
                    } else {
                        "it changes nothing"
                    }
                );
                let help = match others.as_slice() {
                    [] => "remove the replacement, or list the object in a kustomization".to_owned(),
                    others => format!("{ROOT} has {}: correct the name", list_names(others)),
                };
                self.faults.push(Fault {
                    path: path.to_owned(),
                    message,
                    help,
                    is_error: side == "source",
                });
            }
        }
    }
}

fn list_names(objects: &[&Object]) -> String {
    let names = objects
        .iter()
        .map(|object| format!("{} `{}`", object.kind(), object.name()));
    let names: BTreeSet<String> = names.collect();
    names.into_iter().take(3).collect::<Vec<_>>().join(", ")
}

fn entries(map: &Map<String, Value>, key: &str) -> Vec<String> {
    let list = map.get(key).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|entry| entry.as_str().map(str::to_owned))
        .collect()
}

fn is_remote(entry: &str) -> bool {
    entry
        .split_once('/')
        .is_some_and(|(host, _)| host.contains('.') && !host.starts_with('.') && !is_yaml(host))
}

fn add_generated(list: &str, map: &Map<String, Value>, objects: &mut Vec<Object>) {
    for (key, kind) in [("configMapGenerator", "ConfigMap"), ("secretGenerator", "Secret")] {
        for entry in map.get(key).and_then(Value::as_array).into_iter().flatten() {
            let value = json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": entry["name"] } });
            let object = Object {
                path: list.to_owned(),
                value,
            };
            if !objects.iter().any(|other| other.id() == object.id()) {
                objects.push(object);
            }
        }
    }
}

/// Merges a patch into an object. Fails with a message and help if it can't be applied, or if it
/// adds a container that can't run.
fn merge(object: &mut Object, patch: &Value) -> Result<(), (String, String)> {
    let before = object.value.clone();
    match patch.as_array() {
        Some(operations) => apply_json_patch(&mut object.value, operations).map_err(|reason| {
            let message = format!(
                "this patch cannot be applied to {} `{}`, because {reason}",
                before["kind"].as_str().unwrap_or_default(),
                before["metadata"]["name"].as_str().unwrap_or_default()
            );
            (message, "correct its paths".to_owned())
        })?,
        None => strategic::merge(&mut object.value, patch),
    }
    // A patch with a target may have another identity than the object.
    for key in ["apiVersion", "kind"] {
        object.value[key] = before[key].clone();
    }
    if object.value["metadata"].is_object() {
        object.value["metadata"]["name"] = before["metadata"]["name"].clone();
    }
    let (old, new) = (containers(&before), containers(&object.value));
    let is_old = |name: &Value| old.iter().any(|old| old["name"] == *name);
    let mut added = new
        .iter()
        .filter(|new| new["image"].is_null() && !is_old(&new["name"]));
    match added.next() {
        Some(container) => {
            let name = container["name"].as_str().unwrap_or_default();
            let names: Vec<&str> = old.iter().filter_map(|old| old["name"].as_str()).collect();
            let message = format!(
                "this patch is for the container `{name}`, which {} `{}` does not have: it adds a container without an image, which the API server refuses",
                object.kind(),
                object.name()
            );
            let help = format!("its containers are `{}`: correct the name", names.join("`, `"));
            Err((message, help))
        }
        None => Ok(()),
    }
}

fn containers(object: &Value) -> Vec<&Value> {
    let pod = &object["spec"]["template"]["spec"];
    ["containers", "initContainers"]
        .iter()
        .flat_map(|key| pod[*key].as_array().into_iter().flatten())
        .collect()
}

#[cfg(test)]
mod tests;

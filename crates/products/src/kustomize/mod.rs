//! Builds a kustomization in memory, to find out before a deployment what kustomize would refuse,
//! and which references it would leave without an object.
//!
//! Supports what scaffolds and most projects use: resources, components, patches in all notations,
//! replacements, generators. Where a kustomization has something else that changes objects, such as
//! a remote resource, the build is incomplete, and no reference counts as broken.

mod references;

use std::collections::BTreeSet;

use anyhow::Result;
use rbuilder_diagnostic::suggest::is_misspelling;
use rbuilder_kubernetes::gvk;
use rbuilder_project::overlay::{
    DEPLOYMENT, FILE_NAMES, Kustomization, Matches, Selector, apply_patch, is_remote, namespace_of,
    resolve_entry,
};
use rbuilder_yaml::{describe_failure, is_yaml, list_items, parse_documents};
use serde_json::Value;

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

/// Message about a deployment that runs nothing.
pub const NO_WORKLOAD: &str = "config/default has no Deployment: it deploys no manager";

/// Reads a file. Fails if it exists but can't be read; the build is incomplete then.
pub type Read<'a> = &'a dyn Fn(&str) -> Result<Option<String>>;

/// Finds what prevents `config/default` from being deployed: what kustomize refuses and, if it builds
/// the objects, references to missing ones.
pub fn find_each(read: Read<'_>) -> (Vec<Fault>, Vec<Fault>) {
    let (mut build, objects) = Build::run(read);
    let has_workload = objects.iter().any(|object| WORKLOADS.contains(&object.kind()));
    if !build.is_incomplete && !has_workload && build.faults.iter().all(|fault| !fault.is_error) {
        build.faults.push(Fault {
            path: DEPLOYMENT.to_owned(),
            message: NO_WORKLOAD.to_owned(),
            help: "list `../manager` in `resources`, and manager.yaml in config/manager/kustomization.yaml"
                .to_owned(),
            is_error: false,
        });
    }
    let mut references = Vec::new();
    if !build.is_incomplete && build.faults.iter().all(|fault| !fault.is_error) {
        let prefix = build.root.name_prefix().unwrap_or_default();
        references::check(&objects, prefix, build.root.namespace(), &mut references);
    }
    (build.faults, references)
}

struct Build<'a> {
    read: Read<'a>,
    faults: Vec<Fault>,
    files: usize,
    is_incomplete: bool,
    /// The outermost kustomization.
    root: Kustomization,
}

/// Fields of kustomizations that change objects in a way that the build doesn't follow.
const UNFOLLOWED: [&str; 5] = [
    "generators",
    "helmChartInflationGenerator",
    "helmCharts",
    "nameSuffix",
    "vars",
];

impl<'a> Build<'a> {
    /// Builds the objects of `config/default`.
    fn run(read: Read<'a>) -> (Build<'a>, Vec<Object>) {
        let mut build = Build {
            read,
            faults: Vec::new(),
            files: 0,
            is_incomplete: false,
            root: Kustomization::default(),
        };
        let mut objects = Vec::new();
        build.add_folder(ROOT, &mut objects, 0);
        (build, objects)
    }

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

    /// The kustomization of a directory. The outer `None` means that there is none, the inner one
    /// that it can't be parsed.
    fn find_kustomization(&mut self, folder: &str) -> Option<Option<Kustomization>> {
        let mut paths = FILE_NAMES.iter().map(|name| format!("{folder}/{name}"));
        let (path, text) = paths.find_map(|path| self.read(&path).map(|text| (path, text)))?;
        match Kustomization::parse(&path, &text) {
            Ok(found) => Some(Some(found)),
            Err(error) => {
                self.fault(&path, format!("{error:#}"), "correct the file");
                Some(None)
            }
        }
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
        match self.find_kustomization(folder) {
            Some(Some(kustomization)) => self.add_kustomization(&kustomization, objects, depth),
            Some(None) => {}
            None => self.fault(
                folder,
                format!("{folder} has no kustomization"),
                "add one, or remove the entry",
            ),
        }
    }

    fn add_kustomization(&mut self, found: &Kustomization, objects: &mut Vec<Object>, depth: usize) {
        for (field, similar) in found.unknown_fields() {
            let help = match similar {
                Some(similar) => format!("write `{similar}`, or remove the field"),
                None => "remove the field".to_owned(),
            };
            self.fault(
                &found.path,
                format!("kustomizations have no field `{field}`: kustomize fails"),
                &help,
            );
        }
        if depth == 0 {
            self.root = found.clone();
        } else {
            self.is_incomplete |= found.sets(&["namePrefix", "namespace"]);
        }
        self.is_incomplete |= found.sets(&UNFOLLOWED);
        if found.is_component() {
            return self.add_contents(found, objects, depth);
        }
        // Patches only apply to the objects of their own kustomization.
        let mut own = Vec::new();
        self.add_contents(found, &mut own, depth);
        for object in own {
            self.add_object(object, objects);
        }
    }

    fn add_contents(&mut self, found: &Kustomization, objects: &mut Vec<Object>, depth: usize) {
        for entry in found.included() {
            self.add_entry(found, entry, objects, depth);
        }
        for (_, value) in found.generated() {
            let path = found.path.clone();
            let object = Object { path, value };
            if !objects.iter().any(|other| other.id() == object.id()) {
                objects.push(object);
            }
        }
        self.add_patches(found, objects);
        for replacement in found.list("replacements") {
            self.check_replacement(&found.path, replacement, objects);
        }
        for entry in found.entries("transformers") {
            self.add_transformers(found.folder(), entry, objects);
        }
    }

    fn add_entry(&mut self, found: &Kustomization, entry: &str, objects: &mut Vec<Object>, depth: usize) {
        let list = &found.path;
        let Some(path) = resolve_entry(found.folder(), entry).filter(|_| !is_remote(entry)) else {
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
            None => match self.find_kustomization(&path) {
                Some(Some(inner)) => self.add_kustomization(&inner, objects, depth + 1),
                Some(None) => {}
                None => self.fault(
                    list,
                    format!("this kustomization names `{entry}`, but {path} does not exist"),
                    "correct the entry, or remove it",
                ),
            },
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

    fn add_patches(&mut self, found: &Kustomization, objects: &mut Vec<Object>) {
        for patch in found.patches() {
            let text = match &patch.text {
                Some(text) => Some(text.clone()),
                None => self.read(&patch.path),
            };
            let Some(text) = text else {
                let file = patch.file.as_deref().unwrap_or_default();
                let message = format!(
                    "this kustomization names `{file}`, but {} does not exist",
                    patch.path
                );
                self.fault(&found.path, message, "correct the entry, or remove it");
                continue;
            };
            for document in self.parse(&patch.path, &text) {
                self.apply(
                    &patch.path,
                    &document,
                    &patch.selector(&document),
                    patch.has_target(),
                    objects,
                );
            }
        }
    }

    fn apply(
        &mut self,
        path: &str,
        patch: &Value,
        selector: &Selector<'_>,
        has_target: bool,
        objects: &mut Vec<Object>,
    ) {
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
            return self.report_missing_target(path, selector, has_target, objects);
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
        selector: &Selector<'_>,
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
            let list = self.find_kustomization(&path).flatten().unwrap_or_default();
            let paths = list
                .entries("resources")
                .filter_map(|name| resolve_entry(&path, name));
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

/// Merges a patch into an object. Fails with a message and help if it can't be applied, or if it
/// adds a container that can't run.
fn merge(object: &mut Object, patch: &Value) -> Result<(), (String, String)> {
    let before = object.value.clone();
    apply_patch(&mut object.value, patch).map_err(|reason| {
        let message = format!(
            "this patch cannot be applied to {} `{}`, because {reason}",
            object.kind(),
            object.name()
        );
        (message, "correct its paths".to_owned())
    })?;
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

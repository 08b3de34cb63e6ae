//! The objects to validate, and the definitions of their kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use rbuilder_generator::{FileRange, Minor};
use rbuilder_judge::{Definition, Judge};
use rbuilder_kubernetes::crd::is_crd;
use rbuilder_kubernetes::gvk;
use rbuilder_yaml::{Node, describe_failure, list_items, parse_nodes, parse_values};
use serde_json::Value;

use super::builtin::Builtin;
use crate::tree::read_inputs;

pub(in crate::commands) struct Object {
    pub(in crate::commands) path: String,
    source: Arc<str>,
    node: Node,
    /// Duplicate fields, and whether their last two values are equal.
    duplicates: Vec<(String, bool)>,
    pub(in crate::commands) value: Value,
    pub(in crate::commands) is_listed: bool,
    /// Whether the same text has an object of a kind, so that this one should have a kind, too.
    pub(in crate::commands) is_beside_objects: bool,
}

impl Object {
    fn text(&self, pointer: &str) -> &str {
        self.value
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    pub(in crate::commands) fn api_version(&self) -> &str {
        self.text("/apiVersion")
    }

    pub(in crate::commands) fn kind(&self) -> &str {
        self.text("/kind")
    }

    pub(in crate::commands) fn name(&self) -> &str {
        match self.text("/metadata/name") {
            "" => self.text("/metadata/generateName"),
            name => name,
        }
    }

    pub(in crate::commands) fn namespace(&self) -> &str {
        match self.text("/metadata/namespace") {
            "" => "default",
            namespace => namespace,
        }
    }

    /// Group and version. The group is empty for core kinds.
    pub(in crate::commands) fn group_version(&self) -> (&str, &str) {
        gvk::split(self.api_version())
    }

    /// The identity of the object, which an update can't change.
    pub(in crate::commands) fn identity(&self) -> (&str, &str, &str, &str) {
        (self.group_version().0, self.kind(), self.namespace(), self.name())
    }

    /// The object as the API server would store it, i.e. with its namespace.
    pub(in crate::commands) fn stored(&self, is_namespaced: bool) -> Value {
        let mut stored = self.value.clone();
        if let Some(Value::Object(metadata)) = stored.get_mut("metadata").filter(|_| is_namespaced) {
            metadata.insert("namespace".to_owned(), self.namespace().into());
        }
        stored
    }

    pub(in crate::commands) fn duplicates(&self) -> impl Iterator<Item = String> {
        self.duplicates.iter().map(|(field, _)| field.clone())
    }

    /// Whether the field is a duplicate whose last value equals the one before.
    pub(in crate::commands) fn repeats(&self, field: &str) -> bool {
        self.duplicates
            .iter()
            .any(|(path, is_same)| path == field && *is_same)
    }

    pub(in crate::commands) fn written(&self, field: &str) -> &str {
        self.source.get(self.node.locate(field)).unwrap_or_default()
    }

    pub(in crate::commands) fn place_of_name(&self, field: &str) -> FileRange {
        FileRange::new(self.path.as_str(), self.node.locate_name(field))
    }

    /// Location of the field named by a message.
    pub(in crate::commands) fn place(&self, field: &str) -> FileRange {
        let range: Range<usize> = self.node.locate(field);
        FileRange::new(self.path.as_str(), range)
    }
}

/// Parses all objects in a file, including list items. Only fails if `text` isn't valid YAML.
pub(in crate::commands) fn parse_objects(path: &str, text: &str) -> Result<Vec<Object>, serde_saphyr::Error> {
    let mut objects = parse_values_of(path, text)?;
    objects.retain(|object| object.value.is_object());
    Ok(objects)
}

/// Like [`parse_objects`], including values that aren't objects.
pub(in crate::commands) fn parse_values_of(
    path: &str,
    text: &str,
) -> Result<Vec<Object>, serde_saphyr::Error> {
    let mut objects = Vec::new();
    let source: Arc<str> = text.into();
    for document in parse_nodes(text)? {
        let nodes = document.into_objects();
        let is_listed = nodes.len() > 1;
        objects.extend(nodes.into_iter().map(|node| Object {
            path: path.to_owned(),
            source: source.clone(),
            duplicates: node.find_duplicates(),
            value: node.value(),
            node,
            is_listed,
            is_beside_objects: false,
        }));
    }
    objects.retain(|object| !object.value.is_null() && !is_kustomization(object));
    let has_kind = |object: &Object| !object.kind().is_empty() && !object.api_version().is_empty();
    let is_beside_objects = objects.iter().any(has_kind);
    for object in &mut objects {
        object.is_beside_objects = is_beside_objects;
    }
    Ok(objects)
}

/// Whether this is a file for kustomize, which doesn't exist in a cluster.
fn is_kustomization(object: &Object) -> bool {
    // kustomize accepts its files without a version.
    let has_kind = matches!(object.kind(), "Kustomization" | "Component");
    let is_without_kind = object.kind().is_empty() && object.value.get("resources").is_some();
    object.api_version().starts_with("kustomize.config.k8s.io/")
        || object.api_version().is_empty() && has_kind
        || is_without_kind
}

/// Judges by API version and kind.
pub(in crate::commands) struct Judges {
    judges: BTreeMap<(String, String), Judge>,
    builtin: Builtin,
}

impl Judges {
    pub(in crate::commands) fn new(minor: Minor) -> Judges {
        Judges {
            judges: BTreeMap::new(),
            builtin: Builtin::new(minor),
        }
    }

    pub(in crate::commands) fn add_builtin(&mut self, object: &Object) {
        let (group, version) = object.group_version();
        if self.find(object).is_none()
            && let Some(judge) = self.builtin.judge(group, version, object.kind())
        {
            let key = (object.api_version().to_owned(), object.kind().to_owned());
            self.judges.insert(key, judge);
        }
    }

    pub(in crate::commands) fn add_files(&mut self, dir: &Path, files: &[PathBuf]) -> Result<()> {
        for typed in files {
            let before = self.judges.len();
            for file in read_inputs(dir, typed)? {
                // Other files in a directory need not be YAML.
                if file.text.contains("CustomResourceDefinition") {
                    self.add_text(&file.path, &file.text)?;
                }
            }
            // Probably not the path that the user meant.
            if self.judges.len() == before {
                bail!(
                    "expected a CustomResourceDefinition, found none in {}",
                    typed.display()
                );
            }
        }
        Ok(())
    }

    /// Fails if `text` isn't valid YAML, or if a definition has no structural schema.
    pub(in crate::commands) fn add_text(&mut self, path: &str, text: &str) -> Result<()> {
        let documents = parse_values(text).map_err(|error| describe_failure(path, text, &error))?;
        self.add_objects(path, documents.into_iter().flat_map(list_items))
    }

    /// Fails if a definition has no structural schema. `path` is only used in the message.
    pub(in crate::commands) fn add_objects(
        &mut self,
        path: &str,
        objects: impl IntoIterator<Item = Value>,
    ) -> Result<()> {
        for definition in objects.into_iter().filter(is_crd) {
            let found =
                Definition::of_crd(&definition).map_err(|reason| anyhow::anyhow!("{path}: {reason}"))?;
            self.add_all(found);
        }
        Ok(())
    }

    pub(in crate::commands) fn add_all(&mut self, definitions: impl IntoIterator<Item = Definition>) {
        for definition in definitions {
            let version = gvk::api_version(&definition.group, &definition.version);
            let key = (version, definition.kind.clone());
            self.judges.insert(key, Judge::new(definition));
        }
    }

    pub(in crate::commands) fn has_no_crds(&self) -> bool {
        self.judges.values().all(Judge::is_builtin)
    }

    pub(super) fn has(&self, api_version: &str, kind: &str) -> bool {
        self.judges
            .contains_key(&(api_version.to_owned(), kind.to_owned()))
    }

    pub(in crate::commands) fn find(&self, object: &Object) -> Option<&Judge> {
        self.judges
            .get(&(object.api_version().to_owned(), object.kind().to_owned()))
    }

    pub(in crate::commands) fn versions(&self, object: &Object) -> Vec<&str> {
        let (group, _) = object.group_version();
        let judges = self.judges.values().map(Judge::definition);
        let same = judges.filter(|found| found.group == group && found.kind == object.kind());
        let versions: Vec<&str> = same.map(|found| found.version.as_str()).collect();
        match versions.is_empty() {
            true => self.builtin.versions(group, object.kind()),
            false => versions,
        }
    }

    /// Whether the group has the kind in any version. Built-in kinds may be from any version of
    /// Kubernetes.
    pub(super) fn knows(&self, object: &Object) -> bool {
        let (group, _) = object.group_version();
        Builtin::knows(group, object.kind()) || !self.versions(object).is_empty()
    }

    /// Whether all kinds of the group are known. No CRD can define a kind in a group of Kubernetes.
    pub(super) fn is_closed(&self, group: &str) -> bool {
        Builtin::owns(group)
    }

    pub(super) fn kinds_in(&self, group: &str, version: &str) -> BTreeSet<String> {
        let own = self.judges.values().map(Judge::definition);
        let own = own.filter(|found| found.group == group && found.version == version);
        let own = own.map(|found| found.kind.clone());
        let builtin = self.builtin.kinds_in(group, version).into_iter();
        own.chain(builtin.map(str::to_owned)).collect()
    }

    /// Groups other than the core group with this kind and version.
    pub(super) fn groups_with(&self, version: &str, kind: &str) -> BTreeSet<String> {
        let own = self.judges.values().map(Judge::definition);
        let own = own.filter(|found| found.kind == kind && found.version == version);
        let own = own
            .map(|found| found.group.clone())
            .filter(|group| !group.is_empty());
        let builtin = self.builtin.groups_with(version, kind).into_iter();
        own.chain(builtin.map(str::to_owned)).collect()
    }
}

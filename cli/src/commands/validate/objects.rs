//! The objects that are judged, and the definitions of their kinds.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use rbuilder_generator::{FileRange, SourceSet};
use rbuilder_importer::is_definition;
use rbuilder_judge::{Definition, Judge};
use serde_json::Value;

use super::place::{self, Node};
use crate::tree::read_inputs;
use crate::yaml_stream::{describe_failure, list_items, parse_values};

/// An object in a file.
pub(super) struct Object {
    pub(super) path: String,
    node: Node,
    pub(super) value: Value,
}

impl Object {
    fn text(&self, pointer: &str) -> &str {
        self.value
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    pub(super) fn api_version(&self) -> &str {
        self.text("/apiVersion")
    }

    pub(super) fn kind(&self) -> &str {
        self.text("/kind")
    }

    pub(super) fn name(&self) -> &str {
        match self.text("/metadata/name") {
            "" => self.text("/metadata/generateName"),
            name => name,
        }
    }

    pub(super) fn namespace(&self) -> &str {
        match self.text("/metadata/namespace") {
            "" => "default",
            namespace => namespace,
        }
    }

    /// Returns what an update of the object has in common with it.
    pub(super) fn identity(&self) -> (&str, &str, &str, &str) {
        let group = self.api_version().split_once('/').map_or("", |(group, _)| group);
        (group, self.kind(), self.namespace(), self.name())
    }

    /// Returns the object as it is stored: with its namespace.
    pub(super) fn stored(&self, is_namespaced: bool) -> Value {
        let mut stored = self.value.clone();
        if let Some(Value::Object(metadata)) = stored.get_mut("metadata").filter(|_| is_namespaced) {
            metadata.insert("namespace".to_owned(), self.namespace().into());
        }
        stored
    }

    /// Returns the place of the name of a field.
    pub(super) fn place_of_name(&self, field: &str) -> FileRange {
        FileRange::new(self.path.as_str(), self.node.locate_name(field))
    }

    /// Returns the place of a field that a message names.
    pub(super) fn place(&self, field: &str) -> FileRange {
        let range: Range<usize> = self.node.locate(field);
        FileRange::new(self.path.as_str(), range)
    }
}

/// Reads the objects in files and directories. Files of a directory that have no objects are
/// skipped.
///
/// # Errors
/// Fails if a file cannot be read or is not YAML.
pub(super) fn read_objects(dir: &Path, files: &[PathBuf], sources: &mut SourceSet) -> Result<Vec<Object>> {
    let mut objects = Vec::new();
    for typed in files {
        for file in read_inputs(dir, typed)? {
            let nodes =
                place::parse(&file.text).map_err(|error| describe_failure(&file.path, &file.text, &error))?;
            for node in nodes.into_iter().flat_map(Node::into_objects) {
                let object = Object {
                    path: file.path.clone(),
                    value: node.value(),
                    node,
                };
                if object.value.is_object() && !is_kustomization(&object) {
                    objects.push(object);
                }
            }
            sources.insert(file.path, file.text);
        }
    }
    Ok(objects)
}

/// Returns true for files of kustomize, which are no objects of a cluster.
fn is_kustomization(object: &Object) -> bool {
    object.api_version().starts_with("kustomize.config.k8s.io/")
        || object.kind().is_empty() && object.value.get("resources").is_some()
}

/// The judges of all kinds and versions, by group and version, and kind.
#[derive(Default)]
pub(super) struct Judges {
    judges: BTreeMap<(String, String), Judge>,
}

impl Judges {
    /// Adds the definitions in files and directories.
    ///
    /// # Errors
    /// Fails if a file cannot be read or is not YAML, or if there is no definition.
    pub(super) fn add_files(&mut self, dir: &Path, files: &[PathBuf]) -> Result<()> {
        for typed in files {
            let before = self.judges.len();
            for file in read_inputs(dir, typed)? {
                if file.text.contains("CustomResourceDefinition") {
                    self.add_text(&file.path, &file.text)?;
                }
            }
            if self.judges.len() == before {
                bail!(
                    "expected a CustomResourceDefinition, found none in {}",
                    typed.display()
                );
            }
        }
        Ok(())
    }

    /// Adds the definitions in a text.
    ///
    /// # Errors
    /// Fails if the text is not YAML, or if a definition has no structural schema.
    pub(super) fn add_text(&mut self, path: &str, text: &str) -> Result<()> {
        let documents = parse_values(text).map_err(|error| describe_failure(path, text, &error))?;
        for definition in documents.into_iter().flat_map(list_items).filter(is_definition) {
            let found =
                Definition::of_crd(&definition).map_err(|reason| anyhow::anyhow!("{path}: {reason}"))?;
            for definition in found {
                let version = format!("{}/{}", definition.group, definition.version);
                let key = (version, definition.kind.clone());
                self.judges.insert(key, Judge::new(definition));
            }
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.judges.is_empty()
    }

    /// Returns the judge of an object.
    pub(super) fn find(&self, object: &Object) -> Option<&Judge> {
        self.judges
            .get(&(object.api_version().to_owned(), object.kind().to_owned()))
    }

    /// Returns the versions of the kind of an object that are defined.
    pub(super) fn versions(&self, object: &Object) -> Vec<&str> {
        let group = object
            .api_version()
            .split_once('/')
            .map_or("", |(group, _)| group);
        let judges = self.judges.values().map(Judge::definition);
        let same = judges.filter(|found| found.group == group && found.kind == object.kind());
        same.map(|found| found.version.as_str()).collect()
    }
}

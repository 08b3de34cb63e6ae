//! The objects to validate, and the definitions of their kinds.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use rbuilder_generator::{FileRange, Minor, SourceSet};
use rbuilder_importer::is_definition;
use rbuilder_judge::{Definition, Judge};
use rbuilder_yaml::{Node, describe_failure, list_items, parse_nodes, parse_values};
use serde_json::Value;

use super::builtin::Builtin;
use super::rendered::read_texts;
use crate::tree::read_inputs;

/// An object in a file.
pub(in crate::commands) struct Object {
    pub(in crate::commands) path: String,
    node: Node,
    pub(in crate::commands) value: Value,
    /// True if the object is one of several items in a list.
    pub(in crate::commands) is_listed: bool,
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

    /// Returns the group, which is empty for core kinds, and the version.
    pub(in crate::commands) fn group_version(&self) -> (&str, &str) {
        let api_version = self.api_version();
        api_version.split_once('/').unwrap_or(("", api_version))
    }

    /// Returns the object's identity, which does not change in an update.
    pub(in crate::commands) fn identity(&self) -> (&str, &str, &str, &str) {
        (self.group_version().0, self.kind(), self.namespace(), self.name())
    }

    /// Returns the object as it is stored, with its namespace.
    pub(in crate::commands) fn stored(&self, is_namespaced: bool) -> Value {
        let mut stored = self.value.clone();
        if let Some(Value::Object(metadata)) = stored.get_mut("metadata").filter(|_| is_namespaced) {
            metadata.insert("namespace".to_owned(), self.namespace().into());
        }
        stored
    }

    /// Returns the location of a field's name.
    pub(in crate::commands) fn place_of_name(&self, field: &str) -> FileRange {
        FileRange::new(self.path.as_str(), self.node.locate_name(field))
    }

    /// Returns the location of a field that is named in a message.
    pub(in crate::commands) fn place(&self, field: &str) -> FileRange {
        let range: Range<usize> = self.node.locate(field);
        FileRange::new(self.path.as_str(), range)
    }
}

/// Reads the objects in files and directories. Skips files without objects in directories.
///
/// # Errors
/// Fails if a file cannot be read or is not YAML, or if a directory cannot be rendered.
pub(in crate::commands) fn read_objects(
    dir: &Path,
    files: &[PathBuf],
    sources: &mut SourceSet,
) -> Result<Vec<Object>> {
    let mut objects = Vec::new();
    for typed in files {
        for file in read_texts(dir, typed)? {
            let found = parse_objects(&file.path, &file.text);
            objects.extend(found.map_err(|error| describe_failure(&file.path, &file.text, &error))?);
            sources.insert(file.path, file.text);
        }
    }
    Ok(objects)
}

/// Parses the objects in a file, including the items of lists.
///
/// # Errors
/// Returns an error if the text is not YAML.
pub(in crate::commands) fn parse_objects(path: &str, text: &str) -> Result<Vec<Object>, serde_saphyr::Error> {
    let mut objects = Vec::new();
    for document in parse_nodes(text)? {
        let nodes = document.into_objects();
        let is_listed = nodes.len() > 1;
        objects.extend(nodes.into_iter().map(|node| Object {
            path: path.to_owned(),
            value: node.value(),
            node,
            is_listed,
        }));
    }
    objects.retain(|object| object.value.is_object() && !is_kustomization(object));
    Ok(objects)
}

/// Returns true for kustomize's files, which are not cluster objects.
fn is_kustomization(object: &Object) -> bool {
    object.api_version().starts_with("kustomize.config.k8s.io/")
        || object.kind().is_empty() && object.value.get("resources").is_some()
}

/// The judges of all kinds, by group and version, and kind.
pub(in crate::commands) struct Judges {
    judges: BTreeMap<(String, String), Judge>,
    builtin: Builtin,
}

impl Judges {
    /// Returns the judges of a Kubernetes minor version's built-in kinds only.
    pub(in crate::commands) fn new(minor: Minor) -> Judges {
        Judges {
            judges: BTreeMap::new(),
            builtin: Builtin::new(minor),
        }
    }

    /// Adds the judge for an object of a built-in Kubernetes kind.
    pub(in crate::commands) fn add_builtin(&mut self, object: &Object) {
        let (group, version) = object.group_version();
        if self.find(object).is_none()
            && let Some(judge) = self.builtin.judge(group, version, object.kind())
        {
            let key = (object.api_version().to_owned(), object.kind().to_owned());
            self.judges.insert(key, judge);
        }
    }

    /// Adds the definitions in files and directories.
    ///
    /// # Errors
    /// Fails if a file cannot be read or is not YAML, or if there is no definition.
    pub(in crate::commands) fn add_files(&mut self, dir: &Path, files: &[PathBuf]) -> Result<()> {
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
    pub(in crate::commands) fn add_text(&mut self, path: &str, text: &str) -> Result<()> {
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

    /// Returns true if there is no definition of a custom resource.
    pub(in crate::commands) fn has_no_crds(&self) -> bool {
        self.judges.values().all(Judge::is_builtin)
    }

    /// Returns an object's judge.
    pub(in crate::commands) fn find(&self, object: &Object) -> Option<&Judge> {
        self.judges
            .get(&(object.api_version().to_owned(), object.kind().to_owned()))
    }

    /// Returns the defined versions of an object's kind.
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
}

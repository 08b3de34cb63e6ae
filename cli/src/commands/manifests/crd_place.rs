//! Locations of CRD files: a directory with a file name pattern, and individual files elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use memchr::memmem;
use rbuilder_yaml::{is_yaml, split_documents};

use super::settings::{DEFAULT_FILE, Settings};
use crate::tree::Tree;

#[derive(Clone, Debug)]
pub(in crate::commands) struct CrdPlace {
    /// Directory for all CRDs that aren't in `files`. If `None`, these aren't written.
    pub(super) folder: Option<String>,
    /// File name pattern with `{group}` and `{plural}`. Without `{plural}`, all CRDs are in one
    /// file.
    pub(super) file: String,
    pub(super) files: BTreeMap<String, String>,
}

impl CrdPlace {
    pub(super) fn within(folder: String) -> CrdPlace {
        CrdPlace {
            folder: Some(folder),
            file: DEFAULT_FILE.to_owned(),
            files: BTreeMap::new(),
        }
    }

    pub(in crate::commands) fn with(mut self, settings: &Settings) -> CrdPlace {
        if settings.crd_dir.is_some() {
            self.folder.clone_from(&settings.crd_dir);
        }
        if let Some(file) = &settings.crd_file {
            self.file.clone_from(file);
        }
        self.files.clone_from(&settings.crd_files);
        self
    }

    /// Starts without a directory. Settings may still add one.
    pub(super) fn nowhere() -> CrdPlace {
        CrdPlace {
            folder: None,
            ..CrdPlace::within(String::new())
        }
    }

    /// Path of a CRD, or `None` if it isn't written.
    pub(in crate::commands) fn path(&self, group: &str, plural: &str) -> Option<String> {
        if let Some(path) = self.files.get(&format!("{plural}.{group}")) {
            return Some(path.clone());
        }
        let name = self.file.replace("{group}", group).replace("{plural}", plural);
        Some(format!("{}/{name}", self.folder.as_ref()?))
    }

    fn file_of_all(&self) -> Option<String> {
        let folder = self.folder.as_ref().filter(|_| !self.file.contains("{plural}"));
        folder.map(|folder| format!("{folder}/{}", self.file))
    }

    pub(super) fn shared_files(&self) -> BTreeSet<String> {
        self.files.values().cloned().chain(self.file_of_all()).collect()
    }

    pub(super) fn is_shared(&self, path: &str) -> bool {
        self.files.values().any(|file| file == path) || self.file_of_all().as_deref() == Some(path)
    }

    pub(super) fn holds(&self, path: &str) -> bool {
        if self.files.values().any(|file| file == path) {
            return true;
        }
        let folder = self.folder.as_ref();
        let name = folder.and_then(|folder| path.strip_prefix(folder.as_str())?.strip_prefix('/'));
        name.is_some_and(|name| !name.contains('/') && is_yaml(name))
    }

    pub(super) fn list(&self, tree: &Tree) -> Result<Vec<String>> {
        let mut paths = match &self.folder {
            Some(folder) => tree.list(folder)?,
            None => Vec::new(),
        };
        paths.extend(self.files.values().cloned());
        paths.retain(|path| self.holds(path));
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    /// Lists the names (e.g. `cups.example.com`) of all CRDs that exist or have an entry in
    /// `files`.
    pub(in crate::commands) fn list_names(&self, tree: &Tree) -> Result<Vec<String>> {
        let mut names: Vec<String> = self.files.keys().cloned().collect();
        for path in self.list(tree)? {
            let text = tree.read(&path)?.unwrap_or_default();
            names.extend(read_names(&text));
        }
        Ok(names)
    }
}

/// Reads the names of the objects in a file, which must be formatted like our output.
fn read_names(text: &str) -> impl Iterator<Item = String> {
    let documents = split_documents(text).into_iter();
    documents.filter_map(|(_, document)| {
        let is_first = document.starts_with("metadata:");
        let start = match is_first {
            true => 0,
            false => memmem::find(document.as_bytes(), b"\nmetadata:")?,
        };
        let in_metadata = document[start..].lines();
        let mut found = in_metadata.filter_map(|line| line.strip_prefix("  name: "));
        found.next().map(str::to_owned)
    })
}

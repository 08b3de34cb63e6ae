//! The project directory on disk. No other module reads it.
//!
//! The tree remembers every file that it reads. A plan based on the tree is rejected if one of
//! these files has changed since.

#![allow(clippy::disallowed_methods)] // this module reads the project

mod archives;
mod area;
mod find;
mod given;
mod inputs;
mod portable;
mod snapshot;
mod sources;
mod tarball;
mod viewpoint;
mod yaml;

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use fs_err as fs;

use crate::disk::{Folder, Sort, cannot_message, check_length, is_link, open_without_links, read_bounded};
use crate::hash::checksum;

pub use area::find_repository;
pub use find::{FILE, Search, find_project_above, is_own_above};
pub use given::{open_given_file, read_given_file};
pub use inputs::{InputFile, STANDARD_INPUT, read_inputs};
pub use portable::{typed_path, with_slashes, without_verbatim_prefix};
pub use snapshot::{Snapshot, watched_folders};
use sources::SourceTexts;
pub use sources::TreeSources;
pub use viewpoint::Viewpoint;

/// Maximum size of a file in bytes, so that a repository cannot exhaust memory.
pub const LARGEST: u64 = 64 << 20;

/// A project directory.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    /// The open directory, once it exists.
    folder: OnceCell<Folder>,
    /// Content of each file read, or `None` if it did not exist.
    seen: RefCell<BTreeMap<String, Option<Held>>>,
    sources: RefCell<Vec<Arc<SourceTexts>>>,
    /// The files of an in-memory tree, or `None` for a tree on disk.
    memory: Option<BTreeMap<String, String>>,
}

/// The error for a file that changed after a plan was based on it. No files were written.
#[derive(Debug, thiserror::Error)]
#[error("{path} was changed while the command was running; no files were written: run it again")]
pub struct Changed {
    path: String,
}

impl Changed {
    pub(crate) fn new(path: &str) -> Changed {
        Changed {
            path: path.to_owned(),
        }
    }
}

/// Length and checksum of a file's content. The content isn't kept, because a project's manifests
/// can be large.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    length: usize,
    checksum: u32,
}

impl Held {
    fn of(bytes: &[u8]) -> Held {
        Held {
            length: bytes.len(),
            checksum: checksum(bytes),
        }
    }
}

impl Tree {
    /// Creates the tree of a directory, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Tree {
        Tree {
            root: root.into(),
            folder: OnceCell::new(),
            seen: RefCell::default(),
            sources: RefCell::default(),
            memory: None,
        }
    }

    /// Creates an in-memory tree. It has no source, so manifests can't be generated in it.
    pub fn in_memory(files: BTreeMap<String, String>) -> Tree {
        Tree {
            memory: Some(files),
            ..Tree::new(".")
        }
    }

    /// Returns the files of an in-memory tree.
    pub fn into_files(self) -> BTreeMap<String, String> {
        self.memory.unwrap_or_default()
    }

    /// Path of the directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory as shown in messages.
    pub fn shown(&self) -> String {
        display_root(&self.root)
    }

    /// Name of the directory, which is the default project name.
    pub fn folder_name(&self) -> Option<String> {
        let absolute = std::path::absolute(&self.root).ok()?;
        let absolute = fs::canonicalize(&absolute).unwrap_or(absolute);
        Some(absolute.file_name()?.to_str()?.to_owned())
    }

    /// Reads a text file. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// Fails if the path leads out of the directory or through a symlink, or if the file is not
    /// valid UTF-8 or larger than 64 MiB.
    pub fn read(&self, path: &str) -> Result<Option<String>> {
        let bytes = self.look(path)?;
        let held = bytes.as_deref().map(Held::of);
        // Keep the content of the first read, since decisions are based on it.
        self.seen.borrow_mut().entry(path.to_owned()).or_insert(held);
        bytes
            .map(|bytes| String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("{path} is not valid UTF-8")))
            .transpose()
    }

    /// Checks that the files read so far are unchanged.
    ///
    /// # Errors
    /// Fails with [`Changed`] if a file has changed. Also fails if a file can no longer be read.
    pub fn verify_unchanged(&self) -> Result<()> {
        for (path, before) in self.seen.borrow().iter() {
            if self.look(path)?.as_deref().map(Held::of) != *before {
                return Err(Changed::new(path).into());
            }
        }
        for texts in self.sources.borrow().iter() {
            texts.verify_unchanged()?;
        }
        Ok(())
    }

    /// Lists the regular files in a directory, sorted. Empty if the directory does not exist.
    ///
    /// # Errors
    /// Fails if the directory cannot be read, or if its path leads through a symlink.
    pub fn list(&self, folder: &str) -> Result<Vec<String>> {
        self.list_sort(folder, Sort::File)
    }

    /// Lists the subdirectories of a directory, sorted. Empty if the directory does not exist.
    ///
    /// # Errors
    /// Fails as [`list`](Self::list) does.
    pub fn list_folders(&self, folder: &str) -> Result<Vec<String>> {
        self.list_sort(folder, Sort::Folder)
    }

    /// Lists regular files and subdirectories. An empty path stands for the project directory.
    fn list_both(&self, folder: &str) -> Result<(Vec<String>, Vec<String>)> {
        if !folder.is_empty() {
            return Ok((self.list(folder)?, self.list_folders(folder)?));
        }
        let Some(root) = self.folder()? else {
            return Ok((Vec::new(), Vec::new()));
        };
        let (mut files, mut folders) = (Vec::new(), Vec::new());
        for (name, sort) in root.names().with_context(|| cannot_message("read", "."))? {
            let Some(name) = name.to_str() else { continue };
            match sort {
                Sort::File => files.push(name.to_owned()),
                Sort::Folder => folders.push(name.to_owned()),
                _ => {}
            }
        }
        files.sort();
        folders.sort();
        Ok((files, folders))
    }

    fn list_sort(&self, folder: &str, asked: Sort) -> Result<Vec<String>> {
        check_relative(folder)?;
        if let Some(memory) = &self.memory {
            return Ok(list_memory(memory, folder, asked));
        }
        let Some(root) = self.folder()? else {
            return Ok(Vec::new());
        };
        let Some((folder_above, name)) = root.reach(folder)? else {
            return Ok(Vec::new());
        };
        let context = || cannot_message("read", folder);
        match folder_above.look(name).with_context(context)? {
            None => return Ok(Vec::new()),
            Some(status) if status.sort == Sort::Link => bail!(is_link(folder)),
            Some(status) if status.sort != Sort::Folder => bail!("{folder} is not a directory: move it away"),
            Some(_) => {}
        }
        let open = folder_above.folder(name).with_context(context)?;
        let mut names: Vec<String> = open
            .names()
            .with_context(context)?
            .into_iter()
            .filter(|(_, sort)| *sort == asked)
            .filter_map(|(name, _)| Some(format!("{folder}/{}", name.to_str()?)))
            .collect();
        names.sort();
        Ok(names)
    }

    fn folder(&self) -> Result<Option<&Folder>> {
        if let Some(folder) = self.folder.get() {
            return Ok(Some(folder));
        }
        // Don't cache a missing directory: the command may create it later.
        Ok(open_project(&self.root)?.map(|folder| self.folder.get_or_init(|| folder)))
    }

    fn look(&self, path: &str) -> Result<Option<Vec<u8>>> {
        if let Some(levels) = levels_above(path) {
            return self.look_above(levels, path);
        }
        check_relative(path)?;
        if let Some(memory) = &self.memory {
            return Ok(memory.get(path).map(|text| text.clone().into_bytes()));
        }
        let Some(root) = self.folder()? else {
            return Ok(None);
        };
        // Try a single system call first. If it is unsupported or fails, walk the path by
        // component.
        if let Some(Ok(file)) = open_without_links(root, Path::new(path))
            && let Some(bytes) = read_bounded(file, LARGEST).with_context(|| cannot_message("read", path))?
        {
            return Ok(Some(bytes));
        }
        match root.reach(path)? {
            Some((folder, name)) => folder.read(name, LARGEST, path),
            None => Ok(None),
        }
    }
}

impl Tree {
    /// Reads a `Cargo.toml` above the project directory, which need not exist yet.
    fn look_above(&self, levels: usize, path: &str) -> Result<Option<Vec<u8>>> {
        let root = resolve_path(&self.root);
        let Some(above) = root.ancestors().nth(levels).filter(|_| self.memory.is_none()) else {
            return Ok(None);
        };
        let folder = Folder::open(above).with_context(|| cannot_message("open", path))?;
        folder.read(MANIFEST, LARGEST, path)
    }
}

const MANIFEST: &str = "Cargo.toml";

/// The manifest `levels` directories above the project, as a relative path.
pub fn manifest_above(levels: usize) -> String {
    format!("{}{MANIFEST}", "../".repeat(levels))
}

/// Number of levels between the project and a manifest above it, e.g. 2 for `../../Cargo.toml`.
/// `None` for any other path. The manifest of the workspace that the project joins is the only file
/// outside the project that a plan may change.
pub(crate) fn levels_above(path: &str) -> Option<usize> {
    let levels = path.matches("../").count();
    ((1..=MOST_ANCESTORS).contains(&levels) && path == manifest_above(levels)).then_some(levels)
}

fn list_memory(files: &BTreeMap<String, String>, folder: &str, asked: Sort) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for path in files.keys() {
        let below = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
        let entry = match (below, asked) {
            (Some(below), Sort::Folder) => below.split_once('/').map(|(name, _)| name),
            (Some(below), _) => Some(below).filter(|below| !below.contains('/')),
            (None, _) => None,
        };
        found.extend(entry.map(|name| format!("{folder}/{name}")));
    }
    found.sort();
    found.dedup();
    found
}

/// Opens a project directory. Returns `None` if it does not exist yet, and fails if the path is too
/// long or is not a directory.
pub(crate) fn open_project(root: &Path) -> Result<Option<Folder>> {
    match Folder::open(root) {
        Ok(folder) => Ok(Some(folder)),
        Err(error) => match error.kind() {
            ErrorKind::NotFound => Ok(None),
            ErrorKind::NotADirectory => bail!("{} is not a directory", root.display()),
            ErrorKind::InvalidFilename => {
                bail!(
                    "the path of the project directory is too long for the file system: choose a shorter one"
                )
            }
            _ => Err(error).with_context(|| cannot_message("open", &display_root(root))),
        },
    }
}

/// A project directory as shown in messages.
pub fn display_root(root: &Path) -> String {
    if root == Path::new(".") {
        "this directory".to_owned()
    } else {
        without_verbatim_prefix(&root.display().to_string())
    }
}

const MOST_ANCESTORS: usize = 32;

/// Reads the Cargo manifests above a project, nearest first, each with its directory.
pub fn read_manifests_above(root: &Path) -> Vec<(PathBuf, String)> {
    let root = resolve_path(root);
    let folders = root.ancestors().skip(1).take(MOST_ANCESTORS);
    let manifest = |folder: &Path| {
        let path = folder.join("Cargo.toml");
        let is_readable = fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= LARGEST);
        let text = is_readable.then(|| fs::read_to_string(path).ok())??;
        Some((folder.to_owned(), text))
    };
    folders.filter_map(manifest).collect()
}

/// Canonicalizes a path. The part that doesn't exist yet stays as is.
pub fn resolve_path(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut missing = Vec::new();
    let mut place = absolute.as_path();
    loop {
        // Only an existing path can be canonicalized, so go up until there is one.
        if let Ok(known) = fs::canonicalize(place) {
            return missing.iter().rev().fold(known, |path, part| path.join(part));
        }
        match (place.file_name(), place.parent()) {
            (Some(name), Some(parent)) => {
                missing.push(name.to_owned());
                place = parent;
            }
            _ => return absolute,
        }
    }
}

/// Checks that a path does not lead out of the project.
pub fn check_relative(path: &str) -> Result<()> {
    if !portable::is_within(path) {
        bail!("`{}` is not a path within the project", path.escape_debug());
    }
    check_length(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tree_in_memory_lists_its_files() {
        let files = ["a/b/c", "a/d", "a/e", "ab/f"].map(|path| (path.to_owned(), String::new()));
        let tree = Tree::in_memory(BTreeMap::from(files));
        assert_eq!(tree.list("a").expect("a folder"), ["a/d", "a/e"]);
        assert_eq!(tree.list_folders("a").expect("a folder"), ["a/b"]);
        assert_eq!(tree.list("none").expect("no folder"), [""; 0]);
        assert_eq!(tree.read("ab/f").expect("a file").as_deref(), Some(""));
        assert_eq!(tree.read("ab/g").expect("no file"), None);
    }

    #[test]
    fn detects_a_file_that_changed_between_reads() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |text: &str| fs::write(folder.path().join("PROJECT"), text).expect("a file");
        let tree = Tree::new(folder.path());
        write("one");
        assert_eq!(tree.read("PROJECT").expect("it is text").as_deref(), Some("one"));
        assert!(tree.verify_unchanged().is_ok());
        write("two");
        assert_eq!(tree.read("PROJECT").expect("it is text").as_deref(), Some("two"));
        let error = tree.verify_unchanged().expect_err("it was `one`").to_string();
        assert!(
            error.starts_with("PROJECT was changed while the command was running"),
            "{error}"
        );
    }
}

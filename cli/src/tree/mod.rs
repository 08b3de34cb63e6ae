//! The project folder as it is: the only module that reads it.
//!
//! Every file that was looked at is remembered with what it held, so that a plan made from it can be refused
//! when somebody has changed the file in the meantime.

#![allow(clippy::disallowed_methods)] // this is the module that reads

mod area;
mod sources;

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use fs_err as fs;

use crate::disk::{Folder, Sort, cannot, check_length, is_link, open_without_links, read_bounded};
use crate::hash::mixed_64;

use sources::SourceTexts;
pub use sources::TreeSources;

/// The largest file that is read, in bytes. Memory must not be for a repository to decide; nobody writes such a file.
pub(crate) const LARGEST: u64 = 64 << 20;

/// A project folder.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    /// The folder, once it was there.
    folder: OnceCell<Folder>,
    /// What each file held that was looked at; nothing where there was no file.
    seen: RefCell<BTreeMap<String, Option<Held>>>,
    /// What was read as source.
    sources: RefCell<Vec<Arc<SourceTexts>>>,
}

/// A file that a decision rests on holds something else by now. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[error("{path} was changed while the command ran; nothing was written: run it again")]
pub struct Changed {
    path: String,
}

impl Changed {
    /// The error about a file.
    pub(crate) fn new(path: &str) -> Changed {
        Changed {
            path: path.to_owned(),
        }
    }
}

/// What a file held, without the text: a project's manifests together are large.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    length: usize,
    hash: u64,
}

impl Held {
    fn of(bytes: &[u8]) -> Held {
        Held {
            length: bytes.len(),
            hash: mixed_64(bytes),
        }
    }
}

impl Tree {
    /// A folder, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Tree {
        Tree {
            root: root.into(),
            folder: OnceCell::new(),
            seen: RefCell::default(),
            sources: RefCell::default(),
        }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder in a sentence.
    pub fn shown(&self) -> String {
        shown(&self.root)
    }

    /// The name of the folder, for projects that are not given one.
    pub fn folder_name(&self) -> Option<String> {
        let absolute = std::path::absolute(&self.root).ok()?;
        let absolute = fs::canonicalize(&absolute).unwrap_or(absolute);
        Some(absolute.file_name()?.to_str()?.to_owned())
    }

    /// The text of a file; nothing when there is no such file.
    ///
    /// # Errors
    /// When the path leads out of the folder or through a symbolic link, or is not a file of UTF-8 text of at most
    /// 64 MiB.
    pub fn read(&self, path: &str) -> Result<Option<String>> {
        let bytes = self.look(path)?;
        let held = bytes.as_deref().map(Held::of);
        // What was read first counts: something has been decided on it, whatever a later look finds.
        self.seen.borrow_mut().entry(path.to_owned()).or_insert(held);
        bytes
            .map(|bytes| String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("{path} is not UTF-8 text")))
            .transpose()
    }

    /// Fails when a file that was read, as source or otherwise, holds something else by now.
    ///
    /// # Errors
    /// A [`Changed`] when one does; when one cannot be read any more.
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

    /// The files directly in a folder, sorted; none when there is no such folder. Links are no files.
    ///
    /// # Errors
    /// When the folder cannot be read, or its path leads through a link.
    pub fn list(&self, folder: &str) -> Result<Vec<String>> {
        check_relative(folder)?;
        let Some(root) = self.folder()? else {
            return Ok(Vec::new());
        };
        let Some((folder_above, name)) = root.reach(folder)? else {
            return Ok(Vec::new());
        };
        let told = || cannot("read", folder);
        match folder_above.look(name).with_context(told)? {
            None => return Ok(Vec::new()),
            Some(status) if status.sort == Sort::Link => bail!(is_link(folder)),
            Some(status) if status.sort != Sort::Folder => bail!("{folder} is not a folder: move it away"),
            Some(_) => {}
        }
        let open = folder_above.folder(name).with_context(told)?;
        let mut names: Vec<String> = open
            .names()
            .with_context(told)?
            .into_iter()
            .filter(|(_, sort)| *sort == Sort::File)
            .filter_map(|(name, _)| Some(format!("{folder}/{}", name.to_str()?)))
            .collect();
        names.sort();
        Ok(names)
    }

    /// The open project folder; nothing when it is not there yet.
    fn folder(&self) -> Result<Option<&Folder>> {
        if let Some(folder) = self.folder.get() {
            return Ok(Some(folder));
        }
        Ok(open_project(&self.root)?.map(|folder| self.folder.get_or_init(|| folder)))
    }

    /// What a path holds now.
    fn look(&self, path: &str) -> Result<Option<Vec<u8>>> {
        check_relative(path)?;
        let Some(root) = self.folder()? else {
            return Ok(None);
        };
        // One call where the system has it; where it does not, or something is in the way, name by name.
        if let Some(Ok(file)) = open_without_links(root, Path::new(path))
            && let Some(bytes) = read_bounded(file, LARGEST).with_context(|| cannot("read", path))?
        {
            return Ok(Some(bytes));
        }
        match root.reach(path)? {
            Some((folder, name)) => folder.read(name, LARGEST, path),
            None => Ok(None),
        }
    }
}

/// Opens a project folder; nothing when it is not there yet.
///
/// # Errors
/// When the path is that of something else, or too long for one.
pub(crate) fn open_project(root: &Path) -> Result<Option<Folder>> {
    match Folder::open(root) {
        Ok(folder) => Ok(Some(folder)),
        Err(error) => match error.kind() {
            ErrorKind::NotFound => Ok(None),
            ErrorKind::NotADirectory => bail!("{} is not a folder", root.display()),
            ErrorKind::InvalidFilename => {
                bail!("the path of the project folder is too long for the file system: choose a shorter one")
            }
            _ => Err(error).with_context(|| cannot("open", &shown(root))),
        },
    }
}

/// A project folder in a sentence.
pub(crate) fn shown(root: &Path) -> String {
    if root == Path::new(".") {
        "this folder".to_owned()
    } else {
        root.display().to_string()
    }
}

/// The folder of the rbuilder checkout that this command was built from, if it still is one.
pub(crate) fn checkout() -> Option<PathBuf> {
    let folder = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).ok()?;
    folder.join("runtime/Cargo.toml").is_file().then_some(folder)
}

/// A path as it is after links and `..`; parts that do not exist yet stay as they are.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut missing = Vec::new();
    let mut place = absolute.as_path();
    loop {
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

/// Refuses what could lead out of the project.
pub(crate) fn check_relative(path: &str) -> Result<()> {
    let sound = !path.is_empty()
        && !path.contains(['\\', '\0'])
        && path
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != "..");
    if !sound {
        bail!("`{}` is not a path within the project", path.escape_debug());
    }
    check_length(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changes_between_two_looks_has_changed() {
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
            error.starts_with("PROJECT was changed while the command ran"),
            "{error}"
        );
    }
}

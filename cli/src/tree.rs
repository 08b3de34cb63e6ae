//! The project folder as it is: the only module that reads it.
//!
//! Every file that was looked at is remembered with what it held, so that a plan made from it can be refused
//! when somebody has changed the file in the meantime.

#![allow(clippy::disallowed_methods)] // this is the module that reads

mod sources;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use fs_err as fs;

use crate::hash::mixed_64;

pub use sources::TreeSources;

/// A project folder.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    /// What each file held that was looked at; nothing where there was no file.
    seen: RefCell<BTreeMap<String, Option<Held>>>,
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
            seen: RefCell::default(),
        }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder in a sentence.
    pub fn shown(&self) -> String {
        if self.root == Path::new(".") {
            "this folder".to_owned()
        } else {
            self.root.display().to_string()
        }
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
    /// When the path leads out of the folder or through a symbolic link, or is not a file of UTF-8 text.
    pub fn read(&self, path: &str) -> Result<Option<String>> {
        let bytes = self.look(path)?;
        let held = bytes.as_deref().map(Held::of);
        // What was read first counts: something has been decided on it, whatever a later look finds.
        self.seen.borrow_mut().entry(path.to_owned()).or_insert(held);
        bytes
            .map(|bytes| String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("{path} is not UTF-8 text")))
            .transpose()
    }

    /// Fails when a file that was read holds something else by now.
    ///
    /// # Errors
    /// When one does, or cannot be read any more.
    pub fn verify_unchanged(&self) -> Result<()> {
        for (path, before) in self.seen.borrow().iter() {
            if self.look(path)?.as_deref().map(Held::of) != *before {
                bail!("{path} was changed while the command ran; nothing was written: run it again");
            }
        }
        Ok(())
    }

    /// The files directly in a folder, sorted; none when there is no such folder.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn list(&self, folder: &str) -> Result<Vec<String>> {
        let entries = match fs::read_dir(self.root.join(folder)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_file()
                && let Some(name) = entry.file_name().to_str()
            {
                names.push(format!("{folder}/{name}"));
            }
        }
        names.sort();
        Ok(names)
    }

    /// What a path holds now.
    fn look(&self, path: &str) -> Result<Option<Vec<u8>>> {
        check_relative(path)?;
        let mut place = self.root.clone();
        for part in path.split('/') {
            place.push(part);
            match fs::symlink_metadata(&place) {
                Ok(metadata) if metadata.file_type().is_symlink() => bail!(
                    "{} is a symbolic link, and rbuilder does not follow links it might write through: replace it with what it points to",
                    place.display()
                ),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) if error.kind() == ErrorKind::NotADirectory => {
                    bail!(
                        "{} cannot be a folder: a file has its name",
                        place.parent().unwrap_or(&place).display()
                    )
                }
                Err(error) => return Err(error.into()),
            }
        }
        let metadata = fs::symlink_metadata(&place)?;
        if !metadata.is_file() {
            bail!("{path} is not a file: move it away");
        }
        Ok(Some(fs::read(&place)?))
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
        && !path.contains('\\')
        && path
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != "..");
    if !sound {
        bail!("`{path}` is not a path within the project");
    }
    Ok(())
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

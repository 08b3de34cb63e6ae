//! Access to source files: the generator requests files, and the caller reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use memchr::memmem;

/// Provides the text of files.
///
/// Paths are relative to the folder in which the command runs, with `/` as the separator. Paths of
/// path dependencies may start with `../` or be absolute.
///
/// Files are requested when they are needed, and never twice for the same purpose, so an
/// implementation can read lazily. For the same path, it has to return the same result throughout a
/// run.
pub trait Sources: Sync {
    /// Returns the text of a file, or `None` if there is no such file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file exists but can't be read. The error is a phrase with the
    /// reason.
    fn text(&self, path: &str) -> Result<Option<Arc<str>>, String>;

    /// Returns all Rust files below a folder, sorted by path, excluding hidden folders and nested
    /// packages. Empty if the folder doesn't exist.
    ///
    /// # Errors
    ///
    /// Returns an error if a folder can't be read. The error is a phrase with the reason.
    fn rust_files(&self, folder: &str) -> Result<Vec<String>, String>;

    /// Returns the names of the direct subfolders, sorted. Empty if the folder doesn't exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder can't be read. The error is a phrase with the reason.
    fn folders(&self, folder: &str) -> Result<Vec<String>, String>;

    /// Makes the text files of a published package available below `folder`, which starts with
    /// [`REGISTRY`]. From then on, the other methods must serve such folders from the archive,
    /// never from disk.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no archive with this checksum, or if it can't be read.
    fn open_archive(&self, folder: &str, archive: &Archive<'_>) -> Result<(), ArchiveError>;

    /// Filters the given CRDs (e.g. `cups.example.com`) for those mentioned in a manifest or
    /// template in the repository, apart from tests. Called at most once, and only if the source
    /// doesn't show which project the kinds belong to.
    fn find_committed_crds(&self, _names: &BTreeSet<String>) -> BTreeSet<String> {
        BTreeSet::new()
    }
}

/// The virtual folder of published packages. Archives are identified by checksum, so their location
/// doesn't matter.
pub const REGISTRY: &str = "<registry>";

/// The archive of a published package, as identified in `Cargo.lock`.
#[derive(Clone, Copy, Debug)]
pub struct Archive<'a> {
    /// The name of the package: letters, digits, `-` and `_`.
    pub name: &'a str,
    /// The version. Contains no `/`.
    pub version: &'a str,
    /// The SHA-256 of the archive, in hex.
    pub checksum: &'a str,
}

/// Why an archive isn't available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchiveError {
    /// The archive isn't on this machine.
    Absent,
    /// The archive at this path has another checksum.
    OtherChecksum(String),
    /// The archive can't be read, for this reason.
    Unreadable(String),
}

/// Returns the given CRD names that occur in a manifest.
pub fn find_crd_names<'n>(text: &str, names: &'n BTreeSet<String>) -> Vec<&'n String> {
    if !text.contains("CustomResourceDefinition") {
        return Vec::new();
    }
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.');
    let words: BTreeSet<&str> = text.split(|c| !is_word(c)).collect();
    names
        .iter()
        .filter(|name| words.contains(name.as_str()))
        .collect()
}

/// In-memory files, by path.
#[derive(Clone, Debug, Default)]
pub struct SourceSet {
    files: BTreeMap<String, Arc<str>>,
}

impl SourceSet {
    /// Adds one file.
    pub fn insert(&mut self, path: impl Into<String>, text: impl Into<Arc<str>>) {
        self.files.insert(path.into(), text.into());
    }

    /// Returns the paths of all files in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Returns the text of one file.
    pub fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(|text| &**text)
    }

    fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a str> {
        self.paths().filter_map(move |path| within(folder, path))
    }
}

impl Sources for SourceSet {
    fn text(&self, path: &str) -> Result<Option<Arc<str>>, String> {
        Ok(self.files.get(path).cloned())
    }

    fn find_committed_crds(&self, names: &BTreeSet<String>) -> BTreeSet<String> {
        let manifests = self.files.iter().filter(|(path, _)| path.ends_with(".yaml"));
        manifests
            .flat_map(|(_, text)| find_crd_names(text, names))
            .cloned()
            .collect()
    }

    fn rust_files(&self, folder: &str) -> Result<Vec<String>, String> {
        let packages: Vec<&str> = self
            .below(folder)
            .filter_map(|path| path.strip_suffix("/Cargo.toml"))
            .collect();
        let belongs = |path: &str| packages.iter().all(|package| within(package, path).is_none());
        Ok(self
            .below(folder)
            .filter(|path| path.ends_with(".rs") && belongs(path))
            .map(|path| join(folder, path))
            .collect())
    }

    fn folders(&self, folder: &str) -> Result<Vec<String>, String> {
        let names: BTreeSet<&str> = self
            .below(folder)
            .filter_map(|path| path.split_once('/'))
            .map(|(name, _)| name)
            .collect();
        Ok(names.into_iter().map(str::to_owned).collect())
    }

    /// Succeeds if any file of the archive is present.
    fn open_archive(&self, folder: &str, _: &Archive<'_>) -> Result<(), ArchiveError> {
        match self.below(folder).next() {
            Some(_) => Ok(()),
            None => Err(ArchiveError::Absent),
        }
    }
}

fn within<'a>(folder: &str, path: &'a str) -> Option<&'a str> {
    if folder.is_empty() {
        return (!path.starts_with("../") && !path.starts_with('/')).then_some(path);
    }
    path.strip_prefix(folder)?.strip_prefix('/')
}

pub(crate) fn is_within(folder: &str, path: &str) -> bool {
    within(folder, path).is_some()
}

/// Joins a folder and a path, removing `.` and `..`. A relative path keeps leading `..`.
pub(crate) fn join(folder: &str, name: &str) -> String {
    // The folder of an archive is a root like `/`, which `..` must not leave.
    if let Some(inner) = within(REGISTRY, folder) {
        let (package, below) = inner.split_once('/').unwrap_or((inner, ""));
        let below = if name.starts_with('/') { "" } else { below };
        let path = normalize(&format!("{below}/{name}"));
        let path = path.trim_start_matches('/').trim_start_matches("../");
        let is_root = matches!(path, "" | "..");
        return match is_root {
            true => format!("{REGISTRY}/{package}"),
            false => format!("{REGISTRY}/{package}/{path}"),
        };
    }
    if name.starts_with('/') || folder.is_empty() {
        return normalize(name);
    }
    normalize(&format!("{folder}/{name}"))
}

pub(crate) fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) => "/",
        Some((folder, _)) => folder,
        None => "",
    }
}

fn normalize(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

/// Returns true if the text contains a word. Takes a fraction of the time of `str::contains`, which
/// matters since each (long) file is searched for several words.
pub(crate) fn is_in_file(word: &str, text: &str) -> bool {
    memmem::find(text.as_bytes(), word.as_bytes()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_and_normalizes_paths() {
        for (folder, name, expected) in [
            ("", "src/lib.rs", "src/lib.rs"),
            ("api", "./src/../src/lib.rs", "api/src/lib.rs"),
            ("api", "../core", "core"),
            ("", "../core", "../core"),
            ("../core", "../../x", "../../x"),
            ("api", "/abs/x", "/abs/x"),
            ("/abs/x", "../y", "/abs/y"),
            (
                "<registry>/a-1.0.0",
                "src/lib.rs",
                "<registry>/a-1.0.0/src/lib.rs",
            ),
            ("<registry>/a-1.0.0/src", "../b.rs", "<registry>/a-1.0.0/b.rs"),
            (
                "<registry>/a-1.0.0/src",
                "../../../etc/x",
                "<registry>/a-1.0.0/etc/x",
            ),
            ("<registry>/a-1.0.0/src", "/etc/x", "<registry>/a-1.0.0/etc/x"),
            ("<registry>/a-1.0.0/src", "..", "<registry>/a-1.0.0"),
        ] {
            assert_eq!(join(folder, name), expected);
        }
        assert_eq!(parent("a/b.rs"), "a");
        assert_eq!(parent("b.rs"), "");
    }

    #[test]
    fn rust_files_excludes_nested_packages() {
        let mut sources = SourceSet::default();
        for path in [
            "src/a.rs",
            "src/in/Cargo.toml",
            "src/in/b.rs",
            "x/y/z.rs",
            "../up/src/c.rs",
        ] {
            sources.insert(path, "");
        }
        assert_eq!(sources.rust_files("src"), Ok(vec!["src/a.rs".to_owned()]));
        assert_eq!(sources.folders(""), Ok(vec!["src".to_owned(), "x".to_owned()]));
        assert_eq!(
            sources.rust_files("../up/src"),
            Ok(vec!["../up/src/c.rs".to_owned()])
        );
    }
}

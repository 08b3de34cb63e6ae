//! The source of text: the generator names the files it needs, and the caller reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Gives text by path.
///
/// Paths are relative to the folder that the command runs in, with `/` between folders; those of path crates
/// may begin with `../` or be absolute. The generator asks for a file when it needs it and never twice for
/// the same purpose, so whoever answers may read lazily. The same question must get the same answer for as
/// long as a run lasts.
pub trait Sources: Sync {
    /// The text of a file; nothing when there is no such file.
    ///
    /// # Errors
    /// When the file is there and its text cannot be had: the reason, a phrase.
    fn text(&self, path: &str) -> Result<Option<Arc<str>>, String>;

    /// Every Rust file below a folder, sorted by path; none when there is no such folder. Hidden folders
    /// and packages within the folder are left out.
    ///
    /// # Errors
    /// When a folder cannot be read: the reason, a phrase.
    fn rust_files(&self, folder: &str) -> Result<Vec<String>, String>;

    /// The names of the folders directly in a folder, sorted; none when there is no such folder.
    ///
    /// # Errors
    /// When the folder cannot be read: the reason, a phrase.
    fn folders(&self, folder: &str) -> Result<Vec<String>, String>;

    /// Makes the text files of a package of a registry available below a folder, which begins with [`REGISTRY`]. Other
    /// questions about such a folder are about the archive alone, never about the disk.
    ///
    /// # Errors
    /// When there is no archive with this checksum, or it cannot be read.
    fn open_archive(&self, folder: &str, archive: &Archive<'_>) -> Result<(), ArchiveError>;

    /// Returns those of the CRDs with these names, such as `cups.example.com`, that a manifest or a template of the repository
    /// contains, wherever it is, without those of tests. This is asked at most once, and only if the source does not say whose
    /// the kinds are.
    fn find_committed_crds(&self, _names: &BTreeSet<String>) -> BTreeSet<String> {
        BTreeSet::new()
    }
}

/// The folder that the packages of registries seem to be in. Where they come from is not a matter of their paths: an
/// archive with the checksum is the same wherever it is.
pub const REGISTRY: &str = "<registry>";

/// The published archive of a package, as `Cargo.lock` names it.
#[derive(Clone, Copy, Debug)]
pub struct Archive<'a> {
    /// Name of the package, of letters, digits, `-` and `_`.
    pub name: &'a str,
    /// Its version, without `/`.
    pub version: &'a str,
    /// SHA-256 of the archive, in hexadecimal digits.
    pub checksum: &'a str,
}

/// The reason why an archive is not available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchiveError {
    /// It is not on this machine.
    Absent,
    /// There is one, at this place, with another checksum.
    OtherChecksum(String),
    /// It cannot be read: the reason, a phrase.
    Unreadable(String),
}

/// Returns those of the names of CRDs that a manifest contains.
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

/// Text held in memory: `Cargo.toml`s and Rust files by path.
#[derive(Clone, Debug, Default)]
pub struct SourceSet {
    files: BTreeMap<String, Arc<str>>,
}

impl SourceSet {
    /// Adds one file.
    pub fn insert(&mut self, path: impl Into<String>, text: impl Into<Arc<str>>) {
        self.files.insert(path.into(), text.into());
    }

    /// The paths of all files, in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The text of one file.
    pub fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(|text| &**text)
    }

    /// Returns the files below a folder, as paths relative to it.
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

    /// An archive is there if one of its files is.
    fn open_archive(&self, folder: &str, _: &Archive<'_>) -> Result<(), ArchiveError> {
        match self.below(folder).next() {
            Some(_) => Ok(()),
            None => Err(ArchiveError::Absent),
        }
    }
}

/// The path from a folder to a file below it.
fn within<'a>(folder: &str, path: &'a str) -> Option<&'a str> {
    if folder.is_empty() {
        return (!path.starts_with("../") && !path.starts_with('/')).then_some(path);
    }
    path.strip_prefix(folder)?.strip_prefix('/')
}

/// Returns whether a path leads into a folder.
pub(crate) fn is_within(folder: &str, path: &str) -> bool {
    within(folder, path).is_some()
}

/// `folder/name`, without `.` and, where something stands before it, without `..`. The folder of an archive is a root, as
/// `/` is: no path leads out of it.
pub(crate) fn join(folder: &str, name: &str) -> String {
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

/// The folder of a file.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
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
    fn a_package_within_is_left_out() {
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

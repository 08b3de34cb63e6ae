//! The contents of a project at one point in time, to tell an edit from a file event that changes
//! nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use crate::hash::checksum;
use crate::tree::LARGEST;

/// Lengths and checksums of a project's files, by path. Excludes build output, hidden directories
/// and Cargo.lock, which cargo writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot(BTreeMap<String, (usize, u32)>);

impl Snapshot {
    /// Reads all files below a directory, skipping unreadable ones.
    pub fn take(root: &Path) -> Snapshot {
        let mut files = BTreeMap::new();
        let entries = WalkDir::new(root)
            .into_iter()
            .filter_entry(|entry| entry.depth() == 0 || is_watched(entry));
        for entry in entries.flatten().filter(|entry| entry.file_type().is_file()) {
            let Ok(path) = entry.path().strip_prefix(root) else {
                continue;
            };
            let is_large = entry.metadata().is_ok_and(|metadata| metadata.len() > LARGEST);
            if let (false, Ok(content)) = (is_large, std::fs::read(entry.path())) {
                files.insert(
                    path.to_string_lossy().replace('\\', "/"),
                    (content.len(), checksum(&content)),
                );
            }
        }
        Snapshot(files)
    }

    /// Returns files that differ between the snapshots, or exist in only one of them.
    pub fn changed_since<'a>(&'a self, before: &'a Snapshot) -> Vec<&'a str> {
        let paths = self
            .0
            .keys()
            .chain(before.0.keys().filter(|path| !self.0.contains_key(*path)));
        let is_changed = |path: &&String| self.0.get(*path) != before.0.get(*path);
        let mut changed: Vec<_> = paths.filter(is_changed).map(String::as_str).collect();
        changed.sort_unstable();
        changed
    }

    /// Copies the state of the given paths from a later snapshot.
    pub fn accept(&mut self, paths: &[String], later: &Snapshot) {
        for path in paths {
            match later.0.get(path) {
                Some(hash) => self.0.insert(path.clone(), *hash),
                None => self.0.remove(path),
            };
        }
    }
}

/// Direct subdirectories of a project to watch for changes.
pub fn watched_folders(root: &Path) -> Vec<PathBuf> {
    let entries = WalkDir::new(root)
        .min_depth(1)
        .max_depth(1)
        .sort_by_file_name()
        .into_iter();
    let folders = entries
        .flatten()
        .filter(|entry| entry.file_type().is_dir() && is_watched(entry));
    folders.map(DirEntry::into_path).collect()
}

fn is_watched(entry: &DirEntry) -> bool {
    let name = entry.file_name().to_string_lossy();
    if entry.file_type().is_dir() {
        let is_build_output = || name == "target" || entry.path().join("CACHEDIR.TAG").is_file();
        // .cargo configures the build. Other hidden directories belong to other tools.
        return name == ".cargo" || !(name.starts_with('.') || is_build_output());
    }
    name != "Cargo.lock"
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_changes_by_people_count() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("within the folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        };
        let check = |before: &Snapshot, expected: &[&str]| {
            let now = Snapshot::take(folder.path());
            assert_eq!(now.changed_since(before), expected);
            now
        };
        write("src/main.rs", "a");
        write("out/CACHEDIR.TAG", "");
        let first = check(&Snapshot::default(), &["src/main.rs"]);
        for path in ["target/debug/a", ".git/HEAD", "Cargo.lock", "out/debug/b"] {
            write(path, "a");
        }
        write("src/main.rs", "a");
        check(&first, &[]);
        write("src/main.rs", "b");
        write("src/lib.rs", "");
        write(".cargo/config.toml", "");
        let second = check(&first, &[".cargo/config.toml", "src/lib.rs", "src/main.rs"]);
        fs::remove_file(folder.path().join("src/lib.rs")).expect("it is there");
        let third = check(&second, &["src/lib.rs"]);
        let mut accepted = second;
        accepted.accept(&["src/lib.rs".to_owned()], &third);
        assert_eq!(accepted, third);
        let folders = watched_folders(folder.path());
        assert_eq!(folders, [".cargo", "src"].map(|name| folder.path().join(name)));
    }
}

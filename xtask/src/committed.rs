//! Helpers for generated files that are committed. They can be read, compared and written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use similar::TextDiff;

use crate::repo;
use crate::sh::Cmd;

/// The arguments of tasks whose results are committed.
#[derive(clap::Args)]
pub(crate) struct Check {
    /// Change nothing; fail if a committed result is stale
    #[arg(long)]
    pub(crate) check: bool,
}

/// The contents of files. Keys are relative paths, which use `/` on all platforms.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Writes a file, or compares it with the existing one if `is_check` is set.
///
/// The `path` is relative to the repository root, and `task` is the name of the task that
/// generates the file.
pub(crate) fn update_file(path: &str, new: &[u8], is_check: bool, task: &str) -> Result<()> {
    let full = repo::root().join(path);
    let old = fs_err::read(&full).unwrap_or_default();
    if old == new {
        println!("{path} is up to date");
    } else if is_check {
        if let (Ok(old), Ok(new)) = (str::from_utf8(&old), str::from_utf8(new)) {
            print!(
                "{}",
                TextDiff::from_lines(old, new).unified_diff().context_radius(0)
            );
        }
        bail!("{path} is stale; run `cargo xtask {task}` and read the diff");
    } else {
        fs_err::write(&full, new)?;
        println!("{path} was brought up to date");
    }
    Ok(())
}

/// Like [`update_file`], but for a folder and everything in it. Returns false if the committed folder
/// differs from the `new` files, and prints the differences.
pub(crate) fn update_tree(path: &str, new: &Files, is_check: bool) -> Result<bool> {
    let folder = repo::root().join(path);
    let old = read_tree(&folder)?;
    let differences = unified_diffs(&old, new);
    if differences.is_empty() {
        println!("{path} is up to date");
    } else if is_check {
        print!("{differences}");
        return Ok(false);
    } else {
        write_tree(&folder, &old, new)?;
        println!("{path} was brought up to date");
    }
    Ok(true)
}

/// Returns all files in a folder, but not the build output. If there is no such folder, the result
/// is empty.
pub(crate) fn read_tree(folder: &Path) -> Result<Files> {
    let mut files = Files::new();
    for path in list_files(folder, "")? {
        let relative = path.strip_prefix(folder)?;
        if !relative.starts_with("target") {
            let name = relative.to_string_lossy().replace('\\', "/");
            files.insert(name, fs_err::read(&path)?);
        }
    }
    Ok(files)
}

/// Returns the differences between `old` and `new` as unified diffs. Empty if there are none.
fn unified_diffs(old: &Files, new: &Files) -> String {
    let paths: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let text = |files: &Files, path: &String| {
        files
            .get(path)
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            .unwrap_or_default()
    };
    let name = |files: &Files, path: &String| {
        if files.contains_key(path) {
            path.clone()
        } else {
            "/dev/null".to_owned()
        }
    };
    paths
        .into_iter()
        .filter(|path| old.get(*path) != new.get(*path))
        .map(|path| {
            let (before, after) = (text(old, path), text(new, path));
            let header = format!("--- {}\n+++ {}\n", name(old, path), name(new, path));
            let diff = TextDiff::from_lines(&before, &after);
            header + &diff.unified_diff().context_radius(3).to_string()
        })
        .collect()
}

/// Returns the paths of all files in a folder and its subfolders that have this extension (or any, if
/// it's empty), in sorted order. If there is no such folder, the result is empty.
pub(crate) fn list_files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    if folder.is_dir() {
        for entry in walkdir::WalkDir::new(folder).sort_by_file_name() {
            let entry = entry?;
            let is_chosen =
                extension.is_empty() || entry.path().extension().is_some_and(|it| it == extension);
            if entry.file_type().is_file() && is_chosen {
                paths.push(entry.into_path());
            }
        }
    }
    Ok(paths)
}

/// Returns the paths of everything in a folder, in sorted order.
pub(crate) fn list_folder(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs_err::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = entries.collect::<Result<_, _>>()?;
    paths.sort();
    Ok(paths)
}

/// Lists all files that git tracks or would add, one per line.
pub(crate) fn tracked_files() -> Result<String> {
    let list = Cmd::new("git ls-files --cached --others --exclude-standard");
    list.dir(repo::root()).read()
}

/// Updates a folder from `old` to `new`. Writes all files that have changed, and removes files that
/// are not in `new`.
fn write_tree(folder: &Path, old: &Files, new: &Files) -> Result<()> {
    for (path, content) in new
        .iter()
        .filter(|(path, content)| old.get(*path) != Some(content))
    {
        write_file(&folder.join(path), content)?;
    }
    for path in old.keys().filter(|path| !new.contains_key(*path)) {
        fs_err::remove_file(folder.join(path))?;
    }
    Ok(())
}

/// Writes a file. If its parent folders don't exist, they are created.
pub(crate) fn write_file(path: &Path, content: &[u8]) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs_err::create_dir_all(parent)?;
    }
    fs_err::write(path, content)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(entries: &[(&str, &str)]) -> Files {
        entries
            .iter()
            .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()))
            .collect()
    }

    #[test]
    fn diff_names_all_changed_files() {
        let check = |old: &[(&str, &str)], new: &[(&str, &str)], expected: &str| {
            assert_eq!(unified_diffs(&files(old), &files(new)), expected);
        };
        check(&[("a", "1\n")], &[("a", "1\n")], "");
        check(
            &[("a", "1\n")],
            &[("a", "2\n")],
            "--- a\n+++ a\n@@ -1 +1 @@\n-1\n+2\n",
        );
        check(&[], &[("a", "1\n")], "--- /dev/null\n+++ a\n@@ -0,0 +1 @@\n+1\n");
        check(&[("a", "1\n")], &[], "--- a\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n");
    }

    #[test]
    fn new_empty_file_is_difference() {
        assert_eq!(
            unified_diffs(&files(&[]), &files(&[("a", "")])),
            "--- /dev/null\n+++ a\n"
        );
    }

    #[test]
    fn written_tree_round_trips() {
        let folder = tempfile::tempdir().unwrap();
        let old = files(&[("gone", "x"), ("same", "y")]);
        write_tree(folder.path(), &Files::new(), &old).unwrap();
        let new = files(&[("same", "y"), ("deep/er/new", "z")]);
        write_tree(folder.path(), &old, &new).unwrap();
        fs_err::create_dir(folder.path().join("target")).unwrap();
        fs_err::write(folder.path().join("target/ignored"), "").unwrap();
        assert_eq!(read_tree(folder.path()).unwrap(), new);
    }
}

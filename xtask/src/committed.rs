//! Helpers for generated files that are committed. They can be read, compared and written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Result, bail};
use similar::TextDiff;

use crate::repo;

/// The contents of files. Keys are relative paths, which use `/` on all platforms.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Writes a file, or compares it with the existing one if `is_check` is set.
///
/// The `path` is relative to the repository root, and `task` is the name of the task that
/// generates the file.
///
/// # Errors
///
/// Returns an error if the committed file differs. The differences of text files are printed.
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

/// Returns all files in a folder, but not the build output. If there is no such folder, the result
/// is empty.
pub(crate) fn read_tree(folder: &Path) -> Result<Files> {
    let mut files = Files::new();
    if !folder.exists() {
        return Ok(files);
    }
    let entries = walkdir::WalkDir::new(folder)
        .into_iter()
        .filter_entry(|entry| entry.depth() != 1 || entry.file_name() != "target");
    for entry in entries {
        let entry = entry?;
        if entry.file_type().is_file() {
            let path = entry.path().strip_prefix(folder)?;
            let path = path
                .components()
                .map(|part| part.as_os_str().to_string_lossy())
                .collect::<Vec<_>>();
            files.insert(path.join("/"), fs_err::read(entry.path())?);
        }
    }
    Ok(files)
}

/// Returns the differences between `old` and `new` as unified diffs. Empty if there are none.
pub(crate) fn unified_diffs(old: &Files, new: &Files) -> String {
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

/// Updates a folder from `old` to `new`. Writes all files that have changed, and removes files that
/// are not in `new`.
pub(crate) fn write_tree(folder: &Path, old: &Files, new: &Files) -> Result<()> {
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

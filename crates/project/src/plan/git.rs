//! Reads git's index to find out whether git tracks a file. We don't run git, because a
//! repository's configuration can make git run other programs.

#![allow(clippy::disallowed_methods)] // this module reads the repository around the project

use std::path::{Path, PathBuf};

use crate::disk::Folder;

/// Enough for an index of millions of files.
const LARGEST: u64 = 1 << 30;

/// Checks that git does not track a file, given by its path in the project.
///
/// # Errors
/// Fails for the same reasons as `check_untracked`.
pub fn check_path_untracked(root: &Path, path: &str) -> Result<(), String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    check_untracked(&root.join(folder), name)
}

/// Whether a directory is in a git repository. False if that can't be determined.
pub fn is_in_repository(root: &Path) -> bool {
    let folder = std::fs::canonicalize(root);
    folder.is_ok_and(|folder| {
        folder
            .ancestors()
            .any(|top| matches!(repository(top), Ok(Some(_))))
    })
}

/// Checks that git doesn't track a file in an existing directory. The file itself need not exist.
/// The error is a phrase.
pub(crate) fn check_untracked(folder: &Path, name: &str) -> Result<(), String> {
    let unsure = |reason: String| format!("cannot determine if git tracks it ({reason})");
    let folder = std::fs::canonicalize(folder).map_err(|error| unsure(error.to_string()))?;
    for top in folder.ancestors() {
        let Some(git) = repository(top).map_err(unsure)? else {
            continue;
        };
        let inner = folder.strip_prefix(top).unwrap_or(Path::new(""));
        let path = inner.join(name);
        let path = path.to_string_lossy().replace('\\', "/");
        let Some(index) = read_file(&git, "index").map_err(unsure)? else {
            continue; // no file was added yet, or this is not a repository
        };
        let index = Index::parse(&index, path.as_bytes()).ok_or_else(|| unsure(unknown()))?;
        let mut is_tracked = index.has_path;
        // A split index keeps most entries in a shared index file.
        if let Some(name) = index.shared {
            let shared = read_file(&git, &name).map_err(unsure)?;
            let shared = shared.ok_or_else(|| unsure(format!("`{name}` is missing")))?;
            let shared = Index::parse(&shared, path.as_bytes()).ok_or_else(|| unsure(unknown()))?;
            is_tracked |= shared.has_path;
        }
        if is_tracked {
            return Err("git tracks it".to_owned());
        }
        return Ok(());
    }
    Ok(())
}

/// Whether an index entry is `path`, or a sparse directory that contains it.
fn covers(entry: &[u8], path: &[u8]) -> bool {
    // Some file systems ignore case.
    entry.eq_ignore_ascii_case(path)
        || (entry.ends_with(b"/")
            && path.len() > entry.len()
            && path[..entry.len()].eq_ignore_ascii_case(entry))
}

/// Returns the directory with the index, if `top` is the root of a work tree.
fn repository(top: &Path) -> Result<Option<PathBuf>, String> {
    let dot = top.join(".git");
    match std::fs::metadata(&dot) {
        Ok(found) if found.is_dir() => Ok(Some(dot)),
        // In linked work trees and submodules, `.git` is a file with the path of the git directory.
        Ok(found) if found.is_file() => {
            let text = read_file(top, ".git")?.unwrap_or_default();
            let text = String::from_utf8(text).map_err(|_| "`.git` is not valid UTF-8".to_owned())?;
            let named = text.strip_prefix("gitdir:").map(str::trim);
            let named = named.ok_or("`.git` does not name a directory")?;
            Ok(Some(top.join(named)))
        }
        Ok(_) => Err("`.git` is neither a directory nor a file".to_owned()),
        Err(_) => Ok(None),
    }
}

fn read_file(folder: &Path, name: &str) -> Result<Option<Vec<u8>>, String> {
    let Ok(folder) = Folder::open(folder) else {
        return Ok(None);
    };
    folder
        .read(name, LARGEST, &format!("`{name}` of git"))
        .map_err(|error| format!("{error:#}"))
}

fn unknown() -> String {
    "the format of the index is not supported".to_owned()
}

/// The parts of an index that we need, as described in gitformat-index(5).
#[derive(Debug, PartialEq, Eq)]
struct Index {
    has_path: bool,
    /// Name of the shared index of a split index.
    shared: Option<String>,
}

impl Index {
    fn parse(bytes: &[u8], path: &[u8]) -> Option<Index> {
        // The index doesn't say whether its hashes are SHA-1 or SHA-256, so try both.
        [20, 32]
            .into_iter()
            .find_map(|width| Index::parse_with(bytes, path, width))
    }

    fn parse_with(bytes: &[u8], path: &[u8], width: usize) -> Option<Index> {
        let end = bytes.len().checked_sub(width)?;
        if bytes.get(..4)? != b"DIRC" {
            return None;
        }
        let version = number(bytes, 4)?;
        let mut found = Index {
            has_path: false,
            shared: None,
        };
        let mut at = 12;
        let mut name: Vec<u8> = Vec::new();
        for _ in 0..number(bytes, 8)? {
            let start = at;
            // An entry starts with ten 32-bit status fields, the hash and the flags.
            at += 40 + width;
            let flags = u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?);
            at += 2;
            // An extended entry has two more bytes of flags.
            if flags & 0x4000 != 0 && version >= 3 {
                at += 2;
            }
            if version == 4 {
                // Version 4 names are prefix-compressed.
                let (dropped, next) = offset(bytes, at)?;
                name.truncate(name.len().checked_sub(dropped)?);
                at = next;
            } else {
                name.clear();
            }
            let length = bytes.get(at..end)?.iter().position(|byte| *byte == 0)?;
            name.extend_from_slice(&bytes[at..at + length]);
            at += length + 1;
            // Before version 4, entries are padded to a multiple of eight bytes.
            if version < 4 {
                at = start + (at - start).next_multiple_of(8);
            }
            found.has_path |= covers(&name, path);
        }
        // Extensions follow the entries.
        while at < end {
            let size = usize::try_from(number(bytes, at + 4)?).ok()?;
            let body = bytes.get(at + 8..(at + 8).checked_add(size)?)?;
            if bytes.get(at..at + 4)? == b"link" && body.get(..width)?.iter().any(|byte| *byte != 0) {
                let digits: String = body[..width].iter().map(|byte| format!("{byte:02x}")).collect();
                found.shared = Some(format!("sharedindex.{digits}"));
            }
            at += 8 + size;
        }
        (at == end && (2..=4).contains(&version)).then_some(found)
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(
        bytes.get(at..at.checked_add(4)?)?.try_into().ok()?,
    ))
}

/// Decodes a variable-length offset as in pack files, seven bits per byte. Returns the offset and
/// the position of the next byte.
fn offset(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *bytes.get(at)?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        at += 1;
        byte = *bytes.get(at)?;
        value = value.checked_add(1)?.checked_mul(128)? + usize::from(byte & 0x7f);
    }
    Some((value, at + 1))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// git itself writes the index, in each version and format.
    #[test]
    fn finds_tracked_files() {
        for setup in [
            "init -q",
            "init -q --object-format=sha256",
            "init -q;update-index --index-version 4",
            "init -q;config index.version 3",
            "init -q;update-index --split-index",
        ] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let git = |line: &str| {
                let ran = Command::new("git")
                    .arg("-C")
                    .arg(folder.path())
                    .args(line.split(' '))
                    .output();
                let ran = ran.expect("git runs");
                assert!(ran.status.success(), "{line}: {ran:?}");
            };
            let (first, rest) = setup.split_once(';').unwrap_or((setup, ""));
            git(first);
            std::fs::create_dir(folder.path().join("op")).expect("a folder");
            for name in [
                "a",
                "op/.rbuilder-journa",
                "op/.rbuilder-journal",
                "op/z",
                "zebra-link",
            ] {
                std::fs::write(folder.path().join(name), name).expect("a file");
            }
            git("add a op/.rbuilder-journa op/z zebra-link");
            if !rest.is_empty() {
                git(rest);
            }
            let inner = folder.path().join("op");
            assert_eq!(check_untracked(&inner, ".rbuilder-journal"), Ok(()), "{setup}");
            git("add op/.rbuilder-journal");
            for name in [".rbuilder-journal", ".RBUILDER-journal"] {
                assert_eq!(
                    check_untracked(&inner, name),
                    Err("git tracks it".to_owned()),
                    "{setup}"
                );
            }
            assert_eq!(
                check_untracked(folder.path(), ".rbuilder-journal"),
                Ok(()),
                "{setup}"
            );
            std::fs::write(folder.path().join(".git/index"), "DIRC\0\0\0\u{9}").expect("a file");
            let error = check_untracked(&inner, "a").expect_err("no index");
            assert!(error.contains("cannot determine"), "{error}");
        }
    }

    #[test]
    fn nothing_is_tracked_without_git() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        assert_eq!(check_untracked(folder.path(), "a"), Ok(()));
        std::fs::create_dir(folder.path().join(".git")).expect("a folder");
        assert_eq!(check_untracked(folder.path(), "a"), Ok(()));
        // A linked work tree or a submodule.
        std::fs::create_dir(folder.path().join("w")).expect("a folder");
        std::fs::write(folder.path().join("w/.git"), "gitdir: ../.git\n").expect("a file");
        assert_eq!(check_untracked(&folder.path().join("w"), "a"), Ok(()));
        std::fs::write(folder.path().join("w/.git"), "nonsense").expect("a file");
        assert!(check_untracked(&folder.path().join("w"), "a").is_err());
    }
}

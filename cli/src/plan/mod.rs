//! What a command would change, as a value: shown, compared, printed as JSON, applied, or dropped.
//!
//! A command decides everything before a byte is written. It reads through its plan, so that a later step sees
//! what an earlier one has planned.

pub mod apply;
mod git;
mod journal;
mod moment;
mod record;
mod recover;
mod show;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, anyhow, bail};

pub(crate) use moment::Moment;
pub use recover::Recovery;
pub use show::{diff, json, summary};

use crate::edit::verify;
use crate::tree::{Tree, check_relative};

/// One file's change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The file is not there yet.
    Create {
        /// What it will hold.
        after: String,
    },
    /// Lines are added to a file that its owner keeps.
    Edit {
        /// What it holds now.
        before: String,
        /// What it will hold.
        after: String,
    },
    /// The whole file is the command's.
    Replace {
        /// What it holds now.
        before: String,
        /// What it will hold.
        after: String,
    },
    /// The command wrote it once and nothing asks for it any more.
    Delete {
        /// What it holds now.
        before: String,
    },
}

impl Change {
    /// The deed in one word: `create`, `edit`, `replace`, `delete`.
    pub fn verb(&self) -> &'static str {
        match self {
            Change::Create { .. } => "create",
            Change::Edit { .. } => "edit",
            Change::Replace { .. } => "replace",
            Change::Delete { .. } => "delete",
        }
    }

    /// What the file holds now; empty when it is not there.
    pub fn before(&self) -> &str {
        match self {
            Change::Create { .. } => "",
            Change::Edit { before, .. } | Change::Replace { before, .. } | Change::Delete { before } => {
                before
            }
        }
    }

    /// What the file will hold; nothing when it goes.
    pub fn after(&self) -> Option<&str> {
        match self {
            Change::Create { after } | Change::Edit { after, .. } | Change::Replace { after, .. } => {
                Some(after)
            }
            Change::Delete { .. } => None,
        }
    }
}

/// Everything a command would change, by path, at most one change to each.
#[derive(Debug, Default)]
pub struct Plan {
    changes: BTreeMap<String, Change>,
    unchanged: BTreeSet<String>,
    conflicts: BTreeSet<String>,
}

impl Plan {
    /// The changes by path.
    pub fn changes(&self) -> &BTreeMap<String, Change> {
        &self.changes
    }

    /// Files that are already as the command wants them.
    pub fn unchanged(&self) -> impl Iterator<Item = &str> {
        self.unchanged
            .iter()
            .map(String::as_str)
            .filter(|path| !self.changes.contains_key(*path))
    }

    /// Whether nothing would change.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// What a file will hold once the plan so far is applied.
    ///
    /// # Errors
    /// As [`Tree::read`].
    pub fn read(&self, tree: &Tree, path: &str) -> Result<Option<String>> {
        match self.changes.get(path) {
            Some(change) => Ok(change.after().map(str::to_owned)),
            None => tree.read(path),
        }
    }

    /// Puts a file that the command owns. One that is there and differs is a conflict unless `force`.
    ///
    /// # Errors
    /// As [`Tree::read`].
    pub fn put_owned(&mut self, tree: &Tree, path: &str, text: &str, force: bool) -> Result<()> {
        let before = self.read(tree, path)?;
        if before.as_ref().is_some_and(|before| before != text) && !force {
            self.conflicts.insert(path.to_owned());
            return Ok(());
        }
        self.replace(tree, path, text)
    }

    /// Puts a file that nobody but the command writes.
    ///
    /// # Errors
    /// As [`Tree::read`].
    pub fn replace(&mut self, tree: &Tree, path: &str, text: &str) -> Result<()> {
        self.set(tree, path, text, |before, after| Change::Replace {
            before,
            after,
        })
    }

    /// Puts the new text of a file that its owner keeps and the command only adds to.
    ///
    /// # Errors
    /// As [`Tree::read`]; when the new text is not what the file's name says, or has lost something.
    pub fn edit(&mut self, tree: &Tree, path: &str, text: &str) -> Result<()> {
        let before = self.read(tree, path)?.unwrap_or_default();
        if before != text {
            verify(path, &before, text).map_err(|reason| {
                anyhow!("{path} would be broken by the edit ({reason}); nothing was written")
            })?;
        }
        self.set(tree, path, text, |before, after| Change::Edit { before, after })
    }

    /// Leaves a file as it is, and says so.
    pub fn keep(&mut self, path: &str) {
        self.unchanged.insert(path.to_owned());
    }

    /// Removes a file; nothing when it is not there.
    ///
    /// # Errors
    /// As [`Tree::read`].
    pub fn delete(&mut self, tree: &Tree, path: &str) -> Result<()> {
        check_writable(path)?;
        match tree.read(path)? {
            Some(before) => self.changes.insert(path.to_owned(), Change::Delete { before }),
            None => self.changes.remove(path),
        };
        Ok(())
    }

    /// Fails when a file is in the way.
    ///
    /// # Errors
    /// Names every one of them.
    pub fn check_conflicts(&self) -> Result<()> {
        if self.conflicts.is_empty() {
            return Ok(());
        }
        let list: String = self.conflicts.iter().map(|path| format!("\n  {path}")).collect();
        bail!(
            "these files are there already and hold something else:{list}\n\
             nothing was written; move them away, or replace them with `--force`"
        );
    }

    fn set(
        &mut self,
        tree: &Tree,
        path: &str,
        text: &str,
        change: fn(String, String) -> Change,
    ) -> Result<()> {
        check_writable(path)?;
        match tree.read(path)? {
            Some(before) if before == text => {
                self.changes.remove(path);
                self.unchanged.insert(path.to_owned());
            }
            Some(before) => {
                // What was to be replaced stays so when lines are added to it later.
                let replaced = matches!(self.changes.get(path), Some(Change::Replace { .. }));
                let (before, after) = (before, text.to_owned());
                let change = if replaced {
                    Change::Replace { before, after }
                } else {
                    change(before, after)
                };
                self.changes.insert(path.to_owned(), change);
            }
            None => {
                self.changes.insert(
                    path.to_owned(),
                    Change::Create {
                        after: text.to_owned(),
                    },
                );
            }
        }
        Ok(())
    }
}

/// Folders that no command writes into: what lies there decides which programs git, other version control systems
/// and Cargo run.
const CLOSED: [&str; 6] = [".git", ".hg", ".jj", ".sl", ".svn", ".cargo"];

/// Refuses a path that no plan may hold: one that leads out of the project, into a folder whose files decide what
/// other programs run, or to a file that rbuilder uses for a while itself.
///
/// `.github` and `rust-toolchain.toml` are not refused: they are files of the project as others are, `init` writes the
/// former.
pub(crate) fn check_writable(path: &str) -> Result<()> {
    check_relative(path)?;
    for part in path.split('/') {
        if is_closed(part) {
            bail!("`{path}` lies in `{part}`, which rbuilder does not write into: choose another folder");
        }
        if record::is_reserved(part) {
            bail!("`{path}` has a name that rbuilder uses for its own files: choose another name");
        }
    }
    Ok(())
}

/// Whether a name is one of the closed folders on some file system: some take `A` for `a`, some drop dots and spaces
/// at the end or letters that are not seen, some know a file by a second, short name.
fn is_closed(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii).collect();
    let plain = plain.trim_end_matches(['.', ' ']).to_ascii_lowercase();
    let plain = plain.split(':').next().unwrap_or_default();
    CLOSED.contains(&plain) || plain.starts_with("git~") || plain.starts_with("cargo~")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_no_plan_may_hold() {
        for path in [
            "",
            "/etc/passwd",
            "../a",
            "a/../b",
            "a//b",
            "a\\b",
            "a\0b",
            ".git/config",
            "a/.git/hooks/x",
            ".GIT/x",
            ".git./x",
            ".git /x",
            ".g\u{200c}it/x",
            "git~1/x",
            ".git::$INDEX_ALLOCATION/x",
            ".cargo/config.toml",
            "a/.Cargo/config",
            ".hg/hgrc",
            ".jj/x",
            ".svn/x",
            ".rbuilder-journal",
            "a/.b.rbuilder-new",
            ".b.rbuilder-old",
            "b.rbuilder-kept",
            "b.rbuilder-kept-2",
        ] {
            assert!(check_writable(path).is_err(), "{path:?}");
        }
        for path in [
            "a",
            "a/b.yaml",
            ".github/workflows/x.yml",
            ".gitignore",
            ".gitkeep",
            "git/x",
            "src/cargo.rs",
            "é/x",
        ] {
            assert!(check_writable(path).is_ok(), "{path:?}");
        }
        let long = "x".repeat(300);
        let error = check_writable(&format!("a/{long}/b"))
            .expect_err("too long")
            .to_string();
        assert!(error.contains("300 bytes") && error.len() < 300, "{error}");
    }
}

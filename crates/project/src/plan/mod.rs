//! The changes made by a command as a value, which can be shown, compared, printed as JSON, applied
//! or dropped.
//!
//! A command computes all changes before it writes anything. Reads go through its plan, so later
//! steps see the changes of earlier ones. Changed files keep their line endings.

pub mod apply;
mod git;
mod journal;
mod moment;
mod record;
mod recover;
mod show;
mod steps;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, anyhow, bail};

pub use git::{check_path_untracked, is_in_repository};
pub use moment::Moment;
pub use recover::Recovery;
pub use show::{render_diff, render_json, render_summary};

use crate::edit::{verify_cut, verify_edit};
use crate::line_ends::{self, is_same_text};
use crate::project::{ATTRIBUTES, ATTRIBUTES_TEXT, FILE, Project, RECORD};
use crate::tree::{Tree, check_relative, levels_above};

/// A change to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The file does not exist yet.
    Create {
        /// New content.
        after: String,
    },
    /// Lines are added to a file owned by the user.
    Edit {
        /// Current content.
        before: String,
        /// New content.
        after: String,
    },
    /// The file is owned by the command and rewritten.
    Replace {
        /// Current content.
        before: String,
        /// New content.
        after: String,
    },
    /// A file written by a command is no longer needed.
    Delete {
        /// Current content.
        before: String,
    },
}

impl Change {
    /// `create`, `edit`, `replace` or `delete`.
    pub fn verb(&self) -> &'static str {
        match self {
            Change::Create { .. } => "create",
            Change::Edit { .. } => "edit",
            Change::Replace { .. } => "replace",
            Change::Delete { .. } => "delete",
        }
    }

    /// The current content; empty if the file does not exist.
    pub fn before(&self) -> &str {
        match self {
            Change::Create { .. } => "",
            Change::Edit { before, .. } | Change::Replace { before, .. } | Change::Delete { before } => {
                before
            }
        }
    }

    /// The new content, or `None` if the file is deleted.
    pub fn after(&self) -> Option<&str> {
        match self {
            Change::Create { after } | Change::Edit { after, .. } | Change::Replace { after, .. } => {
                Some(after)
            }
            Change::Delete { .. } => None,
        }
    }
}

/// The changes of a command by path, at most one per file.
#[derive(Debug, Default)]
pub struct Plan {
    changes: BTreeMap<String, Change>,
    unchanged: BTreeSet<String>,
    conflicts: BTreeSet<String>,
    /// Old path of each moved file, by new path.
    moves: BTreeMap<String, String>,
    /// The new paths of each moved file, by its old path.
    moves_by_source: BTreeMap<String, Vec<String>>,
}

/// A moved file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMove {
    /// Path before the move.
    pub from: String,
    /// Path after the move.
    pub to: String,
    /// Content after the move.
    pub text: String,
}

impl Plan {
    /// All changes by path.
    pub fn changes(&self) -> &BTreeMap<String, Change> {
        &self.changes
    }

    /// Files that need no change.
    pub fn unchanged(&self) -> impl Iterator<Item = &str> {
        self.unchanged
            .iter()
            .map(String::as_str)
            .filter(|path| !self.changes.contains_key(*path))
    }

    /// Whether the plan covers a file, even if only to keep it.
    pub fn has(&self, path: &str) -> bool {
        self.changes.contains_key(path) || self.unchanged.contains(path)
    }

    /// Whether the plan changes nothing.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Reads a file with the changes planned so far.
    ///
    /// # Errors
    /// Fails as [`Tree::read`] does.
    pub fn read(&self, tree: &Tree, path: &str) -> Result<Option<String>> {
        match self.changes.get(path) {
            Some(change) => Ok(change.after().map(str::to_owned)),
            None => tree.read(path),
        }
    }

    /// Reads the project with the changes planned so far, like [`Project::read`].
    ///
    /// # Errors
    /// Fails as [`Project::read`] does.
    pub fn read_project(&self, tree: &Tree) -> Result<Option<Project>> {
        Project::read_with(tree, &|path| self.read(tree, path))
    }

    /// Writes a file owned by the command. An existing file with different content is a conflict,
    /// unless `force` is set.
    ///
    /// # Errors
    /// Fails as [`Tree::read`] does.
    pub fn put_owned(&mut self, tree: &Tree, path: &str, text: &str, force: bool) -> Result<()> {
        let before = self.read(tree, path)?;
        if before.is_some_and(|before| !is_same_text(&before, text)) && !force {
            self.conflicts.insert(path.to_owned());
            return Ok(());
        }
        self.replace(tree, path, text)
    }

    /// Writes a file that only commands change.
    ///
    /// # Errors
    /// Fails as [`Tree::read`] does.
    pub fn replace(&mut self, tree: &Tree, path: &str, text: &str) -> Result<()> {
        self.set(tree, path, text, |before, after| Change::Replace {
            before,
            after,
        })
    }

    /// Sets PROJECT and the record of scaffolded files.
    ///
    /// # Errors
    /// Fails as [`edit`](Self::edit) does.
    pub fn write_project(&mut self, project: &Project, tree: &Tree) -> Result<()> {
        self.replace(tree, ATTRIBUTES, ATTRIBUTES_TEXT)?;
        self.replace(tree, RECORD, &project.print_record())?;
        self.edit(tree, FILE, &project.print())
    }

    /// Sets the new text of a file owned by the user.
    ///
    /// # Errors
    /// Same as [`Tree::read`]. Also fails if the new text cannot be parsed, or if it drops an
    /// item of the file.
    pub fn edit(&mut self, tree: &Tree, path: &str, text: &str) -> Result<()> {
        let before = self.read(tree, path)?.unwrap_or_default();
        if before != text {
            verify_edit(path, &before, text).map_err(|reason| {
                anyhow!("editing {path} would break it ({reason}); no files were written")
            })?;
        }
        self.set(tree, path, text, |before, after| Change::Edit { before, after })
    }

    /// Sets the merged text of a file owned by the user. Unlike [`Plan::edit`], this allows the
    /// text to lack items that were in the file, and to contain conflict markers.
    ///
    /// # Errors
    /// Fails as [`Tree::read`] does.
    pub fn merge(&mut self, tree: &Tree, path: &str, text: &str) -> Result<()> {
        self.set(tree, path, text, |before, after| Change::Edit { before, after })
    }

    /// Sets the new text of a file owned by the user, after lines were removed from it.
    ///
    /// # Errors
    /// Same as [`Tree::read`]. Also fails if the new text cannot be parsed, or if it contains a new
    /// item.
    pub fn cut(&mut self, tree: &Tree, path: &str, text: &str) -> Result<()> {
        let before = self.read(tree, path)?.unwrap_or_default();
        verify_cut(path, &before, text)
            .map_err(|reason| anyhow!("editing {path} would break it ({reason}); no files were written"))?;
        self.set(tree, path, text, |before, after| Change::Edit { before, after })
    }

    /// Moves files. A file may take the path of another moved file.
    ///
    /// A move is applied as a deletion and a creation, and only displayed as a move.
    ///
    /// # Errors
    /// Fails as [`Tree::read`] does.
    pub fn move_files(&mut self, tree: &Tree, moves: &[FileMove]) -> Result<()> {
        for FileMove { from, .. } in moves {
            self.delete(tree, from)?;
        }
        for FileMove { from, to, text } in moves {
            self.merge(tree, to, text)?;
            self.moves.insert(to.clone(), from.clone());
            let targets = self.moves_by_source.entry(from.clone()).or_default();
            targets.push(to.clone());
        }
        Ok(())
    }

    /// Returns the old path of a file that moves to a previously unused path.
    pub fn moved_from(&self, path: &str) -> Option<&str> {
        let from = self.moves.get(path)?;
        let is_created = matches!(self.changes.get(path), Some(Change::Create { .. }));
        let is_deleted = matches!(self.changes.get(from), Some(Change::Delete { .. }));
        (is_created && is_deleted).then_some(from)
    }

    /// Whether a file is deleted because it moves elsewhere.
    pub fn moves_away(&self, path: &str) -> bool {
        let mut targets = self.moves_by_source.get(path).into_iter().flatten();
        targets.any(|to| self.moved_from(to) == Some(path))
    }

    /// Records that a file is kept.
    pub fn keep(&mut self, path: &str) {
        self.unchanged.insert(path.to_owned());
    }

    /// Removes a file. No-op if it does not exist.
    ///
    /// # Errors
    /// Fails as [`Tree::read`] does.
    pub fn delete(&mut self, tree: &Tree, path: &str) -> Result<()> {
        check_writable(path)?;
        match tree.read(path)? {
            Some(before) => self.changes.insert(path.to_owned(), Change::Delete { before }),
            // The file doesn't exist yet, so just drop its planned creation.
            None => self.changes.remove(path),
        };
        Ok(())
    }

    /// Checks that no existing file conflicts with the plan.
    ///
    /// # Errors
    /// Fails with a list of all conflicting files.
    pub fn check_conflicts(&self) -> Result<()> {
        if self.conflicts.is_empty() {
            return Ok(());
        }
        let list: String = self.conflicts.iter().map(|path| format!("\n  {path}")).collect();
        bail!(
            "these files already exist with different content:{list}\n\
             no files were written; move them away, or overwrite them with `--force`"
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
            Some(before) if is_same_text(&before, text) => {
                self.changes.remove(path);
                self.unchanged.insert(path.to_owned());
            }
            Some(before) => {
                // A later edit doesn't change that this file is replaced.
                let replaced = matches!(self.changes.get(path), Some(Change::Replace { .. }));
                let after = line_ends::adopt(text, &before).into_owned();
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

/// Directories whose files decide which programs git, other version control systems and Cargo run.
/// No command writes to them.
const CLOSED: [&str; 6] = [".git", ".hg", ".jj", ".sl", ".svn", ".cargo"];

/// Rejects paths that a plan must not write to: outside the project (except for the manifest of a
/// workspace above), in a directory whose files decide which programs run, or one of rbuilder's
/// temporary files.
///
/// `.github` and `rust-toolchain.toml` are ordinary project files, and `init` writes to `.github`.
pub(crate) fn check_writable(path: &str) -> Result<()> {
    if levels_above(path).is_some() {
        return Ok(());
    }
    check_relative(path)?;
    for part in path.split('/') {
        if is_closed(part) {
            bail!("`{path}` is in `{part}`, which rbuilder does not write to: choose another directory");
        }
        if record::is_reserved(part) {
            bail!("`{path}` is reserved for temporary files of rbuilder: choose another name");
        }
    }
    Ok(())
}

/// Whether a name refers to one of the closed directories on any file system. Some ignore case,
/// trailing dots and spaces or invisible characters, and some give each file a second, short name
/// (e.g. `GIT~1`).
fn is_closed(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii).collect();
    let plain = plain.trim_end_matches(['.', ' ']).to_ascii_lowercase();
    // On NTFS, `.git::$INDEX_ALLOCATION` is an alias of `.git`.
    let plain = plain.split(':').next().unwrap_or_default();
    CLOSED.contains(&plain) || plain.starts_with("git~") || plain.starts_with("cargo~")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_reserved_paths() {
        for path in [
            "",
            "/etc/passwd",
            "../a",
            "../a/Cargo.toml",
            "a/../Cargo.toml",
            "./../Cargo.toml",
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
            "../Cargo.toml",
            "../../Cargo.toml",
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

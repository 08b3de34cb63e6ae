//! The contents of a journal, sufficient to restore the old tree, or to clean up after the new one,
//! without the plan.

use serde::{Deserialize, Serialize};

use anyhow::Result;

use super::{Change, Plan, check_writable};
use crate::disk::{Folder, LONGEST_NAME};
use crate::hash::{checksum, fnv1a_64};

/// File name of the journal in the project directory.
pub const JOURNAL: &str = ".rbuilder-journal";

/// Journals in any other format are ignored.
const FORMAT: u32 = 3;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    format: u32,
    /// Inode of the journal itself. It differs in a copied, unpacked or checked-out journal.
    journal: u64,
    root: u64,
    /// Directories to create, parents first.
    pub(super) folders: Vec<String>,
    pub(super) entries: Vec<Entry>,
}

/// A file in a plan. The names of its staged file and its backup derive from its name.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) path: String,
    pub(super) action: Action,
    pub(super) before: Option<Content>,
    pub(super) after: Option<Content>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Action {
    Create,
    Write,
    Delete,
}

/// Length and checksum of a file's content. Only used to detect edits; attacks are fended off by
/// comparing inodes.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Content {
    length: u64,
    checksum: u32,
}

impl Content {
    pub(super) fn of(bytes: &[u8]) -> Content {
        Content {
            length: bytes.len() as u64,
            checksum: checksum(bytes),
        }
    }
}

/// Inodes of an entry's temporary files, known once all files are staged. 0 if there is no such
/// file.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Inodes {
    pub(super) staged: u64,
    /// For a deletion, the inode of the target itself, which is renamed to the backup.
    pub(super) backup: u64,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum LineRef<'a> {
    Begin(&'a Record),
    /// All files are staged, in entry order. Renaming begins.
    Staged(&'a [Inodes]),
    Renamed,
    Restored,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Begin(Record),
    Staged(Vec<Inodes>),
    Renamed,
    Restored,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Old tree: no file was renamed.
    Begun,
    /// Mixed tree: some files may have been renamed.
    Staged,
    /// New tree: all files were renamed.
    Renamed,
    /// Old tree again: all files were restored.
    Restored,
}

#[derive(Debug)]
pub(super) struct Interruption {
    pub(super) record: Record,
    pub(super) inodes: Vec<Inodes>,
    pub(super) stage: Stage,
}

impl Record {
    /// Creates the record of a plan. Fails if a parent directory is a symlink or a file.
    pub(super) fn new(root: &Folder, journal: u64, plan: &Plan) -> Result<Record> {
        let mut folders: Vec<String> = Vec::new();
        let mut entries: Vec<Entry> = Vec::new();
        for (path, change) in plan.changes() {
            for (end, _) in path.match_indices('/') {
                let folder = &path[..end];
                if folders.iter().any(|known| known == folder) {
                    continue;
                }
                let is_there = match root.reach(folder)? {
                    Some((above, name)) => above.look(name)?.is_some(),
                    None => false,
                };
                if !is_there {
                    folders.push(folder.to_owned());
                }
            }
            let action = match change {
                Change::Create { .. } => Action::Create,
                Change::Edit { .. } | Change::Replace { .. } => Action::Write,
                Change::Delete { .. } => Action::Delete,
            };
            let before = (action != Action::Create).then(|| Content::of(change.before().as_bytes()));
            entries.push(Entry {
                path: path.clone(),
                action,
                before,
                after: change.after().map(|after| Content::of(after.as_bytes())),
            });
        }
        // PROJECT comes last: it describes the other files and must never refer to missing ones.
        entries.sort_by_key(|entry| entry.path == crate::project::FILE);
        Ok(Record {
            format: FORMAT,
            journal,
            root: root.status()?.inode,
            folders,
            entries,
        })
    }

    /// Explains why rbuilder cannot have written this record to this file in this directory, if so.
    fn find_flaw(&self, journal: u64, root: u64) -> Option<String> {
        if self.format != FORMAT {
            return Some(format!("its format is {}, expected {FORMAT}", self.format));
        }
        // A copy has different inodes.
        if self.journal != journal || self.root != root {
            return Some("it was copied from elsewhere".to_owned());
        }
        let mut paths: Vec<&str> = self.entries.iter().map(|entry| entry.path.as_str()).collect();
        if let Some(path) = paths
            .iter()
            .copied()
            .chain(self.folders.iter().map(String::as_str))
            .find(|path| check_writable(path).is_err())
        {
            return Some(format!(
                "it names `{}`, which no command writes",
                path.escape_debug()
            ));
        }
        for folder in &self.folders {
            let inside = format!("{folder}/");
            if !paths.iter().any(|path| path.starts_with(&inside)) {
                return Some(format!(
                    "it names the directory `{}`, but no file in it",
                    folder.escape_debug()
                ));
            }
        }
        let whole = self.entries.iter().all(|entry| match entry.action {
            Action::Create => entry.before.is_none() && entry.after.is_some(),
            Action::Write => entry.before.is_some() && entry.after.is_some(),
            Action::Delete => entry.before.is_some() && entry.after.is_none(),
        });
        if !whole {
            return Some("its entries are contradictory".to_owned());
        }
        paths.sort_unstable();
        let count = paths.len();
        paths.dedup();
        (paths.len() < count).then(|| "it names a file twice".to_owned())
    }
}

impl Interruption {
    /// Parses a journal. Without a complete line nothing was changed yet, so there is nothing to
    /// recover. The error is a phrase that explains why rbuilder cannot have written the journal.
    pub(super) fn parse(bytes: &[u8], journal: u64, root: u64) -> Result<Option<Interruption>, String> {
        // Drop an incomplete last line; its phase has not begun.
        let complete = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        if complete == 0 {
            return Ok(None);
        }
        let text = std::str::from_utf8(&bytes[..complete]).map_err(|_| "it is not valid UTF-8".to_owned())?;
        let mut left: Option<Interruption> = None;
        for (index, line) in text.lines().enumerate() {
            let unknown = || format!("line {} is invalid", index + 1);
            let line: Line = serde_json::from_str(line).map_err(|_| unknown())?;
            left = Some(match (left, line) {
                (None, Line::Begin(record)) => Interruption {
                    record,
                    inodes: Vec::new(),
                    stage: Stage::Begun,
                },
                (Some(left), Line::Staged(inodes))
                    if left.stage == Stage::Begun && inodes.len() == left.record.entries.len() =>
                {
                    Interruption {
                        inodes,
                        stage: Stage::Staged,
                        ..left
                    }
                }
                (Some(left), line @ (Line::Renamed | Line::Restored)) if left.stage == Stage::Staged => {
                    Interruption {
                        stage: match line {
                            Line::Renamed => Stage::Renamed,
                            _ => Stage::Restored,
                        },
                        ..left
                    }
                }
                _ => return Err(unknown()),
            });
        }
        match left
            .as_ref()
            .and_then(|left| left.record.find_flaw(journal, root))
        {
            Some(flaw) => Err(flaw),
            None => Ok(left),
        }
    }
}

impl Entry {
    pub(super) fn staged(name: &str) -> String {
        temporary_name(name, "new")
    }

    pub(super) fn backup(name: &str) -> String {
        temporary_name(name, "old")
    }

    /// Returns the name under which an edited target is kept when the old file is restored. `count`
    /// makes it unique.
    pub(super) fn kept(name: &str, count: usize) -> String {
        let number = if count == 0 {
            String::new()
        } else {
            format!("-{}", count + 1)
        };
        let kept = format!("{name}.rbuilder-kept{number}");
        if kept.len() <= LONGEST_NAME {
            return kept;
        }
        format!("{}.rbuilder-kept{number}", fnv1a_64(name.as_bytes()))
    }
}

/// Returns a hidden name in the same directory, since a rename within a directory never crosses
/// file systems.
fn temporary_name(name: &str, end: &str) -> String {
    let hidden = format!(".{name}.rbuilder-{end}");
    if hidden.len() <= LONGEST_NAME {
        return hidden;
    }
    format!(".{}.rbuilder-{end}", fnv1a_64(name.as_bytes()))
}

pub(super) fn is_reserved(name: &str) -> bool {
    name == JOURNAL
        || (name.starts_with('.') && (name.ends_with(".rbuilder-new") || name.ends_with(".rbuilder-old")))
        || name.contains(".rbuilder-kept")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = r#"{"begin":{"format":3,"journal":1,"root":2,"folders":[],"entries":[{"path":"a/b","action":"create","before":null,"after":{"length":0,"checksum":0}}]}}"#;
    const STAGED: &str = r#"{"staged":[{"staged":3,"backup":0}]}"#;

    #[test]
    fn ignores_incomplete_journal_lines() {
        let check = |lines: &[&str], expected: Result<Option<Stage>, &str>| {
            let text = lines.concat();
            match (Interruption::parse(text.as_bytes(), 1, 2), expected) {
                (Ok(left), Ok(stage)) => assert_eq!(left.map(|left| left.stage), stage, "{text}"),
                (Err(reason), Err(part)) => assert!(reason.contains(part), "{text}: {reason}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        };
        check(&[], Ok(None));
        check(&["{\"begin\""], Ok(None));
        check(&[BEGIN], Ok(None));
        check(&[BEGIN, "\n"], Ok(Some(Stage::Begun)));
        check(&[BEGIN, "\n", STAGED], Ok(Some(Stage::Begun)));
        check(&[BEGIN, "\n", STAGED, "\n"], Ok(Some(Stage::Staged)));
        check(
            &[BEGIN, "\n", STAGED, "\n\"renamed\"\n"],
            Ok(Some(Stage::Renamed)),
        );
        check(
            &[BEGIN, "\n", STAGED, "\n\"restored\"\n"],
            Ok(Some(Stage::Restored)),
        );
        check(&["x\n"], Err("line 1"));
        check(&["\"renamed\"\n"], Err("line 1"));
        check(&[BEGIN, "\n\"renamed\"\n"], Err("line 2"));
        check(&[BEGIN, "\n{\"staged\":[]}\n"], Err("line 2"));
        for (from, to, expected) in [
            ("\"format\":3", "\"format\":2", "format"),
            ("\"journal\":1", "\"journal\":9", "elsewhere"),
            ("\"root\":2", "\"root\":9", "elsewhere"),
            ("a/b", "../b", "`../b`"),
            ("a/b", "/b", "`/b`"),
            ("a/b", ".git/hooks/pre-commit", "`.git/hooks/pre-commit`"),
            ("a/b", "a/.GIT/config", "which no command writes"),
            ("a/b", ".cargo/config.toml", "which no command writes"),
            ("a/b", ".rbuilder-journal", "which no command writes"),
            ("a/b", ".x.rbuilder-new", "which no command writes"),
            ("\"folders\":[]", "\"folders\":[\"c\"]", "the directory `c`"),
            (
                "\"before\":null",
                "\"before\":{\"length\":0,\"checksum\":0}",
                "contradictory",
            ),
            (
                "\"format\":3",
                "\"format\":3,\"staged\":\"/etc/passwd\"",
                "line 1",
            ),
        ] {
            check(&[&BEGIN.replace(from, to), "\n"], Err(expected));
        }
    }

    #[test]
    fn temporary_names_stay_short() {
        let long = "x".repeat(LONGEST_NAME);
        for name in [Entry::staged(&long), Entry::backup(&long), Entry::kept(&long, 3)] {
            assert!(name.len() <= LONGEST_NAME && is_reserved(&name), "{name}");
        }
        assert_eq!(Entry::staged("a.yaml"), ".a.yaml.rbuilder-new");
        assert_eq!(Entry::kept("a.yaml", 1), "a.yaml.rbuilder-kept-2");
    }
}

//! What a journal says: enough to put the old tree back, or to sweep up after the new one, without the plan.

use serde::{Deserialize, Serialize};

use anyhow::Result;

use super::{Change, Plan, check_writable};
use crate::disk::{Folder, LONGEST_NAME};
use crate::hash::fnv1a_64;

/// Number of the format; a journal of another one is not acted on.
const FORMAT: u32 = 2;

/// The first line of a journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    format: u32,
    /// Inode of the journal itself: a journal that was copied, unpacked or checked out has another one.
    journal: u64,
    /// Inode of the project folder.
    root: u64,
    /// Folders that did not exist, outer ones first.
    pub(super) folders: Vec<String>,
    pub(super) entries: Vec<Entry>,
}

/// One file of a plan. The names of its staged text and its backup follow from its own.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) path: String,
    pub(super) action: Action,
    /// What the file held; nothing where there was none.
    pub(super) before: Option<Content>,
    /// What it is to hold; nothing where it goes.
    pub(super) after: Option<Content>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Action {
    Create,
    Write,
    Delete,
}

/// The content of a file in short. It tells an edit, not an attack: what must not be touched is known by its inode.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Content {
    length: u64,
    hash: String,
}

impl Content {
    pub(super) fn of(bytes: &[u8]) -> Content {
        Content {
            length: bytes.len() as u64,
            hash: fnv1a_64(bytes),
        }
    }
}

/// Inodes of what an entry has on disk beside its target once all is staged; 0 where there is nothing.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Inodes {
    pub(super) staged: u64,
    /// Of the copy; of the target itself where that is to be deleted, which is a rename to the backup's name.
    pub(super) backup: u64,
}

/// One line of a journal, as it is written.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum LineRef<'a> {
    /// What will be staged.
    Begin(&'a Record),
    /// All of it is staged, in the order of the entries: renaming begins.
    Staged(&'a [Inodes]),
    /// Every target is the new one.
    Renamed,
    /// Every target is the old one again.
    Restored,
}

/// One line of a journal, as it is read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Begin(Record),
    Staged(Vec<Inodes>),
    Renamed,
    Restored,
}

/// Which tree an interrupted command left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The old one: nothing was renamed.
    Begun,
    /// Some of both.
    Staged,
    /// The new one.
    Renamed,
    /// The old one, put back.
    Restored,
}

/// What a journal says in all.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) record: Record,
    pub(super) inodes: Vec<Inodes>,
    pub(super) stage: Stage,
}

impl Record {
    /// What a plan will do to a folder. PROJECT comes last: it says what the rest is, and must never speak of files
    /// that are not there.
    ///
    /// # Errors
    /// When a folder on the way is a link or a file.
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
        entries.sort_by_key(|entry| entry.path == crate::project::FILE);
        Ok(Record {
            format: FORMAT,
            journal,
            root: root.status()?.inode,
            folders,
            entries,
        })
    }

    /// Why the record cannot be one that an rbuilder command wrote to this very file in this very folder; nothing
    /// when it can.
    fn flaw(&self, journal: u64, root: u64) -> Option<String> {
        if self.format != FORMAT {
            return Some(format!("its format is {}, and this is {FORMAT}", self.format));
        }
        if self.journal != journal || self.root != root {
            return Some("it was written elsewhere and copied here".to_owned());
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
                    "it names the folder `{}` without a file in it",
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
            return Some("its entries contradict themselves".to_owned());
        }
        paths.sort_unstable();
        let count = paths.len();
        paths.dedup();
        (paths.len() < count).then(|| "it names a file twice".to_owned())
    }
}

impl Left {
    /// Reads a journal; nothing when it has no complete line, for then nothing was done yet. What follows the last
    /// line end was never followed by a change.
    ///
    /// # Errors
    /// The reason, a phrase, why no rbuilder command can have left this in this folder.
    pub(super) fn parse(bytes: &[u8], journal: u64, root: u64) -> Result<Option<Left>, String> {
        let complete = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        if complete == 0 {
            return Ok(None);
        }
        let text = std::str::from_utf8(&bytes[..complete]).map_err(|_| "it is not UTF-8 text".to_owned())?;
        let mut left: Option<Left> = None;
        for (index, line) in text.lines().enumerate() {
            let unknown = || format!("line {} is not one of a journal", index + 1);
            let line: Line = serde_json::from_str(line).map_err(|_| unknown())?;
            left = Some(match (left, line) {
                (None, Line::Begin(record)) => Left {
                    record,
                    inodes: Vec::new(),
                    stage: Stage::Begun,
                },
                (Some(left), Line::Staged(inodes))
                    if left.stage == Stage::Begun && inodes.len() == left.record.entries.len() =>
                {
                    Left {
                        inodes,
                        stage: Stage::Staged,
                        ..left
                    }
                }
                (Some(left), line @ (Line::Renamed | Line::Restored)) if left.stage == Stage::Staged => {
                    Left {
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
        match left.as_ref().and_then(|left| left.record.flaw(journal, root)) {
            Some(flaw) => Err(flaw),
            None => Ok(left),
        }
    }
}

impl Entry {
    /// The name of the staged text, for a target of this name.
    pub(super) fn staged(name: &str) -> String {
        beside(name, "new")
    }

    /// The name of the backup.
    pub(super) fn backup(name: &str) -> String {
        beside(name, "old")
    }

    /// The name under which an edit is kept that stood where the old text comes back; `count` tells several apart.
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

/// A hidden name in the same folder, so that a rename never crosses file systems.
fn beside(name: &str, end: &str) -> String {
    let hidden = format!(".{name}.rbuilder-{end}");
    if hidden.len() <= LONGEST_NAME {
        return hidden;
    }
    format!(".{}.rbuilder-{end}", fnv1a_64(name.as_bytes()))
}

/// Whether a name is one that commands use for a while, or keep an edit under.
pub(super) fn is_reserved(name: &str) -> bool {
    name == super::journal::JOURNAL
        || (name.starts_with('.') && (name.ends_with(".rbuilder-new") || name.ends_with(".rbuilder-old")))
        || name.contains(".rbuilder-kept")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = r#"{"begin":{"format":2,"journal":1,"root":2,"folders":[],"entries":[{"path":"a/b","action":"create","before":null,"after":{"length":0,"hash":"x"}}]}}"#;
    const STAGED: &str = r#"{"staged":[{"staged":3,"backup":0}]}"#;

    #[test]
    fn a_journal_is_read_line_by_line() {
        let check = |lines: &[&str], expected: Result<Option<Stage>, &str>| {
            let text = lines.concat();
            match (Left::parse(text.as_bytes(), 1, 2), expected) {
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
            ("\"format\":2", "\"format\":3", "format"),
            ("\"journal\":1", "\"journal\":9", "elsewhere"),
            ("\"root\":2", "\"root\":9", "elsewhere"),
            ("a/b", "../b", "`../b`"),
            ("a/b", "/b", "`/b`"),
            ("a/b", ".git/hooks/pre-commit", "`.git/hooks/pre-commit`"),
            ("a/b", "a/.GIT/config", "which no command writes"),
            ("a/b", ".cargo/config.toml", "which no command writes"),
            ("a/b", ".rbuilder-journal", "which no command writes"),
            ("a/b", ".x.rbuilder-new", "which no command writes"),
            ("\"folders\":[]", "\"folders\":[\"c\"]", "the folder `c`"),
            (
                "\"before\":null",
                "\"before\":{\"length\":0,\"hash\":\"x\"}",
                "contradict",
            ),
            (
                "\"format\":2",
                "\"format\":2,\"staged\":\"/etc/passwd\"",
                "line 1",
            ),
        ] {
            check(&[&BEGIN.replace(from, to), "\n"], Err(expected));
        }
    }

    #[test]
    fn long_names_have_short_companions() {
        let long = "x".repeat(LONGEST_NAME);
        for name in [Entry::staged(&long), Entry::backup(&long), Entry::kept(&long, 3)] {
            assert!(name.len() <= LONGEST_NAME && is_reserved(&name), "{name}");
        }
        assert_eq!(Entry::staged("a.yaml"), ".a.yaml.rbuilder-new");
        assert_eq!(Entry::kept("a.yaml", 1), "a.yaml.rbuilder-kept-2");
    }
}

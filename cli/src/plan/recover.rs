//! What is done about a command that did not come to its end: the old tree is put back, whole, or what is left over
//! beside the new one is swept up.
//!
//! Only what the command made itself is removed or renamed into place: the journal holds the inode of each staged text
//! and each backup, and what has another inode, another content, another owner or a second name is somebody's work. In
//! a target's place it is renamed beside it (`<name>.rbuilder-kept`), never overwritten. All of it is looked at before
//! the first change, so a recovery that cannot succeed changes nothing; one that dies goes on where it was.

use std::collections::BTreeSet;
use std::io::ErrorKind;

use anyhow::{Context, Result, bail};

use super::apply::Steps;
use super::journal::Journal;
use super::record::{Action, Content, Entry, Inodes, Left, LineRef, Record, Stage};
use crate::disk::{Folder, Sort, Status, cannot, read_bounded, status_of, user};

/// The largest file that is compared with what was staged: a larger one is not what was staged.
const LARGEST: u64 = crate::tree::LARGEST;

/// What was done about an interrupted command.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Whether the old tree stands again; otherwise the new one does.
    pub undone: bool,
    /// The files that the command was to change.
    pub files: Vec<String>,
    /// Edits that stood where the old text is again, and the paths they are kept under.
    pub kept: Vec<(String, String)>,
}

impl std::fmt::Display for Recovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (verb, state) = if self.undone {
            ("undone", "before")
        } else {
            ("finished", "after")
        };
        let list: Vec<String> = self.files.iter().map(|path| format!("`{path}`")).collect();
        write!(
            f,
            "recovered from an interrupted command, which is {verb}: as {state} it are {}",
            list.join(", ")
        )?;
        for (path, kept) in &self.kept {
            write!(f, "\nwhat was written to `{path}` since then is kept in `{kept}`")?;
        }
        Ok(())
    }
}

/// Puts the old tree back, or finishes, and removes what only that needed. The journal is empty afterwards.
///
/// # Errors
/// When something that is needed is missing or not what the command made; nothing is changed then. When the system
/// refuses; the next try goes on.
pub(super) fn settle(
    root: &Folder,
    journal: &mut Journal,
    left: &Left,
    steps: &mut Steps,
) -> Result<Recovery> {
    let mut recovery = Recovery {
        undone: left.stage != Stage::Renamed,
        files: left
            .record
            .entries
            .iter()
            .map(|entry| entry.path.clone())
            .collect(),
        kept: Vec::new(),
    };
    let seen = Seen::all(root, left)?;
    if left.stage == Stage::Staged {
        for (seen, entry) in seen.iter().zip(&left.record.entries) {
            seen.check(entry)?;
        }
        for (seen, entry) in seen.iter().zip(&left.record.entries) {
            if let Some(kept) = seen.restore(entry, steps)? {
                recovery.kept.push((entry.path.clone(), kept));
            }
        }
        sync_folders(root, &left.record)?;
        journal.note(LineRef::Restored, steps)?;
    }
    sweep(root, left, steps)?;
    if recovery.undone {
        remove_folders(root, &left.record, steps)?;
    }
    sync_folders(root, &left.record)?;
    journal.clear()?;
    Ok(recovery)
}

/// Removes staged texts and backups. What is not the command's own stays.
pub(super) fn sweep(root: &Folder, left: &Left, steps: &mut Steps) -> Result<()> {
    for (seen, entry) in Seen::all(root, left)?.iter().zip(&left.record.entries) {
        let Some(folder) = &seen.folder else { continue };
        // The backup first: a staged text that is left says that its target was never renamed.
        for (part, name) in [
            (&seen.backup, Entry::backup(&seen.name)),
            (&seen.staged, Entry::staged(&seen.name)),
        ] {
            if matches!(part, Part::Own) {
                steps.take(&entry.path)?;
                folder
                    .remove_file(&name)
                    .with_context(|| cannot("remove", &name))?;
            }
        }
    }
    Ok(())
}

/// Removes folders that the command made. One that somebody has put something into stays.
fn remove_folders(root: &Folder, record: &Record, steps: &mut Steps) -> Result<()> {
    for path in record.folders.iter().rev() {
        let Some((folder, name)) = root.reach(path)? else {
            continue;
        };
        if folder
            .look(name)?
            .is_none_or(|status| status.sort != Sort::Folder)
        {
            continue;
        }
        steps.take(path)?;
        match folder.remove_folder(name) {
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => {
                return Err(error).with_context(|| cannot("remove", path));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Names survive a power cut once their folder is on disk.
pub(super) fn sync_folders(root: &Folder, record: &Record) -> Result<()> {
    let parents: BTreeSet<&str> = record
        .entries
        .iter()
        .map(|entry| entry.path.rsplit_once('/').map_or("", |(folder, _)| folder))
        .chain(
            record
                .folders
                .iter()
                .map(|path| path.rsplit_once('/').map_or("", |(folder, _)| folder)),
        )
        .collect();
    for parent in parents {
        let inside = if parent.is_empty() {
            "x".to_owned()
        } else {
            format!("{parent}/x")
        };
        if let Ok(Some((folder, _))) = root.reach(&inside) {
            folder.sync().with_context(|| cannot("write", parent))?;
        }
    }
    Ok(())
}

/// A staged text or a backup.
#[derive(Debug)]
enum Part {
    Missing,
    /// The file that the command made.
    Own,
    /// Something else.
    Foreign,
}

/// What stands at the names of an entry.
struct Seen {
    /// Nothing where the folder is gone.
    folder: Option<Folder>,
    name: String,
    staged: Part,
    backup: Part,
    target: Option<Target>,
}

/// What stands in the place of a target.
#[derive(Debug, PartialEq, Eq)]
enum Target {
    /// The staged text, as it was renamed here.
    New,
    /// The text of before.
    Old,
    /// Something else: an edit.
    Edited,
}

impl Seen {
    fn all(root: &Folder, left: &Left) -> Result<Vec<Seen>> {
        let inodes = left
            .inodes
            .iter()
            .copied()
            .map(Some)
            .chain(std::iter::repeat(None));
        left.record
            .entries
            .iter()
            .zip(inodes)
            .map(|(entry, inodes)| Seen::new(root, entry, inodes))
            .collect()
    }

    /// Looks at an entry; its inodes are not known before all is staged.
    fn new(root: &Folder, entry: &Entry, inodes: Option<Inodes>) -> Result<Seen> {
        let Some((folder, name)) = root.reach(&entry.path)? else {
            return Ok(Seen {
                folder: None,
                name: String::new(),
                staged: Part::Missing,
                backup: Part::Missing,
                target: None,
            });
        };
        let part = |name: String, inode: Option<u64>| -> Result<Part> {
            Ok(
                match folder.look(&name).with_context(|| cannot("look at", &name))? {
                    None => Part::Missing,
                    Some(status) if is_own(&status) && inode.is_none_or(|inode| inode == status.inode) => {
                        Part::Own
                    }
                    Some(_) => Part::Foreign,
                },
            )
        };
        let staged = part(Entry::staged(name), inodes.map(|inodes| inodes.staged))?;
        let backup = part(Entry::backup(name), inodes.map(|inodes| inodes.backup))?;
        let there = folder
            .look(name)
            .with_context(|| cannot("look at", &entry.path))?;
        let inodes = inodes.unwrap_or_default();
        let target = there.map(|status| Target::of(&folder, name, &status, entry, inodes));
        Ok(Seen {
            name: name.to_owned(),
            folder: Some(folder),
            staged,
            backup,
            target,
        })
    }

    /// Fails when the old file cannot be put back.
    fn check(&self, entry: &Entry) -> Result<()> {
        let path = &entry.path;
        for (part, name) in [
            (&self.staged, Entry::staged(&self.name)),
            (&self.backup, Entry::backup(&self.name)),
        ] {
            if matches!(part, Part::Foreign) {
                bail!(
                    "an interrupted command cannot be undone: `{name}` beside `{path}` is not the file that it made; move `{name}` away, or remove `{}` to leave the files as they are",
                    super::journal::JOURNAL
                );
            }
        }
        let needs_backup = match entry.action {
            Action::Create => false,
            // Where the staged text is still there, nothing was renamed.
            Action::Write => matches!(self.staged, Part::Missing) && self.target != Some(Target::Old),
            Action::Delete => self.target.is_none(),
        };
        if needs_backup && !matches!(self.backup, Part::Own) {
            bail!(
                "an interrupted command cannot be undone: `{}`, which holds the old text of `{path}`, is gone; remove `{}` to leave the files as they are",
                Entry::backup(&self.name),
                super::journal::JOURNAL
            );
        }
        Ok(())
    }

    /// Puts the old file back where the new one was renamed into its place. Returns the path that an edit is kept
    /// under.
    fn restore(&self, entry: &Entry, steps: &mut Steps) -> Result<Option<String>> {
        let Some(folder) = &self.folder else {
            return Ok(None);
        };
        let was_renamed = match entry.action {
            Action::Create => matches!(self.staged, Part::Missing),
            Action::Write => matches!((&self.staged, &self.backup), (Part::Missing, Part::Own)),
            Action::Delete => matches!(self.backup, Part::Own),
        };
        if !was_renamed {
            return Ok(None);
        }
        steps.take(&entry.path)?;
        let told = || cannot("put back", &entry.path);
        let mut kept = None;
        match (&self.target, entry.action) {
            (None, _) => {}
            (Some(Target::New), Action::Create) => folder.remove_file(&self.name).with_context(told)?,
            // Replaced below in one step.
            (Some(Target::New), Action::Write) => {}
            (Some(Target::Old), Action::Write) => {}
            (Some(_), _) => kept = Some(keep(folder, &self.name, &entry.path)?),
        }
        if entry.action == Action::Create {
            return Ok(kept);
        }
        steps.take(&entry.path)?;
        let backup = Entry::backup(&self.name);
        if kept.is_none() && self.target.is_some() {
            folder.rename(&backup, &self.name).with_context(told)?;
        } else {
            folder
                .rename_to_free_name(&backup, &self.name)
                .with_context(told)?;
        }
        Ok(kept)
    }
}

impl Target {
    fn of(folder: &Folder, name: &str, status: &Status, entry: &Entry, inodes: Inodes) -> Target {
        if !is_own(status) {
            return Target::Edited;
        }
        let content = folder.open_file(name, false).ok().and_then(|file| {
            let same = status_of(&file).ok()?.is_same_file(status);
            let bytes = same.then(|| read_bounded(file, LARGEST).ok()?).flatten()?;
            Some(Content::of(&bytes))
        });
        if content.is_some() && content == entry.after && status.inode == inodes.staged {
            Target::New
        } else if content.is_some() && content == entry.before {
            Target::Old
        } else {
            Target::Edited
        }
    }
}

/// Whether a file can be one that the command made: a regular file of the user's own with one name.
fn is_own(status: &Status) -> bool {
    status.sort == Sort::File && status.owner == user() && status.links == 1
}

/// Renames what stands at a name to the next free name beside it; returns the path of that.
fn keep(folder: &Folder, name: &str, path: &str) -> Result<String> {
    for count in 0.. {
        let kept = Entry::kept(name, count);
        match folder.rename_to_free_name(name, &kept) {
            Ok(()) => {
                return Ok(match path.rsplit_once('/') {
                    Some((above, _)) => format!("{above}/{kept}"),
                    None => kept,
                });
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists && count < 1000 => {}
            Err(error) => return Err(error).with_context(|| cannot("keep", path)),
        }
    }
    unreachable!("the loop ends in it")
}

//! Recovery from an interrupted command: either the old tree is restored completely, or the
//! temporary files next to the new tree are removed.
//!
//! Only files that the command created are removed or renamed. The journal contains the inode of
//! each staged file and backup. A file with another inode, content or owner, or with a second hard
//! link, belongs to the user. If it took the place of a target, it is renamed to
//! `<name>.rbuilder-kept` and never overwritten. All files are inspected before the first change,
//! so a recovery that can't succeed changes nothing. An interrupted recovery can be resumed.

use std::collections::BTreeSet;
use std::io::ErrorKind;

use anyhow::{Context, Result, bail};

use super::journal::Journal;
use super::record::{Action, Content, Entry, Inodes, Interruption, JOURNAL, LineRef, Record, Stage};
use super::steps::Steps;
use crate::disk::{Folder, Sort, Status, cannot_message, effective_user, read_bounded, status_of};
use crate::paths::folder_of;

/// A larger target can't be the staged file.
const LARGEST: u64 = crate::tree::LARGEST;

/// The result of a recovery.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Whether the old tree was restored rather than the new one completed.
    pub undone: bool,
    /// The files of the interrupted command.
    pub files: Vec<String>,
    /// Edited files that were in the way of files to restore, with the paths under which they are
    /// kept.
    pub kept: Vec<(String, String)>,
}

impl std::fmt::Display for Recovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let result = if self.undone { "undid" } else { "completed" };
        let list: Vec<String> = self.files.iter().map(|path| format!("`{path}`")).collect();
        write!(
            f,
            "recovered from an interrupted command: {result} its changes to {}",
            list.join(", ")
        )?;
        for (path, kept) in &self.kept {
            write!(f, "\nkept the edited `{path}` as `{kept}`")?;
        }
        Ok(())
    }
}

/// Restores the old tree or completes the new one, removes temporary files, and empties the
/// journal. Fails without any change if a required file is missing or isn't the command's. If the
/// OS refuses a change, the next attempt resumes there.
pub(super) fn resolve_interruption(
    root: &Folder,
    journal: &mut Journal,
    left: &Interruption,
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
    let seen = EntryState::all(root, left)?;
    if left.stage == Stage::Staged {
        for (seen, entry) in seen.iter().zip(&left.record.entries) {
            // Check all of them before changing any.
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
    remove_temporary_files(root, left, steps)?;
    if recovery.undone {
        remove_folders(root, &left.record, steps)?;
    } else {
        remove_empty_folders(root, &left.record);
    }
    sync_folders(root, &left.record)?;
    journal.clear()?;
    Ok(recovery)
}

pub(super) fn remove_temporary_files(root: &Folder, left: &Interruption, steps: &mut Steps) -> Result<()> {
    for (seen, entry) in EntryState::all(root, left)?.iter().zip(&left.record.entries) {
        let Some(folder) = &seen.folder else { continue };
        // Remove the backup first: as long as the staged file exists, recovery concludes that its
        // target was never replaced.
        for (part, name) in [
            (&seen.backup, Entry::backup(&seen.name)),
            (&seen.staged, Entry::staged(&seen.name)),
        ] {
            if matches!(part, Part::Own) {
                steps.take(&entry.path)?;
                folder
                    .remove_file(&name)
                    .with_context(|| cannot_message("remove", &name))?;
            }
        }
    }
    Ok(())
}

fn remove_folders(root: &Folder, record: &Record, steps: &mut Steps) -> Result<()> {
    // Innermost first, since only an empty directory can be removed.
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
                return Err(error).with_context(|| cannot_message("remove", path));
            }
            _ => {}
        }
    }
    Ok(())
}

pub(super) fn remove_empty_folders(root: &Folder, record: &Record) {
    let deleted = record.entries.iter();
    for entry in deleted.filter(|entry| entry.action == Action::Delete) {
        let mut path = entry.path.as_str();
        while let Some((folder, _)) = path.rsplit_once('/') {
            path = folder;
            match root.reach(path) {
                Ok(Some((above, name))) if above.remove_folder(name).is_ok() => {}
                // Best effort: git doesn't track empty directories, so a leftover does no harm.
                _ => break,
            }
        }
    }
}

pub(super) fn sync_folders(root: &Folder, record: &Record) -> Result<()> {
    let parents: BTreeSet<&str> = record
        .entries
        .iter()
        .map(|entry| folder_of(&entry.path))
        .chain(record.folders.iter().map(|path| folder_of(path)))
        .collect();
    for parent in parents {
        let inside = if parent.is_empty() {
            "x".to_owned()
        } else {
            format!("{parent}/x")
        };
        if let Ok(Some((folder, _))) = root.reach(&inside) {
            folder.sync().with_context(|| cannot_message("write", parent))?;
        }
    }
    Ok(())
}

#[derive(Debug)]
enum Part {
    Missing,
    Own,
    Foreign,
}

struct EntryState {
    /// `None` if the directory no longer exists.
    folder: Option<Folder>,
    name: String,
    staged: Part,
    backup: Part,
    target: Option<Target>,
}

#[derive(Debug, PartialEq, Eq)]
enum Target {
    New,
    Old,
    /// A different file, i.e. edited by the user.
    Edited,
}

impl EntryState {
    fn all(root: &Folder, left: &Interruption) -> Result<Vec<EntryState>> {
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
            .map(|(entry, inodes)| EntryState::new(root, entry, inodes))
            .collect()
    }

    fn new(root: &Folder, entry: &Entry, inodes: Option<Inodes>) -> Result<EntryState> {
        let Some((folder, name)) = root.reach(&entry.path)? else {
            return Ok(EntryState {
                folder: None,
                name: String::new(),
                staged: Part::Missing,
                backup: Part::Missing,
                target: None,
            });
        };
        let part = |name: String, inode: Option<u64>| -> Result<Part> {
            Ok(
                match folder
                    .look(&name)
                    .with_context(|| cannot_message("access", &name))?
                {
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
            .with_context(|| cannot_message("access", &entry.path))?;
        let inodes = inodes.unwrap_or_default();
        let target = there.map(|status| Target::of(&folder, name, &status, entry, inodes));
        Ok(EntryState {
            name: name.to_owned(),
            folder: Some(folder),
            staged,
            backup,
            target,
        })
    }

    fn check(&self, entry: &Entry) -> Result<()> {
        let path = &entry.path;
        for (part, name) in [
            (&self.staged, Entry::staged(&self.name)),
            (&self.backup, Entry::backup(&self.name)),
        ] {
            if matches!(part, Part::Foreign) {
                bail!(
                    "cannot undo an interrupted command: `{name}` next to `{path}` is not the file that it created; move `{name}` away, or remove `{}` to keep the files as they are",
                    JOURNAL
                );
            }
        }
        let needs_backup = match entry.action {
            Action::Create => false,
            // The target was not replaced if the staged file still exists.
            Action::Write => matches!(self.staged, Part::Missing) && self.target != Some(Target::Old),
            Action::Delete => self.target.is_none(),
        };
        if needs_backup && !matches!(self.backup, Part::Own) {
            bail!(
                "cannot undo an interrupted command: `{}`, the backup of `{path}`, is missing; remove `{}` to keep the files as they are",
                Entry::backup(&self.name),
                JOURNAL
            );
        }
        Ok(())
    }

    /// Restores the old file if the target was replaced. Returns the path under which an edited
    /// target is kept.
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
        let context = || cannot_message("restore", &entry.path);
        let mut kept = None;
        match (&self.target, entry.action) {
            (None, _) => {}
            (Some(Target::New), Action::Create) => folder.remove_file(&self.name).with_context(context)?,
            // Replaced atomically by the backup below.
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
            folder.rename(&backup, &self.name).with_context(context)?;
        } else {
            folder
                .rename_to_free_name(&backup, &self.name)
                .with_context(context)?;
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

/// Whether the command may have created a file, i.e. it is a regular file with a single hard link
/// and is owned by the user.
fn is_own(status: &Status) -> bool {
    status.sort == Sort::File && status.owner == effective_user() && status.links == 1
}

/// Renames a file to the next free `kept` name, and returns the new path.
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
            Err(error) => return Err(error).with_context(|| cannot_message("keep", path)),
        }
    }
    unreachable!("the loop ends in it")
}

//! Recovery from an interrupted command. It either restores the old tree completely, or removes the
//! temporary files next to the new tree.
//!
//! We only remove or rename files that the command created. The journal contains the inode of each
//! staged file and backup. If a file has another inode, content or owner, or a second hard link,
//! then it belongs to the user. If such a file has taken the place of a target, we rename it to
//! `<name>.rbuilder-kept` and never overwrite it. All files are inspected before the first change,
//! so a recovery that cannot succeed changes nothing. An interrupted recovery can be resumed.

use std::collections::BTreeSet;
use std::io::ErrorKind;

use anyhow::{Context, Result, bail};

use super::journal::Journal;
use super::record::{Action, Content, Entry, Inodes, Interruption, JOURNAL, LineRef, Record, Stage};
use super::steps::Steps;
use crate::disk::{Folder, Sort, Status, cannot_message, effective_user, read_bounded, status_of};
use crate::paths::folder_of;

/// A larger target cannot be the staged file.
const LARGEST: u64 = crate::tree::LARGEST;

/// The result of a recovery.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// True if the old tree was restored, and false if the new one was completed.
    pub undone: bool,
    /// The files of the interrupted command.
    pub files: Vec<String>,
    /// Edited files found in place of files to restore, each with the path under which it is kept.
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

/// Restores the old tree or completes the new one, and removes temporary files. Then empties the
/// journal. If a required file is missing, or is not the command's, this fails without any change.
/// If the system denies a change, the next attempt resumes there.
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
            // Check all of them before we change any.
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
        // Remove the backup first, because if a staged file is still there, recovery concludes that
        // its target was never replaced.
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
    // Start with the innermost, because only an empty directory can be removed.
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
                // This is best effort. git does not track empty directories, so it does no harm if
                // one stays behind.
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
    /// A different file, so the user has edited it.
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

    /// Inspects the files of an entry. `inodes` is `None` until all files are staged.
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
            // If the staged file still exists, the target was not replaced.
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

    /// Restores the old file if the target was replaced. Returns the path under which an edit is
    /// kept.
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
            // The backup replaces it below in a single step.
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

/// Whether the command may have created a file. If so, it is a regular file with a single hard link
/// that belongs to the user.
fn is_own(status: &Status) -> bool {
    status.sort == Sort::File && status.owner == effective_user() && status.links == 1
}

/// Renames a file to the next free name for kept files, and returns the new path.
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

//! The journal: a file that records a command's progress, and a lock against concurrent commands.
//!
//! The journal is a file in the project directory, so it may come from a repository, an archive or
//! another user. A command acts on a journal only if all of these conditions hold:
//!
//! - It is a regular file with a single hard link, is owned by the user, can be opened without
//!   following symlinks and without blocking, and has at most [`LARGEST`] bytes.
//! - git does not track it, according to the index of the repository.
//! - It contains its own inode and the inode of its directory. An attacker can't predict which
//!   inodes both will get when they are cloned or unpacked.
//! - A plan may write to each of its paths: a path within the project, but not in a version control
//!   directory, in Cargo's configuration or among rbuilder's own files; or the Cargo.toml of a
//!   workspace above, to which `init` adds the project.
//!
//! The effects of a journal are limited as well (see [`super::recover`]): recovery only removes or
//! renames files whose inodes the command recorded on creation, and keeps any other file under a
//! new name.
//!
//! This doesn't protect against an attacker who can write to the directory while commands run, or
//! who can guess inodes, e.g. in an immutable machine image. Such an attacker can make rbuilder
//! replace files *within* the project directory, or a Cargo.toml above it, with neighboring files.
//! Except for that Cargo.toml, write access is enough to replace files even without rbuilder.
//! Systems without inodes (Windows) cannot distinguish a copied journal from the original.

#![allow(clippy::disallowed_methods)] // the clock limits waiting, and does not affect output

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::git;
use super::record::{Interruption, JOURNAL, LineRef};
use super::steps::Steps;
use crate::disk::{Folder, Sort, Status, effective_user, read_bounded, status_of};
use crate::tree::display_root;

/// Enough for a hundred thousand files.
const LARGEST: u64 = 32 << 20;

/// Total time that a writing command sleeps while it waits for readers, which hold the lock only
/// briefly. Sleeps are added up rather than measured, because on a busy machine readers take longer
/// as well.
const WAIT_FOR_READERS: Duration = Duration::from_millis(300);

/// Timeout for a reading command that waits for a writer. Measured by the clock, since a sleep of
/// [`TRY`] takes several times as long on a busy machine.
pub(super) const WAIT_FOR_WRITER: Duration = Duration::from_secs(10);

const TRY: Duration = Duration::from_millis(5);

pub(super) struct Journal {
    folder: Folder,
    file: File,
    pub(super) left: Option<Interruption>,
}

/// Journal state as seen by a read-only command.
pub(super) enum JournalState {
    /// No command is running, and none was interrupted.
    Quiet,
    Interrupted(Interruption),
    /// Not written by any command, with the reason.
    Foreign(String),
}

impl Journal {
    /// Opens or creates the journal of a directory, locks it, and reads the record of an
    /// interrupted command. Fails if another command is running, or if no command can have written
    /// the journal.
    pub(super) fn open(folder: &Folder, root: &Path) -> Result<Journal> {
        let mut waited = Duration::ZERO;
        let mut is_own = false;
        loop {
            let Some(status) = folder.look(JOURNAL).context("cannot access the journal")? else {
                match folder.create_file(JOURNAL) {
                    Ok(_) => is_own = true,
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                    Err(error) => {
                        return Err(error)
                            .with_context(|| format!("cannot create `{JOURNAL}` in {}", display_root(root)));
                    }
                }
                continue;
            };
            check_plain(&status).map_err(|reason| foreign(root, &reason))?;
            // The journal is gone again: another command has just finished.
            let Some(file) = open_journal(folder, true)? else {
                continue;
            };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if waited < WAIT_FOR_READERS => {
                    std::thread::sleep(TRY);
                    waited += TRY;
                    continue;
                }
                Err(TryLockError::WouldBlock) => return Err(busy(root)),
                Err(TryLockError::Error(error)) => return Err(error).context("cannot lock the journal"),
            }
            // The previous lock owner may have removed the file we opened.
            if !is_at(&file, folder)? {
                continue;
            }
            let left = read(&file, folder, root, is_own).map_err(|reason| foreign(root, &reason))?;
            let mut journal = Journal {
                folder: folder.clone(),
                file,
                left,
            };
            if journal.left.is_none() {
                journal.clear()?;
            }
            return Ok(journal);
        }
    }

    pub(super) fn inode(&self) -> Result<u64> {
        Ok(status_of(&self.file).context("cannot read the journal")?.inode)
    }

    pub(super) fn note(&mut self, line: LineRef<'_>, steps: &mut Steps) -> Result<()> {
        steps.take("journal")?;
        let length = status_of(&self.file).context("cannot read the journal")?.length;
        let text = serde_json::to_string(&line)? + "\n";
        let written = self
            .file
            .seek(SeekFrom::Start(length))
            .and_then(|_| self.file.write_all(text.as_bytes()))
            .and_then(|()| self.file.sync_all())
            .and_then(|()| self.folder.sync());
        if let Err(error) = written {
            // The line may or may not be on disk. Truncate it, so that recovery doesn't take the
            // phase for completed.
            self.file.set_len(length).context("cannot write the journal")?;
            return Err(error).context("cannot write the journal");
        }
        steps.pass();
        Ok(())
    }

    pub(super) fn clear(&mut self) -> Result<()> {
        self.left = None;
        self.file.set_len(0).context("cannot write the journal")
    }

    pub(super) fn close(self) -> Result<()> {
        self.folder
            .remove_file(JOURNAL)
            .context("cannot remove the journal")
    }
}

/// Reads the journal of a directory without changing anything. Waits up to [`WAIT_FOR_WRITER`] for
/// a running command.
pub(super) fn read_journal(folder: &Folder, root: &Path) -> Result<JournalState> {
    let started = Instant::now();
    loop {
        let Some(status) = folder.look(JOURNAL).context("cannot access the journal")? else {
            return Ok(JournalState::Quiet);
        };
        if let Err(reason) = check_plain(&status) {
            return Ok(JournalState::Foreign(reason));
        }
        let Some(file) = open_journal(folder, false)? else {
            continue;
        };
        match file.try_lock_shared() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) if started.elapsed() < WAIT_FOR_WRITER => {
                std::thread::sleep(TRY);
                continue;
            }
            Err(TryLockError::WouldBlock) => return Err(busy(root)),
            Err(TryLockError::Error(error)) => return Err(error).context("cannot lock the journal"),
        }
        if !is_at(&file, folder)? {
            continue;
        }
        return Ok(match read(&file, folder, root, false) {
            Ok(None) => JournalState::Quiet,
            Ok(Some(left)) => JournalState::Interrupted(left),
            Err(reason) => JournalState::Foreign(reason),
        });
    }
}

pub(super) fn has_journal(folder: &Folder) -> Result<bool> {
    Ok(folder
        .look(JOURNAL)
        .context("cannot access the journal")?
        .is_some())
}

fn open_journal(folder: &Folder, to_write: bool) -> Result<Option<File>> {
    match folder.open_file(JOURNAL, to_write) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context("cannot open the journal"),
    }
}

/// Reads a journal. If this process created it, git can't be tracking it.
fn read(file: &File, folder: &Folder, root: &Path, is_own: bool) -> Result<Option<Interruption>, String> {
    let context = |error: std::io::Error| format!("it cannot be read: {error}");
    let status = status_of(file).map_err(context)?;
    check_plain(&status)?;
    let again = file.try_clone().map_err(context)?;
    let bytes = read_bounded(again, LARGEST).map_err(context)?;
    let bytes = bytes.ok_or_else(|| "it is too large".to_owned())?;
    let inode = folder.status().map_err(context)?.inode;
    let left = Interruption::parse(&bytes, status.inode, inode)?;
    if !is_own {
        git::check_untracked(root, JOURNAL)?;
    }
    Ok(left)
}

/// Checks that a file qualifies as a journal. The error is a phrase.
fn check_plain(status: &Status) -> Result<(), String> {
    let flaw = match status.sort {
        Sort::Link => "it is a symbolic link",
        Sort::Folder => "it is a directory",
        Sort::Other => "it is a pipe, a socket or a device",
        Sort::File if status.owner != effective_user() => "it belongs to another user",
        Sort::File if status.links > 1 => "it has more than one hard link",
        Sort::File => return Ok(()),
    };
    Err(flaw.to_owned())
}

fn is_at(file: &File, folder: &Folder) -> Result<bool> {
    let open = status_of(file).context("cannot read the journal")?;
    let there = folder.look(JOURNAL).context("cannot access the journal")?;
    Ok(there.is_some_and(|there| there.is_same_file(&open)))
}

fn busy(root: &Path) -> anyhow::Error {
    anyhow::anyhow!(
        "another rbuilder command is running in {}: try again when it has finished",
        display_root(root)
    )
}

fn foreign(root: &Path, reason: &str) -> anyhow::Error {
    anyhow::anyhow!("{}", foreign_journal(root, reason))
}

pub(super) fn foreign_journal(root: &Path, reason: &str) -> String {
    format!(
        "`{JOURNAL}` in {} was not created by an rbuilder command there ({reason}): inspect and remove it",
        display_root(root)
    )
}

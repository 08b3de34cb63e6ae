//! The journal: the file that says how far a command has come, and the lock that keeps others away.
//!
//! It lies in the project folder, so a repository, an archive or another user may have put one there. A journal is
//! acted on only where all of this holds:
//!
//! - it is a regular file of the user's own with one name, opened through no link and without waiting, of at most
//!   [`LARGEST`] bytes;
//! - git does not track it, as far as the index of the repository around the folder says;
//! - it names its own inode and that of the folder. Whoever prepares a journal cannot know the inodes that it and the
//!   folder will have when they are cloned or unpacked;
//! - every path in it is one that a plan may hold: within the project and no business of a version control system,
//!   of Cargo's configuration or of rbuilder's own files.
//!
//! What is then done because of it is bounded again (see [`super::recover`]): only files whose inode the command noted
//! when it made them are removed or renamed into place, and whatever else stands at their names is kept beside them.
//!
//! What is not guaranteed: somebody who can write to the folder while commands run in it, or who can guess inodes
//! (a machine image that is the same each time), can have files *within* the project folder replaced by others within
//! it, which such a person can do without rbuilder as well. Where the system has no inodes (Windows), a copied
//! journal is not told from an own one.

#![allow(clippy::disallowed_methods)] // the clock decides how long to wait, never what is written

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::apply::Steps;
use super::git;
use super::record::{Left, LineRef};
use crate::disk::{Folder, Sort, Status, read_bounded, status_of, user};
use crate::tree::shown;

/// Name of the journal, in the project folder.
pub const JOURNAL: &str = ".rbuilder-journal";

/// The longest journal that is read, in bytes: some hundred thousand files.
const LARGEST: u64 = 32 << 20;

/// How long a command that writes sleeps for those that only look whether somebody is at work. On a busy machine they
/// need more of the clock's time, and so do the sleeps: they are counted, not measured.
const WAIT_FOR_READERS: Duration = Duration::from_millis(300);

/// How long a command that only reads waits for one that writes, by the clock: on a busy machine a sleep of [`TRY`]
/// takes several times as long.
pub(super) const WAIT_FOR_WRITER: Duration = Duration::from_secs(10);

/// Time between two tries of a lock.
const TRY: Duration = Duration::from_millis(5);

/// The journal's file, locked as long as this command is at work.
pub(super) struct Journal {
    folder: Folder,
    file: File,
    /// What an interrupted command has left in it.
    pub(super) left: Option<Left>,
}

/// What a command that only reads finds in the place of the journal.
pub(super) enum Glimpse {
    /// Nobody is at work, and nobody was interrupted.
    Quiet,
    /// A command was interrupted, and this is what it left.
    Interrupted(Left),
    /// No command can have left this; the reason.
    Foreign(String),
}

impl Journal {
    /// Takes the journal of a folder, and reads what another command left in it.
    ///
    /// # Errors
    /// When another command is at work, or when what is there is nothing that a command left.
    pub(super) fn open(folder: &Folder, root: &Path) -> Result<Journal> {
        let mut waited = Duration::ZERO;
        let mut is_own = false;
        loop {
            let Some(status) = folder.look(JOURNAL).context("cannot look at the journal")? else {
                match folder.create_file(JOURNAL) {
                    Ok(_) => is_own = true,
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                    Err(error) => {
                        return Err(error)
                            .with_context(|| format!("cannot create `{JOURNAL}` in {}", shown(root)));
                    }
                }
                continue;
            };
            check_plain(&status).map_err(|reason| foreign(root, &reason))?;
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
            // The command that had the lock before may have removed the file that we opened.
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

    /// Inode of the journal.
    pub(super) fn inode(&self) -> Result<u64> {
        Ok(status_of(&self.file).context("cannot read the journal")?.inode)
    }

    /// Adds a line, and waits until it is on disk.
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
            // A phase that is not known to be on disk has not ended; undoing must not find its word.
            self.file.set_len(length).context("cannot write the journal")?;
            return Err(error).context("cannot write the journal");
        }
        steps.pass();
        Ok(())
    }

    /// Empties the journal.
    pub(super) fn clear(&mut self) -> Result<()> {
        self.left = None;
        self.file.set_len(0).context("cannot write the journal")
    }

    /// Removes the journal; the lock goes with it.
    pub(super) fn close(self) -> Result<()> {
        self.folder
            .remove_file(JOURNAL)
            .context("cannot remove the journal")
    }
}

/// Looks at the journal of a folder without changing anything, and waits while a command is at work.
///
/// # Errors
/// When the command is still at work after [`WAIT_FOR_WRITER`].
pub(super) fn glimpse(folder: &Folder, root: &Path) -> Result<Glimpse> {
    let started = Instant::now();
    loop {
        let Some(status) = folder.look(JOURNAL).context("cannot look at the journal")? else {
            return Ok(Glimpse::Quiet);
        };
        if let Err(reason) = check_plain(&status) {
            return Ok(Glimpse::Foreign(reason));
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
            Ok(None) => Glimpse::Quiet,
            Ok(Some(left)) => Glimpse::Interrupted(left),
            Err(reason) => Glimpse::Foreign(reason),
        });
    }
}

/// Whether something has the journal's name.
pub(super) fn is_there(folder: &Folder) -> Result<bool> {
    Ok(folder
        .look(JOURNAL)
        .context("cannot look at the journal")?
        .is_some())
}

fn open_journal(folder: &Folder, to_write: bool) -> Result<Option<File>> {
    match folder.open_file(JOURNAL, to_write) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context("cannot open the journal"),
    }
}

/// What a journal says. One that this process made itself is not looked for in git's index.
fn read(file: &File, folder: &Folder, root: &Path, is_own: bool) -> Result<Option<Left>, String> {
    let told = |error: std::io::Error| format!("it cannot be read: {error}");
    let status = status_of(file).map_err(told)?;
    check_plain(&status)?;
    let again = file.try_clone().map_err(told)?;
    let bytes = read_bounded(again, LARGEST).map_err(told)?;
    let bytes = bytes.ok_or_else(|| "it is too large".to_owned())?;
    let inode = folder.status().map_err(told)?.inode;
    let left = Left::parse(&bytes, status.inode, inode)?;
    if !is_own {
        git::check_untracked(root, JOURNAL)?;
    }
    Ok(left)
}

/// Refuses what no command leaves; the reason is a phrase.
fn check_plain(status: &Status) -> Result<(), String> {
    let flaw = match status.sort {
        Sort::Link => "it is a symbolic link",
        Sort::Folder => "it is a folder",
        Sort::Other => "it is a pipe, a socket or a device",
        Sort::File if status.owner != user() => "it is a file of another user",
        Sort::File if status.links > 1 => "it is a file with more than one name",
        Sort::File => return Ok(()),
    };
    Err(flaw.to_owned())
}

fn is_at(file: &File, folder: &Folder) -> Result<bool> {
    let open = status_of(file).context("cannot read the journal")?;
    let there = folder.look(JOURNAL).context("cannot look at the journal")?;
    Ok(there.is_some_and(|there| there.is_same_file(&open)))
}

fn busy(root: &Path) -> anyhow::Error {
    anyhow::anyhow!(
        "another rbuilder command is at work in {}: try again when it is done",
        shown(root)
    )
}

fn foreign(root: &Path, reason: &str) -> anyhow::Error {
    anyhow::anyhow!("{}", foreign_journal(root, reason))
}

/// What is said of a journal that no command left.
pub(super) fn foreign_journal(root: &Path, reason: &str) -> String {
    format!(
        "`{JOURNAL}` in {} was not left by an rbuilder command there: {reason}; look at it and remove it",
        shown(root)
    )
}

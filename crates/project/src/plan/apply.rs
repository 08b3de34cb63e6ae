//! Applies plans. Only this module and `recover.rs` change the project directory.
//!
//! Several files cannot be replaced atomically, so we use a journal. It lists every temporary file
//! before the first one is created, and gets a line at the end of each phase. A command that finds
//! the journal of a dead process completes the change if every file was renamed, and rolls it back
//! otherwise:
//!
//! 1. write the journal;
//! 2. stage new files next to their targets and back up old ones: the journal gets the line
//!    `staged`;
//! 3. rename staged files over their targets, PROJECT last: the journal gets the line `renamed`;
//! 4. remove backups and the journal.
//!
//! After a crash, the tree may contain a mix of old and new files until the next writing command
//! recovers it.
//!
//! Directories stay open while names in them are used (see [`crate::disk`]). If a directory is
//! concurrently replaced with a symlink, the command fails instead of writing outside the project.
//! Each target is compared again right before it is replaced, so a concurrent edit stops the
//! command; only an edit between this comparison and the rename is lost.

#![allow(clippy::disallowed_methods)] // this module writes the project

use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use fs_err as fs;

use super::journal::{self, Journal, JournalState};
pub use super::record::JOURNAL;
use super::record::{Action, Content, Entry, Inodes, Interruption, LineRef, Record, Stage};
use super::recover::{self, Recovery};
pub use super::steps::Faults;
use super::steps::Steps;
use super::{Change, Plan};
use crate::disk::{Folder, cannot_message, read_bounded, set_mode, status_of};
use crate::tree::{Changed, LARGEST, Tree, display_root, open_project};

/// Applies a plan, either completely or not at all.
///
/// Returns the number of steps, so that tests can inject a fault into each.
///
/// # Errors
/// Fails with [`Changed`] if a file that the plan is based on has changed. Also fails if another
/// command is running in the directory, or if a write fails. In each case the directory is left as
/// it was.
pub fn apply(tree: &Tree, plan: &Plan, faults: Faults) -> Result<usize> {
    if plan.is_empty() {
        return Ok(0);
    }
    let root = tree.root();
    let new_root = !root.exists();
    fs::create_dir_all(root)?;
    let result = write(tree, plan, faults);
    if result.is_err() && new_root {
        // Best effort; the original error is reported anyway.
        let _ = fs::remove_dir(root);
    }
    result
}

/// Completes or rolls back an interrupted command. Returns `None` if there was none.
///
/// # Errors
/// Fails if another command is running in the directory, if the journal was not written by a
/// command in it, or if a file cannot be restored.
pub fn recover(root: &Path) -> Result<Option<Recovery>> {
    recover_with(root, Faults::default()).map(|(recovery, _)| recovery)
}

/// Like [`recover()`], but also returns the number of steps, so that tests can inject a fault into
/// each.
///
/// # Errors
/// Fails for the same reasons as [`recover()`], and at the injected fault.
pub fn recover_with(root: &Path, faults: Faults) -> Result<(Option<Recovery>, usize)> {
    let mut steps = Steps { faults, taken: 0 };
    let Some(folder) = open_project(root)? else {
        return Ok((None, 0));
    };
    if !journal::has_journal(&folder)? {
        return Ok((None, 0));
    }
    let mut journal = Journal::open(&folder, root)?;
    let recovery = match journal.left.take() {
        Some(left) => Some(recover::resolve_interruption(
            &folder,
            &mut journal,
            &left,
            &mut steps,
        )?),
        None => None,
    };
    journal.close()?;
    Ok((recovery, steps.taken))
}

/// Whether a command is writing, or was interrupted and left its journal behind.
///
/// # Errors
/// Fails if the directory cannot be read.
pub fn is_command_running(root: &Path) -> Result<bool> {
    match open_project(root)? {
        Some(folder) => journal::has_journal(&folder),
        None => Ok(false),
    }
}

/// Checks the journal of a directory for a read-only command. Waits while another command is
/// running. Returns a warning about a journal that no command can have written.
///
/// # Errors
/// Fails if the other command is still running after ten seconds, or if an interrupted command left
/// an inconsistent tree, i.e. a mix of old and new files.
pub fn check_journal(root: &Path) -> Result<Option<String>> {
    let Some(folder) = open_project(root)? else {
        return Ok(None);
    };
    match journal::read_journal(&folder, root)? {
        JournalState::Quiet => Ok(None),
        JournalState::Foreign(reason) => Ok(Some(format!(
            "{}; ignoring it",
            journal::foreign_journal(root, &reason)
        ))),
        JournalState::Interrupted(left) => {
            let files = left.record.entries.len();
            if left.stage == Stage::Staged {
                bail!(
                    "an interrupted rbuilder command left {} in an inconsistent state ({files} files): run `rbuilder manifests` there to recover",
                    display_root(root)
                );
            }
            Ok(Some(format!(
                "an interrupted rbuilder command left `{JOURNAL}` and temporary files in {}: run `rbuilder manifests` there to remove them",
                display_root(root)
            )))
        }
    }
}

fn write(tree: &Tree, plan: &Plan, faults: Faults) -> Result<usize> {
    let mut steps = Steps { faults, taken: 0 };
    let root = Folder::open(tree.root()).with_context(|| cannot_message("open", &tree.shown()))?;
    let mut journal = Journal::open(&root, tree.root())?;
    if let Some(left) = journal.left.take() {
        recover::resolve_interruption(&root, &mut journal, &left, &mut Steps::default())?;
    }
    let inode = journal.inode()?;
    let mut left = Interruption {
        record: Record::new(&root, inode, plan)?,
        inodes: Vec::new(),
        stage: Stage::Begun,
    };
    let written = tree
        .verify_unchanged()
        .and_then(|()| run(&root, plan, &mut left, &mut journal, &mut steps));
    if let Err(error) = written {
        let undone = recover::resolve_interruption(&root, &mut journal, &left, &mut Steps::default())
            .context("cannot undo the changes; run `rbuilder manifests` to try again")?;
        journal.close()?;
        return match undone.kept.is_empty() {
            true => Err(error),
            false => Err(error.context(undone)),
        };
    }
    // The new tree is in place. If a file can't be removed now, it stays in the journal for the
    // next command.
    if steps
        .take("sweep")
        .and_then(|()| recover::remove_temporary_files(&root, &left, &mut Steps::default()))
        .is_ok()
    {
        recover::remove_empty_folders(&root, &left.record);
        journal.close()?;
    }
    Ok(steps.taken)
}

fn run(
    root: &Folder,
    plan: &Plan,
    left: &mut Interruption,
    journal: &mut Journal,
    steps: &mut Steps,
) -> Result<()> {
    check_companions(root, &left.record)?;
    journal.note(LineRef::Begin(&left.record), steps)?;
    let inodes = stage(root, plan, &left.record, steps)?;
    journal.note(LineRef::Staged(&inodes), steps)?;
    (left.inodes, left.stage) = (inodes, Stage::Staged);
    rename(root, &left.record, steps)?;
    journal.note(LineRef::Renamed, steps)?;
    left.stage = Stage::Renamed;
    Ok(())
}

/// Checks that the names of temporary files are unused, so that recovery may assume that files with
/// these names belong to this command.
fn check_companions(root: &Folder, record: &Record) -> Result<()> {
    for entry in &record.entries {
        let Some((folder, name)) = root.reach(&entry.path)? else {
            continue;
        };
        for companion in [Entry::staged(name), Entry::backup(name)] {
            if folder
                .look(&companion)
                .with_context(|| cannot_message("access", &companion))?
                .is_some()
            {
                bail!(
                    "`{companion}` next to `{}` already exists: inspect and remove it",
                    entry.path
                );
            }
        }
    }
    Ok(())
}

fn reach<'a>(root: &Folder, path: &'a str) -> Result<(Folder, &'a str)> {
    match root.reach(path)? {
        Some(reached) => Ok(reached),
        None => {
            bail!(
                "the directory of {path} was removed while the command was running; no files were written: run it again"
            )
        }
    }
}

fn stage(root: &Folder, plan: &Plan, record: &Record, steps: &mut Steps) -> Result<Vec<Inodes>> {
    for path in &record.folders {
        steps.take(path)?;
        let (above, name) = reach(root, path)?;
        above
            .create_folder(name)
            .with_context(|| cannot_message("create", path))?;
    }
    record
        .entries
        .iter()
        .map(|entry| {
            let change = &plan.changes()[&entry.path];
            let (folder, name) = reach(root, &entry.path)?;
            let there = folder
                .look(name)
                .with_context(|| cannot_message("access", &entry.path))?;
            // A moved file keeps its mode.
            let mode = match (change, plan.moved_from(&entry.path)) {
                (_, Some(from)) => mode_of(root, from)?,
                (Change::Create { .. }, None) => None,
                _ => there.map(|status| status.mode),
            };
            let mut inodes = Inodes::default();
            if let Some(after) = change.after() {
                steps.take(&entry.path)?;
                inodes.staged = write_synced(&folder, &Entry::staged(name), after.as_bytes(), mode)?;
            }
            match entry.action {
                Action::Create => {}
                Action::Write => {
                    steps.take(&entry.path)?;
                    inodes.backup =
                        write_synced(&folder, &Entry::backup(name), change.before().as_bytes(), mode)?;
                }
                Action::Delete => inodes.backup = there.map_or(0, |status| status.inode),
            }
            Ok(inodes)
        })
        .collect()
}

fn mode_of(root: &Folder, path: &str) -> Result<Option<u32>> {
    let (folder, name) = reach(root, path)?;
    let status = folder
        .look(name)
        .with_context(|| cannot_message("access", path))?;
    Ok(status.map(|status| status.mode))
}

fn rename(root: &Folder, record: &Record, steps: &mut Steps) -> Result<()> {
    for entry in &record.entries {
        steps.take(&entry.path)?;
        let (folder, name) = reach(root, &entry.path)?;
        let context = || cannot_message("write", &entry.path);
        if let Some(before) = &entry.before {
            check_target(&folder, name, before, &entry.path)?;
        }
        match entry.action {
            // The file may have been created since the plan was made.
            Action::Create => match folder.rename_to_free_name(&Entry::staged(name), name) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => bail!(changed(&entry.path)),
                done => done.with_context(context)?,
            },
            Action::Write => folder.rename(&Entry::staged(name), name).with_context(context)?,
            Action::Delete => folder
                .rename_to_free_name(name, &Entry::backup(name))
                .with_context(context)?,
        }
    }
    steps.take("folders")?;
    recover::sync_folders(root, record)
}

fn check_target(folder: &Folder, name: &str, before: &Content, path: &str) -> Result<()> {
    let file = folder
        .open_file(name, false)
        .with_context(|| cannot_message("open", path))?;
    let bytes = read_bounded(file, LARGEST).with_context(|| cannot_message("read", path))?;
    match bytes {
        Some(bytes) if Content::of(&bytes) == *before => Ok(()),
        _ => bail!(changed(path)),
    }
}

fn changed(path: &str) -> String {
    Changed::new(path).to_string()
}

/// Creates a file, syncs it to disk, and returns its inode. Without `mode`, the umask applies as
/// usual.
fn write_synced(folder: &Folder, name: &str, bytes: &[u8], mode: Option<u32>) -> Result<u64> {
    let context = || cannot_message("write", name);
    let mut file = folder.create_file(name).with_context(context)?;
    if let Some(mode) = mode {
        set_mode(&file, mode).with_context(context)?;
    }
    file.write_all(bytes).with_context(context)?;
    file.sync_all().with_context(context)?;
    Ok(status_of(&file).with_context(context)?.inode)
}

//! Writes a plan: the only module that changes the project folder, with `recover.rs` for what went wrong.
//!
//! A set of files cannot be replaced in one step, so a journal makes it look like one. It names every file that
//! will exist for a while before the first of them does, and grows by one line as each phase ends. Whoever finds
//! a journal without its owner undoes what it names, or finishes it once every file was renamed:
//!
//! 1. the journal is written;
//! 2. new texts are staged beside their targets, and old ones copied: the journal says `staged`;
//! 3. staged files are renamed over their targets, PROJECT last: the journal says `renamed`;
//! 4. copies and journal are removed.
//!
//! Between a kill and the recovery, which the next command that writes begins with, the tree holds some of both.
//!
//! Folders are held open while their names are used (see `cli/src/disk`), so a folder that becomes a link under a
//! running command is an error and not a way out of the project. A target is looked at once more before it is
//! replaced: an edit that was saved while the command ran stops it, but for the moment between that look and the
//! rename.

#![allow(clippy::disallowed_methods)] // this is the module that writes

use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use fs_err as fs;

pub use super::journal::JOURNAL;
use super::journal::{self, Glimpse, Journal};
use super::record::{Action, Content, Entry, Inodes, Left, LineRef, Record, Stage};
use super::recover::{self, Recovery};
use super::{Change, Plan};
use crate::disk::{Folder, cannot, read_bounded, set_mode, status_of};
use crate::tree::{Changed, LARGEST, Tree, open_project, shown};

/// Where a test makes a write fail, or the process die.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// The step at which it happens, counted from 0; never when nothing.
    pub at: Option<usize>,
    /// Whether the whole process dies there, as from `kill -9`.
    pub abort: bool,
}

/// Writes every change of a plan, or none.
///
/// Returns the number of steps it took, for tests that fail at each of them.
///
/// # Errors
/// When a file that the plan rests on has changed (a [`Changed`]), when another command is at work in the folder, or when a
/// write fails; the folder is then as it was.
pub fn apply(tree: &Tree, plan: &Plan, faults: Faults) -> Result<usize> {
    if plan.is_empty() {
        return Ok(0);
    }
    let root = tree.root();
    let new_root = !root.exists();
    fs::create_dir_all(root)?;
    let result = write(tree, plan, faults);
    if result.is_err() && new_root {
        // Best effort: the error that brought us here is the one to tell.
        let _ = fs::remove_dir(root);
    }
    result
}

/// Finishes or undoes what an interrupted command has left; nothing when there is nothing.
///
/// # Errors
/// When another command is at work in the folder, when the journal is not one that a command left here, or when a
/// file cannot be moved back.
pub fn recover(root: &Path) -> Result<Option<Recovery>> {
    recover_with(root, Faults::default()).map(|(recovery, _)| recovery)
}

/// As [`recover`]; returns the number of steps too, for tests that fail at each of them.
///
/// # Errors
/// As [`recover`], and at the step that was asked for.
pub fn recover_with(root: &Path, faults: Faults) -> Result<(Option<Recovery>, usize)> {
    let mut steps = Steps { faults, taken: 0 };
    let Some(folder) = open_project(root)? else {
        return Ok((None, 0));
    };
    if !journal::is_there(&folder)? {
        return Ok((None, 0));
    }
    let mut journal = Journal::open(&folder, root)?;
    let recovery = match journal.left.take() {
        Some(left) => Some(recover::settle(&folder, &mut journal, &left, &mut steps)?),
        None => None,
    };
    journal.close()?;
    Ok((recovery, steps.taken))
}

/// Returns `true` where another command has begun to write, or has left its journal.
///
/// # Errors
/// When the folder cannot be read.
pub(crate) fn is_at_work(root: &Path) -> Result<bool> {
    match open_project(root)? {
        Some(folder) => journal::is_there(&folder),
        None => Ok(false),
    }
}

/// What a command that changes nothing has to say about the journal of a folder, which it leaves as it is. Waits while
/// another command is at work.
///
/// # Errors
/// When the command is still at work after ten seconds, and when an interrupted one left some files old and some new:
/// nothing true can be said of such a tree.
pub fn look_for_journal(root: &Path) -> Result<Option<String>> {
    let Some(folder) = open_project(root)? else {
        return Ok(None);
    };
    match journal::glimpse(&folder, root)? {
        Glimpse::Quiet => Ok(None),
        Glimpse::Foreign(reason) => Ok(Some(format!(
            "{}; this command ignores it",
            journal::foreign_journal(root, &reason)
        ))),
        Glimpse::Interrupted(left) => {
            let files = left.record.entries.len();
            if left.stage == Stage::Staged {
                bail!(
                    "an interrupted rbuilder command left {} between two states ({files} files): run `rbuilder manifests` there, which recovers first",
                    shown(root)
                );
            }
            Ok(Some(format!(
                "an interrupted rbuilder command left `{JOURNAL}` and files beside it in {}: the next command that writes, such as `rbuilder manifests`, removes them",
                shown(root)
            )))
        }
    }
}

fn write(tree: &Tree, plan: &Plan, faults: Faults) -> Result<usize> {
    let mut steps = Steps { faults, taken: 0 };
    let root = Folder::open(tree.root()).with_context(|| cannot("open", &tree.shown()))?;
    let mut journal = Journal::open(&root, tree.root())?;
    if let Some(left) = journal.left.take() {
        recover::settle(&root, &mut journal, &left, &mut Steps::default())?;
    }
    let inode = journal.inode()?;
    let mut left = Left {
        record: Record::new(&root, inode, plan)?,
        inodes: Vec::new(),
        stage: Stage::Begun,
    };
    let written = tree
        .verify_unchanged()
        .and_then(|()| run(&root, plan, &mut left, &mut journal, &mut steps));
    if let Err(error) = written {
        let undone = recover::settle(&root, &mut journal, &left, &mut Steps::default())
            .context("cannot undo what was written; run any command that writes to try again")?;
        journal.close()?;
        return match undone.kept.is_empty() {
            true => Err(error),
            false => Err(error.context(undone)),
        };
    }
    // From here on the new tree stands. What cannot be swept now stays in the journal, for the next command.
    if steps
        .take("sweep")
        .and_then(|()| recover::sweep(&root, &left, &mut Steps::default()))
        .is_ok()
    {
        journal.close()?;
    }
    Ok(steps.taken)
}

/// The phases in their order; `left` says at any time how far they have come.
fn run(root: &Folder, plan: &Plan, left: &mut Left, journal: &mut Journal, steps: &mut Steps) -> Result<()> {
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

/// Fails when a name is taken that is needed for a while: what is removed later must be what this command made.
fn check_companions(root: &Folder, record: &Record) -> Result<()> {
    for entry in &record.entries {
        let Some((folder, name)) = root.reach(&entry.path)? else {
            continue;
        };
        for companion in [Entry::staged(name), Entry::backup(name)] {
            if folder
                .look(&companion)
                .with_context(|| cannot("look at", &companion))?
                .is_some()
            {
                bail!(
                    "`{companion}` beside `{}` is in the way: look at it and remove it",
                    entry.path
                );
            }
        }
    }
    Ok(())
}

/// The folder that a target is in, and its name there.
fn reach<'a>(root: &Folder, path: &'a str) -> Result<(Folder, &'a str)> {
    match root.reach(path)? {
        Some(reached) => Ok(reached),
        None => {
            bail!("the folder of {path} was removed while the command ran; nothing was written: run it again")
        }
    }
}

fn stage(root: &Folder, plan: &Plan, record: &Record, steps: &mut Steps) -> Result<Vec<Inodes>> {
    for path in &record.folders {
        steps.take(path)?;
        let (above, name) = reach(root, path)?;
        above
            .create_folder(name)
            .with_context(|| cannot("create", path))?;
    }
    record
        .entries
        .iter()
        .map(|entry| {
            let change = &plan.changes()[&entry.path];
            let (folder, name) = reach(root, &entry.path)?;
            let there = folder
                .look(name)
                .with_context(|| cannot("look at", &entry.path))?;
            let mode = match change {
                // New files are for everyone to read, whatever the umask says.
                Change::Create { .. } => 0o644,
                _ => there.map_or(0o644, |status| status.mode),
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

fn rename(root: &Folder, record: &Record, steps: &mut Steps) -> Result<()> {
    for entry in &record.entries {
        steps.take(&entry.path)?;
        let (folder, name) = reach(root, &entry.path)?;
        let told = || cannot("write", &entry.path);
        if let Some(before) = &entry.before {
            check_target(&folder, name, before, &entry.path)?;
        }
        match entry.action {
            Action::Create => match folder.rename_to_free_name(&Entry::staged(name), name) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => bail!(changed(&entry.path)),
                done => done.with_context(told)?,
            },
            Action::Write => folder.rename(&Entry::staged(name), name).with_context(told)?,
            Action::Delete => folder
                .rename_to_free_name(name, &Entry::backup(name))
                .with_context(told)?,
        }
    }
    steps.take("folders")?;
    recover::sync_folders(root, record)
}

/// Fails when a target is not the file any more that the plan was made for.
fn check_target(folder: &Folder, name: &str, before: &Content, path: &str) -> Result<()> {
    let file = folder
        .open_file(name, false)
        .with_context(|| cannot("open", path))?;
    let bytes = read_bounded(file, LARGEST).with_context(|| cannot("read", path))?;
    match bytes {
        Some(bytes) if Content::of(&bytes) == *before => Ok(()),
        _ => bail!(changed(path)),
    }
}

fn changed(path: &str) -> String {
    Changed::new(path).to_string()
}

/// Counts what happens to the disk.
#[derive(Default)]
pub(super) struct Steps {
    faults: Faults,
    taken: usize,
}

impl Steps {
    pub(super) fn take(&mut self, what: &str) -> Result<()> {
        let step = self.taken;
        self.taken += 1;
        if self.faults.at == Some(step) {
            if self.faults.abort {
                std::process::abort();
            }
            bail!("step {step} ({what}) was made to fail");
        }
        Ok(())
    }

    /// A step at which a process can die, but nothing can fail.
    pub(super) fn pass(&mut self) {
        if self.faults.abort && self.faults.at == Some(self.taken) {
            std::process::abort();
        }
        self.taken += 1;
    }
}

/// Writes a file that is not there yet; returns its inode.
fn write_synced(folder: &Folder, name: &str, bytes: &[u8], mode: u32) -> Result<u64> {
    let told = || cannot("write", name);
    let mut file = folder.create_file(name).with_context(told)?;
    file.write_all(bytes).with_context(told)?;
    set_mode(&file, mode).with_context(told)?;
    file.sync_all().with_context(told)?;
    Ok(status_of(&file).with_context(told)?.inode)
}

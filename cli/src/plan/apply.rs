//! Writes a plan: the only module that changes the project folder.
//!
//! A set of files cannot be replaced in one step, so a journal makes it look like one. It names every file that
//! will exist for a while before the first of them does, and grows by one word as each phase ends. Whoever finds
//! a journal without its owner undoes what it names, or finishes it once every file was renamed:
//!
//! 1. the journal is written;
//! 2. new texts are staged beside their targets, and old ones copied: the journal says `staged`;
//! 3. staged files are renamed over their targets, PROJECT last: the journal says `renamed`;
//! 4. copies and journal are removed.
//!
//! Undoing touches a target only while it holds what was staged for it: what somebody wrote there since is theirs.

#![allow(clippy::disallowed_methods)] // this is the module that writes

use std::fs::{File, Permissions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::{Change, Plan};
use crate::hash::fnv1a_64;
use crate::tree::Tree;

/// Name of the journal, in the project folder.
pub const JOURNAL: &str = ".rbuilder-journal";

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
/// When a file that the plan rests on has changed, when another command is at work in the folder, or when a
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

/// Finishes or undoes what a command that was killed has left. Returns whether there was anything.
///
/// # Errors
/// When another command is at work in the folder, or a file cannot be moved back.
pub fn recover(root: &Path) -> Result<bool> {
    if !root.join(JOURNAL).exists() {
        return Ok(false);
    }
    // Opening the journal settles what it names.
    let journal = Journal::open(root)?;
    let settled = journal.settled;
    journal.close()?;
    Ok(settled)
}

fn write(tree: &Tree, plan: &Plan, faults: Faults) -> Result<usize> {
    let root = tree.root();
    let mut steps = Steps { faults, taken: 0 };
    let mut journal = Journal::open(root)?;
    let record = Record::new(root, plan);
    let written = tree.verify_unchanged().and_then(|()| {
        journal.begin(&record, &mut steps)?;
        stage(root, plan, &record, &mut steps)?;
        journal.note("staged", &mut steps)?;
        rename(root, &record, &mut steps)?;
        journal.note("renamed", &mut steps)
    });
    if let Err(error) = written {
        record
            .undo(root, journal.staged)
            .context("cannot undo what was written; run any command to try again")?;
        journal.close()?;
        return Err(error);
    }
    // From here on the new tree stands. What cannot be swept now stays in the journal, for the next command.
    if steps.take("sweep").and_then(|()| record.sweep(root)).is_ok() {
        journal.close()?;
    }
    Ok(steps.taken)
}

fn stage(root: &Path, plan: &Plan, record: &Record, steps: &mut Steps) -> Result<()> {
    for folder in &record.folders {
        steps.take(folder)?;
        fs::create_dir(root.join(folder))?;
    }
    for entry in &record.entries {
        let change = &plan.changes()[&entry.path];
        let target = root.join(&entry.path);
        if let Some(after) = change.after() {
            steps.take(&entry.path)?;
            let mode = match change {
                Change::Create { .. } => default_mode(),
                _ => Some(fs::metadata(&target)?.permissions()),
            };
            write_synced(&root.join(&entry.staged), after.as_bytes(), mode)?;
        }
        if entry.action == Action::Write {
            steps.take(&entry.path)?;
            let mode = fs::metadata(&target)?.permissions();
            write_synced(&root.join(&entry.backup), change.before().as_bytes(), Some(mode))?;
        }
    }
    Ok(())
}

fn rename(root: &Path, record: &Record, steps: &mut Steps) -> Result<()> {
    for entry in &record.entries {
        steps.take(&entry.path)?;
        let target = root.join(&entry.path);
        match entry.action {
            Action::Create | Action::Write => fs::rename(root.join(&entry.staged), target)?,
            Action::Delete => fs::rename(target, root.join(&entry.backup))?,
        }
    }
    steps.take("folders")?;
    sync_folders(root, record)
}

/// What the journal says: enough to undo or to finish without the plan.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// Folders that did not exist, outer ones first.
    folders: Vec<String>,
    entries: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    path: String,
    action: Action,
    staged: String,
    backup: String,
    /// Of the new text.
    hash: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Create,
    Write,
    Delete,
}

impl Record {
    fn new(root: &Path, plan: &Plan) -> Record {
        let mut folders = Vec::new();
        let mut entries: Vec<Entry> = Vec::new();
        for (path, change) in plan.changes() {
            for (end, _) in path.match_indices('/') {
                let folder = path[..end].to_owned();
                if !root.join(&folder).exists() && !folders.contains(&folder) {
                    folders.push(folder);
                }
            }
            let action = match change {
                Change::Create { .. } => Action::Create,
                Change::Edit { .. } | Change::Replace { .. } => Action::Write,
                Change::Delete { .. } => Action::Delete,
            };
            entries.push(Entry {
                path: path.clone(),
                action,
                staged: beside(path, "new"),
                backup: beside(path, "old"),
                hash: fnv1a_64(change.after().unwrap_or_default().as_bytes()),
            });
        }
        // PROJECT says what the rest is: it must never speak of files that are not there.
        entries.sort_by_key(|entry| entry.path == crate::project::FILE);
        Record { folders, entries }
    }

    /// Puts the old tree back.
    fn undo(&self, root: &Path, staged: bool) -> Result<()> {
        for entry in &self.entries {
            let (target, new, old) = (
                root.join(&entry.path),
                root.join(&entry.staged),
                root.join(&entry.backup),
            );
            if staged && !new.exists() {
                let ours = || Ok::<_, anyhow::Error>(fnv1a_64(&fs::read(&target)?) == entry.hash);
                match entry.action {
                    Action::Create if target.exists() && ours()? => fs::remove_file(&target)?,
                    Action::Write if old.exists() && target.exists() && ours()? => fs::rename(&old, &target)?,
                    Action::Delete if old.exists() && !target.exists() => fs::rename(&old, &target)?,
                    _ => {}
                }
            }
            remove_if_there(&new)?;
            remove_if_there(&old)?;
        }
        for folder in self.folders.iter().rev() {
            // A folder that somebody has put something into stays.
            match fs::remove_dir(root.join(folder)) {
                Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => {
                    return Err(error.into());
                }
                _ => {}
            }
        }
        sync_folders(root, self)
    }

    /// Removes what only undoing would need.
    fn sweep(&self, root: &Path) -> Result<()> {
        for entry in &self.entries {
            remove_if_there(&root.join(&entry.staged))?;
            remove_if_there(&root.join(&entry.backup))?;
        }
        Ok(())
    }
}

/// The journal's file, locked as long as this command is at work.
struct Journal {
    path: PathBuf,
    file: File,
    staged: bool,
    /// Whether another command had left something in it.
    settled: bool,
}

impl Journal {
    /// Takes the journal, and settles what another command left in it.
    fn open(root: &Path) -> Result<Journal> {
        let path = root.join(JOURNAL);
        let mut journal = loop {
            let file = fs::OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)?;
            let (file, _) = file.into_parts();
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    bail!(
                        "another rbuilder command is at work in {}: try again when it is done",
                        root.display()
                    )
                }
                Err(TryLockError::Error(error)) => return Err(error).context("cannot lock the journal"),
            }
            // The command that had the lock before may have removed the file that we opened.
            if is_at(&file, &path) {
                break Journal {
                    path,
                    file,
                    staged: false,
                    settled: false,
                };
            }
        };
        let mut text = String::new();
        journal
            .file
            .read_to_string(&mut text)
            .context("cannot read the journal")?;
        journal.settle(root, &text)?;
        Ok(journal)
    }

    fn settle(&mut self, root: &Path, text: &str) -> Result<()> {
        let mut lines = text.lines();
        // A first line that is cut short was never followed by a change.
        if let Some(Ok(record)) = lines.next().map(serde_json::from_str::<Record>) {
            self.settled = true;
            let phases: Vec<&str> = lines.collect();
            if phases.contains(&"renamed") {
                record.sweep(root)?;
            } else {
                record.undo(root, phases.contains(&"staged"))?;
            }
        }
        self.file.set_len(0).context("cannot write the journal")?;
        self.file
            .seek(SeekFrom::Start(0))
            .context("cannot write the journal")?;
        Ok(())
    }

    fn begin(&mut self, record: &Record, steps: &mut Steps) -> Result<()> {
        let line = serde_json::to_string(record)?;
        self.note(&line, steps)
    }

    fn note(&mut self, line: &str, steps: &mut Steps) -> Result<()> {
        steps.take("journal")?;
        let length = self.file.metadata().context("cannot read the journal")?.len();
        if let Err(error) = writeln!(self.file, "{line}").and_then(|()| self.file.sync_all()) {
            // A phase that is not known to be on disk has not ended; undoing must not find its word.
            self.file.set_len(length).context("cannot write the journal")?;
            return Err(error).context("cannot write the journal");
        }
        self.staged |= line == "staged";
        steps.pass();
        Ok(())
    }

    /// Removes the journal; the lock goes with it.
    fn close(self) -> Result<()> {
        Ok(fs::remove_file(&self.path)?)
    }
}

/// Counts what happens to the disk.
struct Steps {
    faults: Faults,
    taken: usize,
}

impl Steps {
    fn take(&mut self, what: &str) -> Result<()> {
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
}

impl Steps {
    /// A step at which a process can die, but nothing can fail.
    fn pass(&mut self) {
        if self.faults.abort && self.faults.at == Some(self.taken) {
            std::process::abort();
        }
        self.taken += 1;
    }
}

/// A hidden file in the same folder, so that a rename never crosses file systems.
fn beside(path: &str, end: &str) -> String {
    let (folder, name) = path
        .rsplit_once('/')
        .map_or(("", path), |(folder, name)| (folder, name));
    let slash = if folder.is_empty() { "" } else { "/" };
    format!("{folder}{slash}.{name}.rbuilder-{end}")
}

fn write_synced(path: &Path, bytes: &[u8], mode: Option<Permissions>) -> Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    if let Some(mode) = mode {
        file.set_permissions(mode)?;
    }
    Ok(file.sync_all()?)
}

/// New files are for everyone to read, whatever the umask says.
fn default_mode() -> Option<Permissions> {
    #[cfg(unix)]
    return Some(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    #[cfg(not(unix))]
    None
}

/// Names survive a power cut once their folder is on disk.
fn sync_folders(root: &Path, record: &Record) -> Result<()> {
    let folders: std::collections::BTreeSet<&Path> = record
        .entries
        .iter()
        .filter_map(|entry| Path::new(&entry.path).parent())
        .collect();
    for folder in folders {
        match fs::File::open(root.join(folder)) {
            Ok(folder) => folder.sync_all()?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn remove_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(there)) => open.dev() == there.dev() && open.ino() == there.ino(),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

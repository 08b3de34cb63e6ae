//! Modifies the directory of installed versions, e.g. `k8s/1.35.2-linux-amd64`.
//!
//! While holding a lock, a version is assembled in a hidden sibling directory and then renamed.
//! Killed commands never leave anything that counts as installed, and the next command removes
//! leftovers.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::{Installed, Release, Store};
use anyhow::{Context, Result};

/// The store in the given directory, or the user's store by default.
///
/// # Errors
///
/// Returns an error if the environment doesn't tell where the user's files are.
pub fn locate(folder: Option<PathBuf>) -> Result<Store> {
    match folder {
        Some(folder) => Ok(Store::within(&folder)),
        None => Store::of_user().context("no directory for downloads: set `HOME`, or pass `--bin-dir`"),
    }
}

/// Installed releases, newest first.
///
/// # Errors
///
/// Returns an error if the store can't be read.
pub fn read_installed(store: &Store) -> Result<Vec<Installed>> {
    store.installed().with_context(|| cannot("read", store))
}

/// Locks the store against other rbuilder commands. Calls `waiting` if the lock is held by another
/// command.
///
/// # Errors
///
/// Returns an error if the store can't be created.
pub fn lock<'a>(store: &'a Store, waiting: &mut dyn FnMut(&str)) -> Result<LockedStore<'a>> {
    fs::create_dir_all(store.folder()).with_context(|| cannot("create", store))?;
    let file = open_lock(store.folder()).with_context(|| cannot("lock", store))?;
    if file.try_lock().is_err() {
        waiting(&format!(
            "waiting for another command in {}",
            store.folder().display()
        ));
        file.lock().with_context(|| cannot("lock", store))?;
    }
    let locked = LockedStore { store, _lock: file };
    locked.remove_leftovers()?;
    Ok(locked)
}

fn cannot(verb: &str, store: &Store) -> String {
    format!("cannot {verb} {}", store.folder().display())
}

/// Locks the directory itself, to avoid leaving a lock file behind.
#[cfg(unix)]
fn open_lock(folder: &Path) -> std::io::Result<File> {
    File::open(folder)
}

#[cfg(not(unix))]
fn open_lock(folder: &Path) -> std::io::Result<File> {
    let file = folder.join(".rbuilder.lock");
    File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(file)
}

const LEFTOVER: &str = ".rbuilder-";

/// The store, locked against other rbuilder commands.
#[derive(Debug)]
pub struct LockedStore<'a> {
    store: &'a Store,
    _lock: File,
}

impl LockedStore<'_> {
    /// Creates a directory for assembling a release.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory can't be created.
    pub fn stage(&self, release: &Release) -> Result<PathBuf> {
        let folder = self.hidden("partial", release);
        fs::create_dir(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(folder)
    }

    /// Installs an assembled directory as a release, replacing an existing installation.
    ///
    /// # Errors
    ///
    /// Returns an error if renaming fails. The old installation may already be gone then.
    pub fn install(&self, stage: &Path, release: &Release) -> Result<()> {
        // Remove the old directory first, since non-empty directories can't be replaced by a
        // rename.
        self.remove(release)?;
        let folder = self.store.path(release);
        fs::rename(stage, &folder).with_context(|| format!("cannot create {}", folder.display()))?;
        // `setup-envtest` also makes the directory read-only. Ignore failures, as the files are
        // already in place.
        let _ = set_writable(&folder, false);
        Ok(())
    }

    /// Removes a release if it exists. Never leaves a partial release under its name, even if
    /// interrupted.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory can't be renamed or removed.
    pub fn remove(&self, release: &Release) -> Result<()> {
        let folder = self.store.path(release);
        if !is_directory(&folder) {
            return Ok(());
        }
        let hidden = self.hidden("removed", release);
        // The directory is read-only, so make it writable first. Then rename it before deleting
        // anything, so that an interrupted command never leaves half a release under its name.
        set_writable(&folder, true)
            .and_then(|()| fs::rename(&folder, &hidden))
            .and_then(|()| fs::remove_dir_all(&hidden))
            .with_context(|| format!("cannot remove {}", folder.display()))
    }

    /// Removes the leftovers of interrupted commands.
    ///
    /// # Errors
    ///
    /// Returns an error if the store can't be read, or if a directory can't be removed.
    pub fn remove_leftovers(&self) -> Result<()> {
        let entries = fs::read_dir(self.store.folder()).with_context(|| cannot("read", self.store))?;
        for entry in entries {
            let path = entry.with_context(|| cannot("read", self.store))?.path();
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            let is_leftover = ["partial-", "removed-"].iter().any(|sort| {
                name.strip_prefix(LEFTOVER)
                    .is_some_and(|rest| rest.starts_with(sort))
            });
            if is_leftover && is_directory(&path) {
                fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
            }
        }
        Ok(())
    }

    fn hidden(&self, sort: &str, release: &Release) -> PathBuf {
        self.store
            .folder()
            .join(format!("{LEFTOVER}{sort}-{}", release.directory()))
    }
}

/// False for symbolic links to directories.
fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
}

#[cfg(unix)]
fn set_writable(folder: &Path, is_writable: bool) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = if is_writable { 0o755 } else { 0o555 };
    fs::set_permissions(folder, fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_writable(_folder: &Path, _is_writable: bool) -> std::io::Result<()> {
    Ok(())
}

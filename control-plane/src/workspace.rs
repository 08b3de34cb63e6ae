//! The folder of one control plane, and what it starts.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Error;
use crate::watchdog::{self, Watchdog};

/// A temporary folder and the processes that belong to it. On Unix, a watchdog sees to it that neither outlives this
/// process.
#[derive(Debug)]
pub struct Workspace {
    // Dropped before the folder, which the watchdog would otherwise remove.
    watchdog: Watchdog,
    folder: TempDir,
}

impl Workspace {
    /// Removes what dead processes left behind, then creates a folder and starts its watchdog.
    ///
    /// # Errors
    /// When the folder cannot be written, or no shell can be started.
    pub fn create() -> Result<Self, Error> {
        let parent = std::env::temp_dir();
        watchdog::sweep(&parent);
        let folder = tempfile::Builder::new()
            .prefix(watchdog::PREFIX)
            .tempdir_in(&parent);
        let folder = folder.map_err(|err| Error::file("cannot create a folder in", &parent, err))?;
        let watchdog = Watchdog::start(folder.path())?;
        Ok(Self { watchdog, folder })
    }

    /// Returns the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file into the folder, which only its owner can read: some files are private keys.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.path().join(name);
        fs::write(&path, text).map_err(|err| Error::file("cannot write", &path, err))?;
        Ok(path)
    }

    /// Registers a process: from now on it dies with this one.
    pub(crate) fn watch(&self, id: u32) -> Result<(), Error> {
        self.watchdog.watch(id)
    }

    /// Removes a process that has ended from the watchdog's list, since its id may be reused.
    pub(crate) fn forget(&self, id: u32) {
        self.watchdog.forget(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_leaves_nothing() {
        let workspace = Workspace::create().unwrap();
        let folder = workspace.path().to_owned();
        assert!(folder.is_dir());
        drop(workspace);
        assert!(!folder.exists());
    }
}

//! Directories by path, for platforms without `openat`. Each component is checked before use, which
//! leaves a short window in which it can be replaced.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::{Given, Sort, Status};

/// A directory.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Opens a directory by path. Symlinks are followed, because the user chose the path.
    pub(crate) fn open(path: &Path) -> io::Result<Folder> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        Ok(Folder(fs::canonicalize(path)?))
    }

    pub(crate) fn folder(&self, name: &str) -> io::Result<Folder> {
        // Windows doesn't support `..` in a canonical path.
        if name == ".." {
            return self.above();
        }
        match self.look(name)? {
            Some(status) if status.sort == Sort::Folder => Ok(Folder(self.0.join(name))),
            Some(_) => Err(ErrorKind::NotADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    fn above(&self) -> io::Result<Folder> {
        let above = self.0.parent().ok_or(ErrorKind::NotFound)?;
        Ok(Folder(above.to_owned()))
    }

    pub(crate) fn status(&self) -> io::Result<Status> {
        Ok(status(&fs::metadata(&self.0)?))
    }

    pub(crate) fn look(&self, name: &str) -> io::Result<Option<Status>> {
        if name == ".." {
            return self.above()?.status().map(Some);
        }
        match fs::symlink_metadata(self.0.join(name)) {
            Ok(found) => Ok(Some(status(&found))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn open_file(&self, name: &str, to_write: bool) -> io::Result<File> {
        match self.look(name)? {
            Some(status) if status.sort == Sort::File => {}
            Some(_) => return Err(ErrorKind::InvalidInput.into()),
            None => return Err(ErrorKind::NotFound.into()),
        }
        OpenOptions::new()
            .read(true)
            .write(to_write)
            .open(self.0.join(name))
    }

    pub(crate) fn create_file(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create_new(true)
            .open(self.0.join(name))
    }

    pub(crate) fn create_folder(&self, name: &str) -> io::Result<()> {
        fs::create_dir(self.0.join(name))
    }

    pub(crate) fn remove_file(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    pub(crate) fn remove_folder(&self, name: &str) -> io::Result<()> {
        fs::remove_dir(self.0.join(name))
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.0.join(from), self.0.join(to))
    }

    pub(crate) fn rename_to_free_name(&self, from: &str, to: &str) -> io::Result<()> {
        if self.look(to)?.is_some() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        self.rename(from, to)
    }

    /// No-op: there is no call to sync a directory here.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    pub(crate) fn names(&self) -> io::Result<Vec<(OsString, Sort)>> {
        fs::read_dir(&self.0)?
            .map(|entry| {
                let entry = entry?;
                Ok((entry.file_name(), sort(entry.file_type()?)))
            })
            .collect()
    }
}

pub(crate) fn status_of(file: &File) -> io::Result<Status> {
    Ok(status(&file.metadata()?))
}

/// Only sets the read-only flag; there are no other permission bits here.
pub(crate) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    let mut permissions = file.metadata()?.permissions();
    permissions.set_readonly(mode & 0o200 == 0);
    file.set_permissions(permissions)
}

/// Always 0, since there are no user IDs here.
pub(crate) fn effective_user() -> u32 {
    0
}

pub(crate) fn open_given(path: &Path) -> io::Result<Given> {
    let file = File::open(path)?;
    Ok(match status_of(&file)?.sort {
        Sort::File => Given::File(file),
        _ => Given::Other,
    })
}

/// Always `None`, so that the caller checks each component for symlinks.
pub(crate) fn open_without_links(_: &Folder, _: &Path) -> Option<io::Result<File>> {
    None
}

fn status(found: &Metadata) -> Status {
    let changed = found
        .modified()
        .ok()
        .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok())
        .map_or(0, |since| i128::try_from(since.as_nanos()).unwrap_or(0));
    Status {
        sort: sort(found.file_type()),
        length: found.len(),
        // std only exposes these fields on Unix.
        inode: 0,
        device: 0,
        links: 1,
        owner: 0,
        mode: if found.permissions().readonly() {
            0o444
        } else {
            0o644
        },
        changed,
    }
}

fn sort(found: fs::FileType) -> Sort {
    if found.is_symlink() {
        Sort::Link
    } else if found.is_dir() {
        Sort::Folder
    } else if found.is_file() {
        Sort::File
    } else {
        Sort::Other
    }
}

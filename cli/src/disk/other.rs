//! Folders by path, where the system has no `openat` in reach: each name is looked at before it is used. Between the
//! look and the use there is a moment in which somebody can swap the name.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::{Sort, Status};

/// A folder.
#[derive(Clone, Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Opens the folder at a path, whose links are followed: the user typed it.
    pub(crate) fn open(path: &Path) -> io::Result<Folder> {
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        Ok(Folder(fs::canonicalize(path)?))
    }

    /// Opens a folder in this one.
    pub(crate) fn folder(&self, name: &str) -> io::Result<Folder> {
        match self.look(name)? {
            Some(status) if status.sort == Sort::Folder => Ok(Folder(self.0.join(name))),
            Some(_) => Err(ErrorKind::NotADirectory.into()),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    /// The status of this folder.
    pub(crate) fn status(&self) -> io::Result<Status> {
        Ok(status(&fs::metadata(&self.0)?))
    }

    /// The status of a name in this folder, of a link itself; nothing when there is no such name.
    pub(crate) fn look(&self, name: &str) -> io::Result<Option<Status>> {
        match fs::symlink_metadata(self.0.join(name)) {
            Ok(found) => Ok(Some(status(&found))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a file in this folder to read it, and to write it too where that is wanted.
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

    /// Creates a file that is not there yet, to read and write.
    pub(crate) fn create_file(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create_new(true)
            .open(self.0.join(name))
    }

    /// Creates a folder that is not there yet.
    pub(crate) fn create_folder(&self, name: &str) -> io::Result<()> {
        fs::create_dir(self.0.join(name))
    }

    /// Removes a file, or a link itself.
    pub(crate) fn remove_file(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    /// Removes an empty folder.
    pub(crate) fn remove_folder(&self, name: &str) -> io::Result<()> {
        fs::remove_dir(self.0.join(name))
    }

    /// Renames a file over whatever file has the other name.
    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.0.join(from), self.0.join(to))
    }

    /// Renames a file to a name that nothing has yet.
    pub(crate) fn rename_to_free_name(&self, from: &str, to: &str) -> io::Result<()> {
        if self.look(to)?.is_some() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        self.rename(from, to)
    }

    /// Waits until the names in this folder are on disk, where the system has a call for it.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    /// The names in this folder with what they stand for, in no order.
    pub(crate) fn names(&self) -> io::Result<Vec<(OsString, Sort)>> {
        fs::read_dir(&self.0)?
            .map(|entry| {
                let entry = entry?;
                Ok((entry.file_name(), sort(entry.file_type()?)))
            })
            .collect()
    }
}

/// The status of an open file.
pub(crate) fn status_of(file: &File) -> io::Result<Status> {
    Ok(status(&file.metadata()?))
}

/// Files can be made read-only, and no more.
pub(crate) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    let mut permissions = file.metadata()?.permissions();
    permissions.set_readonly(mode & 0o200 == 0);
    file.set_permissions(permissions)
}

/// The user that this process acts for: they are not told apart.
pub(crate) fn user() -> u32 {
    0
}

/// Links have to be looked for.
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

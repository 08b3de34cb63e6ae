//! Directories that stay open, so that a name in them refers to the same file throughout a command.
//!
//! The OS resolves a path again on each call, and between two calls a directory can be replaced
//! with a symlink. Instead, this module walks a path one component at a time, starting at an open
//! directory, and rejects symlinks. Files are read, created, renamed and removed by name in the
//! last directory of the walk. [`crate::tree`] reads through this module and [`crate::plan::apply`]
//! writes through it.

#![allow(clippy::disallowed_methods)] // the modules that read and write use this module

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

use std::fs::File;
use std::io::{self, ErrorKind, Read};

use anyhow::{Context, Result, bail};

#[cfg(not(unix))]
pub use other::Folder;
#[cfg(not(unix))]
pub(crate) use other::{effective_user, open_given, open_without_links, set_mode, status_of};
#[cfg(unix)]
pub use unix::Folder;
#[cfg(unix)]
pub(crate) use unix::{effective_user, open_given, open_without_links, set_mode, status_of};

pub(crate) const LONGEST_NAME: usize = 255;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    File,
    Folder,
    Link,
    /// A pipe, a socket or a device.
    Other,
}

/// An open file that the user named on the command line.
pub(crate) enum Given {
    File(File),
    Pipe(Box<dyn Read>),
    /// A directory, a socket or a device.
    Other,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Status {
    pub(crate) sort: Sort,
    /// In bytes.
    pub(crate) length: u64,
    /// Zero on systems without inodes.
    pub(crate) inode: u64,
    pub(crate) device: u64,
    pub(crate) links: u64,
    pub(crate) owner: u32,
    pub(crate) mode: u32,
    /// Time of the last change to content or status (ctime), in nanoseconds since the epoch.
    pub(crate) changed: i128,
}

impl Status {
    pub(crate) fn is_same_file(&self, other: &Status) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

impl Folder {
    /// Walks to the parent directory of `path`. Returns it with the last component of the path, or
    /// `None` if a parent directory doesn't exist. Fails if a parent is a symlink or not a
    /// directory.
    pub(crate) fn reach<'a>(&self, path: &'a str) -> Result<Option<(Folder, &'a str)>> {
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut folder = self.clone();
        let mut end = 0;
        for part in folders.split('/').filter(|part| !part.is_empty()) {
            end += part.len() + usize::from(end > 0);
            folder = match folder.folder(part) {
                Ok(inner) => inner,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(blocked(&folder, part, &path[..end], error)),
            };
        }
        Ok(Some((folder, name)))
    }

    /// Reads a file in this directory, or returns `None` if it doesn't exist. `shown` is the path
    /// for error messages.
    ///
    /// # Errors
    /// Fails if the file is not regular or is larger than `limit` bytes.
    pub fn read(&self, name: &str, limit: u64, shown: &str) -> Result<Option<Vec<u8>>> {
        let file = match self.look(name).with_context(|| cannot_message("access", shown))? {
            None => return Ok(None),
            Some(status) if status.sort == Sort::Link => bail!(is_link(shown)),
            Some(status) if status.sort != Sort::File => {
                bail!("{shown} is not a regular file: move it away")
            }
            Some(_) => match self.open_file(name, false) {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error).with_context(|| cannot_message("open", shown)),
            },
        };
        let bytes = read_bounded(file, limit).with_context(|| cannot_message("read", shown))?;
        match bytes {
            Some(bytes) => Ok(Some(bytes)),
            None => bail!("{shown} {}", too_large(limit)),
        }
    }
}

/// Reads an open file, or returns `None` if it is larger than `limit` bytes. Rejects anything but a
/// regular file, since reading e.g. a pipe might never finish.
pub(crate) fn read_bounded(file: File, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let status = status_of(&file)?;
    if status.sort != Sort::File || status.length > limit {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(status.length).unwrap_or(0) + 1);
    // The length isn't reliable: a file can grow while we read it, and files in /proc report 0.
    file.take(limit + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

pub(crate) fn too_large(limit: u64) -> String {
    format!("is larger than the limit of {} MiB", limit >> 20)
}

pub(crate) fn is_link(shown: &str) -> String {
    format!("{shown} is a symbolic link, which rbuilder does not write through: replace it with its target")
}

pub(crate) fn cannot_message(verb: &str, shown: &str) -> String {
    format!("cannot {verb} {shown}")
}

/// Explains why a path cannot be walked. The OS error is unclear if a component is a symlink or a
/// file.
fn blocked(folder: &Folder, name: &str, shown: &str, error: io::Error) -> anyhow::Error {
    match folder.look(name) {
        Ok(Some(status)) if status.sort == Sort::Link => anyhow::anyhow!(is_link(shown)),
        Ok(Some(status)) if status.sort != Sort::Folder => {
            anyhow::anyhow!("{shown} is not a directory: move the file away")
        }
        _ => anyhow::Error::new(error).context(cannot_message("open", shown)),
    }
}

pub(crate) fn check_length(path: &str) -> Result<()> {
    match path.split('/').find(|part| part.len() > LONGEST_NAME) {
        None => Ok(()),
        // The OS error wouldn't say which component is too long.
        Some(part) => {
            let start: String = part.chars().take(40).collect();
            bail!(
                "file name `{start}…` is too long: it has {} bytes, the maximum is {LONGEST_NAME}",
                part.len()
            )
        }
    }
}

//! Folders held open, so that a name in them means the same file from the first look to the last.
//!
//! A path is a question that is answered anew at each call: between two calls a folder on it can become a link to
//! somewhere else. Here a path within the project is walked one name at a time from a folder that is open, no name
//! may be a link, and what is read, created, renamed or removed is a name in the folder that the walk ended in.
//! [`crate::tree`] reads through this module and [`crate::plan::apply`] writes through it.

#![allow(clippy::disallowed_methods)] // the modules that read and that write go through this one

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

use std::fs::File;
use std::io::{self, ErrorKind, Read};

use anyhow::{Context, Result, bail};

#[cfg(not(unix))]
pub(crate) use other::{Folder, open_without_links, set_mode, status_of, user};
#[cfg(unix)]
pub(crate) use unix::{Folder, open_without_links, set_mode, status_of, user};

/// The longest name of a file, in bytes, that common file systems take.
pub(crate) const LONGEST_NAME: usize = 255;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A pipe, a socket, a device.
    Other,
}

/// What the file system says about a file or a folder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status {
    pub(crate) sort: Sort,
    /// In bytes.
    pub(crate) length: u64,
    /// The number of the file in its file system; 0 where there is none.
    pub(crate) inode: u64,
    /// The file system.
    pub(crate) device: u64,
    /// How many names the file has.
    pub(crate) links: u64,
    /// The user that the file belongs to.
    pub(crate) owner: u32,
    /// The permission bits.
    pub(crate) mode: u32,
    /// When content or status were changed last, in nanoseconds since 1970.
    pub(crate) changed: i128,
}

impl Status {
    /// Whether two looks saw the same file.
    pub(crate) fn is_same_file(&self, other: &Status) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

impl Folder {
    /// The folder that a path's last name is in, and that name; nothing when a folder on the way is missing.
    ///
    /// # Errors
    /// When something on the way is a link or no folder.
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

    /// The bytes of a file in this folder; nothing when there is no such file.
    ///
    /// # Errors
    /// When the name stands for something else than a file of at most `limit` bytes. `shown` names the file.
    pub(crate) fn read(&self, name: &str, limit: u64, shown: &str) -> Result<Option<Vec<u8>>> {
        let file = match self.look(name).with_context(|| cannot("look at", shown))? {
            None => return Ok(None),
            Some(status) if status.sort == Sort::Link => bail!(is_link(shown)),
            Some(status) if status.sort != Sort::File => bail!("{shown} is not a file: move it away"),
            Some(_) => match self.open_file(name, false) {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error).with_context(|| cannot("open", shown)),
            },
        };
        let bytes = read_bounded(file, limit).with_context(|| cannot("read", shown))?;
        match bytes {
            Some(bytes) => Ok(Some(bytes)),
            None => bail!("{shown} {}", too_large(limit)),
        }
    }
}

/// All bytes of an open file; nothing when there are more than `limit` or it is no regular file, which need not end.
///
/// # Errors
/// As reading does.
pub(crate) fn read_bounded(file: File, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let status = status_of(&file)?;
    if status.sort != Sort::File || status.length > limit {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(status.length).unwrap_or(0) + 1);
    // A file can grow while it is read, and those below /proc say that they are empty.
    file.take(limit + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= limit).then_some(bytes))
}

/// The predicate of a sentence about a file.
pub(crate) fn too_large(limit: u64) -> String {
    format!("is larger than {} MiB, the most that rbuilder reads", limit >> 20)
}

pub(crate) fn is_link(shown: &str) -> String {
    format!(
        "{shown} is a symbolic link, and rbuilder does not follow links it might write through: replace it with what it points to"
    )
}

/// Context of an error of the system.
pub(crate) fn cannot(verb: &str, shown: &str) -> String {
    format!("cannot {verb} {shown}")
}

/// Says what is in the way of a walk.
fn blocked(folder: &Folder, name: &str, shown: &str, error: io::Error) -> anyhow::Error {
    match folder.look(name) {
        Ok(Some(status)) if status.sort == Sort::Link => anyhow::anyhow!(is_link(shown)),
        Ok(Some(status)) if status.sort != Sort::Folder => {
            anyhow::anyhow!("{shown} cannot be a folder: a file has its name")
        }
        _ => anyhow::Error::new(error).context(cannot("open", shown)),
    }
}

/// Refuses a path with a name that no file system takes, before the system does in its own words.
///
/// # Errors
/// Names the part that is too long.
pub(crate) fn check_length(path: &str) -> Result<()> {
    match path.split('/').find(|part| part.len() > LONGEST_NAME) {
        None => Ok(()),
        Some(part) => {
            let start: String = part.chars().take(40).collect();
            bail!(
                "`{start}…` cannot be the name of a file: it has {} bytes, and file systems take at most {LONGEST_NAME}: choose shorter names",
                part.len()
            )
        }
    }
}

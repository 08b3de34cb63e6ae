//! Limits on which files are read as source.
//!
//! Diagnostics quote source lines, so a repository must not be able to pass off `/etc/shadow` as
//! Rust through a symlink, a `#[path]`, an `include!` or the `path` of a target. A file is only
//! read if its canonical path is
//!
//! - in the project directory or its repository (the nearest parent directory with `.git`, `.jj` or
//!   `.hg`, except the user's home directory and the root of the file system); or
//! - in the directory of a package or workspace whose `Cargo.toml` was read. A `Cargo.toml` is read
//!   anywhere, because path dependencies can be anywhere, and a file with this name contains no
//!   secrets.
//!
//! Only regular files of up to [`LARGEST`] bytes are read, up to [`MOST`] bytes in total. At most
//! [`MOST_LISTED`] names are listed.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::disk::{Folder, Sort, open_without_links, read_bounded, status_of, too_large};
use crate::tree::{LARGEST, without_verbatim_prefix};

/// Maximum total size of source in bytes.
const MOST: u64 = 1 << 30;

/// Maximum number of files and directories to list. Symlinks can make a few directories look like
/// many, so a directory behind a symlink counts as [`LINK`] names.
const MOST_LISTED: u64 = 200_000;

const LINK: u64 = 100;

const MANIFEST: &str = "Cargo.toml";

#[derive(Debug)]
pub(super) struct Area {
    root: PathBuf,
    /// The open project directory and its canonical path, or `None` if it does not exist.
    project: OnceLock<Option<(Folder, PathBuf)>>,
    /// Allowed directories, by canonical path.
    allowed: Mutex<Vec<PathBuf>>,
    bytes: AtomicU64,
    listed: AtomicU64,
}

impl Area {
    pub(super) fn new(root: PathBuf) -> Area {
        Area {
            root,
            project: OnceLock::new(),
            allowed: Mutex::default(),
            bytes: AtomicU64::new(0),
            listed: AtomicU64::new(0),
        }
    }

    pub(super) fn count_anew(&self) {
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Reads a file. Returns `None` if it does not exist or isn't a regular file. The error is a
    /// phrase that explains why an existing file is not read.
    pub(super) fn read(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        let Some((folder, project)) = self.project() else {
            return Ok(None);
        };
        let (file, real) = match open_without_links(folder, Path::new(path)) {
            Some(Ok(file)) => (file, plain(&project.join(path))),
            Some(Err(error)) => return absent_or(&error),
            None => {
                let real = match std::fs::canonicalize(self.root.join(path)) {
                    Ok(real) => real,
                    Err(error) => return absent_or(&error),
                };
                self.check_place(&real)?;
                match open_plainly(&real) {
                    Ok(Some(file)) => (file, real),
                    Ok(None) => return Ok(None),
                    Err(error) => return absent_or(&error),
                }
            }
        };
        // Reading a pipe could block, and a device may be endless.
        let status = status_of(&file).map_err(|error| describe_io_error(&error))?;
        if status.sort != Sort::File {
            return Ok(None);
        }
        self.check_place(&real)?;
        if self.bytes.fetch_add(status.length, Ordering::Relaxed) > MOST {
            return Err(format!("the source exceeds the limit of {} MiB", MOST >> 20));
        }
        let bytes = read_bounded(file, LARGEST).map_err(|error| describe_io_error(&error))?;
        let bytes = bytes.ok_or_else(|| format!("it {}", too_large(LARGEST)))?;
        if real.file_name().is_some_and(|name| name == MANIFEST)
            && let Some(package) = real.parent()
        {
            self.allow(package.to_owned());
        }
        Ok(Some(bytes))
    }

    pub(super) fn admits_folder(&self, path: &Path) -> bool {
        std::fs::canonicalize(path).is_ok_and(|real| self.admits(&real))
    }

    /// Counts a listed name. Fails if there are more than [`MOST_LISTED`].
    pub(super) fn count(&self, is_link: bool) -> Result<(), String> {
        let weight = if is_link { LINK } else { 1 };
        if self.listed.fetch_add(weight, Ordering::Relaxed) >= MOST_LISTED {
            return Err(format!(
                "found more than {MOST_LISTED} files and directories: check for links that repeat them"
            ));
        }
        Ok(())
    }

    fn check_place(&self, real: &Path) -> Result<(), String> {
        if real.file_name().is_some_and(|name| name == MANIFEST) || self.admits(real) {
            return Ok(());
        }
        Err(format!(
            "it resolves to `{}`, which is neither in this repository nor in a package that a manifest refers to",
            without_verbatim_prefix(&real.display().to_string())
        ))
    }

    fn admits(&self, real: &Path) -> bool {
        let Some((_, project)) = self.project() else {
            return false;
        };
        real.starts_with(project) || self.allowed().iter().any(|folder| real.starts_with(folder))
    }

    fn allow(&self, folder: PathBuf) {
        let mut allowed = self.allowed();
        if !allowed.contains(&folder) {
            allowed.push(folder);
        }
    }

    fn allowed(&self) -> std::sync::MutexGuard<'_, Vec<PathBuf>> {
        self.allowed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn project(&self) -> Option<&(Folder, PathBuf)> {
        let project = self.project.get_or_init(|| {
            let folder = Folder::open(&self.root).ok()?;
            let real = std::fs::canonicalize(&self.root).ok()?;
            if let Some(repository) = find_repository(&real) {
                self.allow(repository);
            }
            Some((folder, real))
        });
        project.as_ref()
    }
}

/// Finds the repository that contains a directory. Both paths are canonical.
pub fn find_repository(folder: &Path) -> Option<PathBuf> {
    let top = folder
        .ancestors()
        .find(|top| [".git", ".jj", ".hg"].iter().any(|name| top.join(name).exists()))?;
    let is_home =
        std::env::home_dir().is_some_and(|home| std::fs::canonicalize(home).is_ok_and(|home| home == top));
    (!is_home && top.parent().is_some()).then(|| top.to_owned())
}

fn open_plainly(real: &Path) -> std::io::Result<Option<std::fs::File>> {
    let (Some(above), Some(name)) = (real.parent(), real.file_name().and_then(|name| name.to_str())) else {
        return Ok(None);
    };
    let folder = Folder::open(above)?;
    match folder.look(name)? {
        Some(status) if status.sort == Sort::File => folder.open_file(name, false).map(Some),
        _ => Ok(None),
    }
}

fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

fn absent_or<T>(error: &std::io::Error) -> Result<Option<T>, String> {
    if is_absent(error) {
        Ok(None)
    } else {
        Err(describe_io_error(error))
    }
}

/// Whether an error means that the file does not exist. A file with an overlong name can't.
pub(super) fn is_absent(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename
    )
}

/// Describes an error without the path, which the diagnostic already shows.
pub(super) fn describe_io_error(error: &std::io::Error) -> String {
    error.kind().to_string()
}

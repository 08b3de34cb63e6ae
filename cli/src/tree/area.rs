//! Which files may be read as source, and how much of them.
//!
//! Source text is shown: a complaint about a file quotes its line. So a repository must not decide that `/etc/shadow`
//! is Rust, by a link, a `#[path]`, an `include!` or a target's `path`. A file is read only where it really lies, all
//! links resolved,
//!
//! - in the project folder, or in the repository around it (the nearest folder above with `.git`, `.jj` or `.hg`,
//!   unless that is the user's home or the root of the file system); or
//! - in the folder of a package or workspace whose `Cargo.toml` was read. Those are read wherever a manifest, or a link,
//!   leads: a path dependency may be anywhere, and a file that is really called `Cargo.toml` holds no secrets.
//!
//! Only regular files are read, of at most [`LARGEST`] bytes, and [`MOST`] bytes and [`MOST_LISTED`] names in all.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::disk::{Folder, Sort, open_without_links, read_bounded, status_of, too_large};
use crate::tree::LARGEST;

/// All that a run reads as source, in bytes.
const MOST: u64 = 1 << 30;

/// All names of files and folders that a run lists. Links can make few folders look like many, so a folder that is
/// reached through one counts as [`LINK`] names.
const MOST_LISTED: u64 = 200_000;

const LINK: u64 = 100;

const MANIFEST: &str = "Cargo.toml";

/// Where source may lie.
#[derive(Debug)]
pub(super) struct Area {
    root: PathBuf,
    /// The open project folder and its path without links; nothing when there is no such folder.
    project: OnceLock<Option<(Folder, PathBuf)>>,
    /// Folders without links in their paths.
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

    /// Begins to count bytes from none again.
    pub(super) fn count_anew(&self) {
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// The bytes of a file; nothing when there is no such file, or when it is not a regular one.
    ///
    /// # Errors
    /// The reason, a phrase, why a file that is there is not read.
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
        // A pipe would keep the command waiting, and a device need not end.
        let status = status_of(&file).map_err(|error| reason(&error))?;
        if status.sort != Sort::File {
            return Ok(None);
        }
        self.check_place(&real)?;
        if self.bytes.fetch_add(status.length, Ordering::Relaxed) > MOST {
            return Err(format!(
                "rbuilder reads {} MiB of source at most, and this is more",
                MOST >> 20
            ));
        }
        let bytes = read_bounded(file, LARGEST).map_err(|error| reason(&error))?;
        let bytes = bytes.ok_or_else(|| format!("it {}", too_large(LARGEST)))?;
        if real.file_name().is_some_and(|name| name == MANIFEST)
            && let Some(package) = real.parent()
        {
            self.allow(package.to_owned());
        }
        Ok(Some(bytes))
    }

    /// Whether a folder may be looked into, all its links resolved.
    pub(super) fn admits_folder(&self, path: &Path) -> bool {
        std::fs::canonicalize(path).is_ok_and(|real| self.admits(&real))
    }

    /// Counts a name that is listed.
    ///
    /// # Errors
    /// When there are too many.
    pub(super) fn count(&self, is_link: bool) -> Result<(), String> {
        let weight = if is_link { LINK } else { 1 };
        if self.listed.fetch_add(weight, Ordering::Relaxed) >= MOST_LISTED {
            return Err(format!(
                "there are more than {MOST_LISTED} files and folders: links may repeat them"
            ));
        }
        Ok(())
    }

    fn check_place(&self, real: &Path) -> Result<(), String> {
        if real.file_name().is_some_and(|name| name == MANIFEST) || self.admits(real) {
            return Ok(());
        }
        Err(format!(
            "it is `{}`, which is in neither this repository nor a package that a manifest names",
            real.display()
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
            if let Some(repository) = repository(&real) {
                self.allow(repository);
            }
            Some((folder, real))
        });
        project.as_ref()
    }
}

/// The repository that a folder is in.
fn repository(folder: &Path) -> Option<PathBuf> {
    let top = folder
        .ancestors()
        .find(|top| [".git", ".jj", ".hg"].iter().any(|name| top.join(name).exists()))?;
    let is_home =
        std::env::home_dir().is_some_and(|home| std::fs::canonicalize(home).is_ok_and(|home| home == top));
    (!is_home && top.parent().is_some()).then(|| top.to_owned())
}

/// Opens a file whose path had no links a moment ago.
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

/// A path without `.` and `..`; right where no part of it is a link.
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
        Err(reason(error))
    }
}

/// Whether there is no such file: a name that is too long for one has none either.
pub(super) fn is_absent(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename
    )
}

/// What the system says, without the path, which the complaint names.
pub(super) fn reason(error: &std::io::Error) -> String {
    error.kind().to_string()
}

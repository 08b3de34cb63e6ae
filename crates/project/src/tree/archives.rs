//! Published packages in Cargo's cache, looked up by checksum.
//!
//! `Cargo.lock` records the checksum of each archive that `cargo fetch` downloads, so an archive is
//! the same on every machine. Cargo never verifies the unpacked copy next to it, so that copy is
//! not read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fs_err as fs;
use rbuilder_generator::{Archive, ArchiveError, REGISTRY};

use super::tarball::{LARGEST_KEPT, Text, Texts, read_manifest, read_texts};
use crate::disk::{read_bounded, too_large};

/// Maximum size of an archive in bytes. crates.io accepts 10 MiB, and more on request.
const LARGEST: u64 = 64 << 20;

#[derive(Debug, Default)]
pub(super) struct Archives {
    /// Directories of Cargo's cache, one per registry.
    caches: OnceLock<Vec<PathBuf>>,
    open: Mutex<BTreeMap<String, Arc<OpenArchive>>>,
    /// Memory in bytes used by the cached texts of all archives.
    kept: AtomicUsize,
}

/// An archive whose checksum has been verified.
#[derive(Debug)]
struct OpenArchive {
    path: PathBuf,
    /// Top-level directory of the archive.
    folder: String,
    checksum: String,
    manifest: Text,
    /// The Rust files, read on first use. Most packages only need their manifest.
    texts: OnceLock<Result<Texts, String>>,
}

pub(super) fn is_archived(path: &str) -> bool {
    path.strip_prefix(REGISTRY)
        .is_some_and(|rest| rest.starts_with('/'))
}

impl Archives {
    /// Finds the archive by checksum and makes its files available below `folder`.
    pub(super) fn open(&self, folder: &str, archive: &Archive<'_>) -> Result<(), ArchiveError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if !open.contains_key(folder) {
            let found = self.find(archive)?;
            open.insert(folder.to_owned(), Arc::new(found));
        }
        Ok(())
    }

    fn find(&self, archive: &Archive<'_>) -> Result<OpenArchive, ArchiveError> {
        let folder = format!("{}-{}", archive.name, archive.version);
        let name = format!("{folder}.crate");
        let mut other = None;
        for path in self.caches().iter().map(|cache| cache.join(&name)) {
            let bytes = match read(&path) {
                Ok(Some(bytes)) => bytes,
                Ok(None) => continue,
                Err(reason) => return Err(ArchiveError::Unreadable(reason)),
            };
            // Two registries may have different packages with the same name.
            if checksum_of(&bytes) != archive.checksum {
                other = other.or(Some(path));
                continue;
            }
            let manifest = read_manifest(&bytes, &folder).map_err(ArchiveError::Unreadable)?;
            return Ok(OpenArchive {
                path,
                folder,
                checksum: archive.checksum.to_owned(),
                manifest,
                texts: OnceLock::new(),
            });
        }
        Err(match other {
            Some(path) => ArchiveError::OtherChecksum(path.display().to_string()),
            None => ArchiveError::Absent,
        })
    }

    pub(super) fn text(&self, path: &str) -> Text {
        let parts = path
            .strip_prefix(REGISTRY)
            .and_then(|rest| rest.strip_prefix('/'));
        let Some((package, below)) = parts.and_then(|rest| rest.split_once('/')) else {
            return Ok(None);
        };
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(archive) = open.get(&format!("{REGISTRY}/{package}")).cloned() else {
            return Ok(None);
        };
        drop(open);
        archive.text(below, &self.kept)
    }

    fn caches(&self) -> &[PathBuf] {
        self.caches.get_or_init(|| {
            let cache = cargo_home().map(|home| home.join("registry").join("cache"));
            let entries = cache.and_then(|cache| fs::read_dir(cache).ok());
            let mut found: Vec<PathBuf> = entries
                .into_iter()
                .flatten()
                .filter_map(|entry| Some(entry.ok()?.path()))
                .collect();
            found.sort();
            found
        })
    }
}

impl OpenArchive {
    fn text(&self, path: &str, kept: &AtomicUsize) -> Text {
        if path == "Cargo.toml" {
            return self.manifest.clone();
        }
        let found = self.texts.get_or_init(|| self.read_texts(kept)).as_ref();
        let found = found.map_err(Clone::clone)?;
        found.texts.get(path).cloned().unwrap_or(Ok(None))
    }

    fn read_texts(&self, kept: &AtomicUsize) -> Result<Texts, String> {
        // Keeping the bytes of every archive would take too much memory, and most only need their
        // manifest. Read this one again instead.
        let bytes = read(&self.path)?.filter(|bytes| checksum_of(bytes) == self.checksum);
        let bytes = bytes.ok_or_else(|| {
            format!(
                "`{}` was changed while the command was running",
                self.path.display()
            )
        })?;
        let limit = LARGEST_KEPT.saturating_sub(kept.load(Ordering::Relaxed));
        let found = read_texts(&bytes, &self.folder, limit)?;
        kept.fetch_add(found.size, Ordering::Relaxed);
        Ok(found)
    }
}

fn cargo_home() -> Option<PathBuf> {
    let named = std::env::var_os("CARGO_HOME").filter(|home| !home.is_empty());
    match named {
        Some(home) => Some(PathBuf::from(home)),
        None => Some(std::env::home_dir()?.join(".cargo")),
    }
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    // Opening a pipe could block.
    if !fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return Ok(None);
    }
    let failed = |error: std::io::Error| format!("cannot read `{}`: {error}", path.display());
    let file = std::fs::File::open(path).map_err(failed)?;
    let bytes = read_bounded(file, LARGEST).map_err(failed)?;
    let bytes = bytes.ok_or_else(|| format!("`{}` {}", path.display(), too_large(LARGEST)))?;
    Ok(Some(bytes))
}

fn checksum_of(bytes: &[u8]) -> String {
    let hash = hmac_sha256::Hash::hash(bytes);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

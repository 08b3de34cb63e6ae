//! Source text for the generator. Each file is read once, on demand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fs_err as fs;
use rbuilder_generator::{Archive, ArchiveError, Sources, find_crd_names};
use walkdir::WalkDir;

use super::archives::{Archives, is_archived};
use super::area::{Area, find_repository, is_absent};
use super::tarball::Text;
use super::yaml::{MAX_DEPTH, PASSED_OVER, may_have_manifests};
use super::{Changed, Tree};

/// The source files of a directory and its path dependencies. Symlinks within the repository and
/// those packages are followed (see `area.rs`), since nothing is written through them.
#[derive(Debug)]
pub struct TreeSources {
    root: PathBuf,
    known: Arc<SourceTexts>,
}

/// Files read as source. Shared with the tree, which checks that they are unchanged.
#[derive(Debug)]
pub(super) struct SourceTexts {
    area: Area,
    archives: Archives,
    planned: Vec<String>,
    texts: Mutex<BTreeMap<String, Text>>,
}

impl Tree {
    /// The source as it will be after the planned changes. `planned` maps paths to texts, or to
    /// `None` for deleted files.
    pub fn sources(&self, planned: impl IntoIterator<Item = (String, Option<String>)>) -> TreeSources {
        let texts: BTreeMap<String, Text> = planned
            .into_iter()
            .map(|(path, text)| (path, Ok(text.map(Arc::from))))
            .collect();
        let known = Arc::new(SourceTexts {
            area: Area::new(self.root.clone()),
            archives: Archives::default(),
            planned: texts.keys().cloned().collect(),
            texts: Mutex::new(texts),
        });
        self.sources.borrow_mut().push(Arc::clone(&known));
        TreeSources {
            root: self.root.clone(),
            known,
        }
    }
}

impl SourceTexts {
    pub(super) fn verify_unchanged(&self) -> Result<(), Changed> {
        // The limit applies to a single pass over all files.
        self.area.count_anew();
        let texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        for (path, text) in texts.iter().filter(|(path, _)| !self.planned.contains(path)) {
            if read(&self.area, path) != *text {
                return Err(Changed::new(path));
            }
        }
        Ok(())
    }
}

impl TreeSources {
    /// Number of Rust files read so far.
    pub fn rust_files_read(&self) -> usize {
        let texts = self.known.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let files = texts.iter().filter(|(path, _)| path.ends_with(".rs"));
        files.filter(|(_, text)| matches!(text, Ok(Some(_)))).count()
    }
}

impl Sources for TreeSources {
    fn text(&self, path: &str) -> Text {
        // An archive's content can't change, because its checksum was verified.
        if is_archived(path) {
            return self.known.archives.text(path);
        }
        let known = self
            .known
            .texts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(path)
            .cloned();
        if let Some(known) = known {
            return known;
        }
        let text = read(&self.known.area, path);
        let mut texts = self.known.texts.lock().unwrap_or_else(PoisonError::into_inner);
        texts.entry(path.to_owned()).or_insert(text).clone()
    }

    fn rust_files(&self, folder: &str) -> Result<Vec<String>, String> {
        if is_archived(folder) {
            return Ok(Vec::new());
        }
        let start = self.root.join(folder);
        let walk = WalkDir::new(&start).follow_links(true).sort_by_file_name();
        let belongs = |entry: &walkdir::DirEntry| {
            // Only symlinks and the start directory, which comes from a manifest, can lead out of
            // the area.
            let leads_on = entry.file_type().is_dir() && (entry.depth() == 0 || entry.path_is_symlink());
            belongs_to_package(entry) && (!leads_on || self.known.area.admits_folder(entry.path()))
        };
        let mut found = Vec::new();
        for entry in walk.into_iter().filter_entry(belongs) {
            self.known
                .area
                .count(entry.as_ref().is_ok_and(walkdir::DirEntry::path_is_symlink))?;
            let entry = match entry {
                Ok(entry) => entry,
                // A symlink to a parent directory adds no files.
                Err(error) if error.loop_ancestor().is_some() => continue,
                // A dangling symlink.
                Err(error) if error.io_error().is_some_and(is_absent) => continue,
                Err(error) => return Err(error.to_string()),
            };
            let is_rust = entry.path().extension().is_some_and(|end| end == "rs");
            if is_rust
                && entry.file_type().is_file()
                && let Ok(below) = entry.path().strip_prefix(&start)
                // A file name that isn't UTF-8 can't belong to a module.
                && let Some(below) = slashed(below)
            {
                found.push(joined(folder, &below));
            }
        }
        let prefix = joined(folder, "");
        let is_below = |path: &&String| path.starts_with(&prefix) && path.ends_with(".rs");
        let planned = self.known.planned.iter().filter(is_below);
        found.extend(planned.cloned());
        found.sort();
        found.dedup();
        Ok(found)
    }

    fn open_archive(&self, folder: &str, archive: &Archive<'_>) -> Result<(), ArchiveError> {
        self.known.archives.open(folder, archive)
    }

    fn find_committed_crds(&self, names: &BTreeSet<String>) -> BTreeSet<String> {
        let Ok(root) = std::fs::canonicalize(&self.root) else {
            return BTreeSet::new();
        };
        let top = find_repository(&root).unwrap_or(root);
        find_crds_below(&top, names)
    }

    fn folders(&self, folder: &str) -> Result<Vec<String>, String> {
        if is_archived(folder) {
            return Ok(Vec::new());
        }
        let folder = self.root.join(folder);
        if !self.known.area.admits_folder(&folder) {
            return Ok(Vec::new());
        }
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if is_absent(&error) => return Ok(Vec::new()),
            Err(error) => return Err(error.to_string()),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| error.to_string())?;
            self.known.area.count(false)?;
            // `Path::is_dir` follows symlinks, unlike the entry's file type.
            if entry.path().is_dir()
                && let Some(name) = entry.file_name().to_str()
            {
                names.push(name.to_owned());
            }
        }
        names.sort();
        Ok(names)
    }
}

fn read(area: &Area, path: &str) -> Text {
    match area.read(path)?.map(String::from_utf8) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text.into())),
        Some(Err(_)) => Err("it is not valid UTF-8".to_owned()),
    }
}

fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}

/// Finds CRD names that occur in manifests and templates below a directory, except in test
/// directories.
fn find_crds_below(top: &Path, names: &BTreeSet<String>) -> BTreeSet<String> {
    let is_own = |entry: &walkdir::DirEntry| {
        let name = entry.file_name().to_string_lossy();
        let is_others =
            || name.starts_with('.') || PASSED_OVER.contains(&&*name) || TEST_FOLDERS.contains(&&*name);
        entry.depth() == 0 || !entry.file_type().is_dir() || !is_others()
    };
    let mut found = BTreeSet::new();
    let entries = WalkDir::new(top)
        .max_depth(MAX_DEPTH)
        .into_iter()
        .filter_entry(is_own);
    for entry in entries.filter_map(Result::ok).take(MAX_ENTRIES) {
        let is_manifest =
            entry.file_type().is_file() && entry.file_name().to_str().is_some_and(may_have_manifests);
        let is_small = || entry.metadata().is_ok_and(|data| data.len() <= MAX_MANIFEST);
        if is_manifest
            && is_small()
            && let Ok(text) = fs::read_to_string(entry.path())
        {
            found.extend(find_crd_names(&text, names).into_iter().cloned());
        }
    }
    found
}

/// Directories with test manifests, which often belong to other projects.
const TEST_FOLDERS: [&str; 5] = ["test", "tests", "testdata", "fixtures", "third_party"];
const MAX_ENTRIES: usize = 200_000;
const MAX_MANIFEST: u64 = 16 << 20;

fn belongs_to_package(entry: &walkdir::DirEntry) -> bool {
    if entry.depth() == 0 || !entry.file_type().is_dir() {
        return true;
    }
    let hidden = entry
        .file_name()
        .to_str()
        .is_some_and(|name| name.starts_with('.'));
    !hidden && !entry.path().join("Cargo.toml").is_file()
}

fn slashed(path: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = path.iter().map(|part| part.to_str()).collect();
    Some(parts?.join("/"))
}

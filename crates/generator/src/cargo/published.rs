//! Packages from registries and from git, loaded when a kind needs one of their types.
//!
//! `Cargo.lock` pins the version and checksum of each dependency, so the output depends on nothing
//! but the repository. File paths start with [`REGISTRY`], which isn't a directory on disk, and
//! [`join`] never leads out of it.
//!
//! Any dependent can enable features of a package, so the manifests of all dependents are read. The
//! rest of the graph, often hundreds of packages, cannot enable any of these features. It is
//! skipped, and reading more of it later cannot change the result.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::file::File;
use super::graph::{Graph, Index, Wanted};
use super::lock::{Lock, LockId, LockedPackage};
use super::manifest::Manifest;
use super::vendor::Replacements;
use super::workspace;
use crate::package::{Obstacle, PackageId};
use crate::sources::{Archive, ArchiveError, REGISTRY, join};

/// Help for packages that Cargo hasn't downloaded yet.
pub const FETCH: &str = "run `cargo fetch`";

pub(crate) struct Published<'a> {
    graph: Graph<'a>,
    /// The manifest in the working directory.
    here: Rc<File>,
    lock: Option<Result<Rc<Lock>, Obstacle>>,
    replacements: Option<Rc<Replacements>>,
    /// Packages to read once an enabled dependency leads to them.
    admitted: BTreeSet<LockId>,
    read: BTreeMap<LockId, Result<Index, Obstacle>>,
    /// Number of graph packages already handed to callers.
    handed_over: usize,
}

pub(crate) struct Loaded {
    pub(crate) package: PackageId,
    /// Manifests for the caller to append to its own.
    pub(crate) added: Vec<Manifest>,
}

/// Help for a type whose crate can't be read.
const ALTERNATIVE: &str =
    "put `#[kube(schema_type = \"…\")]`, `#[kube(schema = { … })]` or `#[kube(schemaless)]` on the field";

impl<'a> Published<'a> {
    pub(super) fn new(graph: Graph<'a>, here: Rc<File>) -> Self {
        Published {
            handed_over: graph.len(),
            graph,
            here,
            lock: None,
            replacements: None,
            admitted: BTreeSet::new(),
            read: BTreeMap::new(),
        }
    }

    /// Loads the package that a dependency of another package refers to.
    ///
    /// # Errors
    ///
    /// Fails if `Cargo.lock` does not contain the package, or if its source is not available.
    pub(crate) fn load(&mut self, dependent: PackageId, key: &str) -> Result<Loaded, Obstacle> {
        if let Some(wanted) = self.graph.nodes[dependent.0].wanted.get(key) {
            check_in_use(wanted)?;
        }
        let lock = self.lock()?;
        let id = self.find_target(&lock, dependent.0, key)?;
        let closure = lock.find_dependents(id);
        self.admitted.extend(closure.iter().copied());
        self.follow(&lock);
        // Any dependent can enable features, so a single unreadable manifest makes the set
        // incomplete.
        if let Some(obstacle) = closure.iter().find_map(|id| self.read.get(id)?.as_ref().err()) {
            return Err(obstacle.clone());
        }
        match self.read.get(&id) {
            Some(Ok(index)) => Ok(Loaded {
                package: PackageId(*index),
                added: self.hand_over(),
            }),
            _ => Err(self.outdated(&lock.package(id).name)),
        }
    }

    fn hand_over(&mut self) -> Vec<Manifest> {
        let added = self.graph.manifests(self.handed_over);
        self.handed_over += added.len();
        added
    }

    fn follow(&mut self, lock: &Lock) {
        let mut is_changed = true;
        // Connecting a manifest may enable further dependencies; repeat until there are no new
        // ones.
        while std::mem::take(&mut is_changed) {
            for (index, key) in self.open_edges() {
                // Skip what an outdated lock file lacks: `load` reports it if it's needed.
                let Ok(id) = self.find_target(lock, index, &key) else {
                    continue;
                };
                // Not a dependent of a requested package, so it can't enable any of its features.
                if !self.admitted.contains(&id) {
                    continue;
                }
                if !self.read.contains_key(&id) {
                    let read = self.read_package(lock.package(id), id);
                    self.read.insert(id, read);
                }
                if let Some(Ok(target)) = self.read.get(&id) {
                    self.graph.connect(index, &key, *target);
                    is_changed = true;
                }
            }
            self.graph.follow_open();
        }
    }

    /// Returns the enabled dependencies that have no package yet.
    fn open_edges(&self) -> Vec<(Index, String)> {
        let nodes = self.graph.nodes.iter().enumerate();
        let edges = nodes.flat_map(|(index, node)| {
            let open = node.wanted.iter().filter(|(_, wanted)| {
                wanted.is_locked && wanted.on && !wanted.is_elsewhere && wanted.index.is_none()
            });
            open.map(move |(key, _)| (index, key.clone()))
        });
        edges.collect()
    }

    fn find_target(&self, lock: &Lock, dependent: Index, key: &str) -> Result<LockId, Obstacle> {
        let node = &self.graph.nodes[dependent];
        let of_dependent = node
            .locked
            .or_else(|| lock.find_local(self.graph.name(dependent), self.graph.version(dependent)));
        let wanted = node.wanted.get(key);
        let found = of_dependent.zip(wanted).and_then(|(of_dependent, wanted)| {
            lock.find_dependency(of_dependent, &wanted.package, wanted.requirement.as_deref())
        });
        found.ok_or_else(|| self.outdated(wanted.map_or(key, |wanted| &wanted.package)))
    }

    fn outdated(&self, name: &str) -> Obstacle {
        Obstacle {
            reason: format!(
                "`Cargo.lock` is out of date: it does not have `{name}` as `Cargo.toml` asks for it"
            ),
            help: "run `cargo update --workspace`".to_owned(),
        }
    }

    /// May have to make the source available first, e.g. by opening an archive.
    fn read_package(&mut self, package: &LockedPackage, id: LockId) -> Result<Index, Obstacle> {
        let folder = self.find_source(package)?;
        self.graph.add_locked(&folder, id).map_err(|error| Obstacle {
            reason: format!(
                "the manifest of {} {} cannot be read: {}",
                package.name, package.version, error.message
            ),
            help: ALTERNATIVE.to_owned(),
        })
    }

    fn find_source(&mut self, package: &LockedPackage) -> Result<String, Obstacle> {
        let LockedPackage { name, version, .. } = package;
        let sources = self.graph.sources;
        if let Some(folder) = self.replacements().find_folder(package, sources) {
            return folder.map_err(|reason| Obstacle {
                reason,
                help: "run `cargo vendor`".to_owned(),
            });
        }
        let Some(source) = &package.source else {
            return Err(Obstacle {
                reason: format!("{name} {version} is patched with a path"),
                help: format!("name its path in `[dependencies]`, or {ALTERNATIVE}"),
            });
        };
        let (Some(checksum), false) = (&package.checksum, source.starts_with("git+")) else {
            return Err(Obstacle {
                reason: format!(
                    "{name} {version} comes from git, and `Cargo.lock` has no checksum to verify a checkout with"
                ),
                help: format!("add the source to the repository with `cargo vendor`, or {ALTERNATIVE}"),
            });
        };
        // `name` and `version` end up in a path, so don't trust them.
        if !is_name(name, "") || !is_name(version, ".+") {
            return Err(Obstacle {
                reason: format!("`Cargo.lock` has no valid name and version: `{name}` and `{version}`"),
                help: "run `cargo generate-lockfile`".to_owned(),
            });
        }
        let mut folder = format!("{REGISTRY}/{name}-{version}");
        if self.is_taken(&folder) {
            // Another registry has a package with the same name and version.
            folder = format!("{folder}-{}", checksum.get(..8).unwrap_or(checksum));
        }
        let archive = Archive {
            name,
            version,
            checksum,
        };
        match sources.open_archive(&folder, &archive) {
            Ok(()) => Ok(folder),
            Err(ArchiveError::Absent) => Err(Obstacle {
                reason: format!("the source of {name} {version} is not on this machine"),
                help: FETCH.to_owned(),
            }),
            Err(ArchiveError::OtherChecksum(path)) => Err(Obstacle {
                reason: format!("the archive of {name} {version} does not have the checksum in `Cargo.lock`"),
                help: format!("remove `{path}`, and run `cargo fetch`"),
            }),
            Err(ArchiveError::Unreadable(reason)) => Err(Obstacle {
                reason: format!("failed to read the archive of {name} {version}: {reason}"),
                help: ALTERNATIVE.to_owned(),
            }),
        }
    }

    fn is_taken(&self, folder: &str) -> bool {
        self.graph.nodes.iter().any(|node| node.file.folder == folder)
    }

    fn lock(&mut self) -> Result<Rc<Lock>, Obstacle> {
        if self.lock.is_none() {
            self.lock = Some(self.read_lock());
        }
        self.lock.clone().unwrap_or_else(|| Err(self.outdated("")))
    }

    fn read_lock(&mut self) -> Result<Rc<Lock>, Obstacle> {
        let root = match self.here.table("workspace") {
            Some(_) => None,
            None => workspace::root_of(&self.here, &mut self.graph.files)
                .ok()
                .flatten(),
        };
        let path = join(&root.as_ref().unwrap_or(&self.here).folder, "Cargo.lock");
        let obstacle = |reason: String| Obstacle {
            reason,
            help: format!("run `cargo generate-lockfile` and commit `Cargo.lock`, or {ALTERNATIVE}"),
        };
        match self.graph.sources.text(&path) {
            Ok(Some(text)) => Lock::parse(&text)
                .map(Rc::new)
                .map_err(|reason| obstacle(format!("failed to parse `{path}`: {reason}"))),
            Ok(None) => Err(obstacle(format!(
                "the version of its crate is unknown without `{path}`"
            ))),
            Err(reason) => Err(obstacle(format!("failed to read `{path}`: {reason}"))),
        }
    }

    fn replacements(&mut self) -> Rc<Replacements> {
        let sources = self.graph.sources;
        let read = || Rc::new(Replacements::read(sources));
        Rc::clone(self.replacements.get_or_insert_with(read))
    }
}

fn check_in_use(wanted: &Wanted) -> Result<(), Obstacle> {
    let name = &wanted.package;
    let (reason, help) = if wanted.is_elsewhere {
        let reason = format!("`{name}` is a dependency for other targets than Linux");
        (reason, "move it to `[dependencies]`")
    } else if !wanted.on {
        let reason = format!("`{name}` is an optional dependency, and no feature turns it on");
        (reason, "select the feature with `--features`")
    } else {
        return Ok(());
    };
    Err(Obstacle {
        reason,
        help: help.to_owned(),
    })
}

/// Allows ASCII letters, digits, `-`, `_` and the characters in `others`.
fn is_name(text: &str, others: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c) || others.contains(c);
    !text.is_empty() && text.len() <= 128 && text.chars().all(is_part)
}

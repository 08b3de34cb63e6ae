//! The graph of packages and path dependencies, with the features enabled in each.
//!
//! Features follow Cargo's rules: a feature can enable other features, optional dependencies and
//! features of dependencies, and the requests of all dependents are unified. Dependencies from a
//! registry or from git stay unread until [`Published`](super::Published) loads them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use semver::VersionReq;
use toml_edit::{Item, TableLike};

use rbuilder_reader::cfg::Cfg;

use super::file::{File, Files, bool_at, string_at, strings_at, table_at};
use super::lock::LockId;
use super::manifest::{K8sOpenapi, Manifest};
use super::metadata::Selection;
use super::targets;
use super::workspace;
use crate::package::{Dependency, LockedDependency, Obstacle, PackageId};
use crate::resolve;
use crate::sources::{Sources, join};
use crate::{Diagnostic, FileRange};

pub(super) type Index = usize;

pub(super) struct Graph<'a> {
    pub(super) sources: &'a dyn Sources,
    pub(super) problems: Vec<Diagnostic>,
    /// Path dependencies without a manifest, e.g. submodules that aren't checked out. Only a warning,
    /// because a kind or webhook that needs one of their types reports an error of its own.
    pub(super) missing: Vec<Diagnostic>,
    pub(super) nodes: Vec<Node>,
    by_folder: BTreeMap<String, Index>,
    pub(super) files: Files<'a>,
    /// Enabled features whose entries in `[features]` are still to be followed.
    pub(super) open: Vec<(Index, String)>,
}

pub(super) struct Node {
    pub(super) file: Rc<File>,
    /// `None` for packages of the repository.
    pub(super) locked: Option<LockId>,
    root: Option<Rc<File>>,
    features: BTreeSet<String>,
    pub(super) wanted: BTreeMap<String, Wanted>,
    library: Option<targets::Library>,
}

/// A dependency, after merging `workspace = true` with the entry in the workspace.
pub(super) struct Wanted {
    /// The real name of the package. Differs from the key if the dependency is renamed, as in
    /// `k8s = { package = "k8s-openapi" }`.
    pub(super) package: String,
    renamed: bool,
    folder: Option<String>,
    pub(super) requirement: Option<String>,
    /// True if `Cargo.lock` decides where the package comes from. False for path dependencies and
    /// for crates with built-in schemas (e.g. `kube`).
    pub(super) is_locked: bool,
    /// True for dependencies in a `[target.…]` table that can't match Linux.
    pub(super) is_elsewhere: bool,
    optional: bool,
    /// Includes `default`, unless the dependency disables it.
    pub(super) features: BTreeSet<String>,
    pub(super) at: Option<Range<usize>>,
    pub(super) on: bool,
    /// Set once the dependency is enabled and its manifest has been read.
    pub(super) index: Option<Index>,
    /// Why the manifest of a path dependency can't be read.
    obstacle: Option<Obstacle>,
}

impl<'a> Graph<'a> {
    pub(super) fn new(sources: &'a dyn Sources) -> Self {
        Graph {
            sources,
            problems: Vec::new(),
            missing: Vec::new(),
            nodes: Vec::new(),
            by_folder: BTreeMap::new(),
            files: Files::new(sources),
            open: Vec::new(),
        }
    }

    /// Adds the package in a directory, with no features enabled.
    ///
    /// Returns `None` if there is no package, or if its manifest can't be read. The latter is
    /// reported.
    pub(super) fn add(&mut self, folder: &str, with_dev: bool) -> Option<Index> {
        if let Some(index) = self.by_folder.get(folder) {
            return Some(*index);
        }
        let file = self.files.get(folder);
        let file = self.said(file)??;
        file.table("package")?;
        let root = self.root(&file);
        let library = targets::find_library(&file, self.sources);
        Some(self.add_node(Node {
            wanted: wanted(&file, root.as_deref(), with_dev),
            // A procedural macro exports no types.
            library: library.filter(|_| !targets::is_proc_macro(&file)),
            file,
            locked: None,
            root,
            features: BTreeSet::new(),
        }))
    }

    /// Adds a package from a registry or from git, with no features enabled.
    pub(super) fn add_locked(&mut self, folder: &str, id: LockId) -> Result<Index, Diagnostic> {
        if let Some(index) = self.by_folder.get(folder) {
            return Ok(*index);
        }
        let missing = || super::file::manifest_error(folder, 0..0, "it has no `Cargo.toml` with a package");
        let file = self.files.get(folder)?.ok_or_else(missing)?;
        file.table("package").ok_or_else(missing)?;
        let is_proc_macro = targets::is_proc_macro(&file);
        // Cargo builds the dependencies of a procedural macro for the host and unifies their
        // features separately, so they must not enable anything here.
        let mut wanted = match is_proc_macro {
            true => BTreeMap::new(),
            false => wanted(&file, None, false),
        };
        // A published manifest is self-contained, so follow neither a workspace nor paths.
        wanted.values_mut().for_each(|wanted| wanted.folder = None);
        Ok(self.add_node(Node {
            wanted,
            library: (!is_proc_macro).then(|| targets::library_of(&file)),
            file,
            locked: Some(id),
            root: None,
            features: BTreeSet::new(),
        }))
    }

    fn add_node(&mut self, node: Node) -> Index {
        let index = self.nodes.len();
        self.by_folder.insert(node.file.folder.clone(), index);
        self.nodes.push(node);
        let required: Vec<String> = self.nodes[index]
            .wanted
            .iter()
            .filter(|(_, wanted)| !wanted.optional)
            .map(|(key, _)| key.clone())
            .collect();
        required.iter().for_each(|key| self.enable(index, key));
        index
    }

    fn root(&mut self, file: &Rc<File>) -> Option<Rc<File>> {
        if file.table("workspace").is_some() {
            return Some(Rc::clone(file));
        }
        // Most packages inherit nothing. Return early, because the search below reads a manifest in
        // each parent directory.
        if !inherits(file.root(), 0) {
            return None;
        }
        let found = workspace::root_of(file, &mut self.files);
        let found = self.said(found)?;
        if found.is_none() {
            let help = "set `package.workspace` to its directory, or replace the inherited keys with values";
            let message = "the manifest inherits from a workspace, but no parent directory has one";
            self.problems.push(file.error(None, message, help));
        }
        found
    }

    fn said<T>(&mut self, result: Result<T, Diagnostic>) -> Option<T> {
        result.map_err(|problem| self.problems.push(problem)).ok()
    }

    pub(super) fn activate(&mut self, index: Index, features: impl IntoIterator<Item = String>) {
        self.open
            .extend(features.into_iter().map(|feature| (index, feature)));
        self.follow_open();
    }

    pub(super) fn follow_open(&mut self) {
        while let Some((index, feature)) = self.open.pop() {
            if self.nodes[index].features.insert(feature.clone()) {
                self.follow(index, &feature);
            }
        }
    }

    /// Includes optional dependencies, each of which is also a feature.
    pub(super) fn all_features(&self, index: Index) -> Vec<String> {
        let node = &self.nodes[index];
        let declared = node.file.table("features").into_iter().flat_map(TableLike::iter);
        let optional = node.wanted.iter().filter(|(_, wanted)| wanted.optional);
        declared
            .map(|(name, _)| name.to_owned())
            .chain(optional.map(|(key, _)| key.clone()))
            .collect()
    }

    pub(super) fn has_feature(&self, index: Index, feature: &str) -> bool {
        feature == "default" || self.all_features(index).iter().any(|name| name == feature)
    }

    pub(super) fn name(&self, index: Index) -> &str {
        let package = self.nodes[index].file.table("package");
        package
            .and_then(|package| string_at(package, "name"))
            .unwrap_or_default()
    }

    pub(super) fn file(&self, index: Index) -> &File {
        &self.nodes[index].file
    }

    /// Lists only path dependencies until a published package has been loaded.
    pub(super) fn used_by(&self, index: Index) -> Vec<Index> {
        self.nodes[index]
            .wanted
            .values()
            .filter_map(|wanted| wanted.index)
            .collect()
    }

    pub(super) fn folder(&self, index: Index) -> &str {
        &self.nodes[index].file.folder
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    fn follow(&mut self, index: Index, feature: &str) {
        let node = &self.nodes[index];
        let Some(features) = node
            .file
            .table("features")
            .filter(|features| features.contains_key(feature))
        else {
            // Not an entry of `[features]`, so it can only be an optional dependency. These are
            // features of the same name unless some entry has `dep:name`.
            return self.enable(index, feature);
        };
        let implied: Vec<String> = strings_at(features, feature).map(str::to_owned).collect();
        for name in implied {
            match (name.strip_prefix("dep:"), name.split_once('/')) {
                (Some(key), _) => self.enable(index, key),
                (None, Some((key, feature))) => {
                    // Unlike `key/feature`, `key?/feature` does not enable the dependency itself.
                    let (key, weak) = match key.strip_suffix('?') {
                        Some(key) => (key, true),
                        None => (key, false),
                    };
                    // Record the feature in any case: `connect` activates it if the dependency is
                    // enabled later.
                    if let Some(wanted) = self.nodes[index].wanted.get_mut(key) {
                        wanted.features.insert(feature.to_owned());
                        let target = wanted.index.map(|target| (target, feature.to_owned()));
                        self.open.extend(target);
                    }
                    if !weak {
                        self.open.push((index, key.to_owned()));
                    }
                }
                (None, None) => self.open.push((index, name)),
            }
        }
    }

    fn enable(&mut self, index: Index, key: &str) {
        let Some(wanted) = self.nodes[index].wanted.get_mut(key).filter(|wanted| !wanted.on) else {
            return;
        };
        wanted.on = true;
        let Some(folder) = wanted.folder.clone() else {
            return;
        };
        let Some(target) = self.add(&folder, false) else {
            // `add` has already reported a manifest that exists but is broken.
            if self.problems.is_empty() {
                self.add_missing(index, key, &folder);
            }
            return;
        };
        let Some(wanted) = self.nodes[index].wanted.get_mut(key) else {
            return;
        };
        wanted.connect(target, &mut self.open);
    }

    fn add_missing(&mut self, index: Index, key: &str, folder: &str) {
        let is_of_submodule = self.is_of_submodule(folder);
        let node = &mut self.nodes[index];
        let path = node.file.path.clone();
        let Some(wanted) = node.wanted.get_mut(key) else {
            return;
        };
        let reason = format!("no `Cargo.toml` for the path dependency `{key}` in `{folder}`");
        let help = match is_of_submodule {
            true => "run `git submodule update --init`",
            false => "check out the repository that has it, or correct the path",
        };
        let range = wanted.at.clone().unwrap_or(0..0);
        wanted.obstacle = Some(Obstacle {
            reason: reason.clone(),
            help: help.to_owned(),
        });
        let problem = Diagnostic::warning(FileRange::new(path, range), reason).help(help);
        self.missing.push(problem);
    }

    fn is_of_submodule(&self, folder: &str) -> bool {
        let Ok(Some(modules)) = self.sources.text(".gitmodules") else {
            return false;
        };
        let mut paths = modules
            .lines()
            .filter_map(|line| line.trim().strip_prefix("path")?.trim_start().strip_prefix('='));
        paths.any(|path| {
            let rest = folder.strip_prefix(path.trim());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    pub(super) fn connect(&mut self, index: Index, key: &str, target: Index) {
        if let Some(wanted) = self.nodes[index].wanted.get_mut(key) {
            wanted.connect(target, &mut self.open);
        }
    }

    pub(super) fn version(&self, index: Index) -> Option<&str> {
        // May be in `[workspace.package]` instead of the package's own manifest.
        let node = &self.nodes[index];
        let own = node.file.table("package")?.get("version")?;
        if workspace::is_inherited(own) {
            let of_workspace = table_at(node.root.as_ref()?.table("workspace")?, "package")?;
            return string_at(of_workspace, "version");
        }
        own.as_str()
    }

    /// Returns the newest release of `name` required by the project's own manifests. Used if a
    /// repository has no `Cargo.lock`.
    pub(super) fn required_release(&self, name: &str) -> Option<(u16, u16)> {
        let own = self.nodes.iter().filter(|node| node.locked.is_none());
        let asked = own
            .flat_map(|node| node.wanted.values())
            .filter(|wanted| wanted.package == name);
        let releases = asked.filter_map(|wanted| {
            let requirement = VersionReq::parse(wanted.requirement.as_deref()?).ok()?;
            let first = requirement.comparators.first()?;
            let minor = first.minor.unwrap_or_default();
            Some((u16::try_from(first.major).ok()?, u16::try_from(minor).ok()?))
        });
        releases.max()
    }

    pub(super) fn k8s_openapi(&self) -> K8sOpenapi {
        let mut found = K8sOpenapi::default();
        for node in &self.nodes {
            add_k8s_openapi(&mut found, &node.file, &node.wanted);
        }
        // Libraries leave the choice of a Kubernetes version to the final binary and choose one
        // only for their own tests. So consider dev-dependencies only if nothing else chooses a
        // version.
        if !found.is_chosen() {
            for node in &self.nodes {
                let with_dev = wanted(&node.file, node.root.as_deref(), true);
                add_k8s_openapi(&mut found, &node.file, &with_dev);
            }
        }
        found
    }

    /// Skips packages before index `first`: the caller already has them.
    pub(super) fn manifests(&self, first: Index) -> Vec<Manifest> {
        let nodes = self.nodes[first..].iter();
        nodes
            .map(|node| {
                let dependencies = node.wanted.iter().map(|(key, wanted)| self.named(key, wanted));
                Manifest {
                    dependencies: dependencies.collect(),
                    is_2015: is_2015(&node.file, node.root.as_deref()),
                    folder: node.file.folder.clone(),
                    library: node.library.clone(),
                    features: node.features.clone(),
                    roots: Vec::new(),
                    selected: false,
                    is_published: node.locked.is_some(),
                    selection: Selection::default(),
                }
            })
            .collect()
    }

    /// Returns the name of a dependency in Rust code, and what that name refers to.
    fn named(&self, key: &str, wanted: &Wanted) -> (String, Dependency) {
        let library = wanted
            .index
            .and_then(|index| Some((index, self.nodes[index].library.as_ref()?)));
        let dependency = match library {
            Some((index, _)) => Dependency::Package(PackageId(index)),
            None if wanted.is_locked || wanted.obstacle.is_some() => Dependency::Locked(LockedDependency {
                key: key.to_owned(),
                name: resolve::crate_name(&wanted.package),
                obstacle: wanted.obstacle.clone(),
            }),
            None => Dependency::Other(resolve::crate_name(&wanted.package)),
        };
        let name = match library {
            _ if wanted.renamed => key.replace('-', "_"),
            Some((_, library)) => library.name.clone(),
            None => resolve::crate_name(&wanted.package),
        };
        (name, dependency)
    }
}

fn add_k8s_openapi(found: &mut K8sOpenapi, file: &File, wanted: &BTreeMap<String, Wanted>) {
    for wanted in wanted.values().filter(|wanted| wanted.package == "k8s-openapi") {
        found.features.extend(wanted.features.iter().cloned());
        let place = || (file.path.clone(), wanted.at.clone().unwrap_or(0..0));
        found.place.get_or_insert_with(place);
    }
}

impl Wanted {
    fn connect(&mut self, target: Index, open: &mut Vec<(Index, String)>) {
        self.index = Some(target);
        open.extend(self.features.iter().map(|feature| (target, feature.clone())));
    }
}

fn wanted(file: &File, root: Option<&File>, with_dev: bool) -> BTreeMap<String, Wanted> {
    let mut found = BTreeMap::new();
    let platforms = file.table("target").into_iter().flat_map(TableLike::iter);
    let platforms =
        platforms.filter_map(|(target, table)| Some((!may_be_linux(target), table.as_table_like()?)));
    let tables = std::iter::once((false, file.root() as &dyn TableLike)).chain(platforms);
    for (is_elsewhere, holder) in tables {
        let keys = [Some("dependencies"), with_dev.then_some("dev-dependencies")];
        for dependencies in keys.into_iter().flatten().filter_map(|key| table_at(holder, key)) {
            for (key, item) in dependencies.iter() {
                found.entry(key.to_owned()).or_insert_with(|| Wanted {
                    is_elsewhere,
                    ..dependency(key, item, file, root)
                });
            }
        }
    }
    found
}

/// `target` is a key of the `[target]` table: a `cfg(…)` or a target triple. Conditions that can't
/// be evaluated count as matching Linux.
fn may_be_linux(target: &str) -> bool {
    let predicate = target
        .strip_prefix("cfg(")
        .and_then(|rest| rest.strip_suffix(')'));
    match predicate {
        Some(predicate) => Cfg::default().evaluate(predicate) != Some(false),
        None => target.contains("linux"),
    }
}

fn dependency(key: &str, item: &Item, file: &File, root: Option<&File>) -> Wanted {
    let own = item.as_table_like();
    let inherits = workspace::is_inherited(item);
    let of_workspace = root.and_then(|root| table_at(root.table("workspace")?, "dependencies")?.get(key));
    let source = if inherits { of_workspace } else { Some(item) };
    let spec = source.and_then(Item::as_table_like);
    let home = if inherits {
        root.map_or("", |root| &root.folder)
    } else {
        &file.folder
    };

    let package = spec.and_then(|spec| string_at(spec, "package"));
    let name = package.unwrap_or(key);
    let path = spec.and_then(|spec| string_at(spec, "path"));
    // Crates with built-in schemas are never read, so only the name of e.g. a local checkout of
    // `kube` matters.
    let is_known = resolve::is_known_crate(&resolve::crate_name(name));
    let path = path.filter(|_| !is_known);
    let requirement = source
        .and_then(Item::as_str)
        .or_else(|| string_at(spec?, "version"));
    let tables = [own.filter(|_| inherits), spec].into_iter().flatten();
    let asked = tables.flat_map(|table| strings_at(table, "features"));
    // Older editions also accept the spelling `default_features`.
    let default = |table: Option<&dyn TableLike>| {
        table.and_then(|table| {
            bool_at(table, "default-features").or_else(|| bool_at(table, "default_features"))
        })
    };
    // A package can re-enable default features that its workspace disables, but not vice versa.
    let default = default(spec) != Some(false) || (inherits && default(own) == Some(true));
    Wanted {
        package: name.to_owned(),
        renamed: package.is_some(),
        folder: path.map(|path| join(home, path)),
        requirement: requirement.map(str::to_owned),
        is_locked: path.is_none() && !is_known,
        is_elsewhere: false,
        // Cargo doesn't allow `optional` in `[workspace.dependencies]`.
        optional: own.and_then(|own| bool_at(own, "optional")) == Some(true),
        features: asked
            .map(str::to_owned)
            .chain(default.then(|| "default".to_owned()))
            .collect(),
        at: item.span(),
        on: false,
        index: None,
        obstacle: None,
    }
}

fn inherits(holder: &dyn TableLike, depth: usize) -> bool {
    // The deepest such key is `[target.'…'.dependencies] x.workspace = true`.
    depth < 6
        && holder.iter().any(|(key, item)| {
            (key == "workspace" && item.as_bool() == Some(true))
                || item
                    .as_table_like()
                    .is_some_and(|inner| inherits(inner, depth + 1))
        })
}

fn is_2015(file: &File, root: Option<&File>) -> bool {
    let own = file.table("package").and_then(|package| package.get("edition"));
    let of_workspace = || table_at(root?.table("workspace")?, "package")?.get("edition");
    let edition = match own {
        Some(own) if workspace::is_inherited(own) => of_workspace(),
        own => own,
    };
    // Without an `edition`, Cargo assumes 2015.
    edition
        .and_then(Item::as_str)
        .is_none_or(|edition| edition == "2015")
}

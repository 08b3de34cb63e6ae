//! Source text to the model of a package: follows `mod` from the root of every target, calls
//! `rbuilder-syntax` for each item on the way, and holds itself to having seen every marker token.

mod attributes;
mod behind_feature;
mod constants;
mod discriminants;
mod file;
mod gaps;
mod handler;
mod imports;
mod include;
mod local;
mod markers;
mod merges;
mod modules;
mod need;
mod ownership;
mod patches;
mod path;
mod reach;
mod seen_marks;
mod types;
mod values;
mod versioned;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use rbuilder_reader::cfg::Cfg;

use crate::cargo::{Loaded, Manifest, Published};
use crate::gap::{Gap, GapId};
use crate::kubernetes_types::KubernetesTypes;
use crate::package::{Dependency, Member, Module, ModuleId, Package, PackageId};
use crate::place::{FileId, Place};
use crate::report::{Concern, Report};
use crate::selection::Selector;
use crate::sources::Sources;
use crate::{Diagnostic, FileRange, Options};

/// More modules than any package has: `#[path]` can name one file in many places.
const MAX_MODULES: usize = 20_000;

/// Returns true if a build script may write kinds or markers. Those that print the package's own CRDs do not.
fn writes_markers(script: &str) -> bool {
    ["kopium", "CustomResource", "rbac(", "webhook("]
        .iter()
        .any(|word| {
            let mut found = script.match_indices(word);
            found.any(|(at, _)| !script[at + word.len()..].starts_with(|c: char| c.is_alphanumeric()))
        })
}

/// Reads every module of the targets that are asked for, and of path crates those on the way to a type that
/// one of the kinds needs.
pub(crate) fn collect_packages(
    sources: &dyn Sources,
    manifests: Vec<Manifest>,
    published: Option<Published<'_>>,
    kubernetes: KubernetesTypes,
    build: Build,
    options: &Options,
    report: &mut Report,
) -> Collected {
    let outer = report.set_concern(Concern::Markers);
    let mut collector = Collector {
        sources,
        published,
        build,
        selector: Selector::new(options),
        cfgs: Vec::new(),
        package: Package {
            kubernetes,
            ..Package::default()
        },
        declared: BTreeMap::new(),
        wanted: Vec::new(),
        files: Vec::new(),
        deferred: Vec::new(),
        local_bytes: local::MAX_BYTES,
        seen: BTreeSet::new(),
        callers: Vec::new(),
        schema_owners: reach::SchemaOwners::default(),
        report,
    };
    let mut folders = Vec::new();
    for manifest in manifests {
        if !manifest.roots.is_empty() || manifest.selected {
            folders.push(manifest.folder.clone());
        }
        collector.add_package(manifest);
    }
    while let Some(module) = collector.wanted.pop() {
        collector.read_module(module);
    }
    collector.hold_back_kinds_of_others();
    collector.reach();
    collector.resolve_constants();
    collector.report_types();
    collector.report.set_concern(outer);
    Collected {
        package: collector.package,
        selector: collector.selector,
        files: collector.seen,
        folders,
    }
}

/// The builds whose source is collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// The one that the options ask for.
    Asked,
    /// Every build at once: no `cfg` leaves anything out.
    Every,
}

/// The result of collecting: the package's items, and the files they were read from.
pub(crate) struct Collected {
    pub(crate) package: Package,
    pub(crate) selector: Selector,
    /// The files that were read.
    pub(crate) files: BTreeSet<String>,
    /// The folders of the packages that are asked for.
    pub(crate) folders: Vec<String>,
}

struct Collector<'a> {
    sources: &'a dyn Sources,
    /// Reads packages of registries; nothing where their types do not matter.
    published: Option<Published<'a>>,
    build: Build,
    selector: Selector,
    /// The active `cfg` options, by package.
    cfgs: Vec<Rc<Cfg>>,
    package: Package,
    /// Modules whose file has not been read.
    declared: BTreeMap<ModuleId, Declared>,
    /// Those of them that are to be read in any case.
    wanted: Vec<ModuleId>,
    /// Files of the module being read.
    files: Vec<OpenFile>,
    /// Items that name constants in attributes.
    deferred: Vec<constants::Deferred>,
    /// The bytes that may still be written again to read items in bodies.
    local_bytes: usize,
    /// Files that some target reads.
    seen: BTreeSet<String>,
    /// Those in which `crd()` may be called.
    callers: Vec<String>,
    schema_owners: reach::SchemaOwners,
    report: &'a mut Report,
}

/// The place to look for the file of a module.
enum Declared {
    /// The root of a target.
    Root(String),
    /// `mod name;`
    Module {
        name: String,
        /// The folder of its file, unless `#[path]` names another.
        folder: String,
        written: Option<String>,
        place: Place,
        /// The files that lead to it.
        ancestors: Vec<String>,
        /// The unknown parts of its conditions.
        doubts: Vec<Doubt>,
    },
}

/// A file that a module's items are in.
struct OpenFile {
    module: ModuleId,
    path: String,
    /// The folder of its own modules' files.
    folder: String,
    /// The files that lead to it.
    ancestors: Vec<String>,
    /// The unknown parts of its conditions, which concern what is in it.
    doubts: Vec<Doubt>,
    content: Content,
}

/// A diagnostic about the conditions of a file, in the file that leads to it.
type Doubt = (FileId, rbuilder_syntax::Diagnostic);

/// The kind of items in a file.
#[derive(Clone, Copy)]
enum Content {
    /// Items of a module.
    Items,
    /// Items of an `impl` or a trait, included there.
    Members,
}

impl Collector<'_> {
    /// Says what is wrong with the types that are checked whether or not something needs them.
    fn report_types(&mut self) {
        self.report.set_concern(Concern::Part);
        for item in self.package.types.iter().filter(|item| item.is_checked) {
            self.report.add_all(item.file, item.reserved.iter().cloned());
            self.report.add_from_files(&item.doubts);
        }
    }

    /// Adds a part of a module whose items are unknown.
    fn add_gap(&mut self, module: ModuleId, gap: Gap) -> GapId {
        let id = GapId(self.package.gaps.len());
        self.package.modules[module.0].gaps.push(id);
        self.package.gaps.push(gap);
        id
    }

    /// Adds an error after which nothing of the run can be trusted.
    fn fatal_error(&mut self, place: Place, message: String, help: &str) {
        let outer = self.report.set_concern(Concern::Run);
        self.report.error(place, message, help);
        self.report.set_concern(outer);
    }

    /// Adds a package and the roots of its targets.
    fn add_package(&mut self, manifest: Manifest) {
        let id = PackageId(self.package.members.len());
        self.cfgs.push(Rc::new(match self.build {
            Build::Asked => Cfg::with_features(manifest.features),
            Build::Every => Cfg::everything(),
        }));
        // Whoever wants no defaults wants none in types of others either.
        let takes_serde_defaults = match manifest.is_published {
            true => self
                .package
                .members
                .iter()
                .all(|member| member.takes_serde_defaults),
            false => manifest.selection.serde_defaults,
        };
        if manifest.is_published {
            self.report.seal(&manifest.folder);
        }
        self.selector.add_package(manifest.selection);
        self.package.members.push(Member {
            folder: manifest.folder.clone(),
            library: None,
            dependencies: manifest.dependencies,
            is_2015: manifest.is_2015,
            is_published: manifest.is_published,
            takes_serde_defaults,
        });
        if let Some(library) = manifest.library {
            let root = self.add_root(id, library.path, manifest.selected);
            self.package.members[id.0].library = Some((library.name, root));
        }
        for path in manifest.roots {
            self.add_root(id, path, true);
        }
    }

    /// Reads the package that a dependency stands for, and notes why where it cannot be read. Returns whether the dependency is
    /// another one than before.
    fn load_dependency(&mut self, dependent: PackageId, name: &str) -> bool {
        let Some(published) = &mut self.published else {
            return false;
        };
        let dependencies = &self.package.members[dependent.0].dependencies;
        let Some(Dependency::Locked(locked)) = dependencies.get(name) else {
            return false;
        };
        let mut locked = locked.clone();
        let dependency = match published.load(dependent, &locked.key) {
            Ok(Loaded { package, added }) => {
                added.into_iter().for_each(|manifest| self.add_package(manifest));
                match &self.package.members[package.0].library {
                    Some(_) => Dependency::Package(package),
                    // A procedural macro has no types.
                    None => Dependency::Other(locked.name),
                }
            }
            Err(obstacle) => {
                locked.obstacle = Some(obstacle);
                Dependency::Locked(locked)
            }
        };
        let dependencies = &mut self.package.members[dependent.0].dependencies;
        dependencies.insert(name.to_owned(), dependency);
        true
    }

    fn add_root(&mut self, package: PackageId, path: String, is_wanted: bool) -> ModuleId {
        let root = self.add_module(package, None);
        self.package.modules[root.0].is_foreign = !is_wanted;
        self.declare(root, Declared::Root(path), is_wanted);
        root
    }

    fn add_module(&mut self, package: PackageId, parent: Option<ModuleId>) -> ModuleId {
        let id = ModuleId(self.package.modules.len());
        let root = parent.map_or(id, |parent| self.package.module(parent).root);
        let is_foreign = parent.is_some_and(|parent| self.package.module(parent).is_foreign);
        self.package.modules.push(Module {
            package,
            is_unread: false,
            is_foreign,
            is_body: false,
            parent,
            root,
            names: BTreeMap::new(),
            values: BTreeMap::new(),
            globs: Vec::new(),
            gaps: Vec::new(),
        });
        id
    }

    /// Notes where the items of a module are.
    fn declare(&mut self, module: ModuleId, declared: Declared, is_wanted: bool) {
        self.package.modules[module.0].is_unread = true;
        self.declared.insert(module, declared);
        if is_wanted {
            self.wanted.push(module);
        }
    }

    /// Reads the file of a module, and what it includes.
    fn read_module(&mut self, module: ModuleId) {
        let Some(declared) = self.declared.remove(&module) else {
            return;
        };
        self.package.modules[module.0].is_unread = false;
        if let Some(file) = self.file_of(module, declared) {
            self.files.push(file);
        }
        while let Some(file) = self.files.pop() {
            self.read(file);
        }
    }

    fn file_of(&mut self, module: ModuleId, declared: Declared) -> Option<OpenFile> {
        let (name, folder, written, place, ancestors, doubts) = match declared {
            Declared::Root(path) => {
                return Some(OpenFile {
                    module,
                    folder: path::parent(&path).to_owned(),
                    path,
                    ancestors: Vec::new(),
                    doubts: Vec::new(),
                    content: Content::Items,
                });
            }
            Declared::Module {
                name,
                folder,
                written,
                place,
                ancestors,
                doubts,
            } => (name, folder, written, place, ancestors, doubts),
        };
        match path::find_file(|path| self.is_file(path), &folder, &name, written) {
            Ok(path::Found { path, .. }) if ancestors.contains(&path) => {
                let message = format!("the file `{path}` includes itself");
                self.fatal_error(place, message, "");
                None
            }
            Ok(path::Found { path, folder }) => Some(OpenFile {
                module,
                path,
                folder,
                ancestors,
                doubts,
                content: Content::Items,
            }),
            Err(_) if self.is_built(module) => {
                let message = format!(
                    "the file of the module `{name}` does not exist; the build script may generate it"
                );
                let help = "run `cargo build` first, or move its kinds and markers to another file: they are not read";
                self.report.warning(place, message.as_str(), help);
                let reason = rbuilder_syntax::Diagnostic::error(place.span, message).help(help);
                self.add_gap(module, Gap::of_build(place.file, reason));
                None
            }
            Err(looked_for) => {
                let message = format!("file not found for module `{name}`");
                let help = format!("create {looked_for}");
                // What may be in it is not reported as missing elsewhere.
                let reason = rbuilder_syntax::Diagnostic::error(place.span, message.as_str()).help(&*help);
                self.add_gap(module, Gap::of_build(place.file, reason));
                // In a published package it matters where a type may be in it only.
                if !self.package.member(module).is_published {
                    self.fatal_error(place, message, &help);
                }
                None
            }
        }
    }

    /// Returns whether the package has a build script, which may write the files of modules, but no kind or marker.
    fn is_built(&mut self, module: ModuleId) -> bool {
        self.build_script(module)
            .is_some_and(|script| !writes_markers(&script))
    }

    fn cfg_of(&self, module: ModuleId) -> Rc<Cfg> {
        Rc::clone(&self.cfgs[self.package.module(module).package.0])
    }

    fn is_file(&self, path: &str) -> bool {
        // What is there and cannot be read is complained about when it is read.
        self.sources.text(path).map_or(true, |text| text.is_some())
    }

    /// The build script of a module's package.
    fn build_script(&mut self, module: ModuleId) -> Option<Arc<str>> {
        let path = path::join(&self.package.member(module).folder, "build.rs");
        self.text(&path)
    }

    /// The text of a file that is there. Why one of a published package cannot be read is not reported here.
    fn text(&mut self, path: &str) -> Option<Arc<str>> {
        match self.sources.text(path) {
            Ok(text) => text,
            Err(_) if self.report.is_sealed(path) => None,
            Err(reason) => {
                let outer = self.report.set_concern(Concern::Run);
                self.report.push(Diagnostic::error(
                    FileRange::new(path, 0..0),
                    format!("failed to read the file: {reason}"),
                ));
                self.report.set_concern(outer);
                None
            }
        }
    }
}

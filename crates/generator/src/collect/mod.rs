//! Builds the model of a package from its source.
//!
//! The collector starts at the root of each target, follows `mod` declarations and parses every
//! item with `rbuilder-syntax`. The lexer records each token `CustomResource`, `rbac` and
//! `webhook`, and the collector reports those that no parser has seen, so that no marker is missed
//! silently.

mod attributes;
mod behind_feature;
mod constants;
mod discriminants;
mod file;
mod functions;
mod gaps;
mod handler;
mod imports;
mod include;
mod kind_macros;
mod local;
mod macro_call;
mod macro_rules;
mod markers;
mod merges;
mod modules;
mod need;
mod ownership;
mod patches;
mod path;
mod reach;
mod renamed;
mod seen_marks;
mod tracked;
mod types;
mod values;
mod versioned;
mod wrapped;
mod wrappers;

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
use crate::{Calls, Diagnostic, FileRange, Options, Product};

/// `#[path]` can include one file many times, hence the limit.
const MAX_MODULES: usize = 20_000;

/// Returns true if a build script may generate kinds or markers. A script that only prints the
/// package's CRDs doesn't.
fn writes_markers(script: &str) -> bool {
    ["kopium", "CustomResource", "rbac(", "webhook("]
        .iter()
        .any(|word| {
            let mut found = script.match_indices(word);
            found.any(|(at, _)| !script[at + word.len()..].starts_with(|c: char| c.is_alphanumeric()))
        })
}

/// Reads all modules of the selected targets. In path dependencies, only modules on the path to
/// types that a kind needs are read.
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
        calls: options
            .products
            .contains(&Product::Roles)
            .then_some(options.calls),
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
        macros: BTreeMap::new(),
        kind_errors: kind_macros::KindErrors::default(),
        renamed: Vec::new(),
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
    collector.report_kind_macros();
    collector.report_renamed();
    // Must precede `reach`, which reads modules just for the schemas of kinds.
    collector.skip_kinds_of_other_projects();
    collector.reach();
    // Constants may be in any module, so wait until all of them have been read.
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

/// Which `cfg` conditions hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// Conditions enabled by the options.
    Asked,
    /// All conditions, even mutually exclusive ones.
    Every,
}

pub(crate) struct Collected {
    pub(crate) package: Package,
    pub(crate) selector: Selector,
    pub(crate) files: BTreeSet<String>,
    /// The folders of the selected packages.
    pub(crate) folders: Vec<String>,
}

struct Collector<'a> {
    sources: &'a dyn Sources,
    /// `None` if the caller does not need types from registries.
    published: Option<Published<'a>>,
    build: Build,
    /// Selects the packages whose functions are followed. `None` if no product needs the functions.
    calls: Option<Calls>,
    selector: Selector,
    /// The active `cfg` options, by package.
    cfgs: Vec<Rc<Cfg>>,
    package: Package,
    /// Modules whose files haven't been read yet.
    declared: BTreeMap<ModuleId, Declared>,
    /// Modules to read even if no kind refers to them.
    wanted: Vec<ModuleId>,
    /// Files of the current module still to be read.
    files: Vec<OpenFile>,
    deferred: Vec<constants::Deferred>,
    /// Remaining budget, in bytes, for lexing items in function bodies again.
    local_bytes: usize,
    seen: BTreeSet<String>,
    /// Files that may call `crd()`.
    callers: Vec<String>,
    /// By folder of the package.
    macros: BTreeMap<String, Rc<wrapped::Macros>>,
    /// Held back until all calls are known.
    kind_errors: kind_macros::KindErrors,
    renamed: Vec<renamed::RenamedImport>,
    schema_owners: reach::SchemaOwners,
    report: &'a mut Report,
}

enum Declared {
    Root(String),
    /// `mod name;`
    Module {
        name: String,
        /// The folder to search, unless `#[path]` names the file.
        folder: String,
        written: Option<String>,
        place: Place,
        /// The files that declare or include it, outermost first.
        ancestors: Vec<String>,
        doubts: Vec<Doubt>,
    },
}

/// A file with items of a module. `include!` can give a module more than one.
struct OpenFile {
    module: ModuleId,
    path: String,
    /// Where its child modules are.
    folder: String,
    ancestors: Vec<String>,
    /// `cfg` conditions on the file that can't be evaluated. They affect all of its items.
    doubts: Vec<Doubt>,
    content: Content,
}

/// A diagnostic about a `cfg` condition on a file. Points into the file that declares or includes
/// that file.
type Doubt = (FileId, rbuilder_syntax::Diagnostic);

#[derive(Clone, Copy)]
enum Content {
    Items,
    /// Members of the `impl` or trait that includes the file.
    Members,
}

impl Collector<'_> {
    fn report_types(&mut self) {
        self.report.set_concern(Concern::Part);
        for item in self.package.types.iter().filter(|item| item.is_checked) {
            self.report.add_all(item.file, item.reserved.iter().cloned());
            self.report.add_from_files(&item.doubts);
        }
    }

    fn add_gap(&mut self, module: ModuleId, gap: Gap) -> GapId {
        let id = GapId(self.package.gaps.len());
        self.package.modules[module.0].gaps.push(id);
        self.package.gaps.push(gap);
        id
    }

    /// Reports an error that makes the entire result of the run unreliable.
    fn fatal_error(&mut self, place: Place, message: String, help: &str) {
        let outer = self.report.set_concern(Concern::Run);
        self.report.error(place, message, help);
        self.report.set_concern(outer);
    }

    fn add_package(&mut self, manifest: Manifest) {
        let id = PackageId(self.package.members.len());
        self.cfgs.push(Rc::new(match self.build {
            Build::Asked => Cfg::with_features(manifest.features),
            Build::Every => Cfg::everything(),
        }));
        // If any package turns serde's defaults off, don't let types from registries bring them
        // back.
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

    /// Loads the package of a dependency, or records why that fails. Returns true if the dependency
    /// was changed.
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
                    // A procedural macro exports no types.
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
            functions: BTreeMap::new(),
            globs: Vec::new(),
            gaps: Vec::new(),
        });
        id
    }

    fn declare(&mut self, module: ModuleId, declared: Declared, is_wanted: bool) {
        self.package.modules[module.0].is_unread = true;
        self.declared.insert(module, declared);
        if is_wanted {
            self.wanted.push(module);
        }
    }

    /// Also reads the file of an `include!` in the module.
    fn read_module(&mut self, module: ModuleId) {
        let Some(declared) = self.declared.remove(&module) else {
            return;
        };
        // Clear the flag even if there turns out to be no file, or lookups would try to read the
        // module in a loop.
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
                // With a gap here, types that this file may define aren't reported as missing.
                let reason = rbuilder_syntax::Diagnostic::error(place.span, message.as_str()).help(&*help);
                self.add_gap(module, Gap::of_build(place.file, reason));
                // Users can't be expected to edit a published package, so its file only matters if
                // it may contain a type that a kind needs.
                if !self.package.member(module).is_published {
                    self.fatal_error(place, message, &help);
                }
                None
            }
        }
    }

    /// Returns true if a build script may generate modules of this package, but no kinds or
    /// markers.
    fn is_built(&mut self, module: ModuleId) -> bool {
        self.build_script(module)
            .is_some_and(|script| !writes_markers(&script))
    }

    /// Returns true if a module's functions are followed to find out which permissions they need.
    fn follows_calls(&self, module: ModuleId) -> bool {
        match self.calls {
            None => false,
            Some(Calls::All) => true,
            Some(Calls::OfLibrary) => {
                let mut dependencies = self.package.member(module).dependencies.values();
                dependencies.any(|found| matches!(found, Dependency::Other(name) if name == "rbuilder"))
            }
        }
    }

    fn cfg_of(&self, module: ModuleId) -> Rc<Cfg> {
        Rc::clone(&self.cfgs[self.package.module(module).package.0])
    }

    fn is_file(&self, path: &str) -> bool {
        // Treat unreadable files as existing; reading them later reports the error.
        self.sources.text(path).map_or(true, |text| text.is_some())
    }

    fn build_script(&mut self, module: ModuleId) -> Option<Arc<str>> {
        let path = path::join(&self.package.member(module).folder, "build.rs");
        self.text(&path)
    }

    /// Reports an error if the file can't be read, except in a published package, where it doesn't
    /// matter to the user.
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

//! Looks up a path from a module. Follows Rust's rules for the type namespace, but ignores
//! visibility.

use rbuilder_reader::TypeKind;
use rbuilder_schema::Shape;

use crate::gap::{GapId, GapSort};
use crate::package::{
    AliasId, Dependency, FunctionId, Glob, LockedDependency, ModuleId, Name, Obstacle, Package, PackageId,
    TypeId, ValueId,
};

use super::external;

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Type(TypeId),
    Root(TypeId),
    Alias(AliasId),
    Module,
    /// A type without a derived schema.
    Opaque(Owner),
    /// An item in another crate, by canonical path.
    External(String),
    /// An item in another crate whose source can't be read.
    Unavailable(Obstacle),
    /// Unknown, because the item may be in a gap.
    Hidden(GapId),
    /// Not found. These globs of other crates may define the name.
    Missing(Vec<String>),
}

/// Looks up a path in the type namespace. All modules along the path must have been read.
pub(crate) fn lookup_path(package: &Package, module: ModuleId, segments: &[String]) -> Target {
    let mut search = Search::new(package);
    let step = search.path_or_locked(module, segments);
    if let Some(gap) = search.unread_gap {
        return Target::Hidden(gap);
    }
    match step {
        Some(Step::Module(_)) => match segments {
            // A module does not shadow the primitive type of the same name.
            [name] if let Some(primitive) = external::find_primitive(name) => {
                Target::External(primitive.to_owned())
            }
            _ => Target::Module,
        },
        Some(Step::Type(id)) => Target::Type(id),
        Some(Step::Root(id)) => Target::Root(id),
        Some(Step::Alias(id)) => Target::Alias(id),
        Some(Step::Opaque(module, name)) => Target::Opaque(Owner::Opaque(module, name)),
        Some(Step::External(path)) => Target::External(external::canonical_path(&path)),
        Some(Step::Locked(locked)) => match locked
            .dependency(package)
            .and_then(|found| found.obstacle.clone())
        {
            Some(obstacle) => Target::Unavailable(obstacle),
            None => Target::External(external::canonical_path(&locked.path)),
        },
        None => match search.find_macro() {
            Some(gap) => Target::Hidden(gap),
            None => Target::Missing(search.open_globs),
        },
    }
}

/// The result of a lookup before everything has been read: an item, or what to read first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Unread(ModuleId),
    /// This dependency of the package must be read first, given by its name in the source.
    Locked(PackageId, String),
    Type(TypeId),
    Alias(AliasId),
    /// A type without a derived schema.
    Opaque(Owner),
    /// Anything else, or nothing.
    Other,
}

/// Looks up a path in the modules that have been read so far.
pub(crate) fn find_item(package: &Package, module: ModuleId, segments: &[String]) -> Found {
    let mut search = Search::new(package);
    let step = search.path_or_locked(module, segments);
    // A glob of an unread module may also define the name, so read that module first.
    match (search.unread, step) {
        (Some(id), _) => Found::Unread(id),
        // An object consists of its spec and status.
        (None, Some(Step::Type(id) | Step::Root(id))) => Found::Type(id),
        (None, Some(Step::Alias(id))) => Found::Alias(id),
        (None, Some(Step::Opaque(module, name))) => Found::Opaque(Owner::Opaque(module, name)),
        (None, Some(Step::Locked(locked))) if locked.is_untried(package) => {
            Found::Locked(locked.package, locked.name)
        }
        (None, _) => Found::Other,
    }
}

/// The target of a path in the value namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValueTarget {
    Value(ValueId),
    /// A variant, or an associated function or constant.
    Of(Owner, String),
    /// A type whose name is also its constructor.
    Type(TypeId),
    External(String),
}

/// A type that can have associated functions and constants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    Type(TypeId),
    /// The object that kube generates from this spec.
    Root(TypeId),
    /// A type without a derived schema, by module and name.
    Opaque(ModuleId, String),
}

impl Owner {
    /// Returns true if the owner is in a published package, which users cannot edit.
    pub(crate) fn is_published(&self, package: &Package) -> bool {
        let module = match self {
            Owner::Type(id) | Owner::Root(id) => package.item(*id).module,
            Owner::Opaque(module, _) => *module,
        };
        package.member(module).is_published
    }
}

pub(crate) fn find_value(package: &Package, module: ModuleId, segments: &[String]) -> Option<ValueTarget> {
    Search::new(package).value(module, segments, 0)
}

/// Returns `None` if the source of the type isn't part of the run.
pub(crate) fn find_owner(package: &Package, module: ModuleId, segments: &[String]) -> Option<Owner> {
    let mut search = Search::new(package);
    let step = search.path(module, segments)?;
    search.owner(step, 0)
}

/// The target of a path in a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FunctionTarget {
    Function(FunctionId),
    Of(Owner, String),
    External(String),
}

/// Looks up a function whose calls are followed.
pub(crate) fn find_function(
    package: &Package,
    module: ModuleId,
    segments: &[String],
) -> Option<FunctionTarget> {
    Search::new(package).function(module, segments, 0)
}

#[derive(Clone, Debug)]
enum Step {
    Module(ModuleId),
    Type(TypeId),
    Root(TypeId),
    Alias(AliasId),
    Opaque(ModuleId, String),
    External(Vec<String>),
    Locked(LockedStep),
}

/// A path into a published crate that hasn't been read.
#[derive(Clone, Debug)]
struct LockedStep {
    /// The package with the dependency.
    package: PackageId,
    /// The name of the dependency in that package's source.
    name: String,
    path: Vec<String>,
}

impl LockedStep {
    fn dependency<'a>(&self, package: &'a Package) -> Option<&'a LockedDependency> {
        match package.members[self.package.0].dependencies.get(&self.name)? {
            Dependency::Locked(dependency) => Some(dependency),
            Dependency::Package(_) | Dependency::Other(_) => None,
        }
    }

    fn is_untried(&self, package: &Package) -> bool {
        self.dependency(package)
            .is_some_and(|found| found.obstacle.is_none())
    }
}

/// Limits the steps of one lookup. They multiply if a module with a glob is itself reached through
/// a glob.
const MAX_STEPS: usize = 4096;
/// Limits chains of imports.
const MAX_DEPTH: usize = 100;

struct Search<'a> {
    package: &'a Package,
    steps: usize,
    /// The names being looked up, outermost first. Imports can form cycles.
    looking: Vec<(ModuleId, String)>,
    open_globs: Vec<String>,
    /// Set while looking up the path of an open glob, which must not try open globs again.
    is_opening: bool,
    /// True if globs of published crates count even though these crates haven't been read.
    admits_locked: bool,
    /// The first unread module along the path.
    unread: Option<ModuleId>,
    /// A gap that may declare the name, e.g. a file with a syntax error. Takes precedence over an
    /// item found elsewhere, which may be the wrong one.
    unread_gap: Option<GapId>,
    /// Macros and generated files that may declare these names. Only considered if nothing else is
    /// found.
    macros: Vec<(GapId, String)>,
}

impl<'a> Search<'a> {
    fn new(package: &'a Package) -> Self {
        Search {
            package,
            steps: 0,
            looking: Vec::new(),
            open_globs: Vec::new(),
            is_opening: false,
            admits_locked: false,
            unread: None,
            unread_gap: None,
            macros: Vec::new(),
        }
    }

    /// Looks up a path. If that fails, tries globs of published crates that haven't been read.
    fn path_or_locked(&mut self, module: ModuleId, segments: &[String]) -> Option<Step> {
        let step = self.path(module, segments);
        if step.is_some() || self.unread.is_some() {
            return step;
        }
        // Try these globs last. Otherwise, every `String` in a module with such a glob would load
        // the crate.
        self.admits_locked = true;
        self.path(module, segments)
    }

    fn path(&mut self, module: ModuleId, segments: &[String]) -> Option<Step> {
        let (first, rest) = segments.split_first()?;
        let mut step = match first.as_str() {
            // A leading `::` is followed by a crate name or, in edition 2015, by a path from the
            // crate root.
            "" => {
                let (name, further) = rest.split_first()?;
                return match self.extern_crate(module, name) {
                    Some(step) => self.walk(step, further),
                    None if self.package.member(module).is_2015 => {
                        self.walk(Step::Module(self.package.module(module).root), rest)
                    }
                    None => None,
                };
            }
            "crate" => Step::Module(self.package.module(module).root),
            "self" => Step::Module(self.around(module)),
            "super" => Step::Module(self.package.module(self.around(module)).parent?),
            name => self.unqualified(module, name)?,
        };
        let mut rest = rest;
        while let (Step::Module(id), Some((next, further))) = (&step, rest.split_first())
            && next == "super"
        {
            step = Step::Module(self.package.module(*id).parent?);
            rest = further;
        }
        self.walk(step, rest)
    }

    /// Returns the module itself or, for a body, the module that contains the function.
    fn around(&self, mut module: ModuleId) -> ModuleId {
        while let Some(parent) = self.outside_of_body(module) {
            module = parent;
        }
        module
    }

    /// Returns the parent of a body, in which names not declared by the body are looked up.
    fn outside_of_body(&self, module: ModuleId) -> Option<ModuleId> {
        let this = self.package.module(module);
        this.parent.filter(|_| this.is_body)
    }

    /// Looks up a path in the value namespace: a function, a constant, a variant or a constructor.
    fn value(&mut self, module: ModuleId, segments: &[String], depth: usize) -> Option<ValueTarget> {
        let (last, prefix) = segments.split_last()?;
        if depth > MAX_DEPTH {
            return None;
        }
        if prefix.is_empty() {
            let found = self.value_in(module, last, depth);
            return match self.outside_of_body(module) {
                Some(parent) => found.or_else(|| self.value(parent, segments, depth + 1)),
                None => found,
            };
        }
        // The name of a type can also be its constructor.
        if let Some(Step::Type(id)) = self.path(module, segments) {
            return Some(ValueTarget::Type(id));
        }
        match self.path(module, prefix)? {
            Step::Module(id) => self.value_in(id, last, depth),
            Step::External(mut path) | Step::Locked(LockedStep { mut path, .. }) => {
                path.push(last.clone());
                Some(ValueTarget::External(external::canonical_path(&path)))
            }
            step => {
                let owner = self.owner(step, depth)?;
                Some(ValueTarget::Of(owner, last.clone()))
            }
        }
    }

    fn function(&mut self, module: ModuleId, segments: &[String], depth: usize) -> Option<FunctionTarget> {
        let (last, prefix) = segments.split_last()?;
        if depth > MAX_DEPTH {
            return None;
        }
        if prefix.is_empty() {
            return self.function_in(module, last, depth);
        }
        match self.path(module, prefix)? {
            Step::Module(id) => self.function_in(id, last, depth),
            Step::External(mut path) | Step::Locked(LockedStep { mut path, .. }) => {
                path.push(last.clone());
                Some(FunctionTarget::External(external::canonical_path(&path)))
            }
            step => {
                let owner = self.owner(step, depth)?;
                Some(FunctionTarget::Of(owner, last.clone()))
            }
        }
    }

    fn function_in(&mut self, module: ModuleId, name: &str, depth: usize) -> Option<FunctionTarget> {
        self.steps += 1;
        if depth > MAX_DEPTH || self.steps > MAX_STEPS {
            return None;
        }
        let package = self.package;
        let this = package.module(module);
        if let Some(id) = this.functions.get(name) {
            return Some(FunctionTarget::Function(*id));
        }
        if let Some(Name::Import(path)) = this.names.get(name) {
            return match path.len() {
                1 => None,
                _ => self.function(module, path, depth + 1),
            };
        }
        this.globs
            .iter()
            .find_map(|glob| match self.path(module, &glob.path)? {
                Step::Module(id) if id != module => self.function_in(id, name, depth + 1),
                _ => None,
            })
    }

    fn owner(&mut self, step: Step, depth: usize) -> Option<Owner> {
        match step {
            Step::Type(id) => Some(Owner::Type(id)),
            Step::Root(id) => Some(Owner::Root(id)),
            Step::Opaque(module, name) => Some(Owner::Opaque(module, name)),
            Step::Alias(id) if depth < MAX_DEPTH => {
                let alias = self.package.alias(id);
                let TypeKind::Path(segments, _) = &alias.target.kind else {
                    return None;
                };
                let step = self.path(alias.module, segments)?;
                self.owner(step, depth + 1)
            }
            _ => None,
        }
    }

    fn value_in(&mut self, module: ModuleId, name: &str, depth: usize) -> Option<ValueTarget> {
        self.steps += 1;
        if depth > MAX_DEPTH || self.steps > MAX_STEPS {
            return None;
        }
        let package = self.package;
        let this = package.module(module);
        if let Some(id) = this.values.get(name) {
            return Some(ValueTarget::Value(*id));
        }
        match this.names.get(name) {
            Some(Name::Type(id)) => return Some(ValueTarget::Type(*id)),
            Some(Name::Import(path)) if path.len() > 1 => return self.value(module, path, depth + 1),
            _ => {}
        }
        // Better to find nothing than a wrong value, so skip globs whose condition can't be
        // evaluated.
        let mut decided = this.globs.iter().filter(|glob| glob.undecided.is_none());
        decided.find_map(|glob| match self.path(module, &glob.path)? {
            Step::Module(id) if id != module => self.value_in(id, name, depth + 1),
            Step::Type(id) if self.has_variant(id, name) => {
                Some(ValueTarget::Of(Owner::Type(id), name.to_owned()))
            }
            _ => None,
        })
    }

    fn has_variant(&self, id: TypeId, name: &str) -> bool {
        let model = self.package.item(id).model.as_ref();
        model.is_some_and(|model| match &model.container.shape {
            Shape::Enum { variants, .. } => variants.iter().any(|variant| variant.ident == name),
            Shape::Object(_) | Shape::Transparent(_) => false,
        })
    }

    fn walk(&mut self, mut step: Step, segments: &[String]) -> Option<Step> {
        for segment in segments {
            step = match step {
                Step::Module(id) => self.member(id, segment)?,
                Step::External(mut path) => {
                    path.push(segment.clone());
                    Step::External(path)
                }
                Step::Locked(mut locked) => {
                    locked.path.push(segment.clone());
                    Step::Locked(locked)
                }
                Step::Type(_) | Step::Root(_) | Step::Alias(_) | Step::Opaque(..) => return None,
            };
        }
        Some(step)
    }

    /// Looks up a name in Rust's order: in the module and its globs, then among the crates, in the
    /// prelude, and among the primitive types.
    fn unqualified(&mut self, module: ModuleId, name: &str) -> Option<Step> {
        if let Some(parent) = self.outside_of_body(module) {
            let found = self.member(module, name);
            let found = found.or_else(|| self.unqualified(parent, name));
            return found.or_else(|| self.through_open_globs(module, name));
        }
        self.member(module, name)
            .or_else(|| self.extern_crate(module, name))
            .or_else(|| external::prelude_path(name).map(|path| Step::External(split(path))))
            .or_else(|| self.through_open_globs(module, name))
    }

    /// Looks up a name that the module declares, imports, or gets from a glob.
    fn member(&mut self, module: ModuleId, name: &str) -> Option<Step> {
        self.steps += 1;
        let is_circle = self
            .looking
            .iter()
            .any(|(at, wanted)| *at == module && wanted == name);
        if self.package.module(module).is_unread {
            self.unread.get_or_insert(module);
            return None;
        }
        if is_circle || self.looking.len() >= MAX_DEPTH || self.steps > MAX_STEPS {
            return None;
        }
        self.looking.push((module, name.to_owned()));
        let found = self.declared(module, name);
        self.looking.pop();
        found
    }

    fn declared(&mut self, module: ModuleId, name: &str) -> Option<Step> {
        let package = self.package;
        self.note_undecided(module, name);
        Some(match package.module(module).names.get(name) {
            Some(Name::Module(id)) => Step::Module(*id),
            Some(Name::Type(id)) => Step::Type(*id),
            Some(Name::Root(id)) => Step::Root(*id),
            Some(Name::Alias(id)) => Step::Alias(*id),
            Some(Name::Opaque) => Step::Opaque(module, name.to_owned()),
            Some(Name::Import(path)) => return self.import(module, name, path),
            None => {
                self.note_gaps(module, name);
                return self.through_globs(module, name);
            }
        })
    }

    /// Records an import of this name under a condition that can't be evaluated: another import may
    /// define the name instead.
    fn note_undecided(&mut self, module: ModuleId, name: &str) {
        let package = self.package;
        let mut gaps = package.module(module).gaps.iter();
        let undecided = gaps.find(|id| {
            let gap = package.gap(**id);
            gap.sort == GapSort::Undecided && gap.may_declare(name)
        });
        self.unread_gap = self.unread_gap.or(undecided.copied());
    }

    fn note_gaps(&mut self, module: ModuleId, name: &str) {
        let package = self.package;
        for id in &package.module(module).gaps {
            let gap = package.gap(*id);
            match gap.sort {
                GapSort::Unread | GapSort::Kind if gap.may_declare(name) => {
                    self.unread_gap.get_or_insert(*id);
                }
                // Whether they declare the name is checked in `find_macro`, and only if nothing
                // else is found.
                GapSort::Macro | GapSort::Built => self.macros.push((*id, name.to_owned())),
                GapSort::Unread | GapSort::Kind | GapSort::Undecided => {}
            }
        }
    }

    fn find_macro(&self) -> Option<GapId> {
        let mut macros = self.macros.iter();
        let found = macros.find(|(id, name)| self.package.gap(*id).may_declare(name));
        found.map(|(id, _)| *id)
    }

    fn import(&mut self, module: ModuleId, name: &str, path: &[String]) -> Option<Step> {
        match path.split_first() {
            Some((first, rest)) if first == name => {
                // `use name;` does not declare the name itself, so `name` must be a crate or come
                // from a glob.
                let step = self
                    .extern_crate(module, first)
                    .or_else(|| self.through_globs(module, name))?;
                self.walk(step, rest)
            }
            Some((first, _)) if self.package.member(module).is_2015 && is_name(first) => {
                let root = self.package.module(module).root;
                // In edition 2015, imports start at the crate root. Fall back to a normal lookup,
                // which also finds crates.
                self.walk(Step::Module(root), path)
                    .or_else(|| self.path(module, path))
            }
            _ => self.path(module, path),
        }
    }

    /// Looks up a name in the globs of a module.
    ///
    /// Results from a glob whose condition can't be evaluated are uncertain. This doesn't matter if
    /// another glob has the name, too: Rust rejects ambiguous globs, so both lead to the same item.
    fn through_globs(&mut self, module: ModuleId, name: &str) -> Option<Step> {
        let globs = &self.package.module(module).globs;
        let decided = globs.iter().filter(|glob| glob.undecided.is_none());
        if let Some(step) = self.through(decided, module, name) {
            return Some(step);
        }
        let undecided = globs.iter().filter_map(|glob| Some((glob, glob.undecided?)));
        for (glob, gap) in undecided {
            if let Some(step) = self.through(std::iter::once(glob), module, name) {
                self.unread_gap.get_or_insert(gap);
                return Some(step);
            }
        }
        None
    }

    /// Prefers a module that declares the name to one that imports it. In that case the import must
    /// be private, because Rust rejects ambiguous globs.
    fn through<'g>(
        &mut self,
        globs: impl Iterator<Item = &'g Glob>,
        module: ModuleId,
        name: &str,
    ) -> Option<Step> {
        let package = self.package;
        let mut imported = None;
        let mut locked = None;
        for glob in globs {
            let (step, is_import) = match self.path(module, &glob.path) {
                // The prelude wins over globs of published crates, whether or not these have been
                // read. The limit on steps stops recursive globs.
                Some(Step::Module(id))
                    if self.is_of_published(id, module) && external::prelude_path(name).is_some() =>
                {
                    (None, false)
                }
                Some(Step::Locked(mut step)) if self.admits_locked => {
                    step.path.push(name.to_owned());
                    locked = locked.or(Some(Step::Locked(step)));
                    (None, false)
                }
                Some(Step::Module(id)) if id != module => {
                    let declared = package.module(id).names.get(name);
                    (self.member(id, name), matches!(declared, Some(Name::Import(_))))
                }
                Some(Step::External(path)) => (self.kubernetes(path, name), false),
                _ => (None, false),
            };
            if is_import {
                imported = imported.or(step);
            } else if step.is_some() {
                return step;
            }
        }
        imported.or(locked)
    }

    /// Returns true if `id` is in a published package, and not in the same package as `other`.
    fn is_of_published(&self, id: ModuleId, other: ModuleId) -> bool {
        self.package.member(id).is_published
            && self.package.module(id).package != self.package.module(other).package
    }

    /// Looks up a name in a module of k8s-openapi. All of its types are known, so a glob works like
    /// an explicit import.
    fn kubernetes(&self, mut path: Vec<String>, name: &str) -> Option<Step> {
        path.push(name.to_owned());
        let canonical = external::canonical_path(&path);
        let has = self.package.kubernetes.has(&canonical);
        has.then_some(Step::External(path))
    }

    /// Looks up a name in globs of other crates, which can only yield known types.
    fn through_open_globs(&mut self, module: ModuleId, name: &str) -> Option<Step> {
        // The path of a glob may start with a name that only this glob could import.
        if std::mem::replace(&mut self.is_opening, true) {
            return None;
        }
        let package = self.package;
        let mut globs = package.module(module).globs.iter();
        let found = globs.find_map(|glob| {
            let step = self.path(module, &glob.path);
            let found = self.through_open_glob(step, &glob.path, name);
            if found.is_some() {
                self.unread_gap = self.unread_gap.or(glob.undecided);
            }
            found
        });
        self.is_opening = false;
        found
    }

    fn through_open_glob(&mut self, step: Option<Step>, glob: &[String], name: &str) -> Option<Step> {
        let mut path = match step {
            Some(Step::External(path)) => path,
            None => {
                self.open_globs.push(glob.join("::"));
                return None;
            }
            Some(_) => return None,
        };
        // All types of std and of k8s-openapi's modules are known, so these globs cannot hide
        // anything.
        let is_known = self.package.kubernetes.has(&external::canonical_path(&path));
        if !is_known && path.first().is_some_and(|first| first != "std") {
            self.open_globs.push(path.join("::"));
        }
        path.push(name.to_owned());
        external::is_read(&external::canonical_path(&path)).then_some(Step::External(path))
    }

    fn extern_crate(&self, module: ModuleId, name: &str) -> Option<Step> {
        let member = self.package.member(module);
        // Binaries and examples refer to the library of their own package by name.
        if let Some((library, root)) = &member.library
            && library == name
        {
            return Some(Step::Module(*root));
        }
        let path = match (name, member.dependencies.get(name)) {
            // `std` re-exports `core` and `alloc` under the same paths.
            ("std" | "core" | "alloc", _) => "std",
            (_, Some(Dependency::Other(path))) => path,
            (_, Some(Dependency::Package(index))) => {
                let (_, root) = self.package.members[index.0].library.as_ref()?;
                return Some(Step::Module(*root));
            }
            (_, Some(Dependency::Locked(locked))) => {
                return Some(Step::Locked(LockedStep {
                    package: self.package.module(module).package,
                    name: name.to_owned(),
                    path: vec![locked.name.clone()],
                }));
            }
            (_, None) => return None,
        };
        Some(Step::External(vec![path.to_owned()]))
    }
}

/// Excludes keywords and the empty segment of a leading `::`.
fn is_name(segment: &str) -> bool {
    !matches!(segment, "" | "crate" | "self" | "super")
}

fn split(path: &str) -> Vec<String> {
    path.split("::").map(str::to_owned).collect()
}

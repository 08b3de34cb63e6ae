//! Resolves the leading path segments that name modules of the package.

use std::cell::RefCell;

use super::modules::{Module, ModuleId, Modules, Name, Scope, UsePath};

#[derive(Clone, Copy, Debug)]
pub(super) struct Hop {
    pub(super) module: ModuleId,
    pub(super) how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Start,
    /// Declared in the module of the preceding segment, or in the module that contains the path.
    Child,
    Import,
    Glob(ModuleId),
}

/// Where a path is written. Blocks are ordered from outermost to innermost.
#[derive(Clone, Copy)]
pub(super) struct Place<'p> {
    pub(super) module: ModuleId,
    pub(super) blocks: &'p [Scope],
}

const DEEPEST: usize = 64;

pub(super) struct Resolver<'m, 't> {
    modules: &'m Modules<'t>,
    /// Imports being resolved, by module and name. Breaks cycles, e.g. a `use self::a as b` that
    /// refers to another import of `b`.
    open: RefCell<Vec<(ModuleId, String)>>,
}

impl<'m, 't> Resolver<'m, 't> {
    pub(super) fn new(modules: &'m Modules<'t>) -> Self {
        Resolver {
            modules,
            open: RefCell::default(),
        }
    }

    fn module(&self, id: ModuleId) -> &Module {
        &self.modules.all[id]
    }

    pub(super) fn walk(&self, place: Place<'_>, is_global: bool, segments: &[&str]) -> Vec<Hop> {
        let mut hops: Vec<Hop> = Vec::new();
        for segment in segments {
            let next = match (hops.last(), *segment) {
                (None, name) if is_global => self.find_crate(place.module, name),
                (None, "crate") => Some((self.module(place.module).root, How::Start)),
                (None, "self") => Some((place.module, How::Start)),
                (None, "super") => self.parent(place.module),
                (Some(last), "super") if last.how == How::Start => self.parent(last.module),
                (Some(last), "self") => Some((last.module, How::Start)),
                (None, name) => self.find_in_place(place, name),
                (Some(last), name) => self.find_in_module(last.module, name),
            };
            match next {
                Some((module, how)) => hops.push(Hop { module, how }),
                None => break,
            }
        }
        hops
    }

    fn parent(&self, module: ModuleId) -> Option<(ModuleId, How)> {
        Some((self.module(module).parent?, How::Start))
    }

    /// The library, if a path in another crate refers to it.
    fn find_crate(&self, from: ModuleId, name: &str) -> Option<(ModuleId, How)> {
        let root = self.modules.library_root?;
        let is_library = name == self.modules.library && !self.module(from).is_library;
        is_library.then_some((root, How::Start))
    }

    fn find_in_place(&self, place: Place<'_>, name: &str) -> Option<(ModuleId, How)> {
        for (depth, block) in place.blocks.iter().enumerate().rev() {
            let outer = Place {
                blocks: &place.blocks[..depth + 1],
                ..place
            };
            if let Some(found) = self.find_in_scope(outer, block, name) {
                return found;
            }
        }
        let outside = Place { blocks: &[], ..place };
        match self.find_in_scope(outside, &self.module(place.module).scope, name) {
            Some(found) => found,
            None => self.find_crate(place.module, name),
        }
    }

    fn find_in_module(&self, module: ModuleId, name: &str) -> Option<(ModuleId, How)> {
        let place = Place { module, blocks: &[] };
        self.find_in_scope(place, &self.module(module).scope, name)
            .flatten()
    }

    /// Looks up a name in a scope. `None` means not found, so the caller tries the next scope;
    /// `Some(None)` means that the name refers to something other than a module.
    fn find_in_scope(&self, place: Place<'_>, scope: &Scope, name: &str) -> Option<Option<(ModuleId, How)>> {
        let key = (place.module, format!("{}:{name}", place.blocks.len()));
        // Imports may be cyclic.
        if self.open.borrow().contains(&key) || self.open.borrow().len() > DEEPEST {
            return None;
        }
        self.open.borrow_mut().push(key);
        let found = match scope.names.get(name) {
            Some(Name::Child(module)) => Some(Some((*module, How::Child))),
            Some(Name::Type) => Some(None),
            Some(Name::Use(path)) => Some(self.resolve(place, path).map(|module| (module, How::Import))),
            None => self.find_in_globs(place, scope, name).map(Some),
        };
        self.open.borrow_mut().pop();
        found
    }

    fn find_in_globs(&self, place: Place<'_>, scope: &Scope, name: &str) -> Option<(ModuleId, How)> {
        scope.globs.iter().find_map(|glob| {
            let globbed = self.resolve(place, glob)?;
            let (module, how) = self.find_in_module(globbed, name)?;
            // If the name is imported there, the import is rewritten instead.
            let how = if how == How::Child {
                How::Glob(globbed)
            } else {
                how
            };
            Some((module, how))
        })
    }

    pub(super) fn resolve(&self, place: Place<'_>, path: &UsePath) -> Option<ModuleId> {
        let segments: Vec<&str> = path.segments.iter().map(String::as_str).collect();
        let hops = self.walk(place, path.is_global, &segments);
        let last = hops.last()?;
        (hops.len() == segments.len()).then_some(last.module)
    }

    /// Whether a place declares or imports a name. Ignores glob imports.
    pub(super) fn is_bound(&self, place: Place<'_>, name: &str) -> bool {
        let mut scopes = place.blocks.iter().chain([&self.module(place.module).scope]);
        scopes.any(|scope| scope.names.contains_key(name))
    }

    /// Whether names in a place are looked up in `module`, i.e. the place is in `module` or
    /// glob-imports it.
    pub(super) fn sees_names_of(&self, place: Place<'_>, module: &[String]) -> bool {
        let is_it = |id: ModuleId| self.module(id).is_library && self.module(id).path == module;
        let scopes = place.blocks.iter().chain([&self.module(place.module).scope]);
        let mut globs = scopes.flat_map(|scope| &scope.globs);
        is_it(place.module) || globs.any(|glob| self.resolve(place, glob).is_some_and(is_it))
    }
}

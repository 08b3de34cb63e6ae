//! One path in one module: Rust's rules for the type namespace, without visibility.

use crate::package::{AliasId, ModuleId, Name, Package, TypeId};

use super::external;

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Type(TypeId),
    /// The object that kube makes of this spec.
    Root(TypeId),
    Alias(AliasId),
    Module,
    Opaque,
    /// A path into another crate, by its canonical name.
    External(String),
    /// Nothing; with the globs over other crates that might have brought it in.
    Missing(Vec<String>),
}

/// Follows a path from a module.
pub(crate) fn lookup(package: &Package, module: ModuleId, segments: &[String]) -> Target {
    let mut search = Search {
        package,
        steps: 0,
        looking: Vec::new(),
        open_globs: Vec::new(),
    };
    match search.path(module, segments) {
        Some(Step::Module(_)) => Target::Module,
        Some(Step::Type(id)) => Target::Type(id),
        Some(Step::Root(id)) => Target::Root(id),
        Some(Step::Alias(id)) => Target::Alias(id),
        Some(Step::Opaque) => Target::Opaque,
        Some(Step::External(path)) => Target::External(external::canonical(&path)),
        None => Target::Missing(search.open_globs),
    }
}

#[derive(Clone, Debug)]
enum Step {
    Module(ModuleId),
    Type(TypeId),
    Root(TypeId),
    Alias(AliasId),
    Opaque,
    External(Vec<String>),
}

/// Globs over modules with globs can multiply; no honest name takes so many steps.
const MAX_STEPS: usize = 4096;
/// Imports that lead to imports.
const MAX_DEPTH: usize = 100;

struct Search<'a> {
    package: &'a Package,
    steps: usize,
    /// The names being looked for, outermost first: a circle of imports leads nowhere.
    looking: Vec<(ModuleId, String)>,
    open_globs: Vec<String>,
}

impl Search<'_> {
    fn path(&mut self, module: ModuleId, segments: &[String]) -> Option<Step> {
        let (first, rest) = segments.split_first()?;
        let mut step = match first.as_str() {
            "" => {
                let (name, rest) = rest.split_first()?;
                let step = self.extern_crate(name)?;
                return self.walk(step, rest);
            }
            "crate" => Step::Module(self.package.module(module).root),
            "self" => Step::Module(module),
            "super" => Step::Module(self.package.module(module).parent?),
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

    fn walk(&mut self, mut step: Step, segments: &[String]) -> Option<Step> {
        for segment in segments {
            step = match step {
                Step::Module(id) => self.member(id, segment)?,
                Step::External(mut path) => {
                    path.push(segment.clone());
                    Step::External(path)
                }
                Step::Type(_) | Step::Root(_) | Step::Alias(_) | Step::Opaque => return None,
            };
        }
        Some(step)
    }

    /// A name without a path: the module's own, what its globs bring in, a crate, the prelude, a primitive.
    fn unqualified(&mut self, module: ModuleId, name: &str) -> Option<Step> {
        self.member(module, name)
            .or_else(|| self.extern_crate(name))
            .or_else(|| external::prelude(name).map(|path| Step::External(split(path))))
            .or_else(|| self.through_open_globs(module, name))
    }

    /// A name that a module declares, imports, or has from a glob.
    fn member(&mut self, module: ModuleId, name: &str) -> Option<Step> {
        self.steps += 1;
        let is_circle = self
            .looking
            .iter()
            .any(|(at, wanted)| *at == module && wanted == name);
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
        Some(match package.module(module).names.get(name) {
            Some(Name::Module(id)) => Step::Module(*id),
            Some(Name::Type(id)) => Step::Type(*id),
            Some(Name::Root(id)) => Step::Root(*id),
            Some(Name::Alias(id)) => Step::Alias(*id),
            Some(Name::Opaque) => Step::Opaque,
            Some(Name::Import(path)) => return self.import(module, name, path),
            None => return self.through_globs(module, name),
        })
    }

    /// `use name;` in a module that declares nothing of that name itself means the crate.
    fn import(&mut self, module: ModuleId, name: &str, path: &[String]) -> Option<Step> {
        match path.split_first() {
            Some((first, rest)) if first == name => {
                let step = self
                    .extern_crate(first)
                    .or_else(|| self.through_globs(module, name))?;
                self.walk(step, rest)
            }
            _ => self.path(module, path),
        }
    }

    fn through_globs(&mut self, module: ModuleId, name: &str) -> Option<Step> {
        let package = self.package;
        for glob in &package.module(module).globs {
            // A glob over the module itself, or over one that is reached through the glob, ends by the step count.
            if let Some(Step::Module(id)) = self.path(module, glob)
                && id != module
                && let Some(step) = self.member(id, name)
            {
                return Some(step);
            }
        }
        None
    }

    /// What a glob over another crate brings in is known only for the types that are known at all.
    fn through_open_globs(&mut self, module: ModuleId, name: &str) -> Option<Step> {
        let package = self.package;
        for glob in &package.module(module).globs {
            if let Some(Step::External(mut path)) = self.path(module, glob) {
                self.open_globs.push(path.join("::"));
                path.push(name.to_owned());
                if external::is_read(&external::canonical(&path)) {
                    return Some(Step::External(path));
                }
            }
        }
        None
    }

    fn extern_crate(&self, name: &str) -> Option<Step> {
        if let Some((library, root)) = &self.package.library
            && library == name
        {
            return Some(Step::Module(*root));
        }
        let path = match name {
            "std" | "core" | "alloc" => "std",
            _ => self.package.dependencies.get(name)?,
        };
        Some(Step::External(vec![path.to_owned()]))
    }
}

fn split(path: &str) -> Vec<String> {
    path.split("::").map(str::to_owned).collect()
}

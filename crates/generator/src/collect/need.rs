//! A quick check whether any schema may need a package from a registry.
//!
//! Few projects need one, and following every type of every kind to find out would take a tenth of
//! the run. Comparing names instead can report a need that doesn't exist, but never misses one.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_reader::{TypeKind, TypeRef};
use rbuilder_syntax::Type;

use crate::gap::words;
use crate::package::{Alias, Dependency, ModuleId, Name, Package};

pub(super) fn may_need_published(package: &Package) -> bool {
    let mut dependencies = package.members.iter().flat_map(|member| &member.dependencies);
    if !dependencies.any(|(_, dependency)| is_locked(Some(dependency))) {
        return false;
    }
    let mut used = find_used_names(package);
    // An import can go through several modules, rename the item, or import a module.
    let mut hops = BTreeSet::new();
    for module in &package.modules {
        for (name, path) in imports(&module.names) {
            if let Some((last, before)) = path.split_last() {
                hops.extend(before.iter().map(String::as_str));
                hops.extend((last != name).then_some(last.as_str()));
            }
        }
        hops.extend(
            module
                .globs
                .iter()
                .flat_map(|glob| &glob.path)
                .map(String::as_str),
        );
    }
    add_aliases(package, &mut used, &hops);
    let mut dependencies = package.members.iter().flat_map(|member| &member.dependencies);
    if dependencies.any(|(name, dependency)| is_locked(Some(dependency)) && used.contains(name.as_str())) {
        return true;
    }
    hops.append(&mut used);
    package.modules.iter().enumerate().any(|(at, module)| {
        let dependencies = &package.member(ModuleId(at)).dependencies;
        let begins_locked = |path: &[String]| {
            let first = path.iter().find(|segment| !segment.is_empty());
            first.is_some_and(|first| is_locked(dependencies.get(first)))
        };
        let mut imports = imports(&module.names);
        // Skip imports with the name of a package, such as `anyhow::anyhow`. A path starting with
        // this name means the package itself, which was checked above.
        imports.any(|(name, path)| {
            begins_locked(path) && hops.contains(name.as_str()) && !is_locked(dependencies.get(name))
        }) || module.globs.iter().any(|glob| begins_locked(&glob.path))
    })
}

/// The status of a kind and the defaults of type parameters are types as well.
pub(super) fn types_of(model: &Type) -> impl Iterator<Item = &TypeRef> {
    let kind = model.custom_resource.as_ref();
    let defaults = model.generics.iter().filter_map(|(_, default)| default.as_ref());
    model
        .slots
        .iter()
        .chain(kind.and_then(|kind| kind.status.as_ref()))
        .chain(defaults)
}

fn is_locked(dependency: Option<&Dependency>) -> bool {
    matches!(dependency, Some(Dependency::Locked(_)))
}

fn imports(names: &BTreeMap<String, Name>) -> impl Iterator<Item = (&String, &Vec<String>)> {
    names.iter().filter_map(|(name, meaning)| match meaning {
        Name::Import(path) => Some((name, path)),
        _ => None,
    })
}

/// Adds the names that the used aliases refer to. Aliases can use other aliases, so repeat until
/// there are no new names.
fn add_aliases<'a>(package: &'a Package, used: &mut BTreeSet<&'a str>, hops: &BTreeSet<&str>) {
    let names = package.modules.iter().flat_map(|module| &module.names);
    let mut open: Vec<(&str, &Alias)> = names
        .filter_map(|(name, meaning)| match meaning {
            Name::Alias(id) => Some((name.as_str(), package.alias(*id))),
            _ => None,
        })
        .collect();
    loop {
        let (found, rest): (Vec<_>, Vec<_>) = open
            .into_iter()
            .partition(|(name, _)| used.contains(name) || hops.contains(name));
        if found.is_empty() {
            return;
        }
        for (_, alias) in found {
            let defaults = alias.generics.iter().filter_map(|(_, default)| default.as_ref());
            let types = defaults.chain([&alias.target]);
            types.for_each(|ty| add_names(ty, used));
        }
        open = rest;
    }
}

/// Returns the names in all field types, and all words of functions that return schemas.
fn find_used_names(package: &Package) -> BTreeSet<&str> {
    let mut used = BTreeSet::new();
    for model in package.types.iter().filter_map(|item| item.model.as_ref()) {
        types_of(model).for_each(|ty| add_names(ty, &mut used));
        for function in model.schema_functions.values() {
            used.extend(words(&function.path));
        }
    }
    let functions = package.values.iter().filter(|value| value.returns_schema);
    used.extend(functions.flat_map(|function| words(&function.body)));
    used
}

fn add_names<'a>(ty: &'a TypeRef, used: &mut BTreeSet<&'a str>) {
    match &ty.kind {
        TypeKind::Path(path, args) => {
            used.extend(path.iter().map(String::as_str));
            args.iter().for_each(|arg| add_names(arg, used));
        }
        TypeKind::Array(item, _) => add_names(item, used),
        TypeKind::Tuple(items) => items.iter().for_each(|item| add_names(item, used)),
        TypeKind::Other(_) => {}
    }
}

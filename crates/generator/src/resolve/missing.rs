//! Help for types that can't be found, because of a missing import or a misspelled name.
//!
//! The name is looked up in the modules of the run and among the types with a built-in schema, then
//! compared with the names in scope. Only imports from crates that the package depends on are
//! suggested.

use rbuilder_diagnostic::suggest::{find_nearest, is_one_slip, list_names};

use crate::gap::{GapId, GapSort};
use crate::package::{Dependency, Module, ModuleId, Name, Package};

use super::external;
use super::lookup::{Owner, Target, lookup_path};

/// Maximum number of suggested imports.
const MAX_IMPORTS: usize = 2;

/// Modules of other crates with built-in schemas, the most likely ones first. Types of k8s-openapi
/// with generated schemas have a separate lookup.
const KNOWN_MODULES: &[&str] = &[
    "std::collections",
    "std::sync",
    "std::rc",
    "std::borrow",
    "std::num",
    "std::net",
    "std::path",
    "kube::core",
    "serde_json",
    "k8s_openapi",
    "k8s_openapi::apimachinery::pkg::api::resource",
    "k8s_openapi::apimachinery::pkg::util::intstr",
    "k8s_openapi::apimachinery::pkg::runtime",
    "k8s_openapi::apimachinery::pkg::apis::meta::v1",
    "jiff",
    "chrono",
    "url",
    "uuid",
    "semver",
    "ipnet",
    "indexmap",
    "ordered_float",
];

/// Types that are common in APIs. A misspelling of one of them is recognized even without an
/// import.
const COMMON: &[&str] = &[
    "BTreeMap",
    "BTreeSet",
    "Condition",
    "Duration",
    "HashMap",
    "HashSet",
    "IntOrString",
    "LabelSelector",
    "Option",
    "PodTemplateSpec",
    "Quantity",
    "String",
];

/// Returns an unread part of the source that mentions the name. The type may be declared or
/// imported there, so the syntax error is a better report than a missing type.
pub(super) fn find_unread_mention(package: &Package, segments: &[String]) -> Option<GapId> {
    let name = segments.last()?;
    let own = package.modules.iter().filter(|module| !module.is_foreign);
    let mut gaps = own.flat_map(|module| &module.gaps);
    let found = gaps.find(|id| {
        let gap = package.gap(**id);
        gap.sort == GapSort::Unread && gap.mentions(name)
    });
    found.copied()
}

pub(super) fn suggest_type(package: &Package, module: ModuleId, segments: &[String]) -> Option<String> {
    match segments {
        [name] => suggest_crate_of_import(package, module, name)
            .or_else(|| suggest_import(package, module, name))
            .or_else(|| suggest_name(package, module, name)),
        [first, ..] => suggest_crate(package, module, first),
        [] => None,
    }
}

fn suggest_crate_of_import(package: &Package, module: ModuleId, name: &str) -> Option<String> {
    match package.module(module).names.get(name)? {
        Name::Import(path) => suggest_crate(package, module, path.first()?),
        _ => None,
    }
}

fn suggest_crate(package: &Package, module: ModuleId, name: &str) -> Option<String> {
    let krate = match name {
        "k8s_openapi" | "ordered_float" => name.replace('_', "-"),
        name => name.to_owned(),
    };
    is_missing_crate(package, module, name)
        .then(|| format!("add the crate `{krate}` to `[dependencies]` in Cargo.toml"))
}

/// Returns true if the crate has built-in schemas, but isn't a dependency of the package.
fn is_missing_crate(package: &Package, module: ModuleId, name: &str) -> bool {
    let mut known = KNOWN_MODULES.iter().map(|path| path.split("::").next());
    name != "std" && known.any(|known| known == Some(name)) && !depends_on(package, module, name)
}

fn depends_on(package: &Package, module: ModuleId, name: &str) -> bool {
    package.member(module).dependencies.contains_key(name)
}

fn suggest_import(package: &Package, module: ModuleId, name: &str) -> Option<String> {
    let mut imports = find_declared(package, module, name);
    if imports.is_empty() {
        imports = find_built_in(package, module, name);
    }
    imports.truncate(MAX_IMPORTS);
    let lines: Vec<String> = imports.iter().map(|path| format!("`use {path};`")).collect();
    (!lines.is_empty()).then(|| format!("add {}", lines.join(" or ")))
}

/// Returns the paths of the types with this name that are nearest to the module.
fn find_declared(package: &Package, from: ModuleId, name: &str) -> Vec<String> {
    let here = path_below_root(package, from).unwrap_or_default();
    let mut found: Vec<(usize, String)> = Vec::new();
    for (index, module) in package.modules.iter().enumerate() {
        let id = ModuleId(index);
        let Some(target) = declared_target(id, module, name) else {
            continue;
        };
        let Some(place) = find_reachable(package, from, id, name, &target) else {
            continue;
        };
        let Some((root, below)) = path_from(package, from, place) else {
            continue;
        };
        let is_same_target = root == "crate";
        let shared = here
            .iter()
            .zip(&below)
            .take_while(|(one, two)| one == two)
            .count();
        let distance = if is_same_target {
            here.len() + below.len() - 2 * shared
        } else {
            usize::MAX
        };
        let segments = std::iter::once(root).chain(below).chain([name.to_owned()]);
        found.push((distance, segments.collect::<Vec<_>>().join("::")));
    }
    found.sort();
    found.dedup();
    let nearest = found.first().map(|(distance, _)| *distance);
    found.retain(|(distance, _)| Some(*distance) == nearest);
    found.into_iter().map(|(_, path)| path).collect()
}

fn declared_target(id: ModuleId, module: &Module, name: &str) -> Option<Target> {
    if module.is_body || module.is_unread {
        return None;
    }
    match module.names.get(name)? {
        Name::Type(ty) => Some(Target::Type(*ty)),
        Name::Root(ty) => Some(Target::Root(*ty)),
        Name::Alias(alias) => Some(Target::Alias(*alias)),
        Name::Opaque => Some(Target::Opaque(Owner::Opaque(id, name.to_owned()))),
        Name::Module(_) | Name::Import(_) => None,
    }
}

/// Returns the module from which `from` can import an item of `declaring`.
fn find_reachable(
    package: &Package,
    from: ModuleId,
    declaring: ModuleId,
    name: &str,
    target: &Target,
) -> Option<ModuleId> {
    let Some(parent) = package.module(declaring).parent else {
        return Some(declaring);
    };
    if ancestors(package, from).any(|module| module == parent) {
        return Some(declaring);
    }
    // `declaring` may be private here, so prefer its nearest ancestor that re-exports the item.
    let path = [name.to_owned()];
    let mut above = ancestors(package, parent);
    let exporting = above.find(|module| lookup_path(package, *module, &path) == *target);
    Some(exporting.unwrap_or(declaring))
}

fn ancestors(package: &Package, module: ModuleId) -> impl Iterator<Item = ModuleId> {
    std::iter::successors(Some(module), |module| package.module(*module).parent)
}

/// Returns the name of the module's crate in `from`, and the path of the module in that crate.
fn path_from(package: &Package, from: ModuleId, module: ModuleId) -> Option<(String, Vec<String>)> {
    let root = package.module(module).root;
    let below = path_below_root(package, module)?;
    if root == package.module(from).root {
        return Some(("crate".to_owned(), below));
    }
    let member = package.member(from);
    if let Some((library, own)) = &member.library
        && *own == root
    {
        return Some((library.clone(), below));
    }
    let dependency = member.dependencies.iter().find_map(|(name, dependency)| {
        let Dependency::Package(id) = dependency else {
            return None;
        };
        let (_, library) = package.members[id.0].library.as_ref()?;
        (*library == root).then(|| name.clone())
    });
    dependency.map(|name| (name, below))
}

/// Returns e.g. `[api, v1]` for `crate::api::v1`.
fn path_below_root(package: &Package, module: ModuleId) -> Option<Vec<String>> {
    let mut path = Vec::new();
    for module in ancestors(package, module) {
        let Some(parent) = package.module(module).parent else {
            break;
        };
        let mut names = package.module(parent).names.iter();
        let is_it = |name: &Name| matches!(name, Name::Module(id) if *id == module);
        let (name, _) = names.find(|(_, name)| is_it(name))?;
        path.push(name.clone());
    }
    path.reverse();
    Some(path)
}

/// Returns the paths of built-in types of this name, in std and in the direct dependencies.
fn find_built_in(package: &Package, module: ModuleId, name: &str) -> Vec<String> {
    let is_usable = |path: &str| match path.split("::").next() {
        Some("std") => true,
        Some(first) => depends_on(package, module, first),
        None => false,
    };
    let has_schema = |path: &str| external::is_read(path) && rbuilder_schema::refused(path).is_none();
    let known = KNOWN_MODULES.iter().map(|module| format!("{module}::{name}"));
    let known = known.into_iter().find(|path| is_usable(path) && has_schema(path));
    match known {
        Some(path) => vec![path],
        None if is_usable("k8s_openapi") => find_kubernetes(package, name),
        None => Vec::new(),
    }
}

fn find_kubernetes(package: &Package, name: &str) -> Vec<String> {
    let mut paths = package.kubernetes.find_by_name(name);
    let is_stable = |path: &String| {
        let version = path.rsplit("::").nth(1).unwrap_or_default();
        !version.contains("alpha") && !version.contains("beta")
    };
    // Prefer stable versions, e.g. `v1` to `v1beta1`.
    if paths.iter().any(is_stable) {
        paths.retain(is_stable);
    }
    paths
}

fn suggest_name(package: &Package, module: ModuleId, name: &str) -> Option<String> {
    // Skip the name itself: a broken import may have brought it into scope.
    let others = names_in_scope(package, module).filter(|other| *other != name);
    if let Some(near) = find_nearest(name, others) {
        return Some(format!("did you mean `{near}`?"));
    }
    let near = COMMON.iter().find(|common| is_one_slip(name, common))?;
    let import =
        suggest_import(package, module, near).map_or_else(String::new, |import| format!(" {import}"));
    Some(format!("did you mean {}?{import}", list_names([*near])))
}

/// Includes names from a glob if its module has been read.
fn names_in_scope(package: &Package, module: ModuleId) -> impl Iterator<Item = &str> {
    let this = package.module(module);
    let globs = this.globs.iter().filter(|glob| glob.undecided.is_none());
    let opened = globs.filter_map(move |glob| find_module(package, module, &glob.path));
    let modules = std::iter::once(this).chain(opened);
    modules
        .flat_map(|module| &module.names)
        .filter(|(name, what)| !matches!(what, Name::Module(_)) && name.starts_with(char::is_uppercase))
        .map(|(name, _)| name.as_str())
}

/// Returns the module that a glob refers to. Doesn't follow imports.
fn find_module<'a>(package: &'a Package, from: ModuleId, path: &[String]) -> Option<&'a Module> {
    let mut at = from;
    for (index, segment) in path.iter().enumerate() {
        at = match segment.as_str() {
            "crate" if index == 0 => package.module(from).root,
            "self" if index == 0 => from,
            "super" => package.module(at).parent?,
            name => match package.module(at).names.get(name)? {
                Name::Module(id) => *id,
                _ => return None,
            },
        };
    }
    Some(package.module(at))
}

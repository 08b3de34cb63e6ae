//! The modules of a package, with their files, declarations and imports.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Expr, Item, ItemMod, Lit, Meta, UseTree};

use super::super::calls::strip_raw_prefix;
use super::super::source::{Source, byte_range};
use super::{FileFate, ModuleMoves, Obstruction};
use crate::paths::folder_of;

pub(super) type ModuleId = usize;

pub(super) struct Module {
    pub(super) is_library: bool,
    pub(super) path: Vec<String>,
    pub(super) parent: Option<ModuleId>,
    pub(super) root: ModuleId,
    pub(super) file: String,
    /// Items, without the content of inline modules, which are listed as modules of their own.
    pub(super) items: Vec<Item>,
    pub(super) scope: Scope,
}

#[derive(Default)]
pub(super) struct Scope {
    pub(super) names: BTreeMap<String, Name>,
    pub(super) globs: Vec<UsePath>,
}

pub(super) enum Name {
    Child(ModuleId),
    Use(UsePath),
    Type,
}

#[derive(Clone, Debug)]
pub(super) struct UsePath {
    pub(super) is_global: bool,
    pub(super) segments: Vec<String>,
}

impl Scope {
    pub(super) fn add_import(&mut self, import: &syn::ItemUse) {
        self.add_tree(&import.tree, import.leading_colon.is_some(), &mut Vec::new());
    }

    fn add_tree(&mut self, tree: &UseTree, is_global: bool, prefix: &mut Vec<String>) {
        let name = |ident: &syn::Ident| strip_raw_prefix(&ident.to_string());
        let path = |last: Option<String>, prefix: &[String]| UsePath {
            is_global,
            segments: prefix.iter().cloned().chain(last).collect(),
        };
        match tree {
            UseTree::Path(inner) => {
                prefix.push(name(&inner.ident));
                self.add_tree(&inner.tree, is_global, prefix);
                prefix.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_tree(tree, is_global, prefix);
                }
            }
            UseTree::Glob(_) => self.globs.push(path(None, prefix)),
            UseTree::Name(only) if only.ident == "self" => {
                if let Some(last) = prefix.last().cloned() {
                    self.names.insert(last, Name::Use(path(None, prefix)));
                }
            }
            UseTree::Name(only) => {
                let only = name(&only.ident);
                let import = path(Some(only.clone()), prefix);
                self.names.insert(only, Name::Use(import));
            }
            UseTree::Rename(only) => {
                let last = (only.ident != "self").then(|| name(&only.ident));
                let import = path(last, prefix);
                self.names.insert(name(&only.rename), Name::Use(import));
            }
        }
    }
}

pub(super) struct Modules<'t> {
    pub(super) all: Vec<Module>,
    pub(super) files: &'t BTreeMap<String, String>,
    pub(super) library: &'t str,
    pub(super) library_root: Option<ModuleId>,
    moves: &'t ModuleMoves,
    obstructions: Vec<Obstruction>,
}

struct ModuleFile<'f> {
    file: &'f str,
    /// Directory with the files of child modules.
    folder: String,
    is_library: bool,
    path: Vec<String>,
    parent: Option<ModuleId>,
}

impl<'t> Modules<'t> {
    /// Reads the modules of all crates in a package. Fails on files that don't parse, and on `path`
    /// attributes that the moves would break.
    pub(super) fn read(
        files: &'t BTreeMap<String, String>,
        library: &'t str,
        moves: &'t ModuleMoves,
    ) -> Result<Modules<'t>, Vec<Obstruction>> {
        let mut modules = Modules {
            all: Vec::new(),
            files,
            library,
            library_root: None,
            moves,
            obstructions: Vec::new(),
        };
        modules.read_crate("src/lib.rs", true);
        // The library was read first, so its root has index 0.
        modules.library_root = (!modules.all.is_empty()).then_some(0);
        for file in files.keys().filter(|path| is_crate_root(path)) {
            modules.read_crate(file, false);
        }
        modules.read_orphans();
        match modules.obstructions.is_empty() {
            true => Ok(modules),
            false => Err(modules.obstructions),
        }
    }

    fn read_crate(&mut self, file: &str, is_library: bool) {
        let folder = folder_of(file).to_owned();
        self.read_file(&ModuleFile {
            file,
            folder,
            is_library,
            path: Vec::new(),
            parent: None,
        });
    }

    /// Reads library files that no other file declares as a module.
    fn read_orphans(&mut self) {
        let refused = self
            .obstructions
            .iter()
            // A file that doesn't parse was reported already.
            .map(|obstruction| obstruction.path.clone());
        let known = self.all.iter().map(|module| module.file.clone());
        let known: BTreeSet<String> = known.chain(refused).collect();
        for file in self.files.keys().filter(|file| !known.contains(*file)) {
            let below = file
                .strip_prefix("src/")
                .and_then(|below| below.strip_suffix(".rs"));
            let Some(below) = below.filter(|below| !below.starts_with("bin/")) else {
                continue;
            };
            let below = below.strip_suffix("/mod").unwrap_or(below);
            let path: Vec<String> = below.split('/').map(str::to_owned).collect();
            let is_parent = |module: &Module| module.is_library && module.path == path[..path.len() - 1];
            // It may be declared by a macro.
            if let Some(parent) = self.all.iter().position(is_parent) {
                self.read_file(&ModuleFile {
                    file,
                    folder: format!("src/{below}"),
                    is_library: true,
                    path,
                    parent: Some(parent),
                });
            }
        }
    }

    fn read_file(&mut self, module: &ModuleFile<'_>) -> Option<ModuleId> {
        let text = self.files.get(module.file)?;
        match Source::parse(text) {
            Ok(source) => Some(self.add_module(module, source.file.items)),
            Err(reason) => {
                self.obstruct(module.file, 0, reason, "correct it".to_owned());
                None
            }
        }
    }

    fn obstruct(&mut self, file: &str, byte: usize, reason: String, help: String) {
        let text = self.files.get(file).map_or("", String::as_str);
        self.obstructions
            .push(Obstruction::at(file, text, byte, reason, help));
    }

    fn add_module(&mut self, module: &ModuleFile<'_>, items: Vec<Item>) -> ModuleId {
        let id = self.all.len();
        self.all.push(Module {
            is_library: module.is_library,
            path: module.path.clone(),
            parent: module.parent,
            root: module.parent.map_or(id, |parent| self.all[parent].root),
            file: module.file.to_owned(),
            items: Vec::new(),
            scope: Scope::default(),
        });
        let mut scope = Scope::default();
        let mut kept = Vec::new();
        for mut item in items {
            match &mut item {
                Item::Mod(declared) => {
                    let name = strip_raw_prefix(&declared.ident.to_string());
                    if let Some(child) = self.add_child(module, id, &name, declared) {
                        scope.names.insert(name, Name::Child(child));
                    }
                }
                Item::Use(import) => scope.add_import(import),
                Item::ExternCrate(import) => {
                    let known = strip_raw_prefix(&import.ident.to_string());
                    let name = import.rename.as_ref().map(|(_, name)| name.to_string());
                    let segments = match known.as_str() {
                        // `extern crate self as name` refers to this crate.
                        "self" => vec!["crate".to_owned()],
                        _ => vec![known.clone()],
                    };
                    let is_global = known != "self";
                    let path = UsePath { is_global, segments };
                    scope.names.insert(name.unwrap_or(known), Name::Use(path));
                }
                other => {
                    if let Some(name) = declared_type(other) {
                        scope.names.insert(name, Name::Type);
                    }
                }
            }
            kept.push(item);
        }
        self.all[id].items = kept;
        self.all[id].scope = scope;
        id
    }

    fn add_child(
        &mut self,
        above: &ModuleFile<'_>,
        parent: ModuleId,
        name: &str,
        declared: &mut ItemMod,
    ) -> Option<ModuleId> {
        let path = [above.path.as_slice(), &[name.to_owned()]].concat();
        let folder = format!("{}/{name}", above.folder);
        let own = |file, folder| ModuleFile {
            file,
            folder,
            is_library: above.is_library,
            path: path.clone(),
            parent: Some(parent),
        };
        if let Some((_, items)) = &mut declared.content {
            // Take the content out of the item, or its paths would be scanned twice.
            let items = std::mem::take(items);
            return Some(self.add_module(&own(above.file, folder), items));
        }
        if let Some((attribute, at)) = path_attribute(declared) {
            let base = folder_of(above.file);
            let file = join_path(base, &attribute);
            let is_moved = |file: &str| self.moves.file(file) != FileFate::Stays;
            if is_moved(above.file) || is_moved(&file) {
                self.obstruct(
                    above.file,
                    at,
                    format!("the attribute `path` of `mod {name}` names `{attribute}`, and one of both files moves"),
                    "move the file to the place of its module, and remove the attribute".to_owned(),
                );
            }
            let folder = folder_of(&file).to_owned();
            return self.read_file(&own(&file, folder));
        }
        let (plain, nested) = (format!("{folder}.rs"), format!("{folder}/mod.rs"));
        let file = if self.files.contains_key(&plain) {
            plain
        } else {
            nested
        };
        self.read_file(&own(&file, folder))
    }

    /// Path of a module after the moves, or `None` if the module ceases to exist.
    pub(super) fn target(&self, module: ModuleId) -> Option<Vec<String>> {
        let module = &self.all[module];
        match module.is_library {
            true => self.moves.target(&module.path),
            false => Some(module.path.clone()),
        }
    }
}

fn is_crate_root(path: &str) -> bool {
    if path == "src/main.rs" {
        return true;
    }
    let Some((folder, below)) = ["src/bin/", "tests/", "examples/", "benches/"]
        .iter()
        .find_map(|folder| Some((folder, path.strip_prefix(folder)?)))
    else {
        return false;
    };
    match below.split_once('/') {
        None => below.ends_with(".rs") && !folder.is_empty(),
        Some((_, name)) => name == "main.rs",
    }
}

/// Name of an item in the type namespace. Only these can conflict with a module name.
fn declared_type(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Enum(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(strip_raw_prefix(&ident.to_string()))
}

fn path_attribute(module: &ItemMod) -> Option<(String, usize)> {
    module.attrs.iter().find_map(|attribute| {
        let Meta::NameValue(pair) = &attribute.meta else {
            return None;
        };
        match &pair.value {
            Expr::Lit(literal) if pair.path.is_ident("path") => match &literal.lit {
                Lit::Str(path) => Some((
                    path.value().replace('\\', "/"),
                    byte_range(attribute.pound_token.spans[0]).start,
                )),
                _ => None,
            },
            _ => None,
        }
    })
}

pub(super) fn join_path(folder: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

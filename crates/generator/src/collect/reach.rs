//! Finds the types that kinds need. In other packages, only modules that lead to them are read.
//!
//! | package | found in | source |
//! |---|---|---|
//! | path dependency | `Cargo.toml` (`cargo/graph.rs`), at the start | files, within the limits of the caller |
//! | published package | `Cargo.lock` (`cargo/lock.rs`), when a schema needs one of its types (`cargo/published.rs`) | a vendored directory (`cargo/vendor.rs`), or an archive in Cargo's cache |
//! | built-in package | its name (`resolve/external.rs`) | tables |

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_reader::token::{Cursor, Delimiter, Kind, lex};
use rbuilder_reader::{TypeKind, TypeRef};
use rbuilder_syntax::{DefaultSource, Type};

use super::Collector;
use super::need::{may_need_published, types_of};
use crate::package::{AliasId, ModuleId, Package, TypeId, ValueId};
use crate::resolve::{Found, Owner, ValueTarget, find_item, find_owner, find_value};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Type(TypeId),
    Alias(AliasId),
    /// A function that returns a schema.
    Function(ValueId),
}

/// Handwritten implementations of `JsonSchema` in the modules read so far.
#[derive(Default)]
pub(super) struct SchemaOwners {
    functions: BTreeMap<Owner, ValueId>,
    /// Functions whose type hasn't been found yet, as indexes into [`Package::associated`].
    ownerless: Vec<usize>,
    functions_seen: usize,
}

/// Why a path is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// A schema needs the item, so it's worth loading packages along the path.
    Schema,
    /// The item is optional, so don't load packages for it.
    Other,
}

impl Collector<'_> {
    pub(super) fn reach(&mut self) {
        // Everything has been read, and no schema can need a package from a registry.
        if self.declared.is_empty() && !may_need_published(&self.package) {
            return;
        }
        let kinds = self.package.types.iter().enumerate();
        let kinds = kinds.filter(|(_, item)| {
            item.model
                .as_ref()
                .is_some_and(|model| model.custom_resource.is_some())
        });
        let mut open: Vec<Item> = kinds.map(|(index, _)| Item::Type(TypeId(index))).collect();
        let mut seen: BTreeSet<Item> = open.iter().copied().collect();
        for (module, ty) in self.handled() {
            // Only the handled kind matters for a webhook, not its schema.
            self.follow(&ty, module, Purpose::Other, &mut Vec::new());
        }
        while let Some(item) = open.pop() {
            let (module, types) = self.mentions(item);
            let mut found = Vec::new();
            for ty in &types {
                self.follow(ty, module, Purpose::Schema, &mut found);
            }
            match item {
                Item::Type(id) => self.follow_schema_functions(id, &mut found),
                Item::Function(id) => self.follow_body(id, &mut found),
                Item::Alias(_) => {}
            }
            open.extend(found.into_iter().filter(|item| seen.insert(*item)));
        }
        // All packages that a schema needs have been read by now, so the result does not depend on
        // the order of the types.
        for item in seen {
            if let Item::Type(id) = item {
                self.follow_defaults(id);
            }
        }
    }

    /// Finds functions that return the schema of a type or of one of its fields.
    fn follow_schema_functions(&mut self, id: TypeId, found: &mut Vec<Item>) {
        let item = &self.package.types[id.0];
        let module = item.module;
        let functions = item
            .model
            .iter()
            .flat_map(|model| model.schema_functions.values());
        let named: Vec<String> = functions.map(|function| function.path.clone()).collect();
        found.extend(self.schema_function(&Owner::Type(id)));
        found.extend(self.schema_function(&Owner::Root(id)));
        for path in named {
            self.follow_paths(&path, module, found);
        }
    }

    fn follow_body(&mut self, id: ValueId, found: &mut Vec<Item>) {
        let value = &self.package.values[id.0];
        let (module, body) = (value.body_module(), value.body.clone());
        self.follow_paths(&body, module, found);
    }

    fn follow_paths(&mut self, text: &str, module: ModuleId, found: &mut Vec<Item>) {
        for path in paths(text) {
            // A single lowercase word is most likely a variable, which is no reason to load a
            // package.
            let purpose = match path[0].starts_with(char::is_lowercase) && path.len() == 1 {
                true => Purpose::Other,
                false => Purpose::Schema,
            };
            // The last segment may be a variant or an associated function, so look up its type as
            // well.
            if path.len() > 1 {
                found.extend(self.find(&path[..path.len() - 1], module, purpose));
            }
            found.extend(self.find(&path, module, purpose));
            if let Some(ValueTarget::Value(id)) = find_value(&self.package, module, &path) {
                found.push(Item::Function(id));
            }
        }
    }

    /// Finds the function of a handwritten `impl JsonSchema`.
    fn schema_function(&mut self, owner: &Owner) -> Option<Item> {
        let known = self.schema_owners.functions_seen;
        let all = &self.package.schema_functions;
        self.schema_owners.functions_seen = all.len();
        let mut ownerless = std::mem::take(&mut self.schema_owners.ownerless);
        ownerless.extend(&all[known..]);
        // Called for every type of every kind, so resolve the type of each function only once.
        for at in ownerless {
            let function = &self.package.associated[at];
            match owner_of(&self.package, &function.self_type, function.module) {
                Some(owner) => {
                    self.schema_owners
                        .functions
                        .entry(owner)
                        .or_insert(function.value);
                }
                None => self.schema_owners.ownerless.push(at),
            }
        }
        let function = self.schema_owners.functions.get(owner)?;
        Some(Item::Function(*function))
    }

    fn follow_defaults(&mut self, id: TypeId) {
        let item = self.package.item(id);
        let module = item.module;
        let Some(model) = &item.model else {
            return;
        };
        let mut open: Vec<(ModuleId, Vec<String>)> = functions(model)
            .map(|path| {
                (
                    module,
                    path.split("::").map(|name| name.trim().to_owned()).collect(),
                )
            })
            .collect();
        let mut seen: BTreeSet<ValueId> = BTreeSet::new();
        while let Some((module, segments)) = open.pop() {
            // For an associated function, read the file of its type first.
            if segments.len() > 1 {
                self.find(&segments[..segments.len() - 1], module, Purpose::Other);
            }
            self.find(&segments, module, Purpose::Other);
            if let Some(ValueTarget::Value(id)) = find_value(&self.package, module, &segments)
                && seen.insert(id)
            {
                let value = &self.package.values[id.0];
                open.extend(paths(&value.body).into_iter().map(|path| (value.module, path)));
            }
        }
    }

    fn handled(&self) -> Vec<(ModuleId, TypeRef)> {
        let handlers = self.package.handlers.iter();
        handlers
            .flat_map(|handler| {
                let types = handler.parameters.iter().chain(&handler.self_type);
                types.map(|ty| (handler.module, ty.clone()))
            })
            .collect()
    }

    fn mentions(&self, item: Item) -> (ModuleId, Vec<TypeRef>) {
        match item {
            Item::Alias(id) => {
                let alias = self.package.alias(id);
                let defaults = alias.generics.iter().filter_map(|(_, default)| default.as_ref());
                let types = defaults.chain([&alias.target]).cloned().collect();
                (alias.module, types)
            }
            Item::Function(id) => (self.package.values[id.0].module, Vec::new()),
            Item::Type(id) => {
                let item = self.package.item(id);
                let Some(model) = &item.model else {
                    return (item.module, Vec::new());
                };
                (item.module, types_of(model).cloned().collect())
            }
        }
    }

    fn follow(&mut self, ty: &TypeRef, module: ModuleId, purpose: Purpose, found: &mut Vec<Item>) {
        match &ty.kind {
            TypeKind::Array(item, _) => self.follow(item, module, purpose, found),
            TypeKind::Tuple(items) => {
                for item in items {
                    self.follow(item, module, purpose, found);
                }
            }
            TypeKind::Path(segments, args) => {
                for arg in args {
                    self.follow(arg, module, purpose, found);
                }
                found.extend(self.find(segments, module, purpose));
            }
            TypeKind::Other(_) => {}
        }
    }

    fn find(&mut self, segments: &[String], module: ModuleId, purpose: Purpose) -> Option<Item> {
        loop {
            match find_item(&self.package, module, segments) {
                // Each dependency is loaded at most once, so this terminates as well.
                Found::Locked(dependent, name) => {
                    if purpose == Purpose::Other || !self.load_dependency(dependent, &name) {
                        return None;
                    }
                }
                // Each module is read only once, so the loop terminates.
                Found::Unread(module) => self.read_module(module),
                Found::Type(id) => return Some(Item::Type(id)),
                Found::Alias(id) => return Some(Item::Alias(id)),
                Found::Opaque(owner) => return self.schema_function(&owner),
                Found::Other => return None,
            }
        }
    }
}

/// Returns true if the type `ty`, written in `module`, resolves to `owner`.
pub(super) fn is_owner(package: &Package, ty: &TypeRef, module: ModuleId, owner: &Owner) -> bool {
    owner_of(package, ty, module).as_ref() == Some(owner)
}

fn owner_of(package: &Package, ty: &TypeRef, module: ModuleId) -> Option<Owner> {
    match &ty.kind {
        TypeKind::Path(segments, _) => find_owner(package, module, segments),
        _ => None,
    }
}

fn functions(model: &Type) -> impl Iterator<Item = &String> {
    let fields = model.values.iter().chain(model.variant_values.iter().flatten());
    let of_fields = fields.filter_map(|field| Some(&field.absent.as_ref()?.source));
    of_fields
        .chain(&model.whole_default)
        .filter_map(|source| match source {
            DefaultSource::Function(path) => Some(path),
            DefaultSource::Type | DefaultSource::Container => None,
        })
}

fn paths(body: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    if let Ok(tokens) = lex(body) {
        add_paths(tokens.cursor(), &mut found);
    }
    found
}

fn add_paths(mut cursor: Cursor<'_>, found: &mut Vec<Vec<String>>) {
    while !cursor.is_end() {
        let mut path = Vec::new();
        while let Some(ident) = cursor.any_ident() {
            path.push(ident.text.to_owned());
            if !cursor.eat_pair(b':', b':') {
                break;
            }
        }
        if !path.is_empty() {
            found.push(path);
            continue;
        }
        match cursor.kind() {
            Kind::Open(Delimiter::Paren | Delimiter::Bracket | Delimiter::Brace) => {
                if let Some(inner) = cursor.any_group() {
                    add_paths(inner, found);
                }
            }
            _ => cursor.skip(),
        }
    }
}

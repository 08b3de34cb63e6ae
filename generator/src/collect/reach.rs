//! The types that the kinds need: reads the modules of path crates that lead to them, and no others.

use std::collections::BTreeSet;

use rbuilder_reader::{TypeKind, TypeRef};

use super::Collector;
use crate::package::{AliasId, ModuleId, TypeId};
use crate::resolve::{Found, find_item};

/// A type or an alias whose mentions have to be followed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Type(TypeId),
    Alias(AliasId),
}

impl Collector<'_> {
    /// Follows every type that a kind mentions, and what those mention, until nothing on the way is unread.
    pub(super) fn reach(&mut self) {
        if self.declared.is_empty() {
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
            // What the handler of a webhook takes: only which kind it is matters.
            self.follow(&ty, module, &mut Vec::new());
        }
        while let Some(item) = open.pop() {
            let (module, types) = self.mentions(item);
            let mut found = Vec::new();
            types.iter().for_each(|ty| self.follow(ty, module, &mut found));
            open.extend(found.into_iter().filter(|item| seen.insert(*item)));
        }
    }

    /// The types in the signatures of webhook handlers.
    fn handled(&self) -> Vec<(ModuleId, TypeRef)> {
        let handlers = self.package.handlers.iter();
        handlers
            .flat_map(|handler| {
                let types = handler.parameters.iter().chain(&handler.self_type);
                types.map(|ty| (handler.module, ty.clone()))
            })
            .collect()
    }

    /// The types that an item mentions, and the module it is in.
    fn mentions(&self, item: Item) -> (ModuleId, Vec<TypeRef>) {
        match item {
            Item::Alias(id) => {
                let alias = self.package.alias(id);
                let defaults = alias.generics.iter().filter_map(|(_, default)| default.as_ref());
                let types = defaults.chain([&alias.target]).cloned().collect();
                (alias.module, types)
            }
            Item::Type(id) => {
                let item = self.package.item(id);
                let Some(model) = &item.model else {
                    return (item.module, Vec::new());
                };
                let status = model
                    .custom_resource
                    .as_ref()
                    .and_then(|kind| kind.status.as_ref());
                let defaults = model.generics.iter().filter_map(|(_, default)| default.as_ref());
                let types = model
                    .slots
                    .iter()
                    .chain(status)
                    .chain(defaults)
                    .cloned()
                    .collect();
                (item.module, types)
            }
        }
    }

    fn follow(&mut self, ty: &TypeRef, module: ModuleId, found: &mut Vec<Item>) {
        match &ty.kind {
            TypeKind::Array(item, _) => self.follow(item, module, found),
            TypeKind::Tuple(items) => items.iter().for_each(|item| self.follow(item, module, found)),
            TypeKind::Path(segments, args) => {
                args.iter().for_each(|arg| self.follow(arg, module, found));
                found.extend(self.find(segments, module));
            }
            TypeKind::Other(_) => {}
        }
    }

    /// Finds the item that a path leads to, reading the modules on the way.
    fn find(&mut self, segments: &[String], module: ModuleId) -> Option<Item> {
        loop {
            match find_item(&self.package, module, segments) {
                // Each is unread once, so this comes to an end.
                Found::Unread(module) => self.read_module(module),
                Found::Type(id) => return Some(Item::Type(id)),
                Found::Alias(id) => return Some(Item::Alias(id)),
                Found::Other => return None,
            }
        }
    }
}

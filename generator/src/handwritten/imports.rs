//! Imports inside of functions, which are in force there before what the module has.
//!
//! Names are looked up in the module, so an import matters where its name is another item there. In
//!
//! ```text
//! struct Inner { … }
//! fn schema(g: &mut SchemaGenerator) -> Schema { use other::Inner; Inner::json_schema(g) }
//! ```
//!
//! the schema is that of `other::Inner`, and without this check it would be that of `Inner` without a word.

use rbuilder_reader::token::Cursor;

use super::{Function, Read, SchemaReader};
use crate::collect::{Import, read_imports};
use crate::gap::words;
use crate::resolve::{Target, ValueTarget, find_value, lookup_path};

/// The parts of a value that take as long to make as a word to look up. A body with many imports has many words, each of which is
/// looked up for each glob.
const LOOKUP: usize = 16;

impl SchemaReader<'_, '_> {
    /// Ends reading at an import that gives a name of the module another meaning, if the function has that name.
    pub(super) fn check_imports(&mut self, tree: Cursor<'_>, function: &Function<'_>) -> Read<()> {
        let Ok(imports) = read_imports(tree) else {
            return function.unread(tree.span(), "its `use` is not one");
        };
        let body = &function.item.body;
        let length = words(body).count();
        for import in imports {
            self.spend(length.saturating_mul(LOOKUP), tree.span(), function)?;
            let hidden = match import {
                Import::Name(name, path) => {
                    // The import itself has the name once.
                    let is_used = words(body).filter(|word| *word == name).count() > 1;
                    let is_other = self.is_other_type(&name, &path, function)
                        || self.is_other_value(&name, &path, function);
                    (is_used && is_other).then_some(name)
                }
                Import::Glob(path) => words(body).map(str::to_owned).find(|word| {
                    let inner = [path.as_slice(), std::slice::from_ref(word)].concat();
                    let has_type = self.is_own(&inner, function);
                    has_type && self.is_other_type(word, &inner, function)
                        || self.has_value(&inner, function) && self.is_other_value(word, &inner, function)
                }),
            };
            if let Some(name) = hidden {
                return function.unread_hidden(tree.span(), &name);
            }
        }
        Ok(())
    }

    /// Returns whether a name is a type of the program in the module, and a path does not lead to it.
    fn is_other_type(&self, name: &str, path: &[String], function: &Function<'_>) -> bool {
        let (package, module) = (self.schemas.package(), function.item.module);
        let outer = [name.to_owned()];
        self.is_own(&outer, function)
            && lookup_path(package, module, &outer) != lookup_path(package, module, path)
    }

    /// Returns whether a name is a function or constant in the module, and a path does not lead to it.
    fn is_other_value(&self, name: &str, path: &[String], function: &Function<'_>) -> bool {
        let (package, module) = (self.schemas.package(), function.item.module);
        let outer = [name.to_owned()];
        self.has_value(&outer, function)
            && find_value(package, module, &outer) != find_value(package, module, path)
    }

    /// Returns whether a path leads to a function or constant of the program.
    fn has_value(&self, path: &[String], function: &Function<'_>) -> bool {
        let found = find_value(self.schemas.package(), function.item.module, path);
        matches!(found, Some(ValueTarget::Value(_)))
    }

    /// Returns whether a path leads to a type of the program.
    fn is_own(&self, path: &[String], function: &Function<'_>) -> bool {
        matches!(
            lookup_path(self.schemas.package(), function.item.module, path),
            Target::Type(_) | Target::Root(_) | Target::Alias(_) | Target::Opaque(_)
        )
    }
}

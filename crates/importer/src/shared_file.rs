//! Prints a module `shared`.

use std::collections::{BTreeMap, BTreeSet};

use crate::classes::Class;
use crate::file::Module;
use crate::lints::allow_doc_lints;
use crate::sharing::{SharedType, mentioned};
use crate::source::{Printer, find_imports, has_map, print_shared_uses, print_uses};

/// Types shared by the files in a folder, and the types from folders above that they refer to.
pub(crate) struct SharedFile<'a> {
    folder: &'a str,
    modules: &'a [Module<'a>],
    /// All shared types by file and index.
    by_place: BTreeMap<(usize, usize), &'a SharedType>,
    own: Vec<&'a SharedType>,
}

impl<'a> SharedFile<'a> {
    pub(crate) fn new(folder: &'a str, modules: &'a [Module<'a>], all: &'a [SharedType]) -> Self {
        let own = all.iter().filter(|shared| shared.folder == folder).collect();
        SharedFile {
            folder,
            modules,
            by_place: all
                .iter()
                .flat_map(|shared| shared.uses().iter().map(move |place| (*place, shared)))
                .collect(),
            own,
        }
    }

    fn class(&self, shared: &SharedType) -> &'a Class {
        let (file, id) = shared.first;
        &self.modules[file].classes.list[id]
    }

    /// Types from folders above that this file refers to, with their module path and whether they
    /// are imported. If the name is taken, the type is referred to by path.
    fn types_above(&self) -> BTreeMap<(usize, usize), (String, bool)> {
        let mut taken: BTreeSet<&str> = self
            .own
            .iter()
            .map(|shared| self.class(shared).name.as_str())
            .collect();
        let mut found = BTreeMap::new();
        for shared in &self.own {
            let file = shared.first.0;
            for part in mentioned(self.class(shared)) {
                let found_there = self.by_place.get(&(file, part));
                let Some(above) = found_there.filter(|part| part.folder != self.folder) else {
                    continue;
                };
                let path = module_path(self.folder, &above.folder);
                let is_imported = match found.get(&above.first) {
                    Some((_, is_imported)) => *is_imported,
                    None => taken.insert(&self.class(above).name),
                };
                found.insert(above.first, (path, is_imported));
            }
        }
        found
    }

    pub(crate) fn print(&self) -> String {
        let above = self.types_above();
        let name = |first: &(usize, usize)| self.modules[first.0].classes.list[first.1].name.as_str();
        let imported_above = above.iter().filter(|(_, (_, is_imported))| *is_imported);
        let taken: Vec<String> = imported_above
            .clone()
            .map(|(first, _)| name(first))
            .chain(self.own.iter().map(|shared| self.class(shared).name.as_str()))
            .map(str::to_owned)
            .collect();
        let imported = find_imports(self.own.iter().map(|shared| self.class(shared)), &taken);
        let finished = |shared: &SharedType| self.modules[shared.first.0].finished.get(&shared.first.1);
        let has_map = self.own.iter().filter_map(|shared| finished(shared)).any(has_map);
        let mut text = print_uses(has_map, &imported, false);
        let of_above = imported_above.map(|(first, (path, _))| (path.as_str(), name(first)));
        text += &print_shared_uses("", of_above);
        for shared in &self.own {
            let (file, id) = shared.first;
            let module = &self.modules[file];
            let printer = Printer {
                classes: &module.classes,
                finished: &module.finished,
                imported: &imported,
                name_of: &|id| {
                    let plain = module.classes.list[id].name.clone();
                    let first = self.by_place.get(&(file, id)).map(|part| part.first);
                    match first.and_then(|first| above.get(&first)) {
                        Some((path, false)) => format!("{path}::{plain}"),
                        _ => plain,
                    }
                },
            };
            text.push('\n');
            printer.print_class(id, None, &mut text);
        }
        let head = "//! Types that several files share.\n\n".to_owned();
        head + &allow_doc_lints(&text) + &text
    }
}

/// Path of the module `shared` in the folder `to`, relative to a file in the folder `from`. `to`
/// must be `from` or one of its parents.
pub(crate) fn module_path(from: &str, to: &str) -> String {
    let depth = |folder: &str| folder.split('/').filter(|step| !step.is_empty()).count();
    let up = depth(from).saturating_sub(depth(to)) + 1;
    format!("{}shared", "super::".repeat(up))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_paths_are_relative() {
        for (from, to, expected) in [
            ("v1", "v1", "super::shared"),
            ("v1", "", "super::super::shared"),
            ("shop/v1", "shop", "super::super::shared"),
            ("shop/v1", "", "super::super::super::shared"),
        ] {
            assert_eq!(module_path(from, to), expected);
        }
    }
}

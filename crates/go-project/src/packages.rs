//! Determines the packages that end up in programs.

use std::collections::{BTreeMap, BTreeSet};

use super::GoProject;
use crate::paths::folder_of;

impl GoProject {
    /// Directories of all packages that a program imports, directly or indirectly. `None` without a
    /// program or a known Go module.
    pub fn linked_folders(&self) -> Option<BTreeSet<&str>> {
        if self.repo.is_empty() {
            return None;
        }
        let mut imports: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for file in self.files.iter().chain(&self.generated_files) {
            let own = file
                .imports
                .values()
                .filter_map(|path| self.folder_of_package(path));
            imports.entry(folder_of(&file.path)).or_default().extend(own);
        }
        let programs = self.files.iter().filter(|file| file.program.has_main);
        let mut open: Vec<&str> = programs.map(|file| folder_of(&file.path)).collect();
        let mut linked = BTreeSet::new();
        while let Some(folder) = open.pop() {
            if linked.insert(folder) {
                open.extend(imports.get(folder).into_iter().flatten());
            }
        }
        (!linked.is_empty()).then_some(linked)
    }

    fn folder_of_package<'a>(&self, path: &'a str) -> Option<&'a str> {
        match path.strip_prefix(self.repo.as_str())? {
            "" => Some(""),
            below => below.strip_prefix('/'),
        }
    }

    /// API groups declared with `+groupName` in packages of the project.
    pub fn declared_groups(&self) -> BTreeSet<&str> {
        let markers = self.files.iter().flat_map(|file| &file.markers);
        let groups = markers.filter_map(|(_, marker)| marker.strip_prefix("groupName="));
        groups.map(|group| group.trim().trim_matches('"')).collect()
    }
}

//! Finds the CRDs committed in a repository, in any file.

use std::collections::BTreeMap;

use anyhow::Result;
use rbuilder_yaml::is_yaml;
use serde_json::Value;

use crate::crd_file::{CrdEntry, CrdFile, is_rendered};
use crate::posix::quote_word;
use crate::tree::{Tree, find_repository, resolve_path};

#[derive(Debug)]
pub(super) struct CommittedCrd {
    /// Path relative to the project directory, possibly with a leading `../`.
    pub(super) path: String,
    entry: CrdEntry,
    pub(super) value: Option<Value>,
    pub(super) is_single: bool,
    pub(super) is_template: bool,
    pub(super) is_outside: bool,
}

impl CommittedCrd {
    /// Whether this is the CRD of a kind. False if it could not be parsed.
    pub(super) fn is_of(&self, group: &str, kind: &str) -> bool {
        let known = self.entry.kind.as_ref();
        known.is_some_and(|(its_group, its_kind)| its_group == group && its_kind == kind)
    }

    pub(super) fn obstacle(&self) -> Option<String> {
        if self.is_outside {
            Some("it is outside of the directory of the package".to_owned())
        } else if !is_yaml(&self.path) {
            Some("it is not a YAML file".to_owned())
        } else {
            self.entry.obstacle.clone()
        }
    }

    /// Tells the user how to make the CRD writable, or how to do without.
    pub(super) fn advise(&self, kind: &str) -> String {
        if !self.is_outside {
            return "move the CRD to a file of its own".to_owned();
        }
        format!(
            "update it with `rbuilder manifests --stdout --only crd --kind {kind} > {}`, or move it into the directory",
            quote_word(&self.path)
        )
    }
}

pub(super) type CommittedCrds = BTreeMap<String, Vec<CommittedCrd>>;

/// Finds all CRDs in the project directory, and those found only in the rest of its repository.
/// Files with the same CRD are sorted by [`Precedence`]. Unreadable files are skipped.
pub(super) fn find_committed(tree: &Tree) -> Result<CommittedCrds> {
    let mut found = CommittedCrds::new();
    add_files(tree, tree.find_yaml()?, None, &mut found);
    add_outside(tree, &mut found);
    for files in found.values_mut() {
        files.sort_by_cached_key(|file| (Precedence::of(file), file.path.clone()));
    }
    Ok(found)
}

fn add_outside(tree: &Tree, found: &mut CommittedCrds) {
    let project = resolve_path(tree.root());
    let Some(repository) = find_repository(&project).filter(|repository| *repository != project) else {
        return;
    };
    let Some(inside) = project
        .strip_prefix(&repository)
        .ok()
        .and_then(|path| path.to_str())
    else {
        return;
    };
    let inside = format!("{}/", inside.replace('\\', "/"));
    let around = Tree::new(repository);
    let mut paths = around.find_yaml().unwrap_or_default();
    // `find_committed` already read the project's own files.
    paths.retain(|path| !path.starts_with(&inside));
    add_files(&around, paths, Some(&inside), found);
}

/// Adds the CRDs in a tree's files. `inside` is the project's path within the tree, if it isn't the
/// root.
fn add_files(tree: &Tree, paths: Vec<String>, inside: Option<&str>, found: &mut CommittedCrds) {
    for path in paths {
        let Ok(Some(text)) = tree.read(&path) else {
            continue;
        };
        if !text.contains("CustomResourceDefinition") {
            continue;
        }
        let file = CrdFile::parse(&text, is_rendered(tree, &path).unwrap_or(false));
        let shown = inside.map_or_else(|| path.clone(), |inside| path_from(inside, &path));
        for entry in file.list_crds() {
            let name = entry.name.clone();
            found.entry(name).or_default().push(CommittedCrd {
                path: shown.clone(),
                value: file.read_crd(&entry.name).cloned(),
                entry,
                is_single: file.is_single(),
                is_template: file.is_template(),
                is_outside: inside.is_some(),
            });
        }
    }
}

/// Relative path from a directory, given with a trailing `/`, to a file outside of it.
fn path_from(folder: &str, file: &str) -> String {
    let shared = folder
        .match_indices('/')
        .map(|(at, _)| at + 1)
        .take_while(|end| file.starts_with(&folder[..*end]))
        .last()
        .unwrap_or(0);
    let up = folder[shared..].matches('/').count();
    format!("{}{}", "../".repeat(up), &file[shared..])
}

/// Precedence among files with the same CRD. The first one is compared and written.
///
/// A copy in the documentation precedes a chart template and a file with other objects, because
/// users apply it as is, and it contains nothing but the CRD. Copies for tests come last, because
/// they may deliberately be from another release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Precedence {
    Shipped,
    Documented,
    ShippedWithOthers,
    DocumentedWithOthers,
    ShippedUnwritable,
    DocumentedUnwritable,
    Tested,
    TestedUnwritable,
    Outside,
}

impl Precedence {
    fn of(file: &CommittedCrd) -> Precedence {
        const TESTS: [&str; 5] = ["test", "tests", "testdata", "e2e", "fixtures"];
        const DOCUMENTS: [&str; 3] = ["docs", "example", "examples"];
        let is_below = |folders: &[&str]| file.path.split('/').any(|folder| folders.contains(&folder));
        let is_writable = file.obstacle().is_none();
        match (
            is_below(&TESTS),
            is_below(&DOCUMENTS),
            is_writable,
            file.is_single,
        ) {
            _ if file.is_outside => Precedence::Outside,
            (true, _, true, _) => Precedence::Tested,
            (true, _, false, _) => Precedence::TestedUnwritable,
            (_, true, true, true) => Precedence::Documented,
            (_, true, true, false) => Precedence::DocumentedWithOthers,
            (_, true, false, _) => Precedence::DocumentedUnwritable,
            (_, _, true, true) => Precedence::Shipped,
            (_, _, true, false) => Precedence::ShippedWithOthers,
            (_, _, false, _) => Precedence::ShippedUnwritable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_out_of_the_project() {
        for (folder, file, expected) in [
            ("operator/", "helm/crds/cup.yaml", "../helm/crds/cup.yaml"),
            ("a/b/", "a/c/cup.yaml", "../c/cup.yaml"),
            ("a/b/", "cup.yaml", "../../cup.yaml"),
            ("a/", "ab/cup.yaml", "../ab/cup.yaml"),
        ] {
            assert_eq!(path_from(folder, file), expected);
        }
    }
}

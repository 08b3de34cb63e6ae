//! `rbuilder edit --project-name` and `--domain`: renames the project outside of its scaffold.
//!
//! Merging the scaffolds renames everything in the scaffold. But users' code refers to the
//! project's library by crate name, and to the manager's namespace in markers and manifests. So
//! both are renamed in all code of the project before the merge.

use std::collections::BTreeMap;

use anyhow::Result;
use rbuilder_yaml::is_yaml;

use crate::commands::scaffold_merge::{Relocated, Written};
use crate::project::Project;
use crate::render;
use crate::tree::Tree;

/// Directories with Rust code, and with manifests that users edit.
const FOLDERS: [&str; 5] = ["src", "tests", "examples", "benches", "config"];

const CRDS: &str = "config/crd/bases/";

type Warning = (String, String);

#[derive(Default)]
struct Names {
    /// Old and new namespace of the manager.
    namespace: (String, String),
    /// Old and new crate name of the library, or `None` if its paths are ambiguous.
    library: Option<(String, String)>,
}

impl Names {
    fn apply(&self, path: &str, text: &str) -> String {
        let (old, new) = &self.namespace;
        let text = replace_word(text, old, new);
        match &self.library {
            Some((old, new)) if path.ends_with(".rs") => replace_root(&text, old, new),
            _ => text,
        }
    }
}

#[derive(Default)]
pub(super) struct Renamed {
    /// `None` if the project keeps its name.
    names: Option<Names>,
    texts: BTreeMap<String, Option<String>>,
    /// A module with the same name as the old crate, which makes paths ambiguous.
    namesake: Option<String>,
}

impl Renamed {
    pub(super) fn find(tree: &Tree, project: &Project, target: &Project) -> Result<Renamed> {
        if project.known.project_name == target.known.project_name {
            return Ok(Renamed::default());
        }
        let paths = list_files(tree)?;
        let (old, new) = (render::crate_ident(project), render::crate_ident(target));
        let is_namesake = |path: &&String| {
            path.ends_with(&format!("/{old}.rs")) || path.ends_with(&format!("/{old}/mod.rs"))
        };
        let namesake = paths.iter().find(is_namesake).filter(|_| old != new).cloned();
        let names = Names {
            namespace: (namespace(project), namespace(target)),
            // A path that starts with the name may refer to the module or the crate.
            library: namesake.is_none().then_some((old, new)),
        };
        let mut texts = BTreeMap::new();
        for path in paths {
            if let Some(text) = tree.read(&path)? {
                let after = names.apply(&path, &text);
                if after != text {
                    texts.insert(path, Some(after));
                }
            }
        }
        Ok(Renamed {
            names: Some(names),
            texts,
            namesake,
        })
    }

    /// Applies the same renames to the written scaffold, so that the merge sees no difference.
    pub(super) fn rename_written(&self, written: &mut Written) {
        let Some(names) = &self.names else {
            return;
        };
        let files = written.files.iter_mut();
        for (path, text) in files.filter(|(path, _)| has_names(path)) {
            *text = names.apply(path, text);
        }
    }

    pub(super) fn into_relocated(self) -> Relocated {
        Relocated {
            texts: self.texts,
            ..Relocated::default()
        }
    }

    pub(super) fn warnings(&self, project: &Project, target: &Project) -> Vec<Warning> {
        let (old, new) = (&project.known.project_name, &target.known.project_name);
        let mut warnings = Vec::new();
        if let Some(path) = &self.namesake {
            warnings.push((
                format!("{path} is a module with the old name of the library, so paths that begin with it were not renamed"),
                format!("rename those of the library to `{}`", render::crate_ident(target)),
            ));
        }
        let (prefix, new_prefix) = (project.name_prefix(), target.name_prefix());
        if old != new && prefix != new_prefix {
            warnings.push((
                format!(
                    "all deployed objects get new names, from `{prefix}…` to `{new_prefix}…`, and so does the Lease for leader election: an operator that is deployed under the old names keeps running beside the new one"
                ),
                format!(
                    "before you deploy, stop it with `kubectl --namespace {} delete deployment {}`; CRDs and their objects keep their names",
                    project.namespace(),
                    project.deployed_name()
                ),
            ));
        } else if old != new || project.known.domain != target.known.domain {
            warnings.push((
                "the Lease for leader election gets a new name: for the time of a rollout, an old and a new manager may both be leaders"
                    .to_owned(),
                format!(
                    "before you deploy, stop the manager with `kubectl --namespace {} scale deployment {} --replicas=0`",
                    project.namespace(),
                    project.deployed_name()
                ),
            ));
        }
        warnings
    }
}

fn namespace(project: &Project) -> String {
    format!("{}-system", project.known.project_name)
}

fn list_files(tree: &Tree) -> Result<Vec<String>> {
    let mut files = Vec::new();
    let mut folders: Vec<String> = FOLDERS.iter().map(|folder| (*folder).to_owned()).collect();
    while let Some(folder) = folders.pop() {
        folders.extend(tree.list_folders(&folder)?);
        files.extend(tree.list(&folder)?);
    }
    files.retain(|path| has_names(path));
    files.sort();
    Ok(files)
}

fn has_names(path: &str) -> bool {
    let is_inside = |folder: &str| {
        path.strip_prefix(folder)
            .is_some_and(|rest| rest.starts_with("/"))
    };
    FOLDERS.iter().any(|folder| is_inside(folder))
        && (path.ends_with(".rs") || is_yaml(path))
        && !path.starts_with(CRDS)
}

fn replace_word(text: &str, old: &str, new: &str) -> String {
    let is_part = |character: char| character.is_alphanumeric() || "-_.".contains(character);
    replace_where(text, (old, new), |before, after| {
        let ends = before.chars().next_back().is_none_or(|last| !is_part(last));
        let mut rest = after.chars();
        // A dot may also end a sentence.
        let continues = match rest.next() {
            Some('.') => rest.next().is_some_and(is_part),
            next => next.is_some_and(is_part),
        };
        ends && !continues
    })
}

fn replace_root(text: &str, old: &str, new: &str) -> String {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    replace_where(text, (old, new), |before, after| {
        let is_inner = before
            .strip_suffix("::")
            .is_some_and(|outer| outer.ends_with(is_part));
        after.starts_with("::") && !before.ends_with(is_part) && !before.ends_with('.') && !is_inner
    })
}

fn replace_where(text: &str, (old, new): (&str, &str), holds: impl Fn(&str, &str) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut end = 0;
    for (start, _) in text.match_indices(old) {
        let after = start + old.len();
        if start >= end && holds(&text[..start], &text[after..]) {
            out.push_str(&text[end..start]);
            out.push_str(new);
            end = after;
        }
    }
    out.push_str(&text[end..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_only_whole_names() {
        for (text, expected) in [
            ("namespace = \"shop-system\"", "namespace = \"store-system\""),
            ("in shop-system. Then", "in store-system. Then"),
            ("svc.shop-system.svc", "svc.shop-system.svc"),
            ("my-shop-system, shop-system-2", "my-shop-system, shop-system-2"),
        ] {
            assert_eq!(replace_word(text, "shop-system", "store-system"), expected);
        }
        for (text, expected) in [
            ("use shop::api; ::shop::f()", "use store::api; ::store::f()"),
            (
                "crate::shop::x, workshop::x, a.shop::<T>()",
                "crate::shop::x, workshop::x, a.shop::<T>()",
            ),
            ("shop: shop", "shop: shop"),
        ] {
            assert_eq!(replace_root(text, "shop", "store"), expected);
        }
    }
}

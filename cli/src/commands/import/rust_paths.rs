//! Maps Go types to Rust types: Kubernetes types in k8s-openapi, and the types of the project's
//! kinds.

use rbuilder_generator::find_kubernetes_kind;

use crate::paths::folder_of;
use crate::project::{Resource, names, strip_domain};
use rbuilder_go_project::{GoFile, GoProject, TypeRef};
use rbuilder_kubernetes::crd::Crd;

pub(super) struct GoTypes<'a> {
    original: &'a GoProject,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundType {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    /// Rust path, e.g. `k8s_openapi::api::apps::v1::Deployment`. Empty for a kind that isn't
    /// imported.
    pub(super) path: String,
}

impl<'a> GoTypes<'a> {
    pub(super) fn new(original: &'a GoProject) -> Self {
        GoTypes { original }
    }

    /// Finds the kind of a type in a file. Returns `None` if its package belongs neither to
    /// Kubernetes nor to the project.
    pub(super) fn find(&self, file: &GoFile, go_type: &TypeRef) -> Option<FoundType> {
        let package = match go_type.package.as_str() {
            "" => format!("{}/{}", self.original.repo, folder_of(&file.path)),
            name => file.imports.get(name)?.clone(),
        };
        find_built_in(&package, &go_type.name)
            .or_else(|| self.find_recorded(&package, &go_type.name))
            .or_else(|| self.find_by_crd(&package, &go_type.name))
    }

    fn find_recorded(&self, package: &str, name: &str) -> Option<FoundType> {
        let resources = &self.original.project.known.resources;
        let found = resources
            .iter()
            .find(|known| known.kind == name && known.path == package)?;
        let group = found.qualified_group();
        let path = if found.is_foreign() {
            String::new()
        } else {
            self.own_path(&found.group, &found.version, name)
        };
        Some(FoundType {
            group,
            version: found.version.clone(),
            kind: name.to_owned(),
            path,
        })
    }

    /// Finds one of the project's kinds by its package directory, which ends in `<version>` or
    /// `<group>/<version>`.
    fn find_by_crd(&self, package: &str, name: &str) -> Option<FoundType> {
        let below = package
            .strip_prefix(self.original.repo.as_str())?
            .trim_start_matches('/');
        let mut parts = below.rsplit('/');
        let (version, folder) = (parts.next()?, parts.next().unwrap_or_default());
        let known = &self.original.project.known;
        let candidates: Vec<FoundType> = self
            .original
            .definitions()
            .into_iter()
            .filter(|found| found.kind() == name)
            .filter(|found| Crd::of(found.crd).version(version).is_some())
            .map(|found| {
                let group = found.group().to_owned();
                // A kind listed in PROJECT may have another domain. Other kinds outside of the
                // project's domain aren't imported.
                let is_listed = |listed: &&Resource| listed.kind == name && listed.qualified_group() == group;
                let listed = known.resources.iter().find(is_listed);
                let own = match listed {
                    Some(listed) => Some(listed.group.as_str()),
                    None => strip_domain(&group, &known.domain),
                };
                FoundType {
                    path: own.map_or_else(String::new, |own| self.own_path(own, version, name)),
                    group,
                    version: version.to_owned(),
                    kind: name.to_owned(),
                }
            })
            .collect();
        let is_of_folder = |found: &&FoundType| {
            let group = found.group.split('.').next().unwrap_or_default();
            group == folder || group.replace('-', "") == folder || found.group == folder
        };
        match candidates.as_slice() {
            [found] => Some(found.clone()),
            several => several.iter().find(is_of_folder).cloned(),
        }
    }

    fn own_path(&self, group: &str, version: &str, kind: &str) -> String {
        let module = match names::group_module(group) {
            module if self.original.project.known.multigroup && !module.is_empty() => format!("{module}::"),
            _ => String::new(),
        };
        format!("crate::api::{module}{version}::{kind}")
    }
}

pub(super) fn find_built_in(package: &str, name: &str) -> Option<FoundType> {
    let (group, version) = package.strip_prefix("k8s.io/api/")?.split_once('/')?;
    // Packages are named after the first label of their group.
    let groups = [
        group.to_owned(),
        format!("{group}.k8s.io"),
        format!("{group}.authorization.k8s.io"),
    ];
    let found = groups
        .iter()
        .find_map(|group| find_kubernetes_kind(None, group, version, name))?;
    Some(FoundType {
        group: found.group,
        version: found.version,
        kind: found.kind,
        path: found.path,
    })
}

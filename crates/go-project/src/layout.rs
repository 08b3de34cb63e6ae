//! Finds the manifests of a project.
//!
//! kubebuilder scaffolds `config/crd`, `config/rbac`, `config/manager` and `config/webhook`. Some
//! projects moved these to subdirectories, e.g. to `config/components/crd`, and others only have
//! CRDs in a chart.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use rbuilder_kubernetes::crd::{Crd, KIND};
use rbuilder_yaml::is_yaml;
use serde_json::Value;

use super::{GoProject, Manifests};
use crate::overlay::follow_kustomizations;
use crate::project::{Api, Resource, strip_domain};
use crate::tree::Tree;

/// Directories scaffolded by kubebuilder, and alternative names found in projects.
const FOLDERS: [(&str, &[&str]); 4] = [
    ("config/crd/", &["crd", "crds"]),
    ("config/rbac/", &["rbac"]),
    ("config/manager/", &["manager"]),
    ("config/webhook/", &["webhook", "webhooks"]),
];

/// Directories with manifests that aren't meant for users' clusters.
const APART: [&str; 8] = [
    "test",
    "tests",
    "testdata",
    "e2e",
    "hack",
    "samples",
    "examples",
    "olm-catalog",
];

/// The CRD of a kind, and its file.
#[derive(Clone, Copy, Debug)]
pub struct FoundDefinition<'a> {
    /// Path of the file.
    pub path: &'a str,
    /// The CustomResourceDefinition.
    pub crd: &'a Value,
    /// Whether `config/default` or `config/crd` includes it. If they include no CRD at all, every
    /// CRD counts as installed.
    pub is_installed: bool,
}

impl<'a> FoundDefinition<'a> {
    /// Group of the CRD.
    pub fn group(&self) -> &'a str {
        Crd::of(self.crd).group()
    }

    /// Kind of the CRD.
    pub fn kind(&self) -> &'a str {
        Crd::of(self.crd).kind()
    }

    /// Storage version of the CRD.
    pub fn stored_version(&self) -> &'a str {
        let stored = Crd::of(self.crd).storage();
        stored.map_or("", |version| version.name)
    }
}

impl GoProject {
    /// One CRD per kind, preferably one that is installed by a kustomization.
    pub fn definitions(&self) -> Vec<FoundDefinition<'_>> {
        let installed = self.installed_files();
        let mut found: BTreeMap<(&str, &str), FoundDefinition<'_>> = BTreeMap::new();
        let mut all: Vec<FoundDefinition<'_>> = self
            .documents("config/crd/", KIND)
            .filter(|(_, crd)| is_definition(crd))
            .map(|(path, crd)| FoundDefinition {
                path,
                crd,
                is_installed: installed.contains(path),
            })
            .collect();
        if all.iter().all(|definition| !definition.is_installed) {
            all.iter_mut()
                .for_each(|definition| definition.is_installed = true);
        }
        // The first CRD of each kind wins.
        all.sort_by_key(|definition| {
            (
                !definition.is_installed,
                !definition.path.contains("/bases/"),
                definition.path,
            )
        });
        for definition in all {
            let key = (definition.group(), definition.kind());
            found.entry(key).or_insert(definition);
        }
        found.into_values().collect()
    }

    fn installed_files(&self) -> BTreeSet<String> {
        let read = |path: &str| {
            let file = self.manifests.iter().find(|file| file.path == path);
            file.map(|file| file.documents.clone()).unwrap_or_default()
        };
        let roots = self.kustomization_roots();
        let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
        let reached = follow_kustomizations(&roots, &read).into_iter();
        reached
            .filter(|file| file.kustomization.is_none())
            .map(|file| file.path)
            .collect()
    }

    /// Directories of the kustomizations to start from: the CRDs' and `config/default`.
    pub(crate) fn kustomization_roots(&self) -> Vec<String> {
        let crd = self.manifests.iter().find(|file| file.place == CRD_LIST);
        let crd = crd.and_then(|file| file.path.rsplit_once('/'));
        let crd = crd.map(|(folder, _)| folder.to_owned());
        crd.into_iter().chain(["config/default".to_owned()]).collect()
    }

    /// Sets `place` of each file to where kubebuilder would have scaffolded it.
    pub(crate) fn set_places(&mut self) {
        for (place, names) in FOLDERS {
            if self.manifests.iter().any(|file| file.path.starts_with(place)) {
                continue;
            }
            let folders = self
                .manifests
                .iter()
                .filter_map(|file| find_folder(&file.path, names));
            // If several directories have one of these names, prefer the one closest to the root.
            let Some(folder) = folders.min_by_key(|folder| (folder.matches('/').count(), *folder)) else {
                continue;
            };
            let folder = folder.to_owned();
            for file in &mut self.manifests {
                if let Some(rest) = file.path.strip_prefix(&folder) {
                    file.place = format!("{place}{rest}");
                }
            }
        }
    }

    /// Finds CRDs outside of `config/` for kinds in PROJECT that have none there. Starts with the
    /// directory that contains most of them.
    pub(crate) fn read_definitions_elsewhere(&mut self, tree: &Tree, paths: &[String]) {
        let mut missing = self.kinds_without_definition();
        if missing.is_empty() {
            return;
        }
        let mut folders = read_folders(tree, paths);
        loop {
            let count = |files: &[Manifests]| {
                let crds = files.iter().flat_map(|file| &file.documents);
                crds.filter(|crd| missing.iter().any(|kind| is_of(crd, kind)))
                    .count()
            };
            let best = folders
                .iter()
                .map(|(folder, files)| (count(files), folder))
                .filter(|(count, _)| *count > 0)
                // In a tie, prefer the directory closest to the root.
                .max_by_key(|(count, folder)| {
                    (*count, Reverse(folder.matches('/').count()), Reverse(*folder))
                });
            let Some((_, folder)) = best else {
                return;
            };
            let folder = folder.clone();
            self.manifests.extend(folders.remove(&folder).unwrap_or_default());
            missing = self.kinds_without_definition();
        }
    }

    pub(crate) fn settle_groups(&mut self) {
        let found: Vec<(String, String)> = self
            .definitions()
            .iter()
            .map(|found| (found.group().to_owned(), found.kind().to_owned()))
            .collect();
        let listed: Vec<(String, String)> = self
            .project
            .known
            .resources
            .iter()
            .map(|listed| (listed.qualified_group(), listed.kind.clone()))
            .collect();
        for (resource, key) in self.project.known.resources.iter_mut().zip(&listed) {
            if resource.is_foreign() || found.contains(key) {
                continue;
            }
            // Some projects changed a group only in the source. So if no CRD has the group, go by
            // the kind, provided that just one CRD in the domain has it.
            let groups: Vec<&str> = found
                .iter()
                .filter(|found| found.1 == resource.kind && !listed.contains(found))
                .map(|(group, _)| group.as_str())
                .filter(|group| strip_domain(group, &resource.domain).is_some())
                .collect();
            let group = match groups.as_slice() {
                [group] => Some(*group),
                // PROJECT may contain the full group where only the part before the domain belongs.
                groups => groups.iter().find(|group| **group == resource.group).copied(),
            };
            if let Some(own) = group.and_then(|group| strip_domain(group, &resource.domain)) {
                resource.group = own.to_owned();
            }
        }
    }

    /// Adds the project's domain to PROJECT entries without one, which older versions of
    /// operator-sdk wrote.
    pub(crate) fn settle_domains(&mut self) {
        let known = &mut self.project.known;
        let domain = &known.domain;
        for resource in known.resources.iter_mut().filter(|listed| !listed.is_foreign()) {
            let group = resource.qualified_group();
            if let Some(own) = strip_domain(&group, domain).filter(|_| resource.domain != *domain) {
                resource.group = own.to_owned();
                resource.domain = domain.clone();
            }
        }
    }

    /// Adds kinds whose group is declared in the source but outside of the project's domain.
    /// PROJECT only lists these if the user passed their domain to kubebuilder.
    pub(crate) fn list_kinds_of_other_domains(&mut self) {
        let declared = self.declared_groups();
        let known = &self.project.known;
        let is_listed = |found: &FoundDefinition<'_>| {
            let mut listed = known.resources.iter();
            listed.any(|listed| listed.kind == found.kind() && listed.qualified_group() == found.group())
        };
        let is_other = |found: &FoundDefinition<'_>| {
            declared.contains(found.group()) && strip_domain(found.group(), &known.domain).is_none()
        };
        let more: Vec<Resource> = self
            .definitions()
            .iter()
            .filter(|found| is_other(found) && !is_listed(found))
            .filter_map(|found| {
                let (group, domain) = found.group().split_once('.')?;
                Some(Resource {
                    group: group.to_owned(),
                    domain: domain.to_owned(),
                    version: found.stored_version().to_owned(),
                    kind: found.kind().to_owned(),
                    api: Some(Api::default()),
                    ..Resource::default()
                })
            })
            .collect();
        self.project.known.resources.extend(more);
    }

    fn kinds_without_definition(&self) -> Vec<(String, String)> {
        let found = self.definitions();
        let resources = self.project.known.resources.iter();
        let wanted = resources.filter(|resource| resource.api.is_some() && !resource.is_foreign());
        wanted
            .map(|resource| (resource.domain.clone(), resource.kind.clone()))
            .filter(|wanted| !found.iter().any(|found| is_of(found.crd, wanted)))
            .collect()
    }

    /// Finds a domain for a project without one: the common suffix of all groups, or else the first
    /// group.
    pub(crate) fn find_domain(&mut self) {
        let known = &mut self.project.known;
        if !known.domain.is_empty() {
            return;
        }
        let own = |resource: &&mut Resource| resource.domain.is_empty() && resource.api.is_some();
        let groups: Vec<String> = known
            .resources
            .iter_mut()
            .filter(own)
            .map(|own| own.group.clone())
            .collect();
        let Some(first) = groups.first() else { return };
        let mut ends = first
            .match_indices('.')
            .map(|(at, _)| &first[at + 1..])
            // Reject a top-level domain, e.g. `io`.
            .filter(|end| end.contains('.'));
        let has_all = |end: &&str| groups.iter().all(|group| strip_domain(group, end).is_some());
        let domain = match has_all(&first.as_str()) {
            true => first,
            false => ends.find(has_all).unwrap_or(first),
        };
        for resource in known.resources.iter_mut().filter(own) {
            if let Some(own) = strip_domain(&resource.group, domain) {
                resource.group = own.to_owned();
                resource.domain = domain.to_owned();
            }
        }
        known.domain = domain.to_owned();
    }
}

const CRD_LIST: &str = "config/crd/kustomization.yaml";

/// Whether an object really is a CRD. A patch for a CRD has no versions.
fn is_definition(crd: &Value) -> bool {
    let found = Crd::read(crd);
    found.is_some_and(|crd| crd.has_versions() && !crd.group().is_empty() && !crd.kind().is_empty())
}

fn is_of(crd: &Value, (domain, kind): &(String, String)) -> bool {
    let crd = Crd::of(crd);
    strip_domain(crd.group(), domain).is_some() && crd.kind() == kind
}

fn is_apart(path: &str) -> bool {
    path.split('/').any(|step| APART.contains(&step))
}

/// Part of a path up to a directory with one of these names.
fn find_folder<'a>(path: &'a str, names: &[&str]) -> Option<&'a str> {
    let mut end = 0;
    for step in path.split_inclusive('/') {
        end += step.len();
        if step.strip_suffix('/').is_some_and(|name| names.contains(&name)) {
            return Some(&path[..end]).filter(|folder| !is_apart(folder));
        }
    }
    None
}

/// Reads files with CRDs outside of `config/`, by directory. Skips files that aren't YAML, e.g.
/// chart templates.
fn read_folders(tree: &Tree, paths: &[String]) -> BTreeMap<String, Vec<Manifests>> {
    let mut folders: BTreeMap<String, Vec<Manifests>> = BTreeMap::new();
    let outside = paths
        .iter()
        .filter(|path| is_yaml(path) && !path.starts_with("config/"));
    for path in outside.filter(|path| !is_apart(path)) {
        let Ok(Some(text)) = tree.read(path) else { continue };
        if text.len() > super::MAX_FILE || !text.contains(KIND) {
            continue;
        }
        let Ok(mut documents) = super::parse_manifests(&text) else {
            continue;
        };
        documents.retain(is_definition);
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if !documents.is_empty() {
            folders.entry(folder.to_owned()).or_default().push(Manifests {
                path: path.clone(),
                place: format!("config/crd/{name}"),
                text,
                documents,
            });
        }
    }
    folders
}

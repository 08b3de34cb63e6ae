//! Combines what PROJECT, the CRDs, the webhook configurations and the source say about each kind
//! of a Go project.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_kubernetes::crd::Crd;
use serde_json::Value;

use super::rust_paths::{FoundType, GoTypes, find_built_in};
use crate::paths::folder_of;
use crate::project::{Resource, Webhooks, strip_domain};
use rbuilder_go_project::{Builder, FoundDefinition, GoFile, GoProject};

const BUILT_IN: &str = "k8s.io/api/";

/// Help for a controller whose kind belongs to another project.
const FOREIGN: &str = ": find a crate that has its type, or write it with `rbuilder types`, then run `rbuilder create api --group <group> --version <version> --kind <kind> --external-crate <crate>@<version> --external-path <type>`";

/// Help for a controller that no manager runs.
const UNLINKED: &str = "no program of the Go project imports its package, so the manager does not run it: port it with the tests that do, or add it with `rbuilder create api --controller`";

#[derive(Debug)]
pub(super) struct Kind<'a> {
    /// First entry in PROJECT, or an entry derived from the CRD.
    pub(super) resource: Resource,
    /// All versions: first those in PROJECT, then those only in the CRD.
    pub(super) versions: Vec<Resource>,
    /// The CRD and its path.
    pub(super) crd: Option<(&'a str, &'a Value)>,
    pub(super) controllers: Vec<GoController<'a>>,
}

#[derive(Debug)]
pub(super) struct GoController<'a> {
    /// `None` for the default name.
    pub(super) name: Option<String>,
    /// The file and the calls that set it up. `None` if we found no setup in the source.
    pub(super) found: Option<(&'a GoFile, &'a Builder)>,
}

#[derive(Clone, Debug)]
pub(super) struct Leftover {
    pub(super) what: String,
    pub(super) reason: String,
}

impl Leftover {
    pub(super) fn new(what: impl Into<String>, reason: impl Into<String>) -> Leftover {
        Leftover {
            what: what.into(),
            reason: reason.into(),
        }
    }
}

/// Collects the kinds in PROJECT order, followed by kinds that only have a CRD.
pub(super) fn find_kinds<'a>(original: &'a GoProject, left: &mut Vec<Leftover>) -> Vec<Kind<'a>> {
    let mut crds: BTreeMap<(String, String), FoundDefinition<'a>> = BTreeMap::new();
    for found in original.definitions() {
        if !found.is_installed {
            let reason = format!(
                "no kustomization of the Go project leads to {}: remove it from config/crd/kustomization.yaml if clusters must not have it",
                found.path
            );
            left.push(Leftover::new(
                format!("CRD of `{}` is installed", found.kind()),
                reason,
            ));
        }
        if found.crd["spec"]["preserveUnknownFields"] == true {
            left.push(Leftover::new(
                format!("unknown fields of `{}`", found.kind()),
                format!(
                    "{} is of `v1beta1`, in which the API server kept fields that the schema does not have, and it drops them now: add `preserve_unknown_fields` where clients use such fields",
                    found.path
                ),
            ));
        }
        let key = (found.group().to_owned(), found.kind().to_owned());
        crds.insert(key, found);
    }
    let mut kinds: Vec<Kind<'a>> = Vec::new();
    for resource in &original.project.known.resources {
        if let Some(known) = kinds.iter_mut().find(|kind| kind.resource.same_kind(resource)) {
            known.versions.push(resource.clone());
            continue;
        }
        let mut resource = resource.clone();
        resource.core |= resource.api.is_none() && !resource.external && resource.path.starts_with(BUILT_IN);
        if let Some(found) = find_built_in(&resource.path, &resource.kind).filter(|_| resource.core) {
            // Group and domain are manual input, so derive group and version from the Go package
            // path.
            let meant = built_in_resource(&found);
            (resource.group, resource.domain, resource.version) = (meant.group, meant.domain, meant.version);
        }
        let crd = crds.remove(&(resource.qualified_group(), resource.kind.clone()));
        kinds.push(Kind {
            versions: vec![resource.clone()],
            resource,
            crd: crd.map(|found| (found.path, found.crd)),
            controllers: Vec::new(),
        });
    }
    let domain = &original.project.known.domain;
    for ((group, kind), found) in crds {
        let path = found.path;
        let Some(own) = strip_domain(&group, domain) else {
            kinds.retain(|known| known.crd.is_some() || known.resource.kind != kind);
            left.push(Leftover::new(
                format!("kind `{kind}` of {path}"),
                format!(
                    "its group `{group}` is not in the domain `{domain}` of PROJECT: add it with `rbuilder create api --domain {} --from-crd {path}`",
                    group.split_once('.').map_or(group.as_str(), |(_, parent)| parent)
                ),
            ));
            continue;
        };
        let resource = Resource {
            group: own.to_owned(),
            domain: domain.clone(),
            version: found.stored_version().to_owned(),
            kind,
            ..Resource::default()
        };
        kinds.push(Kind {
            versions: vec![resource.clone()],
            resource,
            crd: Some((path, found.crd)),
            controllers: Vec::new(),
        });
    }
    for kind in &mut kinds {
        kind.add_versions();
    }
    find_controllers(original, &mut kinds, left);
    kinds
}

/// Counts the project's API groups among its CRDs, i.e. groups in its domain or listed in PROJECT.
pub(super) fn count_groups(original: &GoProject) -> usize {
    let known = &original.project.known;
    let listed: Vec<String> = known
        .resources
        .iter()
        .filter(|listed| !listed.is_foreign())
        .map(Resource::qualified_group)
        .collect();
    let found = original.definitions();
    let is_own = |found: &&FoundDefinition<'_>| {
        strip_domain(found.group(), &known.domain).is_some()
            || listed.iter().any(|group| group == found.group())
    };
    let own = found.iter().filter(is_own);
    own.map(|found| found.group()).collect::<BTreeSet<_>>().len()
}

/// Assigns controllers to kinds: those set up in the source, and those only listed in PROJECT.
fn find_controllers<'a>(original: &'a GoProject, kinds: &mut Vec<Kind<'a>>, left: &mut Vec<Leftover>) {
    let types = GoTypes::new(original);
    let has_controllers = |linked: &BTreeSet<&str>| {
        let mut files = original.files.iter();
        files.any(|file| !file.controllers.is_empty() && linked.contains(folder_of(&file.path)))
    };
    // If no controller is reachable, we misunderstood the program, so treat all of them as linked.
    let linked = original.linked_folders().filter(has_controllers);
    for file in &original.files {
        let is_linked = linked
            .as_ref()
            .is_none_or(|linked| linked.contains(folder_of(&file.path)));
        for builder in &file.controllers {
            let at = format!("controller at {}:{}", file.path, builder.line);
            let Some(go_type) = &builder.kind else {
                left.push(Leftover::new(
                    at,
                    "it has no `For(&…{})`; write it with `Controller::new` or as a task of the manager",
                ));
                continue;
            };
            let found = types.find(file, go_type);
            if !is_linked && !found.as_ref().is_some_and(|found| is_listed(original, found)) {
                left.push(Leftover::new(at, UNLINKED));
                continue;
            }
            let place = found.as_ref().and_then(|found| place_of(kinds, found));
            let kind = place.and_then(|at| kinds.get_mut(at));
            match kind {
                Some(kind) => kind.controllers.push(GoController {
                    name: builder.name.clone(),
                    found: Some((file, builder)),
                }),
                None => left.push(Leftover::new(
                    at,
                    match go_type.package.as_str() {
                        "" => format!(
                            "`{}` is not a kind in PROJECT: if it is a type parameter, write a controller for each kind that it stands for",
                            go_type.name
                        ),
                        package => {
                            let path = file.imports.get(package).map(String::as_str).unwrap_or_default();
                            let is_own = !original.repo.is_empty() && path.starts_with(&original.repo);
                            let advice = if is_own { "" } else { FOREIGN };
                            format!("its type `{package}.{}` is not a kind that was imported{advice}", go_type.name)
                        }
                    },
                )),
            }
        }
    }
    for kind in kinds {
        kind.settle_controllers(left);
    }
}

fn is_listed(original: &GoProject, found: &FoundType) -> bool {
    let mut resources = original.project.known.resources.iter();
    resources.any(|listed| {
        let has_controller = listed.controller || !listed.controllers.is_empty();
        has_controller && listed.kind == found.kind && listed.qualified_group() == found.group
    })
}

/// Index of a kind in the list. Adds a built-in kind that PROJECT doesn't list.
fn place_of(kinds: &mut Vec<Kind<'_>>, found: &FoundType) -> Option<usize> {
    let is_it =
        |kind: &Kind<'_>| kind.resource.kind == found.kind && kind.resource.qualified_group() == found.group;
    if let Some(at) = kinds.iter().position(is_it) {
        return Some(at);
    }
    if !found.path.starts_with("k8s_openapi::") {
        return None;
    }
    let resource = built_in_resource(found);
    kinds.push(Kind {
        versions: vec![resource.clone()],
        resource,
        crd: None,
        controllers: Vec::new(),
    });
    Some(kinds.len() - 1)
}

fn built_in_resource(found: &FoundType) -> Resource {
    let group = if found.group.is_empty() {
        "core"
    } else {
        &found.group
    };
    let (group, domain) = match group.strip_suffix(".k8s.io") {
        Some(group) => (group, "k8s.io"),
        None => (group, ""),
    };
    Resource {
        group: group.to_owned(),
        domain: domain.to_owned(),
        version: found.version.clone(),
        kind: found.kind.clone(),
        core: true,
        ..Resource::default()
    }
}

impl Kind<'_> {
    fn add_versions(&mut self) {
        for name in self.crd_versions() {
            if self.versions.iter().any(|version| version.version == name) {
                continue;
            }
            self.versions.push(Resource {
                version: name,
                controller: false,
                controllers: Vec::new(),
                webhooks: None,
                ..self.resource.clone()
            });
        }
    }

    fn settle_controllers(&mut self, left: &mut Vec<Leftover>) {
        let default = self.resource.default_controller();
        let recorded: Vec<String> = self
            .versions
            .iter()
            .flat_map(|version| version.controller_names())
            .collect();
        // PROJECT may name controllers whose setup we didn't find.
        if self.controllers.is_empty() {
            let names = recorded.into_iter();
            self.controllers = names
                .map(|name| GoController {
                    name: Some(name).filter(|name| *name != default),
                    found: None,
                })
                .collect();
        }
        let mut seen: Vec<String> = Vec::new();
        let kind = self.resource.kind.clone();
        self.controllers.retain_mut(|controller| {
            let is_valid = |name: &String| crate::project::names::check_controller_name(name).is_ok();
            controller.name = controller.name.take().filter(|name| *name != default);
            let name = controller.name.clone().filter(is_valid);
            if let Some(asked) = controller.name.as_ref().filter(|_| name.is_none()) {
                left.push(Leftover::new(format!("name of the controller `{asked}`"), "it is not a DNS label, so the controller has the name of its kind; set it with `.named(…)`"));
            }
            controller.name = name;
            let shown = controller.name.clone().unwrap_or_else(|| default.clone());
            if seen.contains(&shown) {
                left.push(Leftover::new(format!("second controller `{shown}` of `{kind}`"), "two controllers of a kind need different names: add it with `rbuilder create api --controller-name`"));
                return false;
            }
            seen.push(shown);
            true
        });
        // The controller with the default name can only be scaffolded first.
        self.controllers
            .sort_by_key(|controller| controller.name.is_some());
    }

    pub(super) fn webhooks(&self, version: &Resource) -> Option<Webhooks> {
        let mut webhooks = version.webhooks.clone()?;
        // An older PROJECT doesn't list the spokes.
        if webhooks.conversion && webhooks.spoke.is_empty() {
            let others = self.crd_versions();
            webhooks.spoke = others
                .into_iter()
                .filter(|name| *name != version.version)
                .collect();
        }
        webhooks.conversion &= !webhooks.spoke.is_empty();
        Some(webhooks)
    }

    pub(super) fn crd_versions(&self) -> Vec<String> {
        let crd = self.crd.map(|(_, crd)| Crd::of(crd));
        let versions = crd.into_iter().flat_map(Crd::versions);
        versions.map(|version| version.name.to_owned()).collect()
    }
}

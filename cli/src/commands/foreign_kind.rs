//! Foreign kinds, whose types don't belong to the project: built-in Kubernetes kinds from
//! k8s-openapi, and kinds from other crates.
//!
//! `create` scaffolds controllers and webhooks for foreign kinds, but neither types nor a CRD. As
//! in kubebuilder, such kinds are recorded as `core` or `external` in PROJECT, along with the path
//! of the Rust type and the scope.

use anyhow::{Result, bail};
use rbuilder_generator::{
    KubernetesKind, Minor, Options, explain_unknown_kind, find_kubernetes_kind, find_kubernetes_minor,
};

use super::scaffold;
use crate::edit::dependency::{self, Requirement};
use crate::project::{Project, Resource, names};
use crate::request::ExternalType;
use crate::tree::Tree;

/// Group of Kubernetes' oldest kinds, whose name is empty in the API.
const CORE_GROUP: &str = "core";

/// Domain suffix of most Kubernetes groups.
const KUBERNETES_DOMAIN: &str = ".k8s.io";

#[derive(Clone, Copy, Debug)]
pub(super) struct NamedKind<'a> {
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) kind: &'a str,
    pub(super) plural: Option<&'a str>,
    pub(super) namespaced: Option<bool>,
    pub(super) external: &'a ExternalType,
}

/// Finds the entry for a foreign kind, if any: the entry in PROJECT, a kind from another crate if
/// requested by flags, or else a built-in Kubernetes kind. The flags must not contradict each
/// other, PROJECT or Cargo.toml.
pub(super) fn find_foreign_kind(
    project: &Project,
    tree: &Tree,
    requested: NamedKind<'_>,
) -> Result<Option<Resource>> {
    let NamedKind {
        group, version, kind, ..
    } = requested;
    let domain = requested.external.domain.as_deref();
    let mut recorded = project.known.resources.iter();
    let recorded = recorded.find(|known| {
        let is_meant = match domain {
            Some(domain) => known.external && known.group == group && known.domain == domain,
            None => is_of_group(known, group),
        };
        is_meant && known.version == version && known.kind == kind
    });
    if let Some(path) = &requested.external.path {
        let asked = external_kind(tree, requested, path)?;
        if let Some(recorded) = recorded.filter(|recorded| recorded.path != asked.path) {
            bail!(
                "kind `{kind}` of {group}/{version} already has the type `{}` in PROJECT: omit `--external-path`",
                recorded.path
            );
        }
        return Ok(Some(match recorded {
            Some(recorded) => recorded.clone(),
            None => asked,
        }));
    }
    if let Some(recorded) = recorded {
        return Ok(Some(recorded.clone()));
    }
    let found = find_kubernetes_kind(find_minor(tree)?, group, version, kind);
    Ok(found.map(|found| core_kind(&found)))
}

/// Finds the kind of this name in Kubernetes, or in another project if PROJECT lists it.
pub(super) fn find_other(
    project: &Project,
    tree: &Tree,
    group: &str,
    version: &str,
    kind: &str,
) -> Result<Option<Resource>> {
    let requested = NamedKind {
        group,
        version,
        kind,
        plural: None,
        namespaced: None,
        external: &ExternalType::default(),
    };
    find_foreign_kind(project, tree, requested)
}

pub(super) fn is_of_group(known: &Resource, group: &str) -> bool {
    known.is_foreign() && (known.group == group || known.qualified_group() == group)
}

pub(super) fn explain_unknown(tree: &Tree, group: &str, version: &str, kind: &str) -> Result<String> {
    let said = explain_unknown_kind(find_minor(tree)?, group, version, kind);
    Ok(said.map(|said| format!("\n  = help: {said}")).unwrap_or_default())
}

pub(super) fn check_is_watchable(resource: &Resource) -> Result<()> {
    let Resource {
        group, version, kind, ..
    } = resource;
    match find_built_in(resource) {
        Some(found) if !found.is_watchable && found.is_written => bail!(
            "objects of `{kind}` are not stored, so a controller cannot watch them; scaffold a webhook instead: `rbuilder create webhook --group {group} --version {version} --kind {kind} --validation`"
        ),
        Some(found) if !found.is_watchable => bail!(
            "the API server computes objects of `{kind}` for each request, so a controller cannot watch them: call `Api::<{kind}>::list` of kube in a task"
        ),
        _ => Ok(()),
    }
}

pub(super) fn check_is_written(resource: &Resource) -> Result<()> {
    let kind = &resource.kind;
    if find_built_in(resource).is_some_and(|found| !found.is_written) {
        bail!(
            "no client can create, update or delete objects of `{kind}`, so the API server never calls a webhook for them"
        );
    }
    Ok(())
}

fn find_built_in(resource: &Resource) -> Option<KubernetesKind> {
    let Resource {
        group, version, kind, ..
    } = resource;
    resource
        .core
        .then(|| find_kubernetes_kind(None, group, version, kind))?
}

fn find_minor(tree: &Tree) -> Result<Option<Minor>> {
    let sources = tree.sources([]);
    let configured = super::kubernetes::find_configured_version(&sources)?;
    let options = Options {
        kubernetes: configured,
        ..Options::default()
    };
    Ok(find_kubernetes_minor(&sources, &options))
}

fn core_kind(found: &KubernetesKind) -> Resource {
    let (group, domain) = match found.group.strip_suffix(KUBERNETES_DOMAIN) {
        _ if found.group.is_empty() => (CORE_GROUP, ""),
        Some(group) => (group, "k8s.io"),
        None => (found.group.as_str(), ""),
    };
    let mut resource = Resource {
        group: group.to_owned(),
        domain: domain.to_owned(),
        version: found.version.clone(),
        kind: found.kind.clone(),
        plural: found.plural.clone(),
        core: true,
        path: found.path.clone(),
        ..Resource::default()
    };
    resource.set_scope(found.is_namespaced);
    resource
}

/// The entry for a kind from another crate, or from a module of the project that wraps one.
fn external_kind(tree: &Tree, requested: NamedKind<'_>, path: &str) -> Result<Resource> {
    scaffold::check_names([names::check_type_path(path)])?;
    let (first, _) = path.split_once("::").unwrap_or((path, ""));
    let asked = requested.external.package.as_deref();
    let requirement = asked.map(Requirement::parse).transpose()?;
    let manifest = tree.read("Cargo.toml")?.unwrap_or_default();
    let is_dependency = dependency::has_crate(&manifest, first);
    match &requirement {
        Some(_) if first == "crate" => bail!("`{path}` is a type of this package: omit `--external-crate`"),
        None if first == "crate" => {}
        Some(requirement) if requirement.crate_name() != first => bail!(
            "`--external-path` must begin with the crate of `--external-crate`: expected `{}::…`, found `{path}`",
            requirement.crate_name()
        ),
        Some(requirement) if requirement.version.is_none() && !is_dependency => bail!(
            "crate `{}` is not a dependency of this package: pass a version, as in `--external-crate {}@1.0`",
            requirement.package,
            requirement.package
        ),
        None if !is_dependency => bail!(
            "crate `{first}` of `{path}` is not a dependency of this package: pass `--external-crate {}@<version>`",
            first.replace('_', "-")
        ),
        _ => {}
    }
    let domain = requested.external.domain.clone().unwrap_or_default();
    let mut resource = Resource {
        group: requested.group.to_owned(),
        domain,
        version: requested.version.to_owned(),
        kind: requested.kind.to_owned(),
        plural: requested
            .plural
            .map_or_else(|| names::plural_of(requested.kind), str::to_owned),
        external: true,
        path: path.to_owned(),
        // `create` didn't add an existing dependency, so `delete` must not remove it.
        module: asked.filter(|_| !is_dependency).unwrap_or_default().to_owned(),
        ..Resource::default()
    };
    resource.set_scope(requested.namespaced.unwrap_or(true));
    if resource.qualified_group().is_empty() {
        bail!(
            "the API group of `{}` is required: pass `--group`",
            requested.kind
        );
    }
    Ok(resource)
}

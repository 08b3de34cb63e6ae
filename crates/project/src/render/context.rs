//! The template context of a project.

use rbuilder_generator::{Minor, versions};
use rbuilder_templates::objects::{ObjectName, OtherNames};
use rbuilder_templates::{ProjectContext, TemplateSet, Versions};

use crate::hash::fnv1a_32;
use crate::library::Library;
use crate::project::{ObjectNames, Project, names};

fn current_versions() -> Versions {
    Versions {
        rbuilder: env!("CARGO_PKG_VERSION").into(),
        rust: versions::RUST.into(),
        kube: versions::KUBE.into(),
        k8s_openapi: versions::K8S_OPENAPI.into(),
        kubernetes: versions::KUBERNETES.to_string(),
        k8s_openapi_feature: versions::k8s_openapi_feature(versions::KUBERNETES),
    }
}

/// Name of the project's library in Rust code.
pub fn crate_ident(project: &Project) -> String {
    match &project.known.rbuilder.package {
        Some(package) => package.crate_ident(),
        None => names::package_name(&project.known.project_name).replace('-', "_"),
    }
}

/// What templates need to know about a project.
pub fn project_context(project: &Project) -> ProjectContext {
    let known = &project.known;
    let adopted = known.rbuilder.package.as_ref();
    let package = match adopted {
        Some(adopted) => adopted.name.clone(),
        None => names::package_name(&known.project_name),
    };
    let library = known.rbuilder.library.as_ref();
    let license_spdx = match known.rbuilder.license.as_str() {
        "apache2" => "Apache-2.0",
        "mit" => "MIT",
        _ => "",
    };
    let release = project.release();
    let mut versions = release.map_or_else(current_versions, |release| release.versions.clone());
    if let Some(minor) = known.rbuilder.kubernetes.as_deref().and_then(Minor::from_version) {
        versions.kubernetes = minor.to_string();
        versions.k8s_openapi_feature = versions::k8s_openapi_feature(minor);
    }
    ProjectContext {
        templates: release.map_or(TemplateSet::current(), |release| &release.templates),
        name: known.project_name.clone(),
        name_yaml: yaml_value(&known.project_name),
        crate_ident: crate_ident(project),
        package,
        domain: known.domain.clone(),
        owner: known.rbuilder.owner.clone(),
        license: known.rbuilder.license.clone(),
        license_spdx: license_spdx.into(),
        rust_header: rust_header(&known.rbuilder.owner, license_spdx),
        workspace: known.rbuilder.workspace,
        workspace_root: vec![".."; member_depth(&known.rbuilder.member)].join("/"),
        directory_prefix: match known.rbuilder.directory.as_str() {
            "" => String::new(),
            directory => format!("{directory}/"),
        },
        build_directory: build_directory(&known.rbuilder.directory, &known.rbuilder.member),
        member: known.rbuilder.member.clone(),
        adopted: adopted.is_some(),
        manager: adopted.is_none_or(|adopted| adopted.manager),
        binary: project.binary().to_owned(),
        namespaced: known.namespaced,
        multigroup: known.multigroup,
        leader_election_id: match &known.rbuilder.names.lease {
            Some(lease) => lease.clone(),
            None => format!("{}.{}", fnv1a_32(known.project_name.as_bytes()), known.domain),
        },
        rbuilder_source: library.map(Library::dependency).unwrap_or_default(),
        rbuilder_version: versions.rbuilder,
        rust_version: versions.rust,
        kube_version: versions.kube,
        k8s_openapi_version: versions.k8s_openapi,
        apps_spec_is_required: versions::requires_apps_spec(&versions.kubernetes),
        kubernetes_version: versions.kubernetes,
        k8s_openapi_feature: versions.k8s_openapi_feature,
        objects: other_names(&known.rbuilder.names),
    }
}

fn other_names(names: &ObjectNames) -> OtherNames {
    let name = |name: &Option<String>| {
        name.as_ref().map(|name| ObjectName {
            plain: name.clone(),
            yaml: yaml_value(name),
        })
    };
    let selector = names.selector.as_ref().map(|labels| {
        let labels = labels.iter();
        labels
            .map(|(key, value)| (yaml_value(key), yaml_value(value)))
            .collect()
    });
    OtherNames {
        container: name(&names.container),
        deployment: name(&names.deployment),
        label: name(&names.label),
        metrics_service: name(&names.metrics_service),
        name_prefix: name(&names.name_prefix),
        namespace: name(&names.namespace),
        selector,
        service_account: name(&names.service_account),
        webhook_service: name(&names.webhook_service),
    }
}

/// Number of directories between a member and its workspace.
pub fn member_depth(member: &str) -> usize {
    member.split('/').filter(|part| !part.is_empty()).count()
}

/// Build context of the image, as a path in the repository: the workspace, or the project if it
/// isn't a workspace member.
fn build_directory(directory: &str, member: &str) -> String {
    let built = match member {
        "" => directory,
        member => directory.strip_suffix(member).unwrap_or_default(),
    };
    match built.trim_end_matches('/') {
        "" => ".".to_owned(),
        built => built.to_owned(),
    }
}

/// Formats a name as a YAML value, quoted if necessary.
pub fn yaml_value(name: &str) -> String {
    rbuilder_generator::yaml::to_string(&name.into())
        .trim_end()
        .to_owned()
}

fn rust_header(owner: &str, spdx: &str) -> String {
    let mut header = String::new();
    if !owner.is_empty() {
        header.push_str(&format!("// Copyright {owner}\n"));
    }
    if !spdx.is_empty() {
        header.push_str(&format!("// SPDX-License-Identifier: {spdx}\n"));
    }
    if !header.is_empty() {
        header.push('\n');
    }
    header
}

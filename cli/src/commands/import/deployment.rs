//! Ports what identifies a deployment in a cluster: the namespace, the name prefix, the Lease,
//! object names and the selector. Also ports resources and enabled components.

use anyhow::Result;
use serde_json::{Map, Value};

use super::blocks::{find_block, print_map};
use super::composed::Composed;
use super::kinds::Leftover;
use super::pod::port_pod;
use crate::commands::attributes::quoted;
use crate::commands::{Outcome, features};
use crate::flags::{Feature, SettingFlags};
use crate::project::names::is_dns_1123_subdomain;
use crate::render;
use crate::tree::Tree;
use rbuilder_go_project::{GoProject, Setting, listed_paths};

const DEFAULT: &str = "config/default/kustomization.yaml";
const MANAGER: &str = "config/manager/manager.yaml";
const MAIN: &str = "src/main.rs";
const MANAGER_NAME: &str = "controller-manager";
const METRICS_SERVICE: &str = "controller-manager-metrics-service";
/// Suffixes of the metrics Service's file, in kubebuilder and in projects that rename it.
const METRICS_SERVICES: [&str; 2] = ["metrics_service.yaml", "auth_proxy_service.yaml"];

pub(super) fn port(original: &GoProject, composed: &mut Composed<'_>) -> Result<()> {
    port_names(original, composed);
    port_lease(original, composed);
    port_manager(original, composed);
    port_components(original, composed)?;
    rename_objects(original, composed);
    Ok(())
}

pub(super) fn find_deployment(original: &GoProject) -> Option<&Value> {
    original
        .documents("config/manager/", "Deployment")
        .map(|(_, document)| document)
        .next()
}

fn port_names(original: &GoProject, composed: &mut Composed<'_>) {
    let Some(text) = composed.files.get_mut(DEFAULT) else {
        return;
    };
    let Some(kustomization) = original.first_document(DEFAULT) else {
        composed.left.push(Leftover::new(
            "namespace and name prefix",
            format!("{DEFAULT} was not read, so those of the project name are used"),
        ));
        return;
    };
    for key in ["namespace", "namePrefix", "nameSuffix"] {
        let value = kustomization[key].as_str();
        let line = value.map(|value| format!("{key}: {}\n", render::yaml_value(value)));
        let there = text
            .lines()
            .find(|line| line.starts_with(&format!("{key}:")))
            .map(|line| format!("{line}\n"));
        match (there, line) {
            (Some(there), line) => *text = text.replacen(&there, &line.unwrap_or_default(), 1),
            (None, Some(line)) => *text = text.replacen("\nresources:", &format!("{line}\nresources:"), 1),
            (None, None) => {}
        }
    }
    let others = [
        ("commonLabels", LABELS),
        ("labels", LABELS),
        (
            "commonAnnotations",
            "copy it if something selects by these annotations",
        ),
        ("images", "the image is set by `make deploy IMG=…`, or copy it"),
    ];
    for (key, advice) in others {
        if !kustomization[key].is_null() {
            composed
                .left
                .push(Leftover::new(format!("`{key}` in {DEFAULT}"), advice));
        }
    }
}

const LABELS: &str = "copy it: it may be part of the selector, which is immutable";

/// Finds the objects that identify the manager and have another name in the original, as kind,
/// scaffolded name and original name.
fn find_renames(original: &GoProject) -> Vec<(&'static str, &'static str, String)> {
    let name = |object: &Value| object["metadata"]["name"].as_str().map(str::to_owned);
    let deployment = find_deployment(original);
    let metrics = find_metrics_service(original);
    let found = [
        ("Deployment", MANAGER_NAME, deployment.and_then(name)),
        // Named after the Deployment.
        ("PodDisruptionBudget", MANAGER_NAME, deployment.and_then(name)),
        ("HorizontalPodAutoscaler", MANAGER_NAME, deployment.and_then(name)),
        ("ServiceAccount", MANAGER_NAME, find_account(original)),
        ("Service", METRICS_SERVICE, metrics.and_then(name)),
    ];
    let renamed = found
        .into_iter()
        .filter_map(|(kind, before, after)| Some((kind, before, after?)));
    // An invalid name can't belong to an object in a cluster.
    renamed
        .filter(|(_, before, after)| before != after && is_dns_1123_subdomain(after))
        .collect()
}

fn find_metrics_service(original: &GoProject) -> Option<&Value> {
    // Older projects have it in `config/rbac`.
    let mut services = ["config/default/", "config/rbac/"]
        .into_iter()
        .flat_map(|folder| original.documents(folder, "Service"));
    let listed: Vec<&str> = original
        .first_document(DEFAULT)
        .into_iter()
        .flat_map(listed_paths)
        .collect();
    let is_its = |path: &str| {
        let is_named = METRICS_SERVICES.iter().any(|end| path.ends_with(end));
        let name = path.strip_prefix("config/default/");
        is_named && name.is_none_or(|name| listed.iter().any(|entry| entry.trim_start_matches("./") == name))
    };
    services
        .find(|(path, _)| is_its(path))
        .map(|(_, service)| service)
}

pub(super) fn find_account(original: &GoProject) -> Option<String> {
    let pod = &find_deployment(original)?["spec"]["template"]["spec"];
    let account = pod["serviceAccountName"].as_str()?;
    let prefix = name_prefix(original);
    let names = original
        .documents("config/rbac/", "ServiceAccount")
        .filter_map(|(_, object)| object["metadata"]["name"].as_str());
    // A Deployment may also use the account's prefixed name, which kustomize then leaves alone.
    let is_named = |name: &&str| *name == account || format!("{prefix}{name}") == account;
    Some(names.into_iter().find(is_named).unwrap_or(account).to_owned())
}

/// Whether the kustomization adds labels to selectors, which are immutable in a cluster.
pub(super) fn adds_to_selectors(original: &GoProject) -> bool {
    let Some(kustomization) = original.first_document(DEFAULT) else {
        return false;
    };
    let mut labels = kustomization["labels"].as_array().into_iter().flatten();
    !kustomization["commonLabels"].is_null() || labels.any(|labels| labels["includeSelectors"] == true)
}

pub(super) fn name_prefix(original: &GoProject) -> &str {
    let kustomization = original.first_document(DEFAULT);
    kustomization
        .and_then(|kustomization| kustomization["namePrefix"].as_str())
        .unwrap_or_default()
}

/// Renames the Deployment, the service account and the metrics Service to their original names, in
/// objects, patches, targets and bindings.
fn rename_objects(original: &GoProject, composed: &mut Composed<'_>) {
    // Under another name, the cluster would get a second object.
    for (kind, before, after) in find_renames(original) {
        let is_config = |path: &str| path.starts_with("config/") && path.ends_with(".yaml");
        for (path, text) in &mut composed.files {
            if is_config(path) && !path.starts_with("config/samples/") {
                *text = rename_in_manifest(text, kind, before, &after);
                if kind == "Service" {
                    // Certificates contain host names.
                    *text = text.replace(&format!("{before}.system.svc"), &format!("{after}.system.svc"));
                }
            }
        }
    }
}

/// Renames an object of a kind. In scaffolded manifests the name follows `kind`, either directly or
/// in `metadata`.
fn rename_in_manifest(text: &str, kind: &str, before: &str, after: &str) -> String {
    let after = render::yaml_value(after);
    let mut last_kind = "";
    let mut renamed = String::new();
    for line in text.split_inclusive('\n') {
        let entry = line.trim_start_matches([' ', '-']).trim_end();
        last_kind = entry.strip_prefix("kind: ").unwrap_or(last_kind);
        let (key, value) = entry.split_once(": ").unwrap_or_default();
        let is_name = match key {
            "name" => last_kind == kind,
            "serviceAccountName" => kind == "ServiceAccount",
            _ => false,
        };
        match is_name && value == before {
            true => renamed += &line.replacen(&format!(": {before}"), &format!(": {after}"), 1),
            false => renamed += line,
        }
    }
    renamed
}

fn port_lease(original: &GoProject, composed: &mut Composed<'_>) {
    let found: Vec<(&str, &Setting)> = original
        .files
        .iter()
        .flat_map(|file| {
            file.leader_election_ids
                .iter()
                .map(|setting| (file.path.as_str(), setting))
        })
        .collect();
    let Some(text) = composed.files.get_mut(MAIN) else {
        return;
    };
    let line = text
        .lines()
        .find(|line| line.starts_with("const LEADER_ELECTION_ID: &str = "))
        .map(str::to_owned);
    let only = match found.as_slice() {
        [(_, setting)] => setting.literal.as_ref(),
        _ => None,
    };
    match (only, line) {
        (Some(id), Some(line)) => {
            *text = text.replacen(
                &line,
                &format!("const LEADER_ELECTION_ID: &str = {};", quoted(id)),
                1,
            )
        }
        _ => {
            let places: Vec<String> = found
                .iter()
                .map(|(path, setting)| format!("`{}` at {path}:{}", setting.expression, setting.line))
                .collect();
            let found = match places.is_empty() {
                true => "the source does not set `LeaderElectionID`".to_owned(),
                false => format!("`LeaderElectionID` is {}", places.join(", ")),
            };
            composed.left.push(Leftover::new(
                "name of the Lease",
                format!("{found}: set LEADER_ELECTION_ID in {MAIN} to the name that is used in clusters"),
            ));
        }
    }
}

/// Ports the selector labels, which are immutable on an existing Deployment, and the resources,
/// environment and volumes.
fn port_manager(original: &GoProject, composed: &mut Composed<'_>) {
    let Some(deployment) = find_deployment(original) else {
        composed.left.push(Leftover::new(
            "Deployment",
            "config/manager/ has none: compare the one that is scaffolded",
        ));
        return;
    };
    let Some(text) = composed.files.get_mut(MANAGER) else {
        return;
    };
    let spec = &deployment["spec"];
    let empty = Map::new();
    let selector = spec["selector"]["matchLabels"].as_object().unwrap_or(&empty);
    let labels = spec["template"]["metadata"]["labels"]
        .as_object()
        .unwrap_or(&empty);
    if let Some(block) = find_block(text, "    matchLabels:\n") {
        text.replace_range(block, &print_map(selector, 4));
    }
    let mut renamed: Vec<(String, Value, Value)> = Vec::new();
    // The Deployment itself also has labels, above the template.
    let template = text.find("\n  template:").unwrap_or(text.len());
    if let Some(block) = find_block(&text[template..], "      labels:\n") {
        let block = template + block.start..template + block.end;
        let own: Map<String, Value> = text[block.clone()].lines().filter_map(read_label).collect();
        let mut all = own.clone();
        all.extend(labels.clone());
        all.extend(selector.clone());
        renamed = all
            .iter()
            .filter(|(key, value)| own.get(*key).is_some_and(|own| own != *value))
            .map(|(key, value)| (key.clone(), own[key].clone(), value.clone()))
            .collect();
        text.replace_range(block, &print_map(&all, 6));
    }
    let resources = &spec["template"]["spec"]["containers"][0]["resources"];
    if let Some(resources) = resources.as_object().filter(|resources| !resources.is_empty())
        && let Some(block) = find_block(text, "        resources:\n")
    {
        text.replace_range(block, &print_map(resources, 8));
    }
    port_pod(&spec["template"], text);
    if let Some(replicas) = spec["replicas"].as_u64() {
        *text = text.replacen("  replicas: 1\n", &format!("  replicas: {replicas}\n"), 1);
    }
    for (key, before, after) in renamed {
        rename_label(composed, &key, (&before, &after));
    }
}

fn rename_label(composed: &mut Composed<'_>, key: &str, (before, after): (&Value, &Value)) {
    let line = |value: &Value| {
        format!(
            " {key}: {}\n",
            render::yaml_value(value.as_str().unwrap_or_default())
        )
    };
    let files = composed
        .files
        .iter_mut()
        .filter(|(path, _)| path.starts_with("config/") && !path.starts_with("config/samples/"));
    for (_, text) in files {
        *text = text.replace(&line(before), &line(after));
    }
}

fn read_label(line: &str) -> Option<(String, Value)> {
    let (key, value) = line.trim().split_once(": ")?;
    Some((key.to_owned(), Value::String(value.trim_matches('"').to_owned())))
}

/// kubebuilder's patch that makes the manager serve metrics with a certificate from cert-manager.
const METRICS_CERTIFICATE_PATCHES: &[&str] = &["cert_metrics_manager_patch.yaml"];

fn port_components(original: &GoProject, composed: &mut Composed<'_>) -> Result<()> {
    let Some(kustomization) = original.first_document(DEFAULT) else {
        return Ok(());
    };
    let has_webhooks = composed.files.contains_key("config/webhook/kustomization.yaml");
    let lists = |names: &[&str]| {
        let mut entries = listed_paths(kustomization).map(|entry| entry.trim_end_matches('/'));
        entries.any(|entry| names.contains(&entry.rsplit('/').next().unwrap_or(entry)))
    };
    let patches = |names: &[&str]| {
        let entries = kustomization["patches"].as_array().into_iter().flatten();
        let mut files = entries.filter_map(|entry| entry["path"].as_str());
        files.any(|path| names.contains(&path.rsplit('/').next().unwrap_or(path)))
    };
    let mut settings = SettingFlags::default();
    for (names, feature) in [
        (&["prometheus"][..], Feature::Prometheus),
        (&["network-policy"], Feature::NetworkPolicy),
        (&["certmanager"], Feature::CertManager),
        (METRICS_CERTIFICATE_PATCHES, Feature::MetricsCertificate),
    ] {
        if (lists(names) || patches(names)) && (feature != Feature::CertManager || has_webhooks) {
            settings.enable.push(feature);
        }
    }
    let has_metrics = find_metrics_service(original).is_some();
    if !has_metrics && !settings.enable.contains(&Feature::Prometheus) {
        settings.disable.push(Feature::Metrics);
    }
    if !settings.name_features() {
        return Ok(());
    }
    // Features are added to a tree, so lend it the files.
    let tree = Tree::in_memory(std::mem::take(&mut composed.files));
    let mut outcome = Outcome::default();
    let result = features::add_features(&mut outcome, &tree, &composed.project, &settings);
    let changes = outcome.plan.changes().clone();
    composed.files = tree.into_files();
    match result {
        Ok(()) => {
            let texts = changes
                .into_iter()
                .filter_map(|(path, change)| Some((path, change.after()?.to_owned())));
            composed.files.extend(texts);
        }
        Err(error) => composed.left.push(Leftover::new(
            format!("components of {DEFAULT}"),
            format!("{error:#}"),
        )),
    }
    Ok(())
}

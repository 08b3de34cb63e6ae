//! Ports what identifies a deployment in a cluster: the namespace, the name prefix, the Lease,
//! object names and the selector. Also ports resources and enabled components. Names of objects are
//! settings of the project, which the scaffold is rendered with.

use anyhow::Result;
use rbuilder_kubernetes::names::is_subdomain;
use serde_json::{Map, Value};

use super::blocks::{find_block, print_map};
use super::composed::Composed;
use super::kinds::Leftover;
use super::pod::port_pod;
use crate::commands::{Outcome, features};
use crate::flags::{Feature, SettingFlags};
use crate::overlay::{DEPLOYMENT as DEFAULT, Kustomization};
use crate::project::{NamedObjects, ObjectNames, Project};
use crate::render;
use crate::tree::Tree;
use rbuilder_go_project::{GoProject, Setting};

const MANAGER: &str = "config/manager/manager.yaml";
const MAIN: &str = "src/main.rs";
/// Suffixes of the metrics Service's file, in kubebuilder and in projects that rename it.
const METRICS_SERVICES: [&str; 2] = ["metrics_service.yaml", "auth_proxy_service.yaml"];

pub(super) fn port(original: &GoProject, composed: &mut Composed<'_>) -> Result<()> {
    port_names(original, composed);
    port_lease(original, composed);
    port_manager(original, composed);
    port_components(original, composed)
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
    let Some(kustomization) = original.kustomization(DEFAULT) else {
        composed.left.push(Leftover::new(
            "namespace and name prefix",
            format!("{DEFAULT} was not read, so those of the project name are used"),
        ));
        return;
    };
    for key in ["namespace", "namePrefix", "nameSuffix"] {
        let value = kustomization.text(key);
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
        if kustomization.sets(&[key]) {
            composed
                .left
                .push(Leftover::new(format!("`{key}` in {DEFAULT}"), advice));
        }
    }
}

const LABELS: &str = "copy it: it may be part of the selector, which is immutable";

/// Finds the names that the manager's objects have in the original.
pub(super) fn find_names(original: &GoProject, project: &Project) -> ObjectNames {
    let name = |object: &'_ Value| object["metadata"]["name"].as_str().map(str::to_owned);
    let accounts = original.documents("config/rbac/", "ServiceAccount");
    let accounts: Vec<String> = accounts.filter_map(|(_, object)| name(object)).collect();
    let metrics_service = find_metrics_service(original).and_then(name);
    let mut services = original.documents("config/webhook/", "Service");
    let webhook_service = services.next().and_then(|(_, service)| name(service));
    let kustomization = original.kustomization(DEFAULT);
    let objects = NamedObjects {
        deployment: find_deployment(original),
        accounts: &accounts,
        metrics_service: metrics_service.as_deref(),
        webhook_service: webhook_service.as_deref(),
        name_prefix: kustomization
            .as_ref()
            .map(|list| list.name_prefix().unwrap_or_default()),
        namespace: kustomization.as_ref().and_then(Kustomization::namespace),
    };
    let known = &project.known;
    ObjectNames {
        lease: find_lease(original).filter(|lease| is_subdomain(lease)),
        ..known.rbuilder.names.with_objects(&known.project_name, &objects)
    }
}

/// The name of the Lease, if the source sets it once and to a literal.
fn find_lease(original: &GoProject) -> Option<String> {
    let mut settings = original.files.iter().flat_map(|file| &file.leader_election_ids);
    match (settings.next(), settings.next()) {
        (Some(only), None) => only.literal.clone(),
        _ => None,
    }
}

fn find_metrics_service(original: &GoProject) -> Option<&Value> {
    // Older projects have it in `config/rbac`.
    let mut services = ["config/default/", "config/rbac/"]
        .into_iter()
        .flat_map(|folder| original.documents(folder, "Service"));
    let kustomization = original.kustomization(DEFAULT).unwrap_or_default();
    let listed: Vec<&str> = kustomization.included().collect();
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
    let Some(kustomization) = original.kustomization(DEFAULT) else {
        return false;
    };
    kustomization.labels().any(|(_, is_selected)| is_selected)
}

pub(super) fn name_prefix(original: &GoProject) -> String {
    let kustomization = original.kustomization(DEFAULT).unwrap_or_default();
    kustomization.name_prefix().unwrap_or_default().to_owned()
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
    match find_lease(original) {
        // The scaffold has this name.
        Some(lease) if is_subdomain(&lease) => {}
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

/// Ports the labels of the pods, the resources, environment and volumes.
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
    let labels = spec["template"]["metadata"]["labels"]
        .as_object()
        .unwrap_or(&empty);
    // The Deployment itself also has labels, above the template.
    let template = text.find("\n  template:").unwrap_or(text.len());
    if let Some(block) = find_block(&text[template..], "      labels:\n") {
        let own: Map<String, Value> = text[template + block.start..template + block.end]
            .lines()
            .filter_map(read_label)
            .collect();
        let mut others = labels.clone();
        others.retain(|key, _| !own.contains_key(key));
        // Below the scaffolded labels, whose lines other commands change.
        if !others.is_empty() {
            text.insert_str(template + block.end, &print_map(&others, 6));
        }
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
}

fn read_label(line: &str) -> Option<(String, Value)> {
    let (key, value) = line.trim().split_once(": ")?;
    Some((key.to_owned(), Value::String(value.trim_matches('"').to_owned())))
}

/// kubebuilder's patch that makes the manager serve metrics with a certificate from cert-manager.
const METRICS_CERTIFICATE_PATCHES: &[&str] = &["cert_metrics_manager_patch.yaml"];

fn port_components(original: &GoProject, composed: &mut Composed<'_>) -> Result<()> {
    let Some(kustomization) = original.kustomization(DEFAULT) else {
        return Ok(());
    };
    let has_webhooks = composed.files.contains_key("config/webhook/kustomization.yaml");
    let lists = |names: &[&str]| {
        let mut entries = kustomization.included().map(|entry| entry.trim_end_matches('/'));
        entries.any(|entry| names.contains(&entry.rsplit('/').next().unwrap_or(entry)))
    };
    let all = kustomization.patches();
    let patches = |names: &[&str]| {
        let mut files = all.iter().filter_map(|patch| patch.file.as_deref());
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

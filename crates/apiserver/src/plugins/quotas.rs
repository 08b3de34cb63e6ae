//! Resource quotas.
//!
//! As on a real server, the quota controller fills in `status.hard` and `status.used`, and a quota
//! without a status limits nothing. Follows `apiserver/pkg/admission/plugin/resourcequota` and
//! `pkg/quota/v1/evaluator/core` of Kubernetes.

use std::collections::{BTreeMap, BTreeSet};

use rbuilder_kubernetes::quantity;
use serde_json::{Value, json};

use super::super::failure::Failure;
use super::super::kinds::{ResourceId, string_at};
use super::super::store::State;
use super::super::write::Writer;
use super::resources::{self, Resources};
use super::{Charge, is_pod, refuse};

/// A quota of one of these makes it mandatory for all containers.
const MANDATORY: &[&str] = &[
    "cpu",
    "limits.cpu",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.memory",
];

/// Kinds with a quota of their own name, besides `count/…`.
const ALIASES: &[&str] = &[
    "configmaps",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
];

const BY_CLASS: &str = ".storageclass.storage.k8s.io/";

impl State {
    pub(super) fn find_charges(
        &self,
        writer: Writer<'_>,
        old: Option<&Value>,
        object: &Value,
    ) -> Result<Vec<Charge>, Failure> {
        let id = writer.id();
        let namespace = writer.request.namespace.as_deref().unwrap_or_default();
        let quotas = ResourceId::new("", "resourcequotas");
        let mut charges = Vec::new();
        for (key, quota) in self.objects(&quotas).filter(|(key, _)| key.0 == namespace) {
            if old.is_some() && !may_change(id) || !is_in_scope(quota, writer, object) {
                continue;
            }
            let charged = charge(quota, writer, old, object).map_err(|why| refuse(writer, object, &why))?;
            charges.extend(charged.map(|charged| (key.clone(), charged)));
        }
        Ok(charges)
    }
}

/// Only these use more after an update.
fn may_change(id: &ResourceId) -> bool {
    id.group.is_empty() && matches!(id.plural.as_str(), "services" | "persistentvolumeclaims")
}

/// Returns the quota with the object's usage, or `None` if it isn't concerned.
fn charge(
    quota: &Value,
    writer: Writer<'_>,
    old: Option<&Value>,
    object: &Value,
) -> Result<Option<Value>, String> {
    let id = writer.id();
    let name = string_at(quota, "/metadata/name");
    let hard = resources::read(&quota["status"]["hard"]);
    let used = resources::read(&quota["status"]["used"]);
    let restricted: BTreeSet<&str> = hard
        .keys()
        .map(String::as_str)
        .filter(|name| concerns(id, name))
        .collect();
    if restricted.is_empty() {
        return Ok(None);
    }
    if is_pod(writer.definition) {
        check_mandatory(&restricted, object).map_err(|why| format!("failed quota: {name}: {why}"))?;
    }
    if restricted.iter().any(|resource| !used.contains_key(*resource)) {
        let restricted: Vec<&str> = restricted.into_iter().collect();
        return Err(format!(
            "status unknown for quota: {name}, resources: {}",
            restricted.join(",")
        ));
    }
    let before = old.map(|old| usage(id, old)).unwrap_or_default();
    let requested: Resources = usage(id, object)
        .into_iter()
        .filter(|(resource, _)| hard.contains_key(resource))
        .filter_map(|(resource, quantity)| {
            let more = match before.get(&resource) {
                Some(before) => quantity::add(&quantity, before, true)?,
                None => quantity,
            };
            let is_more = quantity::compare(&more, "0")?.is_gt();
            is_more.then_some((resource, more))
        })
        .collect();
    if requested.is_empty() {
        return Ok(None);
    }
    let mut total: Resources = used
        .iter()
        .filter(|(resource, _)| requested.contains_key(*resource))
        .map(|(resource, quantity)| (resource.clone(), quantity.clone()))
        .collect();
    resources::add(&mut total, &requested);
    let exceeded = resources::exceeded(&total, &hard);
    if !exceeded.is_empty() {
        let show = |list: &Resources| {
            let shown = exceeded
                .iter()
                .filter_map(|name| Some(format!("{name}={}", list.get(*name)?)));
            shown.collect::<Vec<_>>().join(",")
        };
        return Err(format!(
            "exceeded quota: {name}, requested: {}, used: {}, limited: {}",
            show(&requested),
            show(&used),
            show(&hard)
        ));
    }
    let mut charged = quota.clone();
    for (resource, quantity) in total {
        charged["status"]["used"][resource] = quantity.into();
    }
    Ok(Some(charged))
}

/// Whether a quota of this name counts objects of the resource.
fn concerns(id: &ResourceId, name: &str) -> bool {
    let (resource, is_core) = (id.plural.as_str(), id.group.is_empty());
    name == counted(id)
        || is_core
            && match resource {
                "pods" => {
                    MANDATORY.contains(&name)
                        || name == "pods"
                        || name.ends_with("ephemeral-storage")
                        || name.contains("hugepages-")
                        || name.starts_with("requests.") && name.contains('/')
                }
                "services" => matches!(name, "services" | "services.loadbalancers" | "services.nodeports"),
                "persistentvolumeclaims" => {
                    matches!(name, "persistentvolumeclaims" | "requests.storage") || name.contains(BY_CLASS)
                }
                _ => ALIASES.contains(&resource) && name == resource,
            }
}

/// The name of a quota of the number of objects.
fn counted(id: &ResourceId) -> String {
    format!("count/{id}")
}

/// What an object uses, by the name of the quota.
fn usage(id: &ResourceId, object: &Value) -> Resources {
    let mut usage = Resources::from([(counted(id), "1".to_owned())]);
    let mut set = |name: &str, quantity: &str| usage.insert(name.to_owned(), quantity.to_owned());
    match (id.group.as_str(), id.plural.as_str()) {
        ("", "pods") => add_usage_of_pod(&mut usage, object),
        ("", "services") => {
            let kind = string_at(object, "/spec/type");
            let ports = object["spec"]["ports"]
                .as_array()
                .map(Vec::as_slice)
                .unwrap_or_default();
            let allocates = object["spec"]["allocateLoadBalancerNodePorts"] != false;
            let count = match kind {
                "NodePort" => ports.len(),
                "LoadBalancer" if allocates => ports.len(),
                "LoadBalancer" => ports.iter().filter(|port| port["nodePort"].is_u64()).count(),
                _ => 0,
            };
            set("services", "1");
            set("services.nodeports", &count.to_string());
            set(
                "services.loadbalancers",
                if kind == "LoadBalancer" { "1" } else { "0" },
            );
        }
        ("", "persistentvolumeclaims") => {
            let class = string_at(object, "/spec/storageClassName");
            let storage = string_at(object, "/spec/resources/requests/storage");
            set("persistentvolumeclaims", "1");
            if !class.is_empty() {
                set(&format!("{class}{BY_CLASS}persistentvolumeclaims"), "1");
            }
            if !storage.is_empty() {
                set("requests.storage", storage);
            }
            if !class.is_empty() && !storage.is_empty() {
                set(&format!("{class}{BY_CLASS}requests.storage"), storage);
            }
        }
        ("", plural) if ALIASES.contains(&plural) => drop(set(plural, "1")),
        _ => {}
    }
    usage
}

fn add_usage_of_pod(usage: &mut Resources, pod: &Value) {
    if matches!(string_at(pod, "/status/phase"), "Succeeded" | "Failed") {
        return;
    }
    usage.insert("pods".to_owned(), "1".to_owned());
    let (requests, limits) = (
        resources::of_pod(pod, "requests"),
        resources::of_pod(pod, "limits"),
    );
    usage.extend(named(&requests, &limits));
}

/// Requests and limits by the names of their quotas.
fn named(requests: &Resources, limits: &Resources) -> Resources {
    let mut named = Resources::new();
    for (name, quantity) in requests {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-") {
            named.insert(name.clone(), quantity.clone());
        }
        named.insert(format!("requests.{name}"), quantity.clone());
    }
    for (name, quantity) in limits {
        named.insert(format!("limits.{name}"), quantity.clone());
    }
    named
}

fn check_mandatory(restricted: &BTreeSet<&str>, pod: &Value) -> Result<(), String> {
    if pod["spec"]["resources"].is_object() {
        return Ok(());
    }
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let lists = ["containers", "initContainers"].map(|list| pod["spec"][list].as_array());
    for container in lists.into_iter().flatten().flatten() {
        let own = &container["resources"];
        let given = named(
            &resources::read(&own["requests"]),
            &resources::read(&own["limits"]),
        );
        for name in MANDATORY.iter().filter(|name| restricted.contains(*name)) {
            if !given.contains_key(*name) {
                missing
                    .entry(name)
                    .or_default()
                    .insert(string_at(container, "/name"));
            }
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let said = missing.into_iter().map(|(name, containers)| {
        let containers: Vec<&str> = containers.into_iter().collect();
        format!("{name} for: {}", containers.join(","))
    });
    Err(format!("must specify {}", said.collect::<Vec<_>>().join("; ")))
}

fn is_in_scope(quota: &Value, writer: Writer<'_>, object: &Value) -> bool {
    let spec = &quota["spec"];
    let scopes = spec["scopes"].as_array().into_iter().flatten();
    let scopes = scopes.map(|scope| json!({ "scopeName": scope, "operator": "Exists" }));
    let selectors = spec["scopeSelector"]["matchExpressions"].as_array();
    let mut all = scopes.chain(selectors.into_iter().flatten().cloned());
    // Only Pods have scopes.
    all.all(|selector| is_pod(writer.definition) && matches_scope(&selector, object))
}

fn matches_scope(selector: &Value, pod: &Value) -> bool {
    let is_terminating = pod["spec"]["activeDeadlineSeconds"].is_u64();
    let is_best_effort = pod["status"]["qosClass"] == "BestEffort";
    let class = &pod["spec"]["priorityClassName"];
    match string_at(selector, "/scopeName") {
        "Terminating" => is_terminating,
        "NotTerminating" => !is_terminating,
        "BestEffort" => is_best_effort,
        "NotBestEffort" => !is_best_effort,
        "PriorityClass" => {
            let values = selector["values"].as_array();
            let is_listed = values.is_some_and(|values| values.contains(class));
            match string_at(selector, "/operator") {
                "In" => is_listed,
                "NotIn" => !is_listed,
                "DoesNotExist" => class.is_null(),
                _ => !class.is_null(),
            }
        }
        _ => false,
    }
}

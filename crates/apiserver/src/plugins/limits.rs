//! Limit ranges: defaults for containers, and bounds for containers, Pods and claims.
//!
//! Follows `plugin/pkg/admission/limitranger` of Kubernetes.

use rbuilder_kubernetes::quantity;
use serde_json::{Value, json};

use super::super::failure::Failure;
use super::super::kinds::{ResourceId, string_at};
use super::super::store::State;
use super::super::write::Writer;
use super::resources::{self, Resources, is_less};
use super::{is_pod, refuse};

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

impl State {
    fn limit_ranges(&self, writer: Writer<'_>) -> Vec<&Value> {
        let namespace = writer.request.namespace.as_deref().unwrap_or_default();
        let id = ResourceId::new("", "limitranges");
        let ranges = self.objects(&id);
        let own = ranges.filter(|(key, _)| key.0 == namespace);
        own.map(|(_, range)| &**range).collect()
    }

    pub(super) fn set_limits(&self, writer: Writer<'_>, pod: &mut Value) {
        for range in self.limit_ranges(writer) {
            set_defaults(range, pod);
        }
    }

    pub(super) fn check_limits(
        &self,
        writer: Writer<'_>,
        old: Option<&Value>,
        object: &Value,
    ) -> Result<(), Failure> {
        let is_claim = writer.definition.kind == "PersistentVolumeClaim" && !writer.definition.custom;
        let is_new_pod = is_pod(writer.definition) && old.is_none();
        let is_going = old.is_some_and(|old| old["metadata"].get("deletionTimestamp").is_some());
        if !is_claim && !is_new_pod || is_going {
            return Ok(());
        }
        for range in self.limit_ranges(writer) {
            let wrong: Vec<String> = items(range)
                .flat_map(|item| match is_claim {
                    true => check_claim(item, object),
                    false => check_pod(item, object),
                })
                .collect();
            let why = match wrong.as_slice() {
                [] => continue,
                [one] => one.clone(),
                several => format!("[{}]", several.join(", ")),
            };
            return Err(refuse(writer, object, &why));
        }
        Ok(())
    }
}

fn items(range: &Value) -> impl Iterator<Item = &Value> {
    range["spec"]["limits"].as_array().into_iter().flatten()
}

fn set_defaults(range: &Value, pod: &mut Value) {
    let (mut requests, mut limits) = (Resources::new(), Resources::new());
    for item in items(range).filter(|item| item["type"] == "Container") {
        requests.extend(resources::read(&item["defaultRequest"]));
        limits.extend(resources::read(&item["default"]));
    }
    let mut notes = Vec::new();
    for (list, what) in [("containers", "container"), ("initContainers", "init container")] {
        let containers = pod["spec"].get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let name = string_at(container, "/name").to_owned();
            for (field, defaults, word) in [("requests", &requests, "request"), ("limits", &limits, "limit")]
            {
                let set = set_missing(&mut container["resources"], field, defaults);
                if !set.is_empty() {
                    notes.push(format!("{} {word} for {what} {name}", set.join(", ")));
                }
            }
        }
    }
    if !notes.is_empty() {
        pod["metadata"]["annotations"][ANNOTATION] =
            format!("LimitRanger plugin set: {}", notes.join("; ")).into();
    }
}

/// Returns the names of the resources that were set.
fn set_missing(resources: &mut Value, field: &str, defaults: &Resources) -> Vec<String> {
    let mut set = Vec::new();
    for (name, quantity) in defaults {
        if resources[field][name].is_null() {
            if !resources[field].is_object() {
                resources[field] = json!({});
            }
            resources[field][name] = quantity.clone().into();
            set.push(name.clone());
        }
    }
    set
}

/// What a limit range bounds: a container, a Pod or a claim.
struct Bounded<'r> {
    kind: &'r str,
    requests: Resources,
    /// `None` for claims, which only have requests.
    limits: Option<Resources>,
}

fn check_pod(item: &Value, pod: &Value) -> Vec<String> {
    let kind = string_at(item, "/type");
    match kind {
        "Container" => {
            let lists = ["containers", "initContainers"].map(|list| pod["spec"][list].as_array());
            let containers = lists.into_iter().flatten().flatten();
            containers
                .flat_map(|container| {
                    let own = &container["resources"];
                    let bounded = Bounded {
                        kind,
                        requests: resources::read(&own["requests"]),
                        limits: Some(resources::read(&own["limits"])),
                    };
                    check(item, &bounded)
                })
                .collect()
        }
        "Pod" => {
            let bounded = Bounded {
                kind,
                requests: resources::of_pod(pod, "requests"),
                limits: Some(resources::of_pod(pod, "limits")),
            };
            check(item, &bounded)
        }
        _ => Vec::new(),
    }
}

fn check_claim(item: &Value, claim: &Value) -> Vec<String> {
    let kind = string_at(item, "/type");
    if kind != "PersistentVolumeClaim" {
        return Vec::new();
    }
    let bounded = Bounded {
        kind,
        requests: resources::read(&claim["spec"]["resources"]["requests"]),
        limits: None,
    };
    check(item, &bounded)
}

fn check(item: &Value, bounded: &Bounded<'_>) -> Vec<String> {
    let each = |field: &str, check: fn(&Bounded<'_>, &str, &str) -> Option<String>| {
        let bounds = resources::read(&item[field]);
        let wrong = bounds
            .iter()
            .filter_map(|(name, bound)| check(bounded, name, bound));
        wrong.collect::<Vec<_>>()
    };
    let checks = [
        each("min", check_min),
        each("max", check_max),
        each("maxLimitRequestRatio", check_ratio),
    ];
    checks.concat()
}

fn check_min(bounded: &Bounded<'_>, name: &str, least: &str) -> Option<String> {
    let said = format!("minimum {name} usage per {} is {least}", bounded.kind);
    let Some(request) = bounded.requests.get(name) else {
        return Some(format!("{said}.  No request is specified"));
    };
    if is_less(request, least) {
        return Some(format!("{said}, but request is {request}"));
    }
    let limit = bounded.limits.as_ref()?.get(name)?;
    is_less(limit, least).then(|| format!("{said}, but limit is {limit}"))
}

fn check_max(bounded: &Bounded<'_>, name: &str, most: &str) -> Option<String> {
    let said = format!("maximum {name} usage per {} is {most}", bounded.kind);
    let request = bounded.requests.get(name);
    match bounded.limits.as_ref().map(|limits| limits.get(name)) {
        None if request.is_none() => return Some(format!("{said}.  No request is specified")),
        Some(None) => return Some(format!("{said}.  No limit is specified")),
        Some(Some(limit)) if is_less(most, limit) => return Some(format!("{said}, but limit is {limit}")),
        None | Some(Some(_)) => {}
    }
    let request = request.filter(|request| is_less(most, request))?;
    Some(format!("{said}, but request is {request}"))
}

fn check_ratio(bounded: &Bounded<'_>, name: &str, most: &str) -> Option<String> {
    let limits = bounded.limits.as_ref()?;
    let is_some = |quantity: &&String| quantity::compare(quantity, "0").is_some_and(|order| order.is_ne());
    let said = format!("{name} max limit to request ratio per {} is {most}", bounded.kind);
    let Some(request) = bounded.requests.get(name).filter(is_some) else {
        return Some(format!("{said}, but no request is specified or request is 0"));
    };
    let Some(limit) = limits.get(name).filter(is_some) else {
        return Some(format!("{said}, but no limit is specified or limit is 0"));
    };
    let ratio = quantity::to_float(limit)? / quantity::to_float(request)?;
    (ratio > quantity::to_float(most)?).then(|| format!("{said}, but provided ratio is {ratio:.6}"))
}

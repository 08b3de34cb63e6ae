//! Pods and their templates.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use rbuilder_kubernetes::names;
use rbuilder_kubernetes::quantity;
use serde_json::{Map, Value};

use super::kinds::{CONTAINER, POD_SPEC, PROBE};
use super::rows::{AT_LEAST_ZERO, PORT_RANGE, check_rows};
use super::{items, text_of};
use crate::error::FieldError;
use crate::path::Path;

/// Resources of a container that the server knows without a domain.
const RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Checks the spec of a Pod except for its restart policy, which depends on the owner. `claims` are
/// the names of claims that become volumes.
pub(super) fn check_pod(spec: &Value, path: &Path, claims: &BTreeSet<&str>, errors: &mut Vec<FieldError>) {
    check_rows(POD_SPEC, spec, path, errors);
    let mut volumes = claims.clone();
    let mut seen = BTreeSet::new();
    for (index, volume) in items(spec, "volumes") {
        let name = text_of(volume, "name");
        let path = path.child("volumes").index(index);
        if !name.is_empty() && !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), Some(&name.into())));
        }
        volumes.insert(name);
        let others = volume.as_object().into_iter().flatten();
        let mut sources = others.filter(|(name, source)| *name != "name" && !source.is_null());
        sources.next();
        for (source, _) in sources {
            let detail = "may not specify more than 1 volume type";
            errors.push(FieldError::forbidden(&path.child(source), detail));
        }
    }
    if items(spec, "containers").next().is_none() {
        errors.push(FieldError::required(&path.child("containers"), ""));
    }
    let mut names = BTreeSet::new();
    for list in ["containers", "initContainers"] {
        for (index, container) in items(spec, list) {
            let path = path.child(list).index(index);
            let name = text_of(container, "name");
            if !name.is_empty() && !names.insert(name) {
                errors.push(FieldError::duplicate(&path.child("name"), Some(&name.into())));
            }
            check_container(container, &volumes, &path, errors);
            let is_sidecar = list == "initContainers" && container["restartPolicy"] == "Always";
            check_probes(container, list == "containers" || is_sidecar, &path, errors);
        }
    }
    check_host_ports(spec, path, errors);
    for (index, toleration) in items(spec, "tolerations") {
        check_toleration(toleration, &path.child("tolerations").index(index), errors);
    }
    if spec["dnsPolicy"] == "None" && spec["dnsConfig"].is_null() {
        let detail = "must provide `dnsConfig` when `dnsPolicy` is None";
        errors.push(FieldError::required(&path.child("dnsConfig"), detail));
    }
}

fn check_container(container: &Value, volumes: &BTreeSet<&str>, path: &Path, errors: &mut Vec<FieldError>) {
    check_rows(CONTAINER, container, path, errors);
    let mut port_names = BTreeSet::new();
    for (index, port) in items(container, "ports") {
        let path = path.child("ports").index(index);
        let name = text_of(port, "name");
        if !name.is_empty() && !port_names.insert(name) {
            errors.push(FieldError::duplicate(&path.child("name"), Some(&name.into())));
        }
        let number = path.child("containerPort");
        match port["containerPort"].as_i64().unwrap_or(0) {
            0 => errors.push(FieldError::required(&number, "")),
            1..=65535 => {}
            found => errors.push(FieldError::invalid(&number, &found.into(), PORT_RANGE)),
        }
    }
    for (index, variable) in items(container, "env") {
        let from = &variable["valueFrom"];
        let path = path.child("env").index(index).child("valueFrom");
        let Some(sources) = from.as_object() else { continue };
        let detail = match sources.len() {
            0 => {
                "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
            }
            _ if !text_of(variable, "value").is_empty() => "may not be specified when `value` is not empty",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.push(FieldError::invalid(&path, &"".into(), detail));
    }
    for (_, source) in items(container, "envFrom") {
        let path = path.child("envFrom");
        let detail = match (
            source["configMapRef"].is_object(),
            source["secretRef"].is_object(),
        ) {
            (false, false) => "must specify one of: `configMapRef` or `secretRef`",
            (true, true) => "may not have more than one field specified at a time",
            _ => continue,
        };
        errors.push(FieldError::invalid(&path, &"".into(), detail));
    }
    let mut mounts = BTreeSet::new();
    for (index, mount) in items(container, "volumeMounts") {
        let path = path.child("volumeMounts");
        let sub_path = text_of(mount, "subPath");
        let wrong = [
            (sub_path.starts_with('/'), "must be a relative path"),
            (
                sub_path.split('/').any(|part| part == ".."),
                "must not contain '..'",
            ),
        ];
        let wrong = wrong.into_iter().filter(|(is_wrong, _)| *is_wrong);
        let field = path.child("subPath");
        errors.extend(wrong.map(|(_, detail)| FieldError::invalid(&field, &sub_path.into(), detail)));
        let path = path.index(index);
        let (name, place) = (text_of(mount, "name"), text_of(mount, "mountPath"));
        if !volumes.contains(name) {
            errors.push(FieldError::not_found(&path.child("name"), &name.into()));
        }
        if !mounts.insert(place) {
            errors.push(FieldError::invalid(
                &path.child("mountPath"),
                &place.into(),
                "must be unique",
            ));
        }
    }
    check_resources(&container["resources"], &path.child("resources"), errors);
}

fn check_resources(resources: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let none = Map::new();
    let of = |name: &str| resources[name].as_object().unwrap_or(&none);
    let (limits, requests) = (of("limits"), of("requests"));
    for (list, quantities) in [("limits", limits), ("requests", requests)] {
        for (name, quantity) in quantities {
            let path = path.child(list).key(name);
            let mut refuse = |detail| errors.push(FieldError::invalid(&path, &(**name).into(), detail));
            let is_known = RESOURCES.contains(&&**name) || name.starts_with("hugepages-");
            if !name.contains('/') && !is_known {
                if !["pods", "services", "storage"].contains(&&**name) {
                    refuse("must be a standard resource type or fully qualified");
                }
                refuse("must be a standard resource for containers");
            }
            if is_below(quantity, &"0".into()) {
                errors.push(FieldError::invalid(&path, quantity, AT_LEAST_ZERO));
            }
        }
    }
    for (name, request) in requests {
        let is_native = !name.contains('/') || name.contains("kubernetes.io/");
        let is_equal = |limit: &Value| order(limit, request) == Some(Ordering::Equal);
        let shown = |limit: &Value| limit.as_str().map_or_else(|| limit.to_string(), str::to_owned);
        match limits.get(name) {
            Some(limit) if !is_native && !is_equal(limit) => {
                let detail = format!("must be equal to {name} limit of {}", shown(limit));
                errors.push(FieldError::invalid(&path.child("requests"), request, &detail));
            }
            Some(limit) if is_below(limit, request) => {
                let detail = format!("must be less than or equal to {name} limit of {}", shown(limit));
                errors.push(FieldError::invalid(&path.child("requests"), request, &detail));
            }
            None if !is_native => {
                let detail = "Limit must be set for non overcommitable resources";
                errors.push(FieldError::required(&path.child("limits"), detail));
            }
            _ => {}
        }
    }
}

/// Compares two quantities. `None` for malformed ones, which are reported elsewhere.
pub(super) fn order(one: &Value, other: &Value) -> Option<Ordering> {
    quantity::compare(one.as_str()?, other.as_str()?)
}

fn is_below(one: &Value, other: &Value) -> bool {
    order(one, other) == Some(Ordering::Less)
}

const HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "grpc"];

fn check_probes(container: &Value, may_have_probes: bool, path: &Path, errors: &mut Vec<FieldError>) {
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = &container[name];
        let path = path.child(name);
        if !probe.is_object() {
            continue;
        }
        if !may_have_probes {
            let detail = "may not be set for init containers without restartPolicy=Always";
            errors.push(FieldError::forbidden(&path, detail));
            continue;
        }
        check_rows(PROBE, probe, &path, errors);
        let mut handlers = HANDLERS.iter().filter(|name| probe[**name].is_object());
        if handlers.next().is_none() {
            errors.push(FieldError::required(&path, "must specify a handler type"));
        }
        for other in handlers {
            let detail = "may not specify more than 1 handler type";
            errors.push(FieldError::forbidden(&path.child(other), detail));
        }
        let threshold = &probe["successThreshold"];
        let is_above_one = threshold.as_i64().is_some_and(|threshold| threshold > 1);
        if name != "readinessProbe" && is_above_one {
            errors.push(FieldError::invalid(
                &path.child("successThreshold"),
                threshold,
                "must be 1",
            ));
        }
        let grace = &probe["terminationGracePeriodSeconds"];
        if name == "readinessProbe" && !grace.is_null() {
            let field = path.child("terminationGracePeriodSeconds");
            errors.push(FieldError::invalid(
                &field,
                grace,
                "must not be set for readinessProbes",
            ));
        }
    }
}

fn check_host_ports(spec: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (container, value) in items(spec, "containers") {
        for (port, value) in items(value, "ports") {
            let Some(number) = value["hostPort"].as_i64().filter(|number| *number != 0) else {
                continue;
            };
            let path = path.child("containers").index(container);
            let path = path.child("ports").index(port).child("hostPort");
            let protocol = match text_of(value, "protocol") {
                "" => "TCP",
                protocol => protocol,
            };
            if spec["hostNetwork"] == true && value["containerPort"] != number {
                let detail = "must match `containerPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(&path, &value["hostPort"], detail));
            }
            let key = format!("{protocol}/{}/{number}", text_of(value, "hostIP"));
            if !seen.insert(key.clone()) {
                errors.push(FieldError::duplicate(&path, Some(&key.into())));
            }
        }
    }
}

fn check_toleration(toleration: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let operator = text_of(toleration, "operator");
    let field = path.child("operator");
    if text_of(toleration, "key").is_empty() && operator != "Exists" {
        let detail =
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(FieldError::invalid(&field, &operator.into(), detail));
    }
    if !toleration["tolerationSeconds"].is_null() && toleration["effect"] != "NoExecute" {
        let effect = text_of(toleration, "effect");
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(&path.child("effect"), &effect.into(), detail));
    }
    let value = text_of(toleration, "value");
    match operator {
        "" | "Equal" => {
            let messages = names::check_label_value(value).into_iter();
            errors.extend(messages.map(|message| FieldError::invalid(&field, &value.into(), &message)));
        }
        "Exists" if !value.is_empty() => {
            let detail = "value must be empty when `operator` is 'Exists'";
            errors.push(FieldError::invalid(&field, &value.into(), detail));
        }
        // Newer versions have more operators.
        _ => {}
    }
}

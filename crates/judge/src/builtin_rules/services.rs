//! Services and Ingresses.

use std::collections::BTreeSet;
use std::net::IpAddr;

use rbuilder_kubernetes::ip::is_ip;
use rbuilder_kubernetes::names;
use serde_json::{Map, Value, json};

use super::rows::{PORT_RANGE, check_port_name, push_all};
use super::{field_path, items, text_of};
use crate::error::FieldError;
use crate::path::Path;
use crate::services::{is_external, needs_health_port};

pub(super) fn check_service(service: &Value, errors: &mut Vec<FieldError>) {
    let (spec, path) = (&service["spec"], field_path("spec"));
    let kind = text_of(spec, "type");
    let is_headless = spec["clusterIP"] == "None";
    let ports: Vec<(usize, &Value)> = items(spec, "ports").collect();
    if ports.is_empty() && !is_headless && kind != "ExternalName" {
        errors.push(FieldError::required(&path.child("ports"), ""));
    }
    if is_headless && matches!(kind, "LoadBalancer" | "NodePort") {
        let detail = format!("may not be set to 'None' for {kind} services");
        let field = path.child("clusterIPs").index(0);
        errors.push(FieldError::invalid(&field, &"None".into(), &detail));
    }
    if kind == "ExternalName" {
        let name = text_of(spec, "externalName");
        let field = path.child("externalName");
        match name.strip_suffix('.').unwrap_or(name) {
            "" => errors.push(FieldError::required(&field, "")),
            name => push_all(Some(name), names::check_subdomain, &field, errors),
        }
    }
    check_ports(&ports, kind, &path.child("ports"), errors);
    check_families(spec, &path, errors);
    check_traffic(spec, kind, &path, errors);
}

fn check_ports(ports: &[(usize, &Value)], kind: &str, path: &Path, errors: &mut Vec<FieldError>) {
    let (mut names, mut numbers, mut node_ports) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (index, port) in ports {
        let path = path.index(*index);
        let name = text_of(port, "name");
        let field = path.child("name");
        if name.is_empty() && ports.len() > 1 {
            errors.push(FieldError::required(&field, ""));
        } else if !name.is_empty() && !names.insert(name) {
            errors.push(FieldError::duplicate(&field, Some(&name.into())));
        }
        let node_port = port["nodePort"].as_i64().unwrap_or(0);
        let field = path.child("nodePort");
        if node_port != 0 && kind == "ClusterIP" {
            let detail = "may not be used when `type` is 'ClusterIP'";
            errors.push(FieldError::forbidden(&field, detail));
        }
        let protocol = match text_of(port, "protocol") {
            "" => "TCP",
            protocol => protocol,
        };
        if node_port != 0 && !node_ports.insert((protocol, node_port)) {
            // The allocator reports them before validation does.
            let detail = "provided port is already allocated";
            errors.push(FieldError::invalid(&field, &node_port.into(), detail));
        }
        let number = port["port"].as_i64().unwrap_or(0);
        if port["port"].is_null() {
            errors.push(FieldError::invalid(&path.child("port"), &0.into(), PORT_RANGE));
        }
        if !numbers.insert((protocol, number)) {
            // As printed from Go's struct.
            let shown = format!(
                r#"{{"Name":"","Protocol":"{protocol}","AppProtocol":null,"Port":{number},"TargetPort":0,"NodePort":0}}"#
            );
            errors.push(FieldError::duplicate_text(&path, &shown));
        }
    }
}

fn check_families(spec: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (index, family) in items(spec, "ipFamilies") {
        if !seen.insert(family.as_str()) {
            let path = path.child("ipFamilies").index(index);
            errors.push(FieldError::duplicate(&path, Some(family)));
        }
    }
    let cluster = spec["clusterIP"]
        .as_str()
        .filter(|ip| !matches!(*ip, "" | "None"));
    let cluster = cluster.map(|ip| (path.child("clusterIPs").index(0), ip));
    let external = items(spec, "externalIPs").filter_map(|(index, ip)| {
        let path = path.child("externalIPs").index(index);
        Some((path, ip.as_str()?))
    });
    for (path, ip) in cluster.into_iter().chain(external) {
        if !is_ip(ip) {
            let detail = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            errors.push(FieldError::invalid(&path, &ip.into(), detail));
        }
    }
}

fn check_traffic(spec: &Value, kind: &str, path: &Path, errors: &mut Vec<FieldError>) {
    let is_balanced = kind == "LoadBalancer";
    let holds = |rule: fn(&Map<String, Value>) -> bool| spec.as_object().is_some_and(rule);
    for name in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
        if !spec[name].is_null() && !is_balanced {
            let detail = "may only be used when `type` is 'LoadBalancer'";
            errors.push(FieldError::forbidden(&path.child(name), detail));
        }
    }
    if items(spec, "loadBalancerSourceRanges").next().is_some() && !is_balanced {
        // The server spells it like the field in Go.
        let path = path.child("LoadBalancerSourceRanges");
        errors.push(FieldError::forbidden(
            &path,
            "may only be used when `type` is 'LoadBalancer'",
        ));
    }
    let policy = text_of(spec, "externalTrafficPolicy");
    let field = path.child("externalTrafficPolicy");
    match policy {
        "" => {}
        _ if !holds(is_external) => {
            let detail = "may only be set for externally-accessible services";
            errors.push(FieldError::invalid(&field, &policy.into(), detail));
        }
        "Cluster" | "Local" => {}
        _ => {
            let known = ["Cluster".into(), "Local".into()];
            errors.push(FieldError::not_supported(&field, &policy.into(), &known));
        }
    }
    let health = &spec["healthCheckNodePort"];
    if health.as_i64().is_some_and(|port| port != 0) && !holds(needs_health_port) {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.push(FieldError::invalid(
            &path.child("healthCheckNodePort"),
            health,
            detail,
        ));
    }
}

pub(super) fn check_ingress(ingress: &Value, errors: &mut Vec<FieldError>) {
    let (spec, path) = (&ingress["spec"], field_path("spec"));
    let backend = &spec["defaultBackend"];
    if items(spec, "rules").next().is_none() && backend.is_null() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        let shown = if spec["rules"].is_array() {
            json!([])
        } else {
            Value::Null
        };
        errors.push(FieldError::invalid(&path, &shown, detail));
    }
    if backend.is_object() {
        check_backend(backend, &path.child("defaultBackend"), errors);
    }
    for (index, rule) in items(spec, "rules") {
        let path = path.child("rules").index(index);
        check_host(text_of(rule, "host"), &path.child("host"), errors);
        for (index, entry) in items(&rule["http"], "paths") {
            // The server stops here.
            if entry["pathType"].is_null() {
                continue;
            }
            let path = path.child("http").child("paths").index(index);
            check_http_path(entry, &path.child("path"), errors);
            check_backend(&entry["backend"], &path.child("backend"), errors);
        }
    }
    for (index, tls) in items(spec, "tls") {
        let path = path.child("tls").index(index);
        for (index, host) in items(tls, "hosts") {
            let host = host.as_str().unwrap_or_default();
            let path = path.child("hosts").index(index);
            match host.contains('*') {
                true => push_all(Some(host), check_wildcard, &path, errors),
                false => push_all(Some(host), names::check_subdomain, &path, errors),
            }
        }
    }
}

fn check_host(host: &str, path: &Path, errors: &mut Vec<FieldError>) {
    if host.is_empty() {
        return;
    }
    if host.parse::<IpAddr>().is_ok() {
        let detail = "must be a DNS name, not an IP address";
        errors.push(FieldError::invalid(path, &host.into(), detail));
    }
    match host.contains('*') {
        true => push_all(Some(host), check_wildcard, path, errors),
        false => push_all(Some(host), names::check_subdomain, path, errors),
    }
}

fn check_wildcard(text: &str) -> Vec<String> {
    let is_right = text
        .strip_prefix("*.")
        .is_some_and(|rest| names::check_subdomain(rest).is_empty());
    match is_right {
        true => Vec::new(),
        false => vec![
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist \
             of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. \
             '*.example.com', regex used for validation is \
             '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        ],
    }
}

fn check_http_path(entry: &Value, field: &Path, errors: &mut Vec<FieldError>) {
    let path = text_of(entry, "path");
    let is_opaque = entry["pathType"] == "ImplementationSpecific";
    if !matches!(text_of(entry, "pathType"), "Exact" | "Prefix") && (!is_opaque || path.is_empty()) {
        return;
    }
    let mut refuse = |detail: &str| errors.push(FieldError::invalid(field, &path.into(), detail));
    if !path.starts_with('/') {
        return refuse("must be an absolute path");
    }
    if is_opaque {
        return;
    }
    for part in ["//", "/./", "/../", "%2f", "%2F"] {
        if path.contains(part) {
            refuse(&format!("must not contain '{part}'"));
        }
    }
    for end in ["/..", "/."] {
        if path.ends_with(end) {
            refuse(&format!("cannot end with '{end}'"));
        }
    }
}

fn check_backend(backend: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let (service, resource) = (&backend["service"], &backend["resource"]);
    match (service.is_object(), resource.is_object()) {
        (true, true) => {
            let detail = "cannot set both resource and service backends";
            errors.push(FieldError::invalid(path, &"".into(), detail));
        }
        (false, false) => {
            let detail = "resource or service backend is required";
            errors.push(FieldError::invalid(path, &"".into(), detail));
        }
        (false, true) => {}
        (true, false) => {
            let name = text_of(service, "name");
            let field = path.child("service").child("name");
            match name.is_empty() {
                true => errors.push(FieldError::required(&field, "")),
                false => push_all(Some(name), names::check_label, &field, errors),
            }
            check_backend_port(&service["port"], path, errors);
        }
    }
}

fn check_backend_port(port: &Value, path: &Path, errors: &mut Vec<FieldError>) {
    let (name, number) = (text_of(port, "name"), port["number"].as_i64().unwrap_or(0));
    let field = path.child("service").child("port");
    match (name.is_empty(), number == 0) {
        (false, false) => {
            let detail = "cannot set both port name & port number";
            errors.push(FieldError::invalid(path, &"".into(), detail));
        }
        (true, true) => errors.push(FieldError::required(path, "port name or number is required")),
        (false, true) => push_all(Some(name), check_port_name, &field.child("name"), errors),
        (true, false) if !(1..=65535).contains(&number) => {
            errors.push(FieldError::invalid(
                &field.child("number"),
                &number.into(),
                PORT_RANGE,
            ));
        }
        (true, false) => {}
    }
}

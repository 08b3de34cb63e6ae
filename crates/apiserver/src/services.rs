//! Allocation of IP addresses and node ports when a Service is stored.
//!
//! Operators that compare or replace whole Services must tolerate these fields, which have no field
//! manager. Follows `pkg/registry/core/service/` of Kubernetes, for a cluster with IPv4 addresses
//! only.
//!
//! kube-apiserver allocates randomly. To be reproducible, the fake server starts at the number of
//! writes so far and takes the next free address or port. A recreated Service therefore gets a
//! different address.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use rbuilder_judge::services::{
    drop_fields_of_former_type, needs_address, needs_health_port, needs_node_ports, node_ports,
};
use serde_json::{Map, Value, json};

use super::failure::Cause;
use super::kinds::Definition;

type Fields = Map<String, Value>;

/// Start and size of the range of addresses.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const ADDRESSES: u32 = 1 << 20;

/// kube-apiserver's default range.
const FIRST_PORT: u64 = 30_000;
const PORTS: u64 = 2_768;

const HEADLESS: &str = "None";

/// Whether the server allocates fields of this kind.
pub(super) fn allocates(definition: &Definition) -> bool {
    definition.kind == "Service" && !definition.custom
}

/// Allocates the address and the ports of a new or updated Service. `others` are all other
/// Services. The search for free addresses and ports starts at `seed`.
///
/// # Errors
/// Fails if the address or the class changes, or if another Service has the address or a port.
pub(super) fn allocate<'s>(
    old: Option<&Value>,
    service: &mut Value,
    others: impl Iterator<Item = &'s Value>,
    seed: u64,
) -> Result<(), Cause> {
    let others: Vec<&Fields> = others.filter_map(|other| other["spec"].as_object()).collect();
    let old = old.and_then(|old| old["spec"].as_object());
    let Some(spec) = service.get_mut("spec").and_then(Value::as_object_mut) else {
        return Ok(());
    };
    if let Some(old) = old {
        keep_allocated(old, spec);
    }
    check_class(old, spec)?;
    unify_addresses(old, spec);
    if needs_address(spec) {
        check_address(old, spec)?;
        allocate_address(spec, &others, seed)?;
        set_families(old, spec);
    }
    if needs_node_ports(spec) {
        allocate_ports(old, spec, &others, seed)?;
    }
    let Some(old) = old else {
        return Ok(());
    };
    drop_fields_of_former_type(old, spec);
    if text(spec, "type") != "LoadBalancer" && service["status"]["loadBalancer"].is_object() {
        service["status"]["loadBalancer"] = json!({});
    }
    Ok(())
}

/// Restores what the client omitted, so that a write of the same Service is a no-op.
fn keep_allocated(old: &Fields, new: &mut Fields) {
    if needs_address(old) && needs_address(new) {
        for name in ["clusterIP", "clusterIPs"] {
            if is_empty(new, name) {
                copy(old, new, name);
            }
        }
    }
    if allocates_ports(old) && allocates_ports(new) {
        let still_used = node_ports(new);
        let by_name: BTreeMap<String, u64> = ports(old)
            .filter_map(|port| Some((port_name(port).to_owned(), node_port(port)?)))
            .collect();
        for port in ports_mut(new) {
            let known = by_name
                .get(port_name(port))
                .filter(|number| !still_used.contains(number));
            if let (None, Some(number)) = (node_port(port), known) {
                port["nodePort"] = (*number).into();
            }
        }
    }
    if needs_health_port(old) && needs_health_port(new) && is_empty(new, "healthCheckNodePort") {
        copy(old, new, "healthCheckNodePort");
    }
}

/// Sets `clusterIPs` for clients that only know `clusterIP`.
fn unify_addresses(old: Option<&Fields>, new: &mut Fields) {
    let address = text(new, "clusterIP").to_owned();
    let is_changed = match old {
        None => is_empty(new, "clusterIPs"),
        Some(old) => text(old, "clusterIP") != address && old.get("clusterIPs") == new.get("clusterIPs"),
    };
    if !is_changed {
        return;
    }
    match address.is_empty() {
        true => drop(new.remove("clusterIPs")),
        false => drop(new.insert("clusterIPs".to_owned(), json!([address]))),
    }
}

/// The controller of the class has made a load balancer, which another one doesn't know.
fn check_class(old: Option<&Fields>, new: &Fields) -> Result<(), Cause> {
    let class = |spec: &Fields| spec.get("loadBalancerClass").cloned().unwrap_or_default();
    let is_balanced = |spec: &Fields| text(spec, "type") == "LoadBalancer";
    let Some(old) = old.filter(|old| is_balanced(old) && is_balanced(new)) else {
        return Ok(());
    };
    if class(old) == class(new) {
        return Ok(());
    }
    let message = format!("Invalid value: {}: may not change once set", class(new));
    Err(Cause::invalid("spec.loadBalancerClass", message))
}

fn check_address(old: Option<&Fields>, new: &Fields) -> Result<(), Cause> {
    let Some(old) = old.filter(|old| needs_address(old)) else {
        return Ok(());
    };
    let first = |spec: &Fields| spec.get("clusterIPs").map(|list| list[0].clone());
    if first(old) == first(new) {
        return Ok(());
    }
    let shown = new.get("clusterIPs").cloned().unwrap_or_else(|| json!([]));
    let message = format!("Invalid value: {shown}: may not change once set");
    Err(Cause::invalid("spec.clusterIPs[0]", message))
}

fn allocate_address(new: &mut Fields, others: &[&Fields], seed: u64) -> Result<(), Cause> {
    let used: BTreeSet<&str> = others.iter().map(|other| text(other, "clusterIP")).collect();
    let address = text(new, "clusterIP");
    if address != HEADLESS && used.contains(address) {
        let message = format!(
            "Invalid value: {}: failed to allocate IP {address}: provided IP is already allocated",
            json!([address])
        );
        return Err(Cause::invalid("spec.clusterIPs", message));
    }
    if !address.is_empty() {
        return Ok(());
    }
    let start = u32::try_from(seed % u64::from(ADDRESSES)).unwrap_or_default();
    let mut addresses = (start..start + ADDRESSES)
        .map(|number| Ipv4Addr::from(u32::from(FIRST_ADDRESS) + number % ADDRESSES).to_string());
    if let Some(free) = addresses.find(|address| !used.contains(address.as_str())) {
        new.insert("clusterIPs".to_owned(), json!([free]));
        new.insert("clusterIP".to_owned(), free.into());
    }
    Ok(())
}

fn set_families(old: Option<&Fields>, new: &mut Fields) {
    let is_open = text(new, "clusterIP") == HEADLESS && is_empty(new, "selector");
    if is_empty(new, "ipFamilyPolicy") {
        let known = old.and_then(|old| old.get("ipFamilyPolicy").cloned());
        let default = if is_open {
            "RequireDualStack"
        } else {
            "SingleStack"
        };
        new.insert(
            "ipFamilyPolicy".to_owned(),
            known.unwrap_or_else(|| default.into()),
        );
    }
    if is_empty(new, "ipFamilies") {
        let is_v6 = text(new, "clusterIP").contains(':');
        let family = if is_v6 { "IPv6" } else { "IPv4" };
        new.insert("ipFamilies".to_owned(), json!([family]));
    }
    // Endpoints of a Service without a selector may be outside of the cluster, so kube-apiserver
    // accepts a family that the cluster doesn't support.
    if is_open
        && text(new, "ipFamilyPolicy") != "SingleStack"
        && let Some(families) = new.get_mut("ipFamilies").and_then(Value::as_array_mut)
        && let [family] = families.as_slice()
    {
        let other = if family == "IPv4" { "IPv6" } else { "IPv4" };
        families.push(other.into());
    }
}

fn allocate_ports(
    old: Option<&Fields>,
    new: &mut Fields,
    others: &[&Fields],
    seed: u64,
) -> Result<(), Cause> {
    let mut used: BTreeSet<u64> = others.iter().copied().flat_map(node_ports).collect();
    used.extend(
        others
            .iter()
            .filter_map(|other| other.get("healthCheckNodePort")?.as_u64()),
    );
    for (index, port) in ports(new).enumerate() {
        if let Some(number) = node_port(port).filter(|number| used.contains(number)) {
            let message = format!("Invalid value: {number}: provided port is already allocated");
            return Err(Cause::invalid(format!("spec.ports[{index}].nodePort"), message));
        }
    }
    used.extend(node_ports(new));
    let next = |used: &mut BTreeSet<u64>| {
        let mut numbers = (seed..seed + PORTS).map(|number| FIRST_PORT + number % PORTS);
        let free = numbers
            .find(|number| !used.contains(number))
            .unwrap_or(FIRST_PORT);
        used.insert(free);
        free
    };
    if allocates_ports(new) {
        // On creation, TCP and UDP share a node port if they have the same port.
        let mut by_port: BTreeMap<u64, u64> = BTreeMap::new();
        if old.is_none() {
            by_port.extend(ports(new).filter_map(|port| Some((port["port"].as_u64()?, node_port(port)?))));
        }
        for port in ports_mut(new).filter(|port| node_port(port).is_none()) {
            let shared = port["port"].as_u64().filter(|_| old.is_none());
            let known = shared.and_then(|number| by_port.get(&number).copied());
            let number = known.unwrap_or_else(|| next(&mut used));
            by_port.extend(shared.map(|port| (port, number)));
            port["nodePort"] = number.into();
        }
    }
    if needs_health_port(new) && is_empty(new, "healthCheckNodePort") {
        new.insert("healthCheckNodePort".to_owned(), next(&mut used).into());
    }
    Ok(())
}

/// Whether the server chooses the node ports that a client omits.
fn allocates_ports(spec: &Fields) -> bool {
    needs_node_ports(spec) && spec.get("allocateLoadBalancerNodePorts") != Some(&Value::Bool(false))
}

fn ports(spec: &Fields) -> impl Iterator<Item = &Value> {
    spec.get("ports").and_then(Value::as_array).into_iter().flatten()
}

fn ports_mut(spec: &mut Fields) -> impl Iterator<Item = &mut Value> {
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    ports.into_iter().flatten()
}

fn port_name(port: &Value) -> &str {
    port["name"].as_str().unwrap_or_default()
}

fn node_port(port: &Value) -> Option<u64> {
    port["nodePort"].as_u64().filter(|number| *number > 0)
}

fn text<'f>(fields: &'f Fields, name: &str) -> &'f str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn is_empty(fields: &Fields, name: &str) -> bool {
    match fields.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(Value::Number(number)) => number.as_u64() == Some(0),
        Some(Value::Bool(_)) => false,
    }
}

fn copy(from: &Fields, to: &mut Fields, name: &str) {
    if let Some(value) = from.get(name) {
        to.insert(name.to_owned(), value.clone());
    }
}

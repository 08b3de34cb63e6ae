//! Fields of Services that kube-apiserver sets and drops, depending on the type of the Service.
//!
//! Follows `pkg/registry/core/service/strategy.go` of Kubernetes. The functions take the spec of a
//! Service.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

type Spec = Map<String, Value>;

/// Drops fields that the new type of a Service does not use, unless the client changed them. The
/// server does so on updates, before it validates: clients that read a Service, change its type and
/// write it back still have the fields of the former type.
pub fn drop_fields_of_former_type(old: &Spec, new: &mut Spec) {
    let stops = |is_used: fn(&Spec) -> bool, new: &Spec| is_used(old) && !is_used(new);
    if stops(needs_address, new) {
        if ["clusterIP", "clusterIPs"]
            .iter()
            .all(|name| old.get(*name) == new.get(*name))
        {
            new.remove("clusterIP");
            new.remove("clusterIPs");
        }
        drop_unchanged(old, new, "ipFamilies");
        drop_unchanged(old, new, "ipFamilyPolicy");
    }
    // Clients may remove ports, too.
    if stops(needs_node_ports, new) && node_ports(old).is_superset(&node_ports(new)) {
        for port in ports_mut(new) {
            if let Some(port) = port.as_object_mut() {
                port.remove("nodePort");
            }
        }
    }
    if stops(needs_health_port, new) {
        drop_unchanged(old, new, "healthCheckNodePort");
    }
    if stops(is_balanced, new) {
        drop_unchanged(old, new, "allocateLoadBalancerNodePorts");
        drop_unchanged(old, new, "loadBalancerClass");
    }
    if stops(is_external, new) {
        drop_unchanged(old, new, "externalTrafficPolicy");
    }
}

/// Whether a Service of this type has an address in the cluster. `None` is an address, too.
pub fn needs_address(spec: &Spec) -> bool {
    type_of(spec) != "ExternalName"
}

/// Whether the ports of a Service of this type may have node ports.
pub fn needs_node_ports(spec: &Spec) -> bool {
    matches!(type_of(spec), "NodePort" | "LoadBalancer")
}

/// Whether the Service has a node port for health checks.
pub fn needs_health_port(spec: &Spec) -> bool {
    is_balanced(spec)
        && spec
            .get("externalTrafficPolicy")
            .is_some_and(|policy| policy == "Local")
}

fn is_balanced(spec: &Spec) -> bool {
    type_of(spec) == "LoadBalancer"
}

/// Whether traffic reaches the Service from outside of the cluster.
pub(crate) fn is_external(spec: &Spec) -> bool {
    let has_addresses = || {
        let addresses = spec.get("externalIPs").and_then(Value::as_array);
        addresses.is_some_and(|addresses| !addresses.is_empty())
    };
    needs_node_ports(spec) || type_of(spec) == "ClusterIP" && has_addresses()
}

/// Returns all node ports that are set.
pub fn node_ports(spec: &Spec) -> BTreeSet<u64> {
    let ports = spec.get("ports").and_then(Value::as_array);
    let numbers = ports
        .into_iter()
        .flatten()
        .filter_map(|port| port["nodePort"].as_u64());
    numbers.filter(|number| *number > 0).collect()
}

fn ports_mut(spec: &mut Spec) -> impl Iterator<Item = &mut Value> {
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    ports.into_iter().flatten()
}

fn drop_unchanged(old: &Spec, new: &mut Spec, name: &str) {
    if old.get(name) == new.get(name) {
        new.remove(name);
    }
}

fn type_of(spec: &Spec) -> &str {
    spec.get("type").and_then(Value::as_str).unwrap_or_default()
}

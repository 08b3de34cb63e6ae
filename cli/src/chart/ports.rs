//! Ports of the manager's container that are values.

use std::collections::BTreeMap;

use serde_json::Value;

use super::config::Config;

/// Name of each port in the scaffold, and its value.
const PORTS: &[(&str, &str)] = &[("metrics", METRICS_PORT), ("webhook-server", WEBHOOK_PORT)];
pub(super) const METRICS_PORT: &str = "metrics.port";
pub(super) const WEBHOOK_PORT: &str = "webhooks.port";

/// The chart value of each port, by its number in the manifests.
pub(crate) type Ports = BTreeMap<u64, &'static str>;

/// Finds the ports in a Deployment and in the patches of features.
pub(super) fn find_ports(config: &Config) -> Ports {
    let deployments = config
        .objects
        .iter()
        .filter(|object| object.kind() == "Deployment");
    let patches = deployments.flat_map(|object| {
        let patches = object.patches.iter().map(|(_, patch)| patch);
        std::iter::once(&object.value).chain(patches)
    });
    let items = |list: &'_ Value| list.as_array().cloned().unwrap_or_default();
    let containers = patches.flat_map(|patch| items(&patch["spec"]["template"]["spec"]["containers"]));
    let ports = containers.flat_map(|container| items(&container["ports"]));
    ports
        .filter_map(|port| {
            let (_, value) = PORTS.iter().find(|(name, _)| port["name"] == *name)?;
            Some((port["containerPort"].as_u64()?, *value))
        })
        .collect()
}

/// Returns the number of a port in manifests.
pub(super) fn default_port(ports: &Ports, value: &str) -> Option<u64> {
    let mut ports = ports.iter();
    ports.find(|(_, known)| **known == value).map(|(port, _)| *port)
}

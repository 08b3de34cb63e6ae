//! Ports of the manager's container that are values of the chart.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::config::Config;

/// Names of these ports in scaffolds, and their values.
const PORTS: &[(&str, &str)] = &[
    ("health", HEALTH_PORT),
    ("metrics", METRICS_PORT),
    ("webhook-server", WEBHOOK_PORT),
];
pub(super) const HEALTH_PORT: &str = "healthProbe.port";
pub(super) const METRICS_PORT: &str = "metrics.port";
pub(super) const WEBHOOK_PORT: &str = "webhooks.port";

pub(crate) type Ports = BTreeMap<u64, &'static str>;

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
    let mut ports = Ports::new();
    for container in containers {
        let arguments = items(&container["args"]);
        for port in items(&container["ports"]) {
            let known = PORTS.iter().find(|(name, _)| port["name"] == *name);
            let (Some((_, value)), Some(number)) = (known, port["containerPort"].as_u64()) else {
                continue;
            };
            // The probe port is also an argument. If it is written in another form, the value
            // couldn't change it.
            let is_followed = *value != HEALTH_PORT || arguments.contains(&json!(health_argument(number)));
            if is_followed {
                ports.insert(number, *value);
            }
        }
    }
    ports
}

pub(super) const HEALTH_FLAG: &str = "--health-probe-bind-address";

pub(super) fn health_argument(port: u64) -> String {
    format!("{HEALTH_FLAG}=:{port}")
}

pub(super) fn default_port(ports: &Ports, value: &str) -> Option<u64> {
    let mut ports = ports.iter();
    ports.find(|(_, known)| **known == value).map(|(port, _)| *port)
}

//! Controllers for volumes and load balancers.

use serde_json::json;

use super::{Act, Behavior, World, is_going, status_act};
use crate::history::Pace;

pub(super) struct Volumes;

impl Behavior for Volumes {
    /// Binds claims at their requested size. Claims remain pending if the environment is failing.
    fn next(&self, world: &World, pace: Pace) -> Vec<Act> {
        let claims = world.of("", "persistentvolumeclaims");
        claims
            .filter(|stored| !is_going(stored))
            .filter_map(|stored| {
                let spec = &stored.value()["spec"];
                let status = match pace {
                    Pace::Failing => json!({ "phase": "Pending" }),
                    _ => json!({
                        "phase": "Bound", "accessModes": spec["accessModes"],
                        "capacity": spec["resources"]["requests"],
                    }),
                };
                status_act(stored, status)
            })
            .collect()
    }
}

pub(super) struct LoadBalancers;

impl Behavior for LoadBalancers {
    /// Assigns addresses to Ingresses and LoadBalancer Services, unless the environment is failing.
    fn next(&self, world: &World, pace: Pace) -> Vec<Act> {
        if pace == Pace::Failing {
            return Vec::new();
        }
        let services = world.of("", "services");
        let services = services.filter(|stored| stored.value()["spec"]["type"] == "LoadBalancer");
        services
            .chain(world.of("networking.k8s.io", "ingresses"))
            .filter(|stored| !is_going(stored))
            .filter_map(|stored| {
                let status = json!({ "loadBalancer": { "ingress": [{ "ip": "192.0.2.1" }] } });
                status_act(stored, status)
            })
            .collect()
    }
}

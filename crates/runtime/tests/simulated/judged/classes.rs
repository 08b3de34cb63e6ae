//! Operators that implement a class, and leave the other objects of a kind to the cluster.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use rbuilder::simulation::Simulation;
use rbuilder::{Action, Controller, Ctx, Manager, Result};
use serde_json::{Value, json};

use super::{HISTORIES, assert_silent};

const CLASS: &str = "example.com/tunnel";

/// Gives Services of a class an address, like FyraLabs/chisel-operator.
async fn tunnel(service: Arc<Service>, ctx: Ctx<()>) -> Result {
    let spec = service.spec.as_ref();
    let class = spec.and_then(|spec| spec.load_balancer_class.as_deref());
    if class == Some(CLASS) {
        let status = json!({
            "apiVersion": "v1", "kind": "Service",
            "status": { "loadBalancer": { "ingress": [{ "ip": "198.51.100.7" }] } },
        });
        let params = PatchParams::apply("tunnel").force();
        let services = ctx.api::<Service>(&*service);
        services
            .patch_status(&service.name_any(), &params, &Patch::Apply(status))
            .await?;
    }
    Ok(Action::await_change())
}

fn service(class: Option<&str>) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "sample" },
        "spec": { "type": "LoadBalancer", "loadBalancerClass": class, "ports": [{ "port": 80 }] },
    })
}

fn simulation(class: Option<&str>) -> Simulation {
    let register = |manager: Manager| manager.controller(Controller::new(tunnel, ()));
    Simulation::new(register).declare(&service(class))
}

#[test]
fn operator_assigns_addresses_to_its_class() {
    assert_silent(simulation(Some(CLASS)));
}

#[test]
fn cluster_assigns_addresses_without_a_class() {
    let report = simulation(None).histories(HISTORIES).run();
    assert!(report.failures.is_empty(), "{report}");
}

//! Runs histories on etcd and kube-apiserver.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use rbuilder::simulation::OnServer;
use rbuilder::{Action, Controller, Ctx, Manager, Result};
use serde_json::json;

use crate::{Widget, register_correct, simulate};

/// Only a real server rejects the range of this Service.
async fn applies_wrong_range(widget: Arc<Widget>, ctx: Ctx<()>) -> Result {
    let service: Service = serde_json::from_value(json!({
        "metadata": { "name": "a" },
        "spec": {
            "type": "LoadBalancer",
            "ports": [{ "port": 80 + widget.spec.size }],
            "loadBalancerSourceRanges": ["10.0.0.0/99"],
        },
    }))?;
    ctx.apply_owned(&*widget, service).await?;
    Ok(Action::await_change())
}

fn register_wrong_range(manager: Manager) -> Manager {
    manager.controller(Controller::new(applies_wrong_range, ()).owns::<Service>())
}

#[rbuilder::envtest::test]
async fn server_shows_the_states_of_the_simulation() {
    let report = simulate(register_correct).run_on_server();
    assert!(report.is_clean(), "{report}");
    let Some(OnServer::Replayed { history, .. }) = report.on_server else {
        panic!("{report}");
    };
    // The object is declared, resized to 2, 0 and back, labelled and back, and deleted.
    assert_eq!(history.steps.len(), 8, "{history}");
}

#[rbuilder::envtest::test]
async fn object_that_only_the_simulation_accepts_is_reported() {
    let report = simulate(register_wrong_range).run_on_server();
    assert!(!report.is_clean());
    let text = report.to_string();
    assert!(
        text.contains("after step 1: services default/a is missing"),
        "{text}"
    );
}

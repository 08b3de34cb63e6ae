//! Operators with two replicas.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, PostParams};
use rbuilder::simulation::Oracle;
use rbuilder::{Action, Controller, Ctx, Manager, Result, set_controller_reference};

use crate::{Widget, map_of, simulate};

/// Creates a child with a generated name, unless one already exists.
async fn makes_one(widget: Arc<Widget>, ctx: Ctx<()>) -> Result {
    let maps = ctx.api::<ConfigMap>(&*widget);
    if maps.list(&ListParams::default()).await?.items.is_empty() {
        let mut map = map_of(&widget);
        map.metadata.name = None;
        map.metadata.generate_name = Some("a-".to_owned());
        set_controller_reference(&*widget, &mut map)?;
        maps.create(&PostParams::default(), &map).await?;
    }
    Ok(Action::await_change())
}

fn register_everywhere(manager: Manager) -> Manager {
    manager.controller(Controller::new(makes_one, ()).on_every_replica())
}

fn register_leader(manager: Manager) -> Manager {
    manager.controller(Controller::new(makes_one, ()))
}

/// Returns `true` if an operator with two replicas creates two children.
fn makes_two(register: fn(Manager) -> Manager) -> bool {
    let report = simulate(register).without(Oracle::Path).histories(60).run();
    let mut failures = report.failures.iter();
    failures.any(|failure| failure.history.replicated && failure.message.contains("a-<2> should not exist"))
}

#[test]
fn work_of_each_replica_is_done_twice() {
    assert!(makes_two(register_everywhere));
    assert!(!makes_two(register_leader), "only one replica leads");
}

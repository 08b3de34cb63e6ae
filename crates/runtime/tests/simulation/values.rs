//! Random values of the schema, and how they are shrunk.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::{CustomResource, CustomResourceExt};
use rbuilder::simulation::{History, Oracle, Simulation, Step};
use rbuilder::testing::RandomObjects;
use rbuilder::{Action, Controller, CrdSchema, Ctx, Manager, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// GadgetSpec defines the desired state of Gadget.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Gadget", namespaced)]
struct GadgetSpec {
    /// size is the number of parts.
    size: i32,
    /// title is shown to people.
    title: Option<String>,
    /// labels are shown beside it.
    #[serde(default)]
    labels: Vec<String>,
}

async fn fails_for_large_sizes(gadget: Arc<Gadget>, _: Ctx<()>) -> Result {
    assert!(gadget.spec.size <= 20, "no room");
    Ok(Action::await_change())
}

fn register(manager: Manager) -> Manager {
    manager.controller(Controller::new(fails_for_large_sizes, ()))
}

fn simulation() -> Simulation {
    let gadget = json!({
        "apiVersion": "example.com/v1", "kind": "Gadget", "metadata": { "name": "a" }, "spec": { "size": 1 },
    });
    let random = RandomObjects::new(&Gadget::crd(), "v1").values("spec.size", [87]);
    Simulation::new(register)
        .crd(Gadget::crd())
        .declare(&gadget)
        .values(&random, 5)
        .histories(60)
}

#[test]
fn random_values_are_shrunk_to_those_that_fail() {
    let report = simulation().run();
    let failure = &report.failures[0];
    assert_eq!(failure.oracle, Oracle::Panic);
    let only = BTreeMap::from([("/spec/size".to_owned(), json!(21))]);
    assert!(
        failure.history.steps.contains(&Step::ApplyWith(0, only)),
        "{}",
        failure.history
    );
    let text = failure.history.to_string();
    assert_eq!(text.parse::<History>().as_ref(), Ok(&failure.history));
    let again = simulation().run();
    assert_eq!(
        again.failures[0].history, failure.history,
        "shrinking is repeatable"
    );
}

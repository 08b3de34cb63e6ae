//! Objects that outlive their declaration on purpose, and fields that nobody writes.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, CustomResource, CustomResourceExt, ResourceExt};
use rbuilder::simulation::Simulation;
use rbuilder::{Action, ApplySet, Controller, CrdSchema, Ctx, Error, Manager, ObjectRef, Result, Task};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{assert_found, assert_silent, simulate};
use crate::children::{claim, config_map};
use crate::kinds::{App, Labelled, declared, declared_map, namespace};

async fn applies_set(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let size = [("size", app.spec.size.to_string())];
    let set = ApplySet::new()
        .add_kept(claim(app.name_any(), 1))
        .add(config_map(app.name_any(), size));
    Ok(ctx.apply_set(&*app, set).await?.action())
}

#[test]
fn kept_members_of_a_set_may_stay() {
    let register = |manager: Manager| {
        let controller = Controller::new(applies_set, ()).owns::<ConfigMap>();
        // Kept objects have no owner reference.
        manager.controller(controller.watches(|claim: &PersistentVolumeClaim, _| {
            let owner = rbuilder::ObjectRef::new(&claim.name_any()).within(&namespace(claim));
            vec![owner]
        }))
    };
    assert_silent(simulate(register, &[declared::<App>(json!({ "size": 1 }))]));
}

async fn applies_map(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let size = [("size", app.spec.size.to_string())];
    ctx.apply_owned(&*app, config_map(app.name_any(), size)).await?;
    Ok(Action::await_change())
}

/// Writes a ConfigMap that belongs to the operator itself.
async fn summarize(client: Client) {
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let map = config_map("summary", [("is-running", "yes".to_owned())]);
    let params = PatchParams::apply("summary").force();
    while maps.patch("summary", &params, &Patch::Apply(&map)).await.is_err() {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    std::future::pending::<()>().await;
}

#[test]
fn what_exists_before_the_first_declaration_may_stay() {
    let register = |manager: Manager| {
        let client = manager.leader_client();
        let task = Task::new("summary", move |_| async move {
            summarize(client).await;
            Ok::<_, rbuilder::Error>(())
        });
        manager
            .task(task)
            .controller(Controller::new(applies_map, ()).owns::<ConfigMap>())
    };
    assert_silent(simulate(register, &[declared::<App>(json!({ "size": 1 }))]));
}

/// GateSpec declares who may pass.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "simulated.example.com", version = "v1", kind = "Gate", namespaced)]
struct GateSpec {
    /// allowFrom is who may pass.
    #[kube(list_type = "set")]
    #[serde(rename = "allowFrom", skip_serializing_if = "Option::is_none")]
    allow_from: Option<Vec<String>>,
    /// port is where.
    port: i32,
}

async fn opens(gate: Arc<Gate>, ctx: Ctx<()>) -> Result {
    let allowed = gate.spec.allow_from.clone().unwrap_or_default().join(",");
    let data = [("allowed", allowed), ("port", gate.spec.port.to_string())];
    ctx.apply_owned(&*gate, config_map(gate.name_any(), data)).await?;
    Ok(Action::await_change())
}

#[test]
fn what_the_user_wrote_is_not_compared() {
    let register = |manager: Manager| manager.controller(Controller::new(opens, ()).owns::<ConfigMap>());
    let gate = declared::<Gate>(json!({ "allowFrom": ["anna"], "port": 80 }));
    assert_silent(Simulation::new(register).crd(Gate::crd()).declare(&gate));
}

/// Counts its reconciles in a ConfigMap.
async fn counts(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let maps = ctx.api::<ConfigMap>(&*app);
    let found = maps.get_opt(&app.name_any()).await?;
    let data = found.and_then(|found| found.data).unwrap_or_default();
    let size = app.spec.size.to_string();
    if data.get("size") != Some(&size) {
        let count = data
            .get("count")
            .and_then(|count| count.parse().ok())
            .unwrap_or(0);
        let data = [("count", (count + 1).to_string()), ("size", size)];
        ctx.apply_owned(&*app, config_map(app.name_any(), data)).await?;
    }
    Ok(Action::await_change())
}

#[test]
fn ignored_fields_are_not_compared() {
    let register = |manager: Manager| manager.controller(Controller::new(counts, ()).owns::<ConfigMap>());
    let sized = [declared::<App>(json!({ "size": 1 }))];
    assert_found(simulate(register, &sized), "path", ".data.count");
    assert_silent(simulate(register, &sized).ignoring("configmaps .data.count"));
}

/// Makes a ConfigMap out of another one, and leaves it as it is while that one is missing.
async fn copies(label: Arc<Labelled>, ctx: Ctx<()>) -> Result {
    let source = ctx.api::<ConfigMap>(&*label).get_opt(&label.spec.label).await?;
    let source = source.ok_or_else(|| Error::new(format!("there is no ConfigMap {}", label.spec.label)))?;
    let text = source.data.and_then(|mut data| data.remove("text"));
    let copy = config_map(label.name_any(), [("text", text.unwrap_or_default())]);
    ctx.apply_owned(&*label, copy).await?;
    Ok(Action::await_change())
}

fn all_labelled(_: &ConfigMap, ctx: &Ctx<()>) -> Result<Vec<ObjectRef<Labelled>>> {
    let all = ctx.cached::<Labelled>()?.list();
    Ok(all.iter().map(|label| ObjectRef::from_obj(&**label)).collect())
}

#[test]
fn reference_that_dangles_may_change_nothing() {
    let register =
        |manager: Manager| manager.controller(Controller::new(copies, ()).try_watches(all_labelled));
    let declared = [
        declared_map("settings", "loud"),
        declared::<Labelled>(json!({ "label": "settings" })),
    ];
    let declared = declared.iter();
    let simulation = Simulation::new(register).crd(Labelled::crd());
    assert_silent(declared.fold(simulation, |simulation, object| simulation.declare(object)));
}

//! Quotas without room, and evictions.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt;
use rbuilder::{Action, Controller, Ctx, Error, Manager, ObjectRef, Result, Watch};
use serde_json::{Value, json};

use super::{assert_found, assert_silent, simulate};
use crate::children::{config_map, deployment, is_available};
use crate::kinds::{App, declared, namespace, report_phase, report_ready};

fn app() -> Vec<Value> {
    vec![declared::<App>(json!({ "size": 2 }))]
}

fn is_over_quota(error: &Error) -> bool {
    error.to_string().contains(" is forbidden: exceeded quota: ")
}

/// The operator reports a full quota as the final failure: tektoncd/pipeline#734.
async fn gives_up<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let child = config_map(app.name_any(), [("size", app.spec.size.to_string())]);
    match ctx.apply_owned(&*app, child).await {
        Err(error) if is_over_quota(&error) => {
            report_phase(&ctx, &*app, "OverQuota").await?;
            match REPAIRED {
                true => Err(error),
                false => Err(Error::terminal(error.to_string())),
            }
        }
        applied => {
            applied?;
            report_phase(&ctx, &*app, "Done").await?;
            Ok(Action::await_change())
        }
    }
}

fn register_map<const REPAIRED: bool>(manager: Manager) -> Manager {
    manager.controller(Controller::new(gives_up::<REPAIRED>, ()).owns::<ConfigMap>())
}

#[test]
fn full_quota_is_not_final() {
    let words = "configmaps default/sample is missing";
    let report = assert_found(simulate(register_map::<false>, &app()), "end-state", words);
    let text = report.to_string();
    let circumstance =
        "when a quota has no room for configmaps for 30 seconds, from `patch configmaps default/sample #1`";
    assert!(text.contains(circumstance), "{text}");
    assert_silent(simulate(register_map::<true>, &app()));
}

fn pod(app: &App) -> Result<Pod> {
    Ok(serde_json::from_value(json!({
        "metadata": { "name": app.name_any(), "labels": { "size": app.spec.size.to_string() } },
        "spec": { "containers": [{ "name": "main", "image": "database" }] },
    }))?)
}

fn is_dead(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Failed" | "Succeeded"))
}

/// The operator keeps an evicted Pod, because it exists: banzaicloud/koperator#326.
async fn keeps_dead<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let found = ctx.cached::<Pod>()?.named(&namespace(&*app), &app.name_any());
    match found.filter(|pod| REPAIRED && is_dead(pod)) {
        // The event of the deletion leads to the next reconcile.
        Some(dead) => drop(ctx.delete(&*dead).await?),
        None => drop(ctx.apply_owned(&*app, pod(&app)?).await?),
    }
    Ok(Action::await_change())
}

fn register_pod<const REPAIRED: bool>(manager: Manager) -> Manager {
    let controller = Controller::new(keeps_dead::<REPAIRED>, ());
    manager.controller(controller.watch(Watch::<Pod, _>::owned()))
}

#[test]
fn dead_pod_is_replaced() {
    let words = "pods default/sample: .status.phase is \"Failed\", expected \"Running\"";
    let report = assert_found(simulate(register_pod::<false>, &app()), "end-state", words);
    let text = report.to_string();
    assert!(
        text.contains("when pods default/sample is evicted 10 seconds after"),
        "{text}"
    );
    assert_silent(simulate(register_pod::<true>, &app()));
}

/// Reports that the object is ready if the Deployment and its Pods are.
async fn counts_running(app: Arc<App>, ctx: Ctx<()>) -> Result {
    let deployment = deployment(app.name_any(), "nginx", app.spec.size);
    let deployment = ctx.apply_owned(&*app, deployment).await?;
    let pods = ctx.cached::<Pod>()?.in_namespace(&namespace(&*app));
    let own = pods
        .iter()
        .filter(|pod| app_of(pod).any(|name| name == app.name_any()));
    let running = own.filter(|pod| !is_dead(pod)).count();
    let wanted = usize::try_from(app.spec.size).unwrap_or_default();
    report_ready(&ctx, &*app, is_available(&deployment) && running >= wanted).await?;
    Ok(Action::await_change())
}

fn app_of(pod: &Pod) -> impl Iterator<Item = String> {
    pod.labels().get("app").cloned().into_iter()
}

/// The ReplicaSet leaves the dead Pod, and makes another one.
#[test]
fn controllers_wait_for_quotas_and_replace_evicted_pods() {
    let operator = |manager: Manager| {
        let owners = |pod: &Pod, _: &Ctx<()>| {
            let apps = app_of(pod).map(|name| ObjectRef::new(&name));
            apps.map(|app: ObjectRef<App>| app.within(&namespace(pod)))
                .collect()
        };
        let controller = Controller::new(counts_running, ()).owns::<Deployment>();
        manager.controller(controller.watches(owners))
    };
    assert_silent(simulate(operator, &app()));
}

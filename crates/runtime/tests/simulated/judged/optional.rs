//! Declarations whose last field is removed, and configuration that Pods don't read again.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{CustomResource, CustomResourceExt, ResourceExt};
use rbuilder::simulation::Simulation;
use rbuilder::{Action, Controller, CrdSchema, Ctx, Manager, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{assert_found, assert_silent, simulate};
use crate::children::{config_map, deployment};
use crate::kinds::{App, declared};

/// TeamSpec has nothing that must be set.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "simulated.example.com", version = "v1", kind = "Team", namespaced)]
struct TeamSpec {
    /// name is an annotation of the Deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

fn annotated(team: &Team) -> Deployment {
    let mut deployment = deployment(team.name_any(), "app", 1);
    let name = team.spec.name.clone();
    deployment.metadata.annotations = name.map(|name| [("team".to_owned(), name)].into());
    deployment
}

/// Adds the annotation to those that the Deployment has: zilliztech/milvus-operator#232.
async fn merging(team: Arc<Team>, ctx: Ctx<()>) -> Result {
    let mut wanted = annotated(&team);
    if let Some(found) = ctx.api::<Deployment>(&*team).get_opt(&team.name_any()).await? {
        let mut all = found.annotations().clone();
        all.append(wanted.annotations_mut());
        *wanted.annotations_mut() = all;
    }
    ctx.apply_owned(&*team, wanted).await?;
    Ok(Action::await_change())
}

async fn applying(team: Arc<Team>, ctx: Ctx<()>) -> Result {
    ctx.apply_owned(&*team, annotated(&team)).await?;
    Ok(Action::await_change())
}

fn team(register: fn(Manager) -> Manager) -> Simulation {
    let team = json!({
        "apiVersion": "simulated.example.com/v1", "kind": "Team", "metadata": { "name": "sample" },
        "spec": { "name": "a" },
    });
    Simulation::new(register).crd(Team::crd()).declare(&team)
}

#[test]
fn only_field_of_a_spec_is_removed() {
    let report = assert_found(
        team(|manager| manager.controller(Controller::new(merging, ()).owns::<Deployment>())),
        "path",
        r#".metadata.annotations is {"team":"a"}, expected nothing"#,
    );
    assert_eq!(report.refused, [""; 0], "{report}");
    assert_silent(team(|manager| {
        manager.controller(Controller::new(applying, ()).owns::<Deployment>())
    }));
}

#[test]
fn refused_variations_are_counted() {
    let report = simulate(register_rolling, &[declared::<App>(json!({ "size": 1 }))]).run();
    assert!(report.failures.is_empty(), "{report}");
    // A size of zero is below the minimum.
    let text = report.to_string();
    let words = "the server refuses 1 variation of the declarations, such as: apply apps.simulated.example.com \
                 default/sample with /spec/size = 0: ";
    assert!(text.contains(words), "{text}");
}

async fn serve(app: &App, ctx: &Ctx<()>, annotations: serde_json::Value) -> Result {
    let name = app.name_any();
    let config = config_map(&name, [("size", app.spec.size.to_string())]);
    ctx.apply_owned(app, config).await?;
    let labels = json!({ "app": name });
    let set: StatefulSet = serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {
            "serviceName": name, "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels, "annotations": annotations },
                "spec": {
                    "containers": [{
                        "name": "main", "image": "app",
                        "volumeMounts": [{ "name": "config", "mountPath": "/etc/app" }],
                    }],
                    "volumes": [{ "name": "config", "configMap": { "name": name } }],
                },
            },
        },
    }))?;
    ctx.apply_owned(app, set).await?;
    Ok(Action::await_change())
}

/// Changes the ConfigMap alone: marmos91/dittofs#1319.
async fn reloading(app: Arc<App>, ctx: Ctx<()>) -> Result {
    serve(&app, &ctx, json!({})).await
}

async fn rolling(app: Arc<App>, ctx: Ctx<()>) -> Result {
    serve(&app, &ctx, json!({ "config": app.spec.size.to_string() })).await
}

fn register_rolling(manager: Manager) -> Manager {
    let controller = Controller::new(rolling, ()).owns::<ConfigMap>();
    manager.controller(controller.owns::<StatefulSet>())
}

#[test]
fn configuration_is_rolled_out_if_the_test_requires_it() {
    let declared = [declared::<App>(json!({ "size": 1 }))];
    let keeping = |manager: Manager| {
        let controller = Controller::new(reloading, ()).owns::<ConfigMap>();
        manager.controller(controller.owns::<StatefulSet>())
    };
    let words = "statefulsets.apps default/sample: the template is as before, although configmaps default/sample has \
                 other data";
    assert_found(simulate(keeping, &declared).rolls_out_config(), "path", words);
    // Its Pods may read the file again.
    assert_silent(simulate(keeping, &declared));
    assert_silent(simulate(register_rolling, &declared).rolls_out_config());
}

//! Programs without the library.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, CustomResource, CustomResourceExt, Resource, ResourceExt};
use rbuilder::CrdSchema;
use rbuilder::simulation::Simulation;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::assert_silent;
use crate::children::{config_map, deployment};
use crate::kinds::{App, declared, namespace};

async fn reconcile(
    app: Arc<App>,
    client: Arc<Client>,
) -> Result<kube::runtime::controller::Action, kube::Error> {
    let mut map = config_map(app.name_any(), [("size", app.spec.size.to_string())]);
    map.metadata.owner_references = app.controller_owner_ref(&()).map(|owner| vec![owner]);
    let maps: Api<ConfigMap> = Api::namespaced(Client::clone(&client), &namespace(&*app));
    let params = PatchParams::apply("app").force();
    maps.patch(&app.name_any(), &params, &Patch::Apply(&map)).await?;
    Ok(kube::runtime::controller::Action::await_change())
}

/// A controller and a watch of something else, of which tokio polls one first by chance.
async fn selects(client: Client) {
    let apps: Api<App> = Api::all(client.clone());
    let maps: Api<ConfigMap> = Api::all(client.clone());
    let controller = kube::runtime::Controller::new(apps, watcher::Config::default())
        .owns(maps.clone(), watcher::Config::default())
        .run(
            reconcile,
            |_, _, _| kube::runtime::controller::Action::requeue(Duration::from_secs(5)),
            Arc::new(client),
        )
        .for_each(|_| std::future::ready(()));
    let watch = watcher(maps, watcher::Config::default())
        .default_backoff()
        .for_each(|_| std::future::ready(()));
    tokio::select! {
        () = controller => {}
        () = watch => {}
    }
}

#[test]
fn order_of_requests_at_one_instant_does_not_matter() {
    let simulation = Simulation::of_client(selects).crd(App::crd());
    assert_silent(simulation.declare(&declared::<App>(json!({ "size": 1 }))));
}

/// RunSpec has a value that only the server checks.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "simulated.example.com", version = "v1", kind = "Run", namespaced)]
struct RunSpec {
    /// policy is when to pull the image.
    policy: String,
}

async fn run(run: Arc<Run>, client: Arc<Client>) -> Result<kube::runtime::controller::Action, kube::Error> {
    let mut deployment = deployment(run.name_any(), "app", 1);
    deployment.metadata.owner_references = run.controller_owner_ref(&()).map(|owner| vec![owner]);
    if let Some(pod) = &mut deployment.spec.template.spec {
        pod.containers[0].image_pull_policy = Some(run.spec.policy.clone());
    }
    let deployments: Api<Deployment> = Api::namespaced(Client::clone(&client), &namespace(&*run));
    let params = PatchParams::apply("run").force();
    deployments
        .patch(&run.name_any(), &params, &Patch::Apply(&deployment))
        .await?;
    Ok(kube::runtime::controller::Action::await_change())
}

async fn runs(client: Client) {
    let deployments: Api<Deployment> = Api::all(client.clone());
    kube::runtime::Controller::<Run>::new(Api::all(client.clone()), watcher::Config::default())
        .owns(deployments, watcher::Config::default())
        .run(
            run,
            |_, _, _| kube::runtime::controller::Action::requeue(Duration::from_secs(5)),
            Arc::new(client),
        )
        .for_each(|_| std::future::ready(()))
        .await;
}

/// The Deployment of a valid declaration may stay when it is followed by an invalid one, as in
/// svix/diom.
#[test]
fn nothing_is_expected_of_a_declaration_with_invalid_children() {
    let object = json!({
        "apiVersion": "simulated.example.com/v1", "kind": "Run", "metadata": { "name": "sample" },
        "spec": { "policy": "Always" },
    });
    assert_silent(Simulation::of_client(runs).crd(Run::crd()).declare(&object));
}

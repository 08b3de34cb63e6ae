//! Programs without the library.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, CustomResourceExt, Resource, ResourceExt};
use rbuilder::simulation::Simulation;
use serde_json::json;

use super::assert_silent;
use crate::children::config_map;
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

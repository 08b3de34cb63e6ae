//! Runs the controller for the sample, using an API server inside of this process. At the end, the
//! resulting object is printed as YAML.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, CustomResourceExt, Resource};
use memcached_operator::api::v1alpha1::Memcached;
use memcached_operator::controller;
use rbuilder::fake::ApiServer;
use rbuilder::testing::{eventually, run};
use rbuilder::{Manager, ManagerArgs, conditions};
use serde::Serialize;

const NAME: &str = "memcached-sample";
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::main]
async fn main() {
    let server = ApiServer::new().crd(Memcached::crd());
    let client = server.client();
    let manager = Manager::with_client("tour", client.clone(), ManagerArgs::for_tests());
    let running = run(controller::register(manager));

    let sample = include_str!("../config/samples/cache_v1alpha1_memcached.yaml");
    let sample: Memcached = serde_saphyr::from_str(sample).expect("the sample deserializes");
    let memcacheds: Api<Memcached> = Api::default_namespaced(client.clone());
    let created = memcacheds.create(&PostParams::default(), &sample).await;
    created.expect("the sample is created");

    let deployments: Api<Deployment> = Api::default_namespaced(client);
    let deployment = eventually(PATIENCE, || deployments.get(NAME)).await;
    show("the Deployment that the controller has applied", deployment.clone());

    // There's no Deployment controller, so we have to pretend that all replicas are ready.
    let replicas = deployment.spec.replicas;
    let status = Patch::Merge(serde_json::json!({"status": {
        "observedGeneration": 1, "replicas": replicas, "readyReplicas": replicas,
    }}));
    let params = PatchParams::default();
    let ready = deployments.patch_status(NAME, &params, &status).await;
    ready.expect("the status is patched");
    let memcached = eventually(PATIENCE, || async {
        let memcached = memcacheds.get(NAME).await.map_err(|error| error.to_string())?;
        let status = memcached.status.clone().unwrap_or_default();
        let is_available = conditions::is_true(&status.conditions, "Available");
        is_available.then_some(memcached).ok_or_else(|| format!("{status:?}"))
    });
    show("the Memcached once its replicas are ready", memcached.await);
    running.stop().await;
}

fn show(title: &str, mut object: impl Resource<DynamicType = ()> + Serialize) {
    object.meta_mut().managed_fields = None;
    let yaml = serde_saphyr::to_string(&object).expect("the object serializes");
    println!("---\n# {title}\n{yaml}");
}

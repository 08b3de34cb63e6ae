//! Tests an environment with controllers and nodes, where workloads make progress as in a cluster.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt};
use rbuilder::envtest::{Environment, eventually};
use serde_json::json;

/// The machine may be busy.
const SOON: Duration = Duration::from_secs(60);

fn pod_template(restart_policy: &str) -> serde_json::Value {
    json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": {
            "containers": [{ "name": "web", "image": "example.com/web" }],
            "restartPolicy": restart_policy,
        },
    })
}

async fn pod_names(pods: &Api<Pod>) -> Vec<String> {
    let list = pods.list(&ListParams::default()).await.unwrap();
    list.iter().map(ResourceExt::name_any).collect()
}

#[rbuilder::envtest::test(controllers)]
async fn workloads_start_and_stop_as_in_a_cluster() {
    let env = Environment::builder()
        .controllers()
        .nodes(3)
        .start()
        .await
        .unwrap();
    let namespace = env.namespace("nodes").await.unwrap();
    let pods: Api<Pod> = Api::namespaced(env.client(), &namespace);

    let deployments: Api<Deployment> = Api::namespaced(env.client(), &namespace);
    let deployment = json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 3,
            "selector": { "matchLabels": { "app": "web" } },
            "template": pod_template("Always"),
        },
    });
    let deployment: Deployment = serde_json::from_value(deployment).unwrap();
    let deployment = deployments
        .create(&PostParams::default(), &deployment)
        .await
        .unwrap();
    eventually(SOON, || async {
        let status = deployments
            .get_status("web")
            .await
            .unwrap()
            .status
            .unwrap_or_default();
        status.available_replicas == Some(3)
    })
    .await;
    let running = pods.list(&ListParams::default()).await.unwrap();
    for pod in &running {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        assert!(node.is_some_and(|node| node.starts_with("node-")), "{node:?}");
    }

    // The garbage collector must delete the Pods of the Deployment, and a ConfigMap owned by it.
    let maps: Api<ConfigMap> = Api::namespaced(env.client(), &namespace);
    let mut map = ConfigMap::default();
    map.metadata.name = Some("owned".to_owned());
    map.metadata.owner_references = Some(vec![owner(&deployment)]);
    maps.create(&PostParams::default(), &map).await.unwrap();
    deployments.delete("web", &DeleteParams::default()).await.unwrap();
    eventually(SOON, || async { pod_names(&pods).await.is_empty() }).await;
    eventually(SOON, || async { maps.get_opt("owned").await.unwrap().is_none() }).await;

    let jobs: Api<Job> = Api::namespaced(env.client(), &namespace);
    let job = json!({ "metadata": { "name": "once" }, "spec": { "template": pod_template("Never") } });
    jobs.create(&PostParams::default(), &serde_json::from_value(job).unwrap())
        .await
        .unwrap();
    eventually(SOON, || async {
        let status = jobs.get_status("once").await.unwrap().status.unwrap_or_default();
        status.succeeded == Some(1)
    })
    .await;

    let namespaces: Api<Namespace> = Api::all(env.client());
    namespaces
        .delete(&namespace, &DeleteParams::default())
        .await
        .unwrap();
    eventually(SOON, || async {
        namespaces.get_opt(&namespace).await.unwrap().is_none()
    })
    .await;
    env.stop().await.unwrap();
}

fn owner(deployment: &Deployment) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference {
    kube::Resource::controller_owner_ref(deployment, &()).expect("the server has named it")
}

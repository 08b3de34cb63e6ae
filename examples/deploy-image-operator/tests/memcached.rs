// SPDX-License-Identifier: Apache-2.0

//! Tests of the Memcached API and its controller.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use rbuilder::envtest::Environment;
use rbuilder::fake::ApiServer;
use rbuilder::simulation::Simulation;
use rbuilder::testing::{
    Kstatus, assert_generated_crd_matches, eventually, eventually_eq, kstatus, run, sample,
    until_observed,
};
use rbuilder::{Manager, ManagerArgs, conditions};
use serde_json::json;

use deploy_image_operator::api::v1alpha1::Memcached;
use deploy_image_operator::controller;
use deploy_image_operator::controller::memcached::IMAGE;

/// Time limit for everything, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn the_crd_matches_the_types() {
    assert_generated_crd_matches::<Memcached>();
}

#[tokio::test]
async fn the_sample_is_reconciled_on_a_fake_server() {
    // The manager has the permissions of the generated role, and the test has all permissions.
    let server = ApiServer::new().role_from("config/rbac");
    server.install_crds("config/crd/bases").unwrap();
    let namespace = server.namespace("test");
    reconcile_sample(server.client(), server.admin(), &namespace).await;
    server.assert_role_fits();
}

/// Crashes, lost answers, late events, errors, edits by others and other declarations all lead to the
/// same state.
#[test]
fn the_sample_is_reconciled_under_faults() {
    Simulation::new(register)
        .install("config")
        .samples::<Memcached>()
        .check();
}

#[rbuilder::envtest::test]
async fn the_sample_is_reconciled_on_a_real_server(env: Environment) {
    // As on the fake server, the manager has the permissions of the generated role.
    env.install_crds("config/crd/bases").await.unwrap();
    let namespace = env.namespace("test").await.unwrap();
    let operator = env.role_from("config/rbac", &namespace).await.unwrap();
    reconcile_sample(operator.client(), env.client(), &namespace).await;
}

fn register(manager: Manager) -> Manager {
    manager.controller(controller::memcached::controller())
}

/// Creates the sample while the manager runs, follows its Deployment until it is available, and deletes it.
async fn reconcile_sample(operator: Client, admin: Client, namespace: &str) {
    let mut args = ManagerArgs::for_tests();
    args.watch_namespace = namespace.to_owned();
    let manager = Manager::with_client("test", operator, args);
    let running = run(register(manager));

    let objects: Api<Memcached> = Api::namespaced(admin.clone(), namespace);
    let deployments: Api<Deployment> = Api::namespaced(admin, namespace);
    let sample: Memcached = sample();
    let name = sample.name_any();
    objects
        .create(&PostParams::default(), &sample)
        .await
        .unwrap();
    let reconciled = until_observed(&objects, &name).await;
    assert!(!is_available(&objects, &name).await);
    assert_eq!(kstatus(&reconciled), Kstatus::InProgress);

    let deployment = deployments.get(&name).await.unwrap();
    let spec = deployment.spec;
    assert_eq!(spec.replicas, Some(sample.spec.size));
    let container = &spec.template.spec.unwrap().containers[0];
    assert_eq!(container.image.as_deref(), Some(IMAGE));

    // No Deployment controller runs here, so the test reports a rollout that takes too long, and its end.
    let status = json!({ "status": {
        "observedGeneration": deployment.metadata.generation,
        "conditions": [{
            "type": "Progressing",
            "status": "False",
            "reason": "ProgressDeadlineExceeded",
        }],
    }});
    let params = PatchParams::default();
    deployments
        .patch_status(&name, &params, &Patch::Merge(status))
        .await
        .unwrap();
    let judge = async || kstatus(&objects.get(&name).await.unwrap());
    eventually_eq(LIMIT, Kstatus::Failed, judge).await;
    let status = json!({ "status": {
        "replicas": sample.spec.size,
        "updatedReplicas": sample.spec.size,
        "readyReplicas": sample.spec.size,
        "conditions": null,
    }});
    deployments
        .patch_status(&name, &params, &Patch::Merge(status))
        .await
        .unwrap();
    eventually_eq(LIMIT, Kstatus::Current, judge).await;
    assert!(is_available(&objects, &name).await);

    // Changes by others are reverted.
    let scaled = json!({ "spec": { "replicas": sample.spec.size + 1 } });
    deployments
        .patch(&name, &params, &Patch::Merge(scaled))
        .await
        .unwrap();
    eventually(LIMIT, async || {
        let spec = deployments.get(&name).await.unwrap().spec;
        spec.replicas == Some(sample.spec.size)
    })
    .await;

    objects
        .delete(&name, &DeleteParams::default())
        .await
        .unwrap();
    eventually(LIMIT, async || {
        objects.get_opt(&name).await.unwrap().is_none()
    })
    .await;

    running.stop().await;
}

async fn is_available(objects: &Api<Memcached>, name: &str) -> bool {
    let status = objects.get(name).await.unwrap().status.unwrap_or_default();
    conditions::is_true(&status.conditions, "Available")
}

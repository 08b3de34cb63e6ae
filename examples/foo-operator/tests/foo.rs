// SPDX-License-Identifier: Apache-2.0

//! Tests of the Foo API and its controller.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, Client, ResourceExt, api::PostParams};
use rbuilder::envtest::Environment;
use rbuilder::fake::ApiServer;
use rbuilder::simulation::Simulation;
use rbuilder::testing::{assert_generated_crd_matches, eventually, run, sample};
use rbuilder::{Manager, ManagerArgs};

use foo_operator::api::v1alpha1::Foo;
use foo_operator::controller;

#[test]
fn the_crd_matches_the_types() {
    assert_generated_crd_matches::<Foo>();
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
        .samples::<Foo>()
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
    manager.controller(controller::foo::controller())
}

/// Creates the sample while the manager runs, and waits for its Deployment. The status of a Foo has no generation.
async fn reconcile_sample(operator: Client, admin: Client, namespace: &str) {
    let mut args = ManagerArgs::for_tests();
    args.watch_namespace = namespace.to_owned();
    let manager = Manager::with_client("test", operator, args);
    let running = run(register(manager));

    let objects: Api<Foo> = Api::namespaced(admin.clone(), namespace);
    let sample: Foo = sample();
    objects
        .create(&PostParams::default(), &sample)
        .await
        .unwrap();
    let deployments: Api<Deployment> = Api::namespaced(admin, namespace);
    let name = sample.name_any();
    eventually(Duration::from_secs(20), || deployments.get(&name)).await;

    running.stop().await;
}

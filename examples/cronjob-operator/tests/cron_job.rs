// SPDX-License-Identifier: Apache-2.0

//! Tests of the CronJob API and its controller.

use kube::{Api, Client, ResourceExt, api::PostParams};
use rbuilder::envtest::Environment;
use rbuilder::fake::ApiServer;
use rbuilder::simulation::Simulation;
use rbuilder::testing::{
    Kstatus, assert_generated_crd_matches, kstatus, run, sample, until_observed,
};
use rbuilder::{Manager, ManagerArgs};

use cronjob_operator::api::v1::CronJob;
use cronjob_operator::controller;

#[test]
fn the_crd_matches_the_types() {
    assert_generated_crd_matches::<CronJob>();
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
        .samples::<CronJob>()
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
    manager.controller(controller::cron_job::controller())
}

/// Creates the sample while the manager runs, and waits until its status has been updated.
async fn reconcile_sample(operator: Client, admin: Client, namespace: &str) {
    let mut args = ManagerArgs::for_tests();
    args.watch_namespace = namespace.to_owned();
    let manager = Manager::with_client("test", operator, args);
    let running = run(register(manager));

    let objects: Api<CronJob> = Api::namespaced(admin, namespace);
    let sample: CronJob = sample();
    objects
        .create(&PostParams::default(), &sample)
        .await
        .unwrap();
    let reconciled = until_observed(&objects, &sample.name_any()).await;
    // Tools that deploy the sample, such as Flux, take it for ready, or wait for that.
    assert_ne!(kstatus(&reconciled), Kstatus::Failed);

    // Check the resources that the controller has created here.

    running.stop().await;
}

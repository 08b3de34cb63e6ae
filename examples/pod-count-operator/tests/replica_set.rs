// SPDX-License-Identifier: Apache-2.0

//! Tests of the `replicaset` controller.

use rbuilder::fake::ApiServer;
use rbuilder::testing::{eventually, run};
use rbuilder::{Manager, ManagerArgs};

use k8s_openapi::api::apps::v1::ReplicaSet;

use pod_count_operator::controller;

/// Name of the controller in its metrics.
const CONTROLLER: &str = "replicaset";
/// Longer than a reconcile takes on a busy machine.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(20);

#[tokio::test]
async fn an_object_is_reconciled_on_a_fake_server() {
    let mut object = ReplicaSet::default();
    object.metadata.name = Some("example".to_owned());
    object.metadata.namespace = Some("default".to_owned());
    // The manager has the permissions of the generated role, and `server.admin()` all permissions.
    let server = ApiServer::new().role_from("config/rbac");
    let server = server.object(&object);
    let args = ManagerArgs::for_tests();
    let manager = Manager::with_client("test", server.client(), args);
    let metrics = manager.metrics().clone();
    let controller = controller::replica_set::controller();
    let running = run(manager.controller(controller));

    let counter = format!(r#"reconcile_total{{controller="{CONTROLLER}",result="success"}} "#);
    let is_reconciled = || {
        let text = metrics.text();
        text.contains(&counter) && !text.contains(&format!("{counter}0\n"))
    };
    eventually(TIMEOUT, || async { is_reconciled() }).await;

    // Check what the controller has written here.

    running.stop().await;
    server.assert_role_fits();
}

// SPDX-License-Identifier: Apache-2.0

//! The permissions of the operator: exactly those that its markers declare.

use jiff::SignedDuration;
use k8s_openapi::api::rbac::v1::{ClusterRole, RoleBinding};
use kube::Api;
use kube::api::PostParams;
use rbuilder::envtest::Environment;
use rbuilder::testing;
use serde_json::json;

use cronjob_operator::controller::cron_job::{self, State};

use super::support::{Fixture, seconds};

/// Grants the role in `config/rbac/role.yaml` for the objects of one namespace.
async fn grant_the_role(fixture: &Fixture, user: &str) {
    let manifest = std::fs::read_to_string("config/rbac/role.yaml").unwrap();
    let first = manifest
        .split("---\n")
        .find(|document| !document.is_empty())
        .unwrap();
    let mut role: ClusterRole = serde_saphyr::from_str(first).unwrap();
    role.metadata.name = Some(format!("manager-{}", fixture.namespace));
    let binding: RoleBinding = serde_json::from_value(json!({
        "metadata": { "name": "manager" },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role.metadata.name,
        },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
    }))
    .unwrap();
    let params = PostParams::default();
    Api::all(fixture.client.clone())
        .create(&params, &role)
        .await
        .unwrap();
    Api::namespaced(fixture.client.clone(), &fixture.namespace)
        .create(&params, &binding)
        .await
        .unwrap();
}

#[rbuilder::envtest::test]
async fn generated_role_is_sufficient(env: Environment) {
    let fixture = Fixture::new(&env, "rights").await;
    let spec = json!({ "concurrencyPolicy": "Replace", "failedJobsHistoryLimit": 0 });
    let (owner, due) = fixture.hourly("hourly", spec).await;
    let failed = due - SignedDuration::from_hours(1);
    fixture.job(&owner, "failed", failed).await;
    fixture.finish("failed", "Failed", failed).await;

    grant_the_role(&fixture, "operator").await;
    let user = env.user("operator", &[]).unwrap();
    let state = State {
        clock: fixture.hands.clock(),
    };
    let manager = fixture.manager_as(user.client());
    let operator = testing::run(manager.controller(cron_job::controller_with(state)));
    let first = format!("hourly-{}", due.as_second());
    fixture.await_jobs(&[&first]).await;
    fixture.await_active("hourly", &[&first]).await;
    fixture.hands.set(due + seconds(3605));
    fixture.poke("hourly").await;
    let second = format!("hourly-{}", due.as_second() + 3600);
    fixture.await_jobs(&[&second]).await;
    fixture.await_active("hourly", &[&second]).await;
    operator.stop().await;
}

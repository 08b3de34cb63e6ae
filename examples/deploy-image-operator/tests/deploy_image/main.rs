// SPDX-License-Identifier: Apache-2.0

//! What is promised of a Memcached whose image comes from the environment, on a real API server.
//!
//! | fact | test |
//! |---|---|
//! | A size outside of 1 to 5 is refused | `the_schema_refuses_a_size_outside_its_bounds` |
//! | The finalizer is there before the Deployment; until then nothing is known | `the_finalizer_is_there_before_the_deployment` |
//! | The Deployment: image, port, labels, security, owner | `the_deployment_is_what_object_and_environment_say` |
//! | The image is that of `MEMCACHED_IMAGE` | `the_program_takes_the_image_from_its_environment` |
//! | Without it: an error, and a condition that says so | `without_an_image_the_object_is_not_available` |
//! | The object becomes available | `the_object_becomes_available` |
//! | The Deployment follows the size, and drift is reverted | `the_deployment_follows_the_size_and_drift_is_undone` |
//! | A deleted Deployment comes back | `a_deleted_deployment_comes_back` |
//! | A refused resize is told, and tried again | `a_refused_resize_is_said_in_the_status` |
//! | A creation is looked at again in a minute | `a_creation_asks_to_be_looked_at_again_in_a_minute` |
//! | On deletion: Degraded=Unknown, the event, Degraded=True, the finalizer goes, the object goes | `a_deletion_is_told_step_by_step` |
//! | What is gone stays gone | `a_deleted_object_is_left_in_peace` |
//! | The webhook makes 3 of size 0 | `the_webhook_makes_three_of_no_size` |
//! | … and changes nothing else | `the_webhook_changes_the_size_only` |

mod support;
mod webhook;

use std::sync::Arc;
use std::time::Duration;

use deploy_image_operator::controller::memcached::{FINALIZER, State, reconcile};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, PatchParams, PostParams};
use kube::{Api, Error, ResourceExt};
use rbuilder::envtest::{Environment, eventually};
use rbuilder::{Action, Ctx};
use serde_json::json;

use support::{Fixture, IMAGE, LONG, Program, REFUSAL, await_refusal, deployment, dry_run, merge};

#[rbuilder::envtest::test]
async fn the_schema_refuses_a_size_outside_its_bounds(env: Environment) {
    let fixture = Fixture::new(env).await;
    for (size, accepted) in [(0, false), (1, true), (5, true), (6, false)] {
        match fixture.try_create(&format!("size-{size}"), size).await {
            Ok(_) => assert!(accepted, "{size}"),
            Err(Error::Api(status)) => {
                assert!(!accepted, "{size}");
                assert_eq!(status.code, 422);
                assert!(status.message.contains("spec.size"), "{status:?}");
            }
            Err(other) => panic!("the API answers: {other}"),
        }
    }
}

#[rbuilder::envtest::test]
async fn the_finalizer_is_there_before_the_deployment(env: Environment) {
    let fixture = Fixture::new(env).await;
    fixture
        .refuse(("apps", "deployments"), "CREATE", "false")
        .await;
    let dry_run = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    await_refusal(async || {
        fixture
            .deployments()
            .create(&dry_run, &deployment("probe"))
            .await
    })
    .await;
    fixture.create("early", 1).await;

    let operator = fixture.operator(Some(IMAGE));
    let wanted = ("Unknown", "Reconciling");
    let condition = fixture.await_condition("early", "Available", wanted).await;
    assert_eq!(condition.message, "Starting reconciliation");
    let memcached = fixture.memcacheds().get("early").await.unwrap();
    assert_eq!(memcached.finalizers(), [FINALIZER]);
    let deployments = fixture.deployments().list(&ListParams::default()).await;
    assert_eq!(deployments.unwrap().items, []);

    fixture.allow().await;
    fixture.await_available("early").await;
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn the_deployment_is_what_object_and_environment_say(env: Environment) {
    let fixture = Fixture::new(env).await;
    let memcached = fixture.create("three", 3).await;
    let operator = fixture.operator(Some(IMAGE));
    let deployment = fixture.await_replicas("three", 3).await;

    let owners = deployment.owner_references();
    assert_eq!(owners.len(), 1);
    assert_eq!(owners[0].controller, Some(true));
    assert_eq!(owners[0].block_owner_deletion, Some(true));
    assert_eq!(Some(&owners[0].uid), memcached.metadata.uid.as_ref());

    let labels = json!({
        "app.kubernetes.io/name": "memcached",
        "app.kubernetes.io/instance": "three",
        "app.kubernetes.io/version": "1.4.36-alpine",
        "app.kubernetes.io/managed-by": "MemcachedController",
    });
    assert_eq!(json!(deployment.labels()), labels);
    let template = json!(deployment.spec.unwrap().template);
    let containers = template.pointer("/spec/containers").unwrap();
    assert_eq!(containers.as_array().map(Vec::len), Some(1));
    let command = json!(["memcached", "--memory-limit=64", "-o", "modern", "-v"]);
    let port = json!([{"containerPort": 12345, "name": "memcached", "protocol": "TCP"}]);
    let security = json!({
        "runAsNonRoot": true, "runAsUser": 1001, "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
    });
    let pod = json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
    for (path, expected) in [
        ("/metadata/labels", labels),
        ("/spec/containers/0/name", json!("memcached")),
        ("/spec/containers/0/image", json!(IMAGE)),
        ("/spec/containers/0/command", command),
        ("/spec/containers/0/ports", port),
        ("/spec/containers/0/securityContext", security),
        ("/spec/securityContext", pod),
    ] {
        assert_eq!(template.pointer(path), Some(&expected), "{path}");
    }
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn the_program_takes_the_image_from_its_environment(env: Environment) {
    let fixture = Fixture::new(env).await;
    let server = fixture.asked().await;
    let image = "registry.example.com:5000/memcached:1.6";
    let _program = Program::start(&fixture, &server, image);
    server.wait_until_served().await.unwrap();
    // The webhook is the program's, too: no size is a size of three.
    fixture.create("sample", 0).await;
    let deployment = fixture.await_replicas("sample", 3).await;
    assert_eq!(deployment.labels()["app.kubernetes.io/version"], "1.6");
    let pod = deployment.spec.unwrap().template.spec.unwrap();
    assert_eq!(pod.containers[0].image.as_deref(), Some(image));
}

#[rbuilder::envtest::test]
async fn without_an_image_the_object_is_not_available(env: Environment) {
    let fixture = Fixture::new(env).await;
    fixture.create("plain", 1).await;
    let operator = fixture.operator(None);
    let wanted = ("False", "Reconciling");
    let condition = fixture.await_condition("plain", "Available", wanted).await;
    let cause = "unable to find MEMCACHED_IMAGE environment variable with the image";
    let message = format!("Failed to create Deployment for the custom resource (plain): ({cause})");
    assert_eq!(condition.message, message);
    operator.stop().await;

    let memcached = fixture.memcacheds().get("plain").await.unwrap();
    let ctx = Ctx::new(fixture.client.clone(), "memcached", State::default());
    let error = reconcile(Arc::new(memcached), ctx).await.unwrap_err();
    assert_eq!(error.to_string(), cause);
    assert!(error.is_terminal(), "the environment stays as it is");
    let found = fixture.deployments().get_opt("plain").await.unwrap();
    assert_eq!(found, None);
}

#[rbuilder::envtest::test]
async fn the_object_becomes_available(env: Environment) {
    let fixture = Fixture::new(env).await;
    let created = fixture.create("ready", 3).await;
    let operator = fixture.operator(Some(IMAGE));
    let condition = fixture.await_available("ready").await;
    let message = "Deployment for custom resource (ready) with 3 replicas created successfully";
    assert_eq!(condition.message, message);
    assert_eq!(condition.observed_generation, created.metadata.generation);
    let status = fixture.memcacheds().get("ready").await.unwrap().status;
    let conditions = status.unwrap_or_default().conditions;
    assert_eq!(conditions, [condition], "there is one condition");
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn the_deployment_follows_the_size_and_drift_is_undone(env: Environment) {
    let fixture = Fixture::new(env).await;
    fixture.create("sized", 3).await;
    let operator = fixture.operator(Some(IMAGE));
    fixture.await_available("sized").await;
    let params = PatchParams::default();

    let size = merge(json!({"spec": {"size": 2}}));
    let patched = fixture.memcacheds().patch("sized", &params, &size).await;
    patched.unwrap();
    fixture.await_replicas("sized", 2).await;

    let replicas = merge(json!({"spec": {"replicas": 7}}));
    let deployments = fixture.deployments();
    let patched = deployments.patch("sized", &params, &replicas).await;
    patched.unwrap();
    fixture.await_replicas("sized", 2).await;
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn a_deleted_deployment_comes_back(env: Environment) {
    let fixture = Fixture::new(env).await;
    fixture.create("kept", 1).await;
    let operator = fixture.operator(Some(IMAGE));
    fixture.await_available("kept").await;
    let first = fixture.await_replicas("kept", 1).await;
    let gone = DeleteParams::background();
    fixture.deployments().delete("kept", &gone).await.unwrap();
    eventually(LONG, || async {
        let found = fixture.deployments().get_opt("kept").await.unwrap();
        found.is_some_and(|found| found.uid() != first.uid())
    })
    .await;
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn a_refused_resize_is_said_in_the_status(env: Environment) {
    let fixture = Fixture::new(env).await;
    fixture.create("stuck", 3).await;
    let operator = fixture.operator(Some(IMAGE));
    fixture.await_available("stuck").await;
    fixture
        .refuse(("apps", "deployments"), "UPDATE", "false")
        .await;
    let touch = merge(json!({"metadata": {"annotations": {"touched": "yes"}}}));
    let touch = &touch;
    await_refusal(async || {
        fixture
            .deployments()
            .patch("stuck", &dry_run(), touch)
            .await
    })
    .await;

    let size = merge(json!({"spec": {"size": 1}}));
    let params = PatchParams::default();
    let patched = fixture.memcacheds().patch("stuck", &params, &size).await;
    patched.unwrap();
    let wanted = ("False", "Resizing");
    let condition = fixture.await_condition("stuck", "Available", wanted).await;
    let start = "Failed to update the size for the custom resource (stuck): (";
    assert!(condition.message.starts_with(start), "{condition:?}");
    assert!(condition.message.contains(REFUSAL), "{condition:?}");

    fixture.allow().await;
    fixture.await_replicas("stuck", 1).await;
    fixture.await_available("stuck").await;
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn a_creation_asks_to_be_looked_at_again_in_a_minute(env: Environment) {
    let fixture = Fixture::new(env).await;
    let memcached = Arc::new(fixture.create("once", 3).await);
    let image = Some(IMAGE.to_owned());
    let ctx = || {
        let state = State {
            image: image.clone(),
        };
        Ctx::new(fixture.client.clone(), "memcached", state)
    };
    let ctx_without = ctx().caching::<Deployment>([]);
    let action = reconcile(Arc::clone(&memcached), ctx_without).await;
    assert_eq!(action.unwrap(), Action::requeue(Duration::from_secs(60)));

    let made = fixture.deployments().get("once").await.unwrap();
    let action = reconcile(memcached, ctx().caching([made])).await;
    assert_eq!(action.unwrap(), Action::await_change());
}

#[rbuilder::envtest::test]
async fn a_deletion_is_told_step_by_step(env: Environment) {
    let fixture = Fixture::new(env).await;
    let params = PatchParams::default();
    let created = fixture.create("leaving", 1).await;
    fixture.create("probe", 1).await;
    let operator = fixture.operator(Some(IMAGE));
    fixture.await_available("leaving").await;

    // The last step of the cleanup is refused, so that what comes before it can be seen.
    let done = "object.?status.?conditions.orValue([])\
                .all(c, c.type != 'Degraded' || c.status != 'True')";
    let status = ("cache.example.com", "memcacheds/status");
    fixture.refuse(status, "UPDATE", done).await;
    let degraded = merge(json!({"status": {"conditions": [{
        "type": "Degraded", "status": "True", "reason": "Tested", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]}}));
    let (memcacheds, degraded) = (fixture.memcacheds(), &degraded);
    await_refusal(async || memcacheds.patch_status("probe", &dry_run(), degraded).await).await;
    // Somebody else holds the object as well, so that what comes after it can be seen.
    let held = json!({"metadata": {"finalizers": [FINALIZER, "tests.example.com/held"]}});
    let patched = memcacheds.patch("leaving", &params, &merge(held)).await;
    patched.unwrap();
    let background = DeleteParams::background();
    memcacheds.delete("leaving", &background).await.unwrap();

    let wanted = ("Unknown", "Finalizing");
    fixture.await_condition("leaving", "Degraded", wanted).await;
    let event = eventually(LONG, || async {
        let events: Api<Event> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
        let events = events.list(&ListParams::default()).await.unwrap();
        let mut events = events.items.into_iter();
        events.find(|event| event.reason.as_deref() == Some("Deleting"))
    })
    .await;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert_eq!(event.action.as_deref(), Some("DeleteCR"));
    let namespace = &fixture.namespace;
    let note = format!("Custom Resource leaving is being deleted from the namespace {namespace}");
    assert_eq!(event.note, Some(note));
    assert_eq!(event.regarding.unwrap().uid, created.metadata.uid);
    let found = memcacheds.get("leaving").await.unwrap();
    assert!(found.finalizers().contains(&FINALIZER.to_owned()));

    fixture.allow().await;
    let wanted = ("True", "Finalizing");
    let condition = fixture.await_condition("leaving", "Degraded", wanted).await;
    let message =
        "Finalizer operations for custom resource leaving name were successfully accomplished";
    assert_eq!(condition.message, message);
    eventually(LONG, || async {
        let found = memcacheds.get("leaving").await.unwrap();
        found.finalizers() == ["tests.example.com/held"]
    })
    .await;
    let released = merge(json!({"metadata": {"finalizers": null}}));
    let patched = memcacheds.patch("leaving", &params, &released).await;
    patched.unwrap();
    let found = memcacheds.get_opt("leaving").await.unwrap();
    assert_eq!(found, None);
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn a_deleted_object_is_left_in_peace(env: Environment) {
    let fixture = Fixture::new(env).await;
    fixture.create("gone", 1).await;
    fixture.create("stays", 1).await;
    let operator = fixture.operator(Some(IMAGE));
    fixture.await_available("gone").await;
    let gone = DeleteParams::background();
    fixture.memcacheds().delete("gone", &gone).await.unwrap();
    eventually(LONG, || async {
        let found = fixture.memcacheds().get_opt("gone").await.unwrap();
        found.is_none()
    })
    .await;
    // Nothing collects garbage here, so the Deployment stays; deleting it must not bring it back.
    fixture.deployments().delete("gone", &gone).await.unwrap();

    // A reconcile of another object, begun later, proves that the queue has moved on.
    let size = merge(json!({"spec": {"size": 2}}));
    let params = PatchParams::default();
    let patched = fixture.memcacheds().patch("stays", &params, &size).await;
    patched.unwrap();
    fixture.await_replicas("stays", 2).await;
    let found = fixture.deployments().get_opt("gone").await.unwrap();
    assert_eq!(found, None);
    operator.stop().await;
}

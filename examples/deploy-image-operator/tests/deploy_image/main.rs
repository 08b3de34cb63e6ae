// SPDX-License-Identifier: Apache-2.0

//! The behaviour of a Memcached whose image comes from the environment, on a real API server.
//!
//! | behaviour | test |
//! |---|---|
//! | A size outside of 1 to 5 is rejected | `size_outside_of_its_bounds_is_rejected` |
//! | The finalizer is added before the Deployment | `finalizer_is_added_before_the_deployment` |
//! | The Deployment has the image, port, labels, security context and owner | `deployment_follows_object_and_environment` |
//! | The image comes from `RELATED_IMAGE_CACHE_MEMCACHED`, if it is set | `program_reads_the_image_from_its_environment` |
//! | Available means that all replicas are ready | `object_is_available_when_its_replicas_are_ready` |
//! | The Deployment follows the size, and drift is reverted | `deployment_follows_the_size_and_drift_is_reverted` |
//! | A rejected change is reported in the status and retried | `rejected_change_is_reported_and_retried` |
//! | A deletion records an event and then removes the finalizer | `deletion_records_an_event` |
//! | The webhook changes size 0 to 3 | `webhook_defaults_the_size_to_three` |
//! | The webhook changes nothing else | `webhook_changes_only_the_size` |

mod support;
mod webhook;

use deploy_image_operator::controller::memcached::{FINALIZER, IMAGE};
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, PatchParams, PostParams};
use kube::{Api, Error, ResourceExt};
use rbuilder::envtest::{Environment, eventually};
use serde_json::json;

use support::{
    AVAILABLE, Fixture, LONG, Program, REFUSAL, UNAVAILABLE, await_refusal, deployment, dry_run,
    merge,
};

#[rbuilder::envtest::test]
async fn size_outside_of_its_bounds_is_rejected(env: Environment) {
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
async fn finalizer_is_added_before_the_deployment(env: Environment) {
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

    let operator = fixture.operator();
    let wanted = ("False", "ApplyFailed");
    let condition = fixture.await_condition("early", wanted).await;
    assert!(condition.message.contains(REFUSAL), "{condition:?}");
    let memcached = fixture.memcacheds().get("early").await.unwrap();
    assert_eq!(memcached.finalizers(), [FINALIZER]);
    let deployments = fixture.deployments().list(&ListParams::default()).await;
    assert_eq!(deployments.unwrap().items, []);

    fixture.allow().await;
    fixture.await_replicas("early", 1).await;
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn deployment_follows_object_and_environment(env: Environment) {
    let fixture = Fixture::new(env).await;
    let memcached = fixture.create("three", 3).await;
    let operator = fixture.operator();
    let deployment = fixture.await_replicas("three", 3).await;

    let owners = deployment.owner_references();
    assert_eq!(owners.len(), 1);
    assert_eq!(owners[0].controller, Some(true));
    assert_eq!(owners[0].block_owner_deletion, Some(true));
    assert_eq!(Some(&owners[0].uid), memcached.metadata.uid.as_ref());

    let labels = json!({
        "app.kubernetes.io/name": "memcached",
        "app.kubernetes.io/instance": "three",
        "app.kubernetes.io/version": "1.6.26-alpine3.19",
        "app.kubernetes.io/managed-by": "deploy-image-operator",
    });
    assert_eq!(json!(deployment.labels()), labels);
    let template = json!(deployment.spec.template);
    let containers = template.pointer("/spec/containers").unwrap();
    assert_eq!(containers.as_array().map(Vec::len), Some(1));
    let command = json!(["memcached", "--memory-limit=64", "-o", "modern", "-v"]);
    let port = json!([{"containerPort": 12345, "protocol": "TCP"}]);
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
async fn program_reads_the_image_from_its_environment(env: Environment) {
    let fixture = Fixture::new(env).await;
    let server = fixture.asked().await;
    let image = "registry.example.com:5000/memcached:1.6";
    let _program = Program::start(&fixture, &server, image);
    server.wait_until_served().await.unwrap();
    // The program serves the webhook as well, which changes size 0 to 3.
    fixture.create("sample", 0).await;
    let deployment = fixture.await_replicas("sample", 3).await;
    assert_eq!(deployment.labels()["app.kubernetes.io/version"], "1.6");
    let pod = deployment.spec.template.spec.unwrap();
    assert_eq!(pod.containers[0].image.as_deref(), Some(image));
}

#[rbuilder::envtest::test]
async fn object_is_available_when_its_replicas_are_ready(env: Environment) {
    let fixture = Fixture::new(env).await;
    let created = fixture.create("ready", 3).await;
    let operator = fixture.operator();
    let condition = fixture.await_condition("ready", UNAVAILABLE).await;
    assert_eq!(condition.message, "0 of 3 replicas are ready");
    fixture.report_ready("ready", 3).await;
    let condition = fixture.await_condition("ready", AVAILABLE).await;
    assert_eq!(condition.message, "3 of 3 replicas are ready");
    assert_eq!(condition.observed_generation, created.metadata.generation);
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn deployment_follows_the_size_and_drift_is_reverted(env: Environment) {
    let fixture = Fixture::new(env).await;
    fixture.create("sized", 3).await;
    let operator = fixture.operator();
    fixture.await_condition("sized", UNAVAILABLE).await;
    let params = PatchParams::default();

    let size = merge(json!({"spec": {"size": 2}}));
    let patched = fixture.memcacheds().patch("sized", &params, &size).await;
    patched.unwrap();
    fixture.await_replicas("sized", 2).await;

    let container = json!({"name": "memcached", "image": "memcached:latest"});
    let pod = json!({"containers": [container], "securityContext": {"runAsNonRoot": false}});
    let drift = merge(json!({"spec": {"replicas": 7, "template": {"spec": pod}}}));
    let deployments = fixture.deployments();
    let patched = deployments.patch("sized", &params, &drift).await;
    patched.unwrap();
    eventually(LONG, || async {
        let found = json!(deployments.get("sized").await.unwrap().spec);
        let at = |pointer| found.pointer(pointer).cloned();
        let image = at("/template/spec/containers/0/image");
        let is_non_root = at("/template/spec/securityContext/runAsNonRoot");
        (at("/replicas"), image, is_non_root)
            == (Some(json!(2)), Some(json!(IMAGE)), Some(json!(true)))
    })
    .await;
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn rejected_change_is_reported_and_retried(env: Environment) {
    let fixture = Fixture::new(env).await;
    fixture.create("stuck", 3).await;
    let operator = fixture.operator();
    fixture.await_condition("stuck", UNAVAILABLE).await;
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
    let wanted = ("False", "ApplyFailed");
    let condition = fixture.await_condition("stuck", wanted).await;
    assert!(condition.message.contains(REFUSAL), "{condition:?}");

    fixture.allow().await;
    fixture.await_replicas("stuck", 1).await;
    fixture.await_condition("stuck", UNAVAILABLE).await;
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn deletion_records_an_event(env: Environment) {
    let fixture = Fixture::new(env).await;
    let created = fixture.create("leaving", 1).await;
    let operator = fixture.operator();
    fixture.await_condition("leaving", UNAVAILABLE).await;
    let background = DeleteParams::background();
    let memcacheds = fixture.memcacheds();
    memcacheds.delete("leaving", &background).await.unwrap();

    let event = eventually(LONG, || async {
        let events: Api<Event> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
        let events = events.list(&ListParams::default()).await.unwrap();
        let mut events = events.items.into_iter();
        events.find(|event| event.reason.as_deref() == Some("Deleting"))
    })
    .await;
    assert_eq!(event.type_.as_deref(), Some("Normal"));
    assert_eq!(event.note.as_deref(), Some("leaving is being deleted"));
    assert_eq!(event.regarding.unwrap().uid, created.metadata.uid);
    eventually(LONG, || async {
        let found = memcacheds.get_opt("leaving").await.unwrap();
        found.is_none()
    })
    .await;
    operator.stop().await;
}

// SPDX-License-Identifier: Apache-2.0

//! The behaviour of Kubernetes' sample-controller for a Foo, on a real API server.
//!
//! | behaviour | test |
//! |---|---|
//! | A Foo gets a Deployment with name, image, labels, owner and field manager | `foo_gets_its_deployment` |
//! | Replicas are 1 to 10 | `schema_rejects_replicas_outside_of_their_bounds` |
//! | The status contains the number of available instances | `status_reports_available_instances` |
//! | Each success is recorded in a single event series | `each_sync_is_recorded_in_one_event_series` |
//! | A foreign Deployment is left alone, with an event, an error and back-off | `foreign_deployment_is_left_untouched` |
//! | The same holds without a controller, and with a lagging cache | `deployment_without_a_controller_is_not_adopted` |
//! | The Deployment follows the replicas | `deployment_follows_the_replicas` |
//! | Drift is reverted | `changed_deployment_is_reverted` |
//! | A deleted Deployment is created again | `deleted_deployment_is_created_again` |
//! | A missing name is logged and not retried | `foo_without_a_deployment_name_is_logged_and_not_retried` |
//! | A deleted Foo is not an error | `deleted_foo_is_not_an_error` |
//! | Changes of unrelated Deployments reconcile nothing | `unrelated_deployments_reconcile_nothing` |
//! | The CRD states whether it is approved | `crd_states_whether_it_is_approved` |

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use foo_operator::controller::foo::{State, reconcile};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Error, ResourceExt};
use rbuilder::Ctx;
use rbuilder::envtest::{Environment, eventually};
use serde_json::json;

use support::{Fixture, LONG, Program, deployment, from_json, owner, patch};

#[rbuilder::envtest::test]
async fn foo_gets_its_deployment(env: Environment) {
    let fixture = Fixture::new(env).await;
    let created = fixture.create("first", "web", 2).await;
    let operator = fixture.operator();

    let deployment = fixture.await_deployment("web", 2).await;
    let owners = deployment.owner_references();
    assert_eq!(owners.len(), 1);
    assert_eq!(owners[0].controller, Some(true));
    assert_eq!(owners[0].kind, "Foo");
    assert_eq!(Some(&owners[0].uid), created.metadata.uid.as_ref());
    let managers = deployment.managed_fields().iter();
    let managers: Vec<_> = managers
        .filter_map(|entry| entry.manager.as_deref())
        .collect();
    assert_eq!(managers, ["sample-controller"]);

    let spec = serde_json::to_value(deployment.spec).unwrap();
    let labels = json!({"app": "nginx", "controller": "first"});
    for (path, expected) in [
        ("/selector/matchLabels", &labels),
        ("/template/metadata/labels", &labels),
        ("/template/spec/containers/0/image", &json!("nginx:latest")),
    ] {
        assert_eq!(spec.pointer(path), Some(expected), "{path}");
    }
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn schema_rejects_replicas_outside_of_their_bounds(env: Environment) {
    let fixture = Fixture::new(env).await;
    for (replicas, accepted) in [(0, false), (1, true), (10, true), (11, false)] {
        let name = format!("with-{replicas}");
        match fixture.try_create(&name, "web", replicas).await {
            Ok(_) => assert!(accepted, "{replicas}"),
            Err(Error::Api(status)) => {
                assert!(!accepted, "{replicas}");
                assert_eq!(status.code, 422);
                assert!(status.message.contains("spec.replicas"), "{status:?}");
            }
            Err(other) => panic!("the API answers: {other}"),
        }
    }
}

#[rbuilder::envtest::test]
async fn status_reports_available_instances(env: Environment) {
    let fixture = Fixture::new(env).await;
    fixture.create("first", "web", 3).await;
    let operator = fixture.operator();
    fixture.await_available("first", 0).await;
    for count in [1, 3, 2] {
        fixture.set_available("web", count).await;
        fixture.await_available("first", count).await;
    }
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn each_sync_is_recorded_in_one_event_series(env: Environment) {
    let fixture = Fixture::new(env).await;
    let created = fixture.create("first", "web", 3).await;
    let operator = fixture.operator();
    let mut times = fixture.await_times("first", "Synced", 1).await;
    for count in 1..=3 {
        fixture.set_available("web", count).await;
        fixture.await_available("first", count).await;
        times = fixture.await_times("first", "Synced", times + 1).await;
    }
    let event = fixture.event("first", "Synced").await.unwrap();
    assert_eq!(event.type_.as_deref(), Some("Normal"));
    assert_eq!(event.note.as_deref(), Some("Foo synced successfully"));
    let reporter = event.reporting_controller.as_deref();
    assert_eq!(reporter, Some("sample-controller"));
    let regarding = event.regarding.unwrap();
    assert_eq!(regarding.uid, created.metadata.uid);
    assert_eq!(regarding.kind.as_deref(), Some("Foo"));
    operator.stop().await;
}

/// Returns the maximum number of tries in this time: after 5 ms, 10 ms, 20 ms, …
fn tries_within(elapsed: Duration) -> i32 {
    let mut tries = 1;
    let mut pause = Duration::from_millis(5);
    let mut at = pause;
    while at <= elapsed {
        tries += 1;
        pause *= 2;
        at += pause;
    }
    tries
}

#[rbuilder::envtest::test]
async fn foreign_deployment_is_left_untouched(env: Environment) {
    let fixture = Fixture::new(env).await;
    let other = json!([owner("apps.example.com/v1", "Website", "first", true)]);
    let before = fixture.create_deployment(&deployment("web", other)).await;
    let began = Instant::now();
    fixture.create("first", "web", 1).await;
    let operator = fixture.operator();

    // It is retried with growing delays.
    let times = fixture.await_times("first", "ErrResourceExists", 5).await;
    assert!(times <= tries_within(began.elapsed()), "{times} tries");
    let event = fixture.event("first", "ErrResourceExists").await.unwrap();
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    let note = "Resource \"web\" already exists and is not managed by Foo";
    assert_eq!(event.note.as_deref(), Some(note));
    let after = fixture.deployments().get("web").await.unwrap();
    assert_eq!(after, before);
    assert_eq!(fixture.times("first", "Synced").await, 0);

    // The Foo does not change, so only a retry can notice the deletion.
    let gone = DeleteParams::background();
    fixture.deployments().delete("web", &gone).await.unwrap();
    fixture.await_deployment("web", 1).await;
    fixture.await_times("first", "Synced", 1).await;
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn deployment_without_a_controller_is_not_adopted(env: Environment) {
    let fixture = Fixture::new(env).await;
    let before = fixture
        .create_deployment(&deployment("web", json!([])))
        .await;
    // Caches may not show the Deployment yet.
    let created = fixture.create("early", "web", 1).await;
    let state = State::default();
    let ctx = Ctx::new(fixture.client.clone(), "sample-controller", state);
    let error = reconcile(Arc::new(created), ctx).await.unwrap_err();
    let message = "Resource \"web\" already exists and is not managed by Foo";
    assert_eq!(error.to_string(), message);
    assert!(!error.is_terminal());

    fixture.create("first", "web", 1).await;
    let operator = fixture.operator();
    fixture.await_times("first", "ErrResourceExists", 2).await;
    let after = fixture.deployments().get("web").await.unwrap();
    assert_eq!(after, before);
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn deployment_follows_the_replicas(env: Environment) {
    let fixture = Fixture::new(env).await;
    fixture.create("first", "web", 1).await;
    let operator = fixture.operator();
    fixture.await_deployment("web", 1).await;
    for replicas in [4, 2] {
        let spec = json!({"spec": {"replicas": replicas}});
        patch(&fixture.foos(), "first", spec).await;
        fixture.await_deployment("web", replicas).await;
    }
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn changed_deployment_is_reverted(env: Environment) {
    let fixture = Fixture::new(env).await;
    fixture.create("first", "web", 2).await;
    let operator = fixture.operator();
    fixture.await_deployment("web", 2).await;
    let times = fixture.await_times("first", "Synced", 1).await;

    let spec = json!({"spec": {"replicas": 7}});
    patch(&fixture.deployments(), "web", spec).await;
    fixture.await_deployment("web", 2).await;
    fixture.await_times("first", "Synced", times + 1).await;

    let image = json!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:1.0"}]);
    let image = Patch::Json::<()>(from_json(image));
    let params = PatchParams::default();
    let changed = fixture.deployments().patch("web", &params, &image).await;
    changed.unwrap();
    eventually(LONG, || async {
        let found = fixture.deployments().get("web").await.unwrap();
        let pod = found.spec.template.spec.unwrap();
        pod.containers[0].image.as_deref() == Some("nginx:latest")
    })
    .await;
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn deleted_deployment_is_created_again(env: Environment) {
    let fixture = Fixture::new(env).await;
    fixture.create("first", "web", 2).await;
    let operator = fixture.operator();
    let first = fixture.await_deployment("web", 2).await;
    fixture.await_times("first", "Synced", 1).await;
    let gone = DeleteParams::background();
    fixture.deployments().delete("web", &gone).await.unwrap();
    eventually(LONG, || async {
        let found = fixture.deployments().get_opt("web").await.unwrap();
        found.is_some_and(|found| found.uid() != first.uid())
    })
    .await;
    operator.stop().await;
}

#[rbuilder::envtest::test]
async fn foo_without_a_deployment_name_is_logged_and_not_retried(env: Environment) {
    let fixture = Fixture::new(env).await;
    fixture.create("nameless", "", 1).await;
    let program = Program::start(&fixture);
    let message = "deployment name must be specified";
    eventually(LONG, || async { !program.lines_with(message).is_empty() }).await;

    // Reconciling another Foo takes long enough for dozens of retries.
    fixture.create("first", "web", 1).await;
    fixture.await_times("first", "Synced", 1).await;
    let lines = program.lines_with(message);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].contains("ERROR"), "{}", lines[0]);
    assert!(lines[0].contains("nameless"), "{}", lines[0]);

    // Once it has a name, the Foo is reconciled.
    let spec = json!({"spec": {"deploymentName": "named"}});
    patch(&fixture.foos(), "nameless", spec).await;
    fixture.await_deployment("named", 1).await;
}

#[rbuilder::envtest::test]
async fn deleted_foo_is_not_an_error(env: Environment) {
    let fixture = Fixture::new(env).await;
    fixture.create("gone", "gone", 1).await;
    let program = Program::start(&fixture);
    fixture.await_times("gone", "Synced", 1).await;
    let gone = DeleteParams::background();
    fixture.foos().delete("gone", &gone).await.unwrap();
    // Changes of Foos arrive in order: when this one is synced, the operator knows that the other
    // one is deleted.
    fixture.create("first", "web", 1).await;
    fixture.await_times("first", "Synced", 1).await;
    // No garbage collector runs here. The deletion of the Deployment triggers its owner once more.
    fixture.deployments().delete("gone", &gone).await.unwrap();

    fixture.create("second", "db", 1).await;
    fixture.await_times("second", "Synced", 1).await;
    assert_eq!(program.lines_with("ERROR"), Vec::<String>::new());
    let found = fixture.deployments().get_opt("gone").await.unwrap();
    assert_eq!(found, None, "a Foo that is gone keeps nothing");
}

#[rbuilder::envtest::test]
async fn unrelated_deployments_reconcile_nothing(env: Environment) {
    let fixture = Fixture::new(env).await;
    let created = fixture.create("first", "web", 3).await;
    let operator = fixture.operator();
    fixture.await_available("first", 0).await;
    // The operator may see the creation of the Deployment late, so count from its first change.
    fixture.set_available("web", 1).await;
    fixture.await_available("first", 1).await;
    let before = settled(&fixture, "first").await;

    // These are named like the Foo or labelled like its Deployment, or owned by a similar object
    // or, as one of several owners, by the Foo itself.
    let api_version = "samplecontroller.k8s.io/v1alpha1";
    let mut own = owner(api_version, "Foo", "first", false);
    own["uid"] = json!(created.metadata.uid);
    for (at, owners) in [
        json!([]),
        json!([owner("other.example.com/v1", "Foo", "first", true)]),
        json!([owner(api_version, "Bar", "first", true)]),
        json!([own]),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("unrelated-{at}");
        let mut unrelated = deployment(&name, json!([]));
        unrelated.metadata.labels = Some([("controller".into(), "first".into())].into());
        fixture.create_deployment(&unrelated).await;
        let metadata = json!({"ownerReferences": owners, "labels": {"app": "nginx"}});
        let metadata = json!({"metadata": metadata});
        patch(&fixture.deployments(), &name, metadata).await;
        fixture.set_available(&name, 2).await;
    }

    // Changes of Deployments arrive in order, so this one proves that all above were handled.
    fixture.set_available("web", 2).await;
    fixture.await_available("first", 2).await;
    assert_eq!(settled(&fixture, "first").await, before + 1);
    operator.stop().await;
}

/// Returns how often a Foo was synced, once the number no longer changes.
async fn settled(fixture: &Fixture, name: &str) -> i32 {
    let mut last = fixture.await_times(name, "Synced", 1).await;
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let times = fixture.times(name, "Synced").await;
        if times == last {
            return times;
        }
        last = times;
    }
}

#[rbuilder::envtest::test]
async fn crd_states_whether_it_is_approved(env: Environment) {
    let fixture = Fixture::new(env).await;
    let crds: Api<CustomResourceDefinition> = Api::all(fixture.client.clone());
    let crd = crds.get("foos.samplecontroller.k8s.io").await.unwrap();
    let approval = crd.annotations().get("api-approved.kubernetes.io");
    assert_eq!(
        approval.map(String::as_str),
        Some("unapproved, this is a sample")
    );
    let conditions = crd.status.and_then(|status| status.conditions);
    let mut conditions = conditions.into_iter().flatten();
    let approved = conditions.find(|found| found.type_ == "KubernetesAPIApprovalPolicyConformant");
    let approved = approved.expect("the API server says whether it is satisfied");
    assert_eq!(approved.reason.as_deref(), Some("UnapprovedAnnotation"));
}

//! Built-in kinds used by operators. Also installs and removes CRDs.

use std::time::Duration;

use k8s_openapi::api::authorization::v1::{SelfSubjectAccessReview, SubjectAccessReview};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{DeleteParams, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::events::{EventType, Recorder, Reporter};
use kube::{Api, ResourceExt};
use rbuilder::testing::eventually;
use serde_json::json;

use crate::servers::{Server, on_both_servers};
use crate::support::{Place, refusal};

on_both_servers!(
    lease_update_checks_the_resource_version,
    events_are_recorded,
    reviews_are_not_stored,
    role_names_allow_other_characters,
    cluster_scoped_kinds_have_no_namespace,
    kind_is_served_while_its_crd_exists,
);

const SOON: Duration = Duration::from_secs(20);

async fn lease_update_checks_the_resource_version(server: Server) {
    let place = Place::new(server).await;
    let leases: Api<Lease> = place.api();
    let lease =
        json!({ "metadata": { "name": "l" }, "spec": { "holderIdentity": "a", "leaseDurationSeconds": 15 } });
    let mut lease: Lease = serde_json::from_value(lease).unwrap();
    let now: MicroTime = serde_json::from_value(json!("2026-01-02T03:04:05.678901Z")).unwrap();
    lease.spec.as_mut().unwrap().renew_time = Some(now.clone());
    let made = leases.create(&PostParams::default(), &lease).await.unwrap();
    assert_eq!(made.spec.as_ref().unwrap().renew_time, Some(now));
    assert_eq!(made.metadata.generation, None);
    let mut taken = made.clone();
    taken.spec.as_mut().unwrap().holder_identity = Some("b".to_owned());
    leases.replace("l", &PostParams::default(), &taken).await.unwrap();
    let status = refusal(leases.replace("l", &PostParams::default(), &taken).await);
    assert_eq!(status.code, 409);
    taken.metadata.resource_version = None;
    assert_eq!(
        refusal(leases.replace("l", &PostParams::default(), &taken).await).code,
        422
    );
}

async fn events_are_recorded(server: Server) {
    let place = Place::new(server).await;
    let object = place.jar("a", json!({})).await;
    let reporter = Reporter {
        controller: "tester".to_owned(),
        instance: Some("one".to_owned()),
    };
    let recorder = Recorder::new(place.client.clone(), reporter);
    let reference = kube::Resource::object_ref(&object, &crate::support::jar_kind("v1"));
    for _ in 0..2 {
        let event = kube::runtime::events::Event {
            type_: EventType::Normal,
            reason: "Filled".to_owned(),
            note: Some("with jam".to_owned()),
            action: "Fill".to_owned(),
            secondary: None,
        };
        recorder.publish(&event, &reference).await.unwrap();
    }
    let events: Api<Event> = place.api();
    let found = events.list(&Default::default()).await.unwrap().items;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].note.as_deref(), Some("with jam"));
    assert_eq!(found[0].series.as_ref().unwrap().count, 2);
}

async fn reviews_are_not_stored(server: Server) {
    let place = Place::new(server).await;
    let review =
        json!({ "metadata": {}, "spec": { "resourceAttributes": { "verb": "get", "resource": "pods" } } });
    let own: SelfSubjectAccessReview = serde_json::from_value(review).unwrap();
    let own = Api::all(place.client.clone())
        .create(&PostParams::default(), &own)
        .await
        .unwrap();
    assert!(own.status.unwrap().allowed);
    let review = json!({ "metadata": {}, "spec": { "user": "a", "groups": ["system:masters"],
        "resourceAttributes": { "verb": "get", "resource": "pods" } } });
    let theirs: SubjectAccessReview = serde_json::from_value(review).unwrap();
    let theirs = Api::all(place.client.clone())
        .create(&PostParams::default(), &theirs)
        .await
        .unwrap();
    assert!(theirs.status.unwrap().allowed);
}

async fn role_names_allow_other_characters(server: Server) {
    let place = Place::new(server).await;
    let name = format!("system:{}:Reader", place.namespace);
    let role: ClusterRole = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    let roles: Api<ClusterRole> = Api::all(place.client.clone());
    roles.create(&PostParams::default(), &role).await.unwrap();
    assert_eq!(roles.get(&name).await.unwrap().name_any(), name);
    roles.delete(&name, &DeleteParams::default()).await.unwrap();
}

async fn cluster_scoped_kinds_have_no_namespace(server: Server) {
    let place = Place::new(server).await;
    let kind = ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("apiserver.example.com", "v1", "Shelf"),
        "shelves",
    );
    let shelves: Api<DynamicObject> = Api::all_with(place.client.clone(), &kind);
    let mut object = DynamicObject::new(&place.namespace, &kind).data(json!({ "spec": { "any": [1] } }));
    object.metadata.namespace = None;
    let made = shelves.create(&PostParams::default(), &object).await.unwrap();
    assert_eq!((made.namespace(), made.metadata.generation), (None, Some(1)));
    assert_eq!(made.data, json!({ "spec": { "any": [1] } }));
    let misplaced: Api<DynamicObject> = Api::namespaced_with(place.client.clone(), &place.namespace, &kind);
    assert_eq!(refusal(misplaced.get(&place.namespace).await).code, 404);
    // Without a status subresource, the status is an ordinary field.
    let patch = kube::api::Patch::Merge(json!({ "status": { "x": 1 } }));
    let changed = shelves
        .patch(&place.namespace, &Default::default(), &patch)
        .await
        .unwrap();
    assert_eq!(
        (&changed.data["status"]["x"], changed.metadata.generation),
        (&json!(1), Some(2))
    );
    shelves
        .delete(&place.namespace, &DeleteParams::default())
        .await
        .unwrap();
}

async fn kind_is_served_while_its_crd_exists(server: Server) {
    let place = Place::new(server).await;
    let group = format!("{}.example.com", place.namespace);
    let kind = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(&group, "v1", "Late"), "lates");
    let lates: Api<DynamicObject> = Api::namespaced_with(place.client.clone(), &place.namespace, &kind);
    assert_eq!(refusal(lates.list(&Default::default()).await).code, 404);
    let crd: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": { "name": format!("lates.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": { "plural": "lates", "singular": "late", "kind": "Late" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } } }],
        },
    }))
    .unwrap();
    let crds: Api<CustomResourceDefinition> = Api::all(place.client.clone());
    crds.create(&PostParams::default(), &crd).await.unwrap();
    eventually(SOON, || async { lates.list(&Default::default()).await }).await;
    let established = async || {
        let crd = crds.get(&format!("lates.{group}")).await.unwrap();
        let conditions = crd
            .status
            .and_then(|status| status.conditions)
            .unwrap_or_default();
        conditions
            .iter()
            .any(|one| one.type_ == "Established" && one.status == "True")
    };
    eventually(SOON, &established).await;
    let made = eventually(SOON, || async {
        lates
            .create(&PostParams::default(), &DynamicObject::new("a", &kind))
            .await
    })
    .await;
    assert_eq!(made.types.unwrap().api_version, format!("{group}/v1"));
    crds.delete(&format!("lates.{group}"), &DeleteParams::default())
        .await
        .unwrap();
    eventually(SOON, || async {
        matches!(lates.list(&Default::default()).await, Err(kube::Error::Api(status)) if status.code == 404)
    })
    .await;
}

//! Deletions, finalizers and owners.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::servers::{Server, on_both_servers};
use crate::support::{Place, jar, map, refusal};

on_both_servers!(
    deleted_object_is_gone,
    finalizer_delays_the_deletion,
    deletion_checks_preconditions,
    collections_are_deleted_by_selector,
    terminating_namespace_rejects_new_objects,
    scheduled_pod_terminates_gracefully,
    dependents_stay_without_a_garbage_collector,
    foreground_and_orphan_wait_for_the_garbage_collector,
);

async fn deleted_object_is_gone(server: Server) {
    let place = Place::new(server).await;
    let made = place.jar("a", json!({})).await;
    let answer = place.jars().delete("a", &DeleteParams::default()).await.unwrap();
    let status = answer.right().unwrap();
    assert!(status.is_success());
    let details = status.details.unwrap();
    assert_eq!((details.name.as_str(), details.kind.as_str()), ("a", "jars"));
    assert_eq!(details.uid, made.uid().unwrap());
    assert!(place.jars().get_opt("a").await.unwrap().is_none());
    assert_eq!(
        refusal(place.jars().delete("a", &DeleteParams::default()).await).code,
        404
    );
    let again = place.jar("a", json!({})).await;
    assert_ne!(again.uid(), made.uid());
    // Versions aren't per object, so they also increase when it's recreated.
    let version = |jar: &DynamicObject| jar.resource_version().unwrap().parse::<u64>().unwrap();
    assert!(version(&again) > version(&made));
}

async fn finalizer_delays_the_deletion(server: Server) {
    let place = Place::new(server).await;
    let mut held = jar("a", json!({ "size": 1 }));
    held.finalizers_mut()
        .extend(["x.example.com/one".to_owned(), "x.example.com/two".to_owned()]);
    place.jars().create(&PostParams::default(), &held).await.unwrap();
    let going = place
        .jars()
        .delete("a", &DeleteParams::default())
        .await
        .unwrap()
        .left()
        .unwrap();
    assert!(going.metadata.deletion_timestamp.is_some());
    assert_eq!(going.metadata.deletion_grace_period_seconds, Some(0));
    // The deletion counts as a change.
    assert_eq!(going.metadata.generation, Some(2));
    let again = place
        .jars()
        .delete("a", &DeleteParams::default())
        .await
        .unwrap()
        .left()
        .unwrap();
    assert_eq!(again, going, "a second deletion changes nothing");

    let finalizers = async |names: serde_json::Value| {
        let patch = Patch::Merge(json!({ "metadata": { "finalizers": names } }));
        place.jars().patch("a", &PatchParams::default(), &patch).await
    };
    let status = refusal(finalizers(json!(["x.example.com/one", "x.example.com/late"])).await);
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    let words = "no new finalizers can be added if the object is being deleted, found new finalizers \
                 []string{\"x.example.com/late\"}";
    assert!(status.message.contains(words), "{}", status.message);
    let left = finalizers(json!(["x.example.com/two"])).await.unwrap();
    assert_eq!(left.finalizers(), ["x.example.com/two"]);
    let changed = Patch::Merge(json!({ "spec": { "size": 3 } }));
    let changed = place
        .jars()
        .patch("a", &PatchParams::default(), &changed)
        .await
        .unwrap();
    assert_eq!(
        changed.data["spec"]["size"], 3,
        "what is going can still be changed"
    );
    // Without finalizers, the object is deleted right away.
    finalizers(json!(null)).await.unwrap();
    assert!(place.jars().get_opt("a").await.unwrap().is_none());
}

async fn deletion_checks_preconditions(server: Server) {
    let place = Place::new(server).await;
    let made = place.jar("a", json!({})).await;
    let with = |uid: Option<String>, resource_version: Option<String>| DeleteParams {
        preconditions: Some(Preconditions {
            resource_version,
            uid,
        }),
        ..DeleteParams::default()
    };
    let status = refusal(
        place
            .jars()
            .delete("a", &with(Some("other".to_owned()), None))
            .await,
    );
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert!(
        status
            .message
            .contains("the UID in the precondition (other) does not match"),
        "{}",
        status.message
    );
    let status = refusal(place.jars().delete("a", &with(None, Some("1".to_owned()))).await);
    assert!(
        status
            .message
            .contains("the ResourceVersion in the precondition (1)"),
        "{}",
        status.message
    );
    place
        .jars()
        .delete("a", &with(made.uid(), made.resource_version()))
        .await
        .unwrap();
    assert!(place.jars().get_opt("a").await.unwrap().is_none());
}

async fn collections_are_deleted_by_selector(server: Server) {
    let place = Place::new(server).await;
    for (name, app) in [("a", "x"), ("b", "x"), ("c", "y")] {
        let mut object = map(name, json!({}));
        object.labels_mut().insert("app".to_owned(), app.to_owned());
        place
            .maps()
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
    }
    let selected = ListParams::default().labels("app=x");
    place
        .maps()
        .delete_collection(&DeleteParams::default(), &selected)
        .await
        .unwrap();
    let left = place
        .maps()
        .list(&ListParams::default().labels("app"))
        .await
        .unwrap();
    assert_eq!(
        left.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>(),
        ["c"]
    );
}

async fn terminating_namespace_rejects_new_objects(server: Server) {
    let place = Place::new(server).await;
    place.map("kept", json!({})).await;
    let namespaces: Api<Namespace> = Api::all(place.client.clone());
    let going = namespaces
        .delete(&place.namespace, &DeleteParams::default())
        .await
        .unwrap()
        .left()
        .unwrap();
    assert_eq!(going.status.unwrap().phase.as_deref(), Some("Terminating"));
    let status = refusal(
        place
            .maps()
            .create(&PostParams::default(), &map("a", json!({})))
            .await,
    );
    assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
    let expected = format!(
        "configmaps \"a\" is forbidden: unable to create new content in namespace {} because it is being terminated",
        place.namespace
    );
    assert_eq!(status.message, expected);
    assert_eq!(status.details.unwrap().causes[0].reason, "NamespaceTerminating");
    // There's no namespace controller to delete the contents.
    assert!(place.maps().get("kept").await.is_ok());
}

async fn scheduled_pod_terminates_gracefully(server: Server) {
    let place = Place::new(server).await;
    let pods: Api<Pod> = place.api();
    let pod = |name: &str, node: Option<&str>| -> Pod {
        let spec = json!({ "nodeName": node, "containers": [{ "name": "c", "image": "x" }] });
        serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap()
    };
    // A Pod without a node can be deleted immediately.
    pods.create(&PostParams::default(), &pod("free", None))
        .await
        .unwrap();
    pods.delete("free", &DeleteParams::default()).await.unwrap();
    assert!(pods.get_opt("free").await.unwrap().is_none());
    pods.create(&PostParams::default(), &pod("placed", Some("n")))
        .await
        .unwrap();
    pods.delete("placed", &DeleteParams::default()).await.unwrap();
    let going = pods.get("placed").await.unwrap();
    assert_eq!(going.metadata.deletion_grace_period_seconds, Some(30));
    // The kubelet does this once all containers have stopped.
    pods.delete("placed", &DeleteParams::default().grace_period(0))
        .await
        .unwrap();
    assert!(pods.get_opt("placed").await.unwrap().is_none());
}

fn child(name: &str, owner: &DynamicObject) -> ConfigMap {
    let mut child = map(name, json!({}));
    child.metadata.owner_references = serde_json::from_value(json!([{
        "apiVersion": "apiserver.example.com/v1", "kind": "Jar", "name": owner.name_any(),
        "uid": owner.uid(), "controller": true, "blockOwnerDeletion": true,
    }]))
    .unwrap();
    child
}

async fn dependents_stay_without_a_garbage_collector(server: Server) {
    let place = Place::new(server).await;
    let owner = place.jar("a", json!({})).await;
    place
        .maps()
        .create(&PostParams::default(), &child("c", &owner))
        .await
        .unwrap();
    place
        .jars()
        .delete("a", &DeleteParams::background())
        .await
        .unwrap();
    assert!(place.jars().get_opt("a").await.unwrap().is_none());
    assert!(place.maps().get("c").await.is_ok());
}

async fn foreground_and_orphan_wait_for_the_garbage_collector(server: Server) {
    let place = Place::new(server).await;
    place.jar("a", json!({})).await;
    place.jar("b", json!({})).await;
    let going = place
        .jars()
        .delete("a", &DeleteParams::foreground())
        .await
        .unwrap()
        .left()
        .unwrap();
    assert_eq!(going.finalizers(), ["foregroundDeletion"]);
    let going = place
        .jars()
        .delete("b", &DeleteParams::orphan())
        .await
        .unwrap()
        .left()
        .unwrap();
    assert_eq!(going.finalizers(), ["orphan"]);
}

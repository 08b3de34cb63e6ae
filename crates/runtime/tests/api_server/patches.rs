//! JSON patches, merge patches and strategic merge patches.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::servers::{Server, on_both_servers};
use crate::support::{Place, refusal, refused};

on_both_servers!(
    json_patch_is_applied,
    inapplicable_json_patch_is_rejected,
    json_patch_tests_for_absent_fields,
    merge_patch_sets_and_removes_fields,
    patch_checks_the_resource_version,
    strategic_patch_merges_lists_by_key,
    strategic_patch_requires_a_built_in_kind,
    unknown_patch_type_is_rejected,
    patch_of_a_missing_object_is_not_found,
);

fn json_patch(operations: Value) -> Patch<()> {
    Patch::Json(serde_json::from_value(operations).unwrap())
}

async fn json_patch_is_applied(server: Server) {
    let place = Place::new(server).await;
    place.map("a", json!({ "k": "1", "gone": "x" })).await;
    let patch = json_patch(json!([
        { "op": "test", "path": "/data/k", "value": "1" },
        { "op": "replace", "path": "/data/k", "value": "2" },
        { "op": "remove", "path": "/data/gone" },
        { "op": "add", "path": "/metadata/labels", "value": {} },
        { "op": "add", "path": "/metadata/labels/a.b~1c", "value": "d" },
        { "op": "replace", "path": "/data/new", "value": "added, as Kubernetes does" },
    ]));
    let changed: ConfigMap = place
        .maps()
        .patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(
        serde_json::to_value(changed.data).unwrap(),
        json!({ "k": "2", "new": "added, as Kubernetes does" })
    );
    assert_eq!(changed.metadata.labels.unwrap()["a.b/c"], "d");
}

/// kube's `finalizer` adds the first finalizer with such a patch.
async fn json_patch_tests_for_absent_fields(server: Server) {
    let place = Place::new(server).await;
    place.map("a", json!({ "k": "1" })).await;
    let absent = |path: &str| json!({ "op": "test", "path": path, "value": null });
    let add = json!({ "op": "add", "path": "/metadata/finalizers", "value": ["example.com/a"] });
    let patch = json_patch(json!([absent("/metadata/finalizers"), add]));
    let changed = place.maps().patch("a", &PatchParams::default(), &patch).await;
    let finalizers = changed.unwrap().metadata.finalizers;
    assert_eq!(finalizers.as_deref(), Some(&["example.com/a".to_owned()][..]));
    for present in [
        absent("/metadata/finalizers"),
        absent("/none/below"),
        absent("/metadata/finalizers/7"),
    ] {
        let patch = json_patch(json!([present]));
        let answer = place.maps().patch("a", &PatchParams::default(), &patch).await;
        refused(
            answer,
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        );
    }
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    place
        .maps()
        .patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
}

async fn inapplicable_json_patch_is_rejected(server: Server) {
    let place = Place::new(server).await;
    let made = place.map("a", json!({ "k": "1" })).await;
    for operations in [
        json!([{ "op": "test", "path": "/data/k", "value": "2" }]),
        json!([{ "op": "remove", "path": "/data/none" }]),
        json!([{ "op": "replace", "path": "/data/k", "value": "3" }, { "op": "test", "path": "/data/q", "value": "" }]),
    ] {
        let patch = json_patch(operations);
        refused(
            place.maps().patch("a", &PatchParams::default(), &patch).await,
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        );
    }
    assert_eq!(place.maps().get("a").await.unwrap(), made);
}

async fn merge_patch_sets_and_removes_fields(server: Server) {
    let place = Place::new(server).await;
    place
        .jar(
            "a",
            json!({ "size": 1, "order": ["a", "b"], "free": { "x": 1, "y": { "z": 1 } } }),
        )
        .await;
    let patch = Patch::Merge(json!({
        "metadata": { "annotations": { "n": "1" } },
        "spec": { "size": 3, "order": ["c"], "free": { "x": null, "y": { "w": 2 } } },
        "status": { "text": "not this way" },
    }));
    let changed: DynamicObject = place
        .jars()
        .patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(
        changed.data,
        json!({ "spec": { "size": 3, "colour": "white", "order": ["c"], "free": { "y": { "z": 1, "w": 2 } } } })
    );
    assert_eq!(changed.metadata.generation, Some(2));
    assert_eq!(changed.metadata.annotations.unwrap()["n"], "1");
}

async fn patch_checks_the_resource_version(server: Server) {
    let place = Place::new(server).await;
    let made = place.jar("a", json!({})).await;
    let patch = |version: &str| {
        Patch::Merge(json!({ "metadata": { "resourceVersion": version }, "spec": { "size": 2 } }))
    };
    let version = made.metadata.resource_version.unwrap();
    let params = PatchParams::default();
    place.jars().patch("a", &params, &patch(&version)).await.unwrap();
    let status = refusal(place.jars().patch("a", &params, &patch(&version)).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    let uid = Patch::Merge(json!({ "metadata": { "uid": "another" } }));
    let status = refusal(place.jars().patch("a", &params, &uid).await);
    assert!(matches!(status.code, 409 | 422), "{status:?}");
}

async fn strategic_patch_merges_lists_by_key(server: Server) {
    let place = Place::new(server).await;
    let pod = json!({ "metadata": { "name": "a" }, "spec": { "containers": [
        { "name": "one", "image": "x", "args": ["1"], "env": [{ "name": "A", "value": "1" }] },
        { "name": "two", "image": "x" },
    ] } });
    let pod: Pod = serde_json::from_value(pod).unwrap();
    place
        .api::<Pod>()
        .create(&PostParams::default(), &pod)
        .await
        .unwrap();
    // The images are the only mutable part of a Pod's spec.
    let patch = Patch::Strategic(json!({
        "metadata": { "finalizers": ["a.example.com/b"] },
        "spec": { "containers": [{ "name": "two", "image": "y" }] },
    }));
    let changed = place
        .api::<Pod>()
        .patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    let containers = changed.spec.unwrap().containers;
    let images: Vec<_> = containers
        .iter()
        .map(|one| (one.name.as_str(), one.image.as_deref()))
        .collect();
    assert_eq!(images, [("one", Some("x")), ("two", Some("y"))]);
    let patch = Patch::Strategic(json!({ "metadata": { "finalizers": ["c.example.com/d"] } }));
    let changed = place
        .api::<Pod>()
        .patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    let mut finalizers = changed.metadata.finalizers.unwrap();
    finalizers.sort();
    assert_eq!(finalizers, ["a.example.com/b", "c.example.com/d"]);
    let patch = Patch::Strategic(json!({
        "metadata": { "$deleteFromPrimitiveList/finalizers": ["a.example.com/b", "c.example.com/d"] },
    }));
    let changed = place
        .api::<Pod>()
        .patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(changed.metadata.finalizers.unwrap_or_default(), [""; 0]);
}

async fn strategic_patch_requires_a_built_in_kind(server: Server) {
    let place = Place::new(server).await;
    place.jar("a", json!({})).await;
    let patch = Patch::Strategic(json!({ "spec": { "size": 2 } }));
    refused(
        place.jars().patch("a", &PatchParams::default(), &patch).await,
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: \
         application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
    );
}

async fn unknown_patch_type_is_rejected(server: Server) {
    let place = Place::new(server).await;
    place.map("a", json!({})).await;
    let path = "/api/v1/namespaces/{ns}/configmaps/a";
    let (code, text) = place
        .raw("PATCH", path, &[("content-type", "text/plain")], "{}")
        .await;
    assert_eq!(code, 415, "{text}");
    let json_patch = [("content-type", "application/json-patch+json")];
    let (code, text) = place.raw("PATCH", path, &json_patch, "{\"op\":\"add\"}").await;
    assert_eq!(code, 400, "{text}");
    let (code, text) = place
        .raw(
            "PATCH",
            path,
            &[("content-type", "application/merge-patch+json")],
            "[1",
        )
        .await;
    assert_eq!(code, 400, "{text}");
}

async fn patch_of_a_missing_object_is_not_found(server: Server) {
    let place = Place::new(server).await;
    let patch = Patch::Merge(json!({ "spec": { "size": 2 } }));
    let status = refusal(place.jars().patch("a", &PatchParams::default(), &patch).await);
    assert_eq!((status.code, status.reason.as_str()), (404, "NotFound"));
}

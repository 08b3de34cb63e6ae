//! The subresources status and scale.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::servers::{Server, on_both_servers};
use crate::support::{Place, refusal};

on_both_servers!(
    status_is_written_separately,
    status_of_built_in_kinds_is_written_separately,
    status_patch_checks_the_uid_only_for_built_in_kinds,
    scale_reads_and_sets_replicas,
    deployment_has_a_scale,
    unsupported_subresource_is_not_found,
);

async fn status_is_written_separately(server: Server) {
    let place = Place::new(server).await;
    let mut object = place.jar("a", json!({ "size": 1 })).await;
    object.data["status"] = json!({ "text": "good", "unknown": 1 });
    object.data["spec"]["size"] = 3.into();
    object.metadata.labels = Some([("l".to_owned(), "1".to_owned())].into());
    let stale = object.clone();
    let written = place
        .jars()
        .replace_status("a", &PostParams::default(), &object)
        .await
        .unwrap();
    // Only the status was written, and its unknown field was dropped.
    assert_eq!(
        written.data,
        json!({ "spec": { "size": 1, "colour": "white" }, "status": { "text": "good" } })
    );
    assert_eq!(
        (written.metadata.labels.clone(), written.metadata.generation),
        (None, Some(1))
    );
    let status = refusal(
        place
            .jars()
            .replace_status("a", &PostParams::default(), &stale)
            .await,
    );
    assert_eq!(status.code, 409);
    let patch = Patch::Merge(json!({ "spec": { "size": 4 }, "status": { "size": 1 } }));
    let written = place
        .jars()
        .patch_status("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(written.data["spec"]["size"], 1);
    assert_eq!(written.data["status"], json!({ "text": "good", "size": 1 }));
    assert_eq!(place.jars().get_status("a").await.unwrap(), written);
    let bad = Patch::Merge(json!({ "status": { "size": "many" } }));
    let status = refusal(
        place
            .jars()
            .patch_status("a", &PatchParams::default(), &bad)
            .await,
    );
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
}

fn deployment() -> Deployment {
    serde_json::from_value(json!({ "metadata": { "name": "a" }, "spec": {
        "selector": { "matchLabels": { "app": "a" } },
        "template": { "metadata": { "labels": { "app": "a" } }, "spec": { "containers": [{ "name": "c", "image": "x" }] } },
    } }))
    .unwrap()
}

/// For custom resources, a patch of the status ignores the UID (an update doesn't). The resource
/// version is always checked.
async fn status_patch_checks_the_uid_only_for_built_in_kinds(server: Server) {
    let place = Place::new(server).await;
    let mut jar = place.jar("a", json!({})).await;
    let old = jar.metadata.resource_version.clone();
    let with = |metadata: serde_json::Value| json!({ "metadata": metadata, "status": { "size": 1 } });
    let other = with(json!({ "uid": "another" }));
    let mut applied = other.clone();
    applied["apiVersion"] = "apiserver.example.com/v1".into();
    applied["kind"] = "Jar".into();
    let jars = place.jars();
    for (params, patch) in [
        (PatchParams::default(), Patch::Merge(other.clone())),
        (PatchParams::apply("m").force(), Patch::Apply(applied)),
    ] {
        let patched = jars.patch_status("a", &params, &patch).await.unwrap();
        assert_eq!(patched.metadata.uid, jar.metadata.uid);
        assert_eq!(patched.data["status"]["size"], 1);
    }
    let stale = Patch::Merge(with(json!({ "resourceVersion": old })));
    let answer = jars.patch_status("a", &PatchParams::default(), &stale).await;
    assert_eq!(refusal(answer).code, 409);
    jar = jars.get("a").await.unwrap();
    jar.metadata.uid = Some("another".to_owned());
    let answer = jars.replace_status("a", &PostParams::default(), &jar).await;
    assert_eq!(refusal(answer).code, 409);

    let deployments: Api<Deployment> = place.api();
    let deployment = json!({
        "metadata": { "name": "d" },
        "spec": {
            "selector": { "matchLabels": { "a": "b" } },
            "template": {
                "metadata": { "labels": { "a": "b" } },
                "spec": { "containers": [{ "name": "c", "image": "x" }] },
            },
        },
    });
    let deployment: Deployment = serde_json::from_value(deployment).unwrap();
    deployments
        .create(&PostParams::default(), &deployment)
        .await
        .unwrap();
    let other =
        Patch::Merge(json!({ "metadata": { "uid": "another" }, "status": { "observedGeneration": 1 } }));
    let answer = deployments
        .patch_status("d", &PatchParams::default(), &other)
        .await;
    assert_eq!(refusal(answer).code, 422);
}

async fn status_of_built_in_kinds_is_written_separately(server: Server) {
    let place = Place::new(server).await;
    let deployments: Api<Deployment> = place.api();
    let mut wanted = deployment();
    wanted.status = serde_json::from_value(json!({ "replicas": 9 })).unwrap();
    let made = deployments.create(&PostParams::default(), &wanted).await.unwrap();
    assert_ne!(made.status.unwrap_or_default().replicas, Some(9));
    let patch =
        Patch::Merge(json!({ "status": { "replicas": 1, "readyReplicas": 1, "observedGeneration": 1 } }));
    let written = deployments
        .patch_status("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(written.metadata.generation, Some(1));
    assert_eq!(written.status.unwrap().ready_replicas, Some(1));
    let patch = Patch::Merge(json!({ "spec": { "replicas": 2 }, "status": { "readyReplicas": 0 } }));
    let changed = deployments
        .patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(changed.metadata.generation, Some(2));
    assert_eq!(changed.status.unwrap().ready_replicas, Some(1));
}

async fn scale_reads_and_sets_replicas(server: Server) {
    let place = Place::new(server).await;
    place.jar("a", json!({ "size": 2 })).await;
    let patch = Patch::Merge(json!({ "status": { "size": 1, "selector": "app=a" } }));
    place
        .jars()
        .patch_status("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    let scale = place.jars().get_scale("a").await.unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(2));
    let status = scale.status.unwrap();
    assert_eq!((status.replicas, status.selector.as_deref()), (1, Some("app=a")));
    let patch = Patch::Merge(json!({ "spec": { "replicas": 3 } }));
    let scale = place
        .jars()
        .patch_scale("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(3));
    let object = place.jars().get("a").await.unwrap();
    assert_eq!(
        (&object.data["spec"]["size"], object.metadata.generation),
        (&json!(3), Some(2))
    );
    let patch = Patch::Merge(json!({ "spec": { "replicas": 70 } }));
    let status = refusal(
        place
            .jars()
            .patch_scale("a", &PatchParams::default(), &patch)
            .await,
    );
    assert_eq!(status.code, 422);
}

async fn deployment_has_a_scale(server: Server) {
    let place = Place::new(server).await;
    let deployments: Api<Deployment> = place.api();
    deployments
        .create(&PostParams::default(), &deployment())
        .await
        .unwrap();
    let patch = Patch::Merge(json!({ "spec": { "replicas": 4 } }));
    deployments
        .patch_scale("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    let scale = deployments.get_scale("a").await.unwrap();
    assert_eq!(scale.status.unwrap().selector.as_deref(), Some("app=a"));
    assert_eq!(deployments.get("a").await.unwrap().spec.replicas, Some(4));
}

async fn unsupported_subresource_is_not_found(server: Server) {
    let place = Place::new(server).await;
    place.map("a", json!({})).await;
    let maps: Api<ConfigMap> = place.api();
    assert_eq!(refusal(maps.get_subresource("status", "a").await).code, 404);
    let jars: Api<DynamicObject> = place.jars();
    place.jar("a", json!({})).await;
    assert_eq!(refusal(jars.get_subresource("log", "a").await).code, 404);
}

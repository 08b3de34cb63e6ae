//! Lists of a single namespace or of all namespaces, with selectors, with pages, and of metadata.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{DynamicObject, ListParams, PostParams, VersionMatch};
use kube::{Api, ResourceExt};
use rbuilder::testing::eventually_eq;
use serde_json::json;

use crate::servers::{Server, on_both_servers};
use crate::support::{Place, jar, jar_kind, map, refusal, refused};

on_both_servers!(
    list_covers_one_or_all_namespaces,
    label_selectors_filter_lists,
    field_selectors_filter_lists,
    invalid_selectors_are_rejected,
    all_pages_of_a_list_have_one_version,
    list_can_require_a_version,
    list_can_return_only_metadata,
);

fn names<K: ResourceExt>(list: impl IntoIterator<Item = K>) -> Vec<String> {
    list.into_iter().map(|object| object.name_any()).collect()
}

async fn list_covers_one_or_all_namespaces(server: Server) {
    let place = Place::new(server).await;
    place.map("b", json!({})).await;
    place.map("a", json!({})).await;
    let other = place.server.namespace("other").await;
    let elsewhere: Api<ConfigMap> = Api::namespaced(place.client.clone(), &other);
    elsewhere
        .create(&PostParams::default(), &map("c", json!({})))
        .await
        .unwrap();

    let list = place.maps().list(&ListParams::default()).await.unwrap();
    assert_eq!(names(list.items), ["a", "b"]);
    assert!(list.metadata.resource_version.unwrap().parse::<u64>().unwrap() > 0);
    let all = Api::<ConfigMap>::all(place.client.clone())
        .list(&ListParams::default())
        .await
        .unwrap();
    let ours: Vec<_> = all
        .items
        .into_iter()
        .filter(|map| map.namespace().unwrap() == other)
        .collect();
    assert_eq!(names(ours), ["c"]);
    assert!(
        place
            .jars()
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    let nowhere: Api<ConfigMap> = Api::namespaced(place.client.clone(), "nowhere");
    assert!(
        nowhere
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    let (code, text) = place
        .raw(
            "GET",
            "/apis/apiserver.example.com/v1/namespaces/{ns}/jars",
            &[],
            "",
        )
        .await;
    assert_eq!(code, 200);
    assert!(text.contains("\"kind\":\"JarList\""), "{text}");
}

async fn label_selectors_filter_lists(server: Server) {
    let place = Place::new(server).await;
    for (name, labels) in [
        ("a", json!({ "app": "web", "tier": "1" })),
        ("b", json!({ "app": "db" })),
        ("c", json!({})),
    ] {
        let mut object = map(name, json!({}));
        object.metadata.labels = serde_json::from_value(labels).unwrap();
        place
            .maps()
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
    }
    for (selector, expected) in [
        ("app", &["a", "b"][..]),
        ("!app", &["c"]),
        ("app=web", &["a"]),
        ("app!=web", &["b", "c"]),
        ("app in (db, web),!tier", &["b"]),
        ("app notin (db)", &["a", "c"]),
    ] {
        let list = place
            .maps()
            .list(&ListParams::default().labels(selector))
            .await
            .unwrap();
        assert_eq!(names(list.items), expected, "{selector}");
    }
}

async fn field_selectors_filter_lists(server: Server) {
    let place = Place::new(server).await;
    place.jar("a", json!({ "colour": "blue" })).await;
    place.jar("b", json!({})).await;
    let list = async |selector: &str| {
        let list = place
            .jars()
            .list(&ListParams::default().fields(selector))
            .await
            .unwrap();
        names(list.items)
    };
    assert_eq!(list("metadata.name=a").await, ["a"]);
    assert_eq!(list("metadata.name!=a").await, ["b"]);
    assert_eq!(list("spec.colour=white").await, ["b"]);
    let namespace = format!("metadata.namespace={}", place.namespace);
    assert_eq!(list(&namespace).await.len(), 2);
    let mut pod: Pod =
        serde_json::from_value(json!({ "spec": { "containers": [{ "name": "c", "image": "x" }] } })).unwrap();
    for (name, node) in [("p", "n1"), ("q", "n2")] {
        pod.metadata.name = Some(name.to_owned());
        pod.spec.as_mut().unwrap().node_name = Some(node.to_owned());
        place
            .api::<Pod>()
            .create(&PostParams::default(), &pod)
            .await
            .unwrap();
    }
    let on_node = ListParams::default().fields("spec.nodeName=n2,status.phase=Pending");
    assert_eq!(
        names(place.api::<Pod>().list(&on_node).await.unwrap().items),
        ["q"]
    );
}

async fn invalid_selectors_are_rejected(server: Server) {
    let place = Place::new(server).await;
    refused(
        place
            .jars()
            .list(&ListParams::default().fields("spec.size=1"))
            .await,
        400,
        "BadRequest",
        "field label not supported: spec.size",
    );
    let status = refusal(place.jars().list(&ListParams::default().labels("a b c")).await);
    assert_eq!((status.code, status.reason.as_str()), (400, "BadRequest"));
    let path = "/api/v1/namespaces/{ns}/configmaps?resourceVersion=abc";
    assert_eq!(place.raw("GET", path, &[], "").await.0, 400);
    let path = "/api/v1/namespaces/{ns}/configmaps?limit=1&continue=abc";
    assert_eq!(place.raw("GET", path, &[], "").await.0, 400);
}

async fn all_pages_of_a_list_have_one_version(server: Server) {
    let place = Place::new(server).await;
    for name in ["a", "b", "c", "d", "e"] {
        place.map(name, json!({})).await;
    }
    let first = place.maps().list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(first.metadata.remaining_item_count, Some(3));
    let token = first.metadata.continue_.unwrap();
    // The list must not show changes made between two pages.
    place.maps().delete("d", &Default::default()).await.unwrap();
    place.map("f", json!({})).await;
    let next = ListParams::default().limit(2).continue_token(&token);
    let second = place.maps().list(&next).await.unwrap();
    assert_eq!(second.metadata.resource_version, first.metadata.resource_version);
    let token = second.metadata.continue_.unwrap();
    let third = place
        .maps()
        .list(&ListParams::default().limit(2).continue_token(&token))
        .await
        .unwrap();
    assert_eq!(third.metadata.continue_.unwrap_or_default(), "");
    let all = [first.items, second.items, third.items].concat();
    assert_eq!(names(all), ["a", "b", "c", "d", "e"]);
}

async fn list_can_require_a_version(server: Server) {
    let place = Place::new(server).await;
    let made = place.map("a", json!({ "k": "1" })).await;
    place.map("b", json!({})).await;
    let version = made.resource_version().unwrap();
    let exact = ListParams::default()
        .at(&version)
        .matching(VersionMatch::Exact)
        .limit(9);
    let then = place.maps().list(&exact).await.unwrap();
    assert_eq!(names(then.items), ["a"]);
    // A list that accepts any version is served from memory, which may lag behind.
    let any = ListParams::default().match_any();
    eventually_eq(Duration::from_secs(20), 2, || async {
        place.maps().list(&any).await.unwrap().items.len()
    })
    .await;
    let later = ListParams::default()
        .at("99999999")
        .matching(VersionMatch::NotOlderThan);
    let status = refusal(place.maps().list(&later).await);
    assert_eq!((status.code, status.reason.as_str()), (504, "Timeout"));
    assert_eq!(
        status.details.unwrap().causes[0].reason,
        "ResourceVersionTooLarge"
    );
}

async fn list_can_return_only_metadata(server: Server) {
    let place = Place::new(server).await;
    let made = place.map("a", json!({ "k": "1" })).await;
    let list = place.maps().list_metadata(&ListParams::default()).await.unwrap();
    assert_eq!(list.items[0].metadata, made.metadata);
    assert_eq!(
        list.items[0].types.as_ref().unwrap().kind,
        "PartialObjectMetadata"
    );
    let one = place.maps().get_metadata("a").await.unwrap();
    assert_eq!(one.metadata, made.metadata);
    place
        .jars()
        .create(&PostParams::default(), &jar("j", json!({})))
        .await
        .unwrap();
    let jars: Api<DynamicObject> = Api::all_with(place.client.clone(), &jar_kind("v1"));
    let found = jars.list_metadata(&ListParams::default()).await.unwrap().items;
    assert!(
        found
            .iter()
            .any(|jar| jar.metadata.namespace.as_deref() == Some(&place.namespace))
    );
    assert!(
        Api::<Namespace>::all(place.client.clone())
            .get_metadata(&place.namespace)
            .await
            .is_ok()
    );
}

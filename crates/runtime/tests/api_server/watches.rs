//! Watches: events, resource versions, selectors and expiry.

use std::pin::pin;
use std::time::Duration;

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::time::timeout;

use crate::servers::{Server, on_both_servers};
use crate::support::{Place, jar, jar_kind, map};

on_both_servers!(
    watch_delivers_every_change_after_its_version,
    selector_changes_become_added_and_deleted_events,
    deleted_event_has_a_new_version,
    watch_ends_after_its_timeout,
    watch_from_an_old_version_is_gone,
    metadata_watch_contains_only_metadata,
    watch_of_one_object_ignores_others,
    watch_delivers_the_requested_api_version,
    kubes_watcher_receives_every_change,
);

const SOON: Duration = Duration::from_secs(20);

async fn words<K, E>(
    stream: &mut (impl Stream<Item = Result<WatchEvent<K>, E>> + Unpin),
    count: usize,
) -> Vec<String>
where
    K: ResourceExt,
    E: std::fmt::Debug,
{
    let mut found = Vec::new();
    while found.len() < count {
        let event = timeout(SOON, stream.next())
            .await
            .unwrap_or_else(|_| panic!("only {found:?}"));
        found.push(
            match event.unwrap_or_else(|| panic!("ended after {found:?}")).unwrap() {
                WatchEvent::Added(object) => format!("added {}", object.name_any()),
                WatchEvent::Modified(object) => format!("modified {}", object.name_any()),
                WatchEvent::Deleted(object) => format!("deleted {}", object.name_any()),
                WatchEvent::Bookmark(_) => continue,
                WatchEvent::Error(status) => format!("error {}", status.code),
            },
        );
    }
    found
}

async fn version(place: &Place) -> String {
    place
        .maps()
        .list(&ListParams::default())
        .await
        .unwrap()
        .metadata
        .resource_version
        .unwrap()
}

async fn watch_delivers_every_change_after_its_version(server: Server) {
    let place = Place::new(server).await;
    place.map("before", json!({})).await;
    let from = version(&place).await;
    place.map("a", json!({ "k": "1" })).await;
    let maps = place.maps();
    let mut events = pin!(maps.watch(&WatchParams::default(), &from).await.unwrap());
    assert_eq!(words(&mut events, 1).await, ["added a"]);
    let patch = Patch::Merge(json!({ "data": { "k": "2" } }));
    place
        .maps()
        .patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    place
        .maps()
        .patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    place.map("b", json!({})).await;
    place.maps().delete("a", &Default::default()).await.unwrap();
    assert_eq!(
        words(&mut events, 3).await,
        ["modified a", "added b", "deleted a"]
    );
}

async fn selector_changes_become_added_and_deleted_events(server: Server) {
    let place = Place::new(server).await;
    let from = version(&place).await;
    let maps = place.maps();
    let mut events = pin!(
        maps.watch(&WatchParams::default().labels("on"), &from)
            .await
            .unwrap()
    );
    place.map("a", json!({})).await;
    let label = async |value: serde_json::Value| {
        let patch = Patch::Merge(json!({ "metadata": { "labels": { "on": value } } }));
        place
            .maps()
            .patch("a", &PatchParams::default(), &patch)
            .await
            .unwrap();
    };
    label(json!("1")).await;
    label(json!("2")).await;
    label(json!(null)).await;
    place.maps().delete("a", &Default::default()).await.unwrap();
    let mut last = map("b", json!({}));
    last.labels_mut().insert("on".to_owned(), "1".to_owned());
    place.maps().create(&PostParams::default(), &last).await.unwrap();
    assert_eq!(
        words(&mut events, 4).await,
        ["added a", "modified a", "deleted a", "added b"]
    );
}

async fn deleted_event_has_a_new_version(server: Server) {
    let place = Place::new(server).await;
    let from = version(&place).await;
    let mut held = map("a", json!({}));
    held.finalizers_mut().push("x.example.com/y".to_owned());
    let made = place.maps().create(&PostParams::default(), &held).await.unwrap();
    place.maps().delete("a", &Default::default()).await.unwrap();
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    place
        .maps()
        .patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    let maps = place.maps();
    let events = maps.watch(&WatchParams::default(), &from).await.unwrap();
    let events: Vec<_> = events.take(3).collect().await;
    let [
        Ok(WatchEvent::Added(first)),
        Ok(WatchEvent::Modified(going)),
        Ok(WatchEvent::Deleted(last)),
    ] = events.as_slice()
    else {
        panic!("{events:?}");
    };
    let version = |map: &ConfigMap| map.resource_version().unwrap().parse::<u64>().unwrap();
    assert_eq!(first.resource_version(), made.resource_version());
    assert!(version(first) < version(going) && version(going) < version(last));
    assert!(going.metadata.deletion_timestamp.is_some());
    // The event contains the last stored state.
    assert_eq!(last.finalizers(), ["x.example.com/y"]);
}

async fn watch_ends_after_its_timeout(server: Server) {
    let place = Place::new(server).await;
    let from = version(&place).await;
    let maps = place.maps();
    let mut events = pin!(
        maps.watch(&WatchParams::default().timeout(1), &from)
            .await
            .unwrap()
    );
    let end = async { while events.next().await.is_some() {} };
    timeout(SOON, end).await.expect("it ends");
}

async fn watch_from_an_old_version_is_gone(server: Server) {
    let place = Place::new(server).await;
    if let Server::Fake(server) = &place.server {
        // A real server doesn't remember events from before its watch cache was filled.
        server.expire_watches();
    }
    let jars = place.jars();
    let mut events = pin!(jars.watch(&WatchParams::default(), "1").await.unwrap());
    assert_eq!(words(&mut events, 1).await, ["error 410"]);
    assert!(timeout(SOON, events.next()).await.unwrap().is_none());
}

async fn metadata_watch_contains_only_metadata(server: Server) {
    let place = Place::new(server).await;
    let from = version(&place).await;
    let made = place.map("a", json!({ "k": "v" })).await;
    let path =
        format!("/api/v1/namespaces/{{ns}}/configmaps?watch=true&timeoutSeconds=1&resourceVersion={from}");
    let accept = [(
        "accept",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    )];
    let (code, text) = place.raw("GET", &path, &accept, "").await;
    assert_eq!(code, 200);
    let event: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(event["type"], "ADDED");
    assert_eq!(event["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(event["object"]["apiVersion"], "meta.k8s.io/v1");
    assert_eq!(event["object"]["metadata"]["uid"], *made.uid().unwrap());
    assert_eq!(event["object"].get("data"), None);
}

async fn watch_of_one_object_ignores_others(server: Server) {
    let place = Place::new(server).await;
    let from = version(&place).await;
    let maps = place.maps();
    let mut events = pin!(
        maps.watch(&WatchParams::default().fields("metadata.name=b"), &from)
            .await
            .unwrap()
    );
    place.map("a", json!({})).await;
    place.map("b", json!({})).await;
    assert_eq!(words(&mut events, 1).await, ["added b"]);
}

async fn watch_delivers_the_requested_api_version(server: Server) {
    let place = Place::new(server).await;
    let from = place
        .jars()
        .list(&ListParams::default())
        .await
        .unwrap()
        .metadata
        .resource_version
        .unwrap();
    place
        .jars()
        .create(&PostParams::default(), &jar("a", json!({})))
        .await
        .unwrap();
    let second: Api<DynamicObject> =
        Api::namespaced_with(place.client.clone(), &place.namespace, &jar_kind("v2"));
    let mut events = pin!(second.watch(&WatchParams::default(), &from).await.unwrap());
    let Some(Ok(WatchEvent::Added(seen))) = timeout(SOON, events.next()).await.unwrap() else {
        panic!("no event");
    };
    assert_eq!(seen.types.unwrap().api_version, "apiserver.example.com/v2");
    assert_eq!(second.get("a").await.unwrap().data, seen.data);
}

/// kube's watcher with the same configuration as in our caches.
async fn kubes_watcher_receives_every_change(server: Server) {
    let place = Place::new(server).await;
    for name in ["a", "b", "c"] {
        place.map(name, json!({})).await;
    }
    let config = watcher::Config::default()
        .page_size(2)
        .fields("metadata.name!=kube-root-ca.crt");
    let mut events = pin!(watcher::watcher(place.maps(), config));
    let mut next = async || timeout(SOON, events.next()).await.unwrap().unwrap().unwrap();
    assert!(matches!(next().await, watcher::Event::Init));
    for expected in ["a", "b", "c"] {
        assert!(matches!(next().await, watcher::Event::InitApply(map) if map.name_any() == expected));
    }
    assert!(matches!(next().await, watcher::Event::InitDone));
    place.map("d", json!({})).await;
    assert!(matches!(next().await, watcher::Event::Apply(map) if map.name_any() == "d"));
    place.maps().delete("a", &Default::default()).await.unwrap();
    assert!(matches!(next().await, watcher::Event::Delete(map) if map.name_any() == "a"));
}

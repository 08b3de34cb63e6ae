//! Features that do not exist on a real server: fault injection, recording of requests, garbage
//! collection, and expiring versions on demand.

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::watcher;
use kube::{Api, CustomResource, CustomResourceExt, ResourceExt};
use rbuilder::CrdSchema;
use rbuilder::fake::{ApiServer, Fault, Verb};
use rbuilder::testing::eventually;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::servers::Server;
use crate::support::{Place, map, refusal};

const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn outage_also_breaks_requests_for_other_paths() {
    let server = ApiServer::new();
    server.inject(Fault::disconnect());
    assert!(
        server.client().apiserver_version().await.is_ok(),
        "the fault is for an object"
    );
    server.inject(Fault::disconnect().always());
    assert!(server.client().apiserver_version().await.is_err());
    server.heal();
    assert!(server.client().apiserver_version().await.is_ok());
}

async fn place() -> (ApiServer, Place) {
    let server = ApiServer::new();
    (server.clone(), Place::new(Server::Fake(server)).await)
}

/// A kind of this operator. The CRD is derived from its type.
#[derive(CustomResource, CrdSchema, Serialize, Deserialize, Clone, Debug, PartialEq)]
#[kube(
    group = "fake.example.com",
    version = "v1",
    kind = "Kettle",
    namespaced,
    status = "KettleStatus"
)]
struct KettleSpec {
    /// In litres.
    #[kube(validation(minimum = 1, maximum = 3), default = 2)]
    #[serde(default = "two")]
    size: i32,
}

fn two() -> i32 {
    2
}

#[derive(CrdSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
struct KettleStatus {
    boils: bool,
}

/// A kind of some other operator. There is no CRD.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "foreign.example.com",
    version = "v1",
    kind = "Stove",
    status = "KettleStatus"
)]
#[kube(schema = "disabled")]
struct StoveSpec {
    flames: Option<u8>,
}

#[tokio::test]
async fn kind_is_served_from_its_rust_type() {
    let server = ApiServer::new().crd(Kettle::crd()).kind::<Stove>();
    let kettles: Api<Kettle> = Api::default_namespaced(server.client());
    let object = json!({ "apiVersion": "fake.example.com/v1", "kind": "Kettle", "metadata": { "name": "k" }, "spec": {} });
    let apply = PatchParams::apply("test");
    let made = kettles.patch("k", &apply, &Patch::Apply(&object)).await.unwrap();
    assert_eq!((made.spec.size, made.metadata.generation), (2, Some(1)));
    let big = Kettle::new("big", KettleSpec { size: 9 });
    let status = refusal(kettles.create(&PostParams::default(), &big).await);
    assert_eq!(
        status.message,
        "Kettle.fake.example.com \"big\" is invalid: spec.size: Invalid value: 9: spec.size in body should be less \
         than or equal to 3"
    );
    let stoves: Api<Stove> = Api::all(server.client());
    let stove = Stove::new("s", StoveSpec { flames: Some(4) });
    let made = stoves.create(&PostParams::default(), &stove).await.unwrap();
    assert_eq!(made.spec, stove.spec);
    let status = Patch::Merge(json!({ "status": { "boils": true } }));
    let written = stoves
        .patch_status("s", &PatchParams::default(), &status)
        .await
        .unwrap();
    assert!(written.status.unwrap().boils);
}

#[tokio::test]
async fn initial_objects_are_stored() {
    let mut kettle = Kettle::new("k", KettleSpec { size: 1 });
    kettle.metadata.namespace = Some("default".to_owned());
    kettle.status = Some(KettleStatus { boils: true });
    let server = ApiServer::new().crd(Kettle::crd()).object(&kettle);
    let kettles: Api<Kettle> = Api::default_namespaced(server.client());
    let found = kettles.get("k").await.unwrap();
    assert_eq!(
        (found.spec, found.status),
        (kettle.spec.clone(), kettle.status.clone())
    );
    assert!(found.metadata.uid.is_some() && found.metadata.creation_timestamp.is_some());
    // No conflict with the initial object, because the value is the same.
    let applied = json!({ "apiVersion": "fake.example.com/v1", "kind": "Kettle", "metadata": { "name": "k" },
        "spec": { "size": 1 } });
    kettles
        .patch("k", &PatchParams::apply("me"), &Patch::Apply(&applied))
        .await
        .unwrap();
}

#[tokio::test]
#[should_panic(
    expected = "the server does not know kettles.fake.example.com: add it with `.crd(…)` or `.kind(…)`"
)]
async fn initial_object_of_an_unknown_kind_panics() {
    let _ = ApiServer::new().object(&Kettle::new("k", KettleSpec { size: 1 }));
}

/// Tests only fill in the fields they need.
#[tokio::test]
async fn initial_object_may_lack_what_a_server_requires() {
    let mut set = ReplicaSet::default();
    set.metadata.name = Some("a".to_owned());
    set.metadata.namespace = Some("default".to_owned());
    let server = ApiServer::new().object(&set);
    let sets: Api<ReplicaSet> = Api::namespaced(server.client(), "default");
    let patch = async |patch: serde_json::Value| {
        sets.patch("a", &PatchParams::default(), &Patch::Merge(patch))
            .await
    };
    let labelled = patch(json!({ "metadata": { "labels": { "a": "b" } } })).await;
    assert_eq!(labelled.unwrap().labels()["a"], "b");
    let labels = json!({ "app": "a" });
    let template = json!({ "metadata": { "labels": labels } });
    let selecting = |labels: &serde_json::Value| json!({ "spec": { "selector": { "matchLabels": labels }, "template": template } });
    patch(selecting(&labels)).await.unwrap();
    let status = refusal(patch(selecting(&json!({ "app": "b" }))).await);
    assert!(
        status
            .message
            .contains("`selector` does not match template `labels`"),
        "{status:?}"
    );
}

#[tokio::test]
async fn error_about_invalid_crd_names_the_file() {
    let server = ApiServer::new();
    let error = server.install_crds("tests/no/such").unwrap_err().to_string();
    assert!(error.starts_with("cannot read tests/no/such: "), "{error}");
    let error = server
        .install_crds("tests/webhooks/manifests.yaml")
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("no CRD in tests/webhooks/manifests.yaml: run `rbuilder manifests`"),
        "{error}"
    );
}

#[tokio::test]
async fn injected_fault_fails_the_given_number_of_requests() {
    let (server, place) = place().await;
    place.map("a", json!({})).await;
    place.map("b", json!({})).await;
    server.inject(
        Fault::status(503)
            .verb(Verb::Get)
            .kind::<ConfigMap>()
            .named("a")
            .times(2),
    );
    server.inject(
        Fault::status(409)
            .verb(Verb::Create)
            .kind::<ConfigMap>()
            .named("c"),
    );
    let get = async |name: &str| place.maps().get(name).await;
    assert!(get("b").await.is_ok());
    assert!(place.api::<Secret>().get_opt("a").await.unwrap().is_none());
    let status = refusal(get("a").await);
    assert_eq!((status.code, status.reason.as_str()), (503, "ServiceUnavailable"));
    assert_eq!(refusal(get("a").await).code, 503);
    assert!(get("a").await.is_ok());
    let create = async || {
        place
            .maps()
            .create(&PostParams::default(), &map("c", json!({})))
            .await
    };
    let status = refusal(create().await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    // By default, a fault only affects a single request.
    create().await.unwrap();

    server.inject(Fault::status(500).always());
    for _ in 0..3 {
        assert_eq!(refusal(get("a").await).code, 500);
    }
    server.heal();
    assert!(get("a").await.is_ok());
    server.inject(Fault::disconnect());
    let broken = get("a").await.unwrap_err();
    assert!(matches!(broken, kube::Error::Service(_)), "{broken:?}");
    assert!(get("a").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn injected_delay_uses_tokios_clock() {
    let (server, place) = place().await;
    server.inject(Fault::delay(Duration::from_secs(90)).verb(Verb::List));
    server.inject(Fault::status(429).verb(Verb::List));
    let start = Instant::now();
    let status = refusal(place.maps().list(&ListParams::default()).await);
    assert_eq!((status.code, start.elapsed().as_secs()), (429, 90));
    place.maps().list(&ListParams::default()).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 90);
}

#[tokio::test]
async fn requests_are_recorded() {
    let (server, place) = place().await;
    server.forget_requests();
    place.map("a", json!({ "k": "v" })).await;
    place.maps().get_opt("none").await.unwrap();
    place
        .maps()
        .list(&ListParams::default().labels("a=b"))
        .await
        .unwrap();
    let patch = Patch::Merge(json!({ "status": { "size": 1 } }));
    let _ = place
        .jars()
        .patch_status("j", &PatchParams::default(), &patch)
        .await;
    server.inject(Fault::disconnect());
    let _ = Api::<Namespace>::all(place.client.clone()).get("default").await;
    let requests = server.requests();
    let said: Vec<String> = requests
        .iter()
        .map(|request| format!("{request} {}", request.code))
        .collect();
    let namespace = &place.namespace;
    let expected = [
        format!("create configmaps in {namespace} 201"),
        format!("get configmaps {namespace}/none 404"),
        format!("list configmaps in {namespace} 200"),
        format!("patch jars.apiserver.example.com/status {namespace}/j 404"),
        "get namespaces default 0".to_owned(),
    ];
    assert_eq!(said, expected);
    assert!(requests[0].is_of::<ConfigMap>() && !requests[0].is_of::<Secret>());
    assert_eq!(requests[0].body["data"]["k"], "v");
    assert_eq!(requests[2].parameters["labelSelector"], "a=b");
}

#[tokio::test]
async fn dropped_watch_resumes_and_expired_watch_relists() {
    let (server, place) = place().await;
    place.map("a", json!({})).await;
    let mut events = pin!(watcher::watcher(place.maps(), watcher::Config::default()));
    let mut next = async || timeout(SOON, events.next()).await.expect("an event").unwrap();
    for _ in 0..3 {
        next().await.unwrap();
    }
    let watches = || {
        server
            .requests()
            .iter()
            .filter(|request| request.verb == Verb::Watch)
            .count()
    };
    let lists = || {
        server
            .requests()
            .iter()
            .filter(|request| request.verb == Verb::List)
            .count()
    };
    place.map("b", json!({})).await;
    assert!(matches!(next().await, Ok(watcher::Event::Apply(map)) if map.name_any() == "b"));
    server.drop_watches();
    place.map("c", json!({})).await;
    assert!(matches!(next().await, Ok(watcher::Event::Apply(map)) if map.name_any() == "c"));
    // The watch resumed from its last version, without a relist.
    assert_eq!((lists(), watches()), (1, 2));

    server.expire_watches();
    let error = next().await.unwrap_err();
    assert!(
        matches!(&error, watcher::Error::WatchError(status) if status.code == 410),
        "{error:?}"
    );
    assert!(matches!(next().await, Ok(watcher::Event::Init)));
    for name in ["a", "b", "c"] {
        assert!(matches!(next().await, Ok(watcher::Event::InitApply(map)) if map.name_any() == name));
    }
    assert!(matches!(next().await, Ok(watcher::Event::InitDone)));
    assert_eq!((lists(), watches()), (2, 3));
}

/// A real server would need a recent version of etcd.
#[tokio::test]
async fn watch_can_start_with_a_streaming_list() {
    let (server, place) = place().await;
    place.map("a", json!({})).await;
    place.map("b", json!({})).await;
    let maps = place.maps();
    let mut events = pin!(maps.watch(&WatchParams::default(), "0").await.unwrap());
    for name in ["a", "b"] {
        let event = timeout(SOON, events.next()).await.unwrap().unwrap().unwrap();
        assert!(matches!(event, WatchEvent::Added(map) if map.name_any() == name));
    }
    let mut events = pin!(watcher::watcher(
        place.maps(),
        watcher::Config::default().streaming_lists()
    ));
    let mut next = async || timeout(SOON, events.next()).await.unwrap().unwrap().unwrap();
    assert!(matches!(next().await, watcher::Event::Init));
    for name in ["a", "b"] {
        assert!(matches!(next().await, watcher::Event::InitApply(map) if map.name_any() == name));
    }
    assert!(matches!(next().await, watcher::Event::InitDone));
    place.map("c", json!({})).await;
    assert!(matches!(next().await, watcher::Event::Apply(map) if map.name_any() == "c"));
    let lists = server
        .requests()
        .iter()
        .filter(|request| request.verb == Verb::List)
        .count();
    assert_eq!(lists, 0);
}

#[tokio::test(start_paused = true)]
async fn idle_watch_sends_bookmarks() {
    let (_, place) = place().await;
    let maps = place.maps();
    let version = maps
        .list(&ListParams::default())
        .await
        .unwrap()
        .metadata
        .resource_version
        .unwrap();
    let mut events = pin!(maps.watch(&WatchParams::default(), &version).await.unwrap());
    let start = Instant::now();
    // This results in a new version, but the watch doesn't receive the object.
    place.server.namespace("other").await;
    let Some(Ok(WatchEvent::Bookmark(mark))) = events.next().await else {
        panic!("no bookmark");
    };
    assert_eq!(start.elapsed().as_secs(), 60);
    assert!(mark.metadata.resource_version.parse::<u64>().unwrap() > version.parse().unwrap());
}

#[tokio::test]
async fn deleting_a_crd_ends_its_watches() {
    let (_, place) = place().await;
    place.jar("a", json!({})).await;
    let jars = place.jars();
    let mut events = pin!(jars.watch(&WatchParams::default(), "0").await.unwrap());
    events.next().await.unwrap().unwrap();
    let crds: Api<
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    > = Api::all(place.client.clone());
    crds.delete("jars.apiserver.example.com", &DeleteParams::default())
        .await
        .unwrap();
    assert!(timeout(SOON, events.next()).await.unwrap().is_none());
    assert_eq!(refusal(place.jars().get("a").await).code, 404);
}

/// Creates a child that blocks the deletion of its owner.
async fn child(place: &Place, name: &str, owner: &ConfigMap) {
    let mut child = map(name, json!({}));
    child.metadata.owner_references = serde_json::from_value(json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": owner.name_any(), "uid": owner.uid(), "blockOwnerDeletion": true,
    }]))
    .unwrap();
    place.maps().create(&PostParams::default(), &child).await.unwrap();
}

#[tokio::test]
async fn garbage_collector_follows_the_propagation_policy() {
    let server = ApiServer::new().collecting_garbage();
    let place = Place::new(Server::Fake(server)).await;
    let names = async || {
        let list = place.maps().list(&ListParams::default()).await.unwrap();
        list.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>()
    };
    for name in ["background", "foreground", "orphan"] {
        let owner = place.map(name, json!({})).await;
        child(&place, &format!("{name}-child"), &owner).await;
        let grandchild = place.maps().get(&format!("{name}-child")).await.unwrap();
        child(&place, &format!("{name}-grandchild"), &grandchild).await;
    }
    place
        .maps()
        .delete("background", &DeleteParams::background())
        .await
        .unwrap();
    place
        .maps()
        .delete("foreground", &DeleteParams::foreground())
        .await
        .unwrap();
    place
        .maps()
        .delete("orphan", &DeleteParams::orphan())
        .await
        .unwrap();
    eventually(SOON, || async {
        names().await == ["orphan-child", "orphan-grandchild"]
    })
    .await;
    let orphan = place.maps().get("orphan-child").await.unwrap();
    assert!(orphan.owner_references().is_empty());

    // In a foreground deletion, the owner must wait for a dependent with a finalizer.
    let owner = place.map("owner", json!({})).await;
    child(&place, "held", &owner).await;
    let finalizers = async |names: serde_json::Value| {
        let patch = Patch::Merge(json!({ "metadata": { "finalizers": names } }));
        place
            .maps()
            .patch("held", &PatchParams::default(), &patch)
            .await
            .unwrap();
    };
    finalizers(json!(["x.example.com/y"])).await;
    place
        .maps()
        .delete("owner", &DeleteParams::foreground())
        .await
        .unwrap();
    eventually(SOON, || async {
        let held = place.maps().get("held").await.unwrap();
        held.metadata.deletion_timestamp.is_some()
    })
    .await;
    assert_eq!(
        place.maps().get("owner").await.unwrap().finalizers(),
        ["foregroundDeletion"]
    );
    finalizers(json!(null)).await;
    eventually(SOON, || async {
        names().await == ["orphan-child", "orphan-grandchild"]
    })
    .await;

    let namespaces: Api<Namespace> = Api::all(place.client.clone());
    namespaces
        .delete(&place.namespace, &DeleteParams::default())
        .await
        .unwrap();
    eventually(SOON, || async {
        namespaces.get_opt(&place.namespace).await.unwrap().is_none()
    })
    .await;
    assert!(names().await.is_empty());
}

/// Watches must observe the same steps as in a cluster, in the same order.
#[tokio::test(start_paused = true)]
async fn garbage_collector_works_in_visible_steps() {
    let place = Place::new(Server::Fake(ApiServer::new().collecting_garbage())).await;
    let maps = place.maps();
    let version = maps.list(&ListParams::default()).await.unwrap();
    let version = version.metadata.resource_version.unwrap();
    let mut events = pin!(maps.watch(&WatchParams::default(), &version).await.unwrap());
    for (name, policy) in [
        ("orphan", DeleteParams::orphan()),
        ("foreground", DeleteParams::foreground()),
        ("background", DeleteParams::background()),
    ] {
        let owner = place.map(name, json!({})).await;
        child(&place, "a", &owner).await;
        child(&place, "b", &owner).await;
        maps.delete(name, &policy).await.unwrap();
        let mut seen = Vec::new();
        while let Ok(event) = timeout(Duration::from_secs(1), events.next()).await {
            let (change, map) = match event.unwrap().unwrap() {
                WatchEvent::Modified(map) => ("modified", map),
                WatchEvent::Deleted(map) => ("deleted", map),
                _ => continue,
            };
            seen.push(format!("{change} {}", map.name_any()));
        }
        let expected: &[&str] = match name {
            "orphan" => &["modified orphan", "modified a", "modified b", "deleted orphan"],
            "foreground" => &[
                "modified foreground",
                "deleted a",
                "deleted b",
                "deleted foreground",
            ],
            _ => &["deleted background", "deleted a", "deleted b"],
        };
        assert_eq!(seen, expected);
        if name == "orphan" {
            // These have no owner anymore, so the garbage collector won't delete them.
            maps.delete("a", &DeleteParams::default()).await.unwrap();
            maps.delete("b", &DeleteParams::default()).await.unwrap();
            for _ in 0..2 {
                events.next().await.unwrap().unwrap();
            }
        }
    }
}

/// While there's another owner, only the reference to the deleted one is removed.
#[tokio::test(start_paused = true)]
async fn object_is_collected_after_its_last_owner() {
    let place = Place::new(Server::Fake(ApiServer::new().collecting_garbage())).await;
    let maps = place.maps();
    let [first, second] = [
        place.map("first", json!({})).await,
        place.map("second", json!({})).await,
    ];
    let reference = |owner: &ConfigMap, api_version: &str| json!({ "apiVersion": api_version, "kind": "ConfigMap", "name": owner.name_any(), "uid": owner.uid() });
    for (name, references) in [
        ("shared", vec![reference(&first, "v1"), reference(&second, "v1")]),
        ("unknown", vec![reference(&first, "other.example.com/v1")]),
    ] {
        let mut map = map(name, json!({}));
        map.metadata.owner_references = serde_json::from_value(references.into()).unwrap();
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    let delete = async |name: &str, policy: DeleteParams| {
        maps.delete(name, &policy).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let list = maps.list(&ListParams::default()).await.unwrap();
        list.iter().map(ResourceExt::name_any).collect::<Vec<_>>()
    };
    // The server doesn't know the kind of the owner of `unknown`, so it never deletes `unknown`.
    let left = delete("first", DeleteParams::foreground()).await;
    assert_eq!(left, ["second", "shared", "unknown"]);
    let owners = maps.get("shared").await.unwrap().owner_references().to_vec();
    assert_eq!(
        owners.iter().map(|owner| &*owner.name).collect::<Vec<_>>(),
        ["second"]
    );
    assert_eq!(delete("second", DeleteParams::background()).await, ["unknown"]);
}

#[tokio::test]
async fn servers_share_no_state() {
    let (first, second) = (place().await.1, place().await.1);
    first.map("a", json!({})).await;
    let all: Api<ConfigMap> = Api::all(second.client.clone());
    assert!(all.list(&ListParams::default()).await.unwrap().items.is_empty());
    assert_eq!(
        first.namespace, second.namespace,
        "names are the same in every run"
    );
    eventually(SOON, || async { first.maps().get_opt("a").await.unwrap() }).await;
}

#[tokio::test(start_paused = true)]
async fn reads_that_accept_any_version_receive_the_past_for_its_time() {
    let (server, place) = place().await;
    place.map("a", json!({})).await;
    let past = server.version();
    place.map("b", json!({})).await;
    server.serve_past_of("", "configmaps", past, Duration::from_secs(2));

    let maps = place.maps();
    let names = async |params: &ListParams| {
        let list = maps.list(params).await.unwrap();
        let version = list.metadata.resource_version.unwrap_or_default();
        let names: Vec<_> = list.items.iter().map(ResourceExt::name_any).collect();
        (names.join(" "), version)
    };
    let any = ListParams::default().match_any();
    assert_eq!(names(&any).await, ("a".to_owned(), past.to_string()));
    assert_eq!(
        names(&ListParams::default()).await.0,
        "a b",
        "the most recent state"
    );

    let mut events = pin!(
        maps.watch(&WatchParams::default(), &past.to_string())
            .await
            .unwrap()
    );
    let mut next = async || timeout(SOON, events.next()).await.expect("an event").unwrap();
    let start = Instant::now();
    assert!(matches!(next().await, Ok(WatchEvent::Added(map)) if map.name_any() == "b"));
    assert_eq!(start.elapsed(), Duration::from_secs(2));
    assert_eq!(names(&any).await.0, "a b");

    server.serve_past_of("", "secrets", past, Duration::from_secs(2));
    assert_eq!(names(&any).await.0, "a b", "another kind is behind");
}

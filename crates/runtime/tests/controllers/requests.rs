//! Counts requests per object. The operator should only make the requests needed to write the
//! desired state.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::client::Body;
use kube::core::PartialObjectMeta;
use kube::{Client, ResourceExt};
use rbuilder::envtest::eventually;
use rbuilder::{Action, Controller, Ctx, Manager, ManagerArgs, Result, Selection, Watch};
use serde_json::json;

use crate::support::{
    Memo, MemoStatus, Operator, Place, SOON, Seen, Server, config_map, memo, on_both_servers,
};

on_both_servers!(
    reconcile_does_not_repeat_its_writes,
    resync_of_unchanged_objects_writes_nothing,
    changes_by_others_are_reverted,
    unchanged_children_watched_by_label_cost_no_request,
    unselected_children_of_another_controller_cost_no_request,
    secrets_are_applied_without_keeping_them,
    every_write_names_its_field_manager,
);

const MEMOS: usize = 40;

/// Counts requests by method and resource.
#[derive(Clone, Default)]
struct Requests(Arc<Mutex<BTreeMap<String, usize>>>);

impl Requests {
    fn client(&self, inner: Client) -> Client {
        let Self(counts) = self.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let resource = ["configmaps", "secrets", "status", "memos"]
                .into_iter()
                .find(|resource| request.uri().path().contains(resource));
            let name = format!("{} {}", request.method(), resource.unwrap_or("other"));
            *counts.lock().unwrap().entry(name).or_default() += 1;
            let inner = inner.clone();
            async move { inner.send(request).await }
        });
        Client::new(service, "default")
    }

    fn of(&self, name: &str) -> usize {
        self.0.lock().unwrap().get(name).copied().unwrap_or_default()
    }
}

/// Writes all objects that are missing from the caches.
async fn fill_in(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
    let (namespace, name) = (memo.namespace().unwrap_or_default(), memo.name_any());
    let copies = ctx.cached::<PartialObjectMeta<ConfigMap>>()?;
    if copies.named(&namespace, &name).is_none() {
        ctx.apply_owned(&*memo, config_map(&name, "1")).await?;
    }
    if memo.status.is_none() {
        let status = MemoStatus {
            copied: Some("1".to_owned()),
            ..MemoStatus::default()
        };
        ctx.apply_status(&*memo, status).await?;
    }
    ctx.note(&name);
    Ok(Action::await_change())
}

/// The watch delivers the first write while the second one is in flight, so the object is
/// reconciled again right away.
async fn reconcile_does_not_repeat_its_writes(server: Server) {
    let place = Place::new(server).await;
    let names: Vec<String> = (0..MEMOS).map(|number| format!("memo-{number}")).collect();
    for name in &names {
        place.create(memo(name, "1")).await;
    }
    let (requests, seen) = (Requests::default(), Seen::default());
    let args = ManagerArgs {
        watch_namespace: place.namespace.clone(),
        ..ManagerArgs::for_tests()
    };
    let controller = Controller::new(fill_in, seen.clone()).owns::<ConfigMap>();
    let manager = Manager::with_client("requests.example.com", requests.client(place.env.client()), args);
    let operator = Operator::start(manager.controller(controller));
    eventually(SOON, || async { names.iter().all(|name| seen.count(name) >= 2) }).await;
    operator.stop().await.unwrap();
    assert_eq!(requests.of("PATCH configmaps"), MEMOS);
    assert_eq!(requests.of("PATCH status"), MEMOS);
    assert!(requests.of("GET configmaps") <= 2, "a list and a watch");
}

/// Applies the copy every time, as most reconcile functions do. Records the text of the result.
async fn apply(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
    let text = memo.spec.text.clone().unwrap_or_default();
    let copy = ctx
        .apply_owned(&*memo, config_map(&memo.name_any(), &text))
        .await?;
    let copied = copy.data.and_then(|mut data| data.remove("text"));
    ctx.note(&format!("{}: {}", memo.name_any(), copied.unwrap_or_default()));
    Ok(Action::await_change())
}

async fn resync_of_unchanged_objects_writes_nothing(server: Server) {
    let place = Place::new(server).await;
    let names: Vec<String> = (0..MEMOS).map(|number| format!("memo-{number}")).collect();
    for name in &names {
        place.create(memo(name, "1")).await;
    }
    let args = ManagerArgs {
        watch_namespace: place.namespace.clone(),
        ..ManagerArgs::for_tests()
    };
    // Responses only have to be kept if the cache doesn't contain whole objects.
    for is_whole in [false, true] {
        let (requests, seen) = (Requests::default(), Seen::default());
        let controller = Controller::new(apply, seen.clone()).resync_every(Duration::from_millis(100));
        let controller = match is_whole {
            true => controller.watch(Watch::<ConfigMap>::owned()),
            false => controller.owns::<ConfigMap>(),
        };
        let client = requests.client(place.env.client());
        let manager = Manager::with_client("requests.example.com", client, args.clone());
        let operator = Operator::start(manager.controller(controller));
        let is_settled = |name: &String| seen.count(&format!("{name}: 1")) >= 5;
        eventually(SOON, || async { names.iter().all(is_settled) }).await;
        operator.stop().await.unwrap();
        // Nothing is remembered after a restart, so each apply is sent once.
        assert_eq!(requests.of("PATCH configmaps"), MEMOS, "whole: {is_whole}");
    }
}

async fn changes_by_others_are_reverted(server: Server) {
    let place = Place::new(server).await;
    place.create(memo("memo", "1")).await;
    let seen = Seen::default();
    let controller = Controller::new(apply, seen.clone())
        .owns::<ConfigMap>()
        .resync_every(Duration::from_millis(50));
    let operator = Operator::start(place.manager().controller(controller));
    let maps = place.api::<ConfigMap>();
    let text = async || maps.get_opt("memo").await.unwrap()?.data?.remove("text");
    eventually(SOON, || async { seen.count("memo: 1") >= 5 }).await;

    let edit = Patch::Merge(json!({ "data": { "text": "edited" } }));
    for round in 0..5 {
        let params = PatchParams::default();
        maps.patch("memo", &params, &edit).await.unwrap();
        eventually(SOON, || async { text().await.as_deref() == Some("1") }).await;
        maps.delete("memo", &DeleteParams::default()).await.unwrap();
        eventually(SOON, || async { text().await.as_deref() == Some("1") }).await;
        if let (Server::Fake(server), true) = (&place.env, round % 2 == 0) {
            server.expire_watches();
            maps.patch("memo", &params, &edit).await.unwrap();
            eventually(SOON, || async { text().await.as_deref() == Some("1") }).await;
        }
    }
    place.change_text("memo", "2").await;
    eventually(SOON, || async { text().await.as_deref() == Some("2") }).await;
    place.change_text("memo", "1").await;
    eventually(SOON, || async { text().await.as_deref() == Some("1") }).await;
    operator.stop().await.unwrap();
}

fn copies() -> Selection {
    Selection::all().labels("app.kubernetes.io/managed-by=memo")
}

fn labelled_copy(name: &str, text: &str) -> ConfigMap {
    let mut copy = config_map(name, text);
    let label = ("app.kubernetes.io/managed-by".to_owned(), "memo".to_owned());
    copy.metadata.labels = Some([label].into());
    copy
}

async fn apply_labelled(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
    let copy = labelled_copy(&memo.name_any(), "1");
    let copy = ctx.apply_owned(&*memo, copy).await?;
    let is_whole = copy.data.is_some_and(|data| data["text"] == "1");
    ctx.note(&format!("{}: {is_whole}", memo.name_any()));
    Ok(Action::await_change())
}

/// Unchanged children cost no requests, even if they're watched by label.
async fn unchanged_children_watched_by_label_cost_no_request(server: Server) {
    let place = Place::new(server).await;
    let names: Vec<String> = (0..MEMOS).map(|number| format!("memo-{number}")).collect();
    for name in &names {
        place.create(memo(name, "1")).await;
    }
    let args = ManagerArgs {
        watch_namespace: place.namespace.clone(),
        ..ManagerArgs::for_tests()
    };
    for is_whole in [false, true] {
        let (requests, seen) = (Requests::default(), Seen::default());
        let controller =
            Controller::new(apply_labelled, seen.clone()).resync_every(Duration::from_millis(100));
        let controller = match is_whole {
            true => controller.watch(Watch::<ConfigMap>::owned().selecting(copies())),
            false => controller.watch(Watch::<PartialObjectMeta<ConfigMap>>::owned().selecting(copies())),
        };
        let client = requests.client(place.env.client());
        let manager = Manager::with_client("requests.example.com", client, args.clone());
        let operator = Operator::start(manager.controller(controller));
        let is_settled = |name: &String| seen.count(&format!("{name}: true")) >= 5;
        eventually(SOON, || async { names.iter().all(is_settled) }).await;
        operator.stop().await.unwrap();
        assert_eq!(requests.of("PATCH configmaps"), MEMOS, "whole: {is_whole}");
        assert!(
            requests.of("GET configmaps") <= 2,
            "a list and a watch, whole: {is_whole}"
        );
    }
}

/// Creates the copy if it doesn't exist. Another controller caches a selection of the same kind.
async fn keep_copy(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
    let name = memo.name_any();
    let written = ctx
        .create_or_update_owned(&*memo, config_map(&name, "1"), |_| {})
        .await?;
    ctx.create_owned(&*memo, config_map(&format!("{name}-once"), "1"))
        .await?;
    ctx.note(&format!("{name}: {}", written.is_changed()));
    Ok(Action::await_change())
}

async fn unselected_children_of_another_controller_cost_no_request(server: Server) {
    let place = Place::new(server).await;
    let names: Vec<String> = (0..MEMOS).map(|number| format!("memo-{number}")).collect();
    for name in &names {
        place.create(memo(name, "1")).await;
    }
    let args = ManagerArgs {
        watch_namespace: place.namespace.clone(),
        ..ManagerArgs::for_tests()
    };
    let (requests, seen) = (Requests::default(), Seen::default());
    async fn ignore(_: Arc<ConfigMap>, _: Ctx<()>) -> Result {
        Ok(Action::await_change())
    }
    let keeper = Controller::new(keep_copy, seen.clone())
        .watch(Watch::<ConfigMap>::owned())
        .resync_every(Duration::from_millis(100));
    let by_label = Controller::new(ignore, ()).selecting(copies()).named("labelled");
    let by_field = Selection::all().fields("metadata.name=other");
    let by_field = Controller::new(ignore, ()).selecting(by_field).named("named");
    let client = requests.client(place.env.client());
    let manager = Manager::with_client("requests.example.com", client, args);
    let manager = manager
        .controller(keeper)
        .controller(by_label)
        .controller(by_field);
    let operator = Operator::start(manager);
    let is_settled = |name: &String| seen.count(&format!("{name}: false")) >= 5;
    eventually(SOON, || async { names.iter().all(is_settled) }).await;
    operator.stop().await.unwrap();
    assert_eq!(requests.of("POST configmaps"), 2 * MEMOS);
    // Each of the three caches has a list and a watch, and each object is looked up before being
    // created.
    let gets = requests.of("GET configmaps");
    assert!(gets <= 6 + MEMOS, "{gets} requests");
}

/// Records whether the result contains any data.
async fn apply_secret(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
    let mut secret = Secret::default();
    secret.metadata.name = Some(memo.name_any());
    let data = [("password".to_owned(), ByteString(b"hunter2".to_vec()))];
    secret.data = Some(data.into());
    let applied = ctx.apply_owned(&*memo, secret).await?;
    let is_whole = applied.data.is_some_and(|data| data["password"].0 == b"hunter2");
    ctx.note(&format!("{}: {is_whole}", memo.name_any()));
    Ok(Action::await_change())
}

/// Only a hash of the values is kept, unless there is a cache of whole Secrets, which must be
/// requested explicitly.
async fn secrets_are_applied_without_keeping_them(server: Server) {
    let place = Place::new(server).await;
    place.create(memo("memo", "1")).await;
    let args = ManagerArgs {
        watch_namespace: place.namespace.clone(),
        ..ManagerArgs::for_tests()
    };
    for is_whole in [false, true] {
        let (requests, seen) = (Requests::default(), Seen::default());
        let controller = Controller::new(apply_secret, seen.clone()).resync_every(Duration::from_millis(50));
        let controller = match is_whole {
            true => controller.watch(Watch::<Secret>::owned()),
            false => controller.owns::<Secret>(),
        };
        let client = requests.client(place.env.client());
        let manager = Manager::with_client("requests.example.com", client, args.clone());
        let operator = Operator::start(manager.controller(controller));
        eventually(SOON, || async { seen.count("memo: true") >= 5 }).await;
        operator.stop().await.unwrap();
        let (sent, reconciles) = (requests.of("PATCH secrets"), seen.count("memo: true"));
        assert_eq!(sent, 1, "whole: {is_whole}, {reconciles} reconciles");
    }
}

/// Calls every method that writes. The cleanup succeeds, so the finalizer is removed.
async fn write_in_every_way(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
    let name = memo.name_any();
    ctx.apply_owned(&*memo, config_map(&name, "1")).await?;
    ctx.create_owned(&*memo, config_map(&format!("{name}-created"), "1"))
        .await?;
    for text in ["1", "2"] {
        let updated = config_map(&format!("{name}-updated"), text);
        let update = |map: &mut ConfigMap| map.data.clone_from(&config_map("", text).data);
        ctx.create_or_update_owned(&*memo, updated, update).await?;
    }
    ctx.apply_status(&*memo, MemoStatus::default()).await?;
    for _ in 0..2 {
        ctx.normal(&*memo, "Written", "Write", "written in every way");
    }
    ctx.note(&name);
    Ok(Action::await_change())
}

/// Without a field manager, the API server uses the beginning of the `User-Agent`.
async fn every_write_names_its_field_manager(server: Server) {
    let place = Place::new(server).await;
    place.create(memo("memo", "1")).await;
    let writes = Arc::new(Mutex::new(Vec::new()));
    let (recorded, inner) = (Arc::clone(&writes), place.env.client());
    let service = tower::service_fn(move |request: http::Request<Body>| {
        if ["POST", "PUT", "PATCH"].contains(&request.method().as_str()) {
            let line = format!("{} {}", request.method(), request.uri());
            recorded.lock().unwrap().push(line);
        }
        let inner = inner.clone();
        async move { inner.send(request).await }
    });
    let args = ManagerArgs {
        watch_namespace: place.namespace.clone(),
        leader_elect: true,
        leader_election_namespace: Some(place.namespace.clone()),
        ..ManagerArgs::for_tests()
    };
    let client = Client::new(service, "default");
    let seen = Seen::default();
    let controller = Controller::new(write_in_every_way, seen.clone())
        .finalizer("controllers.example.com/memo", async |_, _: Ctx<Seen>| {
            Ok::<_, rbuilder::Error>(Action::await_change())
        });
    let manager = Manager::with_client("requests.example.com", client, args);
    let operator = Operator::start(manager.controller(controller));
    eventually(SOON, || async { seen.count("memo") > 0 }).await;
    let memos = place.api::<Memo>();
    memos.delete("memo", &DeleteParams::default()).await.unwrap();
    eventually(SOON, || async { memos.get_opt("memo").await.unwrap().is_none() }).await;
    operator.stop().await.unwrap();

    let writes = writes.lock().unwrap();
    for written in [
        "/events?",
        "/memos/memo?",
        "/memos/memo/status?",
        "/configmaps?",
        "/configmaps/",
        "/leases?",
        "/leases/",
    ] {
        assert!(
            writes.iter().any(|line| line.contains(written)),
            "{written}: {writes:#?}"
        );
    }
    let is_named = |line: &&String| {
        let of_election = line.contains("/leases") || line.contains("rbuilder-leader-election");
        let manager = if of_election {
            "rbuilder-leader-election"
        } else {
            "memo"
        };
        line.contains(&format!("fieldManager={manager}"))
    };
    let unnamed: Vec<_> = writes.iter().filter(|line| !is_named(line)).collect();
    assert!(unnamed.is_empty(), "{unnamed:#?}");
}

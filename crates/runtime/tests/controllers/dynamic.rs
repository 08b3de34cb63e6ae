//! Dynamic kinds as owners and as children, with the same features as typed objects.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PostParams};
use kube::client::Body;
use kube::core::GroupVersionKind;
use kube::{Api, ResourceExt};
use rbuilder::testing::eventually;
use rbuilder::{
    Action, Controller, Ctx, DynamicKind, Error, ObjectRef, OwnershipError, Result, Watch, Watches, Written,
    set_controller_reference, set_owner_reference,
};
use serde_json::json;
use tower::util::MapRequestLayer;

use crate::support::{Memo, Operator, Place, SOON, Seen, Server, config_map, memo, on_both_servers};

on_both_servers!(
    dynamic_owner_has_typed_children,
    typed_owner_has_dynamic_children,
    every_write_method_accepts_dynamic_objects,
    served_kind_is_discovered_once,
    scopes_of_dynamic_kinds_are_checked,
    set_watches_replaces_the_previous_watches,
);

fn memo_kind() -> GroupVersionKind {
    GroupVersionKind::gvk("controllers.example.com", "v1", "Memo")
}

fn map_kind() -> GroupVersionKind {
    GroupVersionKind::gvk("", "v1", "ConfigMap")
}

async fn memos(place: &Place) -> DynamicKind {
    DynamicKind::discover(&place.env.client(), &memo_kind())
        .await
        .unwrap()
}

fn maps() -> DynamicKind {
    DynamicKind::namespaced(ApiResource::erase::<ConfigMap>(&()))
}

/// Same as `support::copy`, but for `DynamicObject`.
async fn copy(memo: Arc<DynamicObject>, ctx: Ctx<Seen>) -> Result {
    ctx.note(&memo.name_any());
    let text = memo.data["spec"]["text"].as_str().unwrap_or_default();
    let copy = ctx
        .apply_owned(&*memo, config_map(&memo.name_any(), text))
        .await?;
    let copied = copy.data.and_then(|data| data.get("text").cloned());
    ctx.apply_status(&*memo, json!({ "copied": copied, "conditions": [] }))
        .await?;
    ctx.normal(&*memo, "Copied", "Copy", "the text is in place");
    Ok(Action::await_change())
}

async fn dynamic_owner_has_typed_children(server: Server) {
    let place = Place::new(server).await;
    let owner = place.create(memo("note", "1")).await;
    let seen = Seen::default();
    let controller = Controller::dynamic(&memos(&place).await, copy, seen.clone()).owns::<ConfigMap>();
    let operator = Operator::start(place.manager().controller(controller));
    let status = async || place.api::<Memo>().get_status("note").await.unwrap().status;
    eventually(SOON, || async {
        status()
            .await
            .is_some_and(|status| status.copied.as_deref() == Some("1"))
    })
    .await;

    let map = place.api::<ConfigMap>().get("note").await.unwrap();
    let references = map.metadata.owner_references.unwrap();
    assert_eq!(
        (&*references[0].kind, &*references[0].api_version),
        ("Memo", "controllers.example.com/v1")
    );
    assert_eq!(
        (Some(&references[0].uid), references[0].controller),
        (owner.metadata.uid.as_ref(), Some(true))
    );
    eventually(SOON, || async {
        let events = place.api::<Event>().list(&ListParams::default()).await.unwrap();
        events.iter().any(|event| {
            let regarding = event.regarding.clone().unwrap_or_default();
            event.reason.as_deref() == Some("Copied")
                && (regarding.kind.as_deref(), regarding.uid) == (Some("Memo"), owner.metadata.uid.clone())
        })
    })
    .await;

    // When a child changes, its owner is reconciled and applies the child again.
    place
        .api::<ConfigMap>()
        .delete("note", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    eventually(SOON, || async {
        place.copied("note").await.as_deref() == Some("1")
    })
    .await;
    operator.stop().await.unwrap();
}

/// Counts reconciles, and knows the kind of the children.
struct Children {
    seen: Seen,
    maps: DynamicKind,
}

async fn typed_owner_has_dynamic_children(server: Server) {
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Children>) -> Result {
        let before = ctx.cached_dynamic(&ctx.maps)?.by("text", "1")?.len();
        let child = ctx
            .maps
            .object(memo.name_any())
            .data(json!({ "data": { "text": memo.spec.text } }));
        let child = ctx.apply_owned(&*memo, child).await?;
        assert_eq!(child.data["data"]["text"], "1");
        let seen = ctx.cached_dynamic(&ctx.maps)?.by("text", "1")?;
        assert_eq!(seen.len(), 1, "own writes are seen at once");
        assert_eq!(seen[0].types, child.types);
        ctx.seen.note(if before == 0 { "created" } else { "found" });
        Ok(Action::await_change())
    }
    let text_of = |map: &DynamicObject| {
        let text = map.data["data"]["text"].as_str();
        text.map(str::to_owned).into_iter().collect()
    };
    let place = Place::new(server).await;
    let (seen, maps) = (Seen::default(), maps());
    let state = Children {
        seen: seen.clone(),
        maps: maps.clone(),
    };
    let controller = Controller::new(reconcile, state)
        .index_dynamic(&maps, "text", text_of)
        .owns_dynamic(&maps);
    let operator = Operator::start(place.manager().controller(controller));
    place.create(memo("note", "1")).await;
    eventually(SOON, || async {
        seen.count("created") == 1 && seen.count("found") >= 1
    })
    .await;
    assert_eq!(place.copied("note").await.as_deref(), Some("1"));
    operator.stop().await.unwrap();
}

async fn every_write_method_accepts_dynamic_objects(server: Server) {
    async fn reconcile(memo: Arc<DynamicObject>, ctx: Ctx<Children>) -> Result {
        if ctx.seen.count("done") > 0 {
            return Ok(Action::await_change());
        }
        let child = |name: &str| ctx.maps.object(name);
        let cached = |name: &str| -> Result<_> {
            let namespace = memo.namespace().unwrap();
            Ok(ctx.cached_dynamic(&ctx.maps)?.named(&namespace, name))
        };

        let created = ctx.create_owned(&*memo, child("job")).await?;
        assert_eq!(ctx.create_owned(&*memo, child("job")).await?.uid(), created.uid());
        let written = ctx
            .create_or_update_owned(&*memo, child("sum"), |map| map.data["data"] = json!({ "a": "1" }))
            .await?;
        assert!(matches!(written, Written::Created(_)));
        let written = ctx
            .create_or_update(written.into_object(), |map| map.data["data"]["b"] = "2".into())
            .await?;
        assert!(
            matches!(&written, Written::Updated(map) if map.data["data"] == json!({ "a": "1", "b": "2" }))
        );
        assert_eq!(cached("sum")?.unwrap().data["data"]["b"], "2");

        let unowned = child("free").within(&memo.namespace().unwrap());
        let unowned = ctx.apply(unowned.data(json!({ "data": { "a": "1" } }))).await?;
        let again = ctx.apply(
            child("free")
                .within(&memo.namespace().unwrap())
                .data(json!({ "data": { "a": "1" } })),
        );
        assert_eq!(again.await?.resource_version(), unowned.resource_version());
        let patch = Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
        assert_eq!(ctx.patch(&unowned, &patch).await?.labels()["a"], "b");
        assert_eq!(cached("free")?.unwrap().labels()["a"], "b");

        let mut shared = child("shared");
        set_controller_reference(&*memo, &mut shared)?;
        set_owner_reference(&unowned, &mut shared)?;
        let shared = ctx.apply(shared).await?;
        assert_eq!(shared.owner_references().len(), 2);
        assert!(ctx.delete(&shared).await?.is_none());
        assert!(cached("shared")?.is_none(), "own deletions are seen at once");

        let status = Patch::Merge(json!({ "status": { "copied": "by patch", "conditions": [] } }));
        let patched = ctx.patch_status(&*memo, &status).await?;
        assert_eq!(patched.data["status"]["copied"], "by patch");
        ctx.warning(&patched, "Written", "Write", "in every way");
        ctx.seen.note("done");
        Ok(Action::await_change())
    }
    let place = Place::new(server).await;
    place.create(memo("note", "1")).await;
    let (seen, maps) = (Seen::default(), maps());
    let state = Children {
        seen: seen.clone(),
        maps: maps.clone(),
    };
    let controller = Controller::dynamic(&memos(&place).await, reconcile, state).reads_dynamic(&maps);
    let controller = controller.recover_panics(false);
    let mut operator = Operator::start(place.manager().controller(controller));
    tokio::select! {
        ended = &mut operator.ended => panic!("{ended:?}"),
        () = eventually(SOON, || async { seen.count("done") == 1 }) => {}
    }
    operator.stop().await.unwrap();
}

/// Counts requests by path.
#[derive(Clone, Default)]
struct Paths(Arc<Mutex<HashMap<String, usize>>>);

impl Paths {
    fn layer(&self) -> MapRequestLayer<impl Fn(Request<Body>) -> Request<Body> + Clone + Send + 'static> {
        let paths = self.clone();
        MapRequestLayer::new(move |request: Request<Body>| {
            let path = request.uri().path().to_owned();
            *paths.0.lock().unwrap().entry(path).or_default() += 1;
            request
        })
    }

    fn count(&self, path: &str) -> usize {
        self.0.lock().unwrap().get(path).copied().unwrap_or_default()
    }
}

/// A reconcile can use kinds other than those of the controller and its watches. Each kind is
/// looked up once.
async fn served_kind_is_discovered_once(server: Server) {
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
        let maps = ctx.discover(&map_kind()).await?;
        ctx.apply_owned(&*memo, maps.object(memo.name_any())).await?;
        let unserved = GroupVersionKind::gvk("controllers.example.com", "v1", "Memoo");
        let error = ctx.discover(&unserved).await.unwrap_err();
        let expected =
            "the API server does not serve kind `Memoo` in controllers.example.com/v1; is its CRD installed?";
        assert_eq!(error.to_string(), expected);
        let untyped = DynamicObject::new("untyped", maps.resource());
        let error = ctx
            .apply(DynamicObject {
                types: None,
                ..untyped
            })
            .await
            .unwrap_err();
        assert!(
            error.is_terminal() && error.to_string().contains("`DynamicKind::object`"),
            "{error}"
        );
        ctx.note(&memo.name_any());
        Ok(Action::await_change())
    }
    let place = Place::new(server).await;
    for name in ["a", "b", "c"] {
        place.create(memo(name, "1")).await;
    }
    let (seen, paths) = (Seen::default(), Paths::default());
    let controller = Controller::new(reconcile, seen.clone()).concurrency(1);
    let manager = place.manager().client_layer(paths.layer());
    let kind = manager.discover(&memo_kind()).await.unwrap();
    assert_eq!(
        (kind.resource().plural.as_str(), kind.is_namespaced()),
        ("memos", true)
    );
    let operator = Operator::start(manager.controller(controller));
    eventually(SOON, || async {
        ["a", "b", "c"].iter().all(|name| seen.count(name) == 1)
    })
    .await;
    assert_eq!(paths.count("/api/v1"), 1);
    // A kind that isn't served is looked up every time, since its CRD may have been installed.
    assert_eq!(paths.count("/apis/controllers.example.com/v1"), 4);
    operator.stop().await.unwrap();
}

/// A cluster-scoped object can't have an owner in a namespace.
async fn scopes_of_dynamic_kinds_are_checked(server: Server) {
    let place = Place::new(server).await;
    let owner = place.create(memo("note", "1")).await;
    let ctx = Ctx::new(place.env.client(), "test", ());
    let namespaces = ctx
        .discover(&GroupVersionKind::gvk("", "v1", "Namespace"))
        .await
        .unwrap();
    assert!(!namespaces.is_namespaced());
    let check = |error: Error, expected: &str| {
        assert!(error.downcast_ref::<OwnershipError>().is_some(), "{error}");
        assert!(error.to_string().starts_with(expected), "{error}");
    };
    let refused = ctx.apply_owned(&owner, namespaces.object("mine")).await;
    let note = format!("Memo {}/note", place.namespace);
    check(
        refused.unwrap_err(),
        &format!("{note} cannot own Namespace mine: an owner must be"),
    );
    let elsewhere = maps().object("mine").within("default");
    let refused = ctx.create_owned(&owner, elsewhere.clone()).await;
    check(
        refused.unwrap_err(),
        &format!("{note} cannot own ConfigMap default/mine: an owner must be"),
    );
    // A dynamic owner without a namespace is cluster-scoped, so it can own any object.
    let namespace = Api::<DynamicObject>::all_with(place.env.client(), namespaces.resource());
    let namespace = namespace.get(&place.namespace).await.unwrap();
    let child = maps().object("of-namespace").within(&place.namespace);
    let owned = ctx.apply_owned(&namespace, child).await.unwrap();
    assert_eq!(owned.owner_references()[0].kind, "Namespace");
    let posted = ctx
        .api_dynamic(&maps(), &owner)
        .create(&PostParams::default(), &maps().object("posted"))
        .await;
    assert_eq!(posted.unwrap().namespace(), Some(place.namespace.clone()));
}

/// Missing watches are started, and those that left the set are stopped. The others must not be
/// affected.
async fn set_watches_replaces_the_previous_watches(server: Server) {
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
        let mut watches = Watches::new();
        let text = memo.spec.text.clone().unwrap_or_default();
        for kind in text.split(' ').filter(|kind| !kind.is_empty()) {
            let found = ctx.discover(&GroupVersionKind::gvk("", "v1", kind)).await?;
            let note = |object: &DynamicObject, ctx: &Ctx<Seen>| {
                ctx.note(&object.name_any());
                Vec::<ObjectRef<Memo>>::new()
            };
            watches = watches.with(kind, Watch::mapped_dynamic(&found, note));
        }
        ctx.set_watches(watches)?;
        eventually(SOON, || async { ctx.watches().iter().all(|watch| watch.synced) }).await;
        let active: Vec<_> = ctx.watches().into_iter().map(|watch| watch.kind).collect();
        ctx.note(&format!("{text}: {}", active.join(", ")));
        Ok(Action::await_change())
    }
    let place = Place::new(server).await;
    let create = async |name: &str| {
        let map = config_map(name, "");
        place
            .api::<ConfigMap>()
            .create(&PostParams::default(), &map)
            .await
            .unwrap();
    };
    create("first").await;
    place.create(memo("note", "ConfigMap Secret")).await;
    let seen = Seen::default();
    let controller = Controller::new(reconcile, seen.clone());
    let operator = Operator::start(place.manager().controller(controller));
    let eventually_seen = async |what: &str| {
        eventually(SOON, || async { seen.count(what) >= 1 }).await;
    };
    eventually_seen("ConfigMap Secret: ConfigMap (v1), Secret (v1)").await;
    place.change_text("note", "ConfigMap Service").await;
    eventually_seen("ConfigMap Service: ConfigMap (v1), Service (v1)").await;
    assert_eq!(seen.count("first"), 1, "the watch of ConfigMaps went on");
    place.change_text("note", "Service").await;
    eventually_seen("Service: Service (v1)").await;
    create("unwatched").await;
    place.change_text("note", "").await;
    eventually_seen(": ").await;
    assert_eq!((seen.count("first"), seen.count("unwatched")), (1, 0));
    operator.stop().await.unwrap();
}

//! Watching, caching and reading objects.

use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{GroupVersionKind, ObjectMeta, PartialObjectMeta, Selector};
use kube::{Api, ResourceExt};
use rbuilder::testing::eventually;
use rbuilder::{
    Action, Cached, Controller, Ctx, DynamicKind, ManagerError, ObjectRef, Result, Selection, Watch,
};
use serde_json::json;

use crate::support::{Memo, Operator, Place, SOON, Seen, Server, config_map, copy, memo, on_both_servers};

on_both_servers!(
    caches_are_read_by_name_label_and_index,
    reading_an_unwatched_kind_is_an_error_with_advice,
    only_selected_objects_are_reconciled_and_cached,
    dynamic_kinds_are_reconciled_and_watched,
    large_metadata_is_dropped_unless_configured,
    owned_kinds_are_cached_as_metadata,
    operator_waits_for_a_missing_crd,
    stopping_does_not_wait_for_a_cache,
    manager_hands_out_its_caches,
);

async fn look(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
    ctx.note(&memo.name_any());
    Ok(Action::await_change())
}

fn secret(name: &str, label: &str) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some([("memo".to_owned(), label.to_owned())].into()),
            ..ObjectMeta::default()
        },
        ..Secret::default()
    }
}

/// Texts that a controller has read from its caches, most recent first.
type Read = Arc<Mutex<Vec<String>>>;

/// Guarantee 14: controllers can look up objects in a cache by name, index and label.
async fn caches_are_read_by_name_label_and_index(server: Server) {
    let place = Place::new(server).await;
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Read>) -> Result {
        let secrets = ctx.cached::<Secret>()?;
        let namespace = memo.namespace().unwrap_or_default();
        let names = |found: Vec<Arc<Secret>>| {
            found
                .iter()
                .map(|secret| secret.name_any())
                .collect::<Vec<_>>()
                .join("+")
        };
        let selector: Selector = [("memo".to_owned(), "other".to_owned())].into_iter().collect();
        let text = format!(
            "indexed {} labelled {} named {} missing {} here {}",
            names(secrets.by("memo", &memo.name_any())?),
            names(secrets.labelled(&namespace, &selector)),
            secrets.named(&namespace, "b").is_some(),
            secrets.get(&ObjectRef::new("a").within("elsewhere")).is_some(),
            secrets.in_namespace(&namespace).len(),
        );
        ctx.lock().unwrap().push(text);
        Ok(Action::await_change())
    }
    for (name, label) in [("b", "mine"), ("a", "mine"), ("c", "other")] {
        place
            .api::<Secret>()
            .create(&PostParams::default(), &secret(name, label))
            .await
            .unwrap();
    }
    place.create(memo("mine", "")).await;
    let read = Read::default();
    let by_label = |secret: &Secret| secret.labels().get("memo").cloned().into_iter().collect();
    let to_memo = |secret: &Secret, _: &Ctx<Read>| {
        let memo = secret.labels().get("memo").map(|name| ObjectRef::new(name));
        memo.map(|memo| memo.within(&secret.namespace().unwrap_or_default()))
            .into_iter()
            .collect()
    };
    let controller = Controller::new(reconcile, read.clone())
        .index::<Secret>("memo", by_label)
        .watches(to_memo);
    let operator = Operator::start(place.manager().controller(controller));
    let says = |expected: &'static str| {
        let read = read.clone();
        async move {
            eventually(SOON, || async {
                read.lock().unwrap().last().is_some_and(|last| last == expected)
            })
            .await;
        }
    };
    says("indexed a+b labelled c named true missing false here 3").await;
    // Each change updates the index.
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "memo": "other" } } }));
    place
        .api::<Secret>()
        .patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    says("indexed b labelled a+c named true missing false here 3").await;
    place
        .api::<Secret>()
        .delete("b", &DeleteParams::default())
        .await
        .unwrap();
    says("indexed  labelled a+c named false missing false here 2").await;
    operator.stop().await.unwrap();
}

async fn reading_an_unwatched_kind_is_an_error_with_advice(server: Server) {
    let place = Place::new(server).await;
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Read>) -> Result {
        let said = match memo.name_any().as_str() {
            "kind" => ctx.cached::<ConfigMap>().map(|_| ()),
            _ => ctx.cached::<Memo>()?.by("owner", "x").map(|_| ()),
        };
        ctx.lock().unwrap().push(said.unwrap_err().to_string());
        Ok(Action::await_change())
    }
    let read = Read::default();
    let operator = Operator::start(
        place
            .manager()
            .controller(Controller::new(reconcile, read.clone())),
    );
    let check = async |name: &str, expected: &str| {
        place.create(memo(name, "")).await;
        eventually(SOON, || async {
            read.lock().unwrap().iter().any(|said| said == expected)
        })
        .await;
    };
    check(
        "kind",
        "no cache for ConfigMap (v1): add `.reads::<ConfigMap>()` to the controller, or query the API server with `ctx.api`",
    )
    .await;
    check(
        "index",
        "the cache of Memo has no index `owner`; add it with `.index::<Memo>(\"owner\", …)`",
    )
    .await;
    operator.stop().await.unwrap();
}

/// The API server selects the objects.
async fn only_selected_objects_are_reconciled_and_cached(server: Server) {
    let place = Place::new(server).await;
    let mut ours = memo("ours", "");
    ours.labels_mut().insert("shard".to_owned(), "1".to_owned());
    place.create(ours).await;
    place.create(memo("theirs", "")).await;
    let kept: Arc<Mutex<usize>> = Arc::default();
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<(Seen, Arc<Mutex<usize>>)>) -> Result {
        let (seen, kept) = &*ctx;
        *kept.lock().unwrap() = ctx.cached_selection::<Memo>(&shard())?.len();
        seen.note(&memo.name_any());
        Ok(Action::await_change())
    }
    fn shard() -> Selection {
        Selection::all().labels("shard=1")
    }
    let seen = Seen::default();
    let controller = Controller::new(reconcile, (seen.clone(), kept.clone())).selecting(shard());
    let all = Seen::default();
    let manager = place
        .manager()
        .controller(controller)
        .controller(Controller::new(look, all.clone()).named("all"));
    let operator = Operator::start(manager);
    eventually(SOON, || async {
        seen.count("ours") > 0 && all.count("ours") > 0 && all.count("theirs") > 0
    })
    .await;
    assert_eq!((seen.count("theirs"), *kept.lock().unwrap()), (0, 1));
    // Removing the label looks like a deletion to the controller.
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "shard": null } } }));
    place
        .api::<Memo>()
        .patch("ours", &PatchParams::default(), &patch)
        .await
        .unwrap();
    place.create(memo("more", "")).await;
    eventually(SOON, || async { all.count("ours") > 1 && all.count("more") > 0 }).await;
    assert_eq!(seen.count("more"), 0);
    operator.stop().await.unwrap();
}

/// Dynamic kinds work like all others.
async fn dynamic_kinds_are_reconciled_and_watched(server: Server) {
    let place = Place::new(server).await;
    let gvk = GroupVersionKind::gvk("controllers.example.com", "v1", "Memo");
    let memos = DynamicKind::discover(&place.env.client(), &gvk).await.unwrap();
    assert_eq!(memos.resource().plural, "memos");
    let maps = DynamicKind::namespaced(ApiResource::erase::<ConfigMap>(&()));
    async fn reconcile(memo: Arc<DynamicObject>, ctx: Ctx<(Seen, DynamicKind)>) -> Result {
        let (seen, kind) = &*ctx;
        let known = ctx
            .cached_dynamic(kind)?
            .named(&memo.namespace().unwrap_or_default(), &memo.name_any());
        seen.note(&format!("{} {}", memo.name_any(), known.is_some()));
        Ok(Action::await_change())
    }
    async fn cleanup(memo: Arc<DynamicObject>, ctx: Ctx<(Seen, DynamicKind)>) -> Result {
        ctx.0.note(&format!("{} cleaned", memo.name_any()));
        Ok(Action::await_change())
    }
    let seen = Seen::default();
    let dynamic = Controller::dynamic(&memos, reconcile, (seen.clone(), memos.clone()))
        .finalizer("controllers.example.com/dynamic", cleanup)
        .watch(Watch::owned_dynamic(&maps));
    let manager = place
        .manager()
        .controller(dynamic)
        .controller(Controller::new(copy, Seen::default()).named("copier"));
    let operator = Operator::start(manager);
    place.create(memo("note", "1")).await;
    eventually(SOON, || async {
        seen.count("note true") > 0 && place.copied("note").await.is_some()
    })
    .await;
    let before = seen.count("note true");
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "touched": "yes" } } }));
    place
        .api::<ConfigMap>()
        .patch("note", &PatchParams::default(), &patch)
        .await
        .unwrap();
    eventually(SOON, || async { seen.count("note true") > before }).await;
    place
        .api::<Memo>()
        .delete("note", &DeleteParams::default())
        .await
        .unwrap();
    eventually(SOON, || async {
        seen.count("note cleaned") > 0 && place.api::<Memo>().get_opt("note").await.unwrap().is_none()
    })
    .await;
    operator.stop().await.unwrap();
}

/// By default, caches drop large metadata that is rarely needed.
async fn large_metadata_is_dropped_unless_configured(server: Server) {
    let place = Place::new(server).await;
    let mut note = memo("note", "");
    let last_applied = "kubectl.kubernetes.io/last-applied-configuration";
    note.annotations_mut()
        .insert(last_applied.to_owned(), "{}".to_owned());
    note.annotations_mut()
        .insert("other".to_owned(), "kept".to_owned());
    place.create(note).await;
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Read>) -> Result {
        let managed = memo.metadata.managed_fields.is_some();
        ctx.lock()
            .unwrap()
            .push(format!("{managed} {}", memo.annotations().len()));
        Ok(Action::await_change())
    }
    for (keeps, expected) in [(false, "false 1"), (true, "true 2")] {
        let read = Read::default();
        let mut manager = place
            .manager()
            .controller(Controller::new(reconcile, read.clone()));
        if keeps {
            manager = manager.keep_managed_fields().keep_last_applied();
        }
        let operator = Operator::start(manager);
        eventually(SOON, || async { !read.lock().unwrap().is_empty() }).await;
        assert_eq!(read.lock().unwrap()[0], expected);
        operator.stop().await.unwrap();
    }
}

/// Only metadata is watched, so the process never receives the contents.
async fn owned_kinds_are_cached_as_metadata(server: Server) {
    let place = Place::new(server).await;
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Read>) -> Result {
        ctx.apply_owned(&*memo, config_map(&memo.name_any(), "x")).await?;
        let kept = ctx.cached::<PartialObjectMeta<ConfigMap>>()?;
        let kept = kept.named(&memo.namespace().unwrap_or_default(), &memo.name_any());
        let types = kept.and_then(|kept| kept.types.clone()).map(|types| types.kind);
        ctx.lock().unwrap().extend(types);
        assert!(ctx.cached::<ConfigMap>().is_err());
        Ok(Action::await_change())
    }
    let read = Read::default();
    let controller = Controller::new(reconcile, read.clone()).owns::<ConfigMap>();
    let operator = Operator::start(place.manager().controller(controller));
    place.create(memo("note", "")).await;
    eventually(SOON, || async { !read.lock().unwrap().is_empty() }).await;
    assert_eq!(read.lock().unwrap()[0], "PartialObjectMetadata");
    operator.stop().await.unwrap();
}

/// Guarantee 8: if a kind is not served, the operator waits until its CRD is installed.
async fn operator_waits_for_a_missing_crd(server: Server) {
    let place = Place::new(server).await;
    let late = DynamicKind::namespaced(ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk(&format!("{}.example.com", place.namespace), "v1", "Late"),
        "lates",
    ));
    async fn reconcile(late: Arc<DynamicObject>, ctx: Ctx<Seen>) -> Result {
        ctx.note(&late.name_any());
        Ok(Action::await_change())
    }
    let seen = Seen::default();
    let operator = Operator::start(place.manager().controller(Controller::dynamic(
        &late,
        reconcile,
        seen.clone(),
    )));
    let group = &late.resource().group;
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("lates.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": { "plural": "lates", "singular": "late", "kind": "Late" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } } }],
        },
    });
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let crds: Api<
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    > = Api::all(place.env.client());
    let crd = serde_json::from_value(crd).unwrap();
    crds.create(&PostParams::default(), &crd).await.unwrap();
    let objects: Api<DynamicObject> =
        Api::namespaced_with(place.env.client(), &place.namespace, late.resource());
    eventually(SOON, || async {
        let object = DynamicObject::new("first", late.resource());
        let created = objects.create(&PostParams::default(), &object).await;
        created.is_ok() || matches!(created, Err(kube::Error::Api(status)) if status.is_already_exists())
    })
    .await;
    eventually(SOON, || async { seen.count("first") > 0 }).await;
    operator.stop().await.unwrap();
    crds.delete(&format!("lates.{group}"), &DeleteParams::default())
        .await
        .unwrap();
}

/// A manager stopped while waiting for a cache exits immediately.
async fn stopping_does_not_wait_for_a_cache(server: Server) {
    let place = Place::new(server).await;
    let ghost = DynamicKind::namespaced(ApiResource::from_gvk(&GroupVersionKind::gvk(
        "no.example.com",
        "v1",
        "Ghost",
    )));
    async fn never(_: Arc<DynamicObject>, _: Ctx<()>) -> Result {
        Err(ManagerError::DuplicateController("never".to_owned()).into())
    }
    let operator = Operator::start(place.manager().controller(Controller::dynamic(&ghost, never, ())));
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    operator.stop().await.unwrap();
}

/// Caches created by the manager.
struct Readers {
    whole: Cached<ConfigMap>,
    metadata: Cached<PartialObjectMeta<ConfigMap>>,
    labelled: Cached<ConfigMap>,
    read: Read,
}

async fn manager_hands_out_its_caches(server: Server) {
    let place = Place::new(server).await;
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Readers>) -> Result {
        let namespace = memo.namespace().unwrap_or_default();
        let whole = ctx.whole.named(&namespace, "a").and_then(|map| map.data.clone());
        let text = format!(
            "data {}, metadata {}, labelled {}, managed fields {}",
            whole.is_some(),
            ctx.metadata.named(&namespace, "a").is_some(),
            ctx.labelled.len(),
            ctx.whole
                .list()
                .iter()
                .any(|map| map.metadata.managed_fields.is_some()),
        );
        ctx.read.lock().unwrap().push(text);
        Ok(Action::await_change())
    }
    let maps = place.api::<ConfigMap>();
    maps.create(&PostParams::default(), &config_map("a", "1"))
        .await
        .unwrap();
    place.create(memo("mine", "")).await;
    let mut manager = place.manager();
    let labelled = Selection::all().labels("memo=none");
    let read = Read::default();
    let readers = Readers {
        whole: manager.cached(),
        metadata: manager.cached(),
        labelled: manager.cached_selection(&labelled),
        read: Arc::clone(&read),
    };
    assert!(readers.whole.is_empty(), "nothing is watched yet");
    // Options also apply to caches requested earlier.
    let manager = manager.keep_managed_fields();
    let controller = Controller::new(reconcile, readers).owns::<ConfigMap>();
    let operator = Operator::start(manager.controller(controller));
    let expected = "data true, metadata true, labelled 0, managed fields true";
    eventually(SOON, || async {
        read.lock().unwrap().last().is_some_and(|last| last == expected)
    })
    .await;
    operator.stop().await.unwrap();
}

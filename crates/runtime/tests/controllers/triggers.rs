//! Which events trigger a reconcile, and which don't.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use rbuilder::predicate::{Predicate, generation_changed, labels_changed};
use rbuilder::testing::eventually;
use rbuilder::{Action, Change, Controller, Ctx, ObjectRef, Request, Result, Watch, trigger};
use serde_json::json;

use crate::support::{Memo, Operator, Place, SOON, Seen, Server, config_map, memo, on_both_servers};

on_both_servers!(
    predicate_filters_changes,
    watch_has_its_own_predicates,
    mapping_function_sees_the_kind_of_change,
    trigger_reconciles_the_named_object,
    resync_reconciles_every_object_again,
    by_any_owner_reconciles_every_owner,
);

async fn look(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
    ctx.note(&memo.name_any());
    Ok(Action::await_change())
}

async fn label(place: &Place, name: &str, value: &str) {
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "touched": value } } }));
    place
        .api::<Memo>()
        .patch(name, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

/// Predicates can use both the old and the new object.
async fn predicate_filters_changes(server: Server) {
    let place = Place::new(server).await;
    let (spec, either) = (Seen::default(), Seen::default());
    let manager = place
        .manager()
        .controller(Controller::new(look, spec.clone()).filter(generation_changed()))
        .controller(
            Controller::new(look, either.clone())
                .named("either")
                .filter(generation_changed().or(labels_changed())),
        );
    let operator = Operator::start(manager);
    place.create(memo("note", "1")).await;
    eventually(SOON, || async {
        spec.count("note") == 1 && either.count("note") == 1
    })
    .await;
    label(&place, "note", "once").await;
    eventually(SOON, || async { either.count("note") == 2 }).await;
    // The label changed before the text. If it had triggered a reconcile, there would be three.
    place.change_text("note", "2").await;
    eventually(SOON, || async { either.count("note") == 3 }).await;
    eventually(SOON, || async { spec.count("note") >= 2 }).await;
    assert_eq!(spec.count("note"), 2);
    operator.stop().await.unwrap();
}

/// Predicates can use both the old and the new object. If one of them panics, the event passes.
async fn watch_has_its_own_predicates(server: Server) {
    let place = Place::new(server).await;
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
        ctx.note(&memo.name_any());
        ctx.apply_owned(&*memo, config_map(&memo.name_any(), "1")).await?;
        Ok(Action::await_change())
    }
    let seen = Seen::default();
    let text = |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get("text").cloned());
    let grew = Predicate::new(move |change: &Change<ConfigMap>| match change {
        Change::Applied {
            old: Some(old), new, ..
        } => {
            assert!(text(new).as_deref() != Some("bad"), "a predicate that panics");
            text(new).map(|text| text.len()) > text(old).map(|text| text.len())
        }
        _ => false,
    });
    let controller = Controller::new(reconcile, seen.clone()).watch(Watch::<ConfigMap>::owned().filter(grew));
    let operator = Operator::start(place.manager().controller(controller));
    place.create(memo("note", "1")).await;
    eventually(SOON, || async { place.copied("note").await.is_some() }).await;
    let write = async |text: &str| {
        let patch = Patch::Merge(json!({ "data": { "text": text } }));
        place
            .api::<ConfigMap>()
            .patch("note", &PatchParams::default(), &patch)
            .await
            .unwrap();
    };
    assert_eq!(seen.count("note"), 1);
    write("2").await;
    write("longer").await;
    eventually(SOON, || async {
        place.copied("note").await.as_deref() == Some("1")
    })
    .await;
    assert_eq!(seen.count("note"), 2, "only the growth counts");
    write("bad").await;
    eventually(SOON, || async {
        place.copied("note").await.as_deref() == Some("1")
    })
    .await;
    operator.stop().await.unwrap();
}

/// Mapping functions can distinguish creations, updates and deletions, and decide which of them
/// trigger a reconcile.
async fn mapping_function_sees_the_kind_of_change(server: Server) {
    let place = Place::new(server).await;
    place.create(memo("note", "")).await;
    let maps = place.api::<ConfigMap>();
    let create = async |name: &str| {
        let map = config_map(name, "1");
        maps.create(&PostParams::default(), &map).await.unwrap();
    };
    create("old").await;
    let (seen, happened) = (Seen::default(), Arc::new(Mutex::new(Vec::new())));
    let text = |map: &ConfigMap| {
        map.data
            .clone()
            .unwrap_or_default()
            .remove("text")
            .unwrap_or_default()
    };
    let map = {
        let happened = Arc::clone(&happened);
        move |change: &Change<ConfigMap>, _: &Ctx<Seen>| {
            let object = change.object();
            if object.name_any() == "kube-root-ca.crt" {
                return Vec::new();
            }
            let kind = match change {
                Change::Applied { initial: true, .. } => "found".to_owned(),
                Change::Applied { old: None, .. } => "created".to_owned(),
                Change::Applied {
                    old: Some(old), new, ..
                } => format!("{} to {}", text(old), text(new)),
                Change::Deleted(_) => "deleted".to_owned(),
            };
            happened
                .lock()
                .unwrap()
                .push(format!("{} {kind}", object.name_any()));
            let memo = ObjectRef::new("note").within(&object.namespace().unwrap());
            match change {
                Change::Applied { .. } => Vec::new(),
                Change::Deleted(_) => vec![Request::new(memo)],
            }
        }
    };
    let controller = Controller::new(look, seen.clone()).watch(Watch::mapped_changes(map));
    let operator = Operator::start(place.manager().controller(controller));
    eventually(SOON, || async { seen.count("note") == 1 }).await;
    create("new").await;
    let patch = Patch::Merge(json!({ "data": { "text": "2" } }));
    maps.patch("old", &PatchParams::default(), &patch).await.unwrap();
    maps.delete("old", &DeleteParams::default()).await.unwrap();
    eventually(SOON, || async { seen.count("note") == 2 }).await;
    let expected = ["old found", "new created", "old 1 to 2", "old deleted"];
    assert_eq!(*happened.lock().unwrap(), expected);
    operator.stop().await.unwrap();
}

/// Guarantee 15: events from outside of the cluster can trigger reconciles, through a channel or an
/// arbitrary stream.
async fn trigger_reconciles_the_named_object(server: Server) {
    let place = Place::new(server).await;
    for name in ["a", "b"] {
        place.create(memo(name, "")).await;
    }
    let seen = Seen::default();
    let (trigger, triggers) = trigger::channel();
    let reference = |name: &str| ObjectRef::<Memo>::new(name).within(&place.namespace);
    let ended = futures::stream::iter([reference("a")]);
    let controller = Controller::new(look, seen.clone())
        .triggers(triggers)
        .triggers(ended);
    let operator = Operator::start(place.manager().controller(controller));
    eventually(SOON, || async { seen.count("a") >= 1 && seen.count("b") == 1 }).await;
    trigger.send(reference("b")).await;
    eventually(SOON, || async { seen.count("b") == 2 }).await;
    assert!(trigger.clone().try_send(reference("b")));
    eventually(SOON, || async { seen.count("b") == 3 }).await;
    operator.stop().await.unwrap();
    assert!(!trigger.try_send(reference("b")), "nobody listens any more");
    trigger.send(reference("b")).await;
}

/// An unchanged object is reconciled once the resync period has passed, and not earlier.
async fn resync_reconciles_every_object_again(server: Server) {
    let place = Place::new(server).await;
    for name in ["a", "b"] {
        place.create(memo(name, "")).await;
    }
    let (timed, still) = (Seen::default(), Seen::default());
    let manager = place
        .manager()
        .controller(Controller::new(look, timed.clone()).resync_every(Duration::from_millis(300)))
        .controller(Controller::new(look, still.clone()).named("still"));
    let operator = Operator::start(manager);
    eventually(SOON, || async { timed.count("a") >= 3 && timed.count("b") >= 3 }).await;
    assert_eq!((still.count("a"), still.count("b")), (1, 1));
    operator.stop().await.unwrap();
}

/// Reconciles all owners, not just the controller.
async fn by_any_owner_reconciles_every_owner(server: Server) {
    let place = Place::new(server).await;
    let owner = place.create(memo("owner", "")).await;
    let (any, controlling) = (Seen::default(), Seen::default());
    let manager = place
        .manager()
        .controller(
            Controller::new(look, any.clone())
                .named("any")
                .watch(Watch::<ConfigMap>::owned().by_any_owner()),
        )
        .controller(Controller::new(look, controlling.clone()).owns::<ConfigMap>());
    let operator = Operator::start(manager);
    eventually(SOON, || async {
        any.count("owner") == 1 && controlling.count("owner") == 1
    })
    .await;
    let mut map = config_map("held", "");
    let reference = kube::Resource::owner_ref(&owner, &()).unwrap();
    map.owner_references_mut().push(reference);
    place
        .api::<ConfigMap>()
        .create(&kube::api::PostParams::default(), &map)
        .await
        .unwrap();
    eventually(SOON, || async { any.count("owner") == 2 }).await;
    assert_eq!(controlling.count("owner"), 1);
    operator.stop().await.unwrap();
}

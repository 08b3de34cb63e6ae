//! Reconciles objects, and starts and stops managers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{CustomResource, ResourceExt};
use rbuilder::envtest::ReservedPort;
use rbuilder::testing::eventually;
use rbuilder::{
    Action, Controller, Ctx, Error, Manager, ManagerArgs, ManagerError, ObjectRef, OwnershipError, Result,
    conditions,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::Notify;

use crate::support::{
    Memo, Operator, Place, SOON, Seen, Server, config_map, copy, get, memo, on_both_servers,
};

on_both_servers!(
    changes_of_owned_objects_are_reverted,
    reconciling_ends_when_nothing_changes,
    panic_does_not_affect_other_objects,
    terminal_errors_wait_for_a_change,
    conflicts_are_retried,
    requeued_object_is_reconciled_without_a_change,
    finalizer_is_removed_after_the_cleanup,
    finalizers_are_cleaned_up_in_the_order_they_were_added,
    deletions_are_delivered,
    object_of_another_controller_is_left_untouched,
    owner_change_reconciles_both_owners,
    watched_objects_are_mapped,
    workers_start_when_all_caches_are_synced,
    object_is_never_reconciled_concurrently,
    missing_crd_is_an_error_that_names_the_kind,
    stopping_lets_reconciles_finish,
    hanging_reconcile_is_cancelled_after_the_grace_period,
    reconcile_that_times_out_is_cancelled_and_retried,
    only_the_listed_namespaces_are_watched,
    controllers_of_one_kind_need_different_names,
    events_of_the_last_reconcile_are_sent,
    manager_is_live_before_it_is_ready,
    standby_takes_over_when_the_leader_stops,
);

/// Guarantee 14: changes of an object and of the objects it owns are reconciled.
async fn changes_of_owned_objects_are_reverted(server: Server) {
    let place = Place::new(server).await;
    let seen = Seen::default();
    let made = place.create(memo("early", "1")).await;
    let operator = Operator::start(
        place
            .manager()
            .controller(Controller::new(copy, seen.clone()).owns::<ConfigMap>()),
    );

    eventually(SOON, || async {
        place.copied("early").await.as_deref() == Some("1")
    })
    .await;
    let copy = place.api::<ConfigMap>().get("early").await.unwrap();
    let expected = OwnerReference {
        api_version: "controllers.example.com/v1".to_owned(),
        kind: "Memo".to_owned(),
        name: "early".to_owned(),
        uid: made.uid().unwrap(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    assert_eq!(copy.owner_references(), [expected]);
    let manager = copy
        .managed_fields()
        .iter()
        .find_map(|entry| entry.manager.clone());
    assert_eq!(manager.as_deref(), Some("memo"));

    place.change_text("early", "2").await;
    eventually(SOON, || async {
        place.copied("early").await.as_deref() == Some("2")
    })
    .await;

    let edit = Patch::Merge(json!({ "data": { "text": "edited by hand" } }));
    place
        .api::<ConfigMap>()
        .patch("early", &PatchParams::default(), &edit)
        .await
        .unwrap();
    eventually(SOON, || async {
        place.copied("early").await.as_deref() == Some("2")
    })
    .await;

    place
        .api::<ConfigMap>()
        .delete("early", &DeleteParams::default())
        .await
        .unwrap();
    eventually(SOON, || async {
        place.copied("early").await.as_deref() == Some("2")
    })
    .await;

    place.create(memo("late", "3")).await;
    eventually(SOON, || async {
        place.copied("late").await.as_deref() == Some("3")
    })
    .await;

    let status = place.api::<Memo>().get("early").await.unwrap().status.unwrap();
    assert_eq!(status.copied.as_deref(), Some("2"));
    assert!(conditions::is_true(&status.conditions, "Available"));
    assert_eq!(status.conditions.len(), 1);
    operator.stop().await.unwrap();
}

/// A no-op reconcile results in neither an event nor another reconcile.
async fn reconciling_ends_when_nothing_changes(server: Server) {
    let place = Place::new(server).await;
    let seen = Seen::default();
    place.create(memo("calm", "1")).await;
    let operator = Operator::start(
        place
            .manager()
            .controller(Controller::new(copy, seen.clone()).owns::<ConfigMap>()),
    );
    eventually(SOON, || async {
        let status = place.api::<Memo>().get("calm").await.unwrap().status;
        status.is_some_and(|status| status.copied.is_some())
    })
    .await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let reconciles = seen.count("calm");
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(seen.count("calm"), reconciles);
    // One for creating the object, one for creating the child, and one for updating the status.
    assert!(reconciles <= 4, "{reconciles} reconciles for one change");
    operator.stop().await.unwrap();
}

/// Guarantees 5 and 6: panics are retried like errors, and other objects are not affected.
async fn panic_does_not_affect_other_objects(server: Server) {
    let place = Place::new(server).await;
    let seen = Seen::default();
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
        ctx.note(&memo.name_any());
        if memo.name_any() == "poison" && ctx.count("poison") < 5 {
            panic!("cannot digest {}", memo.name_any());
        }
        copy(memo, ctx).await
    }
    place.create(memo("poison", "1")).await;
    place.create(memo("good", "1")).await;
    let operator = Operator::start(
        place
            .manager()
            .controller(Controller::new(reconcile, seen.clone()).concurrency(1)),
    );
    eventually(SOON, || async { place.copied("good").await.is_some() }).await;
    eventually(SOON, || async { place.copied("poison").await.is_some() }).await;
    assert!(seen.count("poison") >= 5);
    operator.stop().await.unwrap();
}

/// Guarantee 5: errors are retried with backoff. After a terminal error, nothing happens until the
/// object changes.
async fn terminal_errors_wait_for_a_change(server: Server) {
    let place = Place::new(server).await;
    let seen = Seen::default();
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
        ctx.note(&memo.name_any());
        match memo.name_any().as_str() {
            "terminal" => Err(Error::terminal("deployment name must be specified")),
            _ => Err(Error::new("not now")),
        }
    }
    place.create(memo("terminal", "1")).await;
    place.create(memo("temporary", "1")).await;
    let operator = Operator::start(
        place
            .manager()
            .controller(Controller::new(reconcile, seen.clone())),
    );
    eventually(SOON, || async { seen.count("temporary") >= 6 }).await;
    // The seventh attempt is 640 ms after the start (5 + 10 + 20 + … ms).
    assert_eq!(seen.count("terminal"), 1);
    place.change_text("terminal", "2").await;
    eventually(SOON, || async { seen.count("terminal") == 2 }).await;
    operator.stop().await.unwrap();
}

/// With a stale cache, an update results in a conflict. It succeeds once the cache has caught up.
async fn conflicts_are_retried(server: Server) {
    let place = Place::new(server).await;
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Arc<AtomicUsize>>) -> Result {
        let mut changed = (*memo).clone();
        if ctx.fetch_add(1, SeqCst) == 0 {
            changed.metadata.resource_version = Some("1".to_owned());
        }
        changed.labels_mut().insert("seen".to_owned(), "true".to_owned());
        ctx.api::<Memo>(&*memo)
            .replace(&memo.name_any(), &PostParams::default(), &changed)
            .await?;
        Ok(Action::await_change())
    }
    place.create(memo("contended", "1")).await;
    let tries = Arc::new(AtomicUsize::new(0));
    let operator = Operator::start(
        place
            .manager()
            .controller(Controller::new(reconcile, Arc::clone(&tries))),
    );
    eventually(SOON, || async {
        place
            .api::<Memo>()
            .get("contended")
            .await
            .unwrap()
            .labels()
            .contains_key("seen")
    })
    .await;
    assert!(tries.load(SeqCst) >= 2);
    operator.stop().await.unwrap();
}

async fn requeued_object_is_reconciled_without_a_change(server: Server) {
    let place = Place::new(server).await;
    let seen = Seen::default();
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
        ctx.note(&memo.name_any());
        Ok(Action::requeue(Duration::from_millis(50)))
    }
    place.create(memo("ticking", "1")).await;
    let operator = Operator::start(
        place
            .manager()
            .controller(Controller::new(reconcile, seen.clone())),
    );
    eventually(SOON, || async { seen.count("ticking") >= 5 }).await;
    operator.stop().await.unwrap();
}

async fn finalizer_is_removed_after_the_cleanup(server: Server) {
    const FINALIZER: &str = "controllers.example.com/finalizer";
    let place = Place::new(server).await;
    /// Whether the reconcile has seen the finalizer, and the number of cleanups.
    #[derive(Clone, Default)]
    struct Life {
        held_at_reconcile: Arc<AtomicBool>,
        cleanups: Arc<AtomicUsize>,
    }
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Life>) -> Result {
        let held = memo.finalizers().iter().any(|name| name == FINALIZER);
        ctx.held_at_reconcile.store(held, SeqCst);
        Ok(Action::await_change())
    }
    async fn cleanup(memo: Arc<Memo>, ctx: Ctx<Life>) -> Result {
        // Removing the finalizer must work even though the cleanup has updated the status.
        let mut status = memo.status.clone().unwrap_or_default();
        conditions::set(
            &mut status.conditions,
            conditions::new("Degraded", true, "Finalizing"),
        );
        ctx.apply_status(&*memo, status).await?;
        match ctx.cleanups.fetch_add(1, SeqCst) {
            0 => Err(Error::new("the backup is not reachable")),
            1 => Ok(Action::requeue(Duration::from_millis(10))),
            _ => Ok(Action::await_change()),
        }
    }
    let life = Life::default();
    let mut held_by_another = memo("held", "1");
    held_by_another
        .finalizers_mut()
        .push("other.example.com/finalizer".to_owned());
    place.create(held_by_another).await;
    let controller = Controller::new(reconcile, life.clone()).finalizer(FINALIZER, cleanup);
    let operator = Operator::start(place.manager().controller(controller));

    let memos = place.api::<Memo>();
    eventually(SOON, || async { life.held_at_reconcile.load(SeqCst) }).await;
    let finalizers = memos.get("held").await.unwrap().finalizers().to_vec();
    assert_eq!(finalizers, ["other.example.com/finalizer", FINALIZER]);

    memos.delete("held", &DeleteParams::default()).await.unwrap();
    eventually(SOON, || async {
        memos.get("held").await.unwrap().finalizers() == ["other.example.com/finalizer"]
    })
    .await;
    assert_eq!(life.cleanups.load(SeqCst), 3);
    let release = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    memos
        .patch("held", &PatchParams::default(), &release)
        .await
        .unwrap();
    eventually(SOON, || async { memos.get_opt("held").await.unwrap().is_none() }).await;
    assert_eq!(life.cleanups.load(SeqCst), 3);
    operator.stop().await.unwrap();
}

async fn finalizers_are_cleaned_up_in_the_order_they_were_added(server: Server) {
    const NAMES: [&str; 3] = ["network", "disk", "account"];
    /// Each cleanup with the object's finalizers at that time.
    type Cleanups = Arc<Mutex<Vec<(&'static str, Vec<String>)>>>;
    fn finalizer(name: &str) -> String {
        format!("controllers.example.com/{name}")
    }
    async fn reconcile(_: Arc<Memo>, _: Ctx<Cleanups>) -> Result {
        Ok(Action::await_change())
    }
    let place = Place::new(server).await;
    let mut held_by_another = memo("held", "1");
    // Finalizers may have been added in a different order.
    let before = vec!["other.example.com/finalizer".to_owned(), finalizer("disk")];
    held_by_another.metadata.finalizers = Some(before);
    place.create(held_by_another).await;
    let cleanups = Cleanups::default();
    let add = |controller: Controller<Memo, Cleanups>, name: &'static str| {
        controller.finalizer(
            finalizer(name),
            move |memo: Arc<Memo>, ctx: Ctx<Cleanups>| async move {
                let mut cleanups = ctx.lock().unwrap();
                cleanups.push((name, memo.finalizers().to_vec()));
                // The second cleanup fails once. The first one must not be repeated, and the third
                // one must wait.
                let has_failed = cleanups.iter().filter(|(cleaned, _)| *cleaned == "disk").count() > 1;
                match name {
                    "disk" if !has_failed => Err(Error::new("the disk is in use")),
                    _ => Ok(Action::await_change()),
                }
            },
        )
    };
    let controller = NAMES
        .into_iter()
        .fold(Controller::new(reconcile, Arc::clone(&cleanups)), add);
    let operator = Operator::start(place.manager().controller(controller));

    let memos = place.api::<Memo>();
    eventually(SOON, || async {
        memos.get("held").await.unwrap().finalizers().len() == 4
    })
    .await;
    memos.delete("held", &DeleteParams::default()).await.unwrap();
    eventually(SOON, || async {
        memos.get("held").await.unwrap().finalizers() == ["other.example.com/finalizer"]
    })
    .await;
    operator.stop().await.unwrap();
    let other = "other.example.com/finalizer".to_owned();
    let [network, disk, account] = NAMES.map(finalizer);
    let cleanups = cleanups.lock().unwrap();
    let first = |name: &str| cleanups.iter().position(|(cleaned, _)| *cleaned == name).unwrap();
    let order = NAMES.map(first);
    assert!(order.is_sorted(), "{cleanups:?}");
    let [before_network, before_disk, before_account] = order.map(|index| cleanups[index].1.clone());
    let expected = [&other, &disk, &network, &account];
    assert_eq!(before_network.iter().collect::<Vec<_>>(), expected);
    assert_eq!(before_disk, [other.clone(), disk, account.clone()]);
    assert_eq!(before_account, [other, account]);
    let disks = cleanups
        .iter()
        .take(order[2])
        .filter(|(cleaned, _)| *cleaned == "disk");
    assert!(
        disks.count() > 1,
        "the failed cleanup was not repeated: {cleanups:?}"
    );
}

/// Guarantee 14: controllers are notified of deletions, unless the object never existed. Errors are
/// retried.
async fn deletions_are_delivered(server: Server) {
    let place = Place::new(server).await;
    let seen = Seen::default();
    async fn forget(memo: ObjectRef<Memo>, ctx: Ctx<Seen>) -> Result {
        ctx.note(&format!(
            "{} in {}",
            memo.name,
            memo.namespace.unwrap_or_default()
        ));
        if ctx.count("retried") == 0 {
            ctx.note("retried");
            return Err(Error::new("not now"));
        }
        Ok(Action::await_change())
    }
    place.create(memo("short-lived", "1")).await;
    let controller = Controller::new(copy, seen.clone())
        .watches::<Secret, _>(|_, _| vec![ObjectRef::new("never-was").within("nowhere")])
        .on_deleted(forget);
    let operator = Operator::start(place.manager().controller(controller));
    eventually(SOON, || async { place.copied("short-lived").await.is_some() }).await;
    let secret = Secret {
        metadata: config_map("any", "").metadata,
        ..Secret::default()
    };
    place
        .api::<Secret>()
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();

    place
        .api::<Memo>()
        .delete("short-lived", &DeleteParams::default())
        .await
        .unwrap();
    let told = format!("short-lived in {}", place.namespace);
    eventually(SOON, || async { seen.count(&told) == 2 }).await;
    assert_eq!(seen.count("never-was in nowhere"), 0);
    operator.stop().await.unwrap();
}

async fn object_of_another_controller_is_left_untouched(server: Server) {
    let place = Place::new(server).await;
    let first = place.create(memo("first", "1")).await;
    let second = place.create(memo("second", "2")).await;
    let ctx = Ctx::new(place.env.client(), "memo", ());
    // The object has no controller yet, so it's adopted.
    place
        .api::<ConfigMap>()
        .create(&PostParams::default(), &config_map("shared", "0"))
        .await
        .unwrap();
    ctx.apply_owned(&first, config_map("shared", "1")).await.unwrap();

    let error = ctx
        .apply_owned(&second, config_map("shared", "2"))
        .await
        .unwrap_err();
    let expected = format!(
        "ConfigMap {}/shared is already owned by Memo first; it was not changed",
        place.namespace
    );
    assert_eq!(error.to_string(), expected);
    assert!(matches!(
        error.downcast_ref(),
        Some(OwnershipError::AlreadyOwned { .. })
    ));
    assert_eq!(place.copied("shared").await.as_deref(), Some("1"));
}

/// Guarantee 15: when an object gets a different owner, both owners are reconciled.
async fn owner_change_reconciles_both_owners(server: Server) {
    let place = Place::new(server).await;
    let seen = Seen::default();
    async fn look(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
        ctx.note(&memo.name_any());
        Ok(Action::await_change())
    }
    let first = place.create(memo("first", "1")).await;
    let second = place.create(memo("second", "2")).await;
    place.create(memo("third", "3")).await;
    let operator = Operator::start(
        place
            .manager()
            .controller(Controller::new(look, seen.clone()).owns::<ConfigMap>()),
    );
    eventually(SOON, || async {
        ["first", "second", "third"]
            .iter()
            .all(|name| seen.count(name) == 1)
    })
    .await;

    let ctx = Ctx::new(place.env.client(), "memo", ());
    ctx.apply_owned(&first, config_map("moving", "1")).await.unwrap();
    eventually(SOON, || async { seen.count("first") == 2 }).await;
    let owners = Patch::Merge(json!({ "metadata": { "ownerReferences": [{
        "apiVersion": "controllers.example.com/v1", "kind": "Memo", "name": "second",
        "uid": second.uid(), "controller": true,
    }] } }));
    place
        .api::<ConfigMap>()
        .patch("moving", &PatchParams::default(), &owners)
        .await
        .unwrap();
    eventually(SOON, || async {
        (seen.count("first"), seen.count("second")) == (3, 2)
    })
    .await;
    assert_eq!(seen.count("third"), 1);
    operator.stop().await.unwrap();
}

/// Mapping functions can use the state. If one of them panics, everything keeps running.
async fn watched_objects_are_mapped(server: Server) {
    let place = Place::new(server).await;
    let seen = Seen::default();
    place.create(memo("mapped", "1")).await;
    fn to_memo(secret: &Secret, ctx: &Ctx<Seen>) -> Vec<ObjectRef<Memo>> {
        ctx.note("mapping");
        assert!(secret.name_any() != "poison", "a bug in the mapping");
        secret
            .labels()
            .get("memo")
            .map(|name| ObjectRef::new(name).within(&secret.namespace().unwrap_or_default()))
            .into_iter()
            .collect()
    }
    let operator = Operator::start(
        place
            .manager()
            .controller(Controller::new(copy, seen.clone()).watches::<Secret, _>(to_memo)),
    );
    eventually(SOON, || async { place.copied("mapped").await.is_some() }).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = seen.count("mapped");
    for name in ["poison", "good"] {
        let mut metadata = config_map(name, "").metadata;
        metadata.labels = Some(BTreeMap::from([("memo".to_owned(), "mapped".to_owned())]));
        let secret = Secret {
            metadata,
            ..Secret::default()
        };
        place
            .api::<Secret>()
            .create(&PostParams::default(), &secret)
            .await
            .unwrap();
    }
    eventually(SOON, || async { seen.count("mapped") == before + 1 }).await;
    assert_eq!(seen.count("mapping"), 2);
    operator.stop().await.unwrap();
}

/// Guarantee 4: the caches contain all objects of all kinds before the first reconcile starts.
async fn workers_start_when_all_caches_are_synced(server: Server) {
    let place = Place::new(server).await;
    #[derive(Clone, Default)]
    struct Watched {
        secrets: Arc<AtomicUsize>,
        at_first: Arc<Mutex<Option<usize>>>,
    }
    async fn reconcile(_memo: Arc<Memo>, ctx: Ctx<Watched>) -> Result {
        ctx.at_first
            .lock()
            .unwrap()
            .get_or_insert(ctx.secrets.load(SeqCst));
        Ok(Action::await_change())
    }
    place.create(memo("only", "1")).await;
    for number in 0..20 {
        let metadata = config_map(&format!("secret-{number}"), "").metadata;
        let secret = Secret {
            metadata,
            ..Secret::default()
        };
        place
            .api::<Secret>()
            .create(&PostParams::default(), &secret)
            .await
            .unwrap();
    }
    let watched = Watched::default();
    let controller = Controller::new(reconcile, watched.clone()).watches::<Secret, _>(|_, ctx| {
        ctx.secrets.fetch_add(1, SeqCst);
        Vec::new()
    });
    let operator = Operator::start(place.manager().controller(controller));
    eventually(SOON, || async { *watched.at_first.lock().unwrap() }).await;
    assert_eq!(*watched.at_first.lock().unwrap(), Some(20));
    operator.stop().await.unwrap();
}

/// Guarantees 1 and 2 for an entire controller: despite lots of changes and workers, no object is
/// ever reconciled concurrently.
async fn object_is_never_reconciled_concurrently(server: Server) {
    let place = Place::new(server).await;
    #[derive(Clone, Default)]
    struct Busy {
        now: Arc<AtomicUsize>,
        overlaps: Arc<AtomicUsize>,
        last: Arc<Mutex<String>>,
    }
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Busy>) -> Result {
        if ctx.now.fetch_add(1, SeqCst) > 0 {
            ctx.overlaps.fetch_add(1, SeqCst);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        *ctx.last.lock().unwrap() = memo.spec.text.clone().unwrap_or_default();
        ctx.now.fetch_sub(1, SeqCst);
        Ok(Action::await_change())
    }
    place.create(memo("busy", "0")).await;
    let busy = Busy::default();
    let operator = Operator::start(
        place
            .manager()
            .controller(Controller::new(reconcile, busy.clone()).concurrency(8)),
    );
    for round in 1..=30 {
        place.change_text("busy", &round.to_string()).await;
    }
    eventually(SOON, || async { *busy.last.lock().unwrap() == "30" }).await;
    assert_eq!(busy.overlaps.load(SeqCst), 0);
    operator.stop().await.unwrap();
}

/// Guarantee 8: the watch of a kind that isn't served is retried. After the timeout, the error
/// contains the name of the kind.
async fn missing_crd_is_an_error_that_names_the_kind(server: Server) {
    #[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
    #[kube(
        group = "nowhere.example.com",
        version = "v1",
        kind = "Ghost",
        namespaced,
        schema = "disabled"
    )]
    struct GhostSpec {}
    async fn never(_: Arc<Ghost>, _: Ctx<()>) -> Result {
        Ok(Action::await_change())
    }
    let place = Place::new(server).await;
    let manager = place
        .manager()
        .controller(Controller::new(never, ()))
        .cache_sync_timeout(Duration::from_millis(1500));
    let error = manager.start_until(std::future::pending()).await.unwrap_err();
    assert!(matches!(
        error.downcast_ref(),
        Some(ManagerError::CacheSync { .. })
    ));
    assert_eq!(
        error.to_string(),
        "timed out after 1 s waiting for the cache of Ghost (nowhere.example.com/v1) to sync; \
         last error: the API server does not serve ghosts.nowhere.example.com in version v1; is the CRD installed?"
    );
}

/// Guarantee 10: running reconciles can finish after the manager is stopped, but no new ones start.
async fn stopping_lets_reconciles_finish(server: Server) {
    let place = Place::new(server).await;
    #[derive(Clone, Default)]
    struct Slow {
        started: Arc<AtomicUsize>,
        ended: Arc<AtomicUsize>,
        go_on: Arc<Notify>,
    }
    async fn reconcile(_memo: Arc<Memo>, ctx: Ctx<Slow>) -> Result {
        ctx.started.fetch_add(1, SeqCst);
        ctx.go_on.notified().await;
        ctx.ended.fetch_add(1, SeqCst);
        Ok(Action::await_change())
    }
    for name in ["a", "b", "c"] {
        place.create(memo(name, "1")).await;
    }
    let slow = Slow::default();
    let operator = Operator::start(
        place
            .manager()
            .controller(Controller::new(reconcile, slow.clone()).concurrency(2)),
    );
    eventually(SOON, || async { slow.started.load(SeqCst) == 2 }).await;
    let Operator { stop, ended } = operator;
    stop.send(()).unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!ended.is_finished());
    slow.go_on.notify_waiters();
    ended.await.unwrap().unwrap();
    assert_eq!((slow.started.load(SeqCst), slow.ended.load(SeqCst)), (2, 2));
}

/// Guarantees 10 and 11: a reconcile that takes too long to finish is cancelled, with an error that
/// says so, and leaves no tasks behind.
async fn hanging_reconcile_is_cancelled_after_the_grace_period(server: Server) {
    let place = Place::new(server).await;
    /// Set when the reconcile's future (and therefore its task) is dropped.
    #[derive(Clone, Default)]
    struct Hanging {
        started: Arc<AtomicBool>,
        dropped: Arc<AtomicBool>,
    }
    struct OnDrop(Arc<AtomicBool>);
    impl Drop for OnDrop {
        fn drop(&mut self) {
            self.0.store(true, SeqCst);
        }
    }
    async fn reconcile(_memo: Arc<Memo>, ctx: Ctx<Hanging>) -> Result {
        let _guard = OnDrop(Arc::clone(&ctx.dropped));
        ctx.started.store(true, SeqCst);
        std::future::pending().await
    }
    place.create(memo("hanging", "1")).await;
    let hanging = Hanging::default();
    let manager = place
        .manager()
        .controller(Controller::new(reconcile, hanging.clone()))
        .grace_period(Duration::from_secs(1));
    let operator = Operator::start(manager);
    eventually(SOON, || async { hanging.started.load(SeqCst) }).await;
    let asked = Instant::now();
    let error = operator.stop().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "controller memo did not stop within the grace period of 1 s"
    );
    assert!(asked.elapsed() < Duration::from_secs(5));
    assert!(hanging.dropped.load(SeqCst));
}

async fn reconcile_that_times_out_is_cancelled_and_retried(server: Server) {
    let place = Place::new(server).await;
    let seen = Seen::default();
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
        ctx.note(&memo.name_any());
        if ctx.count(&memo.name_any()) < 3 {
            std::future::pending::<()>().await;
        }
        copy(memo, ctx).await
    }
    place.create(memo("slow", "1")).await;
    let controller = Controller::new(reconcile, seen.clone()).reconcile_timeout(Duration::from_millis(200));
    let operator = Operator::start(place.manager().controller(controller));
    eventually(SOON, || async { place.copied("slow").await.is_some() }).await;
    operator.stop().await.unwrap();
}

async fn only_the_listed_namespaces_are_watched(server: Server) {
    let (first, second, other) = (
        Place::new(server.clone()).await,
        Place::new(server.clone()).await,
        Place::new(server).await,
    );
    for place in [&first, &second, &other] {
        place.create(memo("note", "1")).await;
    }
    let args = ManagerArgs {
        watch_namespace: format!("{}, {}", first.namespace, second.namespace),
        ..ManagerArgs::for_tests()
    };
    let manager = Manager::with_client("several.example.com", first.env.client(), args)
        .controller(Controller::new(copy, Seen::default()).owns::<ConfigMap>());
    let operator = Operator::start(manager);
    for place in [&first, &second] {
        eventually(SOON, || async { place.copied("note").await.is_some() }).await;
        place
            .api::<ConfigMap>()
            .delete("note", &DeleteParams::default())
            .await
            .unwrap();
        eventually(SOON, || async { place.copied("note").await.is_some() }).await;
    }
    assert_eq!(other.copied("note").await, None);
    operator.stop().await.unwrap();
}

/// Two controllers of the same kind share a cache, but they need different names.
async fn controllers_of_one_kind_need_different_names(server: Server) {
    let place = Place::new(server).await;
    place.create(memo("twice", "1")).await;
    let (one, two) = (Seen::default(), Seen::default());
    let twins = place.manager().controller(Controller::new(copy, one.clone()));
    let error = twins
        .controller(Controller::new(copy, two.clone()))
        .start_until(std::future::pending())
        .await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "duplicate controller name `memo`; rename one of them with `.named(…)`"
    );
    async fn look(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
        ctx.note(&memo.name_any());
        Ok(Action::await_change())
    }
    let manager = place
        .manager()
        .controller(Controller::new(copy, one.clone()))
        .controller(Controller::new(look, two.clone()).named("looker"));
    let operator = Operator::start(manager);
    eventually(SOON, || async {
        one.count("twice") > 0 && two.count("twice") > 0
    })
    .await;
    operator.stop().await.unwrap();
}

async fn events_of_the_last_reconcile_are_sent(server: Server) {
    let place = Place::new(server).await;
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Arc<AtomicBool>>) -> Result {
        ctx.warning(
            &*memo,
            "Deleting",
            "DeleteCR",
            format!("{} is being deleted", memo.name_any()),
        );
        ctx.store(true, SeqCst);
        Ok(Action::await_change())
    }
    place.create(memo("noted", "1")).await;
    let done = Arc::new(AtomicBool::new(false));
    let operator = Operator::start(
        place
            .manager()
            .controller(Controller::new(reconcile, Arc::clone(&done))),
    );
    eventually(SOON, || async { done.load(SeqCst) }).await;
    operator.stop().await.unwrap();
    let events = place
        .api::<Event>()
        .list(&ListParams::default())
        .await
        .unwrap()
        .items;
    let said: Vec<_> = events
        .iter()
        .map(|event| {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let about = event
                .regarding
                .as_ref()
                .map(|object| text(&object.name))
                .unwrap_or_default();
            [
                text(&event.type_),
                text(&event.reason),
                about,
                text(&event.note),
                text(&event.reporting_controller),
            ]
        })
        .collect();
    assert_eq!(
        said,
        [["Warning", "Deleting", "noted", "noted is being deleted", "memo"].map(str::to_owned)]
    );
}

/// Guarantee 13: the manager is live from the start, and ready once its caches have synced.
async fn manager_is_live_before_it_is_ready(server: Server) {
    let place = Place::new(server).await;
    let reserved = ReservedPort::reserve().unwrap();
    let address = format!("127.0.0.1:{}", reserved.number());
    let taken = std::net::TcpListener::bind(&address).unwrap();
    let args = ManagerArgs {
        watch_namespace: place.namespace.clone(),
        health_probe_bind_address: address.clone(),
        ..ManagerArgs::for_tests()
    };
    let manager = || Manager::with_client("probes.example.com", place.env.client(), args.clone());

    let error = manager()
        .start_until(std::future::pending())
        .await
        .unwrap_err()
        .to_string();
    let expected = format!(
        "failed to start the health probe server: --health-probe-bind-address: failed to listen on {address}"
    );
    assert!(error.starts_with(&expected), "{error}");
    drop(taken);

    let hold = Arc::new(AtomicBool::new(true));
    let held = Arc::clone(&hold);
    let manager = manager()
        .controller(Controller::new(copy, Seen::default()))
        .readyz_check("own", move || {
            let held = held.load(SeqCst);
            async move { if held { Err(Error::new("not yet")) } else { Ok(()) } }
        });
    let operator = Operator::start(manager);
    eventually(SOON, || async {
        get(&address, "/healthz")
            .await
            .is_ok_and(|said| said.contains(" 200 "))
    })
    .await;
    eventually(SOON, || async {
        get(&address, "/readyz/caches")
            .await
            .is_ok_and(|said| said.contains(" 200 "))
    })
    .await;
    assert!(get(&address, "/readyz").await.unwrap().contains(" 500 "));
    hold.store(false, SeqCst);
    assert!(get(&address, "/readyz").await.unwrap().contains(" 200 "));
    operator.stop().await.unwrap();
    assert!(get(&address, "/healthz").await.is_err());
}

/// Guarantee 9: only one manager is active at a time. The next one takes over once it's stopped.
async fn standby_takes_over_when_the_leader_stops(server: Server) {
    let place = Place::new(server).await;
    place.create(memo("led", "1")).await;
    let (first, second, third) = (Seen::default(), Seen::default(), Seen::default());
    let start = |seen: &Seen| {
        let args = ManagerArgs {
            leader_elect: true,
            leader_election_namespace: Some(place.namespace.clone()),
            watch_namespace: place.namespace.clone(),
            ..ManagerArgs::for_tests()
        };
        let manager = Manager::with_client("standby.example.com", place.env.client(), args);
        Operator::start(manager.controller(Controller::new(copy, seen.clone()).owns::<ConfigMap>()))
    };
    let leader = start(&first);
    eventually(SOON, || async { first.count("led") > 0 }).await;
    let (standby, idle) = (start(&second), start(&third));
    tokio::time::sleep(Duration::from_secs(1)).await;
    idle.stop().await.unwrap();
    assert_eq!((second.count("led"), third.count("led")), (0, 0));

    let asked = Instant::now();
    leader.stop().await.unwrap();
    eventually(SOON, || async { second.count("led") > 0 }).await;
    // A retry period plus jitter. It would be 15 s if the lease weren't released.
    assert!(asked.elapsed() < Duration::from_secs(8), "{:?}", asked.elapsed());
    standby.stop().await.unwrap();
}

//! Terminating objects, which aren't reconciled and cannot own new objects.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::PartialObjectMeta;
use kube::{Resource, ResourceExt};
use rbuilder::fake::{ApiServer, Verb};
use rbuilder::testing::eventually;
use rbuilder::{
    Action, Controller, Ctx, Error, OwnershipError, Result, set_controller_reference, set_owner_reference,
};
use serde_json::json;

use crate::support::{Memo, Operator, Place, SOON, Seen, Server, config_map, memo, on_both_servers};

on_both_servers!(
    terminating_owner_gets_no_new_objects,
    orphaned_object_is_not_adopted_again,
    deleted_owner_does_not_adopt,
    status_changes_do_not_block_applies,
    terminating_objects_are_reconciled_on_request,
);

/// Returns the object as cached by a controller that owns its kind.
fn metadata_of(map: &ConfigMap) -> PartialObjectMeta<ConfigMap> {
    PartialObjectMeta {
        metadata: map.metadata.clone(),
        ..PartialObjectMeta::default()
    }
}

/// Deletes a memo that is held back by a finalizer.
async fn delete_held(place: &Place, memo: &Memo) -> Memo {
    let memos = place.api::<Memo>();
    let held = Patch::Merge(json!({ "metadata": { "finalizers": ["other.example.com/held"] } }));
    let name = memo.name_any();
    memos.patch(&name, &PatchParams::default(), &held).await.unwrap();
    let left = memos.delete(&name, &DeleteParams::default()).await.unwrap();
    left.left().unwrap()
}

#[track_caller]
fn assert_terminating(error: &Error, owner: &Memo) {
    let uid = owner.uid().unwrap();
    assert!(error.is_owner_terminating(), "{error:?}");
    match error.downcast_ref() {
        Some(OwnershipError::OwnerTerminating { uid: found, .. }) => assert_eq!(*found, uid),
        other => panic!("{other:?}"),
    }
}

async fn terminating_owner_gets_no_new_objects(server: Server) {
    let place = Place::new(server).await;
    let before = place.create(memo("owner", "1")).await;
    let ctx = Ctx::new(place.env.client(), "memo", ());
    ctx.apply_owned(&before, config_map("owned", "1")).await.unwrap();
    let owner = delete_held(&place, &before).await;
    for name in ["owned", "new"] {
        let map = || config_map(name, "2");
        let set = set_controller_reference(&owner, &mut map());
        assert_terminating(&set.unwrap_err().into(), &owner);
        let set = set_owner_reference(&owner, &mut map());
        assert_terminating(&set.unwrap_err().into(), &owner);
        let applied = ctx.apply_owned(&owner, map()).await;
        assert_terminating(&applied.unwrap_err(), &owner);
        let created = ctx.create_owned(&owner, map()).await;
        assert_terminating(&created.unwrap_err(), &owner);
        let written = ctx.create_or_update_owned(&owner, map(), |_| {}).await;
        let error = written.unwrap_err();
        assert_terminating(&error, &owner);
        let expected = format!(
            "Memo {0}/owner is being deleted and cannot own ConfigMap {0}/{name}, which was not changed",
            place.namespace
        );
        assert_eq!(error.to_string(), expected);
    }
    assert_eq!(place.copied("owned").await.as_deref(), Some("1"));
    assert_eq!(place.copied("new").await, None);
}

/// Returns contexts whose caches haven't observed that an object was orphaned:
///
/// - There is no cache at all.
/// - The cache doesn't contain the object.
/// - The cache contains the orphaned object.
/// - The cache contains the object as it was before.
async fn lagging(place: &Place, before: &ConfigMap) -> [Ctx<()>; 4] {
    let ctx = || Ctx::new(place.env.client(), "memo", ());
    let now = place.api::<ConfigMap>().get(&before.name_any()).await.unwrap();
    [
        ctx(),
        ctx().caching([metadata_of(&config_map("other", ""))]),
        ctx().caching([metadata_of(&now)]),
        ctx().caching([metadata_of(before)]),
    ]
}

/// An object that the garbage collector has orphaned (`kubectl delete --cascade=orphan`) must stay
/// orphaned, even if the caches have observed neither this nor the deletion of the owner.
async fn orphaned_object_is_not_adopted_again(server: Server) {
    let place = Place::new(server).await;
    let before = place.create(memo("owner", "1")).await;
    let ctx = Ctx::new(place.env.client(), "memo", ());
    let owned = ctx.apply_owned(&before, config_map("owned", "1")).await.unwrap();
    delete_held(&place, &before).await;
    let release = Patch::Merge(json!({ "metadata": { "ownerReferences": null } }));
    let maps = place.api::<ConfigMap>();
    let released = maps
        .patch("owned", &PatchParams::default(), &release)
        .await
        .unwrap();

    for ctx in lagging(&place, &owned).await {
        let applied = ctx.apply_owned(&before, config_map("owned", "2")).await;
        assert_terminating(&applied.unwrap_err(), &before);
    }
    let written = ctx
        .create_or_update_owned(&before, config_map("owned", "2"), |_| {})
        .await;
    assert_terminating(&written.unwrap_err(), &before);
    assert_eq!(maps.get("owned").await.unwrap(), released);
}

async fn deleted_owner_does_not_adopt(server: Server) {
    let place = Place::new(server).await;
    let before = place.create(memo("owner", "1")).await;
    let maps = place.api::<ConfigMap>();
    let free = maps
        .create(&PostParams::default(), &config_map("free", "0"))
        .await
        .unwrap();
    let memos = place.api::<Memo>();
    memos.delete("owner", &DeleteParams::default()).await.unwrap();
    for again in [false, true] {
        if again {
            place.create(memo("owner", "1")).await;
        }
        for ctx in lagging(&place, &free).await {
            let applied = ctx.apply_owned(&before, config_map("free", "1")).await;
            let error = applied.unwrap_err();
            assert!(error.is_owner_terminating(), "{error:?}");
            let expected = format!(
                "Memo {0}/owner with uid {1} was deleted and cannot own ConfigMap {0}/free, which was not changed",
                place.namespace,
                before.uid().unwrap()
            );
            assert_eq!(error.to_string(), expected);
        }
    }
    assert_eq!(maps.get("free").await.unwrap(), free);
}

/// Every concurrent change makes the resource version of an apply stale, so the apply is sent again
/// with the current version.
async fn status_changes_do_not_block_applies(server: Server) {
    let place = Place::new(server).await;
    let owner = place.create(memo("owner", "1")).await;
    let ctx = Ctx::new(place.env.client(), "memo", ());
    let owned = ctx.apply_owned(&owner, config_map("owned", "1")).await.unwrap();
    let label = Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
    let maps = place.api::<ConfigMap>();
    maps.patch("owned", &PatchParams::default(), &label)
        .await
        .unwrap();
    let ctx = ctx.caching([metadata_of(&owned)]);
    ctx.apply_owned(&owner, config_map("owned", "2")).await.unwrap();
    assert_eq!(place.copied("owned").await.as_deref(), Some("2"));
}

async fn terminating_objects_are_reconciled_on_request(server: Server) {
    let place = Place::new(server).await;
    async fn look(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
        let state = match memo.meta().deletion_timestamp {
            Some(_) => "terminating",
            None => "alive",
        };
        ctx.note(&format!("{} {state}", ctx.controller()));
        Ok(Action::await_change())
    }
    let seen = Seen::default();
    let new = |name: &str| Controller::new(look, seen.clone()).named(name);
    let manager = place
        .manager()
        .controller(new("asks").reconciles_terminating())
        .controller(new("does-not-ask"));
    let operator = Operator::start(manager);
    let made = place.create(memo("held", "1")).await;
    eventually(SOON, || async {
        seen.count("asks alive") > 0 && seen.count("does-not-ask alive") > 0
    })
    .await;
    delete_held(&place, &made).await;
    eventually(SOON, || async { seen.count("asks terminating") > 0 }).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    operator.stop().await.unwrap();
    assert_eq!(seen.count("does-not-ask terminating"), 0);
}

fn count(server: &ApiServer, verb: Verb) -> usize {
    let requests = server.requests();
    requests.iter().filter(|request| request.verb == verb).count()
}

#[tokio::test]
async fn only_an_adoption_reads_the_owner() {
    let server = ApiServer::new();
    let place = Place::new(Server::Fake(server.clone())).await;
    let owner = place.create(memo("owner", "1")).await;
    let maps = place.api::<ConfigMap>();
    let free = maps
        .create(&PostParams::default(), &config_map("free", "1"))
        .await;
    let ctx = Ctx::new(place.env.client(), "memo", ()).caching([metadata_of(&free.unwrap())]);
    let requests = async |name: &str, text: &str| {
        server.forget_requests();
        let applied = ctx.apply_owned(&owner, config_map(name, text)).await.unwrap();
        // As the watch of a manager would do.
        drop(ctx.clone().caching([metadata_of(&applied)]));
        let [patches, gets, lists] = [Verb::Patch, Verb::Get, Verb::List].map(|verb| count(&server, verb));
        assert_eq!(patches + gets + lists, server.requests().len());
        (patches, gets, lists)
    };
    assert_eq!(requests("new", "1").await, (1, 0, 0), "created");
    assert_eq!(requests("new", "1").await, (0, 0, 0), "unchanged");
    assert_eq!(requests("new", "2").await, (1, 0, 0), "updated");
    assert_eq!(requests("free", "1").await, (1, 1, 1), "adopted");
    assert_eq!(requests("free", "2").await, (1, 0, 0), "updated");
}

/// If the owner is deleted, its reconcile neither fails nor is it retried.
#[tokio::test(start_paused = true)]
async fn reconcile_of_a_terminating_object_does_not_fail() {
    let place = Place::new(Server::fake()).await;
    /// Deletes its own object, as another client could at any time, and then adopts another object.
    async fn adopt(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
        ctx.note("reconciles");
        let memos = ctx.api::<Memo>(&*memo);
        memos.delete(&memo.name_any(), &DeleteParams::orphan()).await?;
        ctx.apply_owned(&*memo, config_map("free", "1")).await?;
        ctx.note("adoptions");
        Ok(Action::requeue(Duration::from_secs(1)))
    }
    let maps = place.api::<ConfigMap>();
    let free = maps
        .create(&PostParams::default(), &config_map("free", "0"))
        .await;
    let seen = Seen::default();
    let manager = place.manager();
    let metrics = manager.metrics().clone();
    let operator = Operator::start(manager.controller(Controller::new(adopt, seen.clone())));
    place.create(memo("owner", "1")).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    operator.stop().await.unwrap();
    assert_eq!((seen.count("reconciles"), seen.count("adoptions")), (1, 0));
    assert_eq!(maps.get("free").await.unwrap(), free.unwrap());
    let errors = r#"controller_runtime_reconcile_errors_total{controller="memo"} 0"#;
    assert!(metrics.text().contains(errors), "{}", metrics.text());
}

/// There may be no event when another owner can own objects again, so an error about it must be
/// retried.
#[tokio::test(start_paused = true)]
async fn error_about_another_terminating_owner_is_retried() {
    let place = Place::new(Server::fake()).await;
    async fn own(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
        ctx.note("reconciles");
        let owner = ctx.api::<Secret>(&*memo).get("owner").await?;
        ctx.apply_owned(&owner, config_map("owned", "1")).await?;
        Ok(Action::await_change())
    }
    let secrets = place.api::<Secret>();
    let secret = |finalizers: &[&str]| {
        let metadata = json!({ "name": "owner", "finalizers": finalizers });
        serde_json::from_value::<Secret>(json!({ "metadata": metadata })).unwrap()
    };
    let held = secret(&["other.example.com/held"]);
    secrets.create(&PostParams::default(), &held).await.unwrap();
    secrets.delete("owner", &DeleteParams::default()).await.unwrap();
    let seen = Seen::default();
    let operator = Operator::start(place.manager().controller(Controller::new(own, seen.clone())));
    place.create(memo("other", "1")).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(seen.count("reconciles") > 3, "{}", seen.count("reconciles"));
    let release = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    secrets
        .patch("owner", &PatchParams::default(), &release)
        .await
        .unwrap();
    secrets
        .create(&PostParams::default(), &secret(&[]))
        .await
        .unwrap();
    eventually(SOON, || async { place.copied("owned").await.is_some() }).await;
    operator.stop().await.unwrap();
}

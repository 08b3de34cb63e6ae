//! Writes to a deleted object, which must not affect a new object with the same name.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use rbuilder::testing::eventually;
use rbuilder::{Action, Controller, Ctx, Result};
use serde_json::{Value, json};

use crate::support::{Memo, MemoStatus, Operator, Place, SOON, Server, config_map, memo, on_both_servers};

on_both_servers!(
    status_is_not_applied_to_a_namesake,
    apply_does_not_reach_a_namesake,
    patch_does_not_reach_a_namesake,
    finalizer_of_a_namesake_is_kept,
);

fn status(copied: &str) -> MemoStatus {
    MemoStatus {
        copied: Some(copied.to_owned()),
        ..MemoStatus::default()
    }
}

/// Returns two objects with the same name, the second one created after the first was deleted.
async fn namesakes(place: &Place) -> [Memo; 2] {
    let first = place.create(memo("memo", "1")).await;
    let memos = place.api::<Memo>();
    memos.delete("memo", &DeleteParams::default()).await.unwrap();
    [first, place.create(memo("memo", "2")).await]
}

async fn status_is_not_applied_to_a_namesake(server: Server) {
    let place = Place::new(server).await;
    let ctx = Ctx::new(place.env.client(), "memo", ());
    let [first, second] = namesakes(&place).await;
    let memos = place.api::<Memo>();
    for attempt in 0..2 {
        let error = ctx.apply_status(&first, status("first")).await.unwrap_err();
        assert!(
            error.is_conflict() && !error.is_field_manager_conflict(),
            "{attempt}: {error:?}"
        );
        assert_eq!(memos.get("memo").await.unwrap().status, None);
    }
    // The object may be older than its status, e.g. if a reconcile updates the status twice.
    for text in ["second", "again"] {
        let applied = ctx.apply_status(&second, status(text)).await.unwrap();
        assert_eq!(applied.status, Some(status(text)));
    }
}

async fn apply_does_not_reach_a_namesake(server: Server) {
    let place = Place::new(server).await;
    let ctx = Ctx::new(place.env.client(), "memo", ());
    let maps = place.api::<ConfigMap>();
    let first = maps.create(&PostParams::default(), &config_map("map", "1")).await;
    let mut first = first.unwrap();
    maps.delete("map", &DeleteParams::default()).await.unwrap();
    maps.create(&PostParams::default(), &config_map("map", "2"))
        .await
        .unwrap();
    first.metadata.resource_version = None;
    first.metadata.managed_fields = None;
    let error = ctx.apply(first).await.unwrap_err();
    assert!(error.is_conflict(), "{error:?}");
    assert_eq!(place.copied("map").await.as_deref(), Some("2"));
}

async fn patch_does_not_reach_a_namesake(server: Server) {
    let place = Place::new(server).await;
    let ctx = Ctx::new(place.env.client(), "memo", ());
    let [first, second] = namesakes(&place).await;
    let spec = json!({ "spec": { "text": "first" } });
    let json_patch = |path: &str, value: Value| {
        let operations = json!([{ "op": "add", "path": path, "value": value }]);
        Patch::<Value>::Json(serde_json::from_value(operations).unwrap())
    };
    let mut applied = json!({ "apiVersion": "controllers.example.com/v1", "kind": "Memo" });
    applied["metadata"] = json!({ "name": "memo" });
    applied["spec"] = spec["spec"].clone();
    for patch in [
        Patch::Merge(spec),
        json_patch("/spec/text", "first".into()),
        Patch::Apply(applied),
    ] {
        let error = ctx.patch(&first, &patch).await.unwrap_err();
        assert!(error.is_conflict(), "{patch:?}: {error:?}");
        ctx.patch(&second, &Patch::Merge(json!({ "spec": { "text": "2" } })))
            .await
            .unwrap();
    }
    let reported = json!({ "copied": "first" });
    for patch in [
        Patch::Merge(json!({ "status": reported })),
        json_patch("/status", reported),
    ] {
        let error = ctx.patch_status(&first, &patch).await.unwrap_err();
        assert!(error.is_conflict(), "{patch:?}: {error:?}");
    }
    let now = place.api::<Memo>().get("memo").await.unwrap();
    assert_eq!((now.spec.text.as_deref(), &now.status), (Some("2"), &None));
    let patched = ctx
        .patch_status(
            &second,
            &Patch::Merge(json!({ "status": { "copied": "second" } })),
        )
        .await;
    assert_eq!(patched.unwrap().status, Some(status("second")));
}

/// The object is deleted and recreated during the cleanup. The new object needs a cleanup of its
/// own.
async fn finalizer_of_a_namesake_is_kept(server: Server) {
    const FINALIZER: &str = "controllers.example.com/finalizer";
    /// Texts of the objects that were cleaned up.
    type Cleaned = Arc<Mutex<Vec<String>>>;
    let place = Place::new(server).await;
    async fn reconcile(_: Arc<Memo>, _: Ctx<Cleaned>) -> Result {
        Ok(Action::await_change())
    }
    fn held(text: &str) -> Memo {
        let mut memo = memo("memo", text);
        memo.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
        memo
    }
    async fn cleanup(memo: Arc<Memo>, ctx: Ctx<Cleaned>) -> Result {
        let text = memo.spec.text.clone().unwrap_or_default();
        if text == "1" {
            let memos = ctx.api::<Memo>(&*memo);
            let release = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
            memos.patch("memo", &PatchParams::default(), &release).await?;
            memos.create(&PostParams::default(), &held("2")).await?;
            memos.delete("memo", &DeleteParams::default()).await?;
        }
        ctx.lock().unwrap().push(text);
        Ok(Action::await_change())
    }
    let cleaned = Cleaned::default();
    let controller = Controller::new(reconcile, cleaned.clone()).finalizer(FINALIZER, cleanup);
    let operator = Operator::start(place.manager().controller(controller));
    place.create(held("1")).await;
    let memos = place.api::<Memo>();
    memos.delete("memo", &DeleteParams::default()).await.unwrap();
    eventually(SOON, || async { memos.get_opt("memo").await.unwrap().is_none() }).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    operator.stop().await.unwrap();
    assert_eq!(*cleaned.lock().unwrap(), ["1", "2"]);
}

//! Results of a reconcile's deletions, patches and applies are immediately visible in the cache.

use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{ApiResource, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use rbuilder::testing::eventually;
use rbuilder::{Action, Controller, Ctx, DynamicKind, Error, FieldManagerConflict, ObjectRef, Result};
use serde_json::json;

use crate::support::{Memo, MemoStatus, Operator, Place, SOON, Server, config_map, memo, on_both_servers};

on_both_servers!(
    reconcile_sees_its_finalizer,
    deleted_object_leaves_the_cache_immediately,
    cache_shows_the_deletion_of_an_object_with_a_finalizer,
    removing_the_last_finalizer_removes_the_object_from_the_cache,
    reconcile_sees_its_patches,
    namesake_is_not_deleted,
    apply_without_force_names_the_conflicting_managers,
    typed_and_dynamic_caches_show_own_writes,
);

/// With a single object, the watch might happen to be faster than the read.
const ROUNDS: usize = 20;

/// Errors that were found, and the number of reconciles without errors.
#[derive(Clone, Default)]
struct Findings(Arc<Mutex<(Vec<String>, usize)>>);

impl Findings {
    fn record(&self, found: std::result::Result<(), String>) {
        let (mistakes, good) = &mut *self.0.lock().unwrap();
        match found {
            Ok(()) => *good += 1,
            Err(mistake) => mistakes.push(mistake),
        }
    }

    async fn wait_for(&self, count: usize) {
        eventually(SOON, || async {
            let (mistakes, good) = &*self.0.lock().unwrap();
            assert!(mistakes.is_empty(), "{mistakes:?}");
            match *good >= count {
                true => Ok(()),
                false => Err(format!("{good} of {count}")),
            }
        })
        .await;
    }
}

fn expect(holds: bool, message: impl Into<String>) -> std::result::Result<(), String> {
    if holds { Ok(()) } else { Err(message.into()) }
}

fn find_cached<S>(ctx: &Ctx<S>, memo: &Memo) -> Option<Arc<Memo>> {
    ctx.cached::<Memo>().unwrap().get(&ObjectRef::from_obj(memo))
}

fn find_cached_map<S>(ctx: &Ctx<S>, map: &ConfigMap) -> Option<Arc<ConfigMap>> {
    let namespace = map.namespace().unwrap_or_default();
    ctx.cached::<ConfigMap>()
        .unwrap()
        .named(&namespace, &map.name_any())
}

async fn create_memos(place: &Place) {
    for round in 0..ROUNDS {
        place.create(memo(&format!("memo-{round}"), "1")).await;
    }
}

/// Creates a ConfigMap with the name of the memo.
async fn create_map(memo: &Memo, ctx: &Ctx<Findings>) -> Result<ConfigMap> {
    ctx.create_owned(memo, config_map(&memo.name_any(), "1")).await
}

async fn reconcile_sees_its_finalizer(server: Server) {
    const FINALIZER: &str = "controllers.example.com/own-writes";
    let place = Place::new(server).await;
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Findings>) -> Result {
        let cached = find_cached(&ctx, &memo).ok_or_else(|| Error::new("gone"))?;
        let is_seen = cached.finalizers().contains(&FINALIZER.to_owned());
        ctx.record(expect(is_seen, format!("{:?}", cached.metadata)));
        Ok(Action::await_change())
    }
    async fn clean_up(_: Arc<Memo>, _: Ctx<Findings>) -> Result {
        Ok(Action::await_change())
    }
    create_memos(&place).await;
    let findings = Findings::default();
    let controller = Controller::new(reconcile, findings.clone()).finalizer(FINALIZER, clean_up);
    let operator = Operator::start(place.manager().controller(controller));
    findings.wait_for(ROUNDS).await;
    operator.stop().await.unwrap();
}

async fn deleted_object_leaves_the_cache_immediately(server: Server) {
    let place = Place::new(server).await;
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Findings>) -> Result {
        let map = create_map(&memo, &ctx).await?;
        let left = ctx.delete(&map).await?;
        let cached = find_cached_map(&ctx, &map);
        ctx.record(expect(left.is_none(), format!("it is left: {left:?}")));
        ctx.record(expect(cached.is_none(), format!("it is cached: {cached:?}")));
        // Deleting it again is fine.
        ctx.record(expect(ctx.delete(&map).await?.is_none(), "it is there"));
        Ok(Action::await_change())
    }
    create_memos(&place).await;
    let findings = Findings::default();
    let controller = Controller::new(reconcile, findings.clone()).reads::<ConfigMap>();
    let operator = Operator::start(place.manager().controller(controller));
    findings.wait_for(3 * ROUNDS).await;
    operator.stop().await.unwrap();
}

async fn cache_shows_the_deletion_of_an_object_with_a_finalizer(server: Server) {
    let place = Place::new(server).await;
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Findings>) -> Result {
        if memo.metadata.deletion_timestamp.is_some() {
            return Ok(Action::await_change());
        }
        let left = ctx
            .delete(&*memo)
            .await?
            .ok_or_else(|| Error::new("it is held"))?;
        ctx.record(expect(left.metadata.deletion_timestamp.is_some(), "no timestamp"));
        let cached = find_cached(&ctx, &memo).ok_or_else(|| Error::new("gone"))?;
        let is_seen = cached.metadata.deletion_timestamp.is_some();
        ctx.record(expect(is_seen, format!("{:?}", cached.metadata)));
        Ok(Action::await_change())
    }
    for round in 0..ROUNDS {
        let mut held = memo(&format!("memo-{round}"), "1");
        held.metadata.finalizers = Some(vec!["example.com/held".to_owned()]);
        place.create(held).await;
    }
    let findings = Findings::default();
    let controller = Controller::new(reconcile, findings.clone());
    let operator = Operator::start(place.manager().controller(controller));
    findings.wait_for(2 * ROUNDS).await;
    operator.stop().await.unwrap();
}

/// The response to removing the last finalizer contains the object, although it no longer exists.
async fn removing_the_last_finalizer_removes_the_object_from_the_cache(server: Server) {
    let place = Place::new(server).await;
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Findings>) -> Result {
        if memo.metadata.deletion_timestamp.is_none() {
            return Ok(Action::await_change());
        }
        let released = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        ctx.patch(&*memo, &released).await?;
        let cached = find_cached(&ctx, &memo);
        ctx.record(expect(cached.is_none(), format!("{cached:?}")));
        Ok(Action::await_change())
    }
    let findings = Findings::default();
    let controller = Controller::new(reconcile, findings.clone()).reconciles_terminating();
    let operator = Operator::start(place.manager().controller(controller));
    for round in 0..ROUNDS {
        let mut held = memo(&format!("memo-{round}"), "1");
        held.metadata.finalizers = Some(vec!["example.com/held".to_owned()]);
        let held = place.create(held).await;
        let (memos, params) = (place.api::<Memo>(), DeleteParams::default());
        memos.delete(&held.name_any(), &params).await.unwrap();
    }
    findings.wait_for(ROUNDS).await;
    operator.stop().await.unwrap();
}

async fn reconcile_sees_its_patches(server: Server) {
    let place = Place::new(server).await;
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Findings>) -> Result {
        if memo.status.is_some() {
            return Ok(Action::await_change());
        }
        let merged = Patch::Merge(json!({ "spec": { "text": "merged" } }));
        ctx.patch(&*memo, &merged).await?;
        let text = find_cached(&ctx, &memo).and_then(|memo| memo.spec.text.clone());
        ctx.record(expect(text.as_deref() == Some("merged"), format!("{text:?}")));

        let operations = json!([
            { "op": "test", "path": "/spec/text", "value": "merged" },
            { "op": "replace", "path": "/spec/text", "value": "replaced" },
        ]);
        let replaced = Patch::Json::<()>(serde_json::from_value(operations)?);
        let patched = ctx.patch(&*memo, &replaced).await?;
        let text = find_cached(&ctx, &memo).and_then(|memo| memo.spec.text.clone());
        ctx.record(expect(text.as_deref() == Some("replaced"), format!("{text:?}")));
        let managers: Vec<_> = patched
            .managed_fields()
            .iter()
            .map(|entry| entry.manager.as_deref())
            .collect();
        ctx.record(expect(managers.contains(&Some("memo")), format!("{managers:?}")));

        let status = Patch::Merge(json!({ "status": { "copied": "yes" } }));
        ctx.patch_status(&*memo, &status).await?;
        let status: Option<MemoStatus> = find_cached(&ctx, &memo).and_then(|memo| memo.status.clone());
        let is_seen = status
            .as_ref()
            .is_some_and(|status| status.copied.as_deref() == Some("yes"));
        ctx.record(expect(is_seen, format!("{status:?}")));
        Ok(Action::await_change())
    }
    create_memos(&place).await;
    let findings = Findings::default();
    let controller = Controller::new(reconcile, findings.clone());
    let operator = Operator::start(place.manager().controller(controller));
    findings.wait_for(4 * ROUNDS).await;
    operator.stop().await.unwrap();
}

async fn namesake_is_not_deleted(server: Server) {
    let place = Place::new(server).await;
    let ctx = Ctx::new(place.env.client(), "memo", ());
    let seen = place.create(memo("one", "1")).await;
    ctx.delete(&seen).await.unwrap();
    let other = place.create(memo("one", "2")).await;
    let error = ctx.delete(&seen).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");

    place.change_text("one", "3").await;
    let as_seen = Preconditions {
        uid: other.uid(),
        resource_version: other.resource_version(),
    };
    let params = DeleteParams::orphan().preconditions(as_seen);
    let error = ctx.delete_with(&other, &params).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    let tried = DeleteParams {
        dry_run: true,
        ..DeleteParams::default()
    };
    ctx.delete_with(&other, &tried).await.unwrap();
    assert!(place.api::<Memo>().get_opt("one").await.unwrap().is_some());
    // Without a UID, this deletes any object with this name.
    let mut named = memo("one", "");
    named.metadata.namespace = Some(place.namespace.clone());
    assert!(ctx.delete(&named).await.unwrap().is_none());
    assert!(place.api::<Memo>().get_opt("one").await.unwrap().is_none());
}

fn find_conflict(error: &Error) -> &FieldManagerConflict {
    assert!(
        error.is_field_manager_conflict() && error.is_conflict(),
        "{error:?}"
    );
    error.downcast_ref().unwrap_or_else(|| panic!("{error:?}"))
}

async fn apply_without_force_names_the_conflicting_managers(server: Server) {
    let place = Place::new(server).await;
    let owner = place.create(memo("owner", "1")).await;
    let maps = place.api::<ConfigMap>();
    let created = PostParams {
        field_manager: Some("somebody".to_owned()),
        ..PostParams::default()
    };
    maps.create(&created, &config_map("note", "1")).await.unwrap();
    let ctx = Ctx::new(place.env.client(), "memo", ());
    let wanted = |text: &str| {
        let mut map = config_map("note", text);
        map.metadata.namespace = Some(place.namespace.clone());
        map
    };
    let gentle = ctx.without_force();
    // Two managers can share a field as long as both apply the same value.
    gentle.apply(wanted("1")).await.unwrap();
    for refused in [
        gentle.apply(wanted("2")).await.unwrap_err(),
        gentle.apply_owned(&owner, wanted("2")).await.unwrap_err(),
    ] {
        let conflict = find_conflict(&refused);
        assert_eq!(conflict.object, format!("ConfigMap {}/note", place.namespace));
        let [field] = &conflict.fields[..] else {
            panic!("{conflict:?}")
        };
        assert_eq!((&*field.field, &*field.manager), (".data.text", "somebody"));
    }
    assert_eq!(place.copied("note").await.as_deref(), Some("1"));
    ctx.apply(wanted("2")).await.unwrap();
    assert_eq!(place.copied("note").await.as_deref(), Some("2"));

    let status = Patch::Merge(json!({ "status": { "copied": "theirs" } }));
    let params = PatchParams {
        field_manager: Some("somebody".to_owned()),
        ..PatchParams::default()
    };
    let patched = place.api::<Memo>().patch_status("owner", &params, &status).await;
    let mut patched = patched.unwrap();
    patched.metadata.managed_fields = None;
    let mine = MemoStatus {
        copied: Some("mine".to_owned()),
        ..MemoStatus::default()
    };
    let refused = gentle.apply_status(&patched, &mine).await.unwrap_err();
    assert_eq!(find_conflict(&refused).fields[0].field, ".status.copied");
    let applied = ctx.apply_status(&patched, &mine).await.unwrap();
    assert_eq!(applied.status.unwrap().copied.as_deref(), Some("mine"));
}

fn dynamic_maps() -> DynamicKind {
    DynamicKind::namespaced(ApiResource::erase::<ConfigMap>(&()))
}

/// The same ConfigMap is cached as a Rust type and as a `DynamicObject`. Both caches must show
/// writes of either type.
async fn typed_and_dynamic_caches_show_own_writes(server: Server) {
    fn texts(ctx: &Ctx<Findings>, memo: &Memo) -> Result<[Option<String>; 2]> {
        let (namespace, name) = (memo.namespace().unwrap_or_default(), memo.name_any());
        let typed = ctx.cached::<ConfigMap>()?.named(&namespace, &name);
        let dynamic = ctx.cached_dynamic(&dynamic_maps())?.named(&namespace, &name);
        Ok([
            typed.and_then(|map| map.data.as_ref()?.get("text").cloned()),
            dynamic.and_then(|map| map.data["data"]["text"].as_str().map(str::to_owned)),
        ])
    }
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Findings>) -> Result {
        let check = |after: &str, expected: Option<&str>| -> Result<()> {
            let (found, expected) = (texts(&ctx, &memo)?, expected.map(str::to_owned));
            ctx.record(expect(
                found == [expected.clone(), expected],
                format!("after {after}: {found:?}"),
            ));
            Ok(())
        };
        let typed = ctx.apply_owned(&*memo, config_map(&memo.name_any(), "1")).await?;
        check("a typed apply", Some("1"))?;
        let patch = |text: &str| Patch::Merge(json!({ "data": { "text": text } }));
        ctx.patch(&typed, &patch("2")).await?;
        check("a typed patch", Some("2"))?;
        let child = dynamic_maps().object(memo.name_any());
        let child = child.data(json!({ "data": { "text": "3" } }));
        let dynamic = ctx.apply_owned(&*memo, child).await?;
        check("a dynamic apply", Some("3"))?;
        ctx.patch(&dynamic, &patch("4")).await?;
        check("a dynamic patch", Some("4"))?;
        ctx.delete(&dynamic).await?;
        check("a dynamic deletion", None)?;
        let typed = ctx
            .create_owned(&*memo, config_map(&memo.name_any(), "5"))
            .await?;
        check("a typed creation", Some("5"))?;
        ctx.delete(&typed).await?;
        check("a typed deletion", None)?;
        Ok(Action::await_change())
    }
    let place = Place::new(server).await;
    create_memos(&place).await;
    let findings = Findings::default();
    let controller = Controller::new(reconcile, findings.clone())
        .index("text", |_: &ConfigMap| Vec::new())
        .index_dynamic(&dynamic_maps(), "text", |_| Vec::new());
    let operator = Operator::start(place.manager().controller(controller));
    findings.wait_for(7 * ROUNDS).await;
    operator.stop().await.unwrap();
}

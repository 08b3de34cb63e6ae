//! Guarantee 14: watches can be added while the controller is running.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{GroupVersionKind, ObjectMeta};
use kube::{Api, ResourceExt};
use rbuilder::envtest::{Environment, eventually};
use rbuilder::{Action, Controller, Ctx, DynamicKind, ObjectRef, Result, Watch};
use serde_json::json;
use tokio::sync::Notify;

use crate::support::{Memo, Operator, Place, SOON, Seen, copy, memo};

fn secret(name: &str, about: &str) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some([("memo".to_owned(), about.to_owned())].into()),
            ..ObjectMeta::default()
        },
        ..Secret::default()
    }
}

fn to_memo(secret: &Secret, ctx: &Ctx<Seen>) -> Vec<ObjectRef<Memo>> {
    ctx.note(&format!("mapped {}", secret.name_any()));
    let memo = secret.labels().get("memo").map(|name| ObjectRef::new(name));
    memo.map(|memo| memo.within(&secret.namespace().unwrap_or_default()))
        .into_iter()
        .collect()
}

impl Place {
    async fn create_secret(&self, name: &str, about: &str) {
        self.api::<Secret>()
            .create(&PostParams::default(), &secret(name, about))
            .await
            .unwrap();
    }
}

/// Existing and new objects are delivered once, even if the watch is added repeatedly. The watch
/// stays active until the manager stops.
#[rbuilder::envtest::test]
async fn late_watch_delivers_existing_and_new_objects(env: Environment) {
    let place = Place::new(env).await;
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
        let watching = ctx.watch("secrets", Watch::mapped(to_memo))?;
        let secrets = watching.synced(SOON).await?;
        assert!(watching.is_synced());
        ctx.note(&format!("{} with {}", memo.name_any(), secrets.len()));
        // There is a cache for this kind from now on.
        assert_eq!(ctx.cached::<Secret>()?.len(), secrets.len());
        Ok(Action::await_change())
    }
    place.create_secret("early", "second").await;
    place.create(memo("first", "")).await;
    place.create(memo("second", "")).await;
    let seen = Seen::default();
    let controller = Controller::new(reconcile, seen.clone());
    let operator = Operator::start(place.manager().controller(controller));
    eventually(SOON, || async { seen.count("second with 1") >= 1 }).await;
    let before = seen.count("second with 2");

    place.create_secret("late", "second").await;
    eventually(SOON, || async { seen.count("second with 2") > before }).await;
    assert_eq!(
        (seen.count("mapped early"), seen.count("mapped late")),
        (1, 1),
        "both memos asked for the watch, several times"
    );
    operator.stop().await.unwrap();
    let after = seen.count("mapped late");
    place
        .api::<Secret>()
        .delete("late", &DeleteParams::default())
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(seen.count("mapped late"), after);
}

/// A removed watch no longer delivers anything. Its cache is dropped unless it has other users.
#[rbuilder::envtest::test]
async fn removed_watch_can_be_added_again(env: Environment) {
    let place = Place::new(env).await;
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
        let text = memo.spec.text.clone().unwrap_or_default();
        if text == "stop" {
            assert!(ctx.unwatch("secrets")?);
            assert!(!ctx.unwatch("secrets")?, "it was removed");
            assert!(ctx.cached::<Secret>().is_err(), "nothing else uses the cache");
        } else {
            let watching = ctx.watch("secrets", Watch::mapped(to_memo))?;
            watching.synced(SOON).await?;
        }
        ctx.note(&text);
        Ok(Action::await_change())
    }
    place.create(memo("memo", "start")).await;
    let seen = Seen::default();
    let manager = place
        .manager()
        .controller(Controller::new(reconcile, seen.clone()));
    let metrics = manager.metrics().clone();
    let operator = Operator::start(manager);
    eventually(SOON, || async { seen.count("start") >= 1 }).await;
    place.create_secret("first", "memo").await;
    eventually(SOON, || async { seen.count("mapped first") == 1 }).await;

    place.change_text("memo", "stop").await;
    eventually(SOON, || async { seen.count("stop") >= 1 }).await;
    place.create_secret("unseen", "memo").await;
    place.change_text("memo", "again").await;
    eventually(SOON, || async { seen.count("again") >= 1 }).await;
    // The new watch delivers all objects; the old one no longer exists.
    eventually(SOON, || async { seen.count("mapped unseen") == 1 }).await;
    assert_eq!(seen.count("mapped first"), 2);
    let objects = "rbuilder_cache_objects{kind=\"Secret\",content=\"whole\",selection=\"\",cluster=\"\"} 2\n";
    assert!(metrics.text().contains(objects), "{}", metrics.text());
    operator.stop().await.unwrap();
}

/// Dynamic kinds can be owned, too. A kind can have several watches with different names.
#[rbuilder::envtest::test]
async fn late_watches_of_dynamic_kinds_reconcile_owners(env: Environment) {
    let place = Place::new(env).await;
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
        let maps = DynamicKind::namespaced(ApiResource::erase::<ConfigMap>(&()));
        ctx.watch("owned", Watch::owned_dynamic(&maps))?;
        ctx.watch(
            "all",
            Watch::mapped_dynamic(&maps, |map: &DynamicObject, ctx: &Ctx<Seen>| {
                ctx.note(&format!("mapped {}", map.name_any()));
                Vec::<ObjectRef<Memo>>::new()
            }),
        )?;
        copy(memo, ctx).await
    }
    let seen = Seen::default();
    let controller = Controller::new(reconcile, seen.clone());
    let operator = Operator::start(place.manager().controller(controller));
    place.create(memo("note", "1")).await;
    eventually(SOON, || async { seen.count("mapped note") > 0 }).await;
    let edit = Patch::Merge(json!({ "data": { "text": "edited by hand" } }));
    place
        .api::<ConfigMap>()
        .patch("note", &PatchParams::default(), &edit)
        .await
        .unwrap();
    eventually(SOON, || async {
        place.copied("note").await.as_deref() == Some("1")
    })
    .await;
    operator.stop().await.unwrap();
}

fn late_crd(group: &str) -> CustomResourceDefinition {
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
    serde_json::from_value(crd).unwrap()
}

/// The watch of a kind that isn't served returns an error, and is retried until the CRD is
/// installed. The process isn't affected.
#[rbuilder::envtest::test]
async fn late_watch_waits_for_its_crd(env: Environment) {
    let place = Place::new(env).await;
    #[derive(Clone)]
    struct State {
        seen: Seen,
        late: DynamicKind,
        said: Arc<std::sync::Mutex<String>>,
    }
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<State>) -> Result {
        let namespace = memo.namespace().unwrap_or_default();
        let map =
            move |_: &DynamicObject, _: &Ctx<State>| vec![ObjectRef::<Memo>::new("note").within(&namespace)];
        let watching = ctx.watch("late", Watch::mapped_dynamic(&ctx.late, map))?;
        match watching.synced(Duration::from_millis(500)).await {
            Ok(found) => ctx.seen.note(&format!("{} found", found.len())),
            Err(error) => *ctx.said.lock().unwrap() = error.to_string(),
        }
        ctx.seen.note("reconciled");
        Ok(Action::await_change())
    }
    let group = format!("{}.example.com", place.namespace);
    let gvk = GroupVersionKind::gvk(&group, "v1", "Late");
    let late = DynamicKind::namespaced(ApiResource::from_gvk_with_plural(&gvk, "lates"));
    let state = State {
        seen: Seen::default(),
        late: late.clone(),
        said: Arc::default(),
    };
    place.create(memo("note", "")).await;
    let controller = Controller::new(reconcile, state.clone());
    let operator = Operator::start(place.manager().controller(controller));
    eventually(SOON, || async { state.seen.count("reconciled") >= 1 }).await;
    let expected = format!(
        "timed out after 500ms waiting for the cache of Late ({group}/v1) to sync; last error: \
         the API server does not serve lates.{group} in version v1; is the CRD installed?"
    );
    assert_eq!(*state.said.lock().unwrap(), expected);

    let crds: Api<CustomResourceDefinition> = Api::all(place.env.client());
    crds.create(&PostParams::default(), &late_crd(&group))
        .await
        .unwrap();
    let objects: Api<DynamicObject> =
        Api::namespaced_with(place.env.client(), &place.namespace, late.resource());
    eventually(SOON, || async {
        let object = DynamicObject::new("first", late.resource());
        let created = objects.create(&PostParams::default(), &object).await;
        created.is_ok() || matches!(created, Err(kube::Error::Api(status)) if status.is_already_exists())
    })
    .await;
    eventually(SOON, || async { state.seen.count("1 found") >= 1 }).await;
    operator.stop().await.unwrap();
    crds.delete(&format!("lates.{group}"), &DeleteParams::default())
        .await
        .unwrap();
}

/// A watch must not be mapped to a different kind, added by a mapping function, or added while the
/// manager is stopping.
#[rbuilder::envtest::test]
async fn invalid_late_watches_are_refused(env: Environment) {
    let place = Place::new(env).await;
    #[derive(Clone, Default)]
    struct State {
        seen: Seen,
        go_on: Arc<Notify>,
    }
    fn to_map(secret: &Secret, _: &Ctx<State>) -> Vec<ObjectRef<ConfigMap>> {
        vec![ObjectRef::new(&secret.name_any())]
    }
    fn from_a_mapping(_: &Secret, ctx: &Ctx<State>) -> Vec<ObjectRef<Memo>> {
        if let Err(error) = ctx.watch("nested", Watch::<ConfigMap>::owned()) {
            ctx.seen.note(&error.to_string());
        }
        Vec::new()
    }
    async fn reconcile(_: Arc<Memo>, ctx: Ctx<State>) -> Result {
        let error = ctx.watch("wrong", Watch::mapped(to_map)).unwrap_err();
        assert!(error.is_terminal());
        ctx.seen.note(&error.to_string());
        ctx.watch("nesting", Watch::mapped(from_a_mapping))?;
        ctx.seen.note("held");
        ctx.go_on.notified().await;
        let stopping = ctx.watch("late", Watch::<ConfigMap>::owned()).unwrap_err();
        ctx.seen.note(&stopping.to_string());
        Ok(Action::await_change())
    }
    place.create_secret("any", "none").await;
    place.create(memo("note", "")).await;
    let state = State::default();
    let controller = Controller::new(reconcile, state.clone());
    let operator = Operator::start(place.manager().controller(controller));
    let says = async |text: &str| eventually(SOON, || async { state.seen.count(text) == 1 }).await;
    says("the mapping function returns references to `ConfigMap`, but the controller reconciles `Memo`")
        .await;
    says(
        "a mapping function cannot add a watch, because the cache waits for it; add it in the reconcile function",
    )
    .await;
    says("held").await;
    let Operator { stop, ended } = operator;
    stop.send(()).unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    state.go_on.notify_one();
    ended.await.unwrap().unwrap();
    says("watch not added: the manager is stopping").await;
}

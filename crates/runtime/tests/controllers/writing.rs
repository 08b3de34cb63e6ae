//! Writes by a reconcile, in particular of objects that two owners compete for, and of objects that
//! are created or updated.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::{ObjectMeta, PartialObjectMeta};
use kube::{Resource, ResourceExt};
use rbuilder::testing::eventually;
use rbuilder::{Action, Controller, Ctx, Error, OwnershipError, Result, Written};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::support::{Memo, Operator, Place, SOON, Seen, Server, config_map, memo, on_both_servers};

on_both_servers!(
    concurrent_creation_has_one_owner,
    lagging_cache_does_not_take_an_object_over,
    object_is_created_updated_or_left_alone,
    update_keeps_undeclared_fields,
    unowned_object_is_created_or_adopted,
    concurrent_update_is_a_conflict,
    field_manager_conflict_is_distinguishable,
    changes_of_updated_objects_are_reverted,
);

/// Returns the object as cached by a controller that owns its kind.
fn metadata_of(map: &ConfigMap) -> PartialObjectMeta<ConfigMap> {
    PartialObjectMeta {
        metadata: map.metadata.clone(),
        ..PartialObjectMeta::default()
    }
}

fn is_taken(error: &Error) -> bool {
    error.is_conflict() || matches!(error.downcast_ref(), Some(OwnershipError::AlreadyOwned { .. }))
}

/// All owners share a controller, and therefore the field manager. The server would let the second
/// owner take over.
async fn concurrent_creation_has_one_owner(server: Server) {
    let place = Place::new(server).await;
    let (first, second) = (
        place.create(memo("first", "1")).await,
        place.create(memo("second", "2")).await,
    );
    let ctx = Ctx::new(place.env.client(), "memo", ());
    for round in 0..20 {
        let name = format!("wanted-{round}");
        let (one, two) = tokio::join!(
            ctx.apply_owned(&first, config_map(&name, "1")),
            ctx.apply_owned(&second, config_map(&name, "2")),
        );
        let (winner, loser, text) = match (&one, &two) {
            (Ok(_), Err(error)) => (&first, error, "1"),
            (Err(error), Ok(_)) => (&second, error, "2"),
            both => panic!("{name}: {both:?}"),
        };
        assert!(is_taken(loser), "{loser}");
        let made = place.api::<ConfigMap>().get(&name).await.unwrap();
        assert_eq!(made.owner_references()[0].uid, winner.uid().unwrap());
        assert_eq!(place.copied(&name).await.as_deref(), Some(text));
    }
}

/// A stale cache must not take an object away from its new owner.
async fn lagging_cache_does_not_take_an_object_over(server: Server) {
    let place = Place::new(server).await;
    let (first, second) = (
        place.create(memo("first", "1")).await,
        place.create(memo("second", "2")).await,
    );
    let maps = place.api::<ConfigMap>();
    let ctx = Ctx::new(place.env.client(), "memo", ());
    let made = ctx.apply_owned(&first, config_map("shared", "1")).await.unwrap();
    let behind = || Ctx::new(place.env.client(), "memo", ()).caching([metadata_of(&made)]);
    behind()
        .apply_owned(&first, config_map("shared", "new"))
        .await
        .unwrap();
    assert_eq!(place.copied("shared").await.as_deref(), Some("new"));

    maps.delete("shared", &DeleteParams::default()).await.unwrap();
    let gone = behind().apply_owned(&first, config_map("shared", "1")).await;
    assert!(gone.unwrap_err().is_conflict());
    ctx.apply_owned(&second, config_map("shared", "2")).await.unwrap();
    let taken = behind().apply_owned(&first, config_map("shared", "1")).await;
    let taken = taken.unwrap_err();
    assert!(taken.is_conflict(), "{taken}");
    assert_eq!(place.copied("shared").await.as_deref(), Some("2"));
}

fn set_text(text: &str) -> impl FnOnce(&mut ConfigMap) + '_ {
    move |map| {
        map.data
            .get_or_insert_default()
            .insert("text".to_owned(), text.to_owned());
    }
}

async fn object_is_created_updated_or_left_alone(server: Server) {
    let place = Place::new(server).await;
    let ctx = Ctx::new(place.env.client(), "memo", ());
    let wanted = || {
        let mut map = config_map("note", "");
        map.metadata.namespace = Some(place.namespace.clone());
        map
    };
    let write = async |text: &'static str| ctx.create_or_update(wanted(), set_text(text)).await.unwrap();
    let created = write("1").await;
    assert!(matches!(created, Written::Created(_)));
    let version = created.object().resource_version();

    let unchanged = write("1").await;
    assert!(matches!(unchanged, Written::Unchanged(_)) && !unchanged.is_changed());
    assert_eq!(unchanged.object().resource_version(), version);

    let updated = write("2").await;
    assert!(matches!(updated, Written::Updated(_)) && updated.is_changed());
    assert_eq!(place.copied("note").await.as_deref(), Some("2"));
    let managers = updated.into_object().metadata.managed_fields.unwrap();
    assert!(
        managers
            .iter()
            .all(|entry| entry.manager.as_deref() == Some("memo")),
        "{managers:?}"
    );
}

/// A ConfigMap type with no fields other than the data.
#[derive(Resource, Serialize, Deserialize, Clone, Debug)]
#[resource(inherit = "ConfigMap")]
struct Texts {
    metadata: ObjectMeta,
    data: BTreeMap<String, String>,
}

/// An update must preserve fields that aren't part of the type.
async fn update_keeps_undeclared_fields(server: Server) {
    let place = Place::new(server).await;
    let mut full = config_map("note", "1");
    full.metadata.namespace = Some(place.namespace.clone());
    full.binary_data = Some([("bytes".to_owned(), ByteString(vec![1, 2]))].into());
    let maps = place.api::<ConfigMap>();
    let made = maps.create(&PostParams::default(), &full).await.unwrap();

    let ctx = Ctx::new(place.env.client(), "memo", ());
    let texts = Texts {
        metadata: full.metadata.clone(),
        data: BTreeMap::new(),
    };
    let written = ctx
        .create_or_update(texts, |texts| {
            texts.data.insert("text".to_owned(), "2".to_owned());
        })
        .await;
    assert!(matches!(written, Ok(Written::Updated(_))), "{written:?}");
    let now = maps.get("note").await.unwrap();
    assert_eq!(now.data.unwrap()["text"], "2");
    assert_eq!(now.binary_data, made.binary_data);
}

async fn unowned_object_is_created_or_adopted(server: Server) {
    let place = Place::new(server).await;
    let (first, second) = (
        place.create(memo("first", "1")).await,
        place.create(memo("second", "2")).await,
    );
    let maps = place.api::<ConfigMap>();
    maps.create(&PostParams::default(), &config_map("orphan", "0"))
        .await
        .unwrap();
    let ctx = Ctx::new(place.env.client(), "memo", ());
    for (name, is_new) in [("orphan", false), ("new", true)] {
        let mine = ctx
            .create_or_update_owned(&first, config_map(name, ""), set_text("1"))
            .await;
        let mine = mine.unwrap();
        assert_eq!(matches!(mine, Written::Created(_)), is_new);
        assert!(mine.is_changed());
        assert_eq!(mine.object().owner_references()[0].name, "first");
        let theirs = ctx
            .create_or_update_owned(&second, config_map(name, ""), set_text("2"))
            .await;
        let error = theirs.unwrap_err().to_string();
        assert!(
            error.ends_with("is already owned by Memo first; it was not changed"),
            "{error}"
        );
        assert_eq!(place.copied(name).await.as_deref(), Some("1"));
    }
}

/// Of two concurrent writers, one gets a conflict, which a reconcile can simply return.
async fn concurrent_update_is_a_conflict(server: Server) {
    let place = Place::new(server).await;
    let wanted = |name: &str| {
        let mut map = config_map(name, "0");
        map.metadata.namespace = Some(place.namespace.clone());
        map
    };
    let ctx = Ctx::new(place.env.client(), "memo", ());
    let mut refusals = 0;
    for round in 0..20 {
        let name = format!("wanted-{round}");
        let (one, two) = tokio::join!(
            ctx.create_or_update(wanted(&name), set_text("1")),
            ctx.create_or_update(wanted(&name), set_text("2")),
        );
        for written in [one, two] {
            if let Err(refused) = written {
                assert!(refused.is_conflict(), "{refused}");
                refusals += 1;
            }
        }
    }
    assert!(refusals > 0, "no two of twenty were at once");

    // The cache contains the object, but the cluster has a newer version.
    let made = ctx.create_or_update(wanted("note"), |_| {}).await.unwrap();
    let behind = Ctx::new(place.env.client(), "memo", ()).caching([made.into_object()]);
    ctx.create_or_update(wanted("note"), set_text("3")).await.unwrap();
    let late = behind.create_or_update(wanted("note"), set_text("4")).await;
    assert!(late.unwrap_err().is_conflict());
    assert_eq!(place.copied("note").await.as_deref(), Some("3"));
}

/// An apply without `force` of a field that another manager has applied.
async fn field_manager_conflict_is_distinguishable(server: Server) {
    let place = Place::new(server).await;
    let maps = place.api::<ConfigMap>();
    let apply = |manager: &str, text: &str| {
        let mut map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "note" } });
        map["data"] = json!({ "text": text });
        let (maps, params) = (maps.clone(), PatchParams::apply(manager));
        async move { maps.patch("note", &params, &Patch::Apply(map)).await }
    };
    apply("first", "1").await.unwrap();
    let error = Error::from(apply("second", "2").await.unwrap_err());
    assert!(error.is_field_manager_conflict(), "{error:?}");
    assert!(error.is_conflict());

    let mut stale = maps.get("note").await.unwrap();
    stale.metadata.managed_fields = None;
    apply("first", "3").await.unwrap();
    let replaced = maps.replace("note", &PostParams::default(), &stale).await;
    let error = Error::from(replaced.unwrap_err());
    assert!(
        error.is_conflict() && !error.is_field_manager_conflict(),
        "{error:?}"
    );
}

/// While objects are cached, only changes take a request.
async fn changes_of_updated_objects_are_reverted(server: Server) {
    let place = Place::new(server).await;
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
        let text = memo.spec.text.clone().unwrap_or_default();
        let copy = config_map(&memo.name_any(), "");
        let written = ctx.create_or_update_owned(&*memo, copy, set_text(&text)).await?;
        ctx.note(if written.is_changed() {
            "written"
        } else {
            "left alone"
        });
        Ok(Action::await_change())
    }
    let seen = Seen::default();
    let controller = Controller::new(reconcile, seen.clone())
        .owns::<ConfigMap>()
        .reads::<ConfigMap>();
    let operator = Operator::start(place.manager().controller(controller));
    place.create(memo("note", "1")).await;
    eventually(SOON, || async {
        place.copied("note").await.as_deref() == Some("1")
    })
    .await;
    let edit = Patch::Merge(json!({ "data": { "text": "edited", "other": "kept" } }));
    let maps = place.api::<ConfigMap>();
    maps.patch("note", &PatchParams::default(), &edit).await.unwrap();
    eventually(SOON, || async {
        place.copied("note").await.as_deref() == Some("1")
    })
    .await;
    place.change_text("note", "2").await;
    eventually(SOON, || async {
        place.copied("note").await.as_deref() == Some("2")
    })
    .await;
    let data = maps.get("note").await.unwrap().data.unwrap();
    assert_eq!(data.get("other").map(String::as_str), Some("kept"));
    operator.stop().await.unwrap();
    assert_eq!(seen.count("written"), 3);
}

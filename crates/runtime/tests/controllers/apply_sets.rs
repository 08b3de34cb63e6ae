//! Sets of objects, which are applied in order, and deleted once they leave the set.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::core::GroupVersionKind;
use kube::{Api, Client, CustomResource, ResourceExt};
use rbuilder::envtest::Environment;
use rbuilder::fake::ApiServer;
use rbuilder::testing::eventually;
use rbuilder::{
    Action, AppliedSet, ApplySet, Controller, Ctx, DynamicKind, ObjectRef, OwnershipError, Result,
    set_controller_reference,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::support::{Memo, Operator, Place, SOON, Seen, Server, config_map, memo, on_both_servers};

on_both_servers!(
    objects_that_leave_the_set_are_deleted,
    foreign_objects_are_left_alone,
    members_that_lost_their_owner_reference_are_taken_back,
    kept_objects_are_not_deleted,
    members_that_an_administrator_keeps_lose_their_owner_reference,
    objects_without_an_owner_reference_are_deleted_too,
    objects_wait_for_their_predecessors,
    custom_resource_is_applied_after_its_crd,
    object_is_found_in_another_version,
    copied_owner_does_not_share_the_set,
    dynamic_kinds_can_be_owners_and_members,
    namespaces_and_crds_stay_while_their_content_is_wanted,
    namespaces_and_crds_are_only_deleted_on_request,
    namespaces_and_crds_with_objects_of_others_stay,
    object_moves_to_the_set_of_another_controller,
    object_in_two_sets_is_an_error,
    objects_are_found_after_the_record_was_lost,
    objects_are_deleted_with_their_owner_after_the_record_was_lost,
    copies_of_members_are_not_taken_for_members,
    kept_objects_are_taken_over_by_a_recreated_owner,
    unstructured_object_is_applied_after_its_crd,
    child_of_a_cluster_scoped_owner_needs_a_namespace,
);

const RECORD: &str = "rbuilder.dev/apply-set.memo";

fn maps(names: &[&str]) -> ApplySet {
    let mut set = ApplySet::new();
    set.extend(names.iter().map(|name| config_map(name, "1")));
    set
}

impl Place {
    fn ctx(&self) -> Ctx<()> {
        Ctx::new(self.env.client(), "memo", ())
    }

    /// Applies a set for the current version of the owner.
    async fn apply_set(&self, owner: &str, set: ApplySet) -> Result<AppliedSet> {
        let owner = self.api::<Memo>().get(owner).await?;
        self.ctx().apply_set(&owner, set).await
    }

    async fn map_names(&self) -> Vec<String> {
        let list = self.api::<ConfigMap>().list(&ListParams::default()).await;
        let names = list.unwrap().into_iter().map(|map| map.name_any());
        names.filter(|name| name != "kube-root-ca.crt").collect()
    }

    async fn record(&self, owner: &str) -> Option<String> {
        let owner = self.api::<Memo>().get(owner).await.unwrap();
        owner.annotations().get(RECORD).cloned()
    }
}

async fn objects_that_leave_the_set_are_deleted(server: Server) {
    let place = Place::new(server).await;
    place.create(memo("owner", "1")).await;
    let maps_api = place.api::<ConfigMap>();

    let applied = place.apply_set("owner", maps(&["a", "b", "c"])).await.unwrap();
    assert!(applied.is_complete());
    assert_eq!(applied.action(), Action::await_change());
    let b = maps_api.get("b").await.unwrap();
    assert_eq!(applied.get::<ConfigMap>("b").map(|map| map.uid()), Some(b.uid()));
    assert!(applied.get::<Secret>("b").is_none());
    assert_eq!(b.owner_references()[0].controller, Some(true));
    let record = place.record("owner").await.unwrap();
    let entry = format!(
        "configmaps.v1/ConfigMap/{}/b/{}",
        place.namespace,
        b.uid().unwrap()
    );
    assert!(record.contains(&entry), "{record}");

    let applied = place.apply_set("owner", maps(&["b", "d"])).await.unwrap();
    assert!(applied.is_complete());
    assert_eq!(place.map_names().await, ["b", "d"]);
    assert_eq!(maps_api.get("b").await.unwrap().uid(), b.uid());

    let applied = place.apply_set("owner", ApplySet::new()).await.unwrap();
    assert!(applied.is_complete());
    assert!(place.map_names().await.is_empty());
    // An empty record shows that nothing was lost.
    assert!(place.record("owner").await.unwrap().contains(r#""objects":[]"#));
}

async fn foreign_objects_are_left_alone(server: Server) {
    let place = Place::new(server).await;
    place.create(memo("owner", "1")).await;
    let other = place.create(memo("other", "1")).await;
    let api = place.api::<ConfigMap>();
    let mut owned = config_map("owned", "0");
    set_controller_reference(&other, &mut owned).unwrap();
    for foreign in [config_map("foreign", "0"), owned] {
        let name = foreign.name_any();
        let foreign = api.create(&PostParams::default(), &foreign).await.unwrap();
        let refused = place.apply_set("owner", maps(&["mine", &name])).await;
        let error = refused.err().unwrap();
        let expected = match &*name {
            "owned" => matches!(error.downcast_ref(), Some(OwnershipError::AlreadyOwned { .. })),
            _ => matches!(error.downcast_ref(), Some(OwnershipError::NotOwned { .. })),
        };
        assert!(expected, "{error:?}");
        // The object is recorded, because the process could have crashed right after the apply.
        // Still, it must not be deleted.
        assert!(place.record("owner").await.unwrap().contains(&name));
        assert!(
            place
                .apply_set("owner", maps(&["mine"]))
                .await
                .unwrap()
                .is_complete()
        );
        assert_eq!(api.get(&name).await.unwrap(), foreign);
    }

    // Another client recreates one of the objects (with the same owner), and a different controller
    // takes over another object.
    drop(
        place
            .apply_set("owner", maps(&["mine", "again", "taken"]))
            .await
            .unwrap(),
    );
    let mut again = api.get("again").await.unwrap();
    api.delete("again", &DeleteParams::default()).await.unwrap();
    again.metadata.resource_version = None;
    again.metadata.uid = None;
    api.create(&PostParams::default(), &again).await.unwrap();
    let mut taken = api.get("taken").await.unwrap();
    taken.metadata.owner_references = None;
    set_controller_reference(&other, &mut taken).unwrap();
    api.replace("taken", &PostParams::default(), &taken)
        .await
        .unwrap();
    assert!(
        place
            .apply_set("owner", ApplySet::new())
            .await
            .unwrap()
            .is_complete()
    );
    assert_eq!(place.map_names().await, ["again", "foreign", "owned", "taken"]);
}

/// `kubectl replace` without the metadata.
async fn replace_map(place: &Place, name: &str) {
    let maps = place.api::<ConfigMap>();
    let mut replaced = config_map(name, "replaced");
    replaced.metadata.resource_version = maps.get(name).await.unwrap().resource_version();
    maps.replace(name, &PostParams::default(), &replaced)
        .await
        .unwrap();
}

async fn members_that_lost_their_owner_reference_are_taken_back(server: Server) {
    let place = Place::new(server).await;
    let owner = place.create(memo("owner", "1")).await;
    let api = place.api::<ConfigMap>();
    drop(place.apply_set("owner", maps(&["a", "b"])).await.unwrap());
    let before = api.get("a").await.unwrap();
    replace_map(&place, "a").await;
    assert!(api.get("a").await.unwrap().owner_references().is_empty());
    assert!(
        place
            .apply_set("owner", maps(&["a", "b"]))
            .await
            .unwrap()
            .is_complete()
    );
    let after = api.get("a").await.unwrap();
    assert_eq!(after.uid(), before.uid());
    assert_eq!(after.owner_references(), before.owner_references());
    assert_eq!(place.copied("a").await.as_deref(), Some("1"));

    // An object that somebody created in its place is not taken.
    api.delete("a", &DeleteParams::default()).await.unwrap();
    api.create(&PostParams::default(), &config_map("a", "foreign"))
        .await
        .unwrap();
    let error = place.apply_set("owner", maps(&["a", "b"])).await.err().unwrap();
    assert!(
        matches!(error.downcast_ref(), Some(OwnershipError::NotOwned { .. })),
        "{error:?}"
    );
    assert!(error.to_string().contains("`ctx.apply_owned`"), "{error}");

    // An owner that is gone takes nothing back, even if a stale copy of it is reconciled.
    replace_map(&place, "b").await;
    let stale = place.api::<Memo>().get("owner").await.unwrap();
    place
        .api::<Memo>()
        .delete("owner", &DeleteParams::default())
        .await
        .unwrap();
    place.ctx().apply_set(&stale, maps(&["b"])).await.err().unwrap();
    assert!(api.get("b").await.unwrap().owner_references().is_empty());
    assert_eq!(stale.uid(), owner.uid());
}

async fn kept_objects_are_not_deleted(server: Server) {
    let place = Place::new(server).await;
    place.create(memo("owner", "1")).await;
    let api = place.api::<ConfigMap>();
    let set = maps(&["marked", "other"]).add_kept(config_map("kept", "1"));
    assert!(place.apply_set("owner", set).await.unwrap().is_complete());
    let kept = api.get("kept").await.unwrap();
    assert!(
        kept.owner_references().is_empty(),
        "it would be deleted with its owner"
    );
    let keep = Patch::Merge(json!({ "metadata": { "annotations": { "rbuilder.dev/keep": "true" } } }));
    api.patch("marked", &PatchParams::default(), &keep).await.unwrap();

    assert!(
        place
            .apply_set("owner", ApplySet::new())
            .await
            .unwrap()
            .is_complete()
    );
    assert_eq!(place.map_names().await, ["kept", "marked"]);
    assert!(place.record("owner").await.unwrap().contains(r#""objects":[]"#));
    assert!(api.get("marked").await.unwrap().owner_references().is_empty());
    // The object can rejoin the set.
    let set = maps(&[]).add_kept(config_map("kept", "2"));
    assert!(place.apply_set("owner", set).await.unwrap().is_complete());
    assert_eq!(place.copied("kept").await.as_deref(), Some("2"));
}

/// The annotation of an administrator.
async fn annotate_to_keep(place: &Place, name: &str, value: Option<&str>) {
    let keep = json!({ "metadata": { "annotations": { "rbuilder.dev/keep": value } } });
    let maps = place.api::<ConfigMap>();
    maps.patch(name, &PatchParams::default(), &Patch::Merge(keep))
        .await
        .unwrap();
}

/// Asserts that only the annotation identifies the owner.
async fn assert_kept(place: &Place, name: &str, owner: &Memo) {
    let found = place.api::<ConfigMap>().get(name).await.unwrap();
    assert!(found.owner_references().is_empty(), "{name}");
    let marked = ApplySet::owner_of::<Memo>(&found);
    assert_eq!(marked, Some(ObjectRef::from_obj(owner)), "{name}");
}

async fn members_that_an_administrator_keeps_lose_their_owner_reference(server: Server) {
    let place = Place::new(server).await;
    let owner = place.create(memo("owner", "1")).await;
    let api = place.api::<ConfigMap>();
    let names = ["shared", "stays", "leaves", "late", "other"];
    drop(place.apply_set("owner", maps(&names)).await.unwrap());
    // Another field manager sets the same reference.
    let shared = api.get("shared").await.unwrap();
    let same = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "shared", "ownerReferences": shared.owner_references(),
    }});
    let params = PatchParams::apply("another");
    api.patch("shared", &params, &Patch::Apply(same)).await.unwrap();
    for name in ["shared", "stays", "leaves"] {
        annotate_to_keep(&place, name, Some("true")).await;
    }
    let set = || maps(&["shared", "stays", "late", "other"]);
    assert!(place.apply_set("owner", set()).await.unwrap().is_complete());
    for name in ["shared", "stays", "leaves"] {
        assert_kept(&place, name, &owner).await;
    }
    // What has left the set can return to it.
    assert!(
        place
            .apply_set("owner", maps(&names))
            .await
            .unwrap()
            .is_complete()
    );
    assert_kept(&place, "leaves", &owner).await;

    annotate_to_keep(&place, "stays", None).await;
    drop(place.apply_set("owner", maps(&names)).await.unwrap());
    assert_eq!(api.get("stays").await.unwrap().owner_references().len(), 1);
    // The same for an object that the set has kept itself.
    let kept = || config_map("other", "1");
    let set = || maps(&["shared", "stays", "leaves", "late"]);
    drop(place.apply_set("owner", set().add_kept(kept())).await.unwrap());
    assert_kept(&place, "other", &owner).await;
    drop(place.apply_set("owner", set().add(kept())).await.unwrap());
    let other = api.get("other").await.unwrap();
    assert_eq!(other.owner_references().len(), 1);
    assert!(other.annotations().is_empty(), "{:?}", other.annotations());

    // No reconcile has seen the annotation before the cleanup of the finalizer.
    annotate_to_keep(&place, "late", Some("true")).await;
    let memos = place.api::<Memo>();
    let finalizer = Patch::Merge(json!({ "metadata": { "finalizers": ["controllers.example.com/set"] } }));
    memos
        .patch("owner", &PatchParams::default(), &finalizer)
        .await
        .unwrap();
    memos.delete("owner", &DeleteParams::default()).await.unwrap();
    let going = memos.get("owner").await.unwrap();
    assert!(place.ctx().delete_set(&going).await.unwrap().is_complete());
    for name in ["shared", "late", "leaves"] {
        assert_kept(&place, name, &owner).await;
    }
    for name in ["stays", "other"] {
        assert_eq!(api.get(name).await.unwrap().owner_references().len(), 1, "{name}");
    }
}

async fn objects_without_an_owner_reference_are_deleted_too(server: Server) {
    let place = Place::new(server).await;
    let elsewhere = place.env.namespace("elsewhere").await;
    let others: Api<ConfigMap> = Api::namespaced(place.env.client(), &elsewhere);
    let roles: Api<ClusterRole> = Api::all(place.env.client());
    let role_name = format!("role-of-{}", place.namespace);
    let set = || {
        let mut role = ClusterRole::default();
        role.metadata.name = Some(role_name.clone());
        let mut map = config_map("far", "1");
        map.metadata.namespace = Some(elsewhere.clone());
        let mut kept = config_map("kept", "1");
        kept.metadata.namespace = Some(elsewhere.clone());
        maps(&["near"]).add(role).add(map).add_kept(kept)
    };
    let owner = place.create(memo("owner", "1")).await;
    let error = place.apply_set("owner", set()).await.err().unwrap();
    assert!(error.is_terminal(), "{error:?}");
    let expected = format!(
        "ClusterRole {role_name} cannot have an owner reference to Memo {}/owner",
        place.namespace
    );
    assert!(error.to_string().starts_with(&expected), "{error}");

    let finalizer = Patch::Merge(json!({ "metadata": { "finalizers": ["controllers.example.com/set"] } }));
    let memos = place.api::<Memo>();
    memos
        .patch("owner", &PatchParams::default(), &finalizer)
        .await
        .unwrap();
    assert!(place.apply_set("owner", set()).await.unwrap().is_complete());
    let far = others.get("far").await.unwrap();
    let mark = format!(
        "Memo.controllers.example.com/{}/owner/{}",
        place.namespace,
        owner.uid().unwrap()
    );
    assert_eq!(far.annotations().get("rbuilder.dev/apply-set-owner"), Some(&mark));
    assert!(far.owner_references().is_empty());
    let found = ApplySet::owner_of::<Memo>(&far);
    assert_eq!(found, Some(ObjectRef::from_obj(&owner)));
    assert_eq!(ApplySet::owner_of::<Secret>(&far), None);
    roles.get(&role_name).await.unwrap();

    assert!(
        place
            .apply_set("owner", maps(&["near"]))
            .await
            .unwrap()
            .is_complete()
    );
    assert_eq!(others.get_opt("far").await.unwrap(), None);
    assert!(roles.get_opt(&role_name).await.unwrap().is_none());

    // Same as the cleanup of the finalizer.
    assert!(place.apply_set("owner", set()).await.unwrap().is_complete());
    memos.delete("owner", &DeleteParams::default()).await.unwrap();
    let going = memos.get("owner").await.unwrap();
    let refused = place.ctx().apply_set(&going, set()).await;
    assert!(refused.err().unwrap().is_owner_terminating());
    let deleted = place.ctx().delete_set(&going).await.unwrap();
    assert!(deleted.is_complete());
    assert_eq!(others.get_opt("far").await.unwrap(), None);
    assert!(roles.get_opt(&role_name).await.unwrap().is_none());
    assert!(others.get_opt("kept").await.unwrap().is_some());
    assert_eq!(
        place.map_names().await,
        ["near"],
        "the garbage collector deletes it"
    );
}

async fn objects_wait_for_their_predecessors(server: Server) {
    let place = Place::new(server).await;
    place.create(memo("owner", "1")).await;
    drop(place.apply_set("owner", maps(&["old"])).await.unwrap());
    let api = place.api::<ConfigMap>();
    let set = || {
        let is_ready = |map: &ConfigMap| map.annotations().contains_key("ready");
        maps(&["first"])
            .add_and_wait(config_map("slow", "1"), is_ready)
            .add(config_map("last", "1"))
    };
    for _ in 0..2 {
        let applied = place.apply_set("owner", set()).await.unwrap();
        assert!(!applied.is_complete());
        assert_eq!(
            applied.waiting_for(),
            Some(&*format!("ConfigMap {}/slow", place.namespace))
        );
        assert_eq!(applied.action(), Action::requeue(Duration::from_secs(5)));
        assert_eq!(place.map_names().await, ["first", "old", "slow"]);
    }
    let ready = Patch::Merge(json!({ "metadata": { "annotations": { "ready": "yes" } } }));
    api.patch("slow", &PatchParams::default(), &ready).await.unwrap();
    assert!(place.apply_set("owner", set()).await.unwrap().is_complete());
    assert_eq!(place.map_names().await, ["first", "last", "slow"]);

    // The object has left the set, but a finalizer delays its deletion.
    let held = Patch::Merge(json!({ "metadata": { "finalizers": ["other.example.com/held"] } }));
    api.patch("last", &PatchParams::default(), &held).await.unwrap();
    let applied = place.apply_set("owner", maps(&["first"])).await.unwrap();
    assert_eq!(applied.leaving(), [format!("ConfigMap {}/last", place.namespace)]);
    assert!(!applied.is_complete());
    let released = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    api.patch("last", &PatchParams::default(), &released)
        .await
        .unwrap();
    let applied = place.apply_set("owner", maps(&["first"])).await.unwrap();
    assert!(applied.is_complete());
    assert!(!place.record("owner").await.unwrap().contains("last"));
}

/// A kind with the version `v1`.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default)]
#[kube(
    group = "sets.example.com",
    version = "v1",
    kind = "Gadget",
    namespaced,
    schema = "disabled"
)]
struct GadgetSpec {}

/// Another kind, in its older version.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default)]
#[kube(
    group = "sets.example.com",
    version = "v1",
    kind = "Widget",
    namespaced,
    schema = "disabled"
)]
struct WidgetSpec {}

/// The flags specify which versions are served.
fn crd(kind: &str, versions: &[(&str, bool)]) -> CustomResourceDefinition {
    let plural = format!("{}s", kind.to_lowercase());
    let versions: Vec<_> = versions
        .iter()
        .enumerate()
        .map(|(at, (name, served))| {
            json!({
                "name": name, "served": served, "storage": at + 1 == versions.len(),
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            })
        })
        .collect();
    let crd = json!({
        "metadata": { "name": format!("{plural}.sets.example.com") },
        "spec": {
            "group": "sets.example.com", "scope": "Namespaced", "versions": versions,
            "names": { "kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List") },
        },
    });
    serde_json::from_value(crd).unwrap()
}

async fn custom_resource_is_applied_after_its_crd(server: Server) {
    let place = Place::new(server).await;
    let mut owner = memo("owner", "1");
    owner.metadata.finalizers = Some(vec!["controllers.example.com/set".to_owned()]);
    place.create(owner).await;
    let set = || {
        ApplySet::new()
            .add(crd("Gadget", &[("v1", true)]))
            .add(Gadget::new("one", GadgetSpec {}))
    };
    eventually(SOON, || async {
        let applied = place.apply_set("owner", set()).await.unwrap();
        match applied.waiting_for() {
            None => Ok(()),
            Some(object) => {
                assert_eq!(object, "CustomResourceDefinition gadgets.sets.example.com");
                Err(object.to_owned())
            }
        }
    })
    .await;
    place.api::<Gadget>().get("one").await.unwrap();
    eventually(SOON, || async {
        let set = ApplySet::new().delete_namespaces_and_crds();
        let applied = place.apply_set("owner", set).await.unwrap();
        assert!(applied.staying().is_empty(), "{:?}", applied.staying());
        applied.is_complete()
    })
    .await;
    let crds: Api<CustomResourceDefinition> = Api::all(place.env.client());
    assert!(crds.get_opt("gadgets.sets.example.com").await.unwrap().is_none());
}

async fn object_is_found_in_another_version(server: Server) {
    let place = Place::new(server).await;
    place.create(memo("owner", "1")).await;
    let crds: Api<CustomResourceDefinition> = Api::all(place.env.client());
    let params = PatchParams::apply("test").force();
    let install = async |versions: &[(&str, bool)]| {
        let mut crd = serde_json::to_value(crd("Widget", versions)).unwrap();
        crd["apiVersion"] = "apiextensions.k8s.io/v1".into();
        crd["kind"] = "CustomResourceDefinition".into();
        let patch = Patch::Apply(crd);
        crds.patch("widgets.sets.example.com", &params, &patch)
            .await
            .unwrap();
    };
    install(&[("v1", true), ("v2", true)]).await;
    let widgets = place.api::<Widget>();
    eventually(SOON, || async { widgets.list(&ListParams::default()).await }).await;
    let set = ApplySet::new().add(Widget::new("one", WidgetSpec {}));
    assert!(place.apply_set("owner", set).await.unwrap().is_complete());
    install(&[("v1", false), ("v2", true)]).await;
    eventually(SOON, || async {
        widgets.list(&ListParams::default()).await.is_err()
    })
    .await;

    assert!(
        place
            .apply_set("owner", ApplySet::new())
            .await
            .unwrap()
            .is_complete()
    );
    install(&[("v1", true), ("v2", true)]).await;
    let list = eventually(SOON, || async { widgets.list(&ListParams::default()).await }).await;
    assert!(list.items.is_empty());
}

async fn copied_owner_does_not_share_the_set(server: Server) {
    let place = Place::new(server).await;
    place.create(memo("owner", "1")).await;
    drop(place.apply_set("owner", maps(&["a"])).await.unwrap());
    let mut copy = memo("copy", "1");
    copy.annotations_mut()
        .insert(RECORD.to_owned(), place.record("owner").await.unwrap());
    place.create(copy).await;
    assert!(
        place
            .apply_set("copy", ApplySet::new())
            .await
            .unwrap()
            .is_complete()
    );
    assert_eq!(place.map_names().await, ["a"]);

    let damage = Patch::Merge(json!({ "metadata": { "annotations": { RECORD: "{" } } }));
    let memos = place.api::<Memo>();
    memos
        .patch("owner", &PatchParams::default(), &damage)
        .await
        .unwrap();
    let error = place.apply_set("owner", ApplySet::new()).await.err().unwrap();
    assert!(error.is_terminal(), "{error:?}");
    let expected = format!(
        "cannot read the annotation `{RECORD}` of Memo {}/owner",
        place.namespace
    );
    assert!(error.to_string().starts_with(&expected), "{error}");
}

async fn dynamic_kinds_can_be_owners_and_members(server: Server) {
    let place = Place::new(server).await;
    place.create(memo("owner", "1")).await;
    let memos = ApiResource::erase::<Memo>(&());
    let memos: Api<DynamicObject> = Api::namespaced_with(place.env.client(), &place.namespace, &memos);
    let config_maps = DynamicKind::namespaced(ApiResource::erase::<ConfigMap>(&()));
    let dynamic = ApplySet::new().add(config_maps.object("dynamic"));
    for (set, expected) in [(dynamic, "dynamic"), (maps(&["typed"]), "typed")] {
        let owner = memos.get("owner").await.unwrap();
        let applied = place.ctx().apply_set(&owner, set).await.unwrap();
        assert!(applied.is_complete());
        assert_eq!(place.map_names().await, [expected]);
    }
    let typed = place.api::<ConfigMap>().get("typed").await.unwrap();
    assert_eq!(typed.owner_references()[0].kind, "Memo");
}

const FINALIZER: &str = "controllers.example.com/set";

impl Place {
    /// Creates an owner with a finalizer.
    async fn create_owner(&self, name: &str) -> Memo {
        let mut owner = memo(name, "1");
        owner.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
        self.create(owner).await
    }

    /// Applies a set as another controller.
    async fn apply_as(&self, controller: &str, set: ApplySet) -> Result<AppliedSet> {
        let owner = self.api::<Memo>().get("owner").await?;
        let ctx = Ctx::new(self.env.client(), controller, ());
        ctx.apply_set(&owner, set).await
    }

    /// Applies a set until all of its objects exist, e.g. because a CRD has to be established.
    async fn apply_until_ready(&self, owner: &str, set: impl Fn() -> ApplySet) -> AppliedSet {
        eventually(SOON, || async {
            let applied = self.apply_set(owner, set()).await.unwrap();
            match applied.waiting_for() {
                None => Ok(applied),
                Some(object) => Err(object.to_owned()),
            }
        })
        .await
    }

    fn inner(&self) -> (String, Namespace, Secret) {
        let name = format!("{}-inner", self.namespace);
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.clone());
        let mut secret = Secret::default();
        secret.metadata.name = Some("data".to_owned());
        secret.metadata.namespace = Some(name.clone());
        (name, namespace, secret)
    }

    /// Whether an object exists and isn't being deleted.
    async fn stays<K>(&self, api: &Api<K>, name: &str) -> bool
    where
        K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
    {
        let found = api.get_opt(name).await.unwrap();
        found.is_some_and(|found| found.meta().deletion_timestamp.is_none())
    }

    /// Replaces an owner like `kubectl replace -f` with a file that lacks the operator's annotations.
    async fn replace_owner(&self, text: &str) {
        let memos = self.api::<Memo>();
        let mut owner = memos.get("owner").await.unwrap();
        owner.metadata.annotations = None;
        owner.spec.text = Some(text.to_owned());
        let replaced = memos.replace("owner", &PostParams::default(), &owner).await;
        assert_eq!(replaced.unwrap().annotations().len(), 0);
    }

    fn role(&self) -> ClusterRole {
        let mut role = ClusterRole::default();
        role.metadata.name = Some(format!("role-of-{}", self.namespace));
        role
    }

    async fn has_role(&self) -> bool {
        let roles: Api<ClusterRole> = Api::all(self.env.client());
        roles.get_opt(&self.role().name_any()).await.unwrap().is_some()
    }
}

async fn namespaces_and_crds_stay_while_their_content_is_wanted(server: Server) {
    let place = Place::new(server).await;
    place.create_owner("owner").await;
    let (name, namespace, secret) = place.inner();
    let crd = || crd("Carton", &[("v1", true)]);
    let cartons = || ApplySet::new().add(Carton::new("one", CartonSpec {}));
    let all = || cartons().add(secret.clone());
    let _ = place
        .apply_until_ready("owner", || {
            let containers = ApplySet::new().add(namespace.clone()).add(crd());
            containers
                .add(secret.clone())
                .add(Carton::new("one", CartonSpec {}))
        })
        .await;
    let client = place.env.client();
    let (namespaces, crds) = (
        Api::<Namespace>::all(client.clone()),
        Api::<CustomResourceDefinition>::all(client),
    );
    let stay = async || {
        assert!(place.stays(&namespaces, &name).await);
        assert!(place.stays(&crds, "cartons.sets.example.com").await);
    };
    // Other namespaces have objects of the kind, too.
    let elsewhere = place.env.namespace("elsewhere").await;
    let others: Api<Carton> = Api::namespaced(place.env.client(), &elsewhere);
    others
        .create(&PostParams::default(), &Carton::new("foreign", CartonSpec {}))
        .await
        .unwrap();

    let applied = place.apply_set("owner", all()).await.unwrap();
    assert!(applied.is_complete() && applied.staying().is_empty());
    stay().await;
    let applied = place
        .apply_set("owner", all().delete_namespaces_and_crds())
        .await
        .unwrap();
    assert!(applied.is_complete());
    let expected = [
        format!(
            "CustomResourceDefinition cartons.sets.example.com: it contains Carton {}/one",
            place.namespace
        ),
        format!("Namespace {name}: it contains Secret {name}/data"),
    ];
    let mut staying = applied.staying().to_vec();
    staying.sort();
    assert_eq!(staying, expected);
    stay().await;
    // So does the set of another controller.
    let applied = place
        .apply_as("other", ApplySet::new().add(config_map("b", "1")))
        .await
        .unwrap();
    assert!(applied.is_complete());
    others.get("foreign").await.unwrap();
}

/// A kind that is only used with its CRD in the same set.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default)]
#[kube(
    group = "sets.example.com",
    version = "v1",
    kind = "Carton",
    namespaced,
    schema = "disabled"
)]
struct CartonSpec {}

async fn namespaces_and_crds_are_only_deleted_on_request(server: Server) {
    let place = Place::new(server).await;
    place.create_owner("owner").await;
    let (name, namespace, secret) = place.inner();
    let set = || ApplySet::new().add(namespace.clone()).add(secret.clone());
    let namespaces: Api<Namespace> = Api::all(place.env.client());
    let secrets: Api<Secret> = Api::namespaced(place.env.client(), &name);
    assert!(place.apply_set("owner", set()).await.unwrap().is_complete());
    let created = namespaces.get(&name).await.unwrap();
    assert!(created.owner_references().is_empty());

    let applied = place.apply_set("owner", ApplySet::new()).await.unwrap();
    assert!(applied.is_complete());
    assert_eq!(secrets.get_opt("data").await.unwrap(), None);
    assert!(place.stays(&namespaces, &name).await);
    // It can join again.
    assert!(place.apply_set("owner", set()).await.unwrap().is_complete());
    assert_eq!(namespaces.get(&name).await.unwrap().uid(), created.uid());

    // The same with the owner.
    let owner = place.api::<Memo>().get("owner").await.unwrap();
    assert!(place.ctx().delete_set(&owner).await.unwrap().is_complete());
    assert_eq!(secrets.get_opt("data").await.unwrap(), None);
    assert!(place.stays(&namespaces, &name).await);

    let applied = place.apply_set("owner", set().delete_namespaces_and_crds()).await;
    assert!(applied.unwrap().is_complete());
    let owner = place.api::<Memo>().get("owner").await.unwrap();
    let deleted = place.ctx().delete_set(&owner).await.unwrap();
    assert!(deleted.staying().is_empty(), "{:?}", deleted.staying());
    assert!(!place.stays(&namespaces, &name).await);
}

async fn namespaces_and_crds_with_objects_of_others_stay(server: Server) {
    let place = Place::new(server).await;
    place.create_owner("owner").await;
    let (name, namespace, secret) = place.inner();
    let mut kept = config_map("kept", "1");
    kept.metadata.namespace = Some(name.clone());
    let set = || {
        ApplySet::new()
            .add(namespace.clone())
            .add(secret.clone())
            .add(crd("Crate", &[("v1", true)]))
    };
    let _ = place
        .apply_until_ready("owner", || set().add_kept(kept.clone()))
        .await;
    let client = place.env.client();
    let crates = ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("sets.example.com", "v1", "Crate"),
        "crates",
    );
    let crates: Api<DynamicObject> = Api::namespaced_with(client.clone(), &place.namespace, &crates);
    let foreign =
        json!({ "apiVersion": "sets.example.com/v1", "kind": "Crate", "metadata": { "name": "foreign" } });
    let foreign: DynamicObject = serde_json::from_value(foreign).unwrap();
    eventually(SOON, || async {
        crates.create(&PostParams::default(), &foreign).await
    })
    .await;
    let (namespaces, crds) = (
        Api::<Namespace>::all(client.clone()),
        Api::<CustomResourceDefinition>::all(client),
    );
    let expected = [
        format!(
            "CustomResourceDefinition crates.sets.example.com: it contains Crate {}/foreign",
            place.namespace
        ),
        format!("Namespace {name}: it contains ConfigMap {name}/kept"),
    ];
    let empty = || ApplySet::new().delete_namespaces_and_crds();
    for _ in 0..2 {
        let applied = place.apply_set("owner", empty()).await.unwrap();
        assert!(applied.is_complete());
        assert_eq!(applied.staying(), expected);
        assert_eq!(applied.action(), Action::requeue(Duration::from_secs(600)));
        assert!(place.stays(&namespaces, &name).await);
        assert!(place.stays(&crds, "crates.sets.example.com").await);
    }
    crates.delete("foreign", &DeleteParams::default()).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(place.env.client(), &name);
    maps.delete("kept", &DeleteParams::default()).await.unwrap();
    let applied = place.apply_set("owner", empty()).await.unwrap();
    assert!(applied.staying().is_empty(), "{:?}", applied.staying());
    assert!(!place.stays(&namespaces, &name).await);
    assert!(!place.stays(&crds, "crates.sets.example.com").await);
}

/// The controllers see the change of the owner in either order.
async fn object_moves_to_the_set_of_another_controller(server: Server) {
    let place = Place::new(server).await;
    let maps_api = place.api::<ConfigMap>();
    for first in ["one", "two"] {
        place.create(memo("owner", "1")).await;
        for (controller, names) in [
            ("one", ["m1", "m2"]),
            ("two", ["m3", "m4"]),
            ("one", ["m1", "m2"]),
        ] {
            let applied = place.apply_as(controller, maps(&names)).await.unwrap();
            assert!(applied.is_complete(), "{controller}");
        }
        let uid = maps_api.get("m2").await.unwrap().uid();
        place.change_text("owner", "2").await;
        let apply = async |controller: &str| match controller {
            "one" => place.apply_as("one", maps(&["m1"])).await,
            _ => place.apply_as("two", maps(&["m2", "m3"])).await,
        };
        let applied = apply(first).await;
        match (first, applied) {
            ("one", Ok(applied)) => {
                let expected = format!(
                    "ConfigMap {}/m2 (which the controller `two` may take over)",
                    place.namespace
                );
                assert_eq!(applied.leaving(), [expected]);
            }
            ("two", Err(error)) => assert!(error.is_conflict(), "{error:?}"),
            (_, applied) => panic!("{first}: {:?}", applied.map(|applied| applied.is_complete())),
        }
        assert_eq!(maps_api.get("m2").await.unwrap().uid(), uid, "{first} first");
        for controller in ["one", "two", "one", "two"] {
            // The other controller may not have released the object yet.
            if let Ok(applied) = apply(controller).await {
                assert!(applied.waiting_for().is_none());
            }
        }
        for controller in ["one", "two"] {
            assert!(
                apply(controller).await.unwrap().is_complete(),
                "{controller}, {first} first"
            );
        }
        let moved = maps_api.get("m2").await.unwrap();
        assert_eq!(moved.uid(), uid, "{first} first");
        let labels: Vec<&String> = moved.labels().keys().collect();
        assert_eq!(labels, ["rbuilder.dev/apply-set.two"]);
        assert_eq!(place.map_names().await, ["m1", "m2", "m3"]);
        // Nothing remains to be written.
        let version = async || place.api::<Memo>().get("owner").await.unwrap().resource_version();
        let before = version().await;
        for controller in ["one", "two"] {
            drop(apply(controller).await.unwrap());
        }
        assert_eq!(version().await, before);
        place
            .api::<Memo>()
            .delete("owner", &DeleteParams::default())
            .await
            .unwrap();
        for map in place.map_names().await {
            maps_api.delete(&map, &DeleteParams::default()).await.unwrap();
        }
    }
}

async fn object_in_two_sets_is_an_error(server: Server) {
    let place = Place::new(server).await;
    place.create(memo("owner", "1")).await;
    assert!(place.apply_as("one", maps(&["m"])).await.unwrap().is_complete());
    // Until `one` has recorded the generation, it may just be about to release the object.
    for _ in 0..2 {
        let error = place.apply_as("two", maps(&["m"])).await.err().unwrap();
        let expected = format!(
            "ConfigMap {0}/m is in the set of the controller `one` of Memo {0}/owner, and was not changed by `two`; remove \
             it from one of the sets, or add `.renamed_from(\"one\")` if that is a former name of the controller",
            place.namespace
        );
        assert!(error.to_string().contains(&expected), "{error}");
        assert!(place.apply_as("one", maps(&["m"])).await.unwrap().is_complete());
    }
    let error = place.apply_as("two", maps(&["m"])).await.err().unwrap();
    assert!(
        matches!(error.downcast_ref(), Some(OwnershipError::InOtherSet { .. })),
        "{error:?}"
    );
    let uid = place.api::<ConfigMap>().get("m").await.unwrap().uid();
    // Dropped by one of them, it stays.
    assert!(place.apply_as("one", maps(&[])).await.unwrap().is_complete());
    assert!(place.apply_as("two", maps(&["m"])).await.unwrap().is_complete());
    assert_eq!(place.api::<ConfigMap>().get("m").await.unwrap().uid(), uid);
}

async fn objects_are_found_after_the_record_was_lost(server: Server) {
    let place = Place::new(server).await;
    place.create_owner("owner").await;
    let elsewhere = place.env.namespace("elsewhere").await;
    let mut far = config_map("far", "1");
    far.metadata.namespace = Some(elsewhere.clone());
    let all = || maps(&["r1", "r2"]).add(place.role()).add(far.clone());
    assert!(place.apply_set("owner", all()).await.unwrap().is_complete());
    let far_maps: Api<ConfigMap> = Api::namespaced(place.env.client(), &elsewhere);
    place.replace_owner("2").await;
    assert!(
        place
            .apply_set("owner", maps(&["r1"]))
            .await
            .unwrap()
            .is_complete()
    );
    assert_eq!(place.map_names().await, ["r1"]);
    assert!(!place.has_role().await);
    assert_eq!(far_maps.get_opt("far").await.unwrap(), None);

    // Again, with everything dropped.
    assert!(place.apply_set("owner", all()).await.unwrap().is_complete());
    place.replace_owner("3").await;
    assert!(
        place
            .apply_set("owner", ApplySet::new())
            .await
            .unwrap()
            .is_complete()
    );
    assert!(place.map_names().await.is_empty());
    assert!(!place.has_role().await);

    // The set of another controller is left alone, even if its record was lost, too.
    assert!(place.apply_as("one", maps(&["a"])).await.unwrap().is_complete());
    assert!(place.apply_as("two", maps(&["b"])).await.unwrap().is_complete());
    place.replace_owner("4").await;
    assert!(
        place
            .apply_as("one", ApplySet::new())
            .await
            .unwrap()
            .is_complete()
    );
    assert_eq!(place.map_names().await, ["b"]);
}

async fn objects_are_deleted_with_their_owner_after_the_record_was_lost(server: Server) {
    let place = Place::new(server).await;
    place.create_owner("owner").await;
    let set = ApplySet::new().add(place.role());
    assert!(place.apply_set("owner", set).await.unwrap().is_complete());
    place.replace_owner("2").await;
    let memos = place.api::<Memo>();
    memos.delete("owner", &DeleteParams::default()).await.unwrap();
    let going = memos.get("owner").await.unwrap();
    assert!(place.ctx().delete_set(&going).await.unwrap().is_complete());
    assert!(!place.has_role().await);
}

async fn copies_of_members_are_not_taken_for_members(server: Server) {
    let place = Place::new(server).await;
    place.create(memo("owner", "1")).await;
    assert!(
        place
            .apply_set("owner", maps(&["a"]))
            .await
            .unwrap()
            .is_complete()
    );
    let api = place.api::<ConfigMap>();
    let mut copy = api.get("a").await.unwrap();
    copy.metadata.name = Some("copy".to_owned());
    copy.metadata.resource_version = None;
    copy.metadata.uid = None;
    api.create(&PostParams::default(), &copy).await.unwrap();
    place.replace_owner("2").await;
    assert!(
        place
            .apply_set("owner", ApplySet::new())
            .await
            .unwrap()
            .is_complete()
    );
    assert_eq!(place.map_names().await, ["copy"]);
}

async fn kept_objects_are_taken_over_by_a_recreated_owner(server: Server) {
    let place = Place::new(server).await;
    let memos = place.api::<Memo>();
    let set = |text: &str| ApplySet::new().add_kept(config_map("kept", text));
    place.create(memo("owner", "1")).await;
    assert!(place.apply_set("owner", set("1")).await.unwrap().is_complete());
    let kept = place.api::<ConfigMap>().get("kept").await.unwrap();
    // Another owner must not take it, not even while the first one is gone.
    place.create(memo("other", "1")).await;
    memos.delete("owner", &DeleteParams::default()).await.unwrap();
    let error = place.apply_set("other", set("2")).await.err().unwrap();
    assert!(
        matches!(error.downcast_ref(), Some(OwnershipError::AlreadyOwned { .. })),
        "{error:?}"
    );

    let owner = place.create(memo("owner", "1")).await;
    assert!(place.apply_set("owner", set("2")).await.unwrap().is_complete());
    let taken = place.api::<ConfigMap>().get("kept").await.unwrap();
    assert_eq!(taken.uid(), kept.uid());
    assert_eq!(place.copied("kept").await.as_deref(), Some("2"));
    assert_eq!(
        ApplySet::owner_of::<Memo>(&taken),
        Some(ObjectRef::from_obj(&owner))
    );
    let memo_kind = DynamicKind::namespaced(ApiResource::erase::<Memo>(&()));
    let dynamic = ApplySet::owner_of_dynamic(&memo_kind, &taken).unwrap();
    assert_eq!(dynamic.extra.uid, owner.uid());

    // A stale copy of a deleted owner must not take the object back.
    memos.delete("owner", &DeleteParams::default()).await.unwrap();
    place.create(memo("owner", "1")).await;
    assert!(place.apply_set("owner", set("3")).await.unwrap().is_complete());
    let error = place.ctx().apply_set(&owner, set("4")).await.err().unwrap();
    assert!(!error.is_terminal(), "{error:?}");
    assert_eq!(place.copied("kept").await.as_deref(), Some("3"));
}

async fn unstructured_object_is_applied_after_its_crd(server: Server) {
    let place = Place::new(server).await;
    place.create_owner("owner").await;
    let object = || {
        let object = json!({
            "apiVersion": "sets.example.com/v1", "kind": "Basket", "metadata": { "name": "one" },
            "spec": { "size": 1 },
        });
        serde_json::from_value::<DynamicObject>(object).unwrap()
    };
    // On its own, its kind is unknown.
    let error = place
        .apply_set("owner", ApplySet::new().add(object()))
        .await
        .err()
        .unwrap();
    assert!(error.to_string().contains("Basket"), "{error}");
    assert!(!format!("{error:#}").contains("page not found"), "{error:#}");
    let mut unstructured = serde_json::to_value(crd("Basket", &[("v1", true)])).unwrap();
    unstructured["apiVersion"] = "apiextensions.k8s.io/v1".into();
    unstructured["kind"] = "CustomResourceDefinition".into();
    let unstructured: DynamicObject = serde_json::from_value(unstructured).unwrap();
    let set = || ApplySet::new().add(unstructured.clone()).add(object());
    let applied = place.apply_until_ready("owner", set).await;
    let basket = applied.get::<DynamicObject>("one").unwrap();
    assert_eq!(basket.namespace().as_ref(), Some(&place.namespace));
    assert_eq!(basket.owner_references().len(), 1);
}

async fn child_of_a_cluster_scoped_owner_needs_a_namespace(server: Server) {
    let place = Place::new(server).await;
    let roles: Api<ClusterRole> = Api::all(place.env.client());
    let owner = roles.create(&PostParams::default(), &place.role()).await.unwrap();
    let (ctx, child) = (place.ctx(), || config_map("child", "1"));
    let expected = format!(
        "ConfigMap child needs a namespace, and its owner ClusterRole {} has none; set `metadata.namespace`",
        owner.name_any()
    );
    let errors = [
        ctx.apply_owned(&owner, child()).await.err(),
        ctx.create_owned(&owner, child()).await.err(),
        ctx.create_or_update_owned(&owner, child(), |_| {}).await.err(),
        ctx.apply_set(&owner, ApplySet::new().add(child())).await.err(),
    ];
    for error in errors {
        assert_eq!(error.unwrap().to_string(), expected);
    }
    let expected = "ConfigMap child needs a namespace; set `metadata.namespace`";
    assert_eq!(ctx.apply(child()).await.unwrap_err().to_string(), expected);
    assert_eq!(ctx.delete(&child()).await.unwrap_err().to_string(), expected);
    roles
        .delete(&owner.name_any(), &DeleteParams::default())
        .await
        .unwrap();
}

/// The garbage collector must not delete a namespace with its owner either.
#[rbuilder::envtest::test(controllers)]
async fn namespace_of_a_deleted_owner_stays() {
    let env = Environment::builder().controllers().start().await.unwrap();
    let place = Place::new(env.clone()).await;
    let roles: Api<ClusterRole> = Api::all(env.client());
    let owner = roles.create(&PostParams::default(), &place.role()).await.unwrap();
    let (name, namespace, secret) = place.inner();
    let mut near = config_map("near", "1");
    near.metadata.namespace = Some(place.namespace.clone());
    let set = ApplySet::new().add(namespace).add(secret).add(near);
    assert!(place.ctx().apply_set(&owner, set).await.unwrap().is_complete());
    roles
        .delete(&owner.name_any(), &DeleteParams::default())
        .await
        .unwrap();
    eventually(SOON, || async { place.map_names().await.is_empty() }).await;
    let secrets: Api<Secret> = Api::namespaced(env.client(), &name);
    eventually(SOON, || async {
        secrets.get_opt("data").await.unwrap().is_none()
    })
    .await;
    assert!(place.stays(&Api::<Namespace>::all(env.client()), &name).await);
    env.stop().await.unwrap();
}

/// A manager with a renamed controller continues with the sets of the former one.
#[tokio::test(start_paused = true)]
async fn renamed_controller_continues_with_its_sets() {
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<()>) -> Result {
        let names: Vec<&str> = memo.spec.text.as_deref().unwrap_or_default().split(' ').collect();
        Ok(ctx.apply_set(&*memo, maps(&names)).await?.action())
    }
    let place = Place::new(Server::fake()).await;
    let start = |controller: Controller<Memo, ()>| Operator::start(place.manager().controller(controller));
    place.create(memo("owner", "a b")).await;
    let operator = start(Controller::new(reconcile, ()));
    eventually(SOON, || async { place.map_names().await == ["a", "b"] }).await;
    operator.stop().await.unwrap();

    // Without the former name, the sets belong to another controller.
    place.change_text("owner", "a c").await;
    let operator = start(Controller::new(reconcile, ()).named("notes"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(place.map_names().await, ["a", "b"]);
    operator.stop().await.unwrap();

    let renamed = || Controller::new(reconcile, ()).named("notes").renamed_from("memo");
    let operator = start(renamed());
    eventually(SOON, || async { place.map_names().await == ["a", "c"] }).await;
    let owner = place.api::<Memo>().get("owner").await.unwrap();
    let annotations: Vec<&String> = owner.annotations().keys().collect();
    assert_eq!(annotations, ["rbuilder.dev/apply-set.notes"]);
    operator.stop().await.unwrap();

    // The record may get lost as well, including objects with the former label.
    place.replace_owner("d").await;
    let operator = start(renamed());
    eventually(SOON, || async { place.map_names().await == ["d"] }).await;
    operator.stop().await.unwrap();

    let both = place.manager().controller(renamed());
    let both = both.controller(Controller::new(reconcile, ()));
    let error = Operator::start(both).stop().await.unwrap_err();
    assert!(
        error.to_string().starts_with("duplicate controller name `memo`"),
        "{error}"
    );
}

/// Secrets are not kept in memory, but still not sent again.
#[tokio::test(start_paused = true)]
async fn unchanged_secrets_cost_no_request() {
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
        ctx.note("reconciles");
        let mut set = ApplySet::new();
        set.extend((0..500).map(|number| {
            let mut secret = Secret::default();
            secret.metadata.name = Some(format!("secret-{number:03}"));
            match number % 2 {
                0 => secret.data = Some([("key".to_owned(), ByteString(vec![1, 2, 3]))].into()),
                _ => secret.string_data = Some([("key".to_owned(), "value".to_owned())].into()),
            }
            secret
        }));
        let applied = ctx.apply_set(&*memo, set).await?;
        let last = applied.get::<Secret>("secret-499").unwrap();
        assert_eq!(last.data.as_ref().unwrap()["key"].0, b"value");
        assert!(last.uid().is_some());
        Ok(applied.action())
    }
    let server = ApiServer::new();
    let place = Place::new(Server::Fake(server.clone())).await;
    let seen = Seen::default();
    let controller = Controller::new(reconcile, seen.clone()).owns::<Secret>();
    let operator = Operator::start(place.manager().controller(controller));
    place.create(memo("owner", "1")).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    server.forget_requests();
    let before = seen.count("reconciles");
    place.change_text("owner", "2").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(seen.count("reconciles") > before);
    let requests = server.requests();
    let ours: Vec<_> = requests
        .iter()
        .filter(|request| request.resource != "memos")
        .collect();
    assert!(ours.is_empty(), "{} requests", ours.len());
    // Another client adds a value, which the controller does not know.
    let secrets = place.api::<Secret>();
    let more = Patch::Merge(json!({ "stringData": { "other": "value" } }));
    secrets
        .patch("secret-001", &PatchParams::default(), &more)
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let found = secrets.get("secret-001").await.unwrap().data.unwrap();
    assert_eq!(found.keys().collect::<Vec<_>>(), ["key", "other"]);
    operator.stop().await.unwrap();
}

#[tokio::test]
async fn invalid_set_is_a_terminal_error() {
    let place = Place::new(Server::fake()).await;
    let owner = place.create(memo("owner", "1")).await;
    let error = place.apply_set("owner", maps(&["a", "a"])).await.err().unwrap();
    assert!(error.is_terminal());
    let expected = format!("the set contains ConfigMap {}/a twice", place.namespace);
    assert_eq!(error.to_string(), expected);

    let too_long = "a".repeat(54);
    for name in ["a name", "with/slash", "a/", "/", "", "a-", too_long.as_str()] {
        let ctx = Ctx::new(place.env.client(), name, ());
        let error = ctx.apply_set(&owner, maps(&["a"])).await.err().unwrap();
        assert!(error.is_terminal());
        let expected = format!(
            "the name `{name}` of the controller cannot be part of the annotation `rbuilder.dev/apply-set.{name}`; set \
             one of at most 53 letters, digits, `-`, `_` and `.` with `.named(…)`"
        );
        assert_eq!(error.to_string(), expected);
    }
    let names: Vec<String> = (0..2500)
        .map(|number| format!("{number}-{}", "x".repeat(60)))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let error = place.apply_set("owner", maps(&names)).await.err().unwrap();
    assert!(error.is_terminal());
    assert!(
        error.to_string().contains("the record of its 2500 objects has"),
        "{error}"
    );
    assert!(place.map_names().await.is_empty());
}

/// A manager makes no requests if nothing has changed.
#[tokio::test(start_paused = true)]
async fn unchanged_set_costs_no_request() {
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Seen>) -> Result {
        ctx.note("reconciles");
        let action = ctx.apply_set(&*memo, maps(&["a", "b"])).await?.action();
        Ok(action)
    }
    let server = ApiServer::new();
    let place = Place::new(Server::Fake(server.clone())).await;
    let seen = Seen::default();
    let controller = Controller::new(reconcile, seen.clone())
        .owns::<ConfigMap>()
        .resync_every(Duration::from_secs(10));
    let operator = Operator::start(place.manager().controller(controller));
    place.create(memo("owner", "1")).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let writes: Vec<String> = server
        .requests()
        .iter()
        .filter(|request| request.verb == rbuilder::fake::Verb::Patch)
        .map(|request| request.resource.clone())
        .collect();
    assert_eq!(writes, ["memos", "configmaps", "configmaps", "memos"]);
    server.forget_requests();
    let before = seen.count("reconciles");
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert!(seen.count("reconciles") > before + 3);
    assert_eq!(server.requests(), []);
    operator.stop().await.unwrap();
}

/// Two sets of one owner would delete each other's objects.
#[tokio::test(start_paused = true)]
async fn second_set_of_a_reconcile_is_an_error() {
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Arc<Mutex<Vec<String>>>>) -> Result {
        drop(ctx.apply_set(&*memo, maps(&["a", "b"])).await?);
        // The same set again does no harm.
        drop(ctx.apply_set(&*memo, maps(&["b", "a"])).await?);
        let second = ctx.apply_set(&*memo, maps(&["a", "b", "c"])).await;
        if let Err(error) = &second {
            assert!(error.is_terminal());
            ctx.lock().unwrap().push(error.to_string());
        }
        Ok(second?.action())
    }
    let place = Place::new(Server::fake()).await;
    let errors = Arc::new(Mutex::new(Vec::new()));
    let controller = Controller::new(reconcile, errors.clone()).owns::<ConfigMap>();
    let operator = Operator::start(place.manager().controller(controller));
    place.create(memo("owner", "1")).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let namespace = &place.namespace;
    let expected = format!(
        "a reconcile of the controller `memo` has applied two sets of Memo {namespace}/owner, and ConfigMap \
         {namespace}/c is only in the second one: each would delete the objects of the other. A controller has one set \
         per owner; add all objects to one `ApplySet`, or apply the other set in a controller with another name"
    );
    let found = errors.lock().unwrap().clone();
    assert_eq!(found.first(), Some(&expected));
    assert_eq!(place.map_names().await, ["a", "b"]);
    operator.stop().await.unwrap();
}

/// A manager sees the annotation of an administrator, and has nothing to do afterwards.
#[tokio::test(start_paused = true)]
async fn member_that_an_administrator_keeps_outlives_its_owner() {
    async fn reconcile(memo: Arc<Memo>, ctx: Ctx<()>) -> Result {
        Ok(ctx.apply_set(&*memo, maps(&["data", "other"])).await?.action())
    }
    let server = ApiServer::new().collecting_garbage();
    let place = Place::new(Server::Fake(server.clone())).await;
    let controller = Controller::new(reconcile, ())
        .owns::<ConfigMap>()
        .resync_every(Duration::from_secs(10));
    let operator = Operator::start(place.manager().controller(controller));
    let owner = place.create(memo("owner", "1")).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    annotate_to_keep(&place, "data", Some("true")).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_kept(&place, "data", &owner).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    server.forget_requests();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(server.requests(), []);

    let maps = place.api::<ConfigMap>();
    let data = maps.get("data").await.unwrap();
    let memos = place.api::<Memo>();
    memos.delete("owner", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(place.map_names().await, ["data"]);
    let owner = place.create(memo("owner", "1")).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_kept(&place, "data", &owner).await;
    annotate_to_keep(&place, "data", None).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let again = maps.get("data").await.unwrap();
    assert_eq!(again.uid(), data.uid());
    assert_eq!(again.owner_references()[0].uid, owner.uid().unwrap());
    server.forget_requests();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(server.requests(), []);
    operator.stop().await.unwrap();
}

/// How a request can fail.
#[derive(Clone, Copy, Debug)]
enum Failure {
    /// The request isn't delivered.
    Before,
    /// The server processes the request, but the response is lost.
    After,
}

/// Returns a client that fails at the given request, which is equivalent to a crash.
fn failing_client(inner: Client, number: usize, failure: Failure) -> (Client, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let fails = counted.fetch_add(1, SeqCst) == number;
        let inner = inner.clone();
        async move {
            if fails && matches!(failure, Failure::Before) {
                return Err(kube::Error::LinesCodecMaxLineLengthExceeded);
            }
            let response = inner.send(request).await;
            if fails {
                return Err(kube::Error::LinesCodecMaxLineLengthExceeded);
            }
            response
        }
    });
    (Client::new(service, "default"), count)
}

/// Whichever request fails, and whatever the set contains afterwards, the next call must complete
/// the change: delete all objects that aren't part of the set, and leave other owners' objects
/// alone.
#[tokio::test]
async fn interrupted_change_is_completed_by_the_next_call() {
    let before = ["a", "b", "c"];
    let during = ["b", "d", "e"];
    let afterwards: [&[&str]; 4] = [&["b", "d", "e"], &["a", "b", "c"], &["f"], &[]];
    let mut failures = 0;
    for failure in [Failure::Before, Failure::After] {
        for after in afterwards {
            for number in 0.. {
                let place = Place::new(Server::fake()).await;
                place.create(memo("owner", "1")).await;
                let foreign = config_map("foreign", "1");
                let api = place.api::<ConfigMap>();
                let foreign = api.create(&PostParams::default(), &foreign).await.unwrap();
                drop(place.apply_set("owner", maps(&before)).await.unwrap());

                let (client, count) = failing_client(place.env.client(), number, failure);
                let owner = place.api::<Memo>().get("owner").await.unwrap();
                let failed = Ctx::new(client, "memo", ())
                    .apply_set(&owner, maps(&during))
                    .await;
                let name = format!("{failure:?} {number}, then {after:?}");
                if count.load(SeqCst) <= number {
                    assert!(failed.unwrap().is_complete(), "{name}");
                    break;
                }
                assert!(failed.is_err(), "{name}");
                failures += 1;
                let applied = place.apply_set("owner", maps(after)).await;
                assert!(applied.unwrap().is_complete(), "{name}");
                let mut expected: Vec<&str> = after.iter().copied().chain(["foreign"]).collect();
                expected.sort_unstable();
                assert_eq!(place.map_names().await, expected, "{name}");
                assert_eq!(api.get("foreign").await.unwrap(), foreign, "{name}");
                let uids: BTreeMap<String, String> = api
                    .list(&ListParams::default())
                    .await
                    .unwrap()
                    .into_iter()
                    .map(|map| (map.name_any(), map.uid().unwrap()))
                    .collect();
                let record = place.record("owner").await.unwrap();
                let complete = after.iter().all(|map| record.contains(&uids[*map]));
                assert!(
                    complete && record.matches("ConfigMap").count() == after.len(),
                    "{name}: {record}"
                );
            }
        }
    }
    assert!(failures > 50, "{failures}");
}

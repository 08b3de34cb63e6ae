//! Sets of objects, which are applied in order, and deleted once they leave the set.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::{Api, Client, CustomResource, ResourceExt};
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
    kept_objects_are_not_deleted,
    objects_without_an_owner_reference_are_deleted_too,
    objects_wait_for_their_predecessors,
    custom_resource_is_applied_after_its_crd,
    object_is_found_in_another_version,
    copied_owner_does_not_share_the_set,
    dynamic_kinds_can_be_owners_and_members,
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
    assert_eq!(place.record("owner").await, None);
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
    assert_eq!(place.record("owner").await, None);
    assert!(api.get("marked").await.unwrap().owner_references().is_empty());
    // The object can rejoin the set.
    let set = maps(&[]).add_kept(config_map("kept", "2"));
    assert!(place.apply_set("owner", set).await.unwrap().is_complete());
    assert_eq!(place.copied("kept").await.as_deref(), Some("2"));
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
    // The CRD is deleted first, along with all of its objects.
    eventually(SOON, || async {
        let applied = place.apply_set("owner", ApplySet::new()).await.unwrap();
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

#[tokio::test]
async fn invalid_set_is_a_terminal_error() {
    let place = Place::new(Server::fake()).await;
    let owner = place.create(memo("owner", "1")).await;
    let error = place.apply_set("owner", maps(&["a", "a"])).await.err().unwrap();
    assert!(error.is_terminal());
    let expected = format!("the set contains ConfigMap {}/a twice", place.namespace);
    assert_eq!(error.to_string(), expected);

    let ctx = Ctx::new(place.env.client(), "a name", ());
    let error = ctx.apply_set(&owner, maps(&["a"])).await.err().unwrap();
    assert!(error.is_terminal());
    assert_eq!(
        error.to_string(),
        "the name `a name` of the controller cannot be part of the annotation `rbuilder.dev/apply-set.a name`; set one \
         of at most 53 letters, digits, `-`, `_` and `.` with `.named(…)`"
    );
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
                match place.record("owner").await {
                    None => assert!(after.is_empty(), "{name}"),
                    Some(record) => {
                        let complete = after.iter().all(|map| record.contains(&uids[*map]));
                        assert!(
                            complete && record.matches("ConfigMap").count() == after.len(),
                            "{name}: {record}"
                        );
                    }
                }
            }
        }
    }
    assert!(failures > 50, "{failures}");
}

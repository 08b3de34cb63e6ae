//! Lists and watches that expire because etcd was compacted, which happens every five minutes in
//! any cluster.
//!
//! Normally, watches are served from kube-apiserver's memory. Its watch cache is disabled here, so
//! that compacted versions are really gone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::{Api, Resource, ResourceExt};
use rbuilder::envtest::{Environment, eventually};
use rbuilder::predicate::Predicate;
use rbuilder::{Action, Change, Controller, Ctx, Manager, ManagerArgs, ObjectRef, Result, Watch, Watchable};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::proxy::{Fault, Proxy, closed};

const SOON: Duration = Duration::from_secs(60);

/// Old and new resource version of an object, as seen by a predicate.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    name: String,
    before: Option<String>,
    after: Option<String>,
}

/// The events of a kind in order. Clones share the same list.
#[derive(Clone, Default)]
struct Witness(Arc<Mutex<Vec<Seen>>>);

impl Witness {
    fn predicate<K: Watchable>(&self) -> Predicate<K> {
        let seen = self.clone();
        Predicate::new(move |change: &Change<K>| {
            let version = |object: &Arc<K>| object.meta().resource_version.clone();
            let (before, after) = match change {
                Change::Applied { old, new, .. } => (old.as_ref().and_then(version), version(new)),
                Change::Deleted(old) => (version(old), None),
            };
            let name = change.object().meta().name.clone().unwrap_or_default();
            seen.0.lock().unwrap().push(Seen { name, before, after });
            true
        })
    }

    /// Returns the objects that exist according to the events, and their resource versions. Panics
    /// if there's a gap in the events of an object.
    fn present(&self) -> BTreeMap<String, String> {
        let mut present = BTreeMap::new();
        for event in self.0.lock().unwrap().iter() {
            let known = present.get(&event.name).cloned();
            assert_eq!(event.before, known, "{event:?} follows another state");
            match &event.after {
                Some(after) => present.insert(event.name.clone(), after.clone()),
                None => present.remove(&event.name),
            };
        }
        present
    }

    fn count(&self, name: &str) -> usize {
        let seen = self.0.lock().unwrap();
        seen.iter().filter(|event| event.name == name).count()
    }
}

/// Records the events of two caches, one of them for metadata.
struct Observed {
    maps: Witness,
    secrets: Witness,
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<()>>,
}

async fn look(_: Arc<ConfigMap>, _: Ctx<()>) -> Result {
    Ok(Action::await_change())
}

impl Observed {
    fn start(proxy: &Proxy, namespace: &str) -> Self {
        let (maps, secrets) = (Witness::default(), Witness::default());
        let args = ManagerArgs {
            watch_namespace: namespace.to_owned(),
            ..ManagerArgs::for_tests()
        };
        let none = |_: &PartialObjectMeta<Secret>, _: &Ctx<()>| Vec::<ObjectRef<ConfigMap>>::new();
        let controller = Controller::new(look, ())
            .filter(maps.predicate())
            .watch(Watch::mapped(none).filter(secrets.predicate()));
        let manager = Manager::with_config("expiry.example.com", proxy.config(), args)
            .unwrap()
            .list_page_size(10)
            .controller(controller);
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(manager.start_until(async {
            let _ = stopped.await;
        }));
        Self {
            maps,
            secrets,
            stop,
            running,
        }
    }

    async fn stop(self, proxy: &Proxy) {
        let _ = self.stop.send(());
        self.running.await.unwrap().unwrap();
        assert!(closed(proxy, SOON).await, "{} connections are left", proxy.open());
    }
}

/// Modifies the objects of a kind directly on the API server.
struct Objects<K>(Api<K>);

impl<K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope> + Watchable> Objects<K> {
    fn of(env: &Environment, namespace: &str) -> Self {
        Self(Api::namespaced(env.client(), namespace))
    }

    async fn apply(&self, name: &str, text: &str) {
        let object = json!({
            "apiVersion": "v1",
            "kind": K::kind(&()),
            "metadata": { "name": name, "annotations": { "text": text } },
        });
        let params = PatchParams::apply("expiry").force();
        self.0.patch(name, &params, &Patch::Apply(object)).await.unwrap();
    }

    async fn delete(&self, name: &str) {
        self.0.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Waits until the events match the stored objects.
    async fn are_seen_by(&self, witness: &Witness) {
        eventually(SOON, || async {
            let stored = self
                .0
                .list(&Default::default())
                .await
                .map_err(|err| err.to_string())?;
            let stored: BTreeMap<String, String> = stored
                .iter()
                .map(|object| (object.name_any(), object.resource_version().unwrap_or_default()))
                .collect();
            let present = witness.present();
            match present == stored {
                true => Ok(()),
                false => Err(format!("seen {present:?}, stored {stored:?}")),
            }
        })
        .await;
    }

    async fn begin(&self) {
        for name in ["kept", "changed", "deleted", "replaced"] {
            self.apply(name, "first").await;
        }
    }

    /// Makes changes while the watch is interrupted: one object is updated, one is deleted, one is
    /// both, one is created, and one is created and deleted.
    async fn change(&self) {
        self.apply("changed", "second").await;
        self.delete("deleted").await;
        self.delete("replaced").await;
        self.apply("replaced", "second").await;
        self.apply("new", "first").await;
        self.apply("brief", "first").await;
        self.delete("brief").await;
    }

    /// Checks that events are delivered in order and without gaps.
    async fn go_on(&self, witness: &Witness) {
        let before = witness.count("changed");
        for round in 0..20 {
            self.apply("changed", &format!("round {round}")).await;
        }
        self.are_seen_by(witness).await;
        assert_eq!(witness.count("changed"), before + 20);
    }
}

fn is_watch(parts: &http::request::Parts) -> bool {
    parts
        .uri
        .query()
        .is_some_and(|query| query.contains("watch=true"))
}

fn is_next_page(parts: &http::request::Parts) -> bool {
    parts.uri.query().is_some_and(|query| query.contains("continue="))
}

/// While the watch is interrupted, the version from which it would resume is compacted.
async fn a_watch_that_resumes_at_a_compacted_version(env: &Environment) {
    let namespace = env.namespace("expiry").await.unwrap();
    let proxy = Proxy::start(env.client(), 40).await;
    let (maps, secrets) = (
        Objects::<ConfigMap>::of(env, &namespace),
        Objects::<Secret>::of(env, &namespace),
    );
    maps.begin().await;
    secrets.begin().await;
    let operator = Observed::start(&proxy, &namespace);
    maps.are_seen_by(&operator.maps).await;
    secrets.are_seen_by(&operator.secrets).await;

    let refusal = Fault::Refuse(http::StatusCode::SERVICE_UNAVAILABLE);
    proxy.inject_where(is_watch, [(1.0, refusal)]);
    proxy.reset_all();
    eventually(SOON, || async { proxy.injected() > 2 }).await;
    maps.change().await;
    secrets.change().await;
    env.compact().await.unwrap();
    assert_eq!(proxy.expired(), 0);
    proxy.heal();

    maps.are_seen_by(&operator.maps).await;
    secrets.are_seen_by(&operator.secrets).await;
    assert!(proxy.expired() >= 2, "{} watches expired", proxy.expired());
    for witness in [&operator.maps, &operator.secrets] {
        assert_eq!((witness.count("kept"), witness.count("brief")), (1, 0));
        assert_eq!((witness.count("deleted"), witness.count("new")), (2, 1));
    }
    maps.go_on(&operator.maps).await;
    secrets.go_on(&operator.secrets).await;
    operator.stop(&proxy).await;
}

/// Compacts etcd between two pages of a list.
async fn a_list_that_continues_at_a_compacted_version(env: &Environment) {
    let namespace = env.namespace("expiry").await.unwrap();
    let proxy = Proxy::start(env.client(), 41).await;
    let maps = Objects::<ConfigMap>::of(env, &namespace);
    for number in 0..25 {
        maps.apply(&format!("map-{number:02}"), "first").await;
    }
    proxy.inject_where(is_next_page, [(1.0, Fault::Delay(Duration::from_secs(3)))]);
    let operator = Observed::start(&proxy, &namespace);
    eventually(SOON, || async { proxy.injected() > 0 }).await;
    // One of these objects was in a page already read, the other one was not.
    maps.delete("map-00").await;
    maps.delete("map-20").await;
    env.compact().await.unwrap();
    proxy.heal();

    maps.are_seen_by(&operator.maps).await;
    assert!(proxy.expired() >= 1, "the list did not expire");
    maps.apply("map-01", "second").await;
    maps.are_seen_by(&operator.maps).await;
    operator.stop(&proxy).await;
}

#[rbuilder::envtest::test]
async fn compacted_versions_are_listed_again() {
    let env = Environment::builder().apiserver_arg("--watch-cache=false");
    let env = env.start().await.unwrap();
    a_watch_that_resumes_at_a_compacted_version(&env).await;
    a_list_that_continues_at_a_compacted_version(&env).await;
    env.stop().await.unwrap();
}

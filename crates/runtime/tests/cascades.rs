//! Deletes an owner with each of the propagation policies, while a controller keeps applying its
//! children. The test runs with both kube-controller-manager's garbage collector and the fake
//! server's.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::core::ObjectMeta;
use kube::{Api, Client, Resource, ResourceExt};
use rbuilder::envtest::{Environment, eventually};
use rbuilder::fake::ApiServer;
use rbuilder::testing::run;
use rbuilder::{Action, Controller, Ctx, Manager, ManagerArgs, Result};

/// The machine may be busy.
const SOON: Duration = Duration::from_secs(60);
/// After this long, we assume that nothing else will happen.
const QUIET: Duration = Duration::from_secs(2);

#[derive(Default)]
struct Counts {
    /// Reconciles of a terminating owner.
    terminating: AtomicUsize,
    /// Errors that were retried and logged.
    failures: AtomicUsize,
}

struct State {
    children: usize,
    counts: Arc<Counts>,
}

/// Applies the children without checking for a deletion timestamp, as in a scaffolded reconcile
/// function.
async fn keep(owner: Arc<Secret>, ctx: Ctx<State>) -> Result {
    if owner.meta().deletion_timestamp.is_some() {
        ctx.counts.terminating.fetch_add(1, SeqCst);
    }
    for number in 0..ctx.children {
        let applied = ctx.apply_owned(&*owner, child(number)).await;
        if let Err(error) = applied {
            let fails = !error.is_conflict() && !error.is_owner_terminating();
            ctx.counts.failures.fetch_add(usize::from(fails), SeqCst);
            return Err(error);
        }
    }
    Ok(Action::await_change())
}

/// Adopts the children with a plain apply, as `apply_owned` did before it checked for a deletion
/// timestamp.
async fn adopt(owner: Arc<Secret>, ctx: Ctx<State>) -> Result {
    for number in 0..ctx.children {
        let mut child = child(number);
        child.metadata.namespace = owner.namespace();
        child.metadata.owner_references = owner.controller_owner_ref(&()).map(|owner| vec![owner]);
        ctx.apply(child).await?;
    }
    Ok(Action::await_change())
}

fn child(number: usize) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(format!("child-{number:02}")),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("a".to_owned(), "b".to_owned())])),
        ..ConfigMap::default()
    }
}

fn manager(client: &Client, namespace: &str) -> Manager {
    let args = ManagerArgs {
        watch_namespace: namespace.to_owned(),
        ..ManagerArgs::for_tests()
    };
    Manager::with_client("cascades.example.com", client.clone(), args)
}

/// Returns the name, the UID and the number of owners of each child.
async fn children(maps: &Api<ConfigMap>) -> Vec<(String, String, usize)> {
    let list = maps.list(&ListParams::default()).await.unwrap();
    let children = list
        .into_iter()
        .filter(|map| map.name_any().starts_with("child-"));
    children
        .map(|map| (map.name_any(), map.uid().unwrap(), map.owner_references().len()))
        .collect()
}

/// Deletes an owner with `count` children. Returns the children before and after the deletion.
async fn delete_owner(
    client: &Client,
    namespace: &str,
    controller: Controller<Secret, State>,
    count: usize,
    policy: &DeleteParams,
) -> [Vec<(String, String, usize)>; 2] {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let running = run(manager(client, namespace).controller(controller.owns::<ConfigMap>()));
    let mut owner = Secret::default();
    owner.metadata.name = Some("owner".to_owned());
    secrets.create(&PostParams::default(), &owner).await.unwrap();
    eventually(SOON, || async { children(&maps).await.len() == count }).await;
    // The garbage collector has to learn about the children from its own watches.
    tokio::time::sleep(QUIET).await;
    let before = children(&maps).await;
    secrets.delete("owner", policy).await.unwrap();
    eventually(SOON, || async {
        secrets.get_opt("owner").await.unwrap().is_none()
    })
    .await;
    let is_orphaned = |children: &[(String, String, usize)]| children.iter().all(|child| child.2 == 0);
    eventually(SOON, || async { is_orphaned(&children(&maps).await) }).await;
    tokio::time::sleep(QUIET).await;
    let after = children(&maps).await;
    running.stop().await;
    [before, after]
}

async fn check_cascades(client: Client, namespaces: &[String]) {
    let mut namespaces = namespaces.iter();
    for count in COUNTS {
        for (policy, keeps) in policies() {
            let namespace = namespaces.next().unwrap();
            let counts = Arc::<Counts>::default();
            let state = State {
                children: count,
                counts: counts.clone(),
            };
            let controller = Controller::new(keep, state);
            let [before, after] = delete_owner(&client, namespace, controller, count, &policy).await;
            let name = format!("{:?}, {count} children", policy.propagation_policy);
            assert!(before.iter().all(|child| child.2 == 1), "{name}: {before:?}");
            let expected: Vec<_> = match keeps {
                true => before.into_iter().map(|(name, uid, _)| (name, uid, 0)).collect(),
                false => Vec::new(),
            };
            assert_eq!(after, expected, "{name}");
            let counted = [&counts.terminating, &counts.failures].map(|count| count.load(SeqCst));
            assert_eq!(counted, [0, 0], "{name}: reconciles while terminating, failures");
        }
    }
}

const COUNTS: [usize; 3] = [1, 5, 20];

/// Each propagation policy, and whether it orphans the children.
fn policies() -> [(DeleteParams, bool); 3] {
    [
        (DeleteParams::background(), false),
        (DeleteParams::orphan(), true),
        (DeleteParams::foreground(), false),
    ]
}

#[rbuilder::envtest::test(controllers)]
async fn cluster_follows_the_propagation_policy() {
    let env = Environment::builder().controllers().start().await.unwrap();
    let mut namespaces = Vec::new();
    for _ in 0..COUNTS.len() * policies().len() {
        namespaces.push(env.namespace("cascade").await.unwrap());
    }
    check_cascades(env.client(), &namespaces).await;
    env.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn fake_server_follows_the_propagation_policy() {
    let server = ApiServer::new().collecting_garbage();
    let namespaces: Vec<String> = (0..COUNTS.len() * policies().len())
        .map(|_| server.namespace("cascade"))
        .collect();
    check_cascades(server.client(), &namespaces).await;
}

/// If an operator adopts orphaned children, the garbage collector deletes them together with the
/// owner. Check that the fake server does the same.
#[tokio::test(start_paused = true)]
async fn readopted_children_are_deleted_on_the_fake_server() {
    let server = ApiServer::new().collecting_garbage();
    for count in COUNTS {
        let namespace = server.namespace("adopted");
        let state = State {
            children: count,
            counts: Arc::default(),
        };
        let controller = Controller::new(adopt, state).reconciles_terminating();
        let policy = DeleteParams::orphan();
        let [before, after] = delete_owner(&server.client(), &namespace, controller, count, &policy).await;
        assert_eq!((before.len(), after), (count, Vec::new()));
    }
}

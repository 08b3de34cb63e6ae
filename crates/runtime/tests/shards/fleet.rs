//! Replicas of an operator that share an API server. Everything they do is recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, ServiceAccount};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::core::ObjectMeta;
use kube::{Api, Client, ResourceExt};
use rbuilder::fake::ApiServer;
use rbuilder::{
    Action, Controller, Ctx, Error, Manager, ManagerArgs, ObjectRef, Result, ShardBy, Sharding, Watch,
};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// Namespace of the replicas' Leases.
pub(crate) const NAMESPACE: &str = "default";
/// Number of namespaces over which the objects are spread.
const NAMESPACES: usize = 8;
const ID: &str = "fleet.example.com";
const CLAIMS: &str = "rbuilder.dev/shard-claims";
/// Initial label of all objects.
pub(crate) const SELECTED: &str = "selected";

/// What the replicas have done.
#[derive(Default)]
pub(crate) struct Record {
    /// The replica that is working on each object, by UID.
    working: BTreeMap<String, usize>,
    /// Objects that two replicas worked on concurrently.
    pub(crate) doubled: Vec<String>,
    /// The text of each object at its last reconcile, and the replica.
    pub(crate) last: BTreeMap<String, (String, usize)>,
    /// The names of the objects that each replica has reconciled.
    pub(crate) by_replica: BTreeMap<usize, BTreeSet<String>>,
    /// Number of objects that a replica has found in the cache for all replicas, or the error.
    pub(crate) everywhere: Vec<Result<usize, String>>,
    pub(crate) reconciles: Vec<Done>,
    /// All cleanups that have finished.
    pub(crate) cleanups: Vec<Done>,
    /// Deleted objects that were reported.
    pub(crate) forgotten: Vec<Done>,
    /// Objects whose reconciles fail.
    pub(crate) failing: BTreeSet<String>,
}

/// Something that a replica has done, and when.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) at: Instant,
    pub(crate) replica: usize,
    pub(crate) name: String,
}

impl Record {
    /// Resets the record, except for work in progress.
    pub(crate) fn clear(&mut self) {
        self.last.clear();
        self.by_replica.clear();
        self.reconciles.clear();
        self.cleanups.clear();
        self.forgotten.clear();
    }
}

pub(crate) fn count_names(done: &[Done]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for done in done {
        *counts.entry(done.name.clone()).or_default() += 1;
    }
    counts
}

pub(crate) type Maps = Controller<ConfigMap, State>;

pub(crate) type Configure = fn(Maps) -> Maps;

/// All ways to distribute objects.
pub(crate) const DIVISIONS: [Configure; 3] = [
    |controller| controller,
    |controller| controller.label_owned(),
    |controller| controller.shard_by(ShardBy::Namespace),
];

pub(crate) struct State {
    replica: usize,
    record: Arc<Mutex<Record>>,
    /// Duration of reconciles and cleanups.
    work: Duration,
    /// If set, a reconcile adds a watch for ServiceAccounts, and applies one per object.
    watches_late: bool,
}

impl State {
    fn done(&self, name: &str) -> Done {
        Done {
            at: Instant::now(),
            replica: self.replica,
            name: name.to_owned(),
        }
    }

    fn is_failing(&self, name: &str) -> bool {
        self.record.lock().unwrap().failing.contains(name)
    }

    fn note_everywhere(&self, found: Result<usize, String>) {
        self.record.lock().unwrap().everywhere.push(found);
    }
}

/// Held while a replica is working on an object.
struct Working<'a>(&'a State, String);

impl<'a> Working<'a> {
    fn on(state: &'a State, object: &ConfigMap) -> Self {
        let uid = object.uid().unwrap_or_default();
        let mut record = state.record.lock().unwrap();
        if let Some(other) = record.working.insert(uid.clone(), state.replica) {
            record
                .doubled
                .push(format!("{} by {other} and {}", object.name_any(), state.replica));
        }
        let text = object.data.iter().flatten().next().map(|(_, text)| text.clone());
        let name = object.name_any();
        record
            .last
            .insert(name.clone(), (text.unwrap_or_default(), state.replica));
        record
            .by_replica
            .entry(state.replica)
            .or_default()
            .insert(name.clone());
        Self(state, uid)
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.record.lock().unwrap().working.remove(&self.1);
    }
}

async fn reconcile(object: Arc<ConfigMap>, ctx: Ctx<State>) -> Result {
    let _working = Working::on(&ctx, &object);
    let name = object.name_any();
    let begun = ctx.done(&name);
    ctx.record.lock().unwrap().reconciles.push(begun);
    sleep(ctx.work).await;
    if ctx.is_failing(&name) {
        return Err(Error::new("the test asked for a failure"));
    }
    let everywhere = ctx.cached_everywhere::<ConfigMap>();
    let everywhere = everywhere.map(|objects| objects.list().len());
    ctx.note_everywhere(everywhere.map_err(|error| error.to_string()));
    let child = Secret {
        metadata: ObjectMeta {
            name: Some(object.name_any()),
            ..ObjectMeta::default()
        },
        ..Secret::default()
    };
    ctx.apply_owned(&*object, child).await?;
    if ctx.watches_late {
        ctx.watch("accounts", Watch::<ServiceAccount>::owned())?;
        let mut account = ServiceAccount::default();
        account.metadata.name = Some(name);
        ctx.apply_owned(&*object, account).await?;
    }
    Ok(Action::await_change())
}

pub(crate) async fn clean_up(object: Arc<ConfigMap>, ctx: Ctx<State>) -> Result {
    let _working = Working::on(&ctx, &object);
    sleep(ctx.work).await;
    let ended = ctx.done(&object.name_any());
    ctx.record.lock().unwrap().cleanups.push(ended);
    Ok(Action::await_change())
}

pub(crate) async fn forget(object: ObjectRef<ConfigMap>, ctx: Ctx<State>) -> Result {
    let forgotten = ctx.done(&object.name);
    ctx.record.lock().unwrap().forgotten.push(forgotten);
    Ok(Action::await_change())
}

pub(crate) struct Replica {
    pub(crate) number: usize,
    stop: Option<oneshot::Sender<()>>,
    pub(crate) running: JoinHandle<Result<(), Error>>,
    is_cut_off: Arc<AtomicBool>,
}

pub(crate) struct Fleet {
    pub(crate) server: ApiServer,
    pub(crate) record: Arc<Mutex<Record>>,
    pub(crate) replicas: Vec<Replica>,
    started: usize,
    pub(crate) work: Duration,
    pub(crate) watches_late: bool,
    /// Whether new replicas have shards. Otherwise, they elect a leader.
    pub(crate) sharded: bool,
    pub(crate) configure: Box<dyn Fn(Maps) -> Maps>,
}

/// Returns the namespace of an object and its child, based on the number at the end of the name.
pub(crate) fn namespace_of(name: &str) -> String {
    let number = name.rsplit('-').next().and_then(|number| number.parse().ok());
    namespace_with(number.unwrap_or(0) % NAMESPACES)
}

/// Names must differ at the beginning, because the end hardly affects the API server's hash.
fn namespace_with(number: usize) -> String {
    format!("{number}-team")
}

fn claims_name() -> String {
    format!("{ID}-shards")
}

impl Fleet {
    pub(crate) fn new(sharding: bool) -> Self {
        let server = (0..NAMESPACES).fold(ApiServer::new(), |server, number| {
            let mut namespace = Namespace::default();
            namespace.metadata.name = Some(namespace_with(number));
            server.object(&namespace)
        });
        server.sharding(sharding);
        Self {
            server,
            record: Arc::default(),
            replicas: Vec::new(),
            started: 0,
            work: Duration::from_millis(20),
            watches_late: false,
            sharded: true,
            configure: Box::new(|controller| controller),
        }
    }

    /// Starts the given number of replicas, and waits until each owns some ranges.
    pub(crate) async fn of(replicas: usize, sharding: bool) -> Self {
        Self::configured(replicas, sharding, |controller| controller).await
    }

    /// Like [`of`](Self::of), but also configures the controllers.
    pub(crate) async fn configured(
        replicas: usize,
        sharding: bool,
        configure: impl Fn(Maps) -> Maps + 'static,
    ) -> Self {
        let mut fleet = Self::new(sharding);
        fleet.configure = Box::new(configure);
        fleet.start_many(replicas).await;
        fleet
    }

    /// Starts additional replicas, and waits until each owns some ranges.
    pub(crate) async fn start_many(&mut self, replicas: usize) {
        for _ in 0..replicas {
            self.start();
        }
        sleep(Duration::from_secs(40)).await;
    }

    /// While cut off, the client gets no responses.
    fn client(&self, is_cut_off: Arc<AtomicBool>) -> Client {
        let client = self.server.client();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (client, is_cut_off) = (client.clone(), Arc::clone(&is_cut_off));
            async move {
                while is_cut_off.load(Ordering::Relaxed) {
                    sleep(Duration::from_secs(1)).await;
                }
                let response: Response<Body> = client.send(request).await?;
                Ok::<_, kube::Error>(response)
            }
        });
        Client::new(service, NAMESPACE)
    }

    pub(crate) fn manager(&self, client: Client) -> Manager {
        let args = ManagerArgs {
            leader_elect: !self.sharded,
            ..ManagerArgs::for_tests()
        };
        let manager = Manager::with_client(ID, client, args);
        match self.sharded {
            true => manager.sharded(Sharding::ranges(64).unwrap()),
            false => manager,
        }
    }

    pub(crate) fn start(&mut self) {
        self.start_with(|manager| manager);
    }

    pub(crate) fn start_with(&mut self, change: impl FnOnce(Manager) -> Manager) {
        self.started += 1;
        let is_cut_off = Arc::new(AtomicBool::new(false));
        let state = State {
            replica: self.started,
            record: Arc::clone(&self.record),
            work: self.work,
            watches_late: self.watches_late,
        };
        let controller = (self.configure)(Controller::new(reconcile, state).owns::<Secret>());
        let manager = change(
            self.manager(self.client(Arc::clone(&is_cut_off)))
                .controller(controller),
        );
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(manager.start_until(async {
            let _ = stopped.await;
        }));
        self.replicas.push(Replica {
            number: self.started,
            stop: Some(stop),
            running,
            is_cut_off,
        });
    }

    /// Kills a replica, which leaves its Lease behind.
    pub(crate) fn crash(&mut self, index: usize) {
        self.replicas.remove(index).running.abort();
    }

    pub(crate) fn stop(&mut self, index: usize) -> Replica {
        let mut replica = self.replicas.remove(index);
        replica.stop.take().map(|stop| stop.send(()));
        replica
    }

    pub(crate) fn cut_off(&self, index: usize, is_cut_off: bool) {
        self.replicas[index]
            .is_cut_off
            .store(is_cut_off, Ordering::Relaxed);
    }

    fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.server.admin(), NAMESPACE)
    }

    /// Returns the stored claims.
    pub(crate) async fn claims(&self) -> Option<String> {
        let lease = self.leases().get_opt(&claims_name()).await.unwrap()?;
        lease.annotations().get(CLAIMS).cloned()
    }

    /// Changes the claims by hand.
    pub(crate) async fn write_claims(&self, claims: &str) {
        let patch = Patch::Merge(json!({ "metadata": { "annotations": { CLAIMS: claims } } }));
        self.leases()
            .patch(&claims_name(), &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    pub(crate) fn maps(&self, name: &str) -> Api<ConfigMap> {
        Api::namespaced(self.server.admin(), &namespace_of(name))
    }

    pub(crate) fn secrets(&self, name: &str) -> Api<Secret> {
        Api::namespaced(self.server.admin(), &namespace_of(name))
    }

    pub(crate) async fn children(&self) -> Vec<Secret> {
        let all: Api<Secret> = Api::all(self.server.admin());
        all.list(&Default::default()).await.unwrap().items
    }

    pub(crate) async fn create(&self, name: &str) {
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                labels: Some([(SELECTED.to_owned(), "true".to_owned())].into()),
                ..ObjectMeta::default()
            },
            data: Some([("text".to_owned(), "new".to_owned())].into()),
            ..ConfigMap::default()
        };
        self.maps(name)
            .create(&PostParams::default(), &map)
            .await
            .unwrap();
    }

    /// Returns the names of the objects.
    pub(crate) async fn create_many(&self, count: usize) -> Vec<String> {
        let names: Vec<String> = (0..count).map(|number| format!("object-{number}")).collect();
        for name in &names {
            self.create(name).await;
        }
        names
    }

    pub(crate) async fn write(&self, name: &str, text: &str) {
        let patch = Patch::Merge(json!({ "data": { "text": text } }));
        self.maps(name)
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Removes the label from an object.
    pub(crate) async fn unselect(&self, name: &str) {
        let patch = Patch::Merge(json!({ "metadata": { "labels": { SELECTED: null } } }));
        self.maps(name)
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    pub(crate) async fn delete(&self, name: &str) {
        let maps = self.maps(name);
        maps.delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn objects(&self) -> Vec<ConfigMap> {
        let all: Api<ConfigMap> = Api::all(self.server.admin());
        all.list(&ListParams::default()).await.unwrap().items
    }

    /// Asserts that no two replicas worked on the same object concurrently.
    pub(crate) fn check(&self) {
        let record = self.record.lock().unwrap();
        assert!(record.doubled.is_empty(), "{:?}", record.doubled);
    }

    /// Waits until the current version of all selected objects was reconciled. Returns how long
    /// that takes.
    pub(crate) async fn reconciled(&self) -> Duration {
        let start = Instant::now();
        loop {
            let maps = self.objects().await;
            let missing = {
                let record = self.record.lock().unwrap();
                let is_missing = |map: &&ConfigMap| {
                    let text = map.data.iter().flatten().next().map(|(_, text)| text.as_str());
                    let seen = record.last.get(&map.name_any());
                    let is_selected = map.labels().contains_key(SELECTED);
                    let is_terminating = map.metadata.deletion_timestamp.is_some();
                    let is_seen = seen.is_some_and(|(seen, _)| Some(seen.as_str()) == text);
                    is_selected && !is_terminating && !is_seen
                };
                maps.iter()
                    .filter(is_missing)
                    .map(ResourceExt::name_any)
                    .collect::<Vec<_>>()
            };
            if missing.is_empty() {
                return start.elapsed();
            }
            assert!(
                start.elapsed() < Duration::from_secs(300),
                "never reconciled: {missing:?}"
            );
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Returns how many objects each replica has reconciled.
    pub(crate) fn shares(&self) -> Vec<usize> {
        let record = self.record.lock().unwrap();
        let share = |replica: &Replica| record.by_replica.get(&replica.number).map_or(0, BTreeSet::len);
        self.replicas.iter().map(share).collect()
    }

    /// Returns the decoded shard selectors of all lists of ConfigMaps.
    pub(crate) fn listed(&self) -> Vec<String> {
        let lists =
            self.server.requests().into_iter().filter(|request| {
                request.verb == rbuilder::fake::Verb::List && request.resource == "configmaps"
            });
        let selectors = lists.map(|request| request.parameter("shardSelector").to_owned());
        selectors.filter(|selector| !selector.is_empty()).collect()
    }
}

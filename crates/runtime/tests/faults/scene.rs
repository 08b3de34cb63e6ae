//! A namespace in which memos are created, modified and deleted, along with the expected result.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use rbuilder::envtest::{Environment, eventually};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::lot::Lot;
use super::operator::{CRDS, Memo, MemoSpec, Operator, Process, Watchman};
use super::proxy::Proxy;

const OBJECTS: u64 = 50;
/// Must be longer than the backoff after some seconds of faults.
const CONVERGED: Duration = Duration::from_secs(150);
/// Interval between comparisons of all objects, each of which takes tens of milliseconds of CPU
/// time.
const PAUSE: Duration = Duration::from_millis(500);

pub(crate) struct Scene {
    pub(crate) env: Environment,
    pub(crate) namespace: String,
    pub(crate) watchman: Watchman,
    pub(crate) seed: u64,
    wanted: Arc<Mutex<BTreeMap<String, String>>>,
}

impl Scene {
    pub(crate) async fn new(env: Environment, seed: u64) -> Self {
        env.install_crds(CRDS).await.unwrap();
        let namespace = env.namespace("faults").await.unwrap();
        println!("seed {seed} in {namespace}");
        Self {
            env,
            namespace,
            watchman: Watchman::default(),
            seed,
            wanted: Arc::default(),
        }
    }

    pub(crate) async fn proxy(&self) -> Proxy {
        Proxy::start(self.env.client(), self.seed).await
    }

    pub(crate) fn process(&self, name: &'static str) -> Process {
        Process {
            watchman: self.watchman.clone(),
            name,
        }
    }

    /// Starts an operator that connects through the proxy.
    pub(crate) fn operator(&self, proxy: &Proxy) -> Operator {
        Operator::start(
            proxy.config(),
            &self.namespace,
            self.process("the operator"),
            false,
        )
    }

    /// Like [`operator`](Self::operator), but with leader election.
    pub(crate) fn candidate(&self, proxy: &Proxy, name: &'static str) -> Operator {
        Operator::start(proxy.config(), &self.namespace, self.process(name), true)
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        Api::namespaced(self.env.client(), &self.namespace)
    }

    fn people(&self, seed: u64) -> People {
        People {
            memos: self.api(),
            copies: self.api(),
            lot: Lot::new(seed),
            wanted: Arc::clone(&self.wanted),
            count: 0,
        }
    }

    /// Creates the initial objects and waits until they are reconciled.
    pub(crate) async fn begin(&self) {
        let mut people = self.people(self.seed);
        for _ in 0..OBJECTS {
            people.create().await;
        }
        self.converges().await;
    }

    pub(crate) async fn create(&self, name: &str, text: &str) {
        let mut people = self.people(self.seed);
        people.create_as(name.to_owned(), text.to_owned()).await;
    }

    /// Users create, modify and delete objects until they are stopped.
    pub(crate) fn busy(&self) -> Busy {
        let mut people = self.people(self.seed ^ 1);
        people.count = 1000;
        let (rest, mut told) = tokio::sync::oneshot::channel::<()>();
        let at_work = tokio::spawn(async move {
            while told.try_recv().is_err() {
                people.act().await;
                sleep(Duration::from_millis(30)).await;
            }
            people.count - 1000
        });
        Busy { rest, at_work }
    }

    /// Waits until exactly the expected objects exist. No object may have been reconciled
    /// concurrently. Returns how many copies had to be deleted as garbage.
    pub(crate) async fn converges(&self) -> usize {
        let garbage = AtomicUsize::new(0);
        eventually(CONVERGED, || async {
            garbage.fetch_add(self.collect_garbage().await?, Ordering::Relaxed);
            let difference = self.difference().await;
            if difference.is_err() {
                sleep(PAUSE).await;
            }
            difference
        })
        .await;
        assert_eq!(self.watchman.twice(), Vec::<String>::new());
        garbage.into_inner()
    }

    /// Deletes copies whose owner no longer exists, as the garbage collector would. Returns their
    /// number.
    ///
    /// This can happen if a delayed request is overtaken: its connection is reset, a retry
    /// succeeds, and then the cleanup is done. A copy without an owner reference isn't deleted, so
    /// that the test fails.
    async fn collect_garbage(&self) -> Result<usize, String> {
        let (memos, copies) = (self.api::<Memo>(), self.api::<ConfigMap>());
        let (all, text) = (ListParams::default(), |error: kube::Error| error.to_string());
        // List the copies first; otherwise, the owner of a copy might be created after listing the
        // owners.
        let held = copies.list(&all).await.map_err(text)?;
        let memos = memos.list(&all).await.map_err(text)?;
        let living: BTreeSet<String> = memos.iter().filter_map(ResourceExt::uid).collect();
        let mut garbage = 0;
        for copy in held {
            let owners = copy.owner_references();
            if !owners.is_empty() && !owners.iter().any(|owner| living.contains(&owner.uid)) {
                garbage += 1;
                let (name, params) = (copy.name_any(), DeleteParams::default());
                gone(copies.delete(&name, &params)).await.map_err(text)?;
            }
        }
        Ok(garbage)
    }

    async fn difference(&self) -> Result<(), String> {
        let all = ListParams::default();
        let text = |error: kube::Error| error.to_string();
        let memos = self.api::<Memo>().list(&all).await.map_err(text)?;
        let copies = self.api::<ConfigMap>().list(&all).await.map_err(text)?;
        let wanted = self.wanted.lock().unwrap().clone();
        let copied = memos.iter().map(|memo| {
            let status = memo.status.clone().unwrap_or_default();
            (memo.name_any(), status.copied.unwrap_or_default())
        });
        compare("statuses", &wanted, &copied.collect()).map_err(|error| {
            let unwanted = memos.iter().filter(|memo| !wanted.contains_key(&memo.name_any()));
            let states: Vec<String> = unwanted.map(describe).collect();
            format!("{error}; unwanted: [{}]", states.join(", "))
        })?;
        let owners: BTreeMap<String, Option<String>> =
            memos.iter().map(|memo| (memo.name_any(), memo.uid())).collect();
        let held = copies.iter().map(|copy| {
            let owner = copy.owner_references().first().map(|owner| owner.uid.clone());
            let text = copy.data.as_ref().and_then(|data| data.get("text").cloned());
            let text = match owners.get(&copy.name_any()) {
                Some(uid) if *uid == owner => text.unwrap_or_default(),
                _ => "(of an owner that is gone)".to_owned(),
            };
            (copy.name_any(), text)
        });
        compare("copies", &wanted, &held.collect())
    }
}

fn describe(memo: &Memo) -> String {
    let meta = &memo.metadata;
    format!(
        "{} at {:?}, deleted {:?}, finalizers {:?}",
        memo.name_any(),
        meta.resource_version,
        meta.deletion_timestamp.as_ref().map(|time| time.0),
        memo.finalizers()
    )
}

fn compare(
    what: &str,
    wanted: &BTreeMap<String, String>,
    found: &BTreeMap<String, String>,
) -> Result<(), String> {
    let names: BTreeSet<&String> = wanted.keys().chain(found.keys()).collect();
    let wrong: Vec<String> = names
        .into_iter()
        .filter(|name| wanted.get(*name) != found.get(*name))
        .map(|name| format!("{name}: {:?} in place of {:?}", found.get(name), wanted.get(name)))
        .collect();
    match wrong.len() {
        0 => Ok(()),
        count => Err(format!(
            "{count} {what} differ: {}",
            wrong[..count.min(5)].join("; ")
        )),
    }
}

/// Users that are modifying objects.
pub(crate) struct Busy {
    rest: tokio::sync::oneshot::Sender<()>,
    at_work: JoinHandle<u64>,
}

impl Busy {
    /// Stops all users, and returns how many changes they made.
    pub(crate) async fn rest(self) -> u64 {
        let _ = self.rest.send(());
        self.at_work.await.unwrap()
    }
}

/// Users modify objects directly on the API server, retrying until it succeeds.
struct People {
    memos: Api<Memo>,
    copies: Api<ConfigMap>,
    lot: Lot,
    wanted: Arc<Mutex<BTreeMap<String, String>>>,
    count: u64,
}

impl People {
    async fn act(&mut self) {
        match self.lot.below(10) {
            0..2 => self.create().await,
            2..4 => self.delete().await,
            4 => self.meddle(true).await,
            5 => self.meddle(false).await,
            _ => self.change().await,
        }
    }

    fn text(&mut self) -> String {
        self.count += 1;
        format!("text {}", self.count)
    }

    fn any(&mut self) -> Option<String> {
        let names: Vec<String> = self.wanted.lock().unwrap().keys().cloned().collect();
        self.lot.pick(&names).cloned()
    }

    async fn create(&mut self) {
        let text = self.text();
        self.create_as(format!("memo-{}", self.count), text).await;
    }

    async fn create_as(&mut self, name: String, text: String) {
        let memo = Memo::new(
            &name,
            MemoSpec {
                text: Some(text.clone()),
            },
        );
        self.wanted.lock().unwrap().insert(name, text);
        until_heard(|| async {
            match self.memos.create(&PostParams::default(), &memo).await {
                Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
                other => other.map(drop),
            }
        })
        .await;
    }

    async fn change(&mut self) {
        let Some(name) = self.any() else { return };
        let text = self.text();
        let patch = Patch::Merge(json!({ "spec": { "text": text } }));
        self.wanted.lock().unwrap().insert(name.clone(), text);
        until_heard(|| async { self.memos.patch(&name, &PatchParams::default(), &patch).await }).await;
    }

    async fn delete(&mut self) {
        let Some(name) = self.any() else { return };
        self.count += 1;
        self.wanted.lock().unwrap().remove(&name);
        until_heard(|| async { gone(self.memos.delete(&name, &DeleteParams::default())).await }).await;
    }

    /// Deletes or modifies an object owned by the operator.
    async fn meddle(&mut self, deletes: bool) {
        let Some(name) = self.any() else { return };
        self.count += 1;
        let patch = Patch::Merge(json!({ "data": { "text": "meddled with" } }));
        until_heard(|| async {
            match deletes {
                true => gone(self.copies.delete(&name, &DeleteParams::default())).await,
                false => gone(self.copies.patch(&name, &PatchParams::default(), &patch)).await,
            }
        })
        .await;
    }
}

/// Ignores the error that the object no longer exists.
async fn gone<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<(), kube::Error> {
    match request.await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        other => other.map(drop),
    }
}

async fn until_heard<T, F>(request: impl Fn() -> F)
where
    F: Future<Output = Result<T, kube::Error>>,
{
    while request().await.is_err() {
        sleep(Duration::from_millis(100)).await;
    }
}

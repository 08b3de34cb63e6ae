//! The operator under test. For each `Memo`, it creates a ConfigMap with the same name and text,
//! and updates the status. It also detects concurrent reconciles of an object, within a process or
//! across processes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::DeleteParams;
use kube::core::ObjectMeta;
use kube::{Config, CustomResource, ResourceExt};
use rbuilder::{Action, Controller, Ctx, Manager, ManagerArgs, Result};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) const CRDS: &str = "tests/controllers/crds";
pub(crate) const LEASE: &str = "faults.example.com";
const FINALIZER: &str = "faults.example.com/copy";

/// A text, which the operator copies to a ConfigMap.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "controllers.example.com",
    version = "v1",
    kind = "Memo",
    namespaced,
    status = "MemoStatus",
    schema = "disabled"
)]
pub(crate) struct MemoSpec {
    pub(crate) text: Option<String>,
}

#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub(crate) struct MemoStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) copied: Option<String>,
}

/// Tracks the reconciles in all processes of an operator. Clones share the same state.
#[derive(Clone, Default)]
pub(crate) struct Watchman(Arc<Mutex<Activity>>);

#[derive(Default)]
struct Activity {
    in_work: BTreeSet<String>,
    twice: Vec<String>,
    reconciles: usize,
}

/// Held while an object is being reconciled.
struct InWork {
    watchman: Watchman,
    key: String,
}

impl Watchman {
    fn enter(&self, memo: &Memo, who: &str) -> InWork {
        let key = format!("{}/{}", memo.namespace().unwrap_or_default(), memo.name_any());
        let mut activity = self.0.lock().unwrap();
        activity.reconciles += 1;
        if !activity.in_work.insert(key.clone()) {
            activity.twice.push(format!("{key} by {who}"));
        }
        InWork {
            watchman: self.clone(),
            key,
        }
    }

    /// Objects that were reconciled concurrently.
    pub(crate) fn twice(&self) -> Vec<String> {
        self.0.lock().unwrap().twice.clone()
    }

    pub(crate) fn is_in_work(&self, name: &str) -> bool {
        let activity = self.0.lock().unwrap();
        activity
            .in_work
            .iter()
            .any(|key| key.ends_with(&format!("/{name}")))
    }

    pub(crate) fn reconciles(&self) -> usize {
        self.0.lock().unwrap().reconciles
    }
}

impl Drop for InWork {
    fn drop(&mut self) {
        self.watchman.0.lock().unwrap().in_work.remove(&self.key);
    }
}

#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) watchman: Watchman,
    pub(crate) name: &'static str,
}

/// A text that makes a reconcile block in the given process.
pub(crate) fn held_by(name: &str) -> String {
    format!("held by {name}")
}

async fn reconcile(memo: Arc<Memo>, ctx: Ctx<Process>) -> Result {
    let _in_work = ctx.watchman.enter(&memo, ctx.name);
    let text = memo.spec.text.clone().unwrap_or_default();
    if text == held_by(ctx.name) {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    let copy = ConfigMap {
        metadata: ObjectMeta {
            name: Some(memo.name_any()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("text".to_owned(), text)])),
        ..ConfigMap::default()
    };
    let copy = ctx.apply_owned(&*memo, copy).await?;
    // Give other workers a chance to interfere.
    tokio::time::sleep(Duration::from_millis(5)).await;
    let copied = copy.data.and_then(|mut data| data.remove("text"));
    ctx.apply_status(&*memo, MemoStatus { copied }).await?;
    Ok(Action::await_change())
}

/// Deletes the copy, because the test environment doesn't have a garbage collector.
async fn cleanup(memo: Arc<Memo>, ctx: Ctx<Process>) -> Result {
    let _in_work = ctx.watchman.enter(&memo, ctx.name);
    let copies = ctx.api::<ConfigMap>(&*memo);
    match copies.delete(&memo.name_any(), &DeleteParams::default()).await {
        Ok(_) => Ok(Action::await_change()),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Action::await_change()),
        Err(error) => Err(error.into()),
    }
}

/// A manager running in this process, started in the same way as in `main`.
pub(crate) struct Operator {
    stop: oneshot::Sender<()>,
    pub(crate) ended: JoinHandle<Result<()>>,
}

impl Operator {
    pub(crate) fn start(config: Config, namespace: &str, process: Process, leader_elect: bool) -> Self {
        let args = ManagerArgs {
            watch_namespace: namespace.to_owned(),
            leader_elect,
            leader_election_namespace: Some(namespace.to_owned()),
            ..ManagerArgs::for_tests()
        };
        let controller = Controller::new(reconcile, process)
            .finalizer(FINALIZER, cleanup)
            .owns::<ConfigMap>()
            // With the default backoff, an object might be retried too late for the test.
            .backoff(Duration::from_millis(5), Duration::from_secs(20))
            .concurrency(8);
        let manager = Manager::with_config(LEASE, config, args)
            .unwrap()
            .controller(controller);
        let (stop, stopped) = oneshot::channel();
        let stopped = async {
            let _ = stopped.await;
        };
        Self {
            stop,
            ended: tokio::spawn(manager.start_until(stopped)),
        }
    }

    pub(crate) async fn stop(self) -> Result<()> {
        let _ = self.stop.send(());
        self.ended.await.unwrap()
    }
}

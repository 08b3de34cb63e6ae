// SPDX-License-Identifier: Apache-2.0

//! A namespace, a clock and an operator for each test.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cronjob_operator::api::v1::{CronJob, CronJobStatus};
use cronjob_operator::clock::Clock;
use cronjob_operator::controller::cron_job::{self, State, history};
use jiff::{SignedDuration, Timestamp, Unit};
use k8s_openapi::api::batch::v1::Job;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt};
use rbuilder::conditions;
use rbuilder::envtest::{Environment, eventually};
use rbuilder::testing::{self, Running};
use rbuilder::{Ctx, Manager, ManagerArgs};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Time limit for changes that should happen immediately, on a busy machine.
pub const LONG: Duration = Duration::from_secs(30);

/// The hands of the operator's clock, which only move when a test moves them.
#[derive(Clone, Default)]
pub struct Hands(Arc<Mutex<Timestamp>>);

impl Hands {
    pub fn set(&self, now: Timestamp) {
        *self.0.lock().unwrap() = now;
    }

    pub fn clock(&self) -> Clock {
        let hands = self.clone();
        Clock::new(move || *hands.0.lock().unwrap())
    }
}

/// Returns the next full hour.
pub fn next_hour(time: Timestamp) -> Timestamp {
    let hour = jiff::TimestampRound::new()
        .smallest(Unit::Hour)
        .mode(jiff::RoundMode::Trunc);
    time.round(hour).unwrap() + SignedDuration::from_hours(1)
}

pub fn seconds(seconds: i64) -> SignedDuration {
    SignedDuration::from_secs(seconds)
}

/// The namespace of one test, on the control plane that all tests share.
pub struct Fixture {
    pub client: Client,
    pub namespace: String,
    pub hands: Hands,
}

impl Fixture {
    pub async fn new(env: &Environment, prefix: &str) -> Self {
        env.install_crds("config/crd/bases").await.unwrap();
        Self {
            client: env.client(),
            namespace: env.namespace(prefix).await.unwrap(),
            hands: Hands::default(),
        }
    }

    pub fn cron_jobs(&self) -> Api<CronJob> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub async fn create<K>(&self, object: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
        K: Clone + Debug + Serialize + DeserializeOwned,
    {
        let object: K = serde_json::from_value(object).unwrap();
        Api::namespaced(self.client.clone(), &self.namespace)
            .create(&PostParams::default(), &object)
            .await
            .unwrap()
    }

    /// Creates a CronJob that runs every full hour, unless `spec` overrides it, and sets the clock
    /// to five seconds after its first run. Returns the CronJob and the time of this run.
    pub async fn hourly(&self, name: &str, spec: Value) -> (CronJob, Timestamp) {
        let mut object = cron_job(name, "0 * * * *");
        merge(&mut object["spec"], spec);
        let created: CronJob = self.create(object).await;
        let due = next_hour(created.creation_timestamp().unwrap().0);
        self.hands.set(due + seconds(5));
        (created, due)
    }

    /// Creates a Job of a CronJob, as the operator would have started it at this time.
    pub async fn job(&self, owner: &CronJob, name: &str, at: Timestamp) -> Job {
        let mut job = job(name);
        job["metadata"]["annotations"] = json!({ history::SCHEDULED_AT: at.to_string() });
        job["metadata"]["ownerReferences"] = json!([owner.controller_owner_ref(&())]);
        self.create(job).await
    }

    /// Writes the status of a finished Job like the Job controller. `how` is `Complete` or
    /// `Failed`.
    pub async fn finish(&self, job: &str, how: &str, at: Timestamp) {
        let (earlier, finished) = match how {
            "Complete" => ("SuccessCriteriaMet", json!(at)),
            _ => ("FailureTarget", Value::Null),
        };
        let condition = |type_: &str| {
            json!({
                "type": type_, "status": "True", "reason": "Tested", "message": "",
                "lastProbeTime": at, "lastTransitionTime": at,
            })
        };
        let status = json!({ "status": {
            "startTime": at, "completionTime": finished,
            "conditions": [condition(earlier), condition(how)],
        }});
        let params = PatchParams::default();
        let patched = self
            .jobs()
            .patch_status(job, &params, &Patch::Merge(status))
            .await;
        patched.unwrap();
    }

    pub async fn patch(&self, name: &str, patch: Value) -> CronJob {
        let params = PatchParams::default();
        let patched = self
            .cron_jobs()
            .patch(name, &params, &Patch::Merge(patch))
            .await;
        patched.unwrap()
    }

    /// Makes an irrelevant change to a CronJob, so that it is reconciled.
    pub async fn poke(&self, name: &str) {
        let value = Timestamp::now().to_string();
        self.patch(
            name,
            json!({ "metadata": { "annotations": { "poked": value } } }),
        )
        .await;
    }

    /// Returns a manager that watches only this namespace and has no servers.
    pub fn manager(&self) -> Manager {
        self.manager_as(self.client.clone())
    }

    pub fn manager_as(&self, client: Client) -> Manager {
        Manager::with_client("tests", client, self.args())
    }

    pub fn args(&self) -> ManagerArgs {
        ManagerArgs {
            watch_namespace: self.namespace.clone(),
            ..ManagerArgs::for_tests()
        }
    }

    /// Starts the operator in this process, with the clock of this test.
    pub fn run(&self) -> Running {
        self.run_with(self.hands.clock())
    }

    pub fn run_with(&self, clock: Clock) -> Running {
        let controller = cron_job::controller_with(State { clock });
        testing::run(self.manager().controller(controller))
    }

    /// Calls the reconcile function once, with a cache that contains these Jobs.
    pub async fn reconcile(&self, name: &str, jobs: Vec<Job>) -> rbuilder::Result {
        let state = State {
            clock: self.hands.clock(),
        };
        let ctx = Ctx::new(self.client.clone(), "cronjob", state)
            .indexing(history::BY_CONTROLLER, history::controller_of)
            .caching(jobs);
        let object = self.cron_jobs().get(name).await.unwrap();
        cron_job::reconcile(Arc::new(object), ctx).await
    }

    pub async fn status(&self, name: &str) -> CronJobStatus {
        let object = self.cron_jobs().get(name).await.unwrap();
        object.status.unwrap_or_default()
    }

    /// Waits until a condition has this status and reason. Returns the whole status.
    pub async fn await_condition(&self, name: &str, wanted: (&str, &str, &str)) -> CronJobStatus {
        eventually(LONG, || async {
            let status = self.status(name).await;
            let found = said(&status, wanted.0);
            match found == (wanted.1.to_owned(), wanted.2.to_owned()) {
                true => Ok(status),
                false => Err(format!("want {wanted:?}, found {found:?}")),
            }
        })
        .await
    }

    /// Waits until the status lists exactly these Jobs.
    pub async fn await_active(&self, name: &str, wanted: &[&str]) -> CronJobStatus {
        eventually(LONG, || async {
            let status = self.status(name).await;
            match active(&status) == wanted {
                true => Ok(status),
                false => Err(format!("want {wanted:?}, found {:?}", active(&status))),
            }
        })
        .await
    }

    /// Waits until exactly these Jobs exist. Returns them by name.
    pub async fn await_jobs(&self, wanted: &[&str]) -> BTreeMap<String, Job> {
        eventually(LONG, || async {
            let jobs = self.list_jobs().await;
            match jobs.keys().eq(wanted.iter()) {
                true => Ok(jobs),
                false => Err(format!("want {wanted:?}, found {:?}", jobs.keys())),
            }
        })
        .await
    }

    pub async fn list_jobs(&self) -> BTreeMap<String, Job> {
        let jobs = self.jobs().list(&ListParams::default()).await.unwrap();
        jobs.into_iter().map(|job| (job.name_any(), job)).collect()
    }

    /// Waits until the operator has handled all earlier changes: it has reconciled a new object.
    pub async fn await_rest(&self) {
        let mut probe = cron_job("probe", "0 0 1 1 *");
        probe["metadata"] = json!({ "generateName": "probe-" });
        probe["spec"]["suspend"] = json!(true);
        let probe: CronJob = self.create(probe).await;
        self.await_condition(&probe.name_any(), ("Available", "False", "Suspended"))
            .await;
    }
}

/// Returns the status and the reason of a condition.
pub fn said(status: &CronJobStatus, type_: &str) -> (String, String) {
    let condition = conditions::find(&status.conditions, type_);
    condition.map_or_else(Default::default, |condition| {
        (condition.status.clone(), condition.reason.clone())
    })
}

/// Returns the names of the Jobs that a status lists.
pub fn active(status: &CronJobStatus) -> Vec<&str> {
    let names = status.active.iter().map(|job| job.name.as_deref());
    names.map(Option::unwrap_or_default).collect()
}

pub fn cron_job(name: &str, schedule: &str) -> Value {
    json!({
        "apiVersion": "batch.tutorial.kubebuilder.io/v1",
        "kind": "CronJob",
        "metadata": { "name": name },
        "spec": {
            "schedule": schedule,
            "jobTemplate": {
                "metadata": { "labels": { "team": "red" }, "annotations": { "note": "kept" } },
                "spec": { "template": pod() },
            },
        },
    })
}

pub fn job(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "spec": { "template": pod() } })
}

fn pod() -> Value {
    json!({ "spec": {
        "restartPolicy": "Never",
        "containers": [{ "name": "c", "image": "busybox" }],
    }})
}

/// Copies the keys of `more` to `object`.
pub fn merge(object: &mut Value, more: Value) {
    for (key, value) in more.as_object().into_iter().flatten() {
        object[key] = value.clone();
    }
}

//! Runs all operators on the fake API server, without any faults.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret, Service};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt};
use rbuilder::fake::{ApiServer, Request, Verb};
use rbuilder::testing::{Running, run};
use rbuilder::{Manager, ManagerArgs, Object};
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::sync::Notify;

use crate::kinds::Machine;
use crate::{Case, cases, second_set};

/// Upper bound for the time that any operator waits.
const LONG: Duration = Duration::from_secs(200);
/// Long enough to detect an operator that writes in a loop.
const QUIET: Duration = Duration::from_secs(100);

/// After each declaration, plays the controllers of Kubernetes for some seconds. Deployments become
/// available and Jobs succeed right away.
async fn play_environment(client: Client, declared: Arc<Notify>) {
    loop {
        declared.notified().await;
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            complete(&client).await;
        }
    }
}

async fn complete(client: &Client) {
    for (kind, plural) in [("Deployment", "deployments"), ("Job", "jobs")] {
        let group = if kind == "Job" { "batch" } else { "apps" };
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", kind), plural);
        let api: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
        for object in api.list(&ListParams::default()).await.unwrap() {
            let status = achieved(kind, &object);
            if object.data.get("status") != Some(&status) {
                let patch = Patch::Merge(json!({ "status": status }));
                let patched = api
                    .patch_status(&object.name_any(), &PatchParams::default(), &patch)
                    .await;
                patched.unwrap();
            }
        }
    }
}

/// The status of an object that's done.
fn achieved(kind: &str, object: &DynamicObject) -> Value {
    match kind {
        "Job" => json!({ "succeeded": 1 }),
        _ => {
            let replicas = &object.data["spec"]["replicas"];
            json!({
                "observedGeneration": object.metadata.generation,
                "replicas": replicas,
                "updatedReplicas": replicas,
                "readyReplicas": replicas,
                "availableReplicas": replicas,
            })
        }
    }
}

/// A running operator of the corpus.
struct Plain {
    server: ApiServer,
    serves_machines: bool,
    operator: Running,
    declared: Arc<Notify>,
    environment: tokio::task::JoinHandle<()>,
}

impl Plain {
    fn start(case: &Case, register: fn(Manager) -> Manager) -> Self {
        let mut server = ApiServer::new().collecting_garbage();
        let crds = (case.crds)();
        let serves_machines = crds.iter().any(|crd| crd.spec.names.kind == "Machine");
        for crd in crds {
            server = server.crd(crd);
        }
        if let Some(role) = case.role {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("role.yaml"), role).unwrap();
            server = server.role_from(folder.path());
        }
        let manager = Manager::with_client("corpus", server.client(), ManagerArgs::for_tests());
        let declared = Arc::<Notify>::default();
        Self {
            operator: run(register(manager)),
            environment: tokio::spawn(play_environment(server.admin(), declared.clone())),
            declared,
            serves_machines,
            server,
        }
    }

    fn api(&self, object: &Value) -> Api<DynamicObject> {
        let text = |path: &str| object[path].as_str().unwrap().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let mut resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
        // kube would guess `labelleds`.
        if kind == "Labelled" {
            resource.plural = "labelled".to_owned();
        }
        Api::default_namespaced_with(self.server.admin(), &resource)
    }

    async fn declare(&self, object: &Value) {
        let (api, name) = (self.api(object), object["metadata"]["name"].as_str().unwrap());
        let params = PatchParams::apply("user").force();
        api.patch(name, &params, &Patch::Apply(object)).await.unwrap();
        self.declared.notify_one();
    }

    async fn delete(&self, object: &Value) {
        let name = object["metadata"]["name"].as_str().unwrap();
        self.api(object)
            .delete(name, &DeleteParams::background())
            .await
            .unwrap();
    }

    async fn find(&self, object: &Value) -> Option<DynamicObject> {
        let name = object["metadata"]["name"].as_str().unwrap();
        self.api(object).get_opt(name).await.unwrap()
    }

    /// Waits, and checks that the writes have stopped. Returns their number.
    async fn settle(&self, time: Duration) -> usize {
        let before = self.writes();
        tokio::time::sleep(time).await;
        let settled = self.writes();
        tokio::time::sleep(QUIET).await;
        assert_eq!(
            self.writes(),
            settled,
            "writes do not end: {:#?}",
            self.last_requests()
        );
        settled - before
    }

    fn writes(&self) -> usize {
        let requests = self.server.requests();
        requests
            .iter()
            .filter(|request| !request.by_admin && is_write(request))
            .count()
    }

    fn last_requests(&self) -> Vec<String> {
        let requests = self.server.requests();
        requests.iter().rev().take(20).map(ToString::to_string).collect()
    }

    /// Returns all objects of the kinds that operators create.
    async fn left(&self) -> Vec<String> {
        let client = self.server.admin();
        let mut left = Vec::new();
        left.extend(names::<ConfigMap>(&client).await);
        left.extend(names::<Secret>(&client).await);
        left.extend(names::<Service>(&client).await);
        left.extend(names::<PersistentVolumeClaim>(&client).await);
        left.extend(names::<Deployment>(&client).await);
        left.extend(names::<StatefulSet>(&client).await);
        left.extend(names::<Job>(&client).await);
        left.extend(names::<ClusterRole>(&client).await);
        if self.serves_machines {
            left.extend(names::<Machine>(&client).await);
        }
        left
    }

    async fn stop(self) {
        self.operator.stop().await;
        self.environment.abort();
    }
}

fn is_write(request: &Request) -> bool {
    !matches!(request.verb, Verb::Get | Verb::List | Verb::Watch)
}

async fn names<K: Object>(client: &Client) -> Vec<String> {
    let list = Api::<K>::all(client.clone())
        .list(&ListParams::default())
        .await
        .unwrap();
    list.iter()
        .map(|object| format!("{} {}", K::kind(&()), object.name_any()))
        .collect()
}

/// Returns the first declaration of each object, since an ordinary test would only use that.
pub(crate) fn ordinary(case: &Case) -> Vec<Value> {
    let mut declared: Vec<Value> = Vec::new();
    for object in (case.declarations)() {
        let is_same = |other: &Value| {
            other["kind"] == object["kind"] && other["metadata"]["name"] == object["metadata"]["name"]
        };
        if !declared.iter().any(is_same) {
            declared.push(object);
        }
    }
    declared
}

/// Declares the objects of a case, and then deletes them.
async fn check(case: &Case, register: fn(Manager) -> Manager) {
    let plain = Plain::start(case, register);
    let declared = ordinary(case);
    for object in &declared {
        plain.declare(object).await;
    }
    assert!(plain.settle(LONG).await > 0, "the operator does nothing");
    let requests = plain.server.requests();
    let made = plain.left().await;
    let declared_maps = declared.iter().filter(|object| object["kind"] == "ConfigMap");
    assert!(made.len() > declared_maps.count(), "nothing is made: {made:?}");
    let refused: Vec<_> = requests.iter().filter(|request| request.code == 403).collect();
    assert!(refused.is_empty(), "beyond the role: {refused:?}");
    for object in declared.iter().rev() {
        plain.delete(object).await;
    }
    plain.settle(QUIET).await;
    assert_eq!(
        plain.left().await,
        Vec::<String>::new(),
        "left after the deletion"
    );
    for object in &declared {
        assert!(plain.find(object).await.is_none(), "not deleted: {object}");
    }
    plain.stop().await;
}

#[test]
fn every_operator_reaches_and_leaves_its_declared_state_without_faults() {
    let failed: Vec<String> = cases()
        .chain(second_set::CASES)
        .flat_map(|case| [(case, "broken", case.broken), (case, "repaired", case.repaired)])
        .filter_map(|(case, version, register)| {
            let runtime = Builder::new_current_thread()
                .enable_all()
                .start_paused(true)
                .build()
                .unwrap();
            let run = || runtime.block_on(check(case, register));
            let failure = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).err()?;
            let message = failure.downcast_ref::<String>().cloned();
            Some(format!(
                "{} ({version}): {}",
                case.name,
                message.unwrap_or_default()
            ))
        })
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

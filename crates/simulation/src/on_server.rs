//! Replays a history on a real kube-apiserver (and etcd) and compares the resulting states with the
//! simulation.
//!
//! The clock of a real server can't be controlled, so the history must not contain perturbations.
//! There's no controller manager either: statuses are copied from the simulated environment, and
//! nothing is garbage-collected.

use std::collections::BTreeSet;
use std::time::Duration;

use http::Request;
use http::header::CONTENT_TYPE;
use kube::Client;
use rbuilder_testing::envtest::Environment;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::compared::differences;
use crate::history::{History, Step};
use crate::operator::ProcessSettings;
use crate::run::{Outcome, Setting};
use crate::world::{Mask, ObjectName, Snapshot};

/// Timeout for reaching a single state, in real time.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Arbitrary, since timestamps are ignored in comparisons.
const SOME_TIME: &str = "2030-01-01T00:00:00Z";

/// Replays a history that ended in `outcome` in the simulation, and returns the differences.
pub(crate) fn replay(
    setting: &Setting,
    history: &History,
    outcome: &Outcome,
    mask: &Mask,
) -> Result<Vec<String>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start a runtime: {error}"))?;
    runtime.block_on(async {
        let environment = Environment::builder().start().await;
        let environment = environment.map_err(|error| format!("cannot start kube-apiserver: {error}"))?;
        let found = replay_on(&environment, setting, history, outcome, mask).await;
        let stopped = environment.stop().await;
        let found = found?;
        stopped.map_err(|error| format!("cannot stop kube-apiserver: {error}"))?;
        Ok(found)
    })
}

async fn replay_on(
    environment: &Environment,
    setting: &Setting,
    history: &History,
    outcome: &Outcome,
    mask: &Mask,
) -> Result<Vec<String>, String> {
    let client = environment.client();
    let crds = setting.server.crds();
    let installed = environment.install_crd_values(crds.iter().map(|crd| as_written(crd)));
    installed.await.map_err(|error| error.to_string())?;
    for declaration in &setting.declarations {
        let namespace = &declaration.name.namespace;
        if !matches!(namespace.as_str(), "" | "default") {
            let created = environment.create_namespace(namespace);
            created.await.map_err(|error| error.to_string())?;
        }
    }
    let operator = match &setting.roles {
        None => client.clone(),
        Some(folder) => {
            let user = environment.role_from(folder, "default").await;
            user.map_err(|error| format!("cannot grant the role: {error}"))?
                .client()
        }
    };
    let replay = Replay {
        setting,
        client,
        made: &outcome.made,
        mask,
    };
    let settings = ProcessSettings {
        namespace: setting.namespace.clone(),
        elects_leader: false,
    };
    let process = tokio::spawn((setting.program)(operator, &settings).running);
    let mut found = Vec::new();
    for (number, (step, state)) in history.steps.iter().zip(&outcome.settled).enumerate() {
        let differing = replay.take(step, state).await?;
        found.extend(
            differing
                .iter()
                .map(|one| format!("after step {}: {one}", number + 1)),
        );
        if !found.is_empty() || process.is_finished() {
            break;
        }
    }
    if process.is_finished() {
        found.push("the operator has ended".to_owned());
    }
    process.abort();
    Ok(found)
}

/// Strips fields that are set by the server.
fn as_written(crd: &Value) -> Value {
    let metadata = &crd["metadata"];
    json!({
        "apiVersion": crd["apiVersion"], "kind": crd["kind"], "spec": crd["spec"],
        "metadata": {
            "name": metadata["name"], "labels": metadata["labels"],
            // Required by the server for protected groups, e.g. `*.k8s.io`.
            "annotations": metadata["annotations"],
        },
    })
}

struct Replay<'r> {
    setting: &'r Setting,
    client: Client,
    /// Names of the objects that the operator wrote in the simulation.
    made: &'r BTreeSet<String>,
    mask: &'r Mask,
}

impl Replay<'_> {
    async fn take(&self, step: &Step, state: &Snapshot) -> Result<Vec<String>, String> {
        let declarations = &self.setting.declarations;
        let (declaration, object) = match step {
            Step::Apply(number) => (&declarations[*number], declarations[*number].object.clone()),
            Step::ApplyWith(number, changes) => (&declarations[*number], declarations[*number].with(changes)),
            Step::Delete(number) => return Ok(self.delete(&declarations[*number].name).await),
            Step::DeleteForeground(_)
            | Step::FailEnvironment
            | Step::PassUntil(_)
            | Step::ApplyElsewhere(_)
            | Step::DeleteElsewhere(_)
            | Step::EndElsewhere => {
                return Err("a step of the history needs control over the cluster".to_owned());
            }
        };
        let name = &declaration.name;
        if let Err(error) = self.send(declaration.apply(&object, "")).await {
            return Ok(vec![format!(
                "{name}: kube-apiserver rejects the declaration: {error}"
            )]);
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = self.compare(state).await;
            if found.is_empty() || Instant::now() > deadline {
                return Ok(found);
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    async fn delete(&self, name: &ObjectName) -> Vec<String> {
        let request = Request::delete(name.path()).body("{}".to_owned());
        if let Err(error) = self.send(request.expect("a path of names is a URI")).await {
            return vec![format!("{name}: kube-apiserver does not delete it: {error}")];
        }
        let deadline = Instant::now() + PATIENCE;
        while self.get(name).await.is_some() {
            if Instant::now() > deadline {
                return vec![format!("{name} should not exist")];
            }
            sleep(POLL_INTERVAL).await;
        }
        Vec::new()
    }

    async fn compare(&self, state: &Snapshot) -> Vec<String> {
        let mut all = Vec::new();
        let declarations = self.setting.declarations.iter();
        let declared: BTreeSet<String> = declarations.map(|declared| declared.name.to_string()).collect();
        for (text, expected) in &state.objects {
            let is_compared = self.made.contains(text) || declared.contains(text);
            let Some(name) = ObjectName::parse(text).filter(|_| is_compared) else {
                continue;
            };
            let Some(found) = self.get(&name).await else {
                all.push(format!("{text} is missing"));
                continue;
            };
            // No controllers are running, so update the status in their place before comparing.
            let found = match self.copy_status(&name, expected, found).await {
                Ok(found) => found,
                Err(why) => {
                    all.push(format!(
                        "{text}: kube-apiserver rejects the simulated status: {why}"
                    ));
                    continue;
                }
            };
            all.extend(differences(text, expected, &found, self.mask));
            if let Some(declared) = state.declared.get(text) {
                all.extend(differences(text, declared, &found, self.mask));
            }
        }
        all
    }

    async fn copy_status(&self, name: &ObjectName, expected: &Value, found: Value) -> Result<Value, String> {
        let mut wanted = with_values(&expected["status"], &found["metadata"]["generation"]);
        let is_custom = self
            .setting
            .server
            .schema_of(&name.group, &name.plural, &name.version)
            .is_some();
        // Null out fields that the simulated status no longer contains.
        if let (Some(wanted), Some(found)) = (wanted.as_object_mut(), found["status"].as_object()) {
            for name in found.keys() {
                wanted.entry(name).or_insert(Value::Null);
            }
        }
        if is_custom || wanted.is_null() || crate::environment::contains(&found["status"], &wanted) {
            return Ok(found);
        }
        let body = json!({ "status": wanted }).to_string();
        let request = Request::patch(format!("{}/status", name.path()));
        let request = request
            .header(CONTENT_TYPE, "application/merge-patch+json")
            .body(body);
        let sent = self.send(request.expect("a path of names is a URI")).await;
        sent.map_err(|error| error.to_string())
    }

    async fn get(&self, name: &ObjectName) -> Option<Value> {
        let request = Request::get(name.path()).body(String::new());
        self.send(request.expect("a path of names is a URI")).await.ok()
    }

    async fn send(&self, request: Request<String>) -> kube::Result<Value> {
        let mut request = request.map(String::into_bytes);
        let json = http::HeaderValue::from_static("application/json");
        request.headers_mut().entry(CONTENT_TYPE).or_insert(json);
        self.client.request(request).await
    }
}

fn with_values(status: &Value, generation: &Value) -> Value {
    match status {
        Value::Object(fields) => {
            let fields = fields.iter();
            fields
                .map(|(name, value)| (name.clone(), with_values(value, generation)))
                .collect()
        }
        Value::Array(items) => items.iter().map(|item| with_values(item, generation)).collect(),
        Value::String(text) if text == "<time>" => SOME_TIME.into(),
        Value::String(text) if text == "<current>" => generation.clone(),
        value => value.clone(),
    }
}

//! Migration by the cluster itself: we create a StorageVersionMigration for the controller manager.
//!
//! | Kubernetes | API | by default |
//! |---|---|---|
//! | 1.30 to 1.34 | `v1alpha1`, which names the version of the resource | off |
//! | 1.35, 1.36 | `v1beta1` | off |
//! | after 1.36 | `v1`; the controller also trims the stored versions | on |
//!
//! Note that the API may be served even if there is no controller for it.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::definition::Definition;
use super::requests::{JSON, Requests};
use super::{SETTLE, settling};
use crate::cluster::{Body, Refusal};

const GROUP: &str = "/apis/storagemigration.k8s.io";
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];
/// Timeout for the controller to start. An event notifies it, but nothing is visible until it
/// updates the status.
const BEGIN: Duration = Duration::from_secs(10);
/// Timeout for the controller to update the stored versions after writing all objects.
const TRIM: Duration = Duration::from_secs(10);
/// Part of the message while a request is being retried.
const TROUBLE: &str = "transient error";
/// Maximum time for the cluster to retry a request. It would retry forever, e.g. if a webhook is
/// unreachable.
const LONGEST_TROUBLE: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug, PartialEq)]
pub(super) enum End {
    Migrated,
    /// Not supported by the cluster, with the reason.
    Unavailable(String),
    /// The migration failed. The reason mentions at most one object.
    Failed(String),
}

/// Makes the cluster write all objects of a CRD, and waits until it is done. Waits for an existing
/// migration if an earlier run created one. `report` is called with messages of the cluster. Fails
/// on interrupt, in which case the cluster continues.
pub(super) fn migrate(
    requests: &Requests<'_>,
    definition: &Definition,
    report: &mut dyn FnMut(&str),
) -> Result<End> {
    let Some(version) = find_version(requests)? else {
        return Ok(End::Unavailable(
            "it does not serve the API storagemigration.k8s.io".to_owned(),
        ));
    };
    let migration = Migration::new(requests, definition, version);
    if !migration.exists()? {
        report(&settling(definition));
        requests.wait(SETTLE)?;
        if let Err(refusal) = migration.create()? {
            return Ok(End::Unavailable(refusal.message));
        }
    }
    let end = match (migration.wait(report), requests.interrupt.is_asked()) {
        (Err(error), true) => {
            bail!(error.context("the cluster goes on; run the command again to see the result"))
        }
        (end, _) => end?,
    };
    migration.delete()?;
    Ok(end)
}

fn find_version(requests: &Requests<'_>) -> Result<Option<&'static str>> {
    let answer = requests.send("GET", GROUP, JSON, Body::None)?;
    let Ok(group) = answer.read::<Value>() else {
        return Ok(None);
    };
    let served: Vec<&Value> = group["versions"].as_array().into_iter().flatten().collect();
    let is_served = |version: &&str| served.iter().any(|served| served["version"] == **version);
    Ok(VERSIONS.into_iter().find(|version| is_served(version)))
}

struct Migration<'a> {
    requests: &'a Requests<'a>,
    collection: String,
    name: String,
    object: Value,
}

impl<'a> Migration<'a> {
    fn new(requests: &'a Requests<'a>, definition: &Definition, version: &str) -> Migration<'a> {
        // A stable name as long as the CRD doesn't change, so that a later run finds it.
        let name = format!("rbuilder-{}-{}", definition.uid, definition.generation);
        let mut resource = json!({ "group": definition.group, "resource": definition.plural });
        // Later versions of the API don't have this field.
        if version == "v1alpha1" {
            resource["version"] = json!(definition.storage);
        }
        let object = json!({
            "apiVersion": format!("storagemigration.k8s.io/{version}"),
            "kind": "StorageVersionMigration",
            "metadata": { "name": name, "labels": { "app.kubernetes.io/managed-by": "rbuilder" } },
            "spec": { "resource": resource },
        });
        Migration {
            requests,
            collection: format!("{GROUP}/{version}/storageversionmigrations"),
            name,
            object,
        }
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection, self.name)
    }

    fn read(&self) -> Result<Option<Value>> {
        let answer = self.requests.send("GET", &self.path(), JSON, Body::None)?;
        match answer.read() {
            Ok(state) => Ok(Some(state)),
            Err(Refusal {
                status: 404 | 403, ..
            }) => Ok(None),
            Err(refusal) => bail!("cannot read the migration: {}", refusal.message),
        }
    }

    /// Whether an earlier run created it. A failed migration is deleted and started over.
    fn exists(&self) -> Result<bool> {
        let Some(state) = self.read()? else {
            return Ok(false);
        };
        let has_failed = condition(&state, "Failed").is_some();
        if has_failed {
            self.delete()?;
        }
        Ok(!has_failed)
    }

    fn create(&self) -> Result<std::result::Result<(), Refusal>> {
        let object = self.object.to_string();
        let answer = self
            .requests
            .send("POST", &self.collection, JSON, Body::Json(&object))?;
        Ok(answer.check())
    }

    fn delete(&self) -> Result<()> {
        self.requests.send("DELETE", &self.path(), JSON, Body::None)?;
        Ok(())
    }

    fn wait(&self, report: &mut dyn FnMut(&str)) -> Result<End> {
        let mut watch = Watch::new(Instant::now());
        loop {
            let Some(state) = self.read()? else {
                return Ok(End::Failed(
                    "somebody deleted the StorageVersionMigration".to_owned(),
                ));
            };
            if let Some(end) = watch.judge(&state, Instant::now()) {
                return Ok(end);
            }
            let running = condition(&state, "Running");
            report(running.as_deref().unwrap_or("waiting for the cluster to begin"));
            self.requests.wait(POLL_INTERVAL)?;
        }
    }
}

struct Watch {
    start: Instant,
    /// When all objects had been written.
    succeeded: Option<Instant>,
    /// When retries of a failed request started.
    troubled: Option<Instant>,
}

impl Watch {
    fn new(start: Instant) -> Watch {
        Watch {
            start,
            succeeded: None,
            troubled: None,
        }
    }

    fn judge(&mut self, state: &Value, now: Instant) -> Option<End> {
        if let Some(message) = condition(state, "Failed") {
            return Some(End::Failed(message));
        }
        let running = condition(state, "Running");
        if condition(state, "Succeeded").is_some() {
            let since = *self.succeeded.get_or_insert(now);
            // The controller removes the condition after updating the stored versions.
            return (running.is_none() || now - since >= TRIM).then_some(End::Migrated);
        }
        let has_begun = running.is_some() || state["status"]["resourceVersion"].is_string();
        if !has_begun && now - self.start >= BEGIN {
            return Some(End::Unavailable(
                "none of its controllers works on the migration".to_owned(),
            ));
        }
        let Some(trouble) = running.filter(|message| message.contains(TROUBLE)) else {
            self.troubled = None;
            return None;
        };
        let since = *self.troubled.get_or_insert(now);
        (now - since >= LONGEST_TROUBLE).then_some(End::Failed(trouble))
    }
}

fn condition(state: &Value, name: &str) -> Option<String> {
    let mut conditions = state["status"]["conditions"].as_array()?.iter();
    let found = conditions.find(|condition| condition["type"] == name && condition["status"] == "True")?;
    Some(found["message"].as_str().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An object with the given conditions, all of them true.
    fn state(conditions: &[(&str, &str)]) -> Value {
        let conditions = conditions
            .iter()
            .map(|(name, message)| json!({ "type": name, "status": "True", "message": message }));
        json!({ "status": { "conditions": conditions.collect::<Vec<_>>() } })
    }

    /// Observes statuses at the given times in seconds. Only the last one may end the migration.
    #[track_caller]
    fn check(states: &[(u64, Value)], expected: Option<End>) {
        let start = Instant::now();
        let mut watch = Watch::new(start);
        let ends: Vec<Option<End>> = states
            .iter()
            .map(|(seconds, state)| watch.judge(state, start + Duration::from_secs(*seconds)))
            .collect();
        let (last, earlier) = ends.split_last().expect("a state");
        assert!(earlier.iter().all(Option::is_none), "{states:?}");
        assert_eq!(*last, expected, "{states:?}");
    }

    #[test]
    fn migration_without_a_controller_is_unavailable() {
        let untouched = json!({ "spec": {} });
        check(&[(9, untouched.clone())], None);
        let reason = "none of its controllers works on the migration".to_owned();
        check(&[(10, untouched)], Some(End::Unavailable(reason)));
        check(&[(600, state(&[("Running", "")]))], None);
        // In v1alpha1, the controller stores the resource version before it starts.
        check(&[(600, json!({ "status": { "resourceVersion": "7" } }))], None);
    }

    #[test]
    fn controller_has_time_to_trim_the_stored_versions() {
        let (running, succeeded) = (("Running", ""), ("Succeeded", ""));
        check(&[(5, state(&[succeeded]))], Some(End::Migrated));
        check(
            &[
                (5, state(&[running, succeeded])),
                (14, state(&[running, succeeded])),
            ],
            None,
        );
        check(
            &[
                (5, state(&[running, succeeded])),
                (15, state(&[running, succeeded])),
            ],
            Some(End::Migrated),
        );
    }

    #[test]
    fn failure_and_lasting_trouble_end_the_migration() {
        check(
            &[(1, state(&[("Failed", "refused")]))],
            Some(End::Failed("refused".to_owned())),
        );
        let running = |message| state(&[("Running", message)]);
        let trouble = "The migration is running, 3/4 objects not yet migrated; transient error: no webhook";
        check(
            &[(1, running(trouble)), (61, running(trouble))],
            Some(End::Failed(trouble.to_owned())),
        );
        check(
            &[
                (1, running(trouble)),
                (30, running("The migration is running")),
                (61, running(trouble)),
            ],
            None,
        );
    }
}

//! Controllers for StatefulSets, DaemonSets, ReplicaSets, Jobs and Pods, and for Deployments without
//! ReplicaSets.
//!
//! The status of a workload always reports the expected number of replicas, even when no Pods are
//! created for it (see [`of_cluster`](super::of_cluster)).

use rbuilder_testing::fake::StoredObject;
use serde_json::{Value, json};

use super::{Act, Behavior, World, is_going, status_act};
use crate::history::Pace;

/// An arbitrary timestamp for conditions. Timestamps are ignored when states are compared.
const SOME_TIME: &str = "2030-01-01T00:00:00Z";

/// StatefulSets, DaemonSets and ReplicaSets.
pub(super) struct Workloads;

impl Behavior for Workloads {
    fn next(&self, world: &World, pace: Pace) -> Vec<Act> {
        next_statuses(world, &["statefulsets", "daemonsets", "replicasets"], pace)
    }
}

/// Deployments without ReplicaSets. A rollout only changes their status.
pub(super) struct Deployments;

impl Behavior for Deployments {
    fn next(&self, world: &World, pace: Pace) -> Vec<Act> {
        next_statuses(world, &["deployments"], pace)
    }
}

fn next_statuses(world: &World, kinds: &[&str], pace: Pace) -> Vec<Act> {
    let all = kinds.iter().flat_map(|kind| world.of("apps", kind));
    all.filter(|stored| !is_going(stored))
        .filter_map(|stored| status_act(stored, status(stored, pace)))
        .collect()
}

/// Returns the next status of a workload. In a slow environment, replicas become ready one at a
/// time.
fn status(stored: &StoredObject, pace: Pace) -> Value {
    let object = stored.value();
    let generation = object["metadata"]["generation"].clone();
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let is_observed = object["status"]["observedGeneration"] == generation;
    let ready = match pace {
        Pace::Prompt => wanted,
        // A new template makes all replicas unready. ReplicaSets keep their template.
        Pace::Slow if !is_observed && stored.resource != "replicasets" => 0,
        Pace::Slow => {
            let before = object["status"]["readyReplicas"].as_i64().unwrap_or(0);
            (before + 1).min(wanted)
        }
        Pace::Failing => 0,
    };
    if stored.resource == "daemonsets" {
        let ready = i64::from(ready > 0);
        return json!({
            "observedGeneration": generation, "desiredNumberScheduled": 1, "currentNumberScheduled": 1,
            "updatedNumberScheduled": 1, "numberReady": ready, "numberAvailable": ready, "numberMisscheduled": 0,
        });
    }
    let mut status = json!({
        "observedGeneration": generation, "replicas": wanted, "updatedReplicas": wanted,
        "readyReplicas": ready, "availableReplicas": ready,
    });
    match stored.resource.as_str() {
        "deployments" => {
            let progress = match pace {
                Pace::Failing if wanted > 0 => Err("ProgressDeadlineExceeded"),
                _ => Ok("NewReplicaSetAvailable"),
            };
            status["conditions"] = deployment_conditions(ready >= wanted, progress);
        }
        "statefulsets" => status["currentReplicas"] = wanted.into(),
        "replicasets" => {
            status
                .as_object_mut()
                .map(|status| status.remove("updatedReplicas"));
        }
        _ => {}
    }
    status
}

/// Returns the conditions of a Deployment. `progress` is the reason of `Progressing`: `Ok` if it is
/// true, and `Err` if it is false.
pub(super) fn deployment_conditions(is_available: bool, progress: Result<&str, &str>) -> Value {
    let availability = match is_available {
        true => Ok("MinimumReplicasAvailable"),
        false => Err("MinimumReplicasUnavailable"),
    };
    let condition = |kind: &str, state: Result<&str, &str>| {
        let status = if state.is_ok() { "True" } else { "False" };
        let (Ok(reason) | Err(reason)) = state;
        json!({
            "type": kind, "status": status, "reason": reason, "message": "",
            "lastUpdateTime": SOME_TIME, "lastTransitionTime": SOME_TIME,
        })
    };
    json!([
        condition("Available", availability),
        condition("Progressing", progress)
    ])
}

pub(super) struct Jobs;

impl Behavior for Jobs {
    /// Completes Jobs, or fails them if the environment is failing.
    fn next(&self, world: &World, pace: Pace) -> Vec<Act> {
        let jobs = world.of("batch", "jobs").filter(|stored| !is_going(stored));
        jobs.filter(|stored| stored.value()["spec"]["suspend"] != true)
            .filter_map(|stored| {
                let completions = stored.value()["spec"]["completions"].as_i64().unwrap_or(1);
                let (kind, counts) = match pace {
                    Pace::Failing => ("Failed", json!({ "failed": 1 })),
                    _ => ("Complete", json!({ "succeeded": completions, "completionTime": SOME_TIME })),
                };
                let mut status = counts;
                status["startTime"] = SOME_TIME.into();
                status["conditions"] = json!([{
                    "type": kind, "status": "True", "lastProbeTime": SOME_TIME, "lastTransitionTime": SOME_TIME,
                    "reason": if kind == "Failed" { "BackoffLimitExceeded" } else { "CompletionsReached" },
                    "message": "",
                }]);
                status_act(stored, status)
            })
            .collect()
    }
}

pub(super) struct Pods;

impl Behavior for Pods {
    /// Starts Pods, or lets them crash if the environment is failing.
    fn next(&self, world: &World, pace: Pace) -> Vec<Act> {
        let pods = world.of("", "pods").filter(|stored| !is_going(stored));
        pods.filter_map(|stored| {
            let is_ready = pace != Pace::Failing;
            let condition = |kind: &str| {
                let status = if is_ready { "True" } else { "False" };
                json!({ "type": kind, "status": status, "lastTransitionTime": SOME_TIME })
            };
            let status = json!({
                "phase": "Running", "podIP": "10.0.0.1", "startTime": SOME_TIME,
                "conditions": [condition("Ready"), condition("ContainersReady")],
            });
            status_act(stored, status)
        })
        .collect()
    }
}

//! Controllers for StatefulSets, DaemonSets, ReplicaSets, Jobs and Pods, and for Deployments
//! without ReplicaSets.
//!
//! Statuses always report the desired number of replicas, even if no Pods are created (see
//! [`of_cluster`](super::of_cluster)).

use rbuilder_testing::fake::StoredObject;
use serde_json::{Value, json};

use super::pods::owned;
use super::{Act, Behavior, World, is_going, status_act};
use crate::history::Pace;
use crate::world::{JOB_NAME, is_evicted};

/// Arbitrary, since timestamps are ignored in comparisons.
const SOME_TIME: &str = "2030-01-01T00:00:00Z";

/// StatefulSets, DaemonSets and ReplicaSets.
pub(super) struct Workloads;

impl Behavior for Workloads {
    fn next(&self, world: &World, pace: Pace) -> Vec<Act> {
        next_statuses(world, &["statefulsets", "daemonsets", "replicasets"], pace)
    }
}

/// Deployments without ReplicaSets; rollouts only affect their status.
pub(super) struct Deployments;

impl Behavior for Deployments {
    fn next(&self, world: &World, pace: Pace) -> Vec<Act> {
        next_statuses(world, &["deployments"], pace)
    }
}

/// Scales the targets of HorizontalPodAutoscalers to one replica above the minimum.
pub(super) struct Autoscalers;

impl Behavior for Autoscalers {
    fn next(&self, world: &World, pace: Pace) -> Vec<Act> {
        if pace == Pace::Failing {
            return Vec::new();
        }
        let scalers = world.of("autoscaling", "horizontalpodautoscalers");
        scalers
            .filter(|scaler| !is_going(scaler))
            .filter_map(|scaler| {
                let spec = &scaler.value()["spec"];
                let target = target_of(world, scaler)?;
                let least = spec["minReplicas"].as_i64().unwrap_or(1);
                let wanted = (least + 1).min(spec["maxReplicas"].as_i64()?);
                let replicas = target.value()["spec"]["replicas"].as_i64().unwrap_or(1);
                // A workload with zero replicas is not scaled.
                let is_scaled = replicas != 0 && replicas != wanted;
                is_scaled.then(|| Act::merge(target, json!({ "spec": { "replicas": wanted } })))
            })
            .collect()
    }
}

fn target_of<'w>(world: &'w World, scaler: &StoredObject) -> Option<&'w StoredObject> {
    let target = &scaler.value()["spec"]["scaleTargetRef"];
    let plural = match target["kind"].as_str()? {
        "Deployment" => "deployments",
        "StatefulSet" => "statefulsets",
        _ => return None,
    };
    let namespace = scaler.metadata("namespace");
    let mut workloads = world.of("apps", plural);
    workloads.find(|stored| {
        stored.metadata("namespace") == namespace
            && target["name"] == stored.metadata("name")
            && !is_going(stored)
    })
}

fn next_statuses(world: &World, kinds: &[&str], pace: Pace) -> Vec<Act> {
    let all = kinds.iter().flat_map(|kind| world.of("apps", kind));
    all.filter(|stored| !is_going(stored))
        .filter_map(|stored| status_act(stored, status(world, stored, pace)))
        .collect()
}

/// Counts that are always present in the status, by resource. Kubernetes marks all others as
/// `omitempty`, so they're absent when zero.
const REQUIRED_COUNTS: &[(&str, &[&str])] = &[
    ("statefulsets", &["replicas", "availableReplicas"]),
    ("replicasets", &["replicas"]),
    (
        "daemonsets",
        &[
            "currentNumberScheduled",
            "desiredNumberScheduled",
            "numberMisscheduled",
            "numberReady",
        ],
    ),
];

/// Replaces zero-valued optional counts with `null`, so that a merge patch removes them.
pub(super) fn without_zeros(mut status: Value, resource: &str) -> Value {
    let required = REQUIRED_COUNTS.iter().find(|(known, _)| *known == resource);
    for (name, value) in status.as_object_mut().into_iter().flatten() {
        let is_required = required.is_some_and(|(_, names)| names.contains(&name.as_str()));
        if *value == 0 && !is_required {
            *value = Value::Null;
        }
    }
    status
}

fn status(world: &World, stored: &StoredObject, pace: Pace) -> Value {
    let object = stored.value();
    let generation = object["metadata"]["generation"].clone();
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let is_observed = object["status"]["observedGeneration"] == generation;
    let count = if stored.resource == "daemonsets" {
        "numberReady"
    } else {
        "readyReplicas"
    };
    let before = object["status"][count].as_i64().unwrap_or(0);
    let ready = match pace {
        Pace::Prompt => wanted,
        // All replicas become unready when the template changes. ReplicaSets have a fixed template.
        Pace::Slow if !is_observed && stored.resource != "replicasets" => 0,
        // In a slow environment, replicas become ready one by one.
        Pace::Slow => (before + 1).min(wanted),
        Pace::Failing => 0,
    };
    let is_short = ready > before && world.lacks_room_for_pods(stored.metadata("namespace"));
    let (ready, created) = match is_short {
        true => (before, before),
        false => (ready, wanted),
    };
    if stored.resource == "daemonsets" {
        let ready = i64::from(ready > 0);
        let status = json!({
            "observedGeneration": generation, "desiredNumberScheduled": 1, "currentNumberScheduled": 1,
            "updatedNumberScheduled": 1, "numberReady": ready, "numberAvailable": ready, "numberMisscheduled": 0,
        });
        return without_zeros(status, &stored.resource);
    }
    let mut status = json!({
        "observedGeneration": generation, "replicas": created, "updatedReplicas": created,
        "readyReplicas": ready, "availableReplicas": ready,
    });
    match stored.resource.as_str() {
        "deployments" => {
            let progress = match pace {
                Pace::Failing if wanted > 0 => Progress::TimedOut,
                _ if is_short => Progress::Updating,
                _ => Progress::Complete,
            };
            let subject = format!("Deployment {:?}", stored.metadata("name"));
            status["conditions"] = deployment_conditions(ready >= wanted, progress, &subject);
        }
        "statefulsets" => status["currentReplicas"] = created.into(),
        "replicasets" => {
            status
                .as_object_mut()
                .map(|status| status.remove("updatedReplicas"));
        }
        _ => {}
    }
    without_zeros(status, &stored.resource)
}

#[derive(Clone, Copy)]
pub(super) enum Progress {
    Complete,
    Updating,
    TimedOut,
}

/// Conditions of a Deployment, with the real controller's reasons and messages. `subject` names
/// the object that makes progress, e.g. `ReplicaSet "web-7d4"`.
pub(super) fn deployment_conditions(is_available: bool, progress: Progress, subject: &str) -> Value {
    let condition = |kind: &str, is_true: bool, reason: &str, message: &str| {
        json!({
            "type": kind, "status": if is_true { "True" } else { "False" },
            "reason": reason, "message": message,
            "lastUpdateTime": SOME_TIME, "lastTransitionTime": SOME_TIME,
        })
    };
    let (reason, message) = match is_available {
        true => ("MinimumReplicasAvailable", "Deployment has minimum availability."),
        false => (
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        ),
    };
    let available = condition("Available", is_available, reason, message);
    let (is_progressing, reason, what) = match progress {
        Progress::Complete => (true, "NewReplicaSetAvailable", "has successfully progressed."),
        Progress::Updating => (true, "ReplicaSetUpdated", "is progressing."),
        Progress::TimedOut => (false, "ProgressDeadlineExceeded", "has timed out progressing."),
    };
    let message = format!("{subject} {what}");
    json!([
        available,
        condition("Progressing", is_progressing, reason, &message)
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
                let created = stored.metadata("creationTimestamp");
                let (kind, reason, message, counts) = match pace {
                    Pace::Failing => (
                        "Failed",
                        "BackoffLimitExceeded",
                        "Job has reached the specified backoff limit",
                        json!({ "failed": 1 }),
                    ),
                    _ => (
                        "Complete",
                        "CompletionsReached",
                        "Reached expected number of succeeded pods",
                        json!({ "succeeded": completions, "completionTime": created }),
                    ),
                };
                let mut status = without_zeros(counts, &stored.resource);
                // Operators compute with these times, so they must not be in the future.
                status["startTime"] = created.into();
                status["conditions"] = json!([{
                    "type": kind, "status": "True", "lastProbeTime": created, "lastTransitionTime": created,
                    "reason": reason, "message": message,
                }]);
                let act = status_act(stored, status)?;
                let waits = world.lacks_room_for_pods(stored.metadata("namespace"))
                    && owned(world, "", "pods", stored).next().is_none();
                (!waits).then_some(act)
            })
            .collect()
    }
}

pub(super) struct Pods;

impl Behavior for Pods {
    /// Starts Pods, or makes them crash if the environment is failing. Pods of Jobs end.
    fn next(&self, world: &World, pace: Pace) -> Vec<Act> {
        let pods = world.of("", "pods");
        let pods = pods.filter(|stored| !is_going(stored) && !is_evicted(stored.value()));
        pods.filter_map(|stored| {
            let is_of_job = !stored.value()["metadata"]["labels"][JOB_NAME].is_null();
            let phase = match (is_of_job, pace) {
                (false, _) => "Running",
                (true, Pace::Failing) => "Failed",
                (true, _) => "Succeeded",
            };
            let is_ready = pace != Pace::Failing && !is_of_job;
            let condition = |kind: &str| {
                let status = if is_ready { "True" } else { "False" };
                // The server adds an absent time, and the act would be repeated forever.
                json!({ "type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": SOME_TIME })
            };
            let status = json!({
                "phase": phase, "podIP": "10.0.0.1", "startTime": SOME_TIME,
                "conditions": [condition("Ready"), condition("ContainersReady")],
            });
            status_act(stored, status)
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::cluster::{Cluster, block_on, workload};
    use super::*;

    #[test]
    fn zero_counts_are_omitted_unless_required() {
        for (kind, plural, counts) in [
            ("Deployment", "deployments", json!({ "unavailableReplicas": 2 })),
            (
                "StatefulSet",
                "statefulsets",
                json!({ "availableReplicas": 0, "readyReplicas": null }),
            ),
            (
                "ReplicaSet",
                "replicasets",
                json!({ "replicas": 2, "availableReplicas": null }),
            ),
            (
                "DaemonSet",
                "daemonsets",
                json!({ "numberReady": 0, "numberAvailable": null }),
            ),
        ] {
            block_on(async {
                let cluster = Cluster::with(plural, &workload(kind), Pace::Failing).await;
                let status = cluster.objects(plural)[0].value()["status"].clone();
                for (name, expected) in counts.as_object().expect("counts") {
                    assert_eq!(
                        status.get(name).unwrap_or(&Value::Null),
                        expected,
                        "{kind} {status}"
                    );
                }
                let is_null = status.as_object().expect("a status").values().any(Value::is_null);
                assert!(!is_null, "{kind} {status}");
            });
        }
    }

    #[test]
    fn conditions_have_the_messages_of_the_controller() {
        block_on(async {
            let cluster = Cluster::with("deployments", &workload("Deployment"), Pace::Prompt).await;
            let status = cluster.objects("deployments")[0].value()["status"].clone();
            let set = cluster.objects("replicasets")[0].metadata("name").to_owned();
            assert_eq!(
                status["conditions"][0]["message"],
                "Deployment has minimum availability."
            );
            assert_eq!(
                status["conditions"][1]["message"],
                format!("ReplicaSet \"{set}\" has successfully progressed.")
            );
        });
    }
}

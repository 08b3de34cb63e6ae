//! Controllers for StatefulSets, DaemonSets, ReplicaSets, Jobs and Pods, and for Deployments
//! without ReplicaSets.
//!
//! Statuses report the desired number of replicas if no Pods are created (see
//! [`of_cluster`](super::of_cluster)), and those of ReplicaSets always do.

use rbuilder_testing::fake::StoredObject;
use serde_json::{Value, json};

use super::pods::{MOST_PODS, REVISION_HASH, is_ready, owned, revision_of};
use super::{Act, Behavior, World, is_going, status_act};
use crate::history::Pace;
use crate::world::{JOB_NAME, owner_uids};

const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// Arbitrary, since timestamps are ignored in comparisons.
const SOME_TIME: &str = "2030-01-01T00:00:00Z";

/// StatefulSets, DaemonSets and ReplicaSets.
pub(super) struct Workloads {
    /// Whether StatefulSets and DaemonSets have Pods.
    pub(super) has_pods: bool,
}

impl Behavior for Workloads {
    fn next(&self, world: &World, pace: Pace) -> Vec<Act> {
        let kinds = ["statefulsets", "daemonsets", "replicasets"];
        next_statuses(world, &kinds, pace, self.has_pods)
    }
}

/// Deployments without ReplicaSets; rollouts only affect their status.
pub(super) struct Deployments;

impl Behavior for Deployments {
    fn next(&self, world: &World, pace: Pace) -> Vec<Act> {
        next_statuses(world, &["deployments"], pace, false)
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

fn next_statuses(world: &World, kinds: &[&str], pace: Pace, has_pods: bool) -> Vec<Act> {
    let all = kinds.iter().flat_map(|kind| world.of("apps", kind));
    all.filter(|stored| !is_going(stored))
        .filter_map(|stored| {
            let replicas = wanted(stored);
            let counts = match has_pods && stored.resource != "replicasets" && replicas <= MOST_PODS {
                true => Counts::of_pods(world, stored),
                false => Counts::without_pods(world, stored, pace),
            };
            status_act(stored, status(stored, &counts, pace))
        })
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

fn wanted(workload: &StoredObject) -> i64 {
    match workload.resource.as_str() {
        "daemonsets" => 1,
        _ => workload.value()["spec"]["replicas"].as_i64().unwrap_or(1),
    }
}

/// Paused Deployments are scaled, but not rolled out.
pub(super) fn is_paused(workload: &StoredObject) -> bool {
    workload.value()["spec"]["paused"] == true
}

/// Numbers of Pods in the status of a workload.
struct Counts {
    created: i64,
    updated: i64,
    ready: i64,
    available: i64,
    /// Whether Pods are missing because a quota is full.
    is_short: bool,
}

impl Counts {
    fn of_pods(world: &World, workload: &StoredObject) -> Self {
        let revision = revision_of(workload);
        let is_updated = |pod: &&StoredObject| pod.value()["metadata"]["labels"][REVISION_HASH] == *revision;
        let pods: Vec<&StoredObject> = owned(world, "", "pods", workload).collect();
        let count = |pods: usize| i64::try_from(pods).unwrap_or(MOST_PODS);
        let ready = count(pods.iter().filter(|pod| is_ready(pod)).count());
        Self {
            created: count(pods.len()),
            updated: count(pods.iter().copied().filter(is_updated).count()),
            ready,
            available: available(workload, ready),
            is_short: false,
        }
    }

    /// Counts all replicas as created, even if there are no Pods.
    fn without_pods(world: &World, workload: &StoredObject, pace: Pace) -> Self {
        let object = workload.value();
        let before = ready_before(workload);
        let created_before = object["status"]["replicas"].as_i64().unwrap_or(0);
        let wanted = match is_paused(workload) && created_before == 0 {
            true => 0,
            false => wanted(workload),
        };
        let is_observed = object["status"]["observedGeneration"] == object["metadata"]["generation"];
        let ready = match pace {
            Pace::Prompt => wanted,
            // All replicas become unready when the template changes. ReplicaSets have a fixed template,
            // and a paused Deployment keeps the one that it has.
            Pace::Slow if !is_observed && workload.resource != "replicasets" && !is_paused(workload) => 0,
            // In a slow environment, replicas become ready one by one.
            Pace::Slow => (before + 1).min(wanted),
            Pace::Failing => 0,
        };
        let is_short = ready > before && world.lacks_room_for_pods(workload.metadata("namespace"));
        let (ready, created) = match is_short {
            true => (before, before),
            false => (ready, wanted),
        };
        let updated = match is_paused(workload) {
            true => created.min(object["status"]["updatedReplicas"].as_i64().unwrap_or(0)),
            false => created,
        };
        Self {
            created,
            updated,
            ready,
            available: available(workload, ready),
            is_short,
        }
    }
}

fn ready_before(workload: &StoredObject) -> i64 {
    let count = match workload.resource.as_str() {
        "daemonsets" => "numberReady",
        _ => "readyReplicas",
    };
    workload.value()["status"][count].as_i64().unwrap_or(0)
}

/// With `minReadySeconds`, replicas become available later than they become ready.
fn available(workload: &StoredObject, ready: i64) -> i64 {
    match workload.value()["spec"]["minReadySeconds"].as_i64() {
        None | Some(0) => ready,
        Some(_) => ready_before(workload).min(ready),
    }
}

fn status(stored: &StoredObject, counts: &Counts, pace: Pace) -> Value {
    let generation = stored.value()["metadata"]["generation"].clone();
    let wanted = wanted(stored);
    let Counts {
        created,
        updated,
        ready,
        available,
        is_short,
    } = *counts;
    if stored.resource == "daemonsets" {
        let [current, updated, ready, available] =
            [created, updated, ready, available].map(|count| i64::from(count > 0));
        let status = json!({
            "observedGeneration": generation, "desiredNumberScheduled": 1, "currentNumberScheduled": current,
            "updatedNumberScheduled": updated, "numberReady": ready, "numberAvailable": available,
            "numberUnavailable": 1 - available, "numberMisscheduled": 0,
        });
        return without_zeros(status, &stored.resource);
    }
    let mut status = json!({
        "observedGeneration": generation, "replicas": created, "updatedReplicas": updated,
        "readyReplicas": ready, "availableReplicas": available,
    });
    match stored.resource.as_str() {
        "deployments" => {
            let progress = match pace {
                _ if is_paused(stored) => Progress::Paused,
                Pace::Failing if wanted > 0 => Progress::TimedOut,
                _ if is_short => Progress::Updating,
                _ => Progress::Complete,
            };
            let subject = format!("Deployment {:?}", stored.metadata("name"));
            status["conditions"] = deployment_conditions(available >= wanted, progress, &subject);
        }
        "statefulsets" => {
            status["currentReplicas"] = created.into();
            status["updateRevision"] = revision_of(stored).into();
        }
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
    Paused,
}

/// Conditions of a Deployment, with the real controller's reasons and messages. `subject` names
/// the object that makes progress, e.g. `ReplicaSet "web-7d4"`.
pub(super) fn deployment_conditions(is_available: bool, progress: Progress, subject: &str) -> Value {
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status,
            "reason": reason, "message": message,
            "lastUpdateTime": SOME_TIME, "lastTransitionTime": SOME_TIME,
        })
    };
    let (status, reason, message) = match is_available {
        true => (
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        ),
        false => (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        ),
    };
    let available = condition("Available", status, reason, message);
    let (status, reason, message) = match progress {
        Progress::Complete => (
            "True",
            "NewReplicaSetAvailable",
            format!("{subject} has successfully progressed."),
        ),
        Progress::Updating => ("True", "ReplicaSetUpdated", format!("{subject} is progressing.")),
        Progress::TimedOut => (
            "False",
            "ProgressDeadlineExceeded",
            format!("{subject} has timed out progressing."),
        ),
        Progress::Paused => ("Unknown", "DeploymentPaused", "Deployment is paused".to_owned()),
    };
    json!([available, condition("Progressing", status, reason, &message)])
}

pub(super) struct Jobs;

/// Value of `managedBy` that means the same as none.
const JOB_CONTROLLER: &str = "kubernetes.io/job-controller";

/// Jobs that haven't ended yet, except those that another controller manages.
pub(super) fn unfinished_jobs(world: &World) -> impl Iterator<Item = &StoredObject> {
    let is_managed = |job: &&StoredObject| {
        let manager = job.value()["spec"]["managedBy"].as_str();
        manager.is_none_or(|manager| manager == JOB_CONTROLLER)
    };
    let jobs = world.of("batch", "jobs").filter(is_managed);
    jobs.filter(|job| !is_going(job) && !is_finished(job))
}

fn is_finished(job: &StoredObject) -> bool {
    let conditions = job.value()["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Complete" || condition["type"] == "Failed")
}

pub(super) fn is_suspended(job: &StoredObject) -> bool {
    job.value()["spec"]["suspend"] == true
}

fn job_condition(kind: &str, status: &str, at: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": kind, "status": status, "lastProbeTime": at, "lastTransitionTime": at,
        "reason": reason, "message": message,
    })
}

impl Behavior for Jobs {
    /// Completes Jobs, or fails them if the environment is failing. Suspended Jobs wait.
    fn next(&self, world: &World, pace: Pace) -> Vec<Act> {
        unfinished_jobs(world)
            .filter_map(|job| match is_suspended(job) {
                true => status_act(job, json!({ "conditions": [suspended(job, true)] })),
                false => {
                    let act = status_act(job, ended(job, pace))?;
                    let waits = world.lacks_room_for_pods(job.metadata("namespace"))
                        && owned(world, "", "pods", job).next().is_none();
                    (!waits).then_some(act)
                }
            })
            .collect()
    }
}

fn suspended(job: &StoredObject, is_suspended: bool) -> Value {
    let (status, reason, message) = match is_suspended {
        true => ("True", "JobSuspended", "Job suspended"),
        false => ("False", "JobResumed", "Job resumed"),
    };
    job_condition(
        "Suspended",
        status,
        job.metadata("creationTimestamp"),
        reason,
        message,
    )
}

/// The status of a Job at its end.
fn ended(job: &StoredObject, pace: Pace) -> Value {
    let completions = job.value()["spec"]["completions"].as_i64().unwrap_or(1);
    let created = job.metadata("creationTimestamp");
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
    let mut status = without_zeros(counts, &job.resource);
    // Operators compute with these times, so they must not be in the future.
    status["startTime"] = created.into();
    let was_suspended = !job.value()["status"]["conditions"][0].is_null();
    let resumed = was_suspended.then(|| suspended(job, false));
    let end = job_condition(kind, "True", created, reason, message);
    status["conditions"] = resumed.into_iter().chain([end]).collect();
    status
}

pub(super) struct Pods;

impl Behavior for Pods {
    /// Starts Pods, or makes them crash if the environment is failing. Pods of Jobs end.
    fn next(&self, world: &World, pace: Pace) -> Vec<Act> {
        let pods = world.of("", "pods");
        let pods = pods.filter(|pod| !is_going(pod) && !has_ended(pod) && !waits_for_scheduler(pod));
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

fn has_ended(pod: &StoredObject) -> bool {
    let phase = &pod.value()["status"]["phase"];
    *phase == "Succeeded" || *phase == "Failed"
}

/// Whether a Pod names a scheduler that is no part of the cluster, which hasn't chosen a node yet.
/// Pods of workloads are started, since most operators only pass the name on.
fn waits_for_scheduler(pod: &StoredObject) -> bool {
    let spec = &pod.value()["spec"];
    let scheduler = spec["schedulerName"].as_str();
    let is_other = scheduler.is_some_and(|name| name != DEFAULT_SCHEDULER);
    is_other && spec["nodeName"].is_null() && owner_uids(pod.value()).next().is_none()
}

#[cfg(test)]
mod tests {
    use super::super::cluster::{Cluster, block_on, workload};
    use super::*;

    fn job(spec: &Value) -> Value {
        let pod = json!({ "restartPolicy": "Never", "containers": [{ "name": "main", "image": "web:1" }] });
        let mut job = json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "web", "namespace": "default" },
            "spec": { "template": { "spec": pod } },
        });
        for (field, value) in spec.as_object().into_iter().flatten() {
            job["spec"][field] = value.clone();
        }
        job
    }

    /// Conditions and number of Pods of a Job.
    fn state_of_job(cluster: &Cluster) -> (Vec<String>, usize) {
        let status = cluster.objects("jobs")[0].value()["status"].clone();
        let conditions = status["conditions"].as_array().into_iter().flatten();
        let conditions = conditions.map(|found| {
            let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
            text("type") + "=" + &text("status")
        });
        (conditions.collect(), cluster.objects("pods").len())
    }

    #[test]
    fn suspended_jobs_wait() {
        block_on(async {
            let mut cluster = Cluster::empty("jobs", Pace::Slow);
            cluster.create(&job(&json!({}))).await;
            for (is_suspended, conditions, pods) in [
                (true, &["Suspended=True"][..], 0),
                (false, &["Suspended=False", "Complete=True"], 1),
                (true, &["Suspended=False", "Complete=True"], 1),
            ] {
                cluster
                    .patch(&json!({ "spec": { "suspend": is_suspended } }))
                    .await;
                cluster.settle(|_| ()).await;
                let expected = conditions.iter().map(|text| (*text).to_owned()).collect();
                assert_eq!(state_of_job(&cluster), (expected, pods));
            }
        });
    }

    #[test]
    fn suspension_removes_running_pods() {
        block_on(async {
            let mut cluster = Cluster::empty("jobs", Pace::Slow);
            cluster.create(&job(&json!({}))).await;
            let mut pod = job(&json!({}))["spec"]["template"].clone();
            pod["apiVersion"] = "v1".into();
            pod["kind"] = "Pod".into();
            let owner = super::super::pods::controller(&cluster.objects("jobs")[0]);
            pod["metadata"] = json!({
                "name": "web-1", "namespace": "default", "ownerReferences": [owner], "labels": { JOB_NAME: "web" },
            });
            cluster.add("pods", &pod).await;
            cluster.patch(&json!({ "spec": { "suspend": true } })).await;
            cluster.settle(|_| ()).await;
            assert_eq!(state_of_job(&cluster).1, 0);
        });
    }

    #[test]
    fn jobs_of_other_controllers_are_left_alone() {
        for (manager, count) in [(JOB_CONTROLLER, 1), ("kueue.x-k8s.io/multikueue", 0)] {
            block_on(async {
                let mut cluster = Cluster::empty("jobs", Pace::Prompt);
                cluster.create(&job(&json!({ "managedBy": manager }))).await;
                cluster.settle(|_| ()).await;
                let (conditions, pods) = state_of_job(&cluster);
                assert_eq!((conditions.len(), pods), (count, count), "{manager}");
            });
        }
    }

    #[test]
    fn finished_jobs_do_not_fail_later() {
        block_on(async {
            let mut cluster = Cluster::empty("jobs", Pace::Prompt);
            cluster.create(&job(&json!({}))).await;
            cluster.settle(|_| ()).await;
            cluster.environment.fail();
            cluster.settle(|_| ()).await;
            assert_eq!(state_of_job(&cluster).0, ["Complete=True"]);
            assert_eq!(cluster.objects("pods")[0].value()["status"]["phase"], "Succeeded");
        });
    }

    #[test]
    fn pods_wait_for_their_scheduler() {
        for (scheduler, phase) in [(DEFAULT_SCHEDULER, "Running"), ("example-scheduler", "Pending")] {
            block_on(async {
                let mut cluster = Cluster::empty("pods", Pace::Prompt);
                let containers = json!([{ "name": "main", "image": "web:1" }]);
                let pod = json!({
                    "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "web", "namespace": "default" },
                    "spec": { "schedulerName": scheduler, "containers": containers },
                });
                cluster.create(&pod).await;
                cluster.settle(|_| ()).await;
                assert_eq!(cluster.objects("pods")[0].value()["status"]["phase"], phase);
            });
        }
    }

    #[test]
    fn replicas_become_available_after_they_are_ready() {
        for (plural, kind) in [("deployments", "Deployment"), ("statefulsets", "StatefulSet")] {
            block_on(async {
                let mut cluster = Cluster::empty(plural, Pace::Slow);
                let mut workload = workload(kind);
                workload["spec"]["minReadySeconds"] = 5.into();
                cluster.create(&workload).await;
                let mut states = Vec::new();
                cluster
                    .settle(|cluster| {
                        let status = cluster.objects(plural)[0].value()["status"].clone();
                        let count = |name: &str| status[name].as_i64().unwrap_or_default();
                        states.push((count("readyReplicas"), count("availableReplicas")));
                    })
                    .await;
                assert!(
                    states.iter().any(|(ready, available)| available < ready),
                    "{kind}: {states:?}"
                );
                assert_eq!(states.last(), Some(&(2, 2)), "{kind}");
            });
        }
    }

    #[test]
    fn paused_deployment_without_replica_sets_keeps_its_replicas() {
        for (before, after) in [(json!({}), (3, 2)), (json!({ "paused": true }), (0, 0))] {
            block_on(async {
                let mut deployment = workload("Deployment");
                deployment["spec"]["paused"] = before["paused"].clone();
                let mut cluster = Cluster::without_pods("deployments", Pace::Prompt);
                cluster.create(&deployment).await;
                cluster.settle(|_| ()).await;
                cluster
                    .patch(&json!({ "spec": { "paused": true, "replicas": 3 } }))
                    .await;
                cluster.settle(|_| ()).await;
                let status = cluster.objects("deployments")[0].value()["status"].clone();
                let count = |name: &str| status[name].as_i64().unwrap_or_default();
                assert_eq!((count("replicas"), count("updatedReplicas")), after);
                assert_eq!(status["conditions"][1]["reason"], "DeploymentPaused");
            });
        }
    }

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

//! Pods of workloads, simulated only for operators that read Pods or ReplicaSets, and Pods of Jobs.

use rbuilder_testing::fake::StoredObject;
use serde_json::{Value, json};

use super::workloads::{is_suspended, unfinished_jobs};
use super::{Act, Behavior, World, is_going};
use crate::history::Pace;
use crate::world::{is_evicted, owner_uids};

/// Pod limit, since some histories set `replicas` to the schema's maximum, possibly in the
/// millions.
pub(super) const MOST_PODS: i64 = 10;
/// Label that the StatefulSet and DaemonSet controllers set on their Pods.
pub(super) const REVISION_HASH: &str = "controller-revision-hash";

/// Maintains the desired number of Pods per workload and replaces Pods of outdated templates.
pub(super) struct Replicas;

impl Behavior for Replicas {
    fn next(&self, world: &World, _: Pace) -> Vec<Act> {
        let kinds = ["replicasets", "statefulsets", "daemonsets"];
        let all = kinds.iter().flat_map(|kind| world.of("apps", kind));
        all.filter(|workload| !is_going(workload))
            .flat_map(|workload| next_pods(world, workload))
            .collect()
    }
}

/// Creates the Pod of each Job. It stays if the Job is deleted without a propagation policy. Jobs
/// that are suspended have none.
pub(super) struct JobPods;

impl Behavior for JobPods {
    fn next(&self, world: &World, _: Pace) -> Vec<Act> {
        unfinished_jobs(world)
            .flat_map(|job| {
                let mut pods = owned(world, "", "pods", job).peekable();
                match is_suspended(job) {
                    true => pods.map(Act::delete).collect(),
                    false if pods.peek().is_none() => vec![Act::create("", "pods", pod(job, "", 0))],
                    false => Vec::new(),
                }
            })
            .collect()
    }
}

fn next_pods(world: &World, workload: &StoredObject) -> Vec<Act> {
    match workload.resource.as_str() {
        "statefulsets" => next_of_set(world, workload),
        _ => next_interchangeable(world, workload),
    }
}

/// Pods of a ReplicaSet or a DaemonSet.
fn next_interchangeable(world: &World, workload: &StoredObject) -> Vec<Act> {
    let revision = revision_of(workload);
    let wanted = match workload.resource.as_str() {
        "daemonsets" => 1,
        _ => replicas(workload),
    };
    let pods = owned(world, "", "pods", workload);
    let (evicted, pods): (Vec<_>, Vec<_>) = pods.partition(|pod| is_evicted(pod.value()));
    let is_wanted = |(index, pod): (usize, &&StoredObject)| {
        is_current(workload, pod, &revision) && i64::try_from(index).is_ok_and(|index| index < wanted)
    };
    let (kept, surplus): (Vec<_>, Vec<_>) = pods
        .iter()
        .enumerate()
        .partition(|(index, pod)| is_wanted((*index, pod)));
    let missing = i64::try_from(kept.len()).unwrap_or(wanted)..wanted;
    // ReplicaSets leave failed Pods for the garbage collector of Pods, which comes later.
    let is_collected = workload.resource != "replicasets" || missing.is_empty();
    let failed = evicted.iter().filter(|_| is_collected);
    let created = missing.map(|number| Act::create("", "pods", pod(workload, &revision, number)));
    let deleted = surplus.into_iter().map(|(_, pod)| pod).chain(failed);
    created.chain(deleted.map(|pod| Act::delete(pod))).collect()
}

/// Pods of a StatefulSet, which have ordinals. By default, one is created or removed when all others
/// are ready. Pods of an outdated template are replaced one at a time in any case, the last one
/// first.
fn next_of_set(world: &World, set: &StoredObject) -> Vec<Act> {
    let revision = revision_of(set);
    let wanted = replicas(set);
    let is_parallel = set.value()["spec"]["podManagementPolicy"] == "Parallel";
    let mut pods: Vec<(i64, &StoredObject)> = owned(world, "", "pods", set)
        .map(|pod| (ordinal(pod).unwrap_or(wanted), pod))
        .collect();
    pods.sort_by_key(|(number, _)| -number);
    let failed = pods.iter().filter(|(_, pod)| is_evicted(pod.value()));
    let mut acts: Vec<Act> = failed.map(|(_, pod)| Act::delete(pod)).collect();
    let is_known = |number: &i64| pods.iter().any(|(known, _)| known == number);
    let missing = (0..wanted).filter(|number| !is_known(number));
    let surplus = pods.iter().filter(|(number, _)| *number >= wanted);
    let outdated = pods
        .iter()
        .filter(|(number, pod)| *number < wanted && !is_current(set, pod, &revision));
    let is_settled = acts.is_empty() && pods.iter().all(|(_, pod)| is_ready(pod));
    // A missing Pod waits for those with smaller numbers only.
    let is_next = |number: &i64| {
        let mut before = pods.iter().filter(|(known, _)| known < number);
        is_parallel || before.all(|(_, pod)| is_ready(pod))
    };
    let most = if is_parallel { usize::MAX } else { 1 };
    let created = missing.take(most).filter(is_next);
    acts.extend(created.map(|number| Act::create("", "pods", pod(set, &revision, number))));
    if !acts.is_empty() {
        return acts;
    }
    let removed = surplus.take(most).filter(|_| is_parallel || is_settled);
    acts.extend(removed.map(|(_, pod)| Act::delete(pod)));
    if acts.is_empty() && is_settled {
        acts.extend(outdated.take(1).map(|(_, pod)| Act::delete(pod)));
    }
    acts
}

fn replicas(workload: &StoredObject) -> i64 {
    let replicas = workload.value()["spec"]["replicas"].as_i64().unwrap_or(1);
    replicas.clamp(0, MOST_PODS)
}

/// Whether the controller of a workload leaves a Pod with its template.
fn is_current(workload: &StoredObject, pod: &StoredObject, revision: &str) -> bool {
    // The template of a ReplicaSet never changes, so its Pods can't be outdated.
    if workload.resource == "replicasets" || pod.value()["metadata"]["labels"][REVISION_HASH] == *revision {
        return true;
    }
    let strategy = &workload.value()["spec"]["updateStrategy"];
    let partition = strategy["rollingUpdate"]["partition"].as_i64();
    strategy["type"] == "OnDelete" || ordinal(pod) < partition
}

fn ordinal(pod: &StoredObject) -> Option<i64> {
    let (_, number) = pod.metadata("name").rsplit_once('-')?;
    number.parse().ok()
}

pub(super) fn is_ready(pod: &StoredObject) -> bool {
    let conditions = pod.value()["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// The revision of a template: the label of its Pods. Kubernetes stores templates as
/// ControllerRevisions, which don't exist here.
pub(super) fn revision_of(workload: &StoredObject) -> String {
    let hash = template_hash(workload);
    match workload.resource.as_str() {
        "statefulsets" => format!("{}-{hash}", workload.metadata("name")),
        _ => hash,
    }
}

fn ordinal_name(workload: &StoredObject, number: i64) -> String {
    format!("{}-{number}", workload.metadata("name"))
}

fn pod(workload: &StoredObject, revision: &str, number: i64) -> Value {
    let template = &workload.value()["spec"]["template"];
    let mut metadata = template["metadata"].clone();
    if !metadata.is_object() {
        metadata = json!({});
    }
    match workload.resource.as_str() {
        "statefulsets" => metadata["name"] = ordinal_name(workload, number).into(),
        _ => metadata["generateName"] = format!("{}-", workload.metadata("name")).into(),
    }
    if !matches!(workload.resource.as_str(), "replicasets" | "jobs") {
        metadata["labels"][REVISION_HASH] = revision.into();
    }
    metadata["namespace"] = workload.metadata("namespace").into();
    metadata["ownerReferences"] = json!([controller(workload)]);
    let mut spec = template["spec"].clone();
    add_claims(&mut spec, workload, number);
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec })
}

/// Adds the claims of a StatefulSet as volumes, without which its containers can't mount them.
fn add_claims(spec: &mut Value, workload: &StoredObject, number: i64) {
    let claims = workload.value()["spec"]["volumeClaimTemplates"].as_array();
    for claim in claims.into_iter().flatten() {
        let name = claim["metadata"]["name"].as_str().unwrap_or_default();
        let claim = format!("{name}-{}", ordinal_name(workload, number));
        let volume = json!({ "name": name, "persistentVolumeClaim": { "claimName": claim } });
        match spec["volumes"].as_array_mut() {
            Some(volumes) => volumes.push(volume),
            None => spec["volumes"] = json!([volume]),
        }
    }
}

/// Objects owned by `owner` that aren't being deleted.
pub(super) fn owned<'w>(
    world: &'w World,
    group: &'w str,
    plural: &'w str,
    owner: &'w StoredObject,
) -> impl Iterator<Item = &'w StoredObject> {
    let objects = world.of(group, plural).filter(|stored| !is_going(stored));
    objects.filter(|stored| owner_uids(stored.value()).any(|uid| uid == owner.metadata("uid")))
}

pub(super) fn controller(owner: &StoredObject) -> Value {
    let object = owner.value();
    json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"], "name": owner.metadata("name"),
        "uid": owner.metadata("uid"), "controller": true, "blockOwnerDeletion": true,
    })
}

pub(super) fn template_hash(workload: &StoredObject) -> String {
    let mut hash = 0x811c_9dc5;
    add_to_hash(&workload.value()["spec"]["template"], &mut hash);
    format!("{hash:x}")
}

/// FNV-1a. Keys are sorted so that field order doesn't matter.
fn add_to_hash(value: &Value, hash: &mut u32) {
    let mut add = |text: &str| {
        for byte in text.bytes() {
            *hash = (*hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        }
    };
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort();
            for name in names {
                add_to_hash(&Value::String(name.clone()), hash);
                add_to_hash(&fields[name], hash);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| add_to_hash(item, hash)),
        value => add(&value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::cluster::{Cluster, block_on, workload};

    async fn pods_around(plural: &str, kind: &str, patch: Value) -> [Vec<String>; 2] {
        let mut cluster = Cluster::with(plural, &workload(kind), Pace::Prompt).await;
        let before = pods_of(&cluster);
        cluster.patch(&patch).await;
        cluster.settle(|_| ()).await;
        [before, pods_of(&cluster)]
    }

    fn pods_of(cluster: &Cluster) -> Vec<String> {
        let pods = cluster.objects("pods");
        pods.iter().map(|pod| pod.metadata("name").to_owned()).collect()
    }

    #[test]
    fn template_change_replaces_pods() {
        block_on(async {
            let labels = json!({ "spec": { "template": { "metadata": { "labels": { "more": "" } } } } });
            let [before, after] = pods_around("daemonsets", "DaemonSet", labels).await;
            assert_eq!((before.len(), after.len()), (1, 1), "{before:?} {after:?}");
            assert_ne!(before, after);
        });
    }

    #[test]
    fn pods_of_stateful_sets_have_numbers() {
        block_on(async {
            let replicas = json!({ "spec": { "replicas": 3 } });
            let [before, after] = pods_around("statefulsets", "StatefulSet", replicas).await;
            assert_eq!(before, ["web-0", "web-1"]);
            assert_eq!(after, ["web-0", "web-1", "web-2"]);
        });
    }

    #[test]
    fn outdated_pods_of_stateful_sets_are_replaced_as_the_strategy_says() {
        let rolling = |partition: i64| json!({ "rollingUpdate": { "partition": partition } });
        for (strategy, replaced) in [
            (rolling(0), &["web-0", "web-1"][..]),
            (rolling(1), &["web-1"]),
            (json!({ "type": "OnDelete" }), &[]),
        ] {
            block_on(async {
                let mut set = workload("StatefulSet");
                set["spec"]["updateStrategy"] = strategy.clone();
                let mut cluster = Cluster::empty("statefulsets", Pace::Prompt);
                cluster.create(&set).await;
                cluster.settle(|_| ()).await;
                let labels = json!({ "spec": { "template": { "metadata": { "labels": { "more": "" } } } } });
                cluster.patch(&labels).await;
                let mut fewest = 2;
                cluster
                    .settle(|cluster| fewest = fewest.min(cluster.objects("pods").len()))
                    .await;
                let is_new = |pod: &&StoredObject| pod.value()["metadata"]["labels"]["more"].is_string();
                let pods = cluster.objects("pods");
                let new: Vec<&str> = pods
                    .iter()
                    .filter(is_new)
                    .map(|pod| pod.metadata("name"))
                    .collect();
                assert_eq!(new, replaced, "{strategy}");
                let status = cluster.objects("statefulsets")[0].value()["status"].clone();
                let updated = status["updatedReplicas"].as_u64().unwrap_or_default();
                assert_eq!(updated, replaced.len() as u64, "{strategy}");
                assert!(fewest >= 1, "{strategy}: one after the other");
            });
        }
    }

    #[test]
    fn pods_of_stateful_sets_wait_for_each_other() {
        for (policy, count) in [("OrderedReady", 1), ("Parallel", 2)] {
            block_on(async {
                let mut set = workload("StatefulSet");
                set["spec"]["podManagementPolicy"] = policy.into();
                let mut cluster = Cluster::empty("statefulsets", Pace::Failing);
                cluster.create(&set).await;
                cluster.settle(|_| ()).await;
                assert_eq!(pods_of(&cluster).len(), count, "{policy}");
            });
        }
    }

    #[test]
    fn pods_of_daemon_sets_stay_until_they_are_deleted() {
        block_on(async {
            let mut set = workload("DaemonSet");
            set["spec"]["updateStrategy"] = json!({ "type": "OnDelete" });
            let mut cluster = Cluster::empty("daemonsets", Pace::Prompt);
            cluster.create(&set).await;
            cluster.settle(|_| ()).await;
            let before = pods_of(&cluster);
            let labels = json!({ "spec": { "template": { "metadata": { "labels": { "more": "" } } } } });
            cluster.patch(&labels).await;
            cluster.settle(|_| ()).await;
            assert_eq!(before, pods_of(&cluster));
            let status = cluster.objects("daemonsets")[0].value()["status"].clone();
            assert_eq!(status["updatedNumberScheduled"], Value::Null);
        });
    }

    #[test]
    fn evicted_pods_are_replaced() {
        // The dead Pod of a ReplicaSet is still there when the next one is.
        for (plural, kind, most) in [
            ("statefulsets", "StatefulSet", 2),
            ("daemonsets", "DaemonSet", 1),
            ("replicasets", "ReplicaSet", 3),
        ] {
            block_on(async {
                let mut cluster = Cluster::with(plural, &workload(kind), Pace::Prompt).await;
                let before = pods_of(&cluster).len();
                cluster.evict(&pods_of(&cluster)[0]).await;
                let mut found = 0;
                cluster
                    .settle(|cluster| found = found.max(cluster.objects("pods").len()))
                    .await;
                let pods = cluster.objects("pods");
                assert_eq!((found, pods.len()), (most, before), "{kind}");
                let is_running = |pod: &StoredObject| pod.value()["status"]["phase"] == "Running";
                assert!(pods.iter().all(is_running), "{kind}: {pods:?}");
            });
        }
    }
}

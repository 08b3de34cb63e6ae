//! Pods of workloads, simulated only for operators that read Pods or ReplicaSets, and Pods of Jobs.

use rbuilder_testing::fake::StoredObject;
use serde_json::{Value, json};

use super::{Act, Behavior, World, is_going};
use crate::history::Pace;
use crate::world::{is_evicted, owner_uids};

/// Pod limit, since some histories set `replicas` to the schema's maximum, possibly in the
/// millions.
pub(super) const MOST_PODS: i64 = 10;
/// Label that the StatefulSet and DaemonSet controllers set on their Pods.
const REVISION_HASH: &str = "controller-revision-hash";

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

/// Creates the Pod of each Job. It stays if the Job is deleted without a propagation policy.
pub(super) struct JobPods;

impl Behavior for JobPods {
    fn next(&self, world: &World, _: Pace) -> Vec<Act> {
        let jobs = world.of("batch", "jobs").filter(|job| !is_going(job));
        let is_running = |job: &&StoredObject| {
            let conditions = job.value()["status"]["conditions"].as_array();
            job.value()["spec"]["suspend"] != true && conditions.is_none_or(Vec::is_empty)
        };
        jobs.filter(is_running)
            .filter(|job| owned(world, "", "pods", job).next().is_none())
            .map(|job| Act::create("", "pods", pod(job, "", 0)))
            .collect()
    }
}

fn next_pods(world: &World, workload: &StoredObject) -> Vec<Act> {
    let hash = template_hash(workload);
    let replicas = workload.value()["spec"]["replicas"].as_i64().unwrap_or(1);
    let wanted = match workload.resource.as_str() {
        "daemonsets" => 1,
        _ => replicas.clamp(0, MOST_PODS),
    };
    let is_set = workload.resource == "statefulsets";
    let pods = owned(world, "", "pods", workload);
    let (evicted, pods): (Vec<_>, Vec<_>) = pods.partition(|pod| is_evicted(pod.value()));
    // Pods of a StatefulSet have ordinals; all others are interchangeable.
    let is_wanted = |(index, pod): (usize, &&StoredObject)| {
        let place = match is_set {
            true => pod
                .metadata("name")
                .rsplit('-')
                .next()
                .and_then(|number| number.parse().ok()),
            false => i64::try_from(index).ok(),
        };
        // The template of a ReplicaSet never changes, so its Pods can't be outdated.
        let is_current =
            workload.resource == "replicasets" || pod.value()["metadata"]["labels"][REVISION_HASH] == *hash;
        is_current && place.is_some_and(|place| place < wanted)
    };
    let (kept, surplus): (Vec<_>, Vec<_>) = pods
        .iter()
        .enumerate()
        .partition(|(index, pod)| is_wanted((*index, pod)));
    // A new Pod of a StatefulSet has to wait until the name is free.
    let named = pods.iter().chain(&evicted);
    let names: Vec<&str> = named.map(|pod| pod.metadata("name")).collect();
    let missing = (0..wanted).filter(|number| match is_set {
        true => !names.contains(&ordinal_name(workload, *number).as_str()),
        false => *number >= i64::try_from(kept.len()).unwrap_or(wanted),
    });
    let missing: Vec<i64> = missing.collect();
    // ReplicaSets leave failed Pods for the garbage collector of Pods, which comes later.
    let is_collected = workload.resource != "replicasets" || missing.is_empty();
    let failed = evicted.iter().filter(|_| is_collected);
    let created = missing
        .into_iter()
        .map(|number| Act::create("", "pods", pod(workload, &hash, number)));
    let deleted = surplus.into_iter().map(|(_, pod)| pod).chain(failed);
    created.chain(deleted.map(|pod| Act::delete(pod))).collect()
}

fn ordinal_name(workload: &StoredObject, number: i64) -> String {
    format!("{}-{number}", workload.metadata("name"))
}

fn pod(workload: &StoredObject, hash: &str, number: i64) -> Value {
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
        metadata["labels"][REVISION_HASH] = hash.into();
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

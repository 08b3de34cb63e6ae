//! Rollouts of Deployments. Each Pod template gets its own ReplicaSet, and both the old and the new
//! one have Pods during a rollout.
//!
//! Like the Deployment controller of Kubernetes, scales up before scaling down, within `maxSurge`
//! and `maxUnavailable`.

use rbuilder_testing::fake::StoredObject;
use serde_json::{Value, json};

use super::pods::{MOST_PODS, controller, owned, template_hash};
use super::workloads::{Progress, deployment_conditions, is_paused, without_zeros};
use super::{Act, Behavior, World, is_going, status_act};
use crate::history::Pace;
use crate::world::REVISION;

const TEMPLATE_HASH: &str = "pod-template-hash";
/// Default `maxSurge` and `maxUnavailable`, in percent of the replicas.
const DEFAULT_SHARE: i64 = 25;
const DEFAULT_HISTORY: i64 = 10;

/// Creates and scales the ReplicaSets of Deployments, and aggregates their statuses.
pub(super) struct Rollouts;

impl Behavior for Rollouts {
    fn next(&self, world: &World, pace: Pace) -> Vec<Act> {
        let deployments = world.of("apps", "deployments");
        let living = deployments.filter(|deployment| !is_going(deployment));
        living
            .flat_map(|deployment| {
                let rollout = Rollout::of(world, deployment);
                let status = status_act(deployment, rollout.status(pace));
                status.into_iter().chain(rollout.next())
            })
            .collect()
    }
}

struct Rollout<'w> {
    deployment: &'w StoredObject,
    hash: String,
    wanted: i64,
    /// `None` for the strategy `Recreate`.
    limits: Option<Limits>,
    current: Option<&'w StoredObject>,
    /// Sorted by revision.
    old: Vec<&'w StoredObject>,
}

#[derive(Clone, Copy)]
struct Limits {
    surge: i64,
    unavailable: i64,
}

impl Limits {
    fn of(deployment: &StoredObject, wanted: i64) -> Option<Self> {
        let strategy = &deployment.value()["spec"]["strategy"];
        if strategy["type"] == "Recreate" {
            return None;
        }
        if wanted > MOST_PODS {
            // Don't throttle large rollouts; thousands of Pods would take forever.
            let (surge, unavailable) = (wanted, wanted);
            return Some(Self { surge, unavailable });
        }
        let settings = &strategy["rollingUpdate"];
        let surge = count(&settings["maxSurge"], wanted, 99);
        let unavailable = count(&settings["maxUnavailable"], wanted, 0);
        // Percentages of a few replicas may both round to zero, and the rollout would be stuck.
        // Kubernetes then allows one unavailable Pod.
        let unavailable = if surge == 0 {
            unavailable.max(1)
        } else {
            unavailable
        };
        Some(Self { surge, unavailable })
    }
}

/// Resolves an absolute number or a percentage of `wanted`. Pass 0 as `round_up` to round
/// percentages down, 99 to round them up.
fn count(setting: &Value, wanted: i64, round_up: i64) -> i64 {
    let share = |percent: i64| (wanted * percent + round_up) / 100;
    match setting {
        Value::Number(number) => number.as_i64().unwrap_or_default(),
        Value::String(text) => {
            let percent = text.strip_suffix('%').and_then(|percent| percent.parse().ok());
            share(percent.unwrap_or(DEFAULT_SHARE))
        }
        _ => share(DEFAULT_SHARE),
    }
}

impl<'w> Rollout<'w> {
    fn of(world: &'w World, deployment: &'w StoredObject) -> Self {
        let hash = template_hash(deployment);
        let wanted = deployment.value()["spec"]["replicas"]
            .as_i64()
            .unwrap_or(1)
            .max(0);
        let sets = owned(world, "apps", "replicasets", deployment);
        let (current, mut old): (Vec<_>, Vec<_>) =
            sets.partition(|set| set.value()["metadata"]["labels"][TEMPLATE_HASH] == *hash);
        old.sort_by_key(|set| revision(set));
        Self {
            deployment,
            hash,
            wanted,
            limits: Limits::of(deployment, wanted),
            current: current.first().copied(),
            old,
        }
    }

    fn sets(&self) -> impl Iterator<Item = &'w StoredObject> {
        self.current.into_iter().chain(self.old.iter().copied())
    }

    fn sum(&self, pointer: &str) -> i64 {
        self.sets().map(|set| number(set, pointer)).sum()
    }

    fn old_replicas(&self) -> i64 {
        self.old.iter().map(|set| number(set, "/spec/replicas")).sum()
    }

    fn is_complete(&self) -> bool {
        // The sum includes old ReplicaSets, so these must be scaled down to zero.
        self.sum("/status/replicas") == self.wanted
            && self
                .current
                .is_some_and(|set| number(set, "/status/availableReplicas") == self.wanted)
    }

    fn status(&self, pace: Pace) -> Value {
        let available = self.sum("/status/availableReplicas");
        let unavailable = self.limits.map_or(0, |limits| limits.unavailable);
        let updated = self.current.map(|set| number(set, "/status/replicas"));
        let progress = match (self.is_complete(), pace) {
            _ if is_paused(self.deployment) => Progress::Paused,
            (true, _) => Progress::Complete,
            (false, Pace::Failing) => Progress::TimedOut,
            (false, Pace::Prompt | Pace::Slow) => Progress::Updating,
        };
        let subject = match self.current {
            Some(set) => format!("ReplicaSet {:?}", set.metadata("name")),
            None => format!("Deployment {:?}", self.deployment.metadata("name")),
        };
        let is_available = available >= self.wanted - unavailable;
        let status = json!({
            "observedGeneration": self.deployment.value()["metadata"]["generation"],
            "replicas": self.sum("/status/replicas"), "updatedReplicas": updated.unwrap_or(0),
            "readyReplicas": self.sum("/status/readyReplicas"), "availableReplicas": available,
            "unavailableReplicas": (self.sum("/spec/replicas") - available).max(0),
            "conditions": deployment_conditions(is_available, progress, &subject),
        });
        without_zeros(status, &self.deployment.resource)
    }

    fn next(&self) -> Vec<Act> {
        if is_paused(self.deployment) {
            return self.scale_active().into_iter().collect();
        }
        let acts = self.scale_up();
        if !acts.is_empty() {
            return acts;
        }
        let acts = self.scale_down();
        if !acts.is_empty() || !self.is_complete() {
            return acts;
        }
        self.remove_history()
    }

    fn scale_up(&self) -> Vec<Act> {
        let most = match self.limits {
            Some(limits) => self.wanted + limits.surge - self.old_replicas(),
            // `Recreate` scales up only after the old Pods are gone ...
            None if self.old.iter().any(|set| number(set, "/status/replicas") > 0) => 0,
            None => self.wanted,
        };
        let target = most.clamp(0, self.wanted);
        let Some(set) = self.current else {
            return match self.limits {
                // ... and doesn't even create the ReplicaSet before that.
                None if target < self.wanted => Vec::new(),
                _ => self.with_revision(|revision| {
                    let body = replica_set(self.deployment, &self.hash, target, revision);
                    Act::create("apps", "replicasets", body)
                }),
            };
        };
        let replicas = number(set, "/spec/replicas");
        let is_latest = self.old.iter().all(|old| revision(old) < revision(set));
        // Rollback: reuse the old template's ReplicaSet under a new revision.
        if !is_latest {
            return self.with_revision(|revision| {
                let annotations = json!({ REVISION: revision.to_string() });
                Act::merge(set, json!({ "metadata": { "annotations": annotations } }))
            });
        }
        let target = if replicas > self.wanted {
            self.wanted
        } else {
            target.max(replicas)
        };
        if replicas == target {
            return Vec::new();
        }
        vec![scale(set, target)]
    }

    /// A paused Deployment keeps the templates that it has, but still follows `replicas`.
    ///
    /// In the middle of a rollout, Kubernetes scales all ReplicaSets in proportion. They stay as they
    /// are here.
    fn scale_active(&self) -> Option<Act> {
        let mut active = self.sets().filter(|set| number(set, "/spec/replicas") > 0);
        let set = match (active.next(), active.next()) {
            (None, _) => self.current.or(self.old.last().copied()),
            (only, None) => only,
            (Some(_), Some(_)) => None,
        }?;
        (number(set, "/spec/replicas") != self.wanted).then(|| scale(set, self.wanted))
    }

    /// Bumps the revision annotation of the Deployment, together with `act` for the ReplicaSet.
    fn with_revision(&self, act: impl FnOnce(i64) -> Act) -> Vec<Act> {
        let revision = self.sets().map(revision).max().unwrap_or(0) + 1;
        let annotations = json!({ REVISION: revision.to_string() });
        let recorded = Act::merge(
            self.deployment,
            json!({ "metadata": { "annotations": annotations } }),
        );
        vec![act(revision), recorded]
    }

    fn scale_down(&self) -> Vec<Act> {
        let Some(limits) = self.limits else {
            let running = self.old.iter().filter(|set| number(set, "/spec/replicas") > 0);
            return running.map(|set| scale(set, 0)).collect();
        };
        let needed = self.wanted - limits.unavailable;
        let pending = self.current.map_or(0, |set| {
            number(set, "/spec/replicas") - number(set, "/status/availableReplicas")
        });
        let mut removable = self.sum("/spec/replicas") - needed - pending.max(0);
        // Remove unavailable Pods first, as that doesn't affect availability. Then remove as many
        // available ones as `maxUnavailable` permits.
        let mut dispensable = self.sum("/status/availableReplicas") - needed;
        let mut acts = Vec::new();
        for set in &self.old {
            let replicas = number(set, "/spec/replicas");
            let available = number(set, "/status/availableReplicas").min(replicas);
            let broken = (replicas - available).min(removable).max(0);
            let surplus = available.min(dispensable).min(removable - broken).max(0);
            removable -= broken + surplus;
            dispensable -= surplus;
            if broken + surplus > 0 {
                acts.push(scale(set, replicas - broken - surplus));
            }
        }
        acts
    }

    fn remove_history(&self) -> Vec<Act> {
        let limit = self.deployment.value()["spec"]["revisionHistoryLimit"].as_i64();
        let kept = usize::try_from(limit.unwrap_or(DEFAULT_HISTORY)).unwrap_or(0);
        let surplus = self.old.len().saturating_sub(kept);
        self.old
            .iter()
            .take(surplus)
            .map(|set| Act::delete(set))
            .collect()
    }
}

fn number(set: &StoredObject, pointer: &str) -> i64 {
    set.value().pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

fn revision(set: &StoredObject) -> i64 {
    let revision = set.value()["metadata"]["annotations"][REVISION].as_str();
    revision.and_then(|revision| revision.parse().ok()).unwrap_or(0)
}

fn scale(set: &StoredObject, replicas: i64) -> Act {
    Act::merge(set, json!({ "spec": { "replicas": replicas } }))
}

fn replica_set(deployment: &StoredObject, hash: &str, replicas: i64, revision: i64) -> Value {
    let mut spec = json!({ "replicas": replicas });
    for field in ["selector", "template"] {
        spec[field] = deployment.value()["spec"][field].clone();
    }
    let least = &deployment.value()["spec"]["minReadySeconds"];
    if !least.is_null() {
        spec["minReadySeconds"] = least.clone();
    }
    spec["selector"]["matchLabels"][TEMPLATE_HASH] = hash.into();
    spec["template"]["metadata"]["labels"][TEMPLATE_HASH] = hash.into();
    let labels = spec["template"]["metadata"]["labels"].clone();
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": spec,
        "metadata": {
            "name": format!("{}-{hash}", deployment.metadata("name")),
            "namespace": deployment.metadata("namespace"),
            "annotations": { REVISION: revision.to_string() },
            "labels": labels, "ownerReferences": [controller(deployment)],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::cluster::{Cluster, block_on, workload};

    async fn deployment(spec: Value, pace: Pace) -> Cluster {
        let mut deployment = workload("Deployment");
        for (field, value) in spec.as_object().into_iter().flatten() {
            deployment["spec"][field] = value.clone();
        }
        Cluster::with("deployments", &deployment, pace).await
    }

    async fn roll_out(cluster: &mut Cluster, image: &str) -> Vec<State> {
        cluster.patch(&of_image(image)).await;
        let mut states = Vec::new();
        cluster.settle(|cluster| states.push(State::of(cluster))).await;
        states.dedup();
        states
    }

    #[derive(Clone, Debug, PartialEq)]
    struct State {
        sets: Vec<String>,
        pods: Vec<String>,
        available: i64,
        updated: i64,
        progress: String,
    }

    impl State {
        fn of(cluster: &Cluster) -> Self {
            let images = |plural: &str, pointer: &str| {
                let objects = cluster.objects(plural);
                let images = objects
                    .iter()
                    .filter_map(|stored| stored.value().pointer(pointer)?.as_str());
                let mut images: Vec<String> = images.map(str::to_owned).collect();
                images.sort();
                images
            };
            let status = cluster.objects("deployments")[0].value()["status"].clone();
            Self {
                sets: images("replicasets", "/spec/template/spec/containers/0/image"),
                pods: images("pods", "/spec/containers/0/image"),
                available: status["availableReplicas"].as_i64().unwrap_or(0),
                updated: status["updatedReplicas"].as_i64().unwrap_or(0),
                progress: status["conditions"][1]["reason"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
            }
        }
    }

    fn of_image(image: &str) -> Value {
        json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": image }] } } } })
    }

    #[test]
    fn two_templates_have_pods_during_a_rollout() {
        for pace in [Pace::Prompt, Pace::Slow] {
            block_on(async {
                let mut cluster = deployment(json!({ "replicas": 3 }), pace).await;
                let states = roll_out(&mut cluster, "web:2").await;
                let both = |state: &State| state.pods.first() != state.pods.last();
                assert!(states.iter().any(both), "{states:#?}");
                // 25% of three replicas: one Pod for `maxSurge`, none for `maxUnavailable`.
                for state in &states {
                    assert!(state.available >= 3 && state.pods.len() <= 4, "{state:#?}");
                }
                let last = states.last().expect("a state");
                assert_eq!(last.pods, ["web:2"; 3]);
                assert_eq!(last.sets, ["web:1", "web:2"], "the old one is kept for rollbacks");
                assert_eq!((last.available, last.updated), (3, 3));
                assert_eq!(last.progress, "NewReplicaSetAvailable");
            });
        }
    }

    #[test]
    fn rollback_uses_the_old_replica_set_with_a_new_revision() {
        block_on(async {
            let mut cluster = deployment(json!({ "replicas": 2 }), Pace::Prompt).await;
            roll_out(&mut cluster, "web:2").await;
            let states = roll_out(&mut cluster, "web:1").await;
            let last = states.last().expect("a state");
            assert_eq!((last.pods.len(), last.sets.len()), (2, 2), "{last:#?}");
            assert_eq!(last.pods, ["web:1"; 2]);
            let mut revisions: Vec<i64> = cluster.objects("replicasets").iter().map(revision).collect();
            revisions.sort_unstable();
            assert_eq!(revisions, [2, 3]);
            assert_eq!(revision(&cluster.objects("deployments")[0]), 3);
        });
    }

    #[test]
    fn recreate_stops_all_pods_first() {
        block_on(async {
            let spec = json!({ "replicas": 2, "strategy": { "type": "Recreate" } });
            let mut cluster = deployment(spec, Pace::Slow).await;
            let states = roll_out(&mut cluster, "web:2").await;
            let both = |state: &State| state.pods.first() != state.pods.last();
            assert!(!states.iter().any(both), "{states:#?}");
            assert!(states.iter().any(|state| state.pods.is_empty()), "{states:#?}");
            assert_eq!(states.last().expect("a state").pods, ["web:2"; 2]);
        });
    }

    #[test]
    fn limits_of_the_strategy_are_kept() {
        block_on(async {
            let limits = json!({ "maxSurge": 0, "maxUnavailable": "50%" });
            let spec = json!({ "replicas": 4, "strategy": { "rollingUpdate": limits } });
            let mut cluster = deployment(spec, Pace::Slow).await;
            let states = roll_out(&mut cluster, "web:2").await;
            let fewest = states.iter().map(|state| state.available).min();
            let most = states.iter().map(|state| state.pods.len()).max();
            assert_eq!((fewest, most), (Some(2), Some(4)), "{states:#?}");
        });
    }

    #[test]
    fn paused_deployment_is_scaled_but_not_rolled_out() {
        block_on(async {
            let mut cluster = deployment(json!({ "replicas": 2 }), Pace::Prompt).await;
            cluster
                .patch(&json!({ "spec": { "paused": true, "replicas": 3 } }))
                .await;
            let states = roll_out(&mut cluster, "web:2").await;
            let last = states.last().expect("a state");
            assert_eq!(
                (&*last.pods, last.updated),
                (&["web:1"; 3].map(str::to_owned)[..], 0)
            );
            assert_eq!(last.progress, "DeploymentPaused");
            cluster.patch(&json!({ "spec": { "paused": false } })).await;
            let states = roll_out(&mut cluster, "web:2").await;
            let last = states.last().expect("a state");
            assert_eq!(
                (&*last.pods, last.updated),
                (&["web:2"; 3].map(str::to_owned)[..], 3)
            );
            assert_eq!(last.progress, "NewReplicaSetAvailable");
        });
    }

    #[test]
    fn deployment_that_is_created_paused_has_no_pods() {
        block_on(async {
            let mut cluster = deployment(json!({ "paused": true }), Pace::Prompt).await;
            let states = roll_out(&mut cluster, "web:2").await;
            let last = states.last().expect("a state");
            assert_eq!((last.pods.len(), last.sets.len(), last.available), (0, 0, 0));
        });
    }

    #[test]
    fn failing_rollout_exceeds_its_deadline() {
        block_on(async {
            let mut cluster = deployment(json!({ "replicas": 3 }), Pace::Prompt).await;
            cluster.environment.fail();
            let states = roll_out(&mut cluster, "web:2").await;
            let last = states.last().expect("a state");
            assert_eq!(last.progress, "ProgressDeadlineExceeded", "{last:#?}");
            assert_eq!(last.available, 0);
        });
    }

    #[test]
    fn oldest_replica_sets_beyond_the_history_are_deleted() {
        block_on(async {
            let spec = json!({ "replicas": 1, "revisionHistoryLimit": 1 });
            let mut cluster = deployment(spec, Pace::Prompt).await;
            roll_out(&mut cluster, "web:2").await;
            let states = roll_out(&mut cluster, "web:3").await;
            assert_eq!(states.last().expect("a state").sets, ["web:2", "web:3"]);
        });
    }

    #[test]
    fn large_deployments_are_rolled_out_in_a_few_steps() {
        block_on(async {
            let limits = json!({ "maxSurge": 1, "maxUnavailable": 0 });
            let spec = json!({ "replicas": 2_000_000, "strategy": { "rollingUpdate": limits } });
            let mut cluster = deployment(spec, Pace::Prompt).await;
            let states = roll_out(&mut cluster, "web:2").await;
            assert_eq!(states.last().expect("a state").updated, 2_000_000);
        });
    }
}

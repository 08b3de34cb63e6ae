// SPDX-License-Identifier: Apache-2.0

//! Keeps the label `pod-count` of every ReplicaSet up to date: the number of Pods that have the
//! labels of its template.
//!
//! The operator has no kind of its own. It reads ReplicaSets and the metadata of Pods from caches,
//! and sends a request only if a label is wrong.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::api::Patch;
use kube::core::PartialObjectMeta;
use rbuilder::{Action, Controller, Ctx, Error, ObjectRef, Result, Watch, predicate, rbac};
use serde_json::json;

/// The label that the controller maintains.
pub const POD_COUNT: &str = "pod-count";

/// The index that relates ReplicaSets to Pods, by label and namespace.
pub const BY_LABEL: &str = "label";

/// The labels of an object or of a Pod template.
type Labels = BTreeMap<String, String>;

/// The cached part of a Pod. Only its labels are used.
pub type PodMeta = PartialObjectMeta<Pod>;

/// State shared by all reconciles.
#[derive(Debug, Default)]
pub struct State {}

/// Returns the controller for the manager.
pub fn controller() -> Controller<ReplicaSet, State> {
    // The status of a ReplicaSet changes with each of its Pods, and is irrelevant here.
    let own_changes = predicate::generation_changed().or(predicate::labels_changed());
    Controller::new(reconcile, State::default())
        .filter(own_changes)
        .index(BY_LABEL, place_of_replica_set)
        .index(BY_LABEL, places_of_pod)
        .watch(Watch::mapped(replica_sets_of).filter(predicate::labels_changed()))
}

/// Updates the label of one ReplicaSet.
///
/// Runs when the ReplicaSet changes, and when a Pod with its labels is created, deleted or
/// relabelled.
#[rbac(
    groups = "apps",
    resources = "replicasets",
    verbs = ["get", "list", "watch", "patch"]
)]
#[rbac(groups = "", resources = "pods", verbs = ["get", "list", "watch"])]
pub async fn reconcile(replica_set: Arc<ReplicaSet>, ctx: Ctx<State>) -> Result {
    let wanted = template_labels(&replica_set);
    let pods = ctx.cached::<PodMeta>()?;
    let mut count = 0;
    for place in place_of_replica_set(&replica_set) {
        let candidates = pods.by(BY_LABEL, &place)?;
        count += candidates
            .iter()
            .filter(|pod| has_all(pod.labels(), wanted))
            .count();
    }
    let count = count.to_string();
    if replica_set.labels().get(POD_COUNT) != Some(&count) {
        let patch = json!({ "metadata": { "labels": { POD_COUNT: count } } });
        match ctx.patch(&*replica_set, &Patch::Merge(patch)).await {
            // The cache lags behind: the ReplicaSet has been deleted.
            Err(error) if is_not_found(&error) => {}
            patched => drop(patched?),
        }
    }
    Ok(Action::await_change())
}

/// Returns `true` if the API server does not know the object.
fn is_not_found(error: &Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.is_not_found())
}

/// Returns the ReplicaSets that count a Pod with these labels.
fn replica_sets_of(pod: &PodMeta, ctx: &Ctx<State>) -> Vec<ObjectRef<ReplicaSet>> {
    let Ok(cached) = ctx.cached::<ReplicaSet>() else {
        return Vec::new();
    };
    let found = places_of_pod(pod)
        .into_iter()
        .flat_map(|place| cached.by(BY_LABEL, &place).unwrap_or_default());
    found
        .filter(|replica_set| has_all(pod.labels(), template_labels(replica_set)))
        .map(|replica_set| ObjectRef::from_obj(&*replica_set))
        .collect()
}

/// Returns the labels that a ReplicaSet gives its Pods.
fn template_labels(replica_set: &ReplicaSet) -> &Labels {
    static NONE: Labels = Labels::new();
    let template = replica_set.spec.template.as_ref();
    let metadata = template.and_then(|template| template.metadata.as_ref());
    metadata
        .and_then(|metadata| metadata.labels.as_ref())
        .unwrap_or(&NONE)
}

/// Returns `true` if `labels` contains all of `wanted`.
fn has_all(labels: &Labels, wanted: &Labels) -> bool {
    wanted
        .iter()
        .all(|(key, value)| labels.get(key) == Some(value))
}

/// Returns the index key of a ReplicaSet: one of its template's labels, preferably one that no
/// other ReplicaSet has.
fn place_of_replica_set(replica_set: &ReplicaSet) -> Vec<String> {
    let labels = template_labels(replica_set);
    let telling = labels
        .get_key_value("pod-template-hash")
        .or_else(|| labels.first_key_value());
    telling
        .map(|label| place(&replica_set.metadata, label))
        .into_iter()
        .collect()
}

/// Returns the index keys of a Pod: each of its labels.
pub fn places_of_pod(pod: &PodMeta) -> Vec<String> {
    pod.labels()
        .iter()
        .map(|label| place(&pod.metadata, label))
        .collect()
}

/// Returns the index key of a label in the namespace of an object.
fn place(metadata: &ObjectMeta, (key, value): (&String, &String)) -> String {
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    format!("{namespace}/{key}={value}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::{Client, Config};
    use serde_json::{Value, json};

    fn replica_set(labels: Value, template: Value) -> ReplicaSet {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "namespace": "a", "labels": labels},
            "spec": {
                "selector": {"matchLabels": template},
                "template": {"metadata": {"labels": template}},
            },
        }))
        .expect("a ReplicaSet")
    }

    fn pod(namespace: &str, name: &str, labels: Value) -> PodMeta {
        serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": labels},
        }))
        .expect("the metadata of a Pod")
    }

    /// Returns a context whose caches contain these Pods and whose API server is unreachable.
    fn offline(pods: impl IntoIterator<Item = PodMeta>) -> Ctx<State> {
        let nowhere = Config::new("http://127.0.0.1:9".parse().expect("a URL"));
        let client = Client::try_from(nowhere).expect("a client");
        Ctx::new(client, "replicaset", State::default())
            .indexing(BY_LABEL, places_of_pod)
            .indexing(BY_LABEL, place_of_replica_set)
            .caching(pods)
    }

    fn some_pods() -> [PodMeta; 4] {
        [
            pod("a", "one", json!({"app": "web", "tier": "front"})),
            pod("a", "two", json!({"app": "web"})),
            pod("a", "three", json!({"app": "other"})),
            pod("b", "four", json!({"app": "web"})),
        ]
    }

    #[tokio::test]
    async fn correct_label_costs_no_request() {
        for (template, count) in [
            (json!({"app": "web"}), "2"),
            (json!({"app": "web", "tier": "front"}), "1"),
            (json!({"app": "none"}), "0"),
        ] {
            let right = replica_set(json!({"pod-count": count}), template.clone());
            let action = reconcile(Arc::new(right), offline(some_pods())).await;
            assert_eq!(action.expect("nothing is asked"), Action::await_change());

            let wrong = replica_set(json!({"pod-count": "7"}), template);
            let asked = reconcile(Arc::new(wrong), offline(some_pods())).await;
            assert!(asked.is_err(), "nobody answers the patch");
        }
    }

    #[tokio::test]
    async fn pod_is_mapped_to_replica_sets_with_its_labels() {
        let mut front = replica_set(json!({}), json!({"app": "web", "tier": "front"}));
        front.metadata.name = Some("front".to_owned());
        let ctx = offline([]).caching([front, replica_set(json!({}), json!({"app": "web"}))]);
        let names = some_pods().map(|pod| {
            let mut names = replica_sets_of(&pod, &ctx);
            names.sort_by(|a, b| a.name.cmp(&b.name));
            names
                .into_iter()
                .map(|found| found.name)
                .collect::<Vec<_>>()
        });
        assert_eq!(names, [vec!["front", "web"], vec!["web"], vec![], vec![]]);
    }

    #[test]
    fn replica_set_of_a_deployment_is_indexed_by_its_hash() {
        let labels = json!({"app": "web", "pod-template-hash": "5d4"});
        let found = place_of_replica_set(&replica_set(json!({}), labels));
        assert_eq!(found, ["a/pod-template-hash=5d4"]);
    }
}

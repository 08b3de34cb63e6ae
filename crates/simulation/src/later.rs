//! Perturbations that begin or end some time after the request: a quota has room again, a Pod is
//! evicted, or an object is deleted.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ResourceQuota, ResourceQuotaSpec, ResourceQuotaStatus};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::core::ObjectMeta;
use rbuilder_testing::fake::StoredObject;
use serde_json::{Value, json};

use crate::disturb::OUTAGE;
use crate::network::Network;
use crate::timeline::Actor;
use crate::world::{GIVEN, ObjectName, find, is_evicted, resource_of};

/// Long enough for the operator to become idle, and for a Pod to run.
const LATER: Duration = Duration::from_secs(10);
/// As the kubelet says it, with the space at the end.
const EVICTED: &str = "The node was low on resource: memory. ";

impl Network {
    /// Leaves no room for more objects of a resource in a namespace, for a time.
    pub(crate) fn fill_quota(&self, namespace: &str, resource: &str) {
        let name = quota(namespace, resource);
        let used = count(&self.server.objects(), namespace, resource);
        let limit = BTreeMap::from([(counted(resource), Quantity(used.to_string()))]);
        let quota = ResourceQuota {
            metadata: ObjectMeta {
                name: Some(name.name.clone()),
                namespace: Some(name.namespace.clone()),
                annotations: Some(BTreeMap::from([(GIVEN.to_owned(), String::new())])),
                ..ObjectMeta::default()
            },
            spec: Some(ResourceQuotaSpec {
                hard: Some(limit.clone()),
                ..ResourceQuotaSpec::default()
            }),
            status: Some(ResourceQuotaStatus {
                hard: Some(limit.clone()),
                used: Some(limit),
            }),
        };
        // The handle shares the server.
        let _ = self.server.clone().object(&quota);
        let network = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(OUTAGE).await;
            network.delete(Actor::Other, &name).await;
        });
    }

    /// Another actor deletes an object in a while.
    pub(crate) fn remove_later(&self, object: &str) {
        let (network, object) = (self.clone(), object.to_owned());
        tokio::spawn(async move {
            tokio::time::sleep(LATER).await;
            network.remove(&object).await;
        });
    }

    /// Whether a full quota keeps an object from being created.
    pub(crate) fn has_no_room_for(&self, object: &ObjectName) -> bool {
        find(&self.server, &quota(&object.namespace, &object.resource())).is_some()
    }

    /// Evicts a Pod in a while, if there is one of this name then. Generated names are those in
    /// snapshots, e.g. `pods default/a-<1>`.
    pub(crate) fn evict_later(&self, pod: &str) {
        let Some(wanted) = ObjectName::parse(pod) else {
            return;
        };
        let network = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(LATER).await;
            let objects = network.server.objects();
            let mut pods = objects.iter().filter(|stored| is_running(stored));
            if let Some(pod) = pods.find(|pod| is_named(pod, &wanted)) {
                let patch = json!({ "status": evicted(&pod.value()["status"]) });
                let name = ObjectName::of(pod);
                network.merge(Actor::Environment, &name, "/status", &patch).await;
            }
        });
    }
}

fn quota(namespace: &str, resource: &str) -> ObjectName {
    ObjectName {
        plural: "resourcequotas".to_owned(),
        version: "v1".to_owned(),
        namespace: namespace.to_owned(),
        name: format!("full-{resource}"),
        ..ObjectName::default()
    }
}

/// The name of a quota of the number of objects.
pub(crate) fn counted(resource: &str) -> String {
    format!("count/{resource}")
}

/// Number of objects that count against a quota.
pub(crate) fn count(objects: &[StoredObject], namespace: &str, resource: &str) -> usize {
    let is_counted = |stored: &&StoredObject| {
        stored.metadata("namespace") == namespace && resource_of(&stored.group, &stored.resource) == resource
    };
    objects.iter().filter(is_counted).count()
}

fn is_running(stored: &StoredObject) -> bool {
    let is_pod = stored.group.is_empty() && stored.resource == "pods";
    is_pod && stored.metadata("deletionTimestamp").is_empty() && !is_evicted(stored.value())
}

fn is_named(pod: &StoredObject, wanted: &ObjectName) -> bool {
    let is_same = match wanted.name.split_once('<') {
        Some((prefix, _)) => pod.metadata("generateName") == prefix,
        None => pod.metadata("name") == wanted.name,
    };
    is_same && pod.metadata("namespace") == wanted.namespace
}

/// The status of a Pod after its kubelet has evicted it.
fn evicted(status: &Value) -> Value {
    let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    for condition in &mut conditions {
        condition["status"] = "False".into();
        condition["reason"] = "PodFailed".into();
    }
    let mut target = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet",
        "message": EVICTED, "lastProbeTime": null,
    });
    target["lastTransitionTime"] = conditions
        .first()
        .map_or(Value::Null, |first| first["lastTransitionTime"].clone());
    conditions.push(target);
    json!({ "phase": "Failed", "reason": "Evicted", "message": EVICTED, "conditions": conditions })
}

//! What ends deletions, enabled with [`collect_garbage`]: the garbage collector, the namespace
//! controller, the protection of volumes, and the kubelet.
//!
//! They proceed in the same steps as in a cluster, so that an operator can act in between:
//!
//! - With `propagationPolicy: Orphan`, the owner is kept until its dependents have been released,
//!   one by one. Only dependents that exist at the start are released: if the operator adopts one
//!   again, it is deleted after the owner.
//! - With `Foreground`, the owner is kept until its dependents with `blockOwnerDeletion` are gone.
//! - An object is deleted if none of its owners exists. If one exists, only the references to
//!   absent owners are removed.
//! - An object is ignored if the kind of an owner is not served or the owner cannot own it.
//! - A claim is kept until no scheduled Pod mounts it, and a volume until it is released.
//! - A Pod with a node terminates before it's removed. No containers run here, so it terminates
//!   within a step instead of its grace period.
//!
//! No task runs in the background. Each step has a due time, and the next request or watch after
//! that time runs it. Watches also wait for the due time, so a paused clock advances to it when all
//! other tasks are idle.
//!
//! [`collect_garbage`]: super::ApiServer::collect_garbage

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use rbuilder_kubernetes::gvk;
use serde_json::Value;
use tokio::time::Instant;

use super::delete::{DeleteOptions, FOREGROUND, ORPHAN};
use super::kinds::{ResourceId, string_at};
use super::store::{Key, State};

/// Interval between steps, and between a change and the first step. Long enough for an operator to
/// act in between.
const STEP: Duration = Duration::from_millis(10);

/// The finalizers that protect volumes in use.
const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";

#[derive(Debug, Default)]
pub(super) struct Collector {
    /// When the next step is due. `None` if there's nothing to do.
    due: Option<Instant>,
    /// Deleted owners whose dependents are being orphaned.
    releases: Vec<Release>,
    /// The resource version at which there was nothing to do, to skip searching until the next
    /// change.
    idle_at: Option<u64>,
}

impl Collector {
    /// Forces another search even without writes, e.g. because a new kind is served.
    pub(super) fn looking_again(self) -> Self {
        Self {
            idle_at: None,
            ..self
        }
    }
}

/// A deleted owner whose dependents are being orphaned.
#[derive(Debug)]
struct Release {
    owner: String,
    left: VecDeque<(ResourceId, Key)>,
}

type Stored = (ResourceId, Key, Arc<Value>);

enum Step {
    /// Removes the owner references with these uids.
    RemoveOwners(Stored, Vec<String>),
    RemoveFinalizer(Stored, &'static str),
    Delete(Stored, &'static str),
    /// Removes a Pod whose containers have stopped.
    EndPod(Stored),
    /// Finalizes an empty namespace.
    EndNamespace(Stored),
}

#[derive(Default)]
struct Owners {
    /// Uids of owners that are absent or waiting for their dependents to be deleted.
    lost: Vec<String>,
    /// Whether any owner is waiting for its dependents to be deleted.
    waits: bool,
    /// Whether any owner exists and isn't waiting.
    stays: bool,
    /// Whether the existence of any owner can't be determined.
    unknown: bool,
}

impl State {
    /// Runs all due steps. Returns whether there were any.
    pub(super) fn run_collector(&mut self) -> bool {
        let now = Instant::now();
        let mut ran = false;
        while let Some(due) = self.next_collection().filter(|due| *due <= now) {
            if let Some(step) = self.next_step() {
                self.take_step(step);
                ran = true;
            }
            // `due + STEP` rather than `now + STEP`, so that timing doesn't depend on when requests
            // arrive.
            let more = self.next_step().is_some();
            if let Some(collector) = &mut self.collector {
                collector.due = more.then_some(due + STEP);
            }
        }
        ran
    }

    pub(super) fn plan_collection(&mut self) {
        let version = self.version();
        let waits = |collector: &Collector| collector.due.is_none() && collector.idle_at != Some(version);
        // `next_step` visits all objects, so don't repeat it before the next change.
        if self.collector.as_ref().is_none_or(|collector| !waits(collector)) {
            return;
        }
        let due = self.next_step().map(|_| Instant::now() + STEP);
        if let Some(collector) = &mut self.collector {
            collector.due = due;
            collector.idle_at = due.is_none().then_some(version);
        }
    }

    pub(super) fn next_collection(&self) -> Option<Instant> {
        self.collector.as_ref()?.due
    }

    fn next_step(&mut self) -> Option<Step> {
        let stored: Vec<Stored> = self
            .everything()
            .map(|(id, key, object)| (id.clone(), key.clone(), object.clone()))
            .collect();
        self.next_release(&stored)
            .or_else(|| end_foreground_deletion(&stored))
            .or_else(|| end_pod(&stored))
            .or_else(|| end_protection(&stored))
            .or_else(|| self.next_dependent(&stored))
            .or_else(|| empty_namespace(&stored))
    }

    fn next_release(&mut self, stored: &[Stored]) -> Option<Step> {
        let owner = stored.iter().find(|object| is_held(&object.2, ORPHAN))?;
        let uid = string_at(&owner.2, "/metadata/uid");
        let releases = &mut self.collector.as_mut()?.releases;
        let release = match releases.iter().position(|release| release.owner == uid) {
            Some(position) => &mut releases[position],
            None => {
                let dependents = stored.iter().filter(|object| is_owned_by(&object.2, uid));
                // Take a snapshot, since dependents adopted later must not be released.
                releases.push(Release {
                    owner: uid.to_owned(),
                    left: dependents.map(|(id, key, _)| (id.clone(), key.clone())).collect(),
                });
                releases.last_mut()?
            }
        };
        while let Some((id, key)) = release.left.front() {
            let found = stored.iter().find(|object| object.0 == *id && object.1 == *key);
            match found.filter(|object| is_owned_by(&object.2, uid)) {
                Some(object) => return Some(Step::RemoveOwners(object.clone(), vec![uid.to_owned()])),
                None => release.left.pop_front(),
            };
        }
        Some(Step::RemoveFinalizer(owner.clone(), ORPHAN))
    }

    fn next_dependent(&self, stored: &[Stored]) -> Option<Step> {
        stored.iter().find_map(|object| {
            let owners = self.owners_of(object, stored);
            if is_going(&object.2) || owners.unknown || owners.lost.is_empty() {
                return None;
            }
            if owners.stays {
                return Some(Step::RemoveOwners(object.clone(), owners.lost));
            }
            let uid = string_at(&object.2, "/metadata/uid");
            let has_dependents = || stored.iter().any(|other| is_owned_by(&other.2, uid));
            // If an owner is being deleted in the foreground, it must also wait for this object's
            // dependents.
            let policy = match owners.waits && has_dependents() {
                true => "Foreground",
                false => "Background",
            };
            Some(Step::Delete(object.clone(), policy))
        })
    }

    fn owners_of(&self, (id, key, object): &Stored, stored: &[Stored]) -> Owners {
        let mut owners = Owners::default();
        for reference in references(object) {
            let uid = string_at(reference, "/uid");
            let Some((owner_id, namespaced)) = self.kind_of_owner(reference) else {
                owners.unknown = true;
                continue;
            };
            // Cluster-scoped objects can't be owned by namespaced ones.
            let is_namespaced = self.kind(id).is_some_and(|kind| kind.namespaced);
            if namespaced && !is_namespaced {
                owners.unknown = true;
                continue;
            }
            let namespace = if namespaced { key.0.clone() } else { String::new() };
            let owner_key = (namespace, string_at(reference, "/name").to_owned());
            let owner = stored
                .iter()
                .find(|other| other.0 == owner_id && other.1 == owner_key);
            // A recreated object with the same name has another uid and isn't the owner.
            let owner = owner.filter(|owner| string_at(&owner.2, "/metadata/uid") == uid);
            match owner {
                Some(owner) if !is_held(&owner.2, FOREGROUND) => owners.stays = true,
                Some(_) => {
                    owners.waits = true;
                    owners.lost.push(uid.to_owned());
                }
                None => owners.lost.push(uid.to_owned()),
            }
        }
        owners
    }

    fn kind_of_owner(&self, reference: &Value) -> Option<(ResourceId, bool)> {
        let api_version = string_at(reference, "/apiVersion");
        let (group, version) = gvk::split(api_version);
        let kind = string_at(reference, "/kind");
        let mut kinds = self.kinds();
        let found = kinds.find(|found| found.id.group == group && found.kind == kind)?;
        found.version(version)?;
        Some((found.id.clone(), found.namespaced))
    }

    fn take_step(&mut self, step: Step) {
        match step {
            Step::RemoveOwners((id, key, object), owners) => {
                let mut object = Value::clone(&object);
                let mut left: Vec<Value> = references(&object).cloned().collect();
                left.retain(|reference| !owners.iter().any(|uid| *uid == string_at(reference, "/uid")));
                object["metadata"]["ownerReferences"] = left.into();
                self.settle(&id, key, object);
            }
            Step::RemoveFinalizer((id, key, object), finalizer) => {
                let uid = string_at(&object, "/metadata/uid").to_owned();
                let mut object = Value::clone(&object);
                if let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() {
                    finalizers.retain(|name| name != finalizer);
                }
                if let Some(collector) = &mut self.collector {
                    collector.releases.retain(|release| release.owner != uid);
                }
                self.settle(&id, key, object);
            }
            Step::Delete((id, key, object), policy) => {
                let last = self.marked(&id, &object, &DeleteOptions::of_policy(policy));
                self.settle(&id, key, last);
            }
            Step::EndPod((id, key, object)) => {
                let mut last = Value::clone(&object);
                last["metadata"]["deletionGracePeriodSeconds"] = 0.into();
                self.settle(&id, key, last);
            }
            Step::EndNamespace((id, key, object)) => {
                let mut last = Value::clone(&object);
                last["spec"]["finalizers"] = Value::Null;
                self.settle(&id, key, last);
            }
        }
    }
}

fn end_foreground_deletion(stored: &[Stored]) -> Option<Step> {
    let mut waiting = stored.iter().filter(|object| is_held(&object.2, FOREGROUND));
    let done = waiting.find(|owner| {
        let uid = string_at(&owner.2, "/metadata/uid");
        let blocks = |reference: &Value| reference["uid"] == uid && reference["blockOwnerDeletion"] == true;
        !stored.iter().any(|object| references(&object.2).any(blocks))
    })?;
    Some(Step::RemoveFinalizer(done.clone(), FOREGROUND))
}

fn end_pod(stored: &[Stored]) -> Option<Step> {
    let waits = |object: &Value| {
        let left = object["metadata"]["deletionGracePeriodSeconds"].as_i64();
        is_going(object) && left.is_some_and(|left| left > 0)
    };
    let pod = stored.iter().find(|object| waits(&object.2))?;
    Some(Step::EndPod(pod.clone()))
}

fn end_protection(stored: &[Stored]) -> Option<Step> {
    let is_released = |object: &Stored, finalizer: &str| {
        is_held(&object.2, finalizer)
            && match finalizer {
                CLAIM_PROTECTION => !stored.iter().any(|pod| mounts(pod, &object.1)),
                _ => string_at(&object.2, "/status/phase") != "Bound",
            }
    };
    stored.iter().find_map(|object| {
        let mut finalizers = [CLAIM_PROTECTION, VOLUME_PROTECTION].into_iter();
        let finalizer = finalizers.find(|finalizer| is_released(object, finalizer))?;
        Some(Step::RemoveFinalizer(object.clone(), finalizer))
    })
}

/// Whether an object is a Pod that uses a claim. Pods without a node don't count, because the
/// kubelet would refuse to start them.
fn mounts((id, key, pod): &Stored, claim: &Key) -> bool {
    let is_scheduled_pod = id.group.is_empty()
        && id.plural == "pods"
        && key.0 == claim.0
        && !string_at(pod, "/spec/nodeName").is_empty();
    let volumes = pod["spec"]["volumes"].as_array();
    is_scheduled_pod
        && volumes
            .into_iter()
            .flatten()
            .any(|volume| volume["persistentVolumeClaim"]["claimName"] == *claim.1)
}

fn empty_namespace(stored: &[Stored]) -> Option<Step> {
    let namespaces = ResourceId::namespaces();
    let mut going = stored
        .iter()
        .filter(|(id, _, object)| *id == namespaces && is_going(object));
    going.find_map(|namespace| {
        let mut inside = stored.iter().filter(|(_, key, _)| key.0 == namespace.1.1);
        // The namespace itself is removed once it's empty. Objects with finalizers keep it alive.
        let is_empty = inside.clone().next().is_none();
        match inside.find(|object| !is_going(&object.2)) {
            Some(next) => Some(Step::Delete(next.clone(), "Background")),
            None => is_empty.then(|| Step::EndNamespace(namespace.clone())),
        }
    })
}

fn is_going(object: &Value) -> bool {
    object["metadata"].get("deletionTimestamp").is_some()
}

fn is_held(object: &Value, finalizer: &str) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
    is_going(object) && finalizers.into_iter().any(|name| name == finalizer)
}

fn references(object: &Value) -> impl Iterator<Item = &Value> {
    let references = object["metadata"]["ownerReferences"].as_array();
    references.into_iter().flatten()
}

fn is_owned_by(object: &Value, uid: &str) -> bool {
    references(object).any(|reference| reference["uid"] == uid)
}

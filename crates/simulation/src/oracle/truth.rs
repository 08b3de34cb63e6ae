//! Status oracle: a status must not claim readiness prematurely.

use std::collections::{BTreeMap, BTreeSet};

use super::{Oracle, Violation};
use crate::world::{ObjectName, owner_uids};
use rbuilder_testing::fake::StoredObject;

const WORKING: [&str; 2] = ["Available", "Ready"];

#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// Generation at which an object claimed to be ready, by UID.
    ready: BTreeMap<String, i64>,
    workloads: BTreeMap<String, i64>,
    pub(crate) violations: Vec<Violation>,
}

impl Claims {
    /// Drops all recorded claims. Called when an actor other than the operator has changed the
    /// cluster, since claims that were true before may now be false.
    pub(crate) fn forget(&mut self) {
        self.ready.clear();
    }

    /// Checks that the object just written doesn't claim to be ready while it owns an unready
    /// workload, and that no workload changes after such a claim for the same generation.
    ///
    /// Returns a note for the timeline if the write makes the status wrong.
    pub(crate) fn observe(&mut self, objects: &[StoredObject], written: &ObjectName) -> Option<String> {
        self.observe_workloads(objects);
        let mut claiming = objects.iter().filter(|stored| claims_ready(stored));
        let claim = claiming.find(|stored| ObjectName::of(stored) == *written);
        let child = ObjectName::of(claim.and_then(|stored| unready_child(stored, objects))?);
        let message =
            format!("{written} says that it is ready in the write of its status, but {child} is not yet");
        self.violations
            .push(Violation::new(Oracle::Truth, written.to_string(), message));
        Some(format!("says that it is ready, but {child} is not"))
    }

    fn observe_workloads(&mut self, objects: &[StoredObject]) {
        let by_uid: BTreeMap<&str, &StoredObject> = objects
            .iter()
            .map(|stored| (stored.metadata("uid"), stored))
            .collect();
        for stored in objects.iter().filter(|stored| is_workload(stored)) {
            let (uid, generation) = (stored.metadata("uid"), generation(stored));
            let before = self.workloads.insert(uid.to_owned(), generation);
            if before.is_none_or(|before| before >= generation) {
                continue;
            }
            for owner in owner_uids(stored.value()).filter_map(|uid| by_uid.get(uid)) {
                let claimed = self.ready.get(owner.metadata("uid"));
                if claimed == Some(&self::generation(owner)) {
                    let (owner, child) = (ObjectName::of(owner), ObjectName::of(stored));
                    self.violations.push(Violation::new(
                        Oracle::Truth,
                        owner.to_string(),
                        format!("{owner} says that it is ready, and {child} is changed for the same generation afterwards"),
                    ));
                }
            }
        }
        for stored in objects.iter().filter(|stored| claims_ready(stored)) {
            self.ready
                .insert(stored.metadata("uid").to_owned(), generation(stored));
        }
    }
}

/// Checks readiness claims in a settled state.
pub(crate) fn false_claims(objects: &[StoredObject]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for stored in objects.iter().filter(|stored| !is_workload(stored)) {
        let (name, status) = (ObjectName::of(stored), &stored.value()["status"]);
        let observed = status["observedGeneration"].as_i64();
        if observed.is_some_and(|observed| observed < generation(stored)) {
            violations.push(Violation::new(
                Oracle::Truth,
                name.to_string(),
                format!(
                    "{name}: the status still describes generation {}",
                    observed.unwrap_or_default()
                ),
            ));
        }
        if !claims_ready(stored) {
            continue;
        }
        if let Some(child) = unready_child(stored, objects) {
            let child = ObjectName::of(child);
            let message = format!("{name} says that it is ready, but {child} is not");
            violations.push(Violation::new(Oracle::Truth, name.to_string(), message));
        }
    }
    violations
}

/// Finds an unready workload or a failed Job among the descendants of an object.
fn unready_child<'o>(stored: &StoredObject, objects: &'o [StoredObject]) -> Option<&'o StoredObject> {
    let mut family = descendants(stored, objects).into_iter();
    family.find(|child| is_workload(child) && !is_ready(child) || has_failed(child))
}

// Jobs that are still running don't count.
fn has_failed(stored: &StoredObject) -> bool {
    let conditions = stored.value()["status"]["conditions"].as_array();
    let is_failed =
        |condition: &serde_json::Value| condition["type"] == "Failed" && condition["status"] == "True";
    stored.group == "batch" && stored.resource == "jobs" && conditions.into_iter().flatten().any(is_failed)
}

fn generation(stored: &StoredObject) -> i64 {
    stored.value()["metadata"]["generation"].as_i64().unwrap_or(0)
}

fn is_workload(stored: &StoredObject) -> bool {
    stored.group == "apps"
        && matches!(
            stored.resource.as_str(),
            "deployments" | "statefulsets" | "daemonsets"
        )
}

fn is_ready(stored: &StoredObject) -> bool {
    let object = stored.value();
    let (spec, status) = (&object["spec"], &object["status"]);
    if stored.resource == "daemonsets" {
        return status["numberReady"] == status["desiredNumberScheduled"];
    }
    let wanted = spec["replicas"].as_i64().unwrap_or(1);
    if wanted == 0 {
        // With zero replicas nothing can be unready; don't wait for the workload's controller to
        // report them.
        return true;
    }
    status["observedGeneration"].as_i64() >= Some(generation(stored))
        && status["readyReplicas"].as_i64().unwrap_or(0) >= wanted
}

fn claims_ready(stored: &StoredObject) -> bool {
    if !stored.is_custom {
        return false;
    }
    let status = &stored.value()["status"];
    let conditions = status["conditions"].as_array();
    conditions.into_iter().flatten().any(|condition| {
        let observed = condition["observedGeneration"].as_i64();
        let observed = observed.or_else(|| status["observedGeneration"].as_i64());
        WORKING.iter().any(|kind| condition["type"] == **kind)
            && condition["status"] == "True"
            && observed.is_none_or(|observed| observed >= generation(stored))
    })
}

// Owner references form a graph that may contain cycles.
fn descendants<'o>(root: &StoredObject, objects: &'o [StoredObject]) -> Vec<&'o StoredObject> {
    let mut known = BTreeSet::from([root.metadata("uid")]);
    let mut found: Vec<&StoredObject> = Vec::new();
    loop {
        let next = objects.iter().find(|stored| {
            !known.contains(stored.metadata("uid"))
                && owner_uids(stored.value()).any(|uid| known.contains(uid))
        });
        let Some(next) = next else { return found };
        known.insert(next.metadata("uid"));
        found.push(next);
    }
}

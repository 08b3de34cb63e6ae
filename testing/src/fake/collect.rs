//! The garbage collector and the namespace controller of a cluster, for servers that are asked to play them.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::kinds::{ResourceId, text};
use super::store::{Key, State};

/// An object with its place.
type Place = (ResourceId, Key, Arc<Value>);

impl State {
    /// Deletes what has lost its owners, and what is in a namespace that is being deleted, until nothing is left to do.
    pub(super) fn collect_garbage(&mut self) {
        while self.orphan() || self.delete_ahead() || self.delete_dependents() || self.empty_namespaces() {}
    }

    fn places(&self) -> Vec<Place> {
        let all = self.everything();
        all.map(|(id, key, object)| (id.clone(), key.clone(), object.clone()))
            .collect()
    }

    /// `propagationPolicy: Orphan`: dependents lose the reference, and the object its finalizer.
    fn orphan(&mut self) -> bool {
        let places = self.places();
        let Some(owner) = places.iter().find(|place| is_held(&place.2, "orphan")) else {
            return false;
        };
        let uid = text(&owner.2, "/metadata/uid");
        for (id, key, object) in places
            .iter()
            .filter(|place| owners(&place.2).any(|owner| owner == uid))
        {
            let mut object = Value::clone(object);
            if let Some(references) = object["metadata"]["ownerReferences"].as_array_mut() {
                references.retain(|reference| reference["uid"] != uid);
            }
            self.settle(id, key.clone(), object);
        }
        self.release(owner, "orphan");
        true
    }

    /// `propagationPolicy: Foreground`: first the dependents that block it, then the object.
    fn delete_ahead(&mut self) -> bool {
        let places = self.places();
        let held: Vec<&Place> = places
            .iter()
            .filter(|place| is_held(&place.2, "foregroundDeletion"))
            .collect();
        for owner in held {
            let uid = text(&owner.2, "/metadata/uid");
            let blocking: Vec<&Place> = places
                .iter()
                .filter(|place| {
                    references(&place.2).any(|one| one["uid"] == uid && one["blockOwnerDeletion"] == true)
                })
                .collect();
            let Some(next) = blocking.iter().find(|place| !is_going(&place.2)) else {
                if blocking.is_empty() {
                    self.release(owner, "foregroundDeletion");
                    return true;
                }
                continue;
            };
            self.sweep(next);
            return true;
        }
        false
    }

    /// Objects all of whose owners are gone.
    fn delete_dependents(&mut self) -> bool {
        let places = self.places();
        let uids: HashSet<&str> = places
            .iter()
            .map(|place| text(&place.2, "/metadata/uid"))
            .collect();
        let lost = places.iter().find(|place| {
            let mut owners = owners(&place.2).peekable();
            owners.peek().is_some() && !is_going(&place.2) && owners.all(|owner| !uids.contains(owner))
        });
        lost.inspect(|place| self.sweep(place)).is_some()
    }

    fn empty_namespaces(&mut self) -> bool {
        let namespaces = ResourceId::namespaces();
        let places = self.places();
        let going = places
            .iter()
            .filter(|(id, _, object)| *id == namespaces && is_going(object));
        for namespace in going {
            let inside: Vec<&Place> = places
                .iter()
                .filter(|(_, key, _)| key.0 == namespace.1.1)
                .collect();
            if let Some(next) = inside.iter().find(|place| !is_going(&place.2)) {
                self.sweep(next);
                return true;
            }
            if inside.is_empty() {
                let mut last = Value::clone(&namespace.2);
                last["spec"]["finalizers"] = Value::Null;
                self.settle(&namespaces, namespace.1.clone(), last);
                return true;
            }
        }
        false
    }

    /// Deletes an object in the background.
    fn sweep(&mut self, (id, key, object): &Place) {
        let mut object = Value::clone(object);
        object["metadata"]["deletionTimestamp"] = self.now().into();
        object["metadata"]["deletionGracePeriodSeconds"] = 0.into();
        self.settle(id, key.clone(), object);
    }

    fn release(&mut self, (id, key, _): &Place, finalizer: &str) {
        let Some(object) = self.get(id, key) else { return };
        let mut object = Value::clone(object);
        if let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() {
            finalizers.retain(|name| name != finalizer);
        }
        self.settle(id, key.clone(), object);
    }
}

fn is_going(object: &Value) -> bool {
    object["metadata"].get("deletionTimestamp").is_some()
}

fn is_held(object: &Value, finalizer: &str) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
    is_going(object) && finalizers.into_iter().any(|name| name == finalizer)
}

fn references(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten()
}

/// The ids of an object's owners.
fn owners(object: &Value) -> impl Iterator<Item = &str> {
    references(object).map(|reference| text(reference, "/uid"))
}

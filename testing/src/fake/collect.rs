//! The garbage collector and the namespace controller, for servers with [`collecting_garbage`].
//!
//! [`collecting_garbage`]: super::ApiServer::collecting_garbage

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::kinds::{ResourceId, string_at};
use super::store::{Key, State};

/// A stored object with its kind and key.
type Stored = (ResourceId, Key, Arc<Value>);

impl State {
    /// Deletes objects without owners and the contents of terminating namespaces, until there are none.
    pub(super) fn collect_garbage(&mut self) {
        while self.orphan() || self.delete_ahead() || self.delete_dependents() || self.empty_namespaces() {}
    }

    fn all_stored(&self) -> Vec<Stored> {
        let all = self.everything();
        all.map(|(id, key, object)| (id.clone(), key.clone(), object.clone()))
            .collect()
    }

    /// `propagationPolicy: Orphan`: removes the owner reference from the dependents, then the finalizer from the
    /// object.
    fn orphan(&mut self) -> bool {
        let stored = self.all_stored();
        let Some(owner) = stored.iter().find(|object| is_held(&object.2, "orphan")) else {
            return false;
        };
        let uid = string_at(&owner.2, "/metadata/uid");
        for (id, key, object) in stored
            .iter()
            .filter(|object| owners(&object.2).any(|owner| owner == uid))
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

    /// `propagationPolicy: Foreground`: deletes the blocking dependents first, then the object.
    fn delete_ahead(&mut self) -> bool {
        let stored = self.all_stored();
        let held: Vec<&Stored> = stored
            .iter()
            .filter(|object| is_held(&object.2, "foregroundDeletion"))
            .collect();
        for owner in held {
            let uid = string_at(&owner.2, "/metadata/uid");
            let blocking: Vec<&Stored> = stored
                .iter()
                .filter(|object| {
                    references(&object.2).any(|one| one["uid"] == uid && one["blockOwnerDeletion"] == true)
                })
                .collect();
            let Some(next) = blocking.iter().find(|object| !is_going(&object.2)) else {
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

    /// Deletes an object all of whose owners are gone.
    fn delete_dependents(&mut self) -> bool {
        let stored = self.all_stored();
        let uids: HashSet<&str> = stored
            .iter()
            .map(|object| string_at(&object.2, "/metadata/uid"))
            .collect();
        let lost = stored.iter().find(|object| {
            let mut owners = owners(&object.2).peekable();
            owners.peek().is_some() && !is_going(&object.2) && owners.all(|owner| !uids.contains(owner))
        });
        lost.inspect(|object| self.sweep(object)).is_some()
    }

    fn empty_namespaces(&mut self) -> bool {
        let namespaces = ResourceId::namespaces();
        let stored = self.all_stored();
        let going = stored
            .iter()
            .filter(|(id, _, object)| *id == namespaces && is_going(object));
        for namespace in going {
            let inside: Vec<&Stored> = stored
                .iter()
                .filter(|(_, key, _)| key.0 == namespace.1.1)
                .collect();
            if let Some(next) = inside.iter().find(|object| !is_going(&object.2)) {
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

    /// Deletes an object with background propagation.
    fn sweep(&mut self, (id, key, object): &Stored) {
        let mut object = Value::clone(object);
        object["metadata"]["deletionTimestamp"] = self.now().into();
        object["metadata"]["deletionGracePeriodSeconds"] = 0.into();
        self.settle(id, key.clone(), object);
    }

    fn release(&mut self, (id, key, _): &Stored, finalizer: &str) {
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

/// Returns the uids of an object's owners.
fn owners(object: &Value) -> impl Iterator<Item = &str> {
    references(object).map(|reference| string_at(reference, "/uid"))
}

//! Notices that a reconcile applies two sets of one owner, which would delete each other's objects.

use std::sync::{Arc, Mutex, PoisonError};

use super::claim::SetOwner;
use super::record::Entry;
use crate::error::Error;
use crate::hash::{HashMap, HashSet};

/// Number of instances that are kept for reuse. There are only more if contexts outlive their reconcile.
const MOST_SPARE: usize = 64;

/// Instances for concurrent reconciles. They are reused, so that a reconcile without a set allocates
/// nothing.
#[derive(Default)]
pub(in crate::ctx) struct AppliedSetsPool(Mutex<Vec<Arc<AppliedSets>>>);

impl AppliedSetsPool {
    /// Returns an empty instance that no other reconcile uses.
    pub(in crate::ctx) fn take(&self) -> Arc<AppliedSets> {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody else can clone an instance that only the pool has.
        if let Some(free) = pool.iter().find(|sets| Arc::strong_count(sets) == 1) {
            free.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
            return Arc::clone(free);
        }
        let new = Arc::<AppliedSets>::default();
        if pool.len() < MOST_SPARE {
            pool.push(Arc::clone(&new));
        }
        new
    }
}

/// Objects of the sets that were applied in one reconcile, by the UIDs of their owners.
#[derive(Default)]
pub(in crate::ctx) struct AppliedSets(Mutex<HashMap<String, HashSet<Entry>>>);

impl AppliedSets {
    /// Returns an error if the reconcile has already applied a set of this owner with other objects.
    pub(super) fn check(&self, owner: &SetOwner, wanted: &[Entry]) -> Result<(), Error> {
        let wanted: HashSet<Entry> = wanted.iter().cloned().collect();
        let mut applied = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = applied.entry(owner.uid.clone()).or_insert_with(|| wanted.clone());
        let Some(different) = before
            .symmetric_difference(&wanted)
            .min_by_key(|entry| entry.to_string())
        else {
            return Ok(());
        };
        let which = match wanted.contains(different) {
            true => "second",
            false => "first",
        };
        Err(Error::terminal(format!(
            "a reconcile of the controller `{}` has applied two sets of {}, and {different} is only in the {which} one: each \
             would delete the objects of the other. A controller has one set per owner; add all objects to one \
             `ApplySet`, or apply the other set in a controller with another name",
            owner.controller, owner.described
        )))
    }
}

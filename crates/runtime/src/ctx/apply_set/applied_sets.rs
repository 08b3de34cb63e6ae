//! Notices that a reconcile applies two sets of one owner, which would delete each other's objects.

use std::sync::{Mutex, PoisonError};

use super::claim::SetOwner;
use super::record::Entry;
use crate::error::Error;
use crate::hash::{HashMap, HashSet};

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

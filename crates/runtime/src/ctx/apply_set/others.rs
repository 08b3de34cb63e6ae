//! Sets of other controllers with the same owner.
//!
//! An object can move from the set of one controller to the set of another one when the owner
//! changes. Both controllers learn about the change, in any order, and the object must not be deleted
//! in between. Therefore:
//!
//! - No object is deleted that the record of another controller contains.
//! - No object is deleted before all other controllers have seen the same generation of the owner.
//!   Meanwhile, the record says that the object is leaving, so another set may take it over.
//! - A set only applies an object of another set if it's leaving there. Otherwise, the object is
//!   recorded without a UID as a claim, and the other controller hands it over once its own set no
//!   longer contains it.

use kube::core::{ObjectMeta, Status};

use super::claim::{SetOwner, controllers_with_records};
use super::record::{Entry, Record};
use crate::error::{Error, OwnershipError};

pub(super) struct OtherSets {
    records: Vec<(String, Record)>,
}

impl OtherSets {
    pub(super) fn read(meta: &ObjectMeta, owner: &SetOwner) -> Result<Self, Error> {
        let mut records = Vec::new();
        for (controller, name) in controllers_with_records(meta) {
            let is_ours = owner.records().any(|ours| ours == name);
            if !is_ours && let Some(record) = Record::read(meta, owner, name)? {
                records.push((controller.to_owned(), record));
            }
        }
        Ok(Self { records })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns `true` if another set contains the object, is about to, or is about to release it.
    pub(super) fn have(&self, entry: &Entry) -> bool {
        self.records.iter().any(|(_, record)| record.get(entry).is_some())
    }

    /// Returns `true` if another set contains the object, or is about to.
    pub(super) fn contain(&self, entry: &Entry) -> bool {
        self.objects().any(|object| object == entry)
    }

    /// Returns the objects of all other sets.
    pub(super) fn objects(&self) -> impl Iterator<Item = &Entry> {
        let objects = self.records.iter().flat_map(|(_, record)| record.objects());
        let staying = objects.filter(|object| !object.is_leaving);
        staying.map(|object| &object.entry)
    }

    /// Returns a controller that has not seen this generation of the owner, and may still want what
    /// the set no longer contains.
    pub(super) fn find_outdated(&self, generation: Option<i64>) -> Option<&str> {
        // Some kinds have no generations.
        let generation = generation?;
        let has_seen = |record: &Record| record.generation.is_some_and(|seen| seen >= generation);
        let mut outdated = self.records.iter().filter(|(_, record)| !has_seen(record));
        outdated.next().map(|(controller, _)| &**controller)
    }

    /// Returns an error if the object belongs to another set. `record` is ours.
    pub(super) fn check_claim(
        &self,
        owner: &SetOwner,
        record: &Record,
        entry: &Entry,
        generation: Option<i64>,
    ) -> Result<(), Error> {
        let is_applied = |record: &Record| record.get(entry).is_some_and(|object| object.uid.is_some());
        // If both sets have applied the object or none has, the names decide.
        let rank = |controller: &str, record: &Record| (!is_applied(record), controller.to_owned());
        let ours = rank(&owner.controller, record);
        let holder = self.records.iter().find(|(controller, other)| {
            let is_member = other.get(entry).is_some_and(|object| !object.is_leaving);
            is_member && rank(controller, other) < ours
        });
        let Some((holder, other)) = holder else {
            return Ok(());
        };
        let error = OwnershipError::InOtherSet {
            object: entry.to_string(),
            owner: owner.described.clone(),
            controller: owner.controller.clone(),
            other: holder.clone(),
        };
        let may_leave = generation.is_some_and(|current| other.generation.is_none_or(|seen| seen < current));
        Err(match may_leave {
            // Most likely the other controller is about to release the object. Conflicts are retried
            // a few times without logging an error.
            true => {
                let conflict = Status::failure(&error.to_string(), "Conflict").with_code(409);
                kube::Error::Api(conflict.boxed()).into()
            }
            false => error.into(),
        })
    }
}

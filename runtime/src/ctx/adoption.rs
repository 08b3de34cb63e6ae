//! The check of an owner before it adopts an object.
//!
//! Kubernetes' own controllers act for an owner only while it has no deletion timestamp, and ask the API server again
//! before they adopt, because their caches may lag behind. Otherwise `kubectl delete --cascade=orphan` deletes what it
//! should keep: the garbage collector releases the object, the controller of the deleted owner adopts it again, and the
//! object is collected with its owner.
//!
//! Creating needs no such check, and so costs no further request: an object that was created for an owner that is gone is
//! deleted by the garbage collector, and nobody misses it. Neither does an object that the owner controls already: its
//! apply carries the resource version at which it did.

use kube::ResourceExt;
use kube::api::ListParams;

use super::Ctx;
use super::ownership::new_terminating_error;
use crate::error::{Error, OwnershipError};
use crate::object::{AnyObject, describe_object};

impl<S> Ctx<S> {
    /// Checks with the API server that `owner` still exists and is not being deleted, before it adopts `object`.
    ///
    /// This is a list with one name, because a controller's role has `list` on its kind, and may not have `get`.
    pub(super) async fn check_adoption<O: AnyObject, C: AnyObject>(
        &self,
        owner: &O,
        object: &C,
    ) -> Result<(), Error> {
        let api = self.api_of(&self.kind_of(owner).await?, owner);
        let named = ListParams::default().fields(&format!("metadata.name={}", owner.name_any()));
        let found = api.list_metadata(&named).await?;
        let uid = owner.uid();
        match found.iter().find(|found| found.uid() == uid) {
            None => Err(OwnershipError::OwnerGone {
                object: describe_object(object),
                owner: describe_object(owner),
                uid: uid.unwrap_or_default(),
            }
            .into()),
            Some(found) if found.metadata.deletion_timestamp.is_some() => {
                Err(new_terminating_error(owner, object).into())
            }
            Some(_) => Ok(()),
        }
    }
}

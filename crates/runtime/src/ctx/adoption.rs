//! Checks an owner before it adopts an object.
//!
//! Kubernetes' own controllers only act for an owner that has no deletion timestamp, and they ask
//! the API server again before adopting, because their caches may lag behind. Otherwise `kubectl
//! delete --cascade=orphan` would delete what it should keep: the garbage collector releases the
//! object, the controller of the deleted owner adopts it again, and the object is then collected
//! with its owner.
//!
//! Creating an object needs no such check and therefore no extra request: if the owner is gone, the
//! garbage collector deletes the object, and nobody misses it. An object that the owner already
//! controls needs none either, because its apply carries the resource version at which the owner
//! controlled it.

use kube::ResourceExt;
use kube::api::ListParams;

use super::Ctx;
use super::ownership::new_terminating_error;
use crate::error::{Error, OwnershipError};
use crate::object::{AnyObject, describe_object};

impl<S> Ctx<S> {
    /// Checks with the API server that `owner` still exists and is not being deleted, before it adopts `object`.
    ///
    /// Uses a list by name, because a controller's role has `list` on its kind but may lack `get`.
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

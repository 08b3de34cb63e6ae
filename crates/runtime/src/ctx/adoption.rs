//! Validates owners before they adopt an object.
//!
//! Controllers in Kubernetes do nothing on behalf of an owner with a deletion timestamp. Since
//! their caches may be stale, they also ask the API server before adopting an object. Otherwise,
//! `kubectl delete --cascade=orphan` would delete the objects it is supposed to keep: the garbage
//! collector orphans an object, the owner's controller adopts it again, and it's collected along
//! with its owner.
//!
//! Creating an object needs no such check (hence no additional request): if the owner is gone, the
//! garbage collector deletes the new object, which had no users anyway. Objects already controlled by
//! the owner need no check either, because the apply includes the resource version at which that was
//! true.

use kube::ResourceExt;
use kube::api::ListParams;

use super::Ctx;
use super::ownership::new_terminating_error;
use crate::error::{Error, OwnershipError};
use crate::object::{AnyObject, describe_object};

impl<S> Ctx<S> {
    /// Asks the API server whether `owner` still exists and isn't being deleted. Must be called
    /// before the owner adopts `object`.
    pub(super) async fn check_adoption<O: AnyObject, C: AnyObject>(
        &self,
        owner: &O,
        object: &C,
    ) -> Result<(), Error> {
        let api = self.api_of(&self.kind_of(owner).await?, owner);
        // List by name instead of using a get: a controller's role has `list` on its kind, but not
        // necessarily `get`.
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

//! Creates owned objects that do not change afterwards.

use std::sync::Arc;

use kube::ResourceExt;
use kube::api::PostParams;
use serde::Serialize;

use super::Ctx;
use super::ownership::{check_namesake, is_controlled_by};
use crate::cache::to_json;
use crate::error::{Error, OwnershipError};
use crate::object::{AnyObject, Key, Kind, describe_object};

impl<S> Ctx<S> {
    /// Creates an object controlled by `owner`. If `owner` already controls an object with the same
    /// name, returns the existing object instead.
    ///
    /// Use this for objects that are created once and never updated (e.g. Jobs), or if the owner
    /// must not take over existing objects. Unlike [`apply_owned`](Self::apply_owned), this doesn't
    /// modify existing objects, and does not adopt objects without a controller.
    ///
    /// No request is sent if the object is in a cache of whole objects. By default, the object is
    /// created in the namespace of its owner. The field manager is the controller name.
    ///
    /// # Errors
    ///
    /// Returns an [`OwnershipError`] in these cases:
    ///
    /// - An object with the same name exists and is not controlled by `owner`.
    /// - The owner is being deleted.
    /// - The owner cannot own the object because of their scopes.
    ///
    /// Otherwise, returns the response of the API server as a [`kube::Error`].
    pub async fn create_owned<O: AnyObject, C: AnyObject + Serialize>(
        &self,
        owner: &O,
        mut child: C,
    ) -> Result<C, Error> {
        self.check_owner_cluster(owner, &child)?;
        let kind = self.kind_of(&child).await?;
        self.own(owner, &mut child, &kind)?;
        if let Some(existing) = self.find_whole(&kind, &child) {
            return Ok(check_controlled_by(owner, existing)?);
        }
        let api = self.api_of(&kind, &child);
        let params = PostParams {
            field_manager: Some(self.controller().to_owned()),
            ..PostParams::default()
        };
        match self.send_write(&kind, to_json, api.create(&params, &child)).await {
            // There is no cache, or it doesn't contain the object yet.
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                let existing = api.get(&child.name_any()).await?;
                Ok(check_controlled_by(owner, existing)?)
            }
            created => {
                let created = created?;
                self.record_created(&kind, &created);
                Ok(created)
            }
        }
    }

    fn find_whole<C: AnyObject>(&self, kind: &Kind<C>, child: &C) -> Option<C> {
        let found = self.shared.caches.get_consistent(kind, &Key::of(child));
        found.map(Arc::unwrap_or_clone)
    }
}

fn check_controlled_by<O: AnyObject, C: AnyObject>(owner: &O, existing: C) -> Result<C, OwnershipError> {
    if is_controlled_by(existing.meta(), owner) {
        return Ok(existing);
    }
    check_namesake(owner, &existing)?;
    Err(OwnershipError::NotOwned {
        object: describe_object(&existing),
        owner: describe_object(owner),
    })
}

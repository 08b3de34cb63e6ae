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
    /// Creates an object with `owner` as its controller, or returns the existing one if `owner` already controls it.
    ///
    /// Use it for objects that are created once and then left alone, such as a Job, and for owners that must not take
    /// over existing objects: unlike [`apply_owned`](Self::apply_owned), it neither changes an existing object nor adopts
    /// one without a controller. If whole objects of the kind are cached, an object found there costs no request.
    ///
    /// The object defaults to the owner's namespace; the field manager is the controller's name.
    ///
    /// # Errors
    /// [`OwnershipError`] if an object with this name exists and `owner` is not its controller, if
    /// the owner is being deleted, or if the scopes do not allow the ownership. Otherwise the
    /// response of the API server as a [`kube::Error`].
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

    /// Returns the cached object with this name, if whole objects of the kind are cached.
    fn find_whole<C: AnyObject>(&self, kind: &Kind<C>, child: &C) -> Option<C> {
        let found = self.shared.caches.get_consistent(kind, &Key::of(child));
        found.map(Arc::unwrap_or_clone)
    }
}

/// Returns `existing` if `owner` is its controller.
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

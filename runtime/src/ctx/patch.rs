//! Patches that the caller writes, bound to the uid of the object: one that was created in its place is not changed.

use std::fmt::Debug;

use kube::api::{Patch, PatchParams};
use serde::Serialize;

use super::Ctx;
use crate::error::Error;
use crate::object::AnyObject;

impl<S> Ctx<S> {
    /// Changes an object with a patch, and returns the result. Readers of the caches see it at once.
    ///
    /// `patch` can be any of kube's: a merge patch changes the fields that it contains, and a JSON patch is a list of
    /// operations, with tests that must hold for any of them to be carried out. Only the name, namespace and uid of
    /// `object` are used: with a uid, as in every object from a cache, only that very object is changed, not one that was
    /// created in its place. A patch that must not change a newer version has `metadata.resourceVersion`. The field manager
    /// is the controller's name. The status is not written; see [`patch_status`](Self::patch_status).
    ///
    /// Prefer [`apply`](Self::apply) for the fields that the controller manages: it removes those that are no longer
    /// wanted, and it is not sent if it changes nothing.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube::api::Patch;
    /// # use rbuilder::{Ctx, Result};
    /// # use serde_json::json;
    /// # async fn mark(ctx: Ctx<()>, map: Arc<ConfigMap>) -> Result<()> {
    /// let seen = Patch::Merge(json!({ "metadata": { "annotations": { "example.com/seen": "yes" } } }));
    /// ctx.patch(&*map, &seen).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The response of the API server, as [`kube::Error`]: a conflict for an outdated resource version, or if another
    /// object has taken the place of this one; 422 for a JSON patch whose test does not hold. For a [`Patch::Apply`],
    /// [`FieldManagerConflict`](crate::FieldManagerConflict) as for [`apply`](Self::apply).
    pub async fn patch<K: AnyObject, P: Serialize + Debug>(
        &self,
        object: &K,
        patch: &Patch<P>,
    ) -> Result<K, Error> {
        let kind = self.kind_of(object).await?;
        self.send_bound(&kind, object, &self.patch_params(patch), patch)
            .await
    }

    /// [`patch`](Self::patch) for the status subresource.
    ///
    /// Prefer [`apply_status`](Self::apply_status). A patch is for fields that several writers share, such as one
    /// condition in a list of them.
    ///
    /// # Errors
    /// Those of [`patch`](Self::patch).
    pub async fn patch_status<K: AnyObject, P: Serialize + Debug>(
        &self,
        object: &K,
        patch: &Patch<P>,
    ) -> Result<K, Error> {
        let kind = self.kind_of(object).await?;
        self.send_bound_status(&kind, object, &self.patch_params(patch), patch)
            .await
    }

    fn patch_params<P: Serialize>(&self, patch: &Patch<P>) -> PatchParams {
        match patch {
            Patch::Apply(_) => self.apply_params(),
            _ => PatchParams {
                field_manager: Some(self.controller().to_owned()),
                ..PatchParams::default()
            },
        }
    }
}

//! User-provided patches. They include the object's UID, so that they can't modify another object
//! created in its place.

use std::fmt::Debug;

use kube::api::{Patch, PatchParams};
use serde::Serialize;

use super::Ctx;
use crate::error::Error;
use crate::object::AnyObject;

impl<S> Ctx<S> {
    /// Modifies an object with a patch, and returns the result, which is immediately visible to
    /// readers of the caches.
    ///
    /// All kinds of [`Patch`] are supported. Merge patches set the fields that they contain; JSON
    /// patches are a list of operations that are only carried out if all of their tests succeed.
    /// The field manager is the controller's name. To patch the status, use
    /// [`patch_status`](Self::patch_status).
    ///
    /// Only the name, the namespace and the UID of `object` are used. If it has a UID (which is
    /// always the case if it comes from a cache), another object created in its place is not
    /// modified. To rule out newer versions of the object as well, include
    /// `metadata.resourceVersion` in the patch.
    ///
    /// Prefer [`apply`](Self::apply) for fields managed by the controller: it removes fields that
    /// are no longer needed, and makes no request if nothing would change.
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
    ///
    /// Returns the response of the API server as a [`kube::Error`]. This is a conflict if the
    /// resource version is outdated or the object was replaced by another one, and 422 if a `test`
    /// operation in a JSON patch fails. A [`Patch::Apply`] may result in a
    /// [`FieldManagerConflict`](crate::FieldManagerConflict), as with [`apply`](Self::apply).
    pub async fn patch<K: AnyObject, P: Serialize + Debug>(
        &self,
        object: &K,
        patch: &Patch<P>,
    ) -> Result<K, Error> {
        let kind = self.placed_kind_of(object).await?;
        self.send_bound(&kind, object, &self.patch_params(patch), patch)
            .await
    }

    /// Modifies the status with a patch. See [`patch`](Self::patch).
    ///
    /// Prefer [`apply_status`](Self::apply_status) unless the field has several writers, e.g. for a
    /// single condition in a list.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`patch`](Self::patch).
    pub async fn patch_status<K: AnyObject, P: Serialize + Debug>(
        &self,
        object: &K,
        patch: &Patch<P>,
    ) -> Result<K, Error> {
        let kind = self.placed_kind_of(object).await?;
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

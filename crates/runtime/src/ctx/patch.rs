//! User-supplied patches, bound to the UID of the object so that they cannot change another object
//! created in its place.

use std::fmt::Debug;

use kube::api::{Patch, PatchParams};
use serde::Serialize;

use super::Ctx;
use crate::error::Error;
use crate::object::AnyObject;

impl<S> Ctx<S> {
    /// Changes an object with a patch, and returns the result. Readers of the caches see it at
    /// once.
    ///
    /// `patch` can be any of kube's. A merge patch changes the fields that it contains. A JSON
    /// patch is a list of operations, which are only carried out if all tests among them hold. Only
    /// the name, namespace and UID of `object` are used. If it has a UID, as every object from a
    /// cache does, only that very object is changed, not one created in its place. To not change a
    /// newer version either, set `metadata.resourceVersion` in the patch. The field manager is the
    /// controller's name. The status is not written; see [`patch_status`](Self::patch_status).
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
    /// The response of the API server as a [`kube::Error`]: a conflict for an outdated resource
    /// version or if another object has taken the place of this one, and 422 for a JSON patch with
    /// a failing test. For a [`Patch::Apply`],
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

    /// Changes the status subresource with a patch; see [`patch`](Self::patch).
    ///
    /// Prefer [`apply_status`](Self::apply_status). A patch is for fields that several writers
    /// share, such as a single condition in a list.
    ///
    /// # Errors
    /// Fails like [`patch`](Self::patch).
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

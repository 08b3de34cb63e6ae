//! Deleting objects.

use kube::ResourceExt;
use kube::api::{DeleteParams, Preconditions};
use kube::core::Status;

use super::Ctx;
use crate::cache::to_json;
use crate::error::Error;
use crate::object::{AnyObject, Key};

impl<S> Ctx<S> {
    /// Deletes an object. Returns `None` if it is gone, also if it was before, and otherwise the object with its deletion
    /// timestamp: finalizers or a grace period hold it.
    ///
    /// With a uid in `object`, as in every object from a cache, only that very object is deleted, not one that was
    /// created in its place. Objects that it owns are deleted in the background. Readers of the caches do not see an
    /// object that is gone, and watches are notified as soon as the API server reports the deletion.
    ///
    /// Owned objects need not be deleted with their owner: the garbage collector does that.
    ///
    /// # Errors
    /// A conflict when another object has taken the place of this one, which a controller retries without logging an
    /// error; otherwise the response of the API server, as [`kube::Error`].
    pub async fn delete<K: AnyObject>(&self, object: &K) -> Result<Option<K>, Error> {
        self.delete_with(object, &DeleteParams::background()).await
    }

    /// [`delete`](Self::delete) with kube's parameters: propagation, grace period, and preconditions in place of the uid of
    /// `object`.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::batch::v1::Job;
    /// # use kube::api::{DeleteParams, Preconditions};
    /// # use rbuilder::{Ctx, Result};
    /// # async fn retire(ctx: Ctx<()>, job: Arc<Job>) -> Result<()> {
    /// // Not if it has changed since it was read; and its Pods first.
    /// let unchanged = Preconditions {
    ///     resource_version: job.metadata.resource_version.clone(),
    ///     uid: job.metadata.uid.clone(),
    /// };
    /// ctx.delete_with(&*job, &DeleteParams::foreground().preconditions(unchanged)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A conflict when a precondition does not hold; otherwise the response of the API server, as [`kube::Error`].
    pub async fn delete_with<K: AnyObject>(
        &self,
        object: &K,
        params: &DeleteParams,
    ) -> Result<Option<K>, Error> {
        let mut params = params.clone();
        if params.preconditions.is_none() {
            params.preconditions = object.uid().map(|uid| Preconditions {
                uid: Some(uid),
                resource_version: None,
            });
        }
        let kind = self.kind_of(object).await?;
        let (api, key) = (self.api_of(&kind, object), Key::of(object));
        let pending = self.caches().begin_write(&kind, to_json);
        let answer = match api.delete(&object.name_any(), &params).await {
            Ok(answer) if params.dry_run => return Ok(answer.left()),
            Ok(answer) => answer,
            Err(kube::Error::Api(status)) if status.is_not_found() => {
                pending.finish_deletion(&key, &object.uid().unwrap_or_default());
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let uid_of = |status: &Status| status.details.as_ref().map(|details| details.uid.clone());
        let gone = |uid: Option<String>| (None, uid);
        let (left, uid) = answer.either(
            |left| match left.meta().deletion_timestamp {
                Some(_) => (Some(left), None),
                // Some kinds, such as Service, answer with the object as it was.
                None => gone(left.uid()),
            },
            |status| gone(uid_of(&status)),
        );
        match left {
            Some(mut left) => Ok(pending.finish(&mut left).then_some(left)),
            None => {
                pending.finish_deletion(&key, &uid.unwrap_or_default());
                Ok(None)
            }
        }
    }
}

//! Deletes objects.

use kube::ResourceExt;
use kube::api::{DeleteParams, Preconditions};
use kube::core::Status;

use super::Ctx;
use crate::cache::to_json;
use crate::error::Error;
use crate::object::{AnyObject, Key};

impl<S> Ctx<S> {
    /// Deletes an object.
    ///
    /// Returns `None` if the object is gone, even if it never existed. If finalizers or a grace
    /// period delay its deletion, returns the object with its deletion timestamp.
    ///
    /// If `object` has a UID (which is always the case if it comes from a cache), another object
    /// created in its place is not deleted. Dependents are deleted in the background. Once the
    /// object is gone, it's also hidden from readers of the caches. Watches are notified when the
    /// API server reports the deletion.
    ///
    /// There is usually no need to delete owned objects when their owner is deleted, because the
    /// garbage collector does that.
    ///
    /// # Errors
    ///
    /// Returns a conflict if the object was replaced by another one. Controllers retry this without
    /// logging an error. Otherwise, returns the response of the API server as a [`kube::Error`].
    pub async fn delete<K: AnyObject>(&self, object: &K) -> Result<Option<K>, Error> {
        self.delete_with(object, &DeleteParams::background()).await
    }

    /// Deletes an object with parameters, e.g. a propagation policy, a grace period, or
    /// preconditions. Note that preconditions replace the one for the UID of `object`. See
    /// [`delete`](Self::delete) for a description of the result.
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
    ///
    /// Returns a conflict if a precondition is not met. Otherwise, returns the response of the API
    /// server as a [`kube::Error`].
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
        let kind = self.placed_kind_of(object).await?;
        let (api, key) = (self.api_of(&kind, object), Key::of(object));
        let pending = self.caches().begin_write(&kind, to_json);
        let answer = match api.delete(&object.name_any(), &params).await {
            Ok(answer) if params.dry_run => return Ok(answer.left()),
            Ok(answer) => answer,
            Err(kube::Error::Api(status)) if status.is_not_found() => {
                // The caches may still contain the object, so hide it there as well.
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
                // Some kinds (e.g. Service) respond with the object from before the deletion.
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

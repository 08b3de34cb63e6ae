//! Deletes objects that are no longer part of a set.

use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::core::{GroupVersionKind, ObjectMeta, PartialObjectMeta};
use kube::{Api, ResourceExt, discovery};
use serde_json::json;

use super::claim::{SetOwner, is_kept};
use super::record::Entry;
use crate::ctx::{Ctx, to_test_conflict};
use crate::error::Error;

/// Returns `true` if the object doesn't exist or its kind isn't served.
pub(super) fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

impl<S> Ctx<S> {
    /// Deletes an object that left the set, if it's still the recorded object and owned by `owner`.
    /// Returns `true` if finalizers delay the deletion.
    pub(super) async fn prune(
        &self,
        owner: &SetOwner,
        entry: &Entry,
        uid: Option<String>,
    ) -> Result<bool, Error> {
        let Some((api, found)) = self.find_recorded(entry).await? else {
            return Ok(false);
        };
        // A recreated object belongs to whoever created it.
        let is_recorded = uid.is_none() || uid == found.uid();
        if !is_recorded || !owner.owns(&found.metadata) {
            return Ok(false);
        }
        if is_kept(&found.metadata) {
            self.release(owner, &api, &found.metadata).await?;
            return Ok(false);
        }
        if found.metadata.deletion_timestamp.is_some() {
            return Ok(true);
        }
        let unchanged = Preconditions {
            uid: found.uid(),
            resource_version: found.resource_version(),
        };
        let params = DeleteParams::background().preconditions(unchanged);
        match api.delete(&entry.name, &params).await {
            // For some kinds, the API server returns the object from before the deletion.
            Ok(answer) => Ok(answer
                .left()
                .is_some_and(|left| left.metadata.deletion_timestamp.is_some())),
            Err(error) if is_not_found(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the owner reference from an object that must be kept; it would be deleted along with
    /// its old owner otherwise.
    async fn release(
        &self,
        owner: &SetOwner,
        api: &Api<DynamicObject>,
        found: &ObjectMeta,
    ) -> Result<(), Error> {
        let Some(index) = owner.reference_index(found) else {
            return Ok(());
        };
        // The index may be outdated when the patch arrives, so test the entry.
        let path = format!("/metadata/ownerReferences/{index}");
        let patch = serde_json::from_value(json!([
            { "op": "test", "path": "/metadata/uid", "value": found.uid },
            { "op": "test", "path": format!("{path}/uid"), "value": owner.uid },
            { "op": "remove", "path": path },
        ]))?;
        let params = PatchParams {
            field_manager: Some(self.controller().to_owned()),
            ..PatchParams::default()
        };
        let name = found.name.as_deref().unwrap_or_default();
        let patched = api.patch_metadata(name, &params, &Patch::Json::<()>(patch)).await;
        patched.map_err(to_test_conflict)?;
        Ok(())
    }

    /// Finds a recorded object, and the API to access it with.
    async fn find_recorded(
        &self,
        entry: &Entry,
    ) -> Result<Option<(Api<DynamicObject>, PartialObjectMeta<DynamicObject>)>, Error> {
        let kind = GroupVersionKind::gvk(&entry.group, &entry.version, &entry.kind);
        let recorded = ApiResource::from_gvk_with_plural(&kind, &entry.plural);
        if let Some(found) = self.find_with(&recorded, entry).await? {
            return Ok(Some(found));
        }
        // The API version that was used to apply the object may no longer be served.
        match self.find_served(entry).await? {
            Some(served) if served.api_version != recorded.api_version => {
                self.find_with(&served, entry).await
            }
            _ => Ok(None),
        }
    }

    async fn find_with(
        &self,
        resource: &ApiResource,
        entry: &Entry,
    ) -> Result<Option<(Api<DynamicObject>, PartialObjectMeta<DynamicObject>)>, Error> {
        let api = match entry.namespace() {
            Some(namespace) => Api::namespaced_with(self.client(), namespace, resource),
            None => Api::all_with(self.client(), resource),
        };
        match api.get_metadata(&entry.name).await {
            Ok(found) => Ok(Some((api, found))),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn find_served(&self, entry: &Entry) -> Result<Option<ApiResource>, Error> {
        // The core group only has one version.
        if entry.group.is_empty() {
            return Ok(None);
        }
        match discovery::group(&self.client(), &entry.group).await {
            Ok(group) => Ok(group.recommended_kind(&entry.kind).map(|(resource, _)| resource)),
            Err(kube::Error::Discovery(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

//! Deletes objects that are no longer part of a set.

use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::core::ObjectMeta;
use kube::{Api, discovery};
use serde_json::{Value, json};

use super::claim::{OWNER, SetOwner, is_kept};
use super::record::{Entry, Recorded};
use crate::ctx::{Ctx, to_test_conflict};
use crate::error::Error;

/// Returns `true` if the object doesn't exist or its kind isn't served.
pub(super) fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// An object that is no longer part of a set, in the API server.
pub(super) struct Found {
    pub(super) api: Api<DynamicObject>,
    pub(super) meta: ObjectMeta,
}

impl Found {
    /// Returns `true` if the object may be deleted as far as the object itself shows. A recreated
    /// object belongs to whoever created it.
    pub(super) fn belongs_to(&self, owner: &SetOwner, recorded: &Recorded) -> bool {
        let is_recorded = recorded.uid.is_none() || recorded.uid == self.meta.uid;
        is_recorded && owner.owns(&self.meta)
    }
}

/// Returns the JSON pointer of a label or an annotation.
fn path_to(field: &str, name: &str) -> String {
    format!("/metadata/{field}/{}", name.replace('/', "~1"))
}

impl<S> Ctx<S> {
    /// Deletes an object, unless it has changed since it was read or must be kept. Returns `true` if
    /// finalizers delay the deletion.
    pub(super) async fn prune(&self, owner: &SetOwner, found: &Found) -> Result<bool, Error> {
        let Found { api, meta } = found;
        if is_kept(meta) {
            self.release(owner, found).await?;
            return Ok(false);
        }
        if meta.deletion_timestamp.is_some() {
            return Ok(true);
        }
        let unchanged = Preconditions {
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
        };
        let params = DeleteParams::background().preconditions(unchanged);
        match api
            .delete(meta.name.as_deref().unwrap_or_default(), &params)
            .await
        {
            // For some kinds, the API server returns the object from before the deletion.
            Ok(answer) => Ok(answer
                .left()
                .is_some_and(|left| left.metadata.deletion_timestamp.is_some())),
            Err(error) if is_not_found(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the owner reference from an object that must be kept; it would be deleted along with
    /// its old owner otherwise. The annotation that replaces the reference lets a recreated owner take
    /// the object over.
    pub(super) async fn release(&self, owner: &SetOwner, found: &Found) -> Result<(), Error> {
        let Some(index) = owner.reference_index(&found.meta) else {
            return Ok(());
        };
        // The index may be outdated when the patch arrives, so test the entry.
        let path = format!("/metadata/ownerReferences/{index}");
        self.patch_found(
            found,
            json!([
                { "op": "test", "path": format!("{path}/uid"), "value": owner.uid },
                { "op": "remove", "path": path },
                { "op": "add", "path": path_to("annotations", OWNER), "value": owner.mark },
            ]),
        )
        .await
    }

    /// Removes the labels of this controller's set from an object that another controller has taken
    /// over.
    pub(super) async fn hand_over(&self, owner: &SetOwner, found: &Found) -> Result<(), Error> {
        let labels = found.meta.labels.as_ref();
        let label = |name: &&String| labels.is_some_and(|labels| labels.contains_key(*name));
        let removals = owner
            .records()
            .filter(label)
            .map(|name| json!({ "op": "remove", "path": path_to("labels", name) }));
        let removals: Vec<Value> = removals.collect();
        match removals.is_empty() {
            true => Ok(()),
            false => self.patch_found(found, Value::Array(removals)).await,
        }
    }

    async fn patch_found(&self, found: &Found, operations: Value) -> Result<(), Error> {
        let mut all = vec![json!({ "op": "test", "path": "/metadata/uid", "value": found.meta.uid })];
        all.extend(operations.as_array().into_iter().flatten().cloned());
        let params = PatchParams {
            field_manager: Some(self.controller().to_owned()),
            ..PatchParams::default()
        };
        let name = found.meta.name.as_deref().unwrap_or_default();
        let patch = Patch::Json::<()>(serde_json::from_value(Value::Array(all))?);
        let patched = found.api.patch_metadata(name, &params, &patch).await;
        patched.map_err(to_test_conflict)?;
        Ok(())
    }

    /// Finds a recorded object, and the API to access it with.
    pub(super) async fn find_recorded(&self, entry: &Entry) -> Result<Option<Found>, Error> {
        let recorded = entry.resource();
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

    async fn find_with(&self, resource: &ApiResource, entry: &Entry) -> Result<Option<Found>, Error> {
        let api = entry.api(self.client(), resource);
        match api.get_metadata(&entry.name).await {
            Ok(found) => Ok(Some(Found {
                api,
                meta: found.metadata,
            })),
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

//! Ensures that a write affects the object that was read, and not another one created in its place.
//!
//! | write | precondition |
//! |---|---|
//! | apply, merge patch | the UID in the body |
//! | JSON patch | a test of the UID as the first operation |
//! | apply or merge patch of the status | also the resource version: when the status of a custom resource is written, kube-apiserver ignores all other metadata |
//!
//! A resource version alone would be too strict, since every write changes it. If a status is
//! rejected because of its resource version, we check that the API server still has the same
//! object, then retry.

use std::fmt::Debug;

use kube::api::{Patch, PatchParams};
use kube::core::Status;
use kube::{Api, ResourceExt};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Ctx, to_bound_apply_error, to_conflict};
use crate::cache::{KnownObject, to_json};
use crate::error::Error;
use crate::object::{AnyObject, Kind};

/// Maximum number of retries of a status after concurrent changes to the object.
const RETRIES: usize = 4;

#[derive(Clone, Copy, Default)]
struct Conditions<'a> {
    uid: Option<&'a str>,
    resource_version: Option<&'a str>,
}

impl<S> Ctx<S> {
    pub(super) async fn send_bound<K: AnyObject, P: Serialize + Debug>(
        &self,
        kind: &Kind<K>,
        object: &K,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<K, Error> {
        let (api, name) = (self.api_of(kind, object), object.name_any());
        let conditions = Conditions {
            uid: object.meta().uid.as_deref(),
            ..Conditions::default()
        };
        let patch = bind(patch, conditions)?;
        match self
            .send_write(kind, to_json, api.patch(&name, params, &patch))
            .await
        {
            Ok(patched) => Ok(patched),
            Err(error) => Err(explain(&api, object, error).await),
        }
    }

    /// Like [`send_bound`](Self::send_bound), but for the status.
    pub(super) async fn send_bound_status<K: AnyObject, P: Serialize + Debug>(
        &self,
        kind: &Kind<K>,
        object: &K,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<K, Error> {
        let (api, name) = (self.api_of(kind, object), object.name_any());
        let uid = object.meta().uid.as_deref();
        let mut version = uid.and_then(|_| self.newest_version(kind, object));
        // Don't retry if the caller's patch has a resource version: a newer one would not be what
        // they asked for.
        let mut retries = match names_version(patch)? {
            true => 0,
            false => RETRIES,
        };
        loop {
            let conditions = Conditions {
                uid,
                resource_version: version.as_deref(),
            };
            let bound = bind(patch, conditions)?;
            let error = match self
                .send_write(kind, to_json, api.patch_status(&name, params, &bound))
                .await
            {
                Ok(patched) => return Ok(patched),
                Err(error) => explain(&api, object, error).await,
            };
            let is_stale = error.is_conflict() && !error.is_field_manager_conflict();
            if uid.is_none() || !is_stale || retries == 0 {
                return Err(error);
            }
            retries -= 1;
            match find_version(&api, object).await {
                Some(newest) => version = Some(newest),
                None => return Err(error),
            }
        }
    }

    /// Returns the latest known resource version. The caches may be ahead of `object`, since they
    /// contain the writes of this process.
    fn newest_version<K: AnyObject>(&self, kind: &Kind<K>, object: &K) -> Option<String> {
        let own = object.resource_version();
        let cached = match self.shared.caches.look_up(kind, object.meta()) {
            KnownObject::Found(cached) if cached.uid == object.uid() => cached.resource_version,
            _ => None,
        };
        let order = |version: &String| version.parse::<u64>().unwrap_or_default();
        own.into_iter().chain(cached).max_by_key(order)
    }
}

/// Asks the API server for the current resource version.
///
/// Returns `None` if the object can't be read, no longer exists or was replaced. In these cases, it
/// should be reconciled again with an up-to-date cache.
async fn find_version<K: AnyObject>(api: &Api<K>, object: &K) -> Option<String> {
    let found = api.get_metadata(&object.name_any()).await.ok()?;
    (found.uid() == object.uid()).then(|| found.resource_version())?
}

/// Turns the error into a conflict if the object was replaced by another one.
async fn explain<K: AnyObject>(api: &Api<K>, object: &K, error: kube::Error) -> Error {
    if let kube::Error::Api(status) = &error
        && is_failed_test(status)
        && let Some(uid) = object.uid()
        && let Ok(found) = api.get_metadata(&object.name_any()).await
        && found.uid() != Some(uid)
    {
        return to_conflict(status).into();
    }
    to_bound_apply_error(object, error)
}

/// Turns the error into a conflict if it was caused by a failed `test` operation in a JSON patch.
pub(crate) fn to_test_conflict(error: kube::Error) -> kube::Error {
    match error {
        kube::Error::Api(status) if is_failed_test(&status) => to_conflict(&status),
        error => error,
    }
}

/// Returns `true` if a JSON patch could not be applied (e.g. because of a failed test). An invalid
/// object has the same status code, but then the API server names a field.
fn is_failed_test(status: &Status) -> bool {
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 422 && causes.next().is_none()
}

fn bind<P: Serialize>(patch: &Patch<P>, conditions: Conditions<'_>) -> Result<Patch<Value>, Error> {
    Ok(match patch {
        Patch::Apply(body) => Patch::Apply(bind_body(body, conditions)?),
        Patch::Merge(body) => Patch::Merge(bind_body(body, conditions)?),
        Patch::Strategic(body) => Patch::Strategic(bind_body(body, conditions)?),
        Patch::Json(operations) => {
            let mut operations = operations.clone();
            if let Some(uid) = conditions.uid {
                let test = json!({ "op": "test", "path": "/metadata/uid", "value": uid });
                operations.0.insert(0, serde_json::from_value(test)?);
            }
            Patch::Json(operations)
        }
        // kube may add other kinds of patches, for which we can't tell how to add the UID.
        _ => return Err(Error::terminal("this kind of patch is not supported")),
    })
}

fn bind_body<P: Serialize>(body: &P, conditions: Conditions<'_>) -> Result<Value, Error> {
    let mut body = serde_json::to_value(body)?;
    let conditions = [
        ("uid", conditions.uid),
        ("resourceVersion", conditions.resource_version),
    ];
    for (name, value) in conditions {
        if let (Some(value), Some(metadata)) = (value, metadata_of(&mut body)) {
            // A precondition set by the caller takes precedence.
            metadata.entry(name).or_insert_with(|| value.into());
        }
    }
    Ok(body)
}

fn metadata_of(body: &mut Value) -> Option<&mut Map<String, Value>> {
    let metadata = body.as_object_mut()?.entry("metadata");
    metadata.or_insert_with(|| json!({})).as_object_mut()
}

fn names_version<P: Serialize>(patch: &Patch<P>) -> Result<bool, Error> {
    let (Patch::Apply(body) | Patch::Merge(body) | Patch::Strategic(body)) = patch else {
        return Ok(false);
    };
    Ok(serde_json::to_value(body)?["metadata"]["resourceVersion"].is_string())
}

//! Creates or updates objects with a function that modifies them.

use kube::ResourceExt;
use kube::api::{Patch, PatchParams, PostParams};
use serde::Serialize;
use serde_json::{Map, Value};

use super::ownership::is_controlled_by;
use super::{Ctx, to_conflict};
use crate::cache::to_json;
use crate::error::Error;
use crate::object::{AnyObject, Key, Kind};

/// Result of [`Ctx::create_or_update`], with the object.
#[derive(Clone, Debug, PartialEq)]
pub enum Written<K> {
    /// There was no such object, so it was created.
    Created(K),
    /// The object was updated.
    Updated(K),
    /// The object was already up to date, so no request was made.
    Unchanged(K),
}

impl<K> Written<K> {
    /// Returns a reference to the object.
    pub fn object(&self) -> &K {
        let (Self::Created(object) | Self::Updated(object) | Self::Unchanged(object)) = self;
        object
    }

    /// Returns the object.
    pub fn into_object(self) -> K {
        let (Self::Created(object) | Self::Updated(object) | Self::Unchanged(object)) = self;
        object
    }

    /// Returns `true` if the object was either created or updated.
    pub fn is_changed(&self) -> bool {
        !matches!(self, Self::Unchanged(_))
    }
}

impl<S> Ctx<S> {
    /// Creates `object`, or updates the existing object of the same name.
    ///
    /// `mutate` is called with the existing object or, if there is none, with `object`. It should
    /// change its argument to the desired state. If that doesn't change the existing object, no
    /// request is made.
    ///
    /// The existing object is taken from the cache of [whole objects](Self::cached), if there is
    /// one and it is consistent with all other caches of the kind. Otherwise it is read from the
    /// API server. An update is sent as a merge patch, which preserves fields that `K` does not
    /// know about, and replaces lists as a whole. It doesn't include the status; use
    /// [`apply_status`](Self::apply_status) for that.
    ///
    /// Prefer [`apply`](Self::apply) unless the desired state depends on the existing object. The
    /// controller's role needs the verbs `get`, `create` and `patch`.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use rbuilder::{Ctx, Result};
    /// # async fn count(ctx: Ctx<()>, visits: ConfigMap) -> Result<()> {
    /// let written = ctx
    ///     .create_or_update(visits, |visits| {
    ///         let data = visits.data.get_or_insert_default();
    ///         data.entry("first".to_owned()).or_insert_with(|| "today".to_owned());
    ///     })
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns a conflict if the object was modified concurrently. Controllers retry this without
    /// logging an error. Otherwise, returns the response of the API server as a [`kube::Error`].
    pub async fn create_or_update<K: AnyObject + Serialize>(
        &self,
        object: K,
        mutate: impl FnOnce(&mut K),
    ) -> Result<Written<K>, Error> {
        let mutate = |object: &mut K| {
            mutate(object);
            Ok(())
        };
        let kind = self.placed_kind_of(&object).await?;
        let write = self.prepare_write(&kind, object, mutate).await?;
        self.send(&kind, write).await
    }

    /// Like [`create_or_update`](Self::create_or_update), but makes `owner` the object's
    /// controller. See [`apply_owned`](Self::apply_owned).
    ///
    /// # Errors
    ///
    /// Returns an [`OwnershipError`](crate::OwnershipError) if the object has a different
    /// controller, if the owner is being deleted, or if it cannot own the object because of their
    /// scopes. Otherwise, returns the same errors as `create_or_update`.
    pub async fn create_or_update_owned<O: AnyObject, K: AnyObject + Serialize>(
        &self,
        owner: &O,
        mut object: K,
        mutate: impl FnOnce(&mut K),
    ) -> Result<Written<K>, Error> {
        self.check_owner_cluster(owner, &object)?;
        let kind = self.kind_of(&object).await?;
        self.own(owner, &mut object, &kind)?;
        // `mutate` is called with the existing object, if any, which may not have this owner yet.
        let mutate = |object: &mut K| {
            mutate(object);
            Ok(self.own(owner, object, &kind)?)
        };
        let write = self.prepare_write(&kind, object, mutate).await?;
        if let Write::Update { existing, .. } = &write
            && !is_controlled_by(existing.meta(), owner)
        {
            self.check_adoption(owner, existing).await?;
        }
        let written = self.send(&kind, write).await?;
        if let Written::Created(created) = &written {
            self.record_created(&kind, created);
        }
        Ok(written)
    }

    async fn prepare_write<K: AnyObject + Serialize>(
        &self,
        kind: &Kind<K>,
        mut object: K,
        mutate: impl FnOnce(&mut K) -> Result<(), Error>,
    ) -> Result<Write<K>, Error> {
        let Some(existing) = self.find_existing(kind, &object).await? else {
            mutate(&mut object)?;
            return Ok(Write::Create(object));
        };
        let mut desired = existing.clone();
        mutate(&mut desired)?;
        let changes = merge_patch(
            &serde_json::to_value(&existing)?,
            &serde_json::to_value(&desired)?,
        );
        let Some(mut changes) = changes else {
            return Ok(Write::Nothing(existing));
        };
        // With the resource version, the API server rejects the patch if the object was modified
        // since it was read.
        changes["metadata"]["resourceVersion"] = existing.resource_version().into();
        Ok(Write::Update { existing, changes })
    }

    async fn send<K: AnyObject + Serialize>(
        &self,
        kind: &Kind<K>,
        write: Write<K>,
    ) -> Result<Written<K>, Error> {
        let (existing, changes) = match write {
            Write::Nothing(existing) => return Ok(Written::Unchanged(existing)),
            Write::Create(object) => return Ok(Written::Created(self.create(kind, &object).await?)),
            Write::Update { existing, changes } => (existing, changes),
        };
        let (api, name) = (self.api_of(kind, &existing), existing.name_any());
        let params = PatchParams {
            field_manager: Some(self.shared.controller.clone()),
            ..PatchParams::default()
        };
        let changes = Patch::Merge(changes);
        let updated = self
            .send_write(kind, to_json, api.patch(&name, &params, &changes))
            .await?;
        Ok(Written::Updated(updated))
    }

    async fn find_existing<K: AnyObject>(&self, kind: &Kind<K>, object: &K) -> Result<Option<K>, Error> {
        match self.shared.caches.get_consistent(kind, &Key::of(object)) {
            Some(cached) => Ok(Some((*cached).clone())),
            None => Ok(self.api_of(kind, object).get_opt(&object.name_any()).await?),
        }
    }

    async fn create<K: AnyObject + Serialize>(&self, kind: &Kind<K>, object: &K) -> Result<K, kube::Error> {
        let api = self.api_of(kind, object);
        let params = PostParams {
            field_manager: Some(self.shared.controller.clone()),
            ..PostParams::default()
        };
        match self.send_write(kind, to_json, api.create(&params, object)).await {
            // The object did not exist a moment ago, so another client has just created it. Report
            // this as a conflict.
            Err(kube::Error::Api(status)) if status.is_already_exists() => Err(to_conflict(&status)),
            created => created,
        }
    }
}

enum Write<K> {
    Nothing(K),
    Create(K),
    /// Merge patch for an existing object.
    Update {
        existing: K,
        changes: Value,
    },
}

/// Computes a JSON merge patch ([RFC 7396](https://www.rfc-editor.org/rfc/rfc7396)). Returns `None`
/// if the values are equal.
fn merge_patch(before: &Value, after: &Value) -> Option<Value> {
    let (Value::Object(from), Value::Object(to)) = (before, after) else {
        return (before != after).then(|| after.clone());
    };
    let removed = from.keys().filter(|key| !to.contains_key(*key));
    let mut patch: Map<String, Value> = removed.map(|key| (key.clone(), Value::Null)).collect();
    for (key, value) in to {
        let change = match from.get(key) {
            Some(before) => merge_patch(before, value),
            None => Some(value.clone()),
        };
        patch.extend(change.map(|change| (key.clone(), change)));
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn merge_patch_contains_only_the_differences() {
        let check = |before: Value, after: Value, expected: Option<Value>| {
            assert_eq!(merge_patch(&before, &after), expected, "{before} to {after}");
            let mut patched = before.clone();
            json_patch::merge(&mut patched, &expected.unwrap_or_else(|| json!({})));
            assert_eq!(patched, after);
        };
        let object = json!({ "a": { "b": 1, "c": [1, 2] }, "d": "x" });
        check(object.clone(), object.clone(), None);
        check(
            object.clone(),
            json!({ "a": { "b": 2, "c": [1, 2] }, "d": "x" }),
            Some(json!({ "a": { "b": 2 } })),
        );
        check(
            object.clone(),
            json!({ "a": { "b": 1, "c": [2] } }),
            Some(json!({ "a": { "c": [2] }, "d": null })),
        );
        check(
            object,
            json!({ "a": "flat", "d": { "e": {} } }),
            Some(json!({ "a": "flat", "d": { "e": {} } })),
        );
    }
}

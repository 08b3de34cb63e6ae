//! Creating an object or changing it, whichever the cluster needs.

use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Ctx, as_conflict, set_controller_reference};
use crate::error::Error;
use crate::object::{Key, Kind, Object, Scope};

/// What [`Ctx::create_or_update`] did, with the object as it is then.
#[derive(Clone, Debug, PartialEq)]
pub enum Written<K> {
    /// There was none.
    Created(K),
    /// It was there, and is changed.
    Updated(K),
    /// It was there as it should be; nothing was sent.
    Unchanged(K),
}

impl<K> Written<K> {
    /// The object.
    pub fn object(&self) -> &K {
        let (Self::Created(object) | Self::Updated(object) | Self::Unchanged(object)) = self;
        object
    }

    /// The object, without what was done to it.
    pub fn into_object(self) -> K {
        let (Self::Created(object) | Self::Updated(object) | Self::Unchanged(object)) = self;
        object
    }

    /// Whether anything was written.
    pub fn is_changed(&self) -> bool {
        !matches!(self, Self::Unchanged(_))
    }
}

impl<S> Ctx<S> {
    /// Creates `object`, or changes the object of its name: `mutate` gets what is to be created, or what is there, and
    /// makes it what it should be.
    ///
    /// What is there is read from the cache of `K`, where it is [kept whole](Self::cached) and no other cache of the
    /// kind says otherwise, or else from the API server. It is not written when `mutate` changed nothing. What it changed is sent as a merge patch: fields that
    /// `K` does not know stay as they are, and lists are replaced whole. A status is not
    /// written this way: see [`apply_status`](Self::apply_status).
    ///
    /// [`apply`](Self::apply) is simpler, where the controller can say all it wants of the object without looking at
    /// it; this is for decisions that depend on what is there. The controller's role needs `get`, `create` and `patch`.
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
    /// A conflict, when somebody else wrote the object meanwhile: returned from a reconcile, it is tried again without
    /// much ado. Else what the API server answers, as [`kube::Error`].
    pub async fn create_or_update<K: Object + Serialize>(
        &self,
        object: K,
        mutate: impl FnOnce(&mut K),
    ) -> Result<Written<K>, Error> {
        let mutate = |object: &mut K| {
            mutate(object);
            Ok(())
        };
        self.write(object, mutate).await
    }

    /// [`create_or_update`](Self::create_or_update) for an object that `owner` owns as its controller; see
    /// [`apply_owned`](Self::apply_owned).
    ///
    /// # Errors
    /// [`OwnershipError`](crate::OwnershipError) when another controller owns the object already, or scopes forbid the
    /// ownership; else those of `create_or_update`.
    pub async fn create_or_update_owned<O: Object, K: Object + Serialize>(
        &self,
        owner: &O,
        mut object: K,
        mutate: impl FnOnce(&mut K),
    ) -> Result<Written<K>, Error> {
        set_controller_reference(owner, &mut object)?;
        let mutate = |object: &mut K| {
            mutate(object);
            Ok(set_controller_reference(owner, object)?)
        };
        let written = self.write(object, mutate).await?;
        if let Written::Created(created) = &written {
            self.remember(created);
        }
        Ok(written)
    }

    async fn write<K: Object + Serialize>(
        &self,
        mut object: K,
        mutate: impl FnOnce(&mut K) -> Result<(), Error>,
    ) -> Result<Written<K>, Error> {
        let name = object.name_any();
        let api = <K::Scope as Scope>::api::<K>(self.client(), object.meta().namespace.as_deref());
        let Some(present) = self.present(&api, &object).await? else {
            mutate(&mut object)?;
            return Ok(Written::Created(self.create(&api, &object).await?));
        };
        let mut wanted = present.clone();
        mutate(&mut wanted)?;
        let Some(mut changes) = changes(&serde_json::to_value(&present)?, &serde_json::to_value(&wanted)?)
        else {
            return Ok(Written::Unchanged(present));
        };
        // The server refuses the patch if the object is not what it was decided on.
        changes["metadata"]["resourceVersion"] = present.resource_version().into();
        let params = PatchParams {
            field_manager: Some(self.shared.controller.clone()),
            ..PatchParams::default()
        };
        let changes = Patch::Merge(changes);
        let updated = self.written(api.patch(&name, &params, &changes)).await?;
        Ok(Written::Updated(updated))
    }

    /// The object of this name as it is, by a cache or by the server.
    async fn present<K: Object>(&self, api: &Api<K>, object: &K) -> Result<Option<K>, Error> {
        match self.shared.caches.agreed::<K>(&Kind::of_type(), &Key::of(object)) {
            Some(cached) => Ok(Some((*cached).clone())),
            None => Ok(api.get_opt(&object.name_any()).await?),
        }
    }

    async fn create<K: Object + Serialize>(&self, api: &Api<K>, object: &K) -> Result<K, kube::Error> {
        let params = PostParams {
            field_manager: Some(self.shared.controller.clone()),
            ..PostParams::default()
        };
        match self.written(api.create(&params, object)).await {
            // It was not there a moment ago, so this is a race like any other.
            Err(kube::Error::Api(status)) if status.is_already_exists() => Err(as_conflict(&status)),
            created => created,
        }
    }
}

/// The merge patch (RFC 7396) that makes `after` of `before`; nothing where they are alike.
fn changes(before: &Value, after: &Value) -> Option<Value> {
    let (Value::Object(from), Value::Object(to)) = (before, after) else {
        return (before != after).then(|| after.clone());
    };
    let gone = from.keys().filter(|key| !to.contains_key(*key));
    let mut patch: Map<String, Value> = gone.map(|key| (key.clone(), Value::Null)).collect();
    for (key, value) in to {
        let change = match from.get(key) {
            Some(present) => changes(present, value),
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
    fn a_patch_says_what_differs_and_no_more() {
        let check = |before: Value, after: Value, expected: Option<Value>| {
            assert_eq!(changes(&before, &after), expected, "{before} to {after}");
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

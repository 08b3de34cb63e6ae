//! Makes writes visible in the caches of the same process as soon as the API server has responded.

use std::any::Any;
use std::sync::Arc;

use kube::api::DynamicObject;
use kube::core::{ObjectMeta, PartialObjectMeta, PartialObjectMetaExt};
use serde::Serialize;
use serde_json::Value;

use super::Cache;
use super::objects::WriteStart;
use super::registry::AnyCache;
use crate::object::{Key, Kind, Watchable};

/// Converts an object to JSON for caches with a different Rust type. Returns `None` if it can't be
/// serialized.
pub(crate) type ToJson<K> = fn(&K) -> Option<Value>;

pub(crate) fn to_json<K: Serialize>(object: &K) -> Option<Value> {
    serde_json::to_value(object).ok()
}

/// For types that may not implement `Serialize`. Only works for `DynamicObject`.
pub(crate) fn dynamic_to_json<K: Any>(object: &K) -> Option<Value> {
    let object: &dyn Any = object;
    object.downcast_ref::<DynamicObject>().and_then(to_json)
}

pub(crate) struct PendingWrite<K: Watchable> {
    whole: Vec<(Arc<Cache<K>>, WriteStart)>,
    metadata: Vec<(Arc<Cache<PartialObjectMeta<K>>>, WriteStart)>,
    /// Caches of the same kind with a different Rust type, e.g. `DynamicObject`.
    others: Vec<(Arc<dyn AnyCache>, WriteStart)>,
    to_json: ToJson<K>,
    /// Namespaces also have finalizers in their spec, which delay the deletion too.
    is_namespace: bool,
}

impl<K: Watchable> PendingWrite<K> {
    /// Must be called before sending the request, because it records the current state of the
    /// caches.
    pub(super) fn begin(
        kind: &Kind<K>,
        caches: impl IntoIterator<Item = Arc<dyn AnyCache>>,
        to_json: ToJson<K>,
    ) -> Self {
        let mut pending = Self {
            whole: Vec::new(),
            metadata: Vec::new(),
            others: Vec::new(),
            to_json,
            is_namespace: kind.group_kind() == "Namespace",
        };
        for cache in caches {
            let start = cache.begin_write();
            match Arc::clone(&cache).into_any().downcast::<Cache<K>>() {
                Ok(cache) => pending.whole.push((cache, start)),
                Err(any) => match any.downcast::<Cache<PartialObjectMeta<K>>>() {
                    Ok(cache) => pending.metadata.push((cache, start)),
                    Err(_) => pending.others.push((cache, start)),
                },
            }
        }
        pending
    }

    /// Adds the object returned by the API server to the caches. If the write completed a deletion,
    /// hides the object instead and returns `false`.
    pub(crate) fn finish(self, object: &mut K) -> bool {
        match object.meta().uid.clone() {
            Some(uid) if is_gone(object.meta()) && !self.is_namespace => {
                self.finish_deletion(&Key::of(object), &uid);
                false
            }
            _ => {
                self.finish_write(object);
                true
            }
        }
    }

    pub(crate) fn finish_deletion(self, key: &Key, uid: &str) {
        for (cache, start) in self.whole {
            cache.write().put_own_deletion(start, key, uid);
        }
        for (cache, start) in self.metadata {
            cache.write().put_own_deletion(start, key, uid);
        }
        for (cache, start) in self.others {
            cache.put_own_deletion(start, key, uid);
        }
    }

    fn finish_write(self, object: &mut K) {
        if !self.others.is_empty()
            && let Some(json) = (self.to_json)(object)
        {
            self.others
                .into_iter()
                .for_each(|(cache, start)| cache.put_own_json(start, &json));
        }
        // Cloning the managed fields would be more expensive than the rest of this function, and
        // most caches drop them anyway.
        let managed_fields = object.meta_mut().managed_fields.take();
        for (cache, start) in self.whole {
            let mut copy = object.clone();
            if !cache.trim().managed_fields {
                copy.meta_mut().managed_fields.clone_from(&managed_fields);
            }
            cache.put_own_write(start, copy);
        }
        for (cache, start) in self.metadata {
            let mut metadata = object.meta().clone();
            if !cache.trim().managed_fields {
                metadata.managed_fields.clone_from(&managed_fields);
            }
            cache.put_own_write(start, metadata.into_response_partial());
        }
        object.meta_mut().managed_fields = managed_fields;
    }
}

/// Returns `true` if neither finalizers nor a grace period delay the object's deletion, as in the
/// response to the write that removes the last finalizer.
fn is_gone(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
        && meta.finalizers.as_ref().is_none_or(Vec::is_empty)
        && meta.deletion_grace_period_seconds.unwrap_or_default() <= 0
}

//! Writes by this process, applied to its caches when the API server responds.

use std::any::Any;
use std::sync::Arc;

use kube::core::{ObjectMeta, PartialObjectMeta, PartialObjectMetaExt};

use super::Cache;
use super::objects::WriteStart;
use crate::object::{Key, Kind, Watchable};

/// A request that writes an object of kind `K` and has not been answered.
pub(crate) struct PendingWrite<K: Watchable> {
    whole: Vec<(Arc<Cache<K>>, WriteStart)>,
    metadata: Vec<(Arc<Cache<PartialObjectMeta<K>>>, WriteStart)>,
    /// `true` for namespaces, which finalizers in their spec hold as well.
    is_namespace: bool,
}

impl<K: Watchable> PendingWrite<K> {
    /// Notes the state of the caches of a kind before the request is sent. Those of another Rust type are ignored.
    pub(super) fn begin(kind: &Kind<K>, caches: impl Iterator<Item = Arc<dyn Any + Send + Sync>>) -> Self {
        let mut pending = Self {
            whole: Vec::new(),
            metadata: Vec::new(),
            is_namespace: kind.group_kind() == "Namespace",
        };
        for cache in caches {
            match cache.downcast::<Cache<K>>() {
                Ok(cache) => pending
                    .whole
                    .push((Arc::clone(&cache), cache.read().begin_write())),
                Err(cache) => {
                    let metadata = cache.downcast::<Cache<PartialObjectMeta<K>>>();
                    let start = metadata.map(|cache| (Arc::clone(&cache), cache.read().begin_write()));
                    pending.metadata.extend(start);
                }
            }
        }
        pending
    }

    /// Adds the object that the API server returned to the caches, or hides it if the write was the last that it took to
    /// delete the object.
    ///
    /// Returns `true` if the object still exists.
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

    /// Hides a deleted object from readers of the caches.
    pub(crate) fn finish_deletion(self, key: &Key, uid: &str) {
        for (cache, start) in self.whole {
            cache.write().put_own_deletion(start, key, uid);
        }
        for (cache, start) in self.metadata {
            cache.write().put_own_deletion(start, key, uid);
        }
    }

    fn finish_write(self, object: &mut K) {
        // Taken out because copying them would cost more than the rest, and most caches drop them.
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

/// Returns `true` for an object that is deleted and held by neither finalizers nor a grace period. The API server returns
/// it for the write that removed the last finalizer.
fn is_gone(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
        && meta.finalizers.as_ref().is_none_or(Vec::is_empty)
        && meta.deletion_grace_period_seconds.unwrap_or_default() <= 0
}

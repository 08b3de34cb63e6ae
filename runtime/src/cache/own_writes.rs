//! Writes by this process, applied to its caches when the API server responds.

use std::any::Any;
use std::sync::Arc;

use kube::core::{PartialObjectMeta, PartialObjectMetaExt};

use super::Cache;
use super::objects::WriteStart;
use crate::object::{Object, Watchable};

/// A request that writes an object of kind `K` and has not been answered.
pub(crate) struct PendingWrite<K: Object> {
    whole: Vec<(Arc<Cache<K>>, WriteStart)>,
    metadata: Vec<(Arc<Cache<PartialObjectMeta<K>>>, WriteStart)>,
}

impl<K: Object> PendingWrite<K> {
    /// Notes the state of the caches of kind `K` before the request is sent; caches of other kinds are ignored.
    pub(super) fn begin(caches: impl Iterator<Item = Arc<dyn Any + Send + Sync>>) -> Self {
        let mut pending = Self {
            whole: Vec::new(),
            metadata: Vec::new(),
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

    /// Adds the object that the API server returned to the caches.
    pub(crate) fn finish(self, object: &mut K) {
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

impl<K: Watchable> Cache<K> {
    /// Adds an object written by this process; see [`Objects`](super::objects::Objects).
    pub(super) fn put_own_write(&self, start: WriteStart, mut object: K) {
        self.trim().apply(object.meta_mut());
        self.write()
            .put_own_write(start, object, !self.selection.has_selectors());
    }
}

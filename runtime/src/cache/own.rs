//! Writes of this process, on their way into its caches.

use std::any::Any;
use std::sync::Arc;

use kube::core::{PartialObjectMeta, PartialObjectMetaExt};

use super::Cache;
use super::objects::Began;
use crate::object::{Object, Watchable};

/// A request that writes an object of kind `K`, from its beginning to its answer.
pub(crate) struct Writing<K: Object> {
    whole: Vec<(Arc<Cache<K>>, Began)>,
    metadata: Vec<(Arc<Cache<PartialObjectMeta<K>>>, Began)>,
}

impl<K: Object> Writing<K> {
    /// The request is about to be sent; which of these caches may want to hear of it, it finds out.
    pub(super) fn begin(caches: impl Iterator<Item = Arc<dyn Any + Send + Sync>>) -> Self {
        let mut writing = Self {
            whole: Vec::new(),
            metadata: Vec::new(),
        };
        for cache in caches {
            match cache.downcast::<Cache<K>>() {
                Ok(cache) => writing
                    .whole
                    .push((Arc::clone(&cache), cache.read().begin_write())),
                Err(cache) => {
                    let metadata = cache.downcast::<Cache<PartialObjectMeta<K>>>();
                    let begun = metadata.map(|cache| (Arc::clone(&cache), cache.read().begin_write()));
                    writing.metadata.extend(begun);
                }
            }
        }
        writing
    }

    /// The API server has answered with the object as it is now.
    pub(crate) fn end(self, object: &mut K) {
        // Copying them would cost more than the rest.
        let managed_fields = object.meta_mut().managed_fields.take();
        for (cache, began) in self.whole {
            let mut copy = object.clone();
            if !cache.trim.managed_fields {
                copy.meta_mut().managed_fields.clone_from(&managed_fields);
            }
            cache.put_own(began, copy);
        }
        for (cache, began) in self.metadata {
            let mut metadata = object.meta().clone();
            if !cache.trim.managed_fields {
                metadata.managed_fields.clone_from(&managed_fields);
            }
            cache.put_own(began, metadata.into_response_partial());
        }
        object.meta_mut().managed_fields = managed_fields;
    }
}

impl<K: Watchable> Cache<K> {
    /// Holds an object as this process wrote it; see [`Objects`](super::objects::Objects).
    pub(super) fn put_own(&self, began: Began, mut object: K) {
        self.trim.apply(object.meta_mut());
        self.write().put_own(began, object, !self.selection.is_choosy());
    }
}

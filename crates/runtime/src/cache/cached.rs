//! Read access to a cache.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use kube::core::Selector;
use kube::runtime::reflector::ObjectRef;

use super::Cache;
use super::index::is_indexing;
use crate::error::Error;
use crate::object::{Undecodable, Watchable};

/// The cached objects of a kind, read without a request to the API server.
///
/// A cache may lag behind the cluster, but not behind this process's own writes through a
/// [`Ctx`](crate::Ctx): when `apply`, `apply_status` or a similar method returns, the returned
/// object is in the cache. Exceptions are a relist of the namespace in progress, and selections
/// whose outcome depends on a field. Each call returns the objects as of that moment.
///
/// Whole objects are shared: calls return the same `Arc` until the object changes. Caches of
/// metadata ([`PartialObjectMeta`](kube::core::PartialObjectMeta)) store it in a compact form, at
/// an eighth of its size, and build an object for each call. This takes about two microseconds, so
/// hold on to the `Arc` if you need an object repeatedly.
///
/// Stored objects that cannot be decoded into `K` are left out; see
/// [`undecodable`](Self::undecodable).
pub struct Cached<K: Watchable> {
    cache: Arc<Cache<K>>,
}

impl<K: Watchable> Clone for Cached<K> {
    fn clone(&self) -> Self {
        Self {
            cache: Arc::clone(&self.cache),
        }
    }
}

impl<K: Watchable> fmt::Debug for Cached<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cached")
            .field("kind", &self.cache.kind.describe())
            .field("objects", &self.len())
            .finish()
    }
}

impl<K: Watchable> Cached<K> {
    pub(crate) fn new(cache: Arc<Cache<K>>) -> Self {
        Self { cache }
    }

    #[cfg(test)]
    pub(super) fn cache(&self) -> &Cache<K> {
        &self.cache
    }

    /// Returns the referenced object if it is cached.
    pub fn get(&self, reference: &ObjectRef<K>) -> Option<Arc<K>> {
        self.note_reader();
        self.cache.get(&self.cache.kind.key_of(reference))
    }

    /// Returns the object with this namespace and name. The namespace is ignored for a cluster-scoped kind.
    pub fn named(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.note_reader();
        self.cache.get(&self.cache.kind.key(Some(namespace), name))
    }

    /// Returns all objects, ordered by namespace and name.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.list_matching(None, None)
    }

    /// Returns the objects in a namespace, ordered by name, without visiting other namespaces.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        self.list_matching(Some(namespace), None)
    }

    /// Returns the objects in a namespace that match a label selector, ordered by name, without
    /// visiting other namespaces.
    ///
    /// The [`LabelSelector`](k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector) of a workload converts into a
    /// `Selector` with `try_into`.
    pub fn labelled(&self, namespace: &str, selector: &Selector) -> Vec<Arc<K>> {
        self.list_matching(Some(namespace), Some(selector))
    }

    /// Returns the objects for which the index function returned `value`, ordered by namespace and
    /// name.
    ///
    /// # Errors
    /// Returns a terminal error if the cache has no such index; add it with
    /// [`Controller::index`](crate::Controller::index). Also fails when called from an index
    /// function of this cache, whose objects are not indexed yet.
    pub fn by(&self, index: &str, value: &str) -> Result<Vec<Arc<K>>, Error> {
        let kind = || self.cache.kind.name();
        if is_indexing(self.cache.address()) {
            let kind = kind();
            let message = format!("an index function of the cache of {kind} cannot read it; {ADVICE}");
            return Err(Error::terminal(message));
        }
        let found = {
            let objects = self.cache.read();
            let found = objects.indexes.iter().find(|existing| existing.name() == index);
            found.map(|found| objects.copy_keys(found.keys(value)))
        };
        match found {
            Some(found) => Ok(found.open(&self.cache.unpacker)),
            None => {
                let kind = kind();
                Err(Error::terminal(format!(
                    "the cache of {kind} has no index `{index}`; add it with `.index::<{kind}>(\"{index}\", …)`"
                )))
            }
        }
    }

    /// Returns the stored objects that cannot be decoded into `K`, ordered by namespace and name.
    ///
    /// Check these before creating a missing object: one of them may already have its name.
    pub fn undecodable(&self) -> Vec<Undecodable> {
        let objects = self.cache.read();
        let mut found: Vec<_> = objects.undecodable.iter().collect();
        found.sort_unstable_by_key(|(key, _)| *key);
        found.into_iter().map(|(_, entry)| entry.object.clone()).collect()
    }

    /// Returns `true` once the cache contains the objects that existed at startup. Stays `true` if
    /// the watch stops receiving data.
    ///
    /// Controllers start after all their caches have synced, except those of
    /// [optional](crate::Watch::optional) watches.
    pub fn is_synced(&self) -> bool {
        self.cache.is_synced()
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.note_reader();
        self.cache.read().by_key.len()
    }

    /// Returns `true` if there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn list_matching(&self, namespace: Option<&str>, selector: Option<&Selector>) -> Vec<Arc<K>> {
        self.note_reader();
        let mut found = self.cache.read().copy(namespace);
        if let Some(selector) = selector {
            found.retain_matching(selector, &self.cache.unpacker);
        }
        found.sort();
        found.open(&self.cache.unpacker)
    }

    /// Logs once that an index function reads the cache that it indexes. Such a read does not see
    /// the object being indexed.
    fn note_reader(&self) {
        let cache = &self.cache;
        if is_indexing(cache.address()) && !cache.reads_itself.swap(true, Ordering::Relaxed) {
            tracing::error!(kind = %cache.kind.describe(), "an index function reads the cache that it indexes; {ADVICE}");
        }
    }
}

/// Advice for index functions that read their own cache.
const ADVICE: &str =
    "its values are not updated when other objects change: return values of the given object alone";

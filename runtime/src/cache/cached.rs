//! Read access to a cache.

use std::fmt;
use std::sync::Arc;

use kube::core::{Selector, SelectorExt};
use kube::runtime::reflector::ObjectRef;

use super::Cache;
use super::objects::Objects;
use super::stored::Stored;
use crate::error::Error;
use crate::object::{Undecodable, Watchable};

/// The cached objects of a kind, read without a request to the API server.
///
/// A cache may lag behind the cluster, but not behind this process's own writes through a [`Ctx`](crate::Ctx): the object
/// that `apply`, `apply_status` and similar methods return is in the cache when they return, except while the kind is
/// being relisted. Each call returns the objects as of that moment.
///
/// Whole objects are shared: each call returns the same `Arc` until the object changes. Caches of metadata
/// ([`PartialObjectMeta`](kube::core::PartialObjectMeta)) keep it in a compact form, an eighth of its size, and make an
/// object of it for each call, which takes about two microseconds; keep the `Arc` where you need the object repeatedly.
///
/// A stored object that cannot be decoded into `K` is left out; [`undecodable`](Self::undecodable) returns those.
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

    /// Returns the referenced object, if it is cached.
    pub fn get(&self, reference: &ObjectRef<K>) -> Option<Arc<K>> {
        self.cache.get(&self.cache.kind.key_of(reference))
    }

    /// Returns the object with this namespace and name. The namespace is ignored for a cluster-scoped kind.
    pub fn named(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.cache.get(&self.cache.kind.key(Some(namespace), name))
    }

    /// Returns all objects, ordered by namespace and name.
    pub fn list(&self) -> Vec<Arc<K>> {
        let objects = self.cache.read();
        let mut found: Vec<_> = objects.by_key.iter().collect();
        found.sort_unstable_by_key(|(namespace, name, _)| (*namespace, *name));
        found
            .into_iter()
            .filter_map(|(namespace, name, stored)| objects.open(namespace, name, stored))
            .collect()
    }

    /// Returns the objects of a namespace, ordered by name. Other namespaces cost nothing.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        self.list_matching(namespace, |_, _, _| true)
    }

    /// Returns the objects of a namespace that match a label selector, ordered by name. Other namespaces cost nothing.
    ///
    /// The [`LabelSelector`](k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector) of a workload converts into a
    /// `Selector` with `try_into`.
    pub fn labelled(&self, namespace: &str, selector: &Selector) -> Vec<Arc<K>> {
        self.list_matching(namespace, |objects, name, stored| {
            selector.matches(&objects.labels(name, stored))
        })
    }

    /// Returns the objects for which the function of this index returned `value`, ordered by namespace and name.
    ///
    /// # Errors
    /// A terminal error when the cache has no such index; add it with [`Controller::index`](crate::Controller::index).
    pub fn by(&self, index: &str, value: &str) -> Result<Vec<Arc<K>>, Error> {
        let objects = self.cache.read();
        let found = objects.indexes.iter().find(|existing| existing.name() == index);
        let Some(found) = found else {
            let kind = self.cache.kind.name();
            let message = format!(
                "the cache of {kind} has no index `{index}`; add it with `.index::<{kind}>(\"{index}\", …)`"
            );
            return Err(Error::terminal(message));
        };
        let keys = found.keys(value);
        Ok(keys.filter_map(|key| objects.get(key)).collect())
    }

    /// Returns the stored objects that cannot be decoded into `K`, ordered by namespace and name.
    ///
    /// A function that creates what is missing may find one of these in its way.
    pub fn undecodable(&self) -> Vec<Undecodable> {
        let objects = self.cache.read();
        let mut found: Vec<_> = objects.undecodable.iter().collect();
        found.sort_unstable_by_key(|(key, _)| *key);
        found.into_iter().map(|(_, entry)| entry.object.clone()).collect()
    }

    /// Returns `true` once the objects that existed at the start are in the cache. It stays `true` if the watch receives
    /// no data any more.
    ///
    /// Controllers start after all their caches are filled, except for those of
    /// [optional](crate::Watch::optional) watches.
    pub fn is_synced(&self) -> bool {
        self.cache.is_synced()
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.cache.read().by_key.len()
    }

    /// Returns `true` if there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn list_matching(
        &self,
        namespace: &str,
        matches: impl Fn(&Objects<K>, &str, &Stored<K>) -> bool,
    ) -> Vec<Arc<K>> {
        let objects = self.cache.read();
        let namespaced = objects.by_key.in_namespace(namespace);
        let mut found: Vec<_> = namespaced
            .filter(|(name, stored)| matches(&objects, name, stored))
            .collect();
        found.sort_unstable_by_key(|(name, _)| *name);
        found
            .into_iter()
            .filter_map(|(name, stored)| objects.open(Some(namespace), name, stored))
            .collect()
    }
}

//! Reading a cache.

use std::fmt;
use std::sync::Arc;

use kube::core::{Selector, SelectorExt};
use kube::runtime::reflector::ObjectRef;

use super::Cache;
use crate::error::Error;
use crate::object::{Key, Watchable};

/// The objects of a kind as the cache has them: what was watched last, without a request.
///
/// A cache may lag behind the cluster, but not behind what the process itself wrote through a [`Ctx`](crate::Ctx): what
/// `apply`, `apply_status` and their kin return is in the cache when they return it, except while the kind is listed
/// anew. Objects come as they are at the moment of the call; nothing holds them there.
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

    /// The object that a reference means, if the cache has it.
    pub fn get(&self, reference: &ObjectRef<K>) -> Option<Arc<K>> {
        self.cache.get(&self.cache.kind.key_of(reference))
    }

    /// The object of this name, in this namespace. The namespace means nothing for a cluster-wide kind.
    pub fn named(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.cache.get(&self.cache.kind.key(Some(namespace), name))
    }

    /// Every object, ordered by namespace and name.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.matching(|_, _| true)
    }

    /// The objects of a namespace, ordered by name.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        self.matching(|key, _| key.namespace.as_deref() == Some(namespace))
    }

    /// The objects of a namespace that a label selector matches, ordered by name.
    ///
    /// A [`LabelSelector`](k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector), as workloads have one,
    /// becomes a `Selector` by `try_into`.
    pub fn labelled(&self, namespace: &str, selector: &Selector) -> Vec<Arc<K>> {
        let none = std::collections::BTreeMap::new();
        self.matching(|key, object| {
            key.namespace.as_deref() == Some(namespace)
                && selector.matches(object.meta().labels.as_ref().unwrap_or(&none))
        })
    }

    /// The objects for which the function of this index gave this value, ordered by namespace and name.
    ///
    /// # Errors
    /// When the cache has no such index: add it with [`Controller::index`](crate::Controller::index).
    pub fn by(&self, index: &str, value: &str) -> Result<Vec<Arc<K>>, Error> {
        let objects = self.cache.read();
        let found = objects.indexes.iter().find(|present| present.name() == index);
        let Some(found) = found else {
            let kind = self.cache.kind.name();
            let message = format!(
                "the cache of {kind} has no index `{index}`; add it with `.index::<{kind}>(\"{index}\", …)`"
            );
            return Err(Error::terminal(message));
        };
        let keys = found.keys(value);
        Ok(keys.filter_map(|key| objects.by_key.get(key).cloned()).collect())
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.cache.read().by_key.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn matching(&self, wanted: impl Fn(&Key, &K) -> bool) -> Vec<Arc<K>> {
        let objects = self.cache.read();
        let mut found: Vec<(&Key, &Arc<K>)> = objects
            .by_key
            .iter()
            .filter(|(key, object)| wanted(key, object))
            .collect();
        found.sort_unstable_by_key(|(key, _)| *key);
        found.into_iter().map(|(_, object)| Arc::clone(object)).collect()
    }
}

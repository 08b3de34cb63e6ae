//! Public read access to caches.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use kube::core::Selector;
use kube::runtime::reflector::ObjectRef;

use super::Cache;
use super::index::is_indexing;
use crate::controller::note_in_callback;
use crate::error::Error;
use crate::object::{Undecodable, Watchable};

/// Read access to the cached objects of a kind. Reads never send requests to the API server.
///
/// A cache may lag behind the cluster, but it is consistent with the writes that this process makes
/// through [`Ctx`](crate::Ctx): once `apply`, `apply_status` and so on return, the updated object
/// can be read from the cache. There are two exceptions: while the namespace is being relisted, and
/// if the selection depends on a field that can't be evaluated locally.
///
/// Objects are returned as an `Arc` shared with the cache, so reads are cheap. The exception is
/// caches of metadata ([`PartialObjectMeta`](kube::core::PartialObjectMeta)): they store objects in
/// a compact form that needs only about an eighth of the memory, and each read builds a new object,
/// which takes about two microseconds. Keep the `Arc` if you need such an object more than once.
///
/// Objects that cannot be decoded into `K` are skipped by all methods. You can find them with
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

    /// Returns the object that `reference` points to, if it's in the cache.
    pub fn get(&self, reference: &ObjectRef<K>) -> Option<Arc<K>> {
        self.note_reader();
        self.cache.get(&self.cache.kind.key_of(reference))
    }

    /// Looks up an object by namespace and name. For cluster-scoped kinds, the namespace is
    /// ignored.
    pub fn named(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.note_reader();
        self.cache.get(&self.cache.kind.key(Some(namespace), name))
    }

    /// Returns all objects sorted by namespace and name.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.list_matching(None, None)
    }

    /// Returns all objects in a namespace, sorted by name. The cost does not depend on the number
    /// of objects in other namespaces.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        self.list_matching(Some(namespace), None)
    }

    /// Returns the objects in a namespace which match a label selector, sorted by name. Like
    /// [`in_namespace`](Self::in_namespace), this does not look at other namespaces.
    ///
    /// To pass the [`LabelSelector`](k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector)
    /// of a workload, convert it with `try_into`.
    pub fn labelled(&self, namespace: &str, selector: &Selector) -> Vec<Arc<K>> {
        self.list_matching(Some(namespace), Some(selector))
    }

    /// Returns the objects whose values for the given index contain `value`, sorted by namespace
    /// and name.
    ///
    /// # Errors
    ///
    /// Returns a terminal error if there is no such index. Add it with
    /// [`Controller::index`](crate::Controller::index).
    ///
    /// Also fails when called from an index function of the same cache, because its objects aren't
    /// fully indexed at that point.
    pub fn by(&self, index: &str, value: &str) -> Result<Vec<Arc<K>>, Error> {
        let kind = || self.cache.kind.name();
        if is_indexing(self.cache.address()) {
            let kind = kind();
            let message = format!("an index function of the cache of {kind} cannot read it; {ADVICE}");
            return Err(Error::terminal(message));
        }
        // Only copy the stored forms while holding the lock; decoding them takes longer.
        let found = {
            let objects = self.cache.read();
            let found = objects.indexes.iter().find(|existing| existing.name() == index);
            found.map(|found| objects.copy_keys(found.keys(value)))
        };
        match found {
            Some(found) => Ok(found.open(&self.cache.unpacker)),
            None => {
                let kind = kind();
                let missing = Error::terminal(format!(
                    "the cache of {kind} has no index `{index}`; add it with `.index::<{kind}>(\"{index}\", …)`"
                ));
                note_in_callback(&missing);
                Err(missing)
            }
        }
    }

    /// Returns the objects that could not be decoded into `K`, sorted by namespace and name.
    ///
    /// Consider checking this before creating an object that seems to be missing, since an
    /// undecodable object might already be using its name.
    pub fn undecodable(&self) -> Vec<Undecodable> {
        let objects = self.cache.read();
        let mut found: Vec<_> = objects.undecodable.iter().collect();
        found.sort_unstable_by_key(|(key, _)| *key);
        found.into_iter().map(|(_, entry)| entry.object.clone()).collect()
    }

    /// Returns `true` once the cache has received the initial list of objects. It stays `true` from
    /// then on, even if the watch fails.
    ///
    /// There is usually no need to call this, because controllers only start once their caches have
    /// synced. [Optional](crate::Watch::optional) watches are the exception.
    pub fn is_synced(&self) -> bool {
        self.cache.is_synced()
    }

    /// Returns the number of cached objects.
    pub fn len(&self) -> usize {
        self.note_reader();
        self.cache.read().by_key.len()
    }

    /// Returns `true` if the cache does not contain any objects.
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

    /// Logs an error (once per cache) if an index function reads the cache that it's indexing. This
    /// is almost certainly a bug, because the object being indexed is not visible yet.
    fn note_reader(&self) {
        let cache = &self.cache;
        if is_indexing(cache.address()) && !cache.reads_itself.swap(true, Ordering::Relaxed) {
            tracing::error!(kind = %cache.kind.describe(), "an index function reads the cache that it indexes; {ADVICE}");
        }
    }
}

const ADVICE: &str =
    "its values are not updated when other objects change: return values of the given object alone";

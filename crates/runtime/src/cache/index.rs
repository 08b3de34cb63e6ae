//! Indexes, which look up cached objects by values that a user-provided function computes.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::hash::HashMap;
use crate::object::{Key, Watchable};

type Values<K> = Box<dyn Fn(&K) -> Vec<String> + Send + Sync>;

pub(crate) struct Index<K> {
    name: String,
    values: Values<K>,
}

impl<K: Watchable> Index<K> {
    pub(crate) fn new(name: String, values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static) -> Self {
        let values = Box::new(values);
        Self { name, values }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Computes the sorted values of an object.
    ///
    /// Don't call this while holding a lock that readers need: the user's function may read other
    /// caches.
    pub(super) fn values(&self, cache: CacheAddress, object: &K) -> Vec<String> {
        let _indexing = Indexing::begin(cache);
        // A panic would end the watch for all users of this cache, so catch it.
        let values = catch_unwind(AssertUnwindSafe(|| (self.values)(object)));
        let mut values = values.unwrap_or_else(|_| {
            tracing::error!(
                kind = std::any::type_name::<K>(),
                object = %Key::of(object),
                "index function panicked, object not indexed"
            );
            Vec::new()
        });
        values.sort_unstable();
        values.dedup();
        values
    }
}

/// An inverted index from values to keys.
pub(super) struct IndexedKeys {
    name: String,
    keys: HashMap<String, BTreeSet<Key>>,
    /// Current values of each object, i.e. the entries to remove when the object changes.
    values_by_key: HashMap<Key, Vec<String>>,
}

impl IndexedKeys {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            keys: HashMap::default(),
            values_by_key: HashMap::default(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn keys(&self, value: &str) -> impl Iterator<Item = &Key> {
        self.keys.get(value).into_iter().flatten()
    }

    pub(super) fn insert(&mut self, key: &Key, values: Vec<String>) {
        if self.values_by_key.get(key) == Some(&values) {
            return;
        }
        self.remove(key);
        for value in &values {
            self.keys.entry(value.clone()).or_default().insert(key.clone());
        }
        if !values.is_empty() {
            self.values_by_key.insert(key.clone(), values);
        }
    }

    pub(super) fn remove(&mut self, key: &Key) {
        for value in self.values_by_key.remove(key).unwrap_or_default() {
            if let Some(keys) = self.keys.get_mut(&value) {
                keys.remove(key);
                if keys.is_empty() {
                    self.keys.remove(&value);
                }
            }
        }
    }
}

/// Identifies a cache among those that currently exist. Addresses may be reused.
pub(super) type CacheAddress = NonZeroUsize;

thread_local! {
    static INDEXED: Cell<Option<CacheAddress>> = const { Cell::new(None) };
}

pub(super) fn is_indexing(cache: CacheAddress) -> bool {
    INDEXED.get() == Some(cache)
}

/// Guard held while this thread is running an index function.
struct Indexing;

impl Indexing {
    fn begin(cache: CacheAddress) -> Self {
        INDEXED.set(Some(cache));
        Self
    }
}

impl Drop for Indexing {
    fn drop(&mut self) {
        INDEXED.set(None);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;

    const CACHE: CacheAddress = CacheAddress::MIN;

    fn labelled(name: &str, team: &str) -> Arc<ConfigMap> {
        let mut object = ConfigMap::default();
        object.metadata.name = Some(name.to_owned());
        object.metadata.labels = Some([("team".to_owned(), team.to_owned())].into());
        Arc::new(object)
    }

    fn by_team() -> Index<ConfigMap> {
        Index::new("team".to_owned(), |object: &ConfigMap| {
            let team = object.metadata.labels.iter().flatten().map(|(_, team)| team);
            assert!(
                object.metadata.name.as_deref() != Some("bad"),
                "index function failed"
            );
            team.filter(|team| !team.is_empty()).cloned().collect()
        })
    }

    fn check(index: &IndexedKeys, team: &str, expected: &[&str]) {
        let found: Vec<String> = index.keys(team).map(ToString::to_string).collect();
        assert_eq!(found, expected, "{team}");
    }

    #[test]
    fn objects_are_found_by_their_current_values() {
        let (by_team, mut index) = (by_team(), IndexedKeys::new("team".to_owned()));
        for (name, team) in [("b", "red"), ("a", "red"), ("c", "blue"), ("d", "")] {
            let object = labelled(name, team);
            index.insert(&Key::of(&*object), by_team.values(CACHE, &object));
        }
        check(&index, "red", &["a", "b"]);
        check(&index, "green", &[]);

        let moved = labelled("a", "blue");
        index.insert(&Key::of(&*moved), by_team.values(CACHE, &moved));
        check(&index, "red", &["b"]);
        check(&index, "blue", &["a", "c"]);

        index.remove(&Key::of(&*moved));
        check(&index, "blue", &["c"]);
        index.remove(&Key::of(&*labelled("b", "red")));
        assert!(!index.keys.contains_key("red"), "an empty value takes no memory");
    }

    #[test]
    fn object_whose_index_function_panics_is_not_indexed() {
        assert_eq!(by_team().values(CACHE, &labelled("bad", "red")), [""; 0]);
        assert!(!is_indexing(CACHE));
    }
}

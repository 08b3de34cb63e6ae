//! Indexes: the objects of a cache by the values that a function returns for each.

use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::object::{Key, Watchable};

/// Returns the values of an object.
type Values<K> = Box<dyn Fn(&K) -> Vec<String> + Send + Sync>;

/// The keys of a cache's objects by value.
pub(crate) struct Index<K> {
    name: String,
    values: Values<K>,
    keys: HashMap<String, BTreeSet<Key>>,
    /// The values of each object, to remove its entries when it changes.
    values_by_key: HashMap<Key, Vec<String>>,
}

impl<K: Watchable> Index<K> {
    pub(crate) fn new(name: String, values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static) -> Self {
        let values = move |object: &K| {
            // A panic would stop the watch for all users of the cache.
            catch_unwind(AssertUnwindSafe(|| values(object))).unwrap_or_else(|_| {
                tracing::error!(
                    kind = std::any::type_name::<K>(),
                    object = %Key::of(object),
                    "index function panicked, object not indexed"
                );
                Vec::new()
            })
        };
        Self {
            name,
            values: Box::new(values),
            keys: HashMap::new(),
            values_by_key: HashMap::new(),
        }
    }
}

impl<K> Index<K> {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the keys of the objects with a value, in order.
    pub(super) fn keys(&self, value: &str) -> impl Iterator<Item = &Key> {
        self.keys.get(value).into_iter().flatten()
    }

    pub(super) fn insert(&mut self, key: &Key, object: &Arc<K>) {
        let mut values = (self.values)(object);
        values.sort_unstable();
        values.dedup();
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

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;

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

    fn check(index: &Index<ConfigMap>, team: &str, expected: &[&str]) {
        let found: Vec<String> = index.keys(team).map(ToString::to_string).collect();
        assert_eq!(found, expected, "{team}");
    }

    #[test]
    fn objects_are_found_by_their_current_values() {
        let mut index = by_team();
        for (name, team) in [("b", "red"), ("a", "red"), ("c", "blue"), ("d", "")] {
            let object = labelled(name, team);
            index.insert(&Key::of(&*object), &object);
        }
        check(&index, "red", &["a", "b"]);
        check(&index, "green", &[]);

        let moved = labelled("a", "blue");
        index.insert(&Key::of(&*moved), &moved);
        check(&index, "red", &["b"]);
        check(&index, "blue", &["a", "c"]);

        index.remove(&Key::of(&*moved));
        check(&index, "blue", &["c"]);
        index.remove(&Key::of(&*labelled("b", "red")));
        assert!(!index.keys.contains_key("red"), "an empty value takes no memory");
    }

    #[test]
    fn an_object_whose_index_function_panics_is_not_indexed() {
        let mut index = by_team();
        let bad = labelled("bad", "red");
        index.insert(&Key::of(&*bad), &bad);
        check(&index, "red", &[]);
    }
}

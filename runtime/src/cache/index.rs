//! Indexes: the objects of a cache by what a function says of each.

use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::object::{Key, Watchable};

/// Says under which values an object is to be found.
type Values<K> = Box<dyn Fn(&K) -> Vec<String> + Send + Sync>;

/// The keys of a cache's objects by value.
pub(crate) struct Index<K> {
    name: String,
    values: Values<K>,
    keys: HashMap<String, BTreeSet<Key>>,
    /// Under which values each object stands, to find them again when it changes.
    held: HashMap<Key, Vec<String>>,
}

impl<K: Watchable> Index<K> {
    pub(crate) fn new(name: String, values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static) -> Self {
        let values = move |object: &K| {
            // A panic would end the watch, for all who look at this kind.
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
            held: HashMap::new(),
        }
    }
}

impl<K> Index<K> {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The keys under a value, in order.
    pub(super) fn keys(&self, value: &str) -> impl Iterator<Item = &Key> {
        self.keys.get(value).into_iter().flatten()
    }

    pub(super) fn insert(&mut self, key: &Key, object: &Arc<K>) {
        let mut values = (self.values)(object);
        values.sort_unstable();
        values.dedup();
        if self.held.get(key) == Some(&values) {
            return;
        }
        self.remove(key);
        for value in &values {
            self.keys.entry(value.clone()).or_default().insert(key.clone());
        }
        if !values.is_empty() {
            self.held.insert(key.clone(), values);
        }
    }

    pub(super) fn remove(&mut self, key: &Key) {
        for value in self.held.remove(key).unwrap_or_default() {
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
            assert!(object.metadata.name.as_deref() != Some("bad"), "cannot say");
            team.filter(|team| !team.is_empty()).cloned().collect()
        })
    }

    fn check(index: &Index<ConfigMap>, team: &str, expected: &[&str]) {
        let found: Vec<String> = index.keys(team).map(ToString::to_string).collect();
        assert_eq!(found, expected, "{team}");
    }

    #[test]
    fn objects_are_found_by_what_they_say_now() {
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
    fn a_panic_leaves_the_object_out() {
        let mut index = by_team();
        let bad = labelled("bad", "red");
        index.insert(&Key::of(&*bad), &bad);
        check(&index, "red", &[]);
    }
}

//! A map of objects, grouped by namespace.

use crate::hash::HashMap;
use crate::object::Key;

/// Maps (namespace, name) to a value. The namespace is `None` for cluster-scoped objects.
///
/// Uses one map per namespace: listing a namespace doesn't iterate over the others, and each
/// namespace is stored only once, unlike in a `HashMap<Key, V>`.
pub(super) struct ByNamespace<V> {
    namespaces: HashMap<Option<Box<str>>, HashMap<Box<str>, V>>,
    len: usize,
}

impl<V> Default for ByNamespace<V> {
    fn default() -> Self {
        Self {
            namespaces: HashMap::default(),
            len: 0,
        }
    }
}

impl<V> ByNamespace<V> {
    pub(super) fn get(&self, key: &Key) -> Option<&V> {
        self.namespaces.get(&key.namespace)?.get(&key.name)
    }

    pub(super) fn insert(&mut self, key: Key, value: V) -> Option<V> {
        let names = self.namespaces.entry(key.namespace).or_default();
        let before = names.insert(key.name, value);
        self.len += usize::from(before.is_none());
        before
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<V> {
        let names = self.namespaces.get_mut(&key.namespace)?;
        let removed = names.remove(&key.name)?;
        self.len -= 1;
        // Remove empty namespaces, or the outer map would grow without bound.
        if names.is_empty() {
            self.namespaces.remove(&key.namespace);
        }
        Some(removed)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Option<&str>, &str, &V)> {
        self.namespaces.iter().flat_map(|(namespace, names)| {
            let entries = names.iter();
            entries.map(|(name, value)| (namespace.as_deref(), &**name, value))
        })
    }

    pub(super) fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = (&str, &V)> {
        let names = self.namespaces.get(&Some(namespace.into()));
        let entries = names.into_iter().flatten();
        entries.map(|(name, value)| (&**name, value))
    }

    /// Pass `None` to get the keys of all namespaces.
    pub(super) fn keys(&self, namespace: Option<&str>) -> Vec<Key> {
        self.keys_where(namespace, |_| true)
    }

    pub(super) fn keys_where(&self, namespace: Option<&str>, is_wanted: impl Fn(&V) -> bool) -> Vec<Key> {
        let key = |namespace: Option<&str>, name: &str| Key {
            namespace: namespace.map(Into::into),
            name: name.into(),
        };
        match namespace {
            Some(only) => {
                let wanted = self.in_namespace(only).filter(|(_, value)| is_wanted(value));
                wanted.map(|(name, _)| key(namespace, name)).collect()
            }
            None => {
                let wanted = self.iter().filter(|(_, _, value)| is_wanted(value));
                wanted.map(|(namespace, name, _)| key(namespace, name)).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(namespace: Option<&str>, name: &str) -> Key {
        Key {
            namespace: namespace.map(Into::into),
            name: name.into(),
        }
    }

    #[test]
    fn values_are_found_by_key_and_namespace() {
        let mut map = ByNamespace::default();
        for (index, (namespace, name)) in [(Some("a"), "x"), (Some("a"), "y"), (Some("b"), "x"), (None, "x")]
            .into_iter()
            .enumerate()
        {
            assert_eq!(map.insert(key(namespace, name), index), None);
        }
        assert_eq!(map.insert(key(Some("b"), "x"), 9), Some(2));
        assert_eq!(map.len(), 4);
        assert_eq!(map.get(&key(Some("b"), "x")), Some(&9));
        assert_eq!(map.get(&key(Some("b"), "y")), None);
        let mut names: Vec<_> = map.in_namespace("a").map(|(name, _)| name).collect();
        names.sort_unstable();
        assert_eq!(names, ["x", "y"]);
        assert_eq!(map.keys(Some("b")), [key(Some("b"), "x")]);
        assert_eq!(map.keys(None).len(), 4);
        assert_eq!(map.keys_where(None, |value| *value == 9), [key(Some("b"), "x")]);
        assert_eq!(
            map.keys_where(Some("a"), |value| *value == 1),
            [key(Some("a"), "y")]
        );
        assert_eq!(map.remove(&key(None, "x")), Some(3));
        assert_eq!(map.remove(&key(None, "x")), None);
        assert_eq!((map.len(), map.namespaces.len()), (3, 2));
    }
}

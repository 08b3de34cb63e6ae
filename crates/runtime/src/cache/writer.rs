//! Prepares objects for being stored. Objects are packed and their index values computed up front,
//! so that readers are not blocked by packing or by user functions.

use std::sync::{Arc, MutexGuard, PoisonError};

use super::index::{CacheAddress, Index, IndexedKeys};
use super::matching::Selects;
use super::objects::{NewObject, WriteStart};
use super::packed::Packer;
use super::{Cache, WatchId};
use crate::object::{Key, Watchable};

/// State that only writers need.
///
/// Has its own lock, which writers take before preparing an object. The lock around the objects is
/// only held to insert the result, so readers hardly have to wait.
pub(super) struct Writer<K> {
    packer: Packer,
    /// In the same order as `Objects::indexes`.
    indexes: Vec<Index<K>>,
}

impl<K> Default for Writer<K> {
    fn default() -> Self {
        Self {
            packer: Packer::default(),
            indexes: Vec::new(),
        }
    }
}

impl<K: Watchable> Cache<K> {
    /// Stores an object from a watch. `bytes` is its serialized size. Returns the version known to
    /// subscribers.
    pub(super) fn store(
        &self,
        watch: Option<WatchId>,
        key: &Key,
        object: &Arc<K>,
        bytes: usize,
    ) -> Option<Arc<K>> {
        let mut writer = self.lock_writer();
        let mut new = self.prepare(&mut writer, object);
        new.bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let before = self.write().put(watch, key.clone(), object.meta(), new);
        drop(writer);
        self.unpacker.open(key, &before?)
    }

    /// Adds an object written by this process, unless [`Objects`](super::objects::Objects) rejects
    /// it.
    pub(super) fn put_own_write(&self, start: WriteStart, mut object: K) {
        self.trim().apply(object.meta_mut());
        let object = Arc::new(object);
        let mut writer = self.lock_writer();
        let new = self.prepare(&mut writer, &object);
        let is_selected = self.selects(object.meta()) == Selects::Yes;
        self.write().put_own_write(start, object.meta(), new, is_selected);
    }

    fn prepare(&self, writer: &mut Writer<K>, object: &Arc<K>) -> NewObject<K> {
        let indexes = writer.indexes.iter();
        let values = indexes
            .map(|index| index.values(self.address(), object))
            .collect();
        NewObject {
            form: self.unpacker.pack(object, &mut writer.packer),
            bytes: 0,
            values,
        }
    }

    /// No-op if an index with this name already exists.
    pub(crate) fn add_index(&self, index: Index<K>) {
        let mut writer = self.lock_writer();
        if writer
            .indexes
            .iter()
            .any(|existing| existing.name() == index.name())
        {
            return;
        }
        // Nothing is stored concurrently, since we're holding the writer lock.
        let existing = self.read().copy(None);
        let existing = existing.open(&self.unpacker);
        let indexed = existing.iter().map(|object| {
            let values = index.values(self.address(), object);
            (Key::of(&**object), values)
        });
        let indexed: Vec<_> = indexed.collect();
        let mut keys = IndexedKeys::new(index.name().to_owned());
        let mut objects = self.write();
        for (key, values) in indexed {
            // The object may have been deleted since the copy.
            if objects.form(&key).is_some() {
                keys.insert(&key, values);
            }
        }
        objects.indexes.push(keys);
        writer.indexes.push(index);
    }

    pub(super) fn address(&self) -> CacheAddress {
        std::ptr::NonNull::from(self).addr()
    }

    fn lock_writer(&self) -> MutexGuard<'_, Writer<K>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::cell::RefCell;

    use kube::Resource;
    use kube::core::{NamespaceResourceScope, ObjectMeta, Selector};
    use serde::Deserialize;

    use super::*;
    use crate::cache::{Cached, Selection};
    use crate::object::Kind;

    thread_local! {
        /// Whether the cache was unlocked, for each object copied by this thread.
        static SEEN: RefCell<Vec<bool>> = const { RefCell::new(Vec::new()) };
        static CACHE: RefCell<Option<Arc<Cache<Part>>>> = const { RefCell::new(None) };
    }

    /// A metadata-only object.
    #[derive(Debug, Deserialize)]
    struct Part {
        metadata: ObjectMeta,
    }

    impl Clone for Part {
        fn clone(&self) -> Self {
            CACHE.with_borrow(|cache| {
                let is_free = cache.as_ref().map(|cache| cache.objects.try_write().is_ok());
                SEEN.with_borrow_mut(|seen| seen.extend(is_free));
            });
            Self {
                metadata: self.metadata.clone(),
            }
        }
    }

    impl Resource for Part {
        type DynamicType = ();
        type Scope = NamespaceResourceScope;

        fn kind((): &()) -> Cow<'_, str> {
            "Part".into()
        }

        fn group((): &()) -> Cow<'_, str> {
            "example.com".into()
        }

        fn version((): &()) -> Cow<'_, str> {
            "v1".into()
        }

        fn plural((): &()) -> Cow<'_, str> {
            "parts".into()
        }

        fn meta(&self) -> &ObjectMeta {
            &self.metadata
        }

        fn meta_mut(&mut self) -> &mut ObjectMeta {
            &mut self.metadata
        }

        fn metadata_api() -> bool {
            true
        }
    }

    fn part(name: &str, version: u64) -> Part {
        let text = |text: &str| Some(text.to_owned());
        Part {
            metadata: ObjectMeta {
                name: text(name),
                namespace: text("a"),
                uid: text(name),
                resource_version: Some(version.to_string()),
                labels: Some([("team".to_owned(), "red".to_owned())].into()),
                ..ObjectMeta::default()
            },
        }
    }

    fn teams(part: &Part) -> Vec<String> {
        part.metadata
            .labels
            .iter()
            .flatten()
            .map(|(_, team)| team.clone())
            .collect()
    }

    fn new_cache() -> Arc<Cache<Part>> {
        let cache = Arc::new(Cache::new(Kind::of_type(), Selection::all()));
        for name in ["one", "two"] {
            cache.put(part(name, 1));
        }
        cache
    }

    fn names(found: &[Arc<Part>]) -> Vec<&str> {
        let names = found.iter().map(|part| part.metadata.name.as_deref());
        names.map(Option::unwrap_or_default).collect()
    }

    #[test]
    fn objects_are_not_decoded_while_readers_wait() {
        let cache = new_cache();
        CACHE.set(Some(Arc::clone(&cache)));
        let cached = Cached::new(Arc::clone(&cache));
        let red: Selector = [("team", "red")].into_iter().collect();
        let check = |what: &str, decoded: usize| {
            let seen = SEEN.take();
            assert!(
                seen.len() >= decoded && seen.iter().all(|is_free| *is_free),
                "{what}: {seen:?}"
            );
        };
        SEEN.take();
        assert_eq!(names(&cached.list()), ["one", "two"]);
        check("list", 2);
        assert_eq!(names(&cached.in_namespace("a")), ["one", "two"]);
        check("in_namespace", 2);
        assert_eq!(names(&cached.labelled("a", &red)), ["one", "two"]);
        check("labelled", 2);
        assert!(cached.named("a", "one").is_some());
        check("get", 1);
        cache.add_index(Index::new("team".to_owned(), teams));
        check("add_index", 2);
        assert_eq!(names(&cached.by("team", "red").unwrap()), ["one", "two"]);
        check("by", 2);
        cache.subscribe(Box::new(|_| {}));
        check("subscribe", 2);
        cache.store(None, &Key::of(&part("one", 2)), &Arc::new(part("one", 2)), 0);
        check("an update", 1);
        cache.delete(None, &Key::of(&part("one", 2)), Some(3));
        check("a deletion", 1);
        assert_eq!(names(&cached.by("team", "red").unwrap()), ["two"]);
        check("the rest", 1);
        CACHE.set(None);
    }

    /// The previous version of the object remains readable, and other objects keep their index
    /// values.
    #[test]
    fn index_function_that_reads_its_own_cache_fails_without_deadlock() {
        let cache = new_cache();
        let (reader, found) = (
            Cached::new(Arc::clone(&cache)),
            Arc::new(std::sync::Mutex::new(Vec::new())),
        );
        let read = Arc::clone(&found);
        cache.add_index(Index::new("itself".to_owned(), move |_: &Part| {
            let error = reader.by("itself", "x").unwrap_err();
            let free = reader.cache().objects.try_write().is_ok();
            read.lock().unwrap().push((reader.len(), error.to_string(), free));
            vec!["x".to_owned()]
        }));
        cache.put(part("three", 2));
        let refused = "an index function of the cache of Part cannot read it; its values are not updated when other \
             objects change: return values of the given object alone";
        let expected = (2, refused.to_owned(), true);
        assert_eq!(
            *found.lock().unwrap(),
            [expected.clone(), expected.clone(), expected]
        );
        assert!(cache.reads_itself.load(std::sync::atomic::Ordering::Relaxed));
        let cached = Cached::new(Arc::clone(&cache));
        assert_eq!(names(&cached.by("itself", "x").unwrap()), ["one", "three", "two"]);
    }
}

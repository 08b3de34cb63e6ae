//! Looks up an object in all caches of its kind.
//!
//! A kind may have several caches: of whole objects, of metadata, and with different selections.
//! They are not synchronized with each other. A controller may have been notified by one cache of a
//! change that another cache hasn't observed yet, and must not act on the older version. Therefore,
//! an object only counts as known if no cache can know a newer version of it.
//!
//! If a cache does not contain the object, we conclude the following:
//!
//! | cache | conclusion |
//! |---|---|
//! | does not watch the namespace, or has not listed yet | none |
//! | selects the object, judging by its labels and name | the object is gone, or does not exist yet |
//! | does not select the object, or a field decides | none, unless its watch is ahead of the watch that has the object |

use std::marker::PhantomData;
use std::sync::Arc;

use kube::core::{ObjectMeta, PartialObjectMeta};

use super::matching::Selects;
use super::registry::AnyCache;
use super::{Cache, Caches};
use crate::object::{Key, Kind, Watchable};

/// What the caches know about an object. May be stale.
#[derive(Debug)]
pub(crate) enum KnownObject {
    /// The object exists, with the metadata of its newest known version.
    Found(Box<ObjectMeta>),
    /// The object doesn't exist; some cache would contain it otherwise.
    Missing,
    /// No cache would contain the object, so it may or may not exist.
    NotCached,
}

impl Caches {
    /// Looks up an object's metadata. `wanted` is the metadata that the object would have if it
    /// existed, which determines the caches that select it.
    pub(crate) fn look_up<K: Watchable>(&self, kind: &Kind<K>, wanted: &ObjectMeta) -> KnownObject {
        let (key, caches) = (Key::of_meta(wanted), self.of_kind(kind));
        let version = |cache: &Arc<dyn AnyCache>| cache.version_of(&key)?.parse::<u64>().ok();
        let newest = caches.iter().max_by_key(|cache| version(cache));
        if let Some(found) = newest.and_then(|cache| cache.meta_of(&key)) {
            return KnownObject::Found(Box::new(found));
        }
        match caches.iter().any(|cache| would_have(&**cache, &key, wanted)) {
            true => KnownObject::Missing,
            false => KnownObject::NotCached,
        }
    }

    /// Returns the object from a cache of whole objects, unless another cache may know a newer
    /// version.
    pub(crate) fn get_consistent<K: Watchable>(&self, kind: &Kind<K>, key: &Key) -> Option<Arc<K>> {
        let caches = self.of_kind(kind);
        caches.iter().find_map(|source| {
            let object = downcast::<K>(source)?.get(key)?;
            let is_latest = is_latest(source, &caches, key, || Some(object.meta().clone()));
            is_latest.then_some(object)
        })
    }

    /// Returns `true` if some cache has the given version and no other cache may know a newer one.
    pub(crate) fn shows_version<K: Watchable>(&self, kind: &Kind<K>, key: &Key, version: &str) -> bool {
        let caches = self.of_kind(kind);
        let mut sources = caches
            .iter()
            .filter(|cache| cache.version_of(key).as_deref() == Some(version));
        sources.any(|source| is_latest(source, &caches, key, || source.meta_of(key)))
    }

    pub(crate) fn get_version<K: Watchable>(
        &self,
        kind: &Kind<K>,
        key: &Key,
        version: &str,
    ) -> Option<Arc<K>> {
        let of_kind = self.of_kind(kind);
        let found = of_kind.iter().filter_map(|cache| downcast::<K>(cache)?.get(key));
        let mut found = found.filter(|object| object.meta().resource_version.as_deref() == Some(version));
        found.next()
    }

    /// Returns `true` if a cache of whole objects contains the object with this metadata, or is
    /// going to.
    pub(crate) fn keeps_whole<K: Watchable>(&self, kind: &Kind<K>, meta: &ObjectMeta) -> bool {
        let key = Key::of_meta(meta);
        let of_kind = self.of_kind(kind);
        let mut whole = of_kind.iter().filter(|cache| downcast::<K>(cache).is_some());
        whole.any(|cache| would_have(&**cache, &key, meta))
    }

    /// Records an object that may have just been created. Otherwise its deletion would not be
    /// delivered if it's both created and deleted during a gap in the watches.
    pub(crate) fn record_created<K: Watchable>(&self, kind: &Kind<K>, created: &K) {
        for cache in self.of_kind(kind) {
            match cache.into_any().downcast::<Cache<K>>() {
                Ok(whole) => whole.record_created(created.meta(), || created.clone()),
                Err(cache) => {
                    let metadata = cache.downcast::<Cache<PartialObjectMeta<K>>>();
                    let copy = || PartialObjectMeta {
                        types: None,
                        metadata: created.meta().clone(),
                        _phantom: PhantomData,
                    };
                    metadata
                        .iter()
                        .for_each(|cache| cache.record_created(created.meta(), copy));
                }
            }
        }
    }
}

fn downcast<K: Watchable>(cache: &Arc<dyn AnyCache>) -> Option<Arc<Cache<K>>> {
    Arc::clone(cache).into_any().downcast().ok()
}

/// Returns `true` if this cache will contain the object once its watch has caught up.
fn would_have(cache: &dyn AnyCache, key: &Key, meta: &ObjectMeta) -> bool {
    cache.passed(key).is_some() && cache.selects(meta) == Selects::Yes
}

/// Returns `true` if no other cache can know a newer version than `source`. `meta` reads the
/// object's metadata from `source`.
fn is_latest(
    source: &Arc<dyn AnyCache>,
    caches: &[Arc<dyn AnyCache>],
    key: &Key,
    meta: impl Fn() -> Option<ObjectMeta>,
) -> bool {
    let mut others = caches.iter().filter(|other| !Arc::ptr_eq(other, source));
    others.all(|other| match (other.version_of(key), other.passed(key)) {
        (Some(version), _) => Some(version) == source.version_of(key),
        // `other` isn't watching yet, so no subscriber can have observed anything through it.
        (None, None) => true,
        (None, Some(passed)) => {
            // `other` may have seen the object's deletion or, if its watch is ahead, a newer
            // version that it doesn't select.
            let selects = meta().map(|meta| other.selects(&meta));
            selects.is_some_and(|selects| selects != Selects::Yes) && source.passed(key) >= Some(passed)
        }
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;
    use crate::cache::{CacheOptions, Selection, WatchId};

    fn object(name: &str, version: u64, team: &str) -> ConfigMap {
        let text = |text: &str| Some(text.to_owned());
        let mut object = ConfigMap::default();
        object.metadata.namespace = text("a");
        object.metadata.name = text(name);
        object.metadata.resource_version = Some(version.to_string());
        object.metadata.labels = Some([("team".to_owned(), team.to_owned())].into());
        object
    }

    struct Filled(Arc<Cache<ConfigMap>>, WatchId);

    impl Filled {
        fn new(caches: &Caches, selection: &Selection, namespace: Option<&str>) -> Self {
            let cache = caches.of::<ConfigMap>(&Kind::of_type(), selection);
            let (watch, health) = cache.add_watch(namespace.map(str::to_owned));
            cache.write().begin_list(watch);
            cache.write().end_list(watch);
            health.note_synced();
            Self(cache, watch)
        }

        fn deliver(&self, object: ConfigMap) {
            self.0.apply(Some(self.1), object, false);
        }

        fn delete(&self, name: &str, version: u64) {
            self.0
                .delete(Some(self.1), &Key::of(&object(name, 0, "")), Some(version));
        }
    }

    fn new_caches() -> Caches {
        let nowhere = kube::Config::new("http://127.0.0.1:9".parse().unwrap());
        let client = kube::Client::try_from(nowhere).unwrap();
        Caches::new(client, Vec::new(), CacheOptions::default()).0
    }

    /// Asserts whether the caches agree on version 7 of the object `x`.
    fn check(caches: &Caches, expected: bool, why: &str) {
        let (kind, key) = (Kind::<ConfigMap>::of_type(), Key::of(&object("x", 0, "")));
        assert_eq!(caches.get_consistent(&kind, &key).is_some(), expected, "{why}");
        assert_eq!(caches.shows_version(&kind, &key, "7"), expected, "{why}");
    }

    #[tokio::test]
    async fn cache_that_does_not_select_an_object_is_ignored() {
        let caches = new_caches();
        let all = Filled::new(&caches, &Selection::all(), None);
        all.deliver(object("x", 7, "red"));
        check(&caches, true, "there is no other cache");
        let blue = Filled::new(&caches, &Selection::all().labels("team=blue"), None);
        let fields = Filled::new(&caches, &Selection::all().fields("data.a=b"), None);
        Filled::new(&caches, &Selection::all().namespaces(["b"]), Some("b"));
        caches.of::<ConfigMap>(&Kind::of_type(), &Selection::all().labels("team"));
        check(&caches, true, "none of the others selects it, or has listed");
        for (ahead, version, why) in [(&blue, 9, "by label"), (&fields, 10, "by field")] {
            ahead.deliver(object("y", version, "blue"));
            check(&caches, false, why);
            all.deliver(object("y", version, "blue"));
            check(&caches, true, why);
        }
        let red = Filled::new(&caches, &Selection::all().labels("team=red"), None);
        check(&caches, false, "it would have the object");
        red.deliver(object("x", 8, "red"));
        check(&caches, false, "it has a newer version");
        let (kind, key) = (Kind::<ConfigMap>::of_type(), Key::of(&object("x", 0, "")));
        assert!(
            !caches.shows_version(&kind, &key, "8"),
            "the other one has an older version"
        );
        all.deliver(object("x", 8, "red"));
        assert!(caches.shows_version(&kind, &key, "8"));
        red.delete("x", 11);
        assert!(caches.get_consistent(&kind, &key).is_none(), "it was deleted");
    }

    #[tokio::test]
    async fn object_is_looked_up_in_caches_that_would_contain_it() {
        let caches = new_caches();
        let kind = Kind::<ConfigMap>::of_type();
        let found = |team: &str| match caches.look_up(&kind, &object("x", 0, team).metadata) {
            KnownObject::Found(meta) => meta.resource_version.clone().unwrap_or_default(),
            KnownObject::Missing => "missing".to_owned(),
            KnownObject::NotCached => "not cached".to_owned(),
        };
        let not_listed = caches.of::<ConfigMap>(&kind, &Selection::all().labels("team"));
        not_listed.add_watch(None);
        Filled::new(&caches, &Selection::all().namespaces(["b"]), Some("b"));
        let red = Filled::new(&caches, &Selection::all().labels("team=red"), None);
        assert_eq!([found("red"), found("blue")], ["missing", "not cached"]);
        red.deliver(object("x", 7, "red"));
        assert_eq!([found("red"), found("blue")], ["7", "7"]);
        let all = Filled::new(&caches, &Selection::all(), None);
        all.deliver(object("x", 8, "red"));
        assert_eq!(found("red"), "8");
    }
}

//! Tests of the changes delivered to subscribers, and of own writes.

use std::sync::Mutex;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Resource;
use kube::core::ObjectMeta;

use super::*;
use crate::object::Decoded;

fn object(namespace: &str, name: &str, version: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.namespace = Some(namespace.to_owned());
    object.metadata.name = Some(name.to_owned());
    object.metadata.resource_version = Some(version.to_owned());
    object.metadata.managed_fields = Some(Vec::new());
    object
}

fn undecodable(name: &str, version: &str) -> Undecodable {
    let text = format!(
        r#"{{"metadata":{{"namespace":"a","name":"{name}","resourceVersion":"{version}"}},"data":1}}"#
    );
    match serde_json::from_str(&text).unwrap() {
        Decoded::<ConfigMap>::Undecodable(object) => *object,
        Decoded::Object { object, .. } => panic!("decoded {object:?}"),
    }
}

/// Creates a cache with a subscriber that records its events as strings.
fn new_recorded_cache() -> (Cache<ConfigMap>, Arc<Mutex<Vec<String>>>) {
    let cache = Cache::new(Kind::of_type(), Selection::all());
    let log = Arc::new(Mutex::new(Vec::new()));
    let received = Arc::clone(&log);
    cache.subscribe(Box::new(move |event| {
        received.lock().unwrap().push(describe(event))
    }));
    (cache, log)
}

/// Formats an event as its versions before and after, e.g. `a/x 5>6`.
fn describe(event: &CacheEvent<ConfigMap>) -> String {
    let version = |meta: &ObjectMeta| meta.resource_version.clone().unwrap_or_default();
    let before = |old: &Option<Arc<ConfigMap>>| {
        let old = old.as_deref();
        old.map_or_else(|| "-".to_owned(), |old| version(old.meta()))
    };
    let suffix = |initial: &bool| if *initial { " initial" } else { "" };
    match event {
        CacheEvent::Change(Change::Applied { old, new, initial }) => format!(
            "{} {}>{}{}",
            Key::of(&**new),
            before(old),
            version(new.meta()),
            suffix(initial)
        ),
        CacheEvent::Change(Change::Deleted(old)) => format!("{} {}>-", Key::of(&**old), version(old.meta())),
        CacheEvent::Undecodable { old, new, initial } => {
            let meta = new.object.metadata();
            format!(
                "{} {}>undecodable {}{}",
                Key::of_meta(meta),
                before(old),
                version(meta),
                suffix(initial)
            )
        }
        CacheEvent::UndecodableDeleted(old) => {
            let meta = old.object.metadata();
            format!("{} undecodable {}>-", Key::of_meta(meta), version(meta))
        }
    }
}

#[test]
fn subscribers_receive_old_and_new_objects_without_repetition() {
    let (cache, log) = new_recorded_cache();
    cache.apply(None, object("a", "x", "1"), true);
    cache.apply(None, object("a", "x", "2"), false);
    cache.apply(None, object("a", "x", "2"), false);
    cache.delete(None, &Key::of(&object("a", "x", "3")), Some(3));
    cache.delete(None, &Key::of(&object("a", "x", "3")), Some(3));
    assert_eq!(*log.lock().unwrap(), ["a/x ->1 initial", "a/x 1>2", "a/x 2>-"]);
}

fn begin_list(cache: &Cache<ConfigMap>) -> WatchId {
    let watch = cache.write().add_watch(None);
    cache.write().begin_list(watch);
    watch
}

#[test]
fn relist_only_deletes_missing_objects_of_its_namespace() {
    let (cache, log) = new_recorded_cache();
    for (namespace, name) in [("a", "x"), ("a", "y"), ("b", "x")] {
        cache.apply(None, object(namespace, name, "1"), true);
    }
    log.lock().unwrap().clear();
    let watch = begin_list(&cache);
    cache.apply(Some(watch), object("a", "y", "1"), false);
    cache.delete_unlisted(watch, Some("a"), &HashSet::default(), HashSet::default());
    assert_eq!(*log.lock().unwrap(), ["a/x 1>-"]);
    cache.write().begin_list(watch);
    cache.delete_unlisted(watch, None, &HashSet::default(), HashSet::default());
    assert!(cache.keys().is_empty());
}

fn record_created(cache: &Cache<ConfigMap>, object: ConfigMap) {
    let meta = object.metadata.clone();
    cache.record_created(&meta, || object);
}

#[test]
fn object_created_and_deleted_within_a_watch_gap_is_delivered_as_deleted() {
    let (cache, log) = new_recorded_cache();
    let watch = cache.write().add_watch(None);
    cache.write().end_list(watch);
    for name in ["gone", "listed", "watched", "elsewhere"] {
        let namespace = if name == "elsewhere" { "b" } else { "a" };
        record_created(&cache, object(namespace, name, "4"));
    }
    cache.apply(Some(watch), object("a", "watched", "2"), false);
    cache.delete(Some(watch), &Key::of(&object("a", "watched", "3")), Some(3));
    let expected = cache.unseen.keys();
    cache.write().begin_list(watch);
    // Created while listing, so the list may not contain it.
    record_created(&cache, object("a", "late", "1"));
    cache.apply(Some(watch), object("a", "listed", "1"), false);
    log.lock().unwrap().clear();

    cache.delete_unlisted(watch, Some("a"), &HashSet::default(), expected);
    assert_eq!(*log.lock().unwrap(), ["a/gone 4>-"]);
    cache.delete_unlisted(watch, Some("a"), &HashSet::default(), cache.unseen.keys());
    assert_eq!(*log.lock().unwrap(), ["a/gone 4>-", "a/late 1>-"]);
}

/// Objects that a watch never delivers would leak otherwise.
#[test]
fn created_object_is_remembered_until_its_watch_has_passed_it() {
    let (cache, _) = new_recorded_cache();
    let unseen = |expected: &[&str]| {
        let mut keys: Vec<_> = cache.unseen.keys().iter().map(ToString::to_string).collect();
        keys.sort_unstable();
        assert_eq!(keys, expected);
    };
    record_created(&cache, object("a", "unwatched", "5"));
    unseen(&[]);
    let watches = ["a", "b"].map(|namespace| {
        let watch = cache.write().add_watch(Some(namespace.to_owned()));
        cache.apply(Some(watch), object(namespace, "x", "5"), true);
        cache.write().end_list(watch);
        watch
    });
    for (namespace, name, version) in [
        ("c", "elsewhere", "9"),
        ("a", "passed", "4"),
        ("a", "one", "7"),
        ("a", "two", "9"),
        ("b", "three", "6"),
    ] {
        record_created(&cache, object(namespace, name, version));
    }
    unseen(&["a/one", "a/two", "b/three"]);
    // Created after the first object.
    cache.apply(Some(watches[0]), object("a", "x", "8"), false);
    unseen(&["a/two", "b/three"]);
    // The response arrives after the events.
    record_created(&cache, object("a", "late", "8"));
    unseen(&["a/two", "b/three"]);
    cache.delete(Some(watches[1]), &Key::of(&object("b", "x", "")), Some(6));
    unseen(&["a/two"]);
    // Lists are sorted by name.
    cache.write().begin_list(watches[0]);
    cache.apply(Some(watches[0]), object("a", "x", "10"), false);
    unseen(&["a/two"]);
    cache.apply(Some(watches[0]), object("a", "two", "9"), false);
    unseen(&[]);

    let labelled = Cache::<ConfigMap>::new(Kind::of_type(), Selection::all().labels("a=b"));
    let watch = labelled.write().add_watch(None);
    labelled.write().end_list(watch);
    record_created(&labelled, object("a", "unselected", "5"));
    assert!(labelled.unseen.keys().is_empty());
}

/// A list may keep failing, e.g. because of a missing permission in that namespace.
#[test]
fn own_writes_are_visible_while_another_namespace_is_listed() {
    let (cache, _) = new_recorded_cache();
    let [listing, other] = ["a", "b"].map(|namespace| {
        let watch = cache.write().add_watch(Some(namespace.to_owned()));
        cache.write().begin_list(watch);
        watch
    });
    cache.write().end_list(other);
    let write = |namespace: &str, version: &str| {
        let start = cache.read().begin_write();
        cache.put_own_write(start, object(namespace, "own", version));
        let found = cache.get(&Key::of(&object(namespace, "own", "")))?;
        found.metadata.resource_version.clone()
    };
    assert_eq!(write("b", "8").as_deref(), Some("8"));
    assert_eq!(write("a", "8"), None);
    cache.write().end_list(listing);
    assert_eq!(write("a", "9").as_deref(), Some("9"));
    // A list that overlaps with the request only matters in its own namespace.
    let start = cache.read().begin_write();
    cache.write().begin_list(listing);
    cache.write().end_list(listing);
    for (namespace, expected) in [("a", "9"), ("b", "10")] {
        cache.put_own_write(start, object(namespace, "own", "10"));
        let found = cache.get(&Key::of(&object(namespace, "own", ""))).unwrap();
        assert_eq!(found.metadata.resource_version.as_deref(), Some(expected));
    }
    let start = cache.read().begin_write();
    cache.write().begin_list(listing);
    let key = Key::of(&object_with_uid("own", "", ""));
    cache.apply(Some(listing), object_with_uid("own", "11", "uid"), false);
    cache.write().put_own_deletion(start, &key, "uid");
    assert!(cache.get(&key).is_some(), "its list has the last word");
}

/// Label selectors can be evaluated locally if they're simple enough.
#[test]
fn own_writes_are_stored_if_selected() {
    let cache = Cache::<ConfigMap>::new(Kind::of_type(), Selection::all().labels("team=red"));
    let watch = cache.write().add_watch(None);
    cache.write().end_list(watch);
    for (name, team) in [("ours", "red"), ("theirs", "blue")] {
        let mut written = object("a", name, "5");
        written.metadata.labels = Some([("team".to_owned(), team.to_owned())].into());
        let start = cache.read().begin_write();
        cache.put_own_write(start, written);
    }
    assert_eq!(stored(&cache, "ours").as_deref(), Some("5"));
    assert_eq!(stored(&cache, "theirs"), None);
}

#[test]
fn late_subscriber_receives_existing_objects() {
    let (cache, _) = new_recorded_cache();
    cache.apply(None, object("a", "x", "1"), true);
    cache.apply_undecodable(None, undecodable("bad", "2"), true);
    let log = Arc::new(Mutex::new(Vec::new()));
    let received = Arc::clone(&log);
    cache.subscribe(Box::new(move |event| {
        received.lock().unwrap().push(describe(event))
    }));
    cache.apply(None, object("a", "y", "1"), false);
    let expected = ["a/x ->1 initial", "a/bad ->undecodable 2 initial", "a/y ->1"];
    assert_eq!(*log.lock().unwrap(), expected);
}

#[test]
fn object_that_becomes_undecodable_is_no_longer_readable() {
    let (cache, log) = new_recorded_cache();
    let key = Key::of(&object("a", "x", ""));
    cache.apply(None, object("a", "x", "1"), true);
    cache.apply_undecodable(None, undecodable("x", "2"), false);
    assert!(cache.get(&key).is_none());
    assert!(cache.undecodable(&key).is_some());
    // A relist delivers the same version again.
    cache.apply_undecodable(None, undecodable("x", "2"), false);
    cache.apply(None, object("a", "x", "3"), false);
    assert!(cache.get(&key).is_some());
    assert!(cache.undecodable(&key).is_none());
    let expected = ["a/x ->1 initial", "a/x 1>undecodable 2", "a/x ->3"];
    assert_eq!(*log.lock().unwrap(), expected);
}

#[test]
fn the_deletion_of_an_undecodable_object_is_delivered() {
    let (cache, log) = new_recorded_cache();
    for name in ["watched", "unlisted", "listed"] {
        cache.apply_undecodable(None, undecodable(name, "1"), true);
    }
    log.lock().unwrap().clear();
    cache.delete(None, &Key::of(&object("a", "watched", "2")), Some(2));
    let listed = HashSet::from_iter([Key::of(&object("a", "listed", "1"))]);
    let watch = begin_list(&cache);
    cache.delete_unlisted(watch, None, &listed, HashSet::default());
    let expected = ["a/watched undecodable 1>-", "a/unlisted undecodable 1>-"];
    assert_eq!(*log.lock().unwrap(), expected);
}

#[test]
fn event_about_an_undecodable_object_is_recorded_once_per_reason() {
    let (cache, _) = new_recorded_cache();
    let key = Key::of(&object("a", "x", ""));
    cache.apply_undecodable(None, undecodable("x", "1"), true);
    assert!(cache.undecodable(&key).unwrap().claim_event());
    cache.apply_undecodable(None, undecodable("x", "2"), false);
    let again = cache.undecodable(&key).unwrap();
    assert!(!again.is_first_of_reason());
    assert!(!again.claim_event());
    cache.apply(None, object("a", "x", "3"), false);
    cache.apply_undecodable(None, undecodable("x", "4"), false);
    assert!(cache.undecodable(&key).unwrap().claim_event());
}

#[test]
fn own_write_replaces_an_undecodable_object() {
    let (cache, log, watch) = new_watched_cache();
    let key = Key::of(&object("a", "bad", ""));
    cache.apply_undecodable(watch, undecodable("bad", "6"), false);
    let start = cache.read().begin_write();
    cache.put_own_write(start, object("a", "bad", "9"));
    assert!(cache.get(&key).is_some() && cache.undecodable(&key).is_none());
    // Another client's write, from before ours.
    cache.apply_undecodable(watch, undecodable("bad", "7"), false);
    assert!(cache.get(&key).is_some());
    cache.apply(watch, object("a", "bad", "9"), false);
    let expected = ["a/bad ->undecodable 6", "a/bad ->9"];
    assert_eq!(*log.lock().unwrap(), expected);
}

#[test]
fn older_own_write_does_not_replace_an_undecodable_object() {
    let (cache, _, watch) = new_watched_cache();
    let start = cache.read().begin_write();
    cache.apply_undecodable(watch, undecodable("bad", "9"), false);
    cache.put_own_write(start, object("a", "bad", "8"));
    assert!(cache.undecodable(&Key::of(&object("a", "bad", ""))).is_some());
}

/// Creates a cache whose only watch has completed its initial list.
fn new_watched_cache() -> (Cache<ConfigMap>, Arc<Mutex<Vec<String>>>, Option<WatchId>) {
    let (cache, log) = new_recorded_cache();
    let watch = cache.write().add_watch(None);
    cache.apply(Some(watch), object("a", "x", "5"), true);
    cache.write().end_list(watch);
    log.lock().unwrap().clear();
    (cache, log, Some(watch))
}

fn write(cache: &Cache<ConfigMap>, name: &str, version: &str) {
    let start = cache.read().begin_write();
    cache.put_own_write(start, object("a", name, version));
}

fn stored(cache: &Cache<ConfigMap>, name: &str) -> Option<String> {
    let stored = cache.get(&Key::of(&object("a", name, "")))?;
    stored.metadata.resource_version.clone()
}

#[test]
fn readers_see_own_writes_at_once_but_subscribers_only_watch_events() {
    let (cache, log, watch) = new_watched_cache();
    write(&cache, "x", "8");
    write(&cache, "x", "9");
    assert_eq!(stored(&cache, "x").as_deref(), Some("9"));
    assert_eq!(*log.lock().unwrap(), [""; 0]);

    // Another client wrote first; the watch now delivers both of our writes.
    for version in ["7", "8", "9"] {
        cache.apply(watch, object("a", "x", version), false);
        assert_eq!(
            stored(&cache, "x").as_deref(),
            Some("9"),
            "an older event does not replace a newer object"
        );
    }
    assert_eq!(*log.lock().unwrap(), ["a/x 5>7", "a/x 7>8", "a/x 8>9"]);
    cache.apply(watch, object("a", "x", "11"), false);
    assert_eq!(stored(&cache, "x").as_deref(), Some("11"));
    assert_eq!(log.lock().unwrap().last().unwrap(), "a/x 9>11");
}

#[test]
fn object_created_and_deleted_again_does_not_stay() {
    let (cache, log, watch) = new_watched_cache();
    write(&cache, "new", "8");
    assert_eq!(stored(&cache, "new").as_deref(), Some("8"));
    cache.apply(watch, object("a", "new", "8"), false);
    cache.delete(watch, &Key::of(&object("a", "new", "")), Some(9));
    assert_eq!(stored(&cache, "new"), None);
    assert_eq!(*log.lock().unwrap(), ["a/new ->8", "a/new 8>-"]);
    // The response arrives after the deletion.
    write(&cache, "new", "8");
    assert_eq!(stored(&cache, "new"), None);
}

#[test]
fn recreated_object_survives_the_late_event_of_its_deletion() {
    let (cache, log, watch) = new_watched_cache();
    write(&cache, "x", "9");
    cache.delete(watch, &Key::of(&object("a", "x", "")), Some(7));
    assert_eq!(stored(&cache, "x").as_deref(), Some("9"));
    cache.apply(watch, object("a", "x", "9"), false);
    assert_eq!(*log.lock().unwrap(), ["a/x 5>-", "a/x ->9"]);
}

#[test]
fn list_overrides_finished_and_pending_own_writes() {
    let (cache, log, watch) = new_watched_cache();
    let before_list = cache.read().begin_write();
    write(&cache, "x", "8");
    write(&cache, "gone", "9");
    cache.write().begin_list(watch.unwrap());
    cache.put_own_write(before_list, object("a", "late", "10"));
    let during_list = cache.read().begin_write();
    cache.apply(watch, object("a", "x", "6"), false);
    cache.delete_unlisted(watch.unwrap(), None, &HashSet::default(), HashSet::default());
    cache.write().end_list(watch.unwrap());
    cache.put_own_write(before_list, object("a", "late", "10"));
    // The object may have been deleted before the list was taken, and the watch only delivers later
    // events.
    cache.put_own_write(during_list, object("a", "late", "11"));
    assert_eq!(stored(&cache, "x").as_deref(), Some("6"));
    assert_eq!((stored(&cache, "gone"), stored(&cache, "late")), (None, None));
    // The owner of `gone` may be waiting for its deletion.
    assert_eq!(*log.lock().unwrap(), ["a/x 5>6", "a/gone 9>-"]);
}

#[test]
fn own_writes_that_no_watch_will_deliver_are_not_stored() {
    let (cache, _) = new_recorded_cache();
    write(&cache, "unwatched", "8");
    assert_eq!(stored(&cache, "unwatched"), None);
    let watch = cache.write().add_watch(Some("b".to_owned()));
    cache.write().end_list(watch);
    write(&cache, "elsewhere", "8");
    assert_eq!(stored(&cache, "elsewhere"), None);

    let selective = Cache::<ConfigMap>::new(Kind::of_type(), Selection::all().labels("a=b"));
    let watch = selective.write().add_watch(None);
    selective.apply(Some(watch), object("a", "selected", "5"), true);
    selective.write().end_list(watch);
    write(&selective, "unknown", "8");
    write(&selective, "selected", "8");
    assert_eq!(stored(&selective, "unknown"), None);
    assert_eq!(stored(&selective, "selected").as_deref(), Some("8"));
}

fn object_with_uid(name: &str, version: &str, uid: &str) -> ConfigMap {
    let mut object = object("a", name, version);
    object.metadata.uid = Some(uid.to_owned());
    object
}

/// Simulates a delete of `a/x` to which the API server responds that the object is gone.
fn delete_own(cache: &Cache<ConfigMap>, uid: &str) {
    let start = cache.read().begin_write();
    cache
        .write()
        .put_own_deletion(start, &Key::of(&object("a", "x", "")), uid);
}

/// Creates a cache that has listed `a/x` with UID `one`.
fn new_cache_with_uid() -> (Cache<ConfigMap>, Arc<Mutex<Vec<String>>>, Option<WatchId>) {
    let (cache, log, watch) = new_watched_cache();
    cache.apply(watch, object_with_uid("x", "6", "one"), false);
    log.lock().unwrap().clear();
    (cache, log, watch)
}

#[test]
fn own_deletions_hide_objects_from_readers_but_not_from_subscribers() {
    let (cache, log, watch) = new_cache_with_uid();
    delete_own(&cache, "one");
    assert_eq!(stored(&cache, "x"), None);
    assert_eq!(*log.lock().unwrap(), [""; 0]);
    // An earlier write by another client.
    cache.apply(watch, object_with_uid("x", "7", "one"), false);
    assert_eq!(stored(&cache, "x"), None, "it does not come back");
    // A late response to one of our earlier writes.
    let start = cache.read().begin_write();
    cache.put_own_write(start, object_with_uid("x", "8", "one"));
    assert_eq!(stored(&cache, "x"), None, "nor so");
    cache.delete(watch, &Key::of(&object("a", "x", "")), Some(9));
    assert_eq!(*log.lock().unwrap(), ["a/x 6>7", "a/x 7>-"]);
    // Nothing must be left behind.
    assert_eq!(cache.stats().own_writes, 0);
    cache.apply(watch, object_with_uid("x", "11", "one"), false);
    assert_eq!(stored(&cache, "x").as_deref(), Some("11"));
}

#[test]
fn object_recreated_after_an_own_deletion_is_visible() {
    let (cache, log, watch) = new_cache_with_uid();
    delete_own(&cache, "one");
    let start = cache.read().begin_write();
    cache.put_own_write(start, object_with_uid("x", "10", "two"));
    assert_eq!(stored(&cache, "x").as_deref(), Some("10"));
    cache.delete(watch, &Key::of(&object("a", "x", "")), Some(9));
    assert_eq!(stored(&cache, "x").as_deref(), Some("10"));
    cache.apply(watch, object_with_uid("x", "10", "two"), false);
    assert_eq!(*log.lock().unwrap(), ["a/x 6>-", "a/x ->10"]);

    delete_own(&cache, "one");
    assert_eq!(
        stored(&cache, "x").as_deref(),
        Some("10"),
        "an answer about the other one"
    );
    delete_own(&cache, "two");
    cache.delete(watch, &Key::of(&object("a", "x", "")), Some(12));
    cache.apply(watch, object_with_uid("x", "13", "three"), false);
    assert_eq!(stored(&cache, "x").as_deref(), Some("13"));
}

#[test]
fn list_settles_own_deletions() {
    for is_listed in [false, true] {
        let (cache, log, watch) = new_cache_with_uid();
        delete_own(&cache, "one");
        cache.write().begin_list(watch.unwrap());
        let key = Key::of(&object("a", "x", ""));
        if is_listed {
            // This list was taken before the deletion.
            cache.apply(watch, object_with_uid("x", "7", "one"), false);
        }
        cache.delete_unlisted(watch.unwrap(), None, &HashSet::default(), HashSet::default());
        // The request may have been sent before the list even though the response arrives after it.
        let during = cache.read().begin_write();
        cache.write().end_list(watch.unwrap());
        cache.write().put_own_deletion(during, &key, "one");
        let expected = if is_listed { "a/x 6>7" } else { "a/x 6>-" };
        assert_eq!(*log.lock().unwrap(), [expected]);
        assert_eq!(stored(&cache, "x").is_some(), is_listed);
        assert_eq!(cache.stats().own_writes, 0);
    }
}

#[test]
fn own_creation_and_deletion_are_both_delivered() {
    let (cache, log, watch) = new_watched_cache();
    let start = cache.read().begin_write();
    cache.put_own_write(start, object_with_uid("new", "8", "new"));
    let key = Key::of(&object("a", "new", ""));
    cache.write().put_own_deletion(start, &key, "new");
    assert_eq!(stored(&cache, "new"), None);
    cache.apply(watch, object_with_uid("new", "8", "new"), false);
    assert_eq!(stored(&cache, "new"), None);
    cache.delete(watch, &key, Some(9));
    assert_eq!(*log.lock().unwrap(), ["a/new ->8", "a/new 8>-"]);
}

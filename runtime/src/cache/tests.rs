//! Changes as subscribers hear of them, and own writes.

use super::*;
use k8s_openapi::api::core::v1::ConfigMap;

fn object(namespace: &str, name: &str, version: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.namespace = Some(namespace.to_owned());
    object.metadata.name = Some(name.to_owned());
    object.metadata.resource_version = Some(version.to_owned());
    object.metadata.managed_fields = Some(Vec::new());
    object
}

/// A cache and the changes that reached its subscriber, as text.
fn recorded() -> (Cache<ConfigMap>, Arc<Mutex<Vec<String>>>) {
    let cache = Cache::new(Kind::of_type(), Selection::all(), Trim::default());
    let log = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&log);
    cache.subscribe(Box::new(move |change: &Change<ConfigMap>| {
        let version = |object: &ConfigMap| object.metadata.resource_version.clone().unwrap_or_default();
        let line = match change {
            Change::Applied { old, new, initial } => {
                let old = old.as_deref().map_or_else(|| "-".to_owned(), version);
                format!(
                    "{} {old}>{}{}",
                    Key::of(&**new),
                    version(new),
                    if *initial { " initial" } else { "" }
                )
            }
            Change::Deleted(old) => format!("{} {}>-", Key::of(&**old), version(old)),
        };
        told.lock().unwrap().push(line);
    }));
    (cache, log)
}

#[test]
fn subscribers_see_old_and_new_and_no_repetition() {
    let (cache, log) = recorded();
    cache.apply(None, object("a", "x", "1"), true);
    cache.apply(None, object("a", "x", "2"), false);
    cache.apply(None, object("a", "x", "2"), false);
    cache.delete(None, &Key::of(&object("a", "x", "3")), Some(3));
    cache.delete(None, &Key::of(&object("a", "x", "3")), Some(3));
    assert_eq!(*log.lock().unwrap(), ["a/x ->1 initial", "a/x 1>2", "a/x 2>-"]);
}

#[test]
fn a_new_list_deletes_what_it_lacks_in_its_own_namespace_only() {
    let (cache, log) = recorded();
    for (namespace, name) in [("a", "x"), ("a", "y"), ("b", "x")] {
        cache.apply(None, object(namespace, name, "1"), true);
    }
    log.lock().unwrap().clear();
    let seen = HashSet::from([Key::of(&object("a", "y", "1"))]);
    cache.keep_only(Some("a"), &seen, HashSet::new());
    assert_eq!(*log.lock().unwrap(), ["a/x 1>-"]);
    cache.keep_only(None, &HashSet::new(), HashSet::new());
    assert!(cache.keys().is_empty());
}

#[test]
fn what_was_written_and_is_gone_before_it_was_seen_is_told_as_deleted() {
    let (cache, log) = recorded();
    for name in ["gone", "listed", "watched", "elsewhere"] {
        let namespace = if name == "elsewhere" { "b" } else { "a" };
        cache.wrote(object(namespace, name, "1"));
    }
    cache.apply(None, object("a", "watched", "2"), false);
    cache.delete(None, &Key::of(&object("a", "watched", "3")), Some(3));
    let expected = cache.written.expected();
    // It may be missing in the list that is on its way.
    cache.wrote(object("a", "late", "1"));
    cache.apply(None, object("a", "listed", "1"), false);
    log.lock().unwrap().clear();

    let seen = HashSet::from([Key::of(&object("a", "listed", "1"))]);
    cache.keep_only(Some("a"), &seen, expected);
    assert_eq!(*log.lock().unwrap(), ["a/gone 1>-"]);
    cache.keep_only(Some("a"), &seen, cache.written.expected());
    assert_eq!(*log.lock().unwrap(), ["a/gone 1>-", "a/late 1>-"]);
}

#[test]
fn who_subscribes_late_hears_of_what_is_there() {
    let (cache, _) = recorded();
    cache.apply(None, object("a", "x", "1"), true);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&heard);
    cache.subscribe(Box::new(move |change: &Change<ConfigMap>| {
        let initial = matches!(change, Change::Applied { initial: true, .. });
        let key = Key::of(&**change.object()).to_string();
        told.lock().unwrap().push((key, initial));
    }));
    cache.apply(None, object("a", "y", "1"), false);
    assert_eq!(
        *heard.lock().unwrap(),
        [("a/x".to_owned(), true), ("a/y".to_owned(), false)]
    );
}

/// A cache with one watch, which has listed.
fn watched() -> (Cache<ConfigMap>, Arc<Mutex<Vec<String>>>, Option<ScopeId>) {
    let (cache, log) = recorded();
    let scope = cache.write().add_scope(None);
    cache.apply(Some(scope), object("a", "x", "5"), true);
    cache.write().list_ends(scope);
    log.lock().unwrap().clear();
    (cache, log, Some(scope))
}

fn write(cache: &Cache<ConfigMap>, name: &str, version: &str) {
    let began = cache.read().begin_write();
    cache.put_own(began, object("a", name, version));
}

fn held(cache: &Cache<ConfigMap>, name: &str) -> Option<String> {
    let held = cache.get(&Key::of(&object("a", name, "")))?;
    held.metadata.resource_version.clone()
}

#[test]
fn readers_see_own_writes_at_once_and_subscribers_what_the_watch_tells() {
    let (cache, log, scope) = watched();
    write(&cache, "x", "8");
    write(&cache, "x", "9");
    assert_eq!(held(&cache, "x").as_deref(), Some("9"));
    assert_eq!(*log.lock().unwrap(), [""; 0]);

    // Somebody else was quicker; then the watch tells of both writes.
    for version in ["7", "8", "9"] {
        cache.apply(scope, object("a", "x", version), false);
        assert_eq!(
            held(&cache, "x").as_deref(),
            Some("9"),
            "nothing goes back in time"
        );
    }
    assert_eq!(*log.lock().unwrap(), ["a/x 5>7", "a/x 7>8", "a/x 8>9"]);
    cache.apply(scope, object("a", "x", "11"), false);
    assert_eq!(held(&cache, "x").as_deref(), Some("11"));
    assert_eq!(log.lock().unwrap().last().unwrap(), "a/x 9>11");
}

#[test]
fn what_was_made_and_deleted_again_does_not_stay() {
    let (cache, log, scope) = watched();
    write(&cache, "new", "8");
    assert_eq!(held(&cache, "new").as_deref(), Some("8"));
    cache.apply(scope, object("a", "new", "8"), false);
    cache.delete(scope, &Key::of(&object("a", "new", "")), Some(9));
    assert_eq!(held(&cache, "new"), None);
    assert_eq!(*log.lock().unwrap(), ["a/new ->8", "a/new 8>-"]);
    // The answer to the write comes late.
    write(&cache, "new", "8");
    assert_eq!(held(&cache, "new"), None);
}

#[test]
fn what_was_made_anew_outlives_the_news_of_its_deletion() {
    let (cache, log, scope) = watched();
    write(&cache, "x", "9");
    cache.delete(scope, &Key::of(&object("a", "x", "")), Some(7));
    assert_eq!(held(&cache, "x").as_deref(), Some("9"));
    cache.apply(scope, object("a", "x", "9"), false);
    assert_eq!(*log.lock().unwrap(), ["a/x 5>-", "a/x ->9"]);
}

#[test]
fn a_list_decides_over_own_writes_and_over_those_under_way() {
    let (cache, log, scope) = watched();
    let began = cache.read().begin_write();
    write(&cache, "x", "8");
    write(&cache, "gone", "9");
    cache.write().list_begins(scope.unwrap());
    cache.put_own(began, object("a", "late", "10"));
    let meanwhile = cache.read().begin_write();
    cache.apply(scope, object("a", "x", "6"), false);
    let seen = HashSet::from([Key::of(&object("a", "x", ""))]);
    cache.keep_only(None, &seen, HashSet::new());
    cache.write().list_ends(scope.unwrap());
    cache.put_own(began, object("a", "late", "10"));
    // Somebody may have deleted it again before the list was made, and the watch tells of what comes after.
    cache.put_own(meanwhile, object("a", "late", "11"));
    assert_eq!(held(&cache, "x").as_deref(), Some("6"));
    assert_eq!((held(&cache, "gone"), held(&cache, "late")), (None, None));
    // Its owner may wait for it.
    assert_eq!(*log.lock().unwrap(), ["a/x 5>6", "a/gone 9>-"]);
}

#[test]
fn what_no_watch_will_tell_of_is_not_held() {
    let (cache, _) = recorded();
    write(&cache, "unwatched", "8");
    assert_eq!(held(&cache, "unwatched"), None);
    let scope = cache.write().add_scope(Some("b".to_owned()));
    cache.write().list_ends(scope);
    write(&cache, "elsewhere", "8");
    assert_eq!(held(&cache, "elsewhere"), None);

    let choosy = Cache::<ConfigMap>::new(Kind::of_type(), Selection::all().labels("a=b"), Trim::default());
    let scope = choosy.write().add_scope(None);
    choosy.apply(Some(scope), object("a", "chosen", "5"), true);
    choosy.write().list_ends(scope);
    write(&choosy, "perhaps", "8");
    write(&choosy, "chosen", "8");
    assert_eq!(held(&choosy, "perhaps"), None);
    assert_eq!(held(&choosy, "chosen").as_deref(), Some("8"));
}

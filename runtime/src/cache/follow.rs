//! The watch behind a cache: kube's `watcher`, and what to say when it stumbles.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use kube::Client;
use kube::runtime::watcher::{self, DefaultBackoff};
use tokio::time::Instant;

use super::objects::version;
use super::{Cache, Lean, ScopeId, Trim};
use crate::object::{Key, Kind, Watchable};

/// The longest wait between two tries to fill a cache; controllers are waiting for it.
const RETRY_UNTIL_SYNCED: Duration = Duration::from_secs(10);
/// A watch that went on for this long before it failed is not failing at once.
const LASTED: Duration = Duration::from_secs(30);

/// What kube tells of a watch.
type Events<K> = BoxStream<'static, watcher::Result<watcher::Event<K>>>;

impl<K: Watchable> Cache<K> {
    /// Follows the objects of one namespace, or of all, for as long as it is polled.
    pub(super) async fn follow(self: Arc<Self>, client: Client, namespace: Option<String>) {
        let watch = || self.events(client.clone(), namespace.as_deref());
        let mut events = watch();
        let mut pauses = Pauses::new();
        let scope = self.write().add_scope(namespace.clone());
        let mut list = List::of(scope);
        let mut synced = false;
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    if is_progress(&event) {
                        pauses.forget();
                    }
                    self.take(event, namespace.as_deref(), &mut list, &mut synced);
                }
                Err(error) if is_silence(&error) => {
                    // Normal where the API server sends no bookmarks, as for a kind that never changed.
                    tracing::debug!(kind = %self.kind.name(), %error, "watch idle for too long, restarting it");
                }
                Err(error) => {
                    self.note_error(&error);
                    if is_expired(&error) {
                        // kube's watcher lists anew when an event says so, but not when the answer itself does.
                        events = watch();
                    }
                    let longest = if synced { Duration::MAX } else { RETRY_UNTIL_SYNCED };
                    tokio::time::sleep(pauses.next().min(longest)).await;
                    pauses.ended();
                }
            }
        }
    }

    /// What happens to the objects, without what the cache drops of them.
    fn events(&self, client: Client, namespace: Option<&str>) -> Events<K> {
        let config = self.selection.watcher_config();
        if self.trim == Trim::default() {
            let api = self.kind.lean_api(client, namespace);
            let events = watcher::watcher(api, config);
            events.map(|event| event.map(whole)).boxed()
        } else {
            watcher::watcher(self.kind.api(client, namespace), config).boxed()
        }
    }

    /// Does to the cache what a watch tells of one namespace, or of all. `list` is the one that has not
    /// ended yet; `synced` says whether there has been a whole one.
    fn take(&self, event: watcher::Event<K>, namespace: Option<&str>, list: &mut List, synced: &mut bool) {
        match event {
            watcher::Event::Init => {
                self.write().list_begins(list.scope);
                *list = List {
                    expected: self.written.expected(),
                    ..List::of(list.scope)
                }
            }
            watcher::Event::InitApply(object) => {
                list.seen.insert(Key::of(&object));
                self.apply(Some(list.scope), object, !*synced);
            }
            watcher::Event::InitDone => {
                let scope = list.scope;
                let List { seen, expected, .. } = std::mem::replace(list, List::of(scope));
                self.keep_only(namespace, &seen, expected);
                self.write().list_ends(scope);
                if !std::mem::replace(synced, true) {
                    self.scope_synced();
                }
            }
            watcher::Event::Apply(object) => self.apply(Some(list.scope), object, false),
            watcher::Event::Delete(object) => {
                self.delete(Some(list.scope), &Key::of(&object), version(&object));
            }
        }
    }

    fn note_error(&self, error: &watcher::Error) {
        let error = explain(&self.kind, error);
        tracing::warn!(kind = %self.kind.name(), %error, "watch failed, retrying");
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = error;
    }
}

/// The event of an object as the event of what it stands for.
fn whole<K>(event: watcher::Event<Lean<K>>) -> watcher::Event<K> {
    use watcher::Event::{Apply, Delete, Init, InitApply, InitDone};
    match event {
        Apply(Lean(object)) => Apply(object),
        Delete(Lean(object)) => Delete(object),
        Init => Init,
        InitApply(Lean(object)) => InitApply(object),
        InitDone => InitDone,
    }
}

/// A list of objects on its way.
struct List {
    /// Whose list it is.
    scope: ScopeId,
    seen: HashSet<Key>,
    /// What this process had written, and not seen, before it asked for the list.
    expected: HashSet<Key>,
}

impl List {
    fn of(scope: ScopeId) -> Self {
        Self {
            scope,
            seen: HashSet::new(),
            expected: HashSet::new(),
        }
    }
}

/// The pauses between tries to watch: client-go's, 800 ms doubling to 30 s, for as long as one failure follows the
/// other.
struct Pauses {
    backoff: Option<DefaultBackoff>,
    /// When the last pause was over.
    since: Instant,
}

impl Pauses {
    fn new() -> Self {
        Self {
            backoff: None,
            since: Instant::now(),
        }
    }

    /// The watch works: the next failure is a first one.
    fn forget(&mut self) {
        self.backoff = None;
    }

    fn next(&mut self) -> Duration {
        if self.since.elapsed() >= LASTED {
            self.forget();
        }
        let backoff = self.backoff.get_or_insert_default();
        backoff.next().unwrap_or(RETRY_UNTIL_SYNCED)
    }

    fn ended(&mut self) {
        self.since = Instant::now();
    }
}

/// Whether an event shows that the watch works; kube's watcher says `Init` before it asks for anything.
fn is_progress<K>(event: &watcher::Event<K>) -> bool {
    !matches!(event, watcher::Event::Init | watcher::Event::InitApply(_))
}

/// Whether the API server no longer has what lies between the version that a watch knows and now.
fn is_expired(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 410)
}

/// Whether a watch that was running was given up because nothing came; see [`client`](crate::client).
fn is_silence(error: &watcher::Error) -> bool {
    let watcher::Error::WatchFailed(error) = error else {
        return false;
    };
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            if io.kind() == io::ErrorKind::TimedOut {
                return true;
            }
            // What an `io::Error` wraps is not its source, but itself.
            next = io
                .get_ref()
                .map(|inner| inner as &(dyn std::error::Error + 'static));
        } else {
            next = error.source();
        }
    }
    false
}

/// What went wrong with a watch, and what is likely missing.
fn explain<K: Watchable>(kind: &Kind<K>, error: &watcher::Error) -> String {
    let cause = match error {
        watcher::Error::InitialListFailed(cause)
        | watcher::Error::WatchStartFailed(cause)
        | watcher::Error::WatchFailed(cause) => cause,
        watcher::Error::WatchError(status) => return status.message.clone(),
        watcher::Error::NoResourceVersion => return error.to_string(),
    };
    let resource = kind.describe_resource();
    match cause {
        kube::Error::Api(status) if status.code == 404 => {
            let version = K::version(&kind.dynamic);
            format!("the API server does not serve {resource} in version {version}; is the CRD installed?")
        }
        kube::Error::Api(status) if status.code == 403 => {
            let message = &status.message;
            format!("{message}; does the manager's role allow `get`, `list` and `watch` on {resource}?")
        }
        kube::Error::Api(status) => status.message.clone(),
        cause => format!("{:#}", crate::Error::new(cause.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_while_a_watch_fails_at_once_and_start_anew_when_it_has_lasted() {
        let mut pauses = Pauses::new();
        let first = pauses.next();
        for _ in 0..6 {
            pauses.next();
            pauses.ended();
        }
        assert!(pauses.next() > first * 4);
        pauses.ended();
        tokio::time::advance(LASTED).await;
        let lasted = pauses.next();
        assert!(lasted < first * 4, "{lasted:?}");
        for _ in 0..6 {
            pauses.next();
        }
        pauses.forget();
        let worked = pauses.next();
        assert!(worked < first * 4, "{worked:?}");
    }

    #[test]
    fn a_list_that_only_begins_is_no_progress() {
        assert!(!is_progress(&watcher::Event::<()>::Init));
        assert!(!is_progress(&watcher::Event::InitApply(())));
        assert!(is_progress(&watcher::Event::<()>::InitDone));
        assert!(is_progress(&watcher::Event::Delete(())));
    }

    #[test]
    fn silence_is_told_from_other_failures() {
        let failed = |kind: io::ErrorKind| {
            let inner = io::Error::from(kind);
            watcher::Error::WatchFailed(kube::Error::ReadEvents(io::Error::other(inner)))
        };
        assert!(is_silence(&failed(io::ErrorKind::TimedOut)));
        assert!(!is_silence(&failed(io::ErrorKind::ConnectionReset)));
        let listing = kube::Error::ReadEvents(io::ErrorKind::TimedOut.into());
        assert!(!is_silence(&watcher::Error::InitialListFailed(listing)));
    }
}

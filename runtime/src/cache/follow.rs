//! The watch behind a cache: kube's `watcher`, with back-off and explained errors.

use std::collections::HashSet;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use kube::runtime::watcher::{self, DefaultBackoff};
use kube::{Client, Resource};
use tokio::time::Instant;

use super::objects::resource_version;
use super::{Cache, Trim, WatchId};
use crate::client::{find_no_response, is_unreachable};
use crate::object::{Decoded, Key, Kind, Trimmed, Watchable};

/// The longest back-off before the first sync, for which controllers wait.
const MAX_BACKOFF_UNTIL_SYNCED: Duration = Duration::from_secs(10);
/// The back-off is reset after a watch has run for this long.
const BACKOFF_RESET: Duration = Duration::from_secs(30);

/// The events of kube's watcher.
type Events<K> = BoxStream<'static, watcher::Result<watcher::Event<Decoded<K>>>>;

impl<K: Watchable> Cache<K> {
    /// Watches the objects of one namespace, or of all, for as long as it is polled.
    pub(super) async fn follow(self: Arc<Self>, client: Client, namespace: Option<String>) {
        let client = self.new_contact().observe(client);
        let start_watch = || self.watch_events(client.clone(), namespace.as_deref());
        let mut events = start_watch();
        let mut backoff = WatchBackoff::new();
        let watch = self.write().add_watch(namespace.clone());
        let mut list = PartialList::new(watch);
        let mut synced = false;
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    if is_progress(&event) {
                        backoff.reset();
                    }
                    self.handle_event(event, namespace.as_deref(), &mut list, &mut synced);
                }
                Err(error) if is_idle_timeout(&error) => {
                    // Normal where the API server sends no bookmarks, as for a kind that never changed.
                    tracing::debug!(kind = %self.kind.name(), %error, "watch idle for too long, restarting it");
                }
                Err(error) => {
                    self.note_error(&error);
                    if is_expired(&error) {
                        // kube's watcher relists when an event has status 410, but not when the response itself has.
                        events = start_watch();
                    }
                    let longest = if synced {
                        Duration::MAX
                    } else {
                        MAX_BACKOFF_UNTIL_SYNCED
                    };
                    tokio::time::sleep(backoff.next().min(longest)).await;
                    backoff.mark_restarted();
                }
            }
        }
    }

    /// Returns the events of a watch, with trimmed objects unless the manager keeps their metadata.
    fn watch_events(&self, client: Client, namespace: Option<&str>) -> Events<K> {
        let config = self.selection.watcher_config(&self.options().lists);
        if self.trim() == Trim::default() {
            let api = self.kind.trimmed_api(client, namespace);
            let events = watcher::watcher(api, config);
            events.map(|event| event.map(unwrap_trimmed)).boxed()
        } else {
            watcher::watcher(self.kind.watched_api(client, namespace), config).boxed()
        }
    }

    /// Applies an event of the watch of `namespace` (`None`: all namespaces) to the cache. `list` is the list in
    /// progress; `synced` is `true` after the first complete list.
    fn handle_event(
        &self,
        event: watcher::Event<Decoded<K>>,
        namespace: Option<&str>,
        list: &mut PartialList,
        synced: &mut bool,
    ) {
        let watch = list.watch;
        match event {
            watcher::Event::Init => {
                self.write().begin_list(watch);
                *list = PartialList {
                    expected: self.unseen.keys(),
                    ..PartialList::new(watch)
                }
            }
            watcher::Event::InitApply(object) => {
                if let Decoded::Undecodable(object) = &object {
                    list.undecodable.insert(Key::of_meta(object.metadata()));
                }
                self.apply_decoded(watch, object, !*synced);
            }
            watcher::Event::InitDone => {
                let ended = std::mem::replace(list, PartialList::new(watch));
                self.delete_unlisted(watch, namespace, &ended.undecodable, ended.expected);
                self.write().end_list(watch);
                if !std::mem::replace(synced, true) {
                    self.mark_watch_synced();
                }
            }
            watcher::Event::Apply(object) => self.apply_decoded(watch, object, false),
            watcher::Event::Delete(object) => {
                self.delete(Some(watch), &Key::of(&object), resource_version(object.meta()));
            }
        }
    }

    fn apply_decoded(&self, watch: WatchId, object: Decoded<K>, initial: bool) {
        match object {
            Decoded::Object { object, bytes } => self.apply_received(Some(watch), object, bytes, initial),
            Decoded::Undecodable(object) => self.apply_undecodable(Some(watch), *object, initial),
        }
    }

    fn note_error(&self, error: &watcher::Error) {
        let is_logged = is_unreachable(error);
        let error = explain_watch_error(&self.kind, error);
        if is_logged {
            tracing::debug!(kind = %self.kind.name(), %error, "watch failed, retrying");
        } else {
            tracing::warn!(kind = %self.kind.name(), %error, "watch failed, retrying");
        }
        self.watch_errors.fetch_add(1, Ordering::Relaxed);
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = error;
    }
}

/// Unwraps the trimmed object of an event.
fn unwrap_trimmed<K>(event: watcher::Event<Decoded<Trimmed<K>>>) -> watcher::Event<Decoded<K>> {
    use watcher::Event::{Apply, Delete, Init, InitApply, InitDone};
    match event {
        Apply(object) => Apply(object.into_inner()),
        Delete(object) => Delete(object.into_inner()),
        Init => Init,
        InitApply(object) => InitApply(object.into_inner()),
        InitDone => InitDone,
    }
}

/// A list in progress.
struct PartialList {
    watch: WatchId,
    /// The keys of the objects so far that cannot be decoded.
    undecodable: HashSet<Key>,
    /// The keys of the unseen objects when the list was requested.
    expected: HashSet<Key>,
}

impl PartialList {
    fn new(watch: WatchId) -> Self {
        Self {
            watch,
            undecodable: HashSet::new(),
            expected: HashSet::new(),
        }
    }
}

/// The back-off between attempts to watch: client-go's, 800 ms doubling to 30 s, while failures follow each other.
struct WatchBackoff {
    backoff: Option<DefaultBackoff>,
    /// The time of the last restart.
    restarted: Instant,
}

impl WatchBackoff {
    fn new() -> Self {
        Self {
            backoff: None,
            restarted: Instant::now(),
        }
    }

    /// Starts again with the shortest delay.
    fn reset(&mut self) {
        self.backoff = None;
    }

    /// Returns the delay after a failure.
    fn next(&mut self) -> Duration {
        if self.restarted.elapsed() >= BACKOFF_RESET {
            self.reset();
        }
        let backoff = self.backoff.get_or_insert_default();
        backoff.next().unwrap_or(MAX_BACKOFF_UNTIL_SYNCED)
    }

    fn mark_restarted(&mut self) {
        self.restarted = Instant::now();
    }
}

/// Returns `true` if an event shows that the watch works; kube's watcher emits `Init` before it sends a request.
fn is_progress<K>(event: &watcher::Event<K>) -> bool {
    !matches!(event, watcher::Event::Init | watcher::Event::InitApply(_))
}

/// Returns `true` if the watch's resource version is too old (410 Gone).
fn is_expired(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 410)
}

/// Returns `true` if a running watch failed because no data arrived; see [`client`](crate::client).
fn is_idle_timeout(error: &watcher::Error) -> bool {
    let watcher::Error::WatchFailed(error) = error else {
        return false;
    };
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            if io.kind() == io::ErrorKind::TimedOut {
                return true;
            }
            // `io::Error::source` skips the wrapped error and returns the source of that.
            next = io
                .get_ref()
                .map(|inner| inner as &(dyn std::error::Error + 'static));
        } else {
            next = error.source();
        }
    }
    false
}

/// Returns the error of a watch with its likely cause, such as a missing CRD or permission.
fn explain_watch_error<K: Watchable>(kind: &Kind<K>, error: &watcher::Error) -> String {
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
        cause => find_no_response(cause).map_or_else(|| cause.to_string(), ToString::to_string),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_back_off_grows_with_repeated_failures_and_resets_when_a_watch_lasts() {
        let mut backoff = WatchBackoff::new();
        let first = backoff.next();
        for _ in 0..6 {
            backoff.next();
            backoff.mark_restarted();
        }
        assert!(backoff.next() > first * 4);
        backoff.mark_restarted();
        tokio::time::advance(BACKOFF_RESET).await;
        let after_lasting = backoff.next();
        assert!(after_lasting < first * 4, "{after_lasting:?}");
        for _ in 0..6 {
            backoff.next();
        }
        backoff.reset();
        let after_reset = backoff.next();
        assert!(after_reset < first * 4, "{after_reset:?}");
    }

    #[test]
    fn a_list_that_has_only_begun_is_not_progress() {
        assert!(!is_progress(&watcher::Event::<()>::Init));
        assert!(!is_progress(&watcher::Event::InitApply(())));
        assert!(is_progress(&watcher::Event::<()>::InitDone));
        assert!(is_progress(&watcher::Event::Delete(())));
    }

    #[test]
    fn idle_timeouts_are_distinguished_from_other_failures() {
        let failed = |kind: io::ErrorKind| {
            let inner = io::Error::from(kind);
            watcher::Error::WatchFailed(kube::Error::ReadEvents(io::Error::other(inner)))
        };
        assert!(is_idle_timeout(&failed(io::ErrorKind::TimedOut)));
        assert!(!is_idle_timeout(&failed(io::ErrorKind::ConnectionReset)));
        let listing = kube::Error::ReadEvents(io::ErrorKind::TimedOut.into());
        assert!(!is_idle_timeout(&watcher::Error::InitialListFailed(listing)));
    }
}

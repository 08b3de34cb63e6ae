//! Keeps a cache up to date with the events of a [`ListWatch`], and explains watch errors.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use kube::runtime::watcher;
use kube::{Client, Resource};

use super::health::WatchHealth;
use super::objects::resource_version;
use super::{Cache, Trim, WatchId};
use crate::client::{find_no_response, is_unreachable};
use crate::hash::HashSet;
use crate::list_watch::{ListWatch, WatchError};
use crate::object::{Decoded, Key, Kind, Trimmed, Watchable};

type Events<K> = BoxStream<'static, Result<watcher::Event<Decoded<K>>, WatchError>>;

impl<K: Watchable> Cache<K> {
    /// Watches a single namespace (or all of them if `None`) until the future is dropped.
    pub(super) async fn follow(self: Arc<Self>, client: Client, namespace: Option<String>) {
        let (watch, health) = self.add_watch(namespace.clone());
        let client = health.contact.observe(client);
        let start_watch = || self.watch_events(client.clone(), namespace.as_deref());
        let mut events = start_watch();
        let mut list = PartialList::new(watch);
        let mut synced = false;
        let mut restarted = self.restarted.subscribe();
        loop {
            let event = tokio::select! {
                biased;
                // Can't fail, because `self` owns the sender.
                _ = restarted.changed() => {
                    events = start_watch();
                    continue;
                }
                event = events.next() => event,
            };
            let Some(event) = event else { return };
            match event {
                Ok(event) => self.handle_event(event, namespace.as_deref(), &mut list, &mut synced),
                Err(error) => self.note_error(&health, &error),
            }
        }
    }

    fn watch_events(&self, client: Client, namespace: Option<&str>) -> Events<K> {
        let options = self.options();
        let config = self.selection.watcher_config(&options.lists);
        let limit = options.list_limit.clone();
        // Trim objects as they arrive, unless the manager is configured to keep full metadata.
        if self.trim() == Trim::default() {
            let api = self.kind.trimmed_api(client, namespace);
            let events = ListWatch::new(api, config, limit).into_stream();
            events.map(|event| event.map(unwrap_trimmed)).boxed()
        } else {
            let api = self.kind.watched_api(client, namespace);
            ListWatch::new(api, config, limit).into_stream()
        }
    }

    /// Applies an event from the watch of `namespace` (or of all namespaces if `None`).
    ///
    /// `list` holds the state of a list in progress. Sets `synced` once the first list is complete.
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
                self.apply_decoded(Some(watch), object, !*synced);
            }
            watcher::Event::InitDone => {
                let ended = std::mem::replace(list, PartialList::new(watch));
                self.delete_unlisted(watch, namespace, &ended.undecodable, ended.expected);
                self.write().end_list(watch);
                if !std::mem::replace(synced, true) {
                    self.mark_watch_synced(watch);
                }
            }
            watcher::Event::Apply(object) => self.apply_decoded(Some(watch), object, false),
            watcher::Event::Delete(object) => {
                self.delete(Some(watch), &Key::of(&object), resource_version(object.meta()));
            }
        }
    }

    pub(super) fn apply_decoded(&self, watch: Option<WatchId>, object: Decoded<K>, initial: bool) {
        match object {
            Decoded::Object { object, bytes } => self.apply_received(watch, object, bytes, initial),
            Decoded::Undecodable(object) => self.apply_undecodable(watch, *object, initial),
        }
    }

    pub(super) fn note_error(&self, health: &WatchHealth, error: &WatchError) {
        // Already logged once by the client; don't repeat it for each watch.
        let is_logged = is_unreachable(error);
        let error = explain_watch_error(&self.kind, error);
        if is_logged {
            tracing::debug!(kind = %self.kind.name(), %error, "watch failed, retrying");
        } else {
            tracing::warn!(kind = %self.kind.name(), %error, "watch failed, retrying");
        }
        health.note_error(error);
    }
}

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

pub(super) struct PartialList {
    pub(super) watch: WatchId,
    pub(super) undecodable: HashSet<Key>,
    /// Objects that we had created but not yet seen in the watch when the list was requested. The
    /// list is expected to contain them.
    pub(super) expected: HashSet<Key>,
}

impl PartialList {
    pub(super) fn new(watch: WatchId) -> Self {
        Self {
            watch,
            undecodable: HashSet::default(),
            expected: HashSet::default(),
        }
    }
}

/// Formats an error, with a hint if there's a likely cause (e.g. a missing CRD or permission).
fn explain_watch_error<K: Watchable>(kind: &Kind<K>, error: &WatchError) -> String {
    let cause = match error {
        WatchError::List(cause) | WatchError::Start(cause) | WatchError::Read(cause) => cause,
        _ => return error.to_string(),
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

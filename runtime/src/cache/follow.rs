//! The watch behind a cache: kube's `watcher`, and what to say when it stumbles.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use kube::Client;
use kube::runtime::watcher::{self, DefaultBackoff};

use super::{Cache, Lean, Trim};
use crate::object::{Key, Kind, Watchable};

/// The longest wait between two tries to fill a cache; controllers are waiting for it.
const RETRY_UNTIL_SYNCED: Duration = Duration::from_secs(10);

/// What kube tells of a watch.
type Events<K> = BoxStream<'static, watcher::Result<watcher::Event<K>>>;

impl<K: Watchable> Cache<K> {
    /// Follows the objects of one namespace, or of all, for as long as it is polled.
    pub(super) async fn follow(self: Arc<Self>, client: Client, namespace: Option<String>) {
        let mut events = self.events(client, namespace.as_deref());
        let mut backoff = DefaultBackoff::default();
        let mut seen = HashSet::new();
        let mut synced = false;
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Init) => seen.clear(),
                Ok(watcher::Event::InitApply(object)) => {
                    seen.insert(Key::of(&object));
                    self.apply(object, !synced);
                }
                Ok(watcher::Event::InitDone) => {
                    backoff = DefaultBackoff::default();
                    self.keep_only(namespace.as_deref(), &std::mem::take(&mut seen));
                    if !std::mem::replace(&mut synced, true) {
                        self.scope_synced();
                    }
                }
                Ok(watcher::Event::Apply(object)) => self.apply(object, false),
                Ok(watcher::Event::Delete(object)) => self.delete(&Key::of(&object)),
                Err(error) => {
                    self.note_error(&error);
                    let pause = backoff.next().unwrap_or(RETRY_UNTIL_SYNCED);
                    let pause = if synced {
                        pause
                    } else {
                        pause.min(RETRY_UNTIL_SYNCED)
                    };
                    tokio::time::sleep(pause).await;
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

    fn note_error(&self, error: &watcher::Error) {
        let explained = explain(&self.kind, error);
        tracing::warn!(kind = %self.kind.name(), "watch interrupted, will try again: {explained}");
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = explained;
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
            format!("{message}; does the manager's role allow get, list and watch of {resource}?")
        }
        kube::Error::Api(status) => status.message.clone(),
        cause => format!("{:#}", crate::Error::new(cause.to_string())),
    }
}

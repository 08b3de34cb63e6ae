//! Keeps a cache up to date that only contains the objects in some ranges.
//!
//! Lists and watches have a `shardSelector` that combines all ranges of this replica. API servers
//! without this feature ignore the selector and return all objects, so each object is also checked
//! before it's decoded, with the same hash as in the API server. We don't detect the feature
//! upfront, because a control plane with several API servers may be in the middle of an upgrade.
//! Besides, lists of metadata don't indicate whether the selector was applied.
//!
//! # When ranges change
//!
//! | change | requests |
//! |---|---|
//! | ranges are gone | their objects are forgotten; a watch of the rest continues from the last version |
//! | ranges are new | a list of the new ranges; then a watch of all ranges continues from the last version |
//! | the first ranges, or the list of the new ones failed | a list of all ranges, then a watch |
//!
//! The watch resumes from a version before the list of the new ranges, so it repeats some of their
//! older events. Events up to the version of that list are skipped.
//!
//! Objects in lost ranges are dropped silently. They have not been deleted, so subscribers are not
//! notified.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;
use http::Method;
use kube::Client;
use kube::core::ObjectMeta;
use kube::runtime::watcher;
use tokio::sync::watch;

use super::follow::PartialList;
use super::health::WatchHealth;
use super::objects::resource_version;
use super::{Cache, Trim, WatchId};
use crate::client::{add_parameter, encode_parameter, wrap_client};
use crate::list_watch::{ListWatch, Progress, WatchError};
use crate::object::{Decoded, Key, Lazy, Trimmed, Watchable};
use crate::shards::{RangeSet, Scope, Shards};

/// How often to report a watch without any ranges as alive.
const ALIVE: std::time::Duration = std::time::Duration::from_secs(60);

type Events<K> = BoxStream<'static, Result<watcher::Event<Lazy<K>>, WatchError>>;

struct ShardWatch<K: Watchable> {
    cache: Arc<Cache<K>>,
    shards: Shards,
    client: Client,
    namespace: Option<String>,
    id: WatchId,
    health: Arc<WatchHealth>,
    /// Index of this cache among the caches of children. `None` for a cache of owners.
    child: Option<u64>,
    /// Ranges whose objects are in the cache.
    covered: RangeSet,
    /// Ranges covered by `events`.
    watched: RangeSet,
    /// `None` while this replica does not own any ranges.
    events: Option<Events<K>>,
    progress: Progress,
    list: PartialList,
    synced: bool,
    /// Ranges that were listed separately, and the resource version of that list.
    skipped: Option<(RangeSet, u64)>,
    is_filtered: Option<bool>,
}

impl<K: Watchable> Cache<K> {
    pub(super) fn shards(&self) -> Option<&Shards> {
        let shards = self.options().shards.as_ref();
        shards.filter(|_| self.selection.scope() != Scope::Everywhere)
    }

    /// Returns `true` if this cache's watch would deliver an object with this metadata. Always
    /// `true` if the cache is not sharded.
    pub(super) fn is_in_shard(&self, meta: &ObjectMeta) -> bool {
        let Some(shards) = self.shards() else {
            return true;
        };
        let owned = shards.owned();
        let owned = owned.borrow();
        let scope = self.selection.scope();
        owned.space() > 0 && scope.contains(&owned, meta) && scope.selects_labels(meta)
    }

    /// The receiver is notified after the objects of additional ranges were listed.
    pub(crate) fn extended(&self) -> watch::Receiver<()> {
        self.extended.subscribe()
    }

    /// Like [`follow`](Self::follow), but restricted to the ranges of this replica.
    ///
    /// `child` is the cache's number if the caches of owners have to wait for it.
    pub(super) async fn follow_shard(
        self: Arc<Self>,
        client: Client,
        namespace: Option<String>,
        shards: Shards,
        child: Option<u64>,
    ) {
        let (id, health) = self.add_watch(namespace.clone());
        let client = health.contact.observe(client);
        let watch = ShardWatch {
            shards,
            client,
            namespace,
            id,
            health,
            child,
            covered: RangeSet::empty(0),
            watched: RangeSet::empty(0),
            events: None,
            progress: Progress::default(),
            list: PartialList::new(id),
            synced: false,
            skipped: None,
            is_filtered: None,
            cache: self,
        };
        watch.run().await;
    }

    /// Drops all objects outside of the given ranges. Subscribers are not notified, since the
    /// objects haven't been deleted.
    fn keep_only(&self, namespace: Option<&str>, ranges: &RangeSet) {
        let scope = self.selection.scope();
        let is_in = |meta: &ObjectMeta| ranges.space() > 0 && scope.contains(ranges, meta);
        let keys = self.read().all_keys(namespace);
        // Check objects one at a time, since an unpacked object takes several times as much memory.
        let gone = keys.into_iter().filter(|key| match self.known_meta(key) {
            Some(meta) => !is_in(&meta),
            None => true,
        });
        for key in gone.collect::<Vec<_>>() {
            self.write().forget(&key);
        }
        self.unseen.retain(|object| is_in(object.meta()));
    }

    fn known_meta(&self, key: &Key) -> Option<ObjectMeta> {
        if let Some(entry) = self.undecodable(key) {
            return Some(entry.object.metadata().clone());
        }
        let form = self.read().known_form(key)?;
        let object = self.unpacker.open(key, &form)?;
        Some(object.meta().clone())
    }
}

impl<K: Watchable> ShardWatch<K> {
    async fn run(mut self) {
        let mut owned = self.shards.owned();
        let mut restarted = self.cache.restarted.subscribe();
        // Make the loop start with the ranges that this replica already owns.
        owned.mark_changed();
        // Ranges to switch to once all children in them were listed.
        let mut next: Option<RangeSet> = None;
        loop {
            let shards = self.shards.clone();
            let (is_child, waits_for) = (self.scope().is_owned(), next.clone());
            let listed = async move {
                match waits_for {
                    Some(ranges) if !is_child => shards.children_listed(&ranges).await,
                    Some(_) => {}
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                changed = owned.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let ranges = RangeSet::clone(&owned.borrow_and_update());
                    self.lose_all_but(&ranges);
                    next = Some(ranges);
                }
                // Can't fail, because the cache owns the sender.
                _ = restarted.changed() => self.list_all(self.watched.clone()),
                () = listed => if let Some(ranges) = next.take() {
                    self.change_to(ranges).await;
                },
                event = next_event(&mut self.events) => match event {
                    Some(Ok(event)) => self.handle(event),
                    Some(Err(error)) => self.cache.note_error(&self.health, &error),
                    None => self.health.contact.note(),
                },
            }
        }
    }

    fn lose_all_but(&mut self, ranges: &RangeSet) {
        let is_kept = |range: u32| self.covered.contains(range) && ranges.contains(range);
        let kept = match self.covered.space() == ranges.space() {
            true => RangeSet::of(ranges.space(), is_kept),
            // The number of ranges has changed, so none of the old ranges still exist.
            false => RangeSet::empty(ranges.space()),
        };
        if self.watched.space() != ranges.space() {
            self.watched = RangeSet::empty(ranges.space());
            self.events = None;
        }
        let is_watched = |range: u32| self.watched.contains(range) && ranges.contains(range);
        self.watched = RangeSet::of(ranges.space(), is_watched);
        // A list in progress may already have delivered objects of ranges that aren't covered yet.
        let present = match self.events {
            Some(_) => self.watched.union(&kept),
            None => kept.clone(),
        };
        self.cache.keep_only(self.namespace.as_deref(), &present);
        self.cover(kept);
    }

    fn cover(&mut self, ranges: RangeSet) {
        if let Some(child) = self.child {
            self.shards.note_covered(child, ranges.clone());
        }
        let is_extended = !ranges.without(&self.covered).is_empty();
        self.covered = ranges;
        if is_extended {
            self.cache.extended.send_replace(());
        }
    }

    /// Switches the watch to the given ranges, and lists the new ones.
    async fn change_to(&mut self, ranges: RangeSet) {
        if ranges.is_empty() {
            self.events = None;
            self.cover(ranges.clone());
            self.watched = ranges;
            self.sync();
            return;
        }
        let new = ranges.without(&self.covered);
        // Only a running watch that has listed everything it covers can be resumed.
        let version = self
            .progress
            .version()
            .filter(|_| self.events.is_some() && !self.covered.is_empty());
        let Some(version) = version else {
            return self.list_all(ranges);
        };
        if !new.is_empty() && self.list_new(&new).await.is_none() {
            return self.list_all(ranges);
        }
        tracing::debug!(kind = %self.cache.kind.name(), %ranges, "watching the ranges of this replica");
        self.watched = ranges.clone();
        let watch = self
            .list_watch(&ranges)
            .resume(version)
            .with_progress(self.progress.clone());
        self.events = Some(watch.into_stream());
        self.cover(ranges);
    }

    fn list_all(&mut self, ranges: RangeSet) {
        if ranges.is_empty() {
            return;
        }
        self.skipped = None;
        self.progress = Progress::default();
        self.watched = ranges.clone();
        let watch = self.list_watch(&ranges).with_progress(self.progress.clone());
        self.events = Some(watch.into_stream());
    }

    /// Lists the objects of the given ranges.
    ///
    /// Returns `None` on failure. The caller then relists all ranges, so retries are left to
    /// `ListWatch`.
    async fn list_new(&mut self, ranges: &RangeSet) -> Option<()> {
        let progress = Progress::default();
        let mut events = self
            .list_watch(ranges)
            .with_progress(progress.clone())
            .into_stream();
        loop {
            match events.next().await? {
                Ok(watcher::Event::Init) => {}
                Ok(watcher::Event::InitApply(object)) => {
                    let is_own = self.scope().contains(ranges, object.identity());
                    self.note_filter(is_own);
                    if is_own {
                        // Don't pass the watch's ID: the watch has not reached this version yet.
                        self.apply(None, &object, true);
                    }
                }
                Ok(watcher::Event::InitDone) => break,
                // Not expected before the end of the list.
                Ok(watcher::Event::Apply(_) | watcher::Event::Delete(_)) => return None,
                Err(error) => {
                    self.cache.note_error(&self.health, &error);
                    return None;
                }
            }
        }
        let version = progress.version()?.parse().ok()?;
        self.skipped = Some((ranges.clone(), version));
        Some(())
    }

    fn handle(&mut self, event: watcher::Event<Lazy<K>>) {
        match event {
            watcher::Event::Init => self.begin_list(),
            watcher::Event::InitApply(object) => {
                let is_own = self.scope().contains(&self.watched, object.identity());
                self.note_filter(is_own);
                if is_own {
                    let is_new = !self.scope().contains(&self.covered, object.identity());
                    let is_decoded = self.apply(Some(self.id), &object, is_new);
                    if !is_decoded {
                        self.list.undecodable.insert(Key::of_meta(object.identity()));
                    }
                }
            }
            watcher::Event::InitDone => self.end_list(),
            watcher::Event::Apply(object) => self.handle_change(&object),
            watcher::Event::Delete(object) => {
                let identity = object.identity();
                if self.is_relevant(identity) && !self.is_repeated(identity) {
                    self.cache
                        .delete(Some(self.id), &Key::of_meta(identity), resource_version(identity));
                }
            }
        }
    }

    fn begin_list(&mut self) {
        self.skipped = None;
        self.cache.write().begin_list(self.id);
        self.list = PartialList {
            expected: self.cache.unseen.keys(),
            ..PartialList::new(self.id)
        };
    }

    fn end_list(&mut self) {
        let ended = std::mem::replace(&mut self.list, PartialList::new(self.id));
        let namespace = self.namespace.as_deref();
        self.cache
            .delete_unlisted(self.id, namespace, &ended.undecodable, ended.expected);
        self.cache.write().end_list(self.id);
        self.cover(self.watched.clone());
        self.sync();
    }

    fn sync(&mut self) {
        if !std::mem::replace(&mut self.synced, true) {
            self.cache.mark_watch_synced(self.id);
        }
    }

    fn handle_change(&mut self, object: &Lazy<K>) {
        let identity = object.identity();
        let is_own = self.scope().contains(&self.watched, identity);
        self.note_filter(is_own);
        if self.is_repeated(identity) {
            return;
        }
        if is_own {
            self.apply(Some(self.id), object, false);
        } else if self.is_relevant(identity) {
            // The object's new owner belongs to a different replica.
            self.cache
                .delete(Some(self.id), &Key::of_meta(identity), resource_version(identity));
        }
    }

    /// Returns `true` if an object is or was in our ranges.
    fn is_relevant(&self, identity: &ObjectMeta) -> bool {
        let uid = identity.uid.as_deref().unwrap_or_default();
        let is_known = || self.cache.read().has_uid(&Key::of_meta(identity), uid);
        self.scope().contains(&self.watched, identity) || (self.scope().can_move() && is_known())
    }

    /// Returns `true` for events that precede the list in which the object was received.
    fn is_repeated(&self, identity: &ObjectMeta) -> bool {
        let Some((ranges, listed)) = &self.skipped else {
            return false;
        };
        let version = resource_version(identity);
        version.is_some_and(|version| version <= *listed) && self.scope().contains(ranges, identity)
    }

    /// Returns `false` if the object can't be decoded.
    fn apply(&self, watch: Option<WatchId>, object: &Lazy<K>, initial: bool) -> bool {
        let decoded = match self.cache.trim() == Trim::default() {
            true => object.decode::<Trimmed<K>>().into_inner(),
            false => object.decode::<K>(),
        };
        let is_decoded = matches!(decoded, Decoded::Object { .. });
        self.cache.apply_decoded(watch, decoded, initial);
        is_decoded
    }

    fn scope(&self) -> Scope {
        self.cache.selection.scope()
    }

    /// Logs whether the API server applies the shard selector, and any later change of that.
    fn note_filter(&mut self, is_own: bool) {
        if !self.scope().has_shard_selector() || (is_own && self.is_filtered.is_some()) {
            return;
        }
        // Objects of other replicas only arrive if the API server ignored the selector.
        if !is_own {
            self.health.note_foreign();
        }
        if self.is_filtered != Some(is_own) {
            self.is_filtered = Some(is_own);
            let kind = self.cache.kind.name();
            if !is_own {
                tracing::info!(%kind, "the API server sends the objects of all replicas, filtering them here");
            }
        }
    }

    fn list_watch(&self, ranges: &RangeSet) -> ListWatch<Lazy<K>> {
        let options = self.cache.options();
        let config = self
            .cache
            .selection
            .in_ranges(ranges)
            .watcher_config(&options.lists);
        let client = match self.scope().shard_selector(ranges) {
            Some(selector) => select_shard(self.client.clone(), &selector),
            None => self.client.clone(),
        };
        let api = self.cache.kind.lazy_api(client, self.namespace.as_deref());
        ListWatch::new(api, config, options.list_limit.clone())
    }
}

impl<K: Watchable> Drop for ShardWatch<K> {
    fn drop(&mut self) {
        if let Some(child) = self.child {
            self.shards.remove_child(child);
        }
    }
}

/// Without a watch, returns `None` at regular intervals.
async fn next_event<K: Watchable>(
    events: &mut Option<Events<K>>,
) -> Option<Result<watcher::Event<Lazy<K>>, WatchError>> {
    match events {
        Some(events) => events.next().await,
        None => {
            tokio::time::sleep(ALIVE).await;
            None
        }
    }
}

fn select_shard(client: Client, selector: &str) -> Client {
    let parameter = format!("shardSelector={}", encode_parameter(selector));
    wrap_client(client, move |client, mut request| {
        if *request.method() == Method::GET {
            add_parameter(request.uri_mut(), &parameter);
        }
        async move { Ok(client.send(request).await?) }
    })
}

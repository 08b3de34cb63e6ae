//! Watches for additional kinds.

use std::marker::PhantomData;
use std::sync::Arc;

use kube::api::DynamicObject;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::ObjectRef;

use super::mapping::{
    ByChange, ByFunction, ByMap, ByOwner, ByTryMap, Keys, KindOf, Maps, MapsLate, call_back,
};
use crate::cache::{Cache, CacheEvent, Change, HandlerId, Need, Selection};
use crate::cluster::Cluster;
use crate::ctx::{Ctx, WatchTarget};
use crate::error::Error;
use crate::object::{DynamicKind, Key, Kind, Object, Watchable};
use crate::predicate::Predicate;
use crate::queue::{LOW, NORMAL, Priority, Workqueue};
use crate::request::{KeyRequest, Request};

/// A watch for a kind, with an optional selection and predicate. Maps each watched object to the
/// objects to reconcile.
///
/// [`Controller::owns`](crate::Controller::owns) and
/// [`Controller::watches`](crate::Controller::watches) cover the most common cases. Add any other
/// watch with [`Controller::watch`](crate::Controller::watch), or with
/// [`Ctx::watch`](crate::Ctx::watch) while the controller is running.
/// the controller is running.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::{ConfigMap, Secret}};
/// # use rbuilder::{Action, Controller, Ctx, ObjectRef, Result, Selection, Watch, predicate};
/// # async fn reconcile(object: Arc<ConfigMap>, ctx: Ctx<()>) -> Result { Ok(Action::await_change()) }
/// fn to_config(secret: &Secret, _ctx: &Ctx<()>) -> Vec<ObjectRef<ConfigMap>> {
///     vec![ObjectRef::new("settings").within(secret.metadata.namespace.as_deref().unwrap_or_default())]
/// }
///
/// let controller = Controller::new(reconcile, ())
///     .watch(Watch::<Deployment>::owned().filter(predicate::generation_changed()))
///     .watch(Watch::mapped(to_config).selecting(Selection::all().labels("app=web")));
/// ```
pub struct Watch<W: Watchable, M = ByOwner> {
    kind: Kind<W>,
    selection: Selection,
    need: Need,
    filter: Option<Predicate<W>>,
    /// `None` for the manager's own cluster.
    cluster: Option<Cluster>,
    map: M,
}

impl<W: Object> Watch<W, ByOwner> {
    /// Watches objects of type `W` and reconciles their owners.
    ///
    /// This caches entire objects, which can be read with [`Ctx::cached`](crate::Ctx::cached). If
    /// the metadata is enough, as in [`Controller::owns`](crate::Controller::owns), use
    /// [`PartialObjectMeta<W>`](PartialObjectMeta) as the type.
    pub fn owned() -> Self {
        Self::new(Kind::of_type(), ByOwner { any: false })
    }
}

impl Watch<PartialObjectMeta<DynamicObject>, ByOwner> {
    /// Watches objects of a kind that's only known at runtime, and reconciles their owners. Only
    /// metadata is cached.
    pub fn owned_dynamic(kind: &DynamicKind) -> Self {
        Self::new(kind.into(), ByOwner { any: false })
    }
}

impl<W: Watchable> Watch<W, ByOwner> {
    /// Reconciles all owners, not just the one with `controller: true`.
    pub fn by_any_owner(mut self) -> Self {
        self.map.any = true;
        self
    }
}

impl<W: Object, K: Watchable, S, F> Watch<W, ByMap<K, S, F>>
where
    F: Fn(&W, &Ctx<S>) -> Vec<ObjectRef<K>> + Send + Sync + 'static,
{
    /// Watches objects of type `W` and reconciles the objects returned by `map`.
    ///
    /// On update, `map` is called with both the old and the new version of the object. It's also
    /// called with deleted objects. `map` must not block, since it holds up every event for kind
    /// `W`.
    pub fn mapped(map: F) -> Self {
        let types = PhantomData;
        Self::new(Kind::of_type(), ByMap { map, types })
    }
}

impl<K: Watchable, S, F> Watch<DynamicObject, ByMap<K, S, F>>
where
    F: Fn(&DynamicObject, &Ctx<S>) -> Vec<ObjectRef<K>> + Send + Sync + 'static,
{
    /// Like [`mapped`](Watch::mapped), but for a kind that is only known at runtime.
    pub fn mapped_dynamic(kind: &DynamicKind, map: F) -> Self {
        let types = PhantomData;
        Self::new(kind.into(), ByMap { map, types })
    }
}

impl<W: Object, K: Watchable, S, F> Watch<W, ByTryMap<K, S, F>>
where
    F: Fn(&W, &Ctx<S>) -> Result<Vec<ObjectRef<K>>, Error> + Send + Sync + 'static,
{
    /// Like [`mapped`](Watch::mapped), with a function that can fail.
    ///
    /// An error means a mistake in the operator, e.g. a missing [`Controller::index`]. Nothing is
    /// reconciled for the event, and nothing is retried. The error is logged, counted in
    /// `rbuilder_mapping_errors_total`, and shown in `/debug/queues`.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use kube::ResourceExt;
    /// # use rbuilder::{Action, Controller, Ctx, ObjectRef, Result, Watch};
    /// # async fn reconcile(object: Arc<ConfigMap>, ctx: Ctx<()>) -> Result { Ok(Action::await_change()) }
    /// # fn secrets_of(config: &ConfigMap) -> Vec<String> { vec![] }
    /// fn users_of(secret: &Secret, ctx: &Ctx<()>) -> Result<Vec<ObjectRef<ConfigMap>>> {
    ///     let users = ctx.cached::<ConfigMap>()?.by("secret", &secret.name_any())?;
    ///     Ok(users.iter().map(|config| ObjectRef::from_obj(&**config)).collect())
    /// }
    ///
    /// let controller = Controller::new(reconcile, ())
    ///     .index("secret", secrets_of)
    ///     .watch(Watch::try_mapped(users_of));
    /// ```
    ///
    /// [`Controller::index`]: crate::Controller::index
    pub fn try_mapped(map: F) -> Self {
        let types = PhantomData;
        Self::new(Kind::of_type(), ByTryMap { map, types })
    }
}

impl<W: Object, K: Watchable, S, F> Watch<W, ByChange<K, S, F>>
where
    F: Fn(&Change<W>, &Ctx<S>) -> Vec<Request<K>> + Send + Sync + 'static,
{
    /// Watches objects of type `W`, with a function that maps each change to the requests to
    /// enqueue.
    ///
    /// This is the general form of [`mapped`](Self::mapped), and similar to an event handler in
    /// client-go. `map` is called once per event. It can distinguish creations, updates and
    /// deletions, has access to the old and the new version, and knows whether the event is part of
    /// the initial list.
    ///
    /// A request without a priority gets the priority of the event, which is -100 for the initial
    /// list and 0 otherwise. Multiple requests for the same object are merged, using the earliest
    /// time and the highest priority.
    ///
    /// If an object can no longer be [decoded](crate::Undecodable), `map` gets a deletion with its
    /// last readable version. Like all mapping functions, `map` must not block, since it holds up
    /// every event for kind `W`.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use std::time::Duration;
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use kube::ResourceExt;
    /// # use rbuilder::{Action, Change, Controller, Ctx, ObjectRef, Request, Result, Watch};
    /// # async fn reconcile(object: Arc<ConfigMap>, ctx: Ctx<()>) -> Result { Ok(Action::await_change()) }
    /// /// Requests the settings that use a Secret: at once if it is gone, otherwise once its writer has settled.
    /// fn users_of(change: &Change<Secret>, _ctx: &Ctx<()>) -> Vec<Request<ConfigMap>> {
    ///     let secret = change.object();
    ///     let user = ObjectRef::new("settings").within(&secret.namespace().unwrap_or_default());
    ///     match change {
    ///         Change::Deleted(_) => vec![Request::new(user).priority(10)],
    ///         Change::Applied { old: Some(old), new, .. } if old.data == new.data => vec![],
    ///         Change::Applied { .. } => vec![Request::new(user).after(Duration::from_secs(1))],
    ///     }
    /// }
    ///
    /// let controller = Controller::new(reconcile, ()).watch(Watch::mapped_changes(users_of));
    /// ```
    pub fn mapped_changes(map: F) -> Self {
        let types = PhantomData;
        Self::new(Kind::of_type(), ByChange { map, types })
    }
}

impl<K: Watchable, S, F> Watch<DynamicObject, ByChange<K, S, F>>
where
    F: Fn(&Change<DynamicObject>, &Ctx<S>) -> Vec<Request<K>> + Send + Sync + 'static,
{
    /// Like [`mapped_changes`](Watch::mapped_changes), but for a kind that's only known at runtime.
    pub fn mapped_changes_dynamic(kind: &DynamicKind, map: F) -> Self {
        let types = PhantomData;
        Self::new(kind.into(), ByChange { map, types })
    }
}

impl<W: Watchable, M: ByFunction> Watch<W, M> {
    /// Watches the objects of another cluster.
    ///
    /// The mapping function gets a context for that cluster, and returns objects in the manager's
    /// own cluster. The manager does not wait for this watch at startup. While the cluster is
    /// unreachable, the watch is retried; once it's back, changes made meanwhile are delivered.
    ///
    /// This requires a mapping function, because owner references can't refer to an object in
    /// another cluster:
    ///
    /// ```compile_fail,E0599
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use rbuilder::{Cluster, Watch};
    /// # fn watch(edge: &Cluster) {
    /// let watch = Watch::<ConfigMap>::owned().in_cluster(edge);
    /// # }
    /// ```
    pub fn in_cluster(mut self, cluster: &Cluster) -> Self {
        self.cluster = Some(cluster.clone());
        self
    }
}

impl<W: Watchable, M> Watch<W, M> {
    fn new(kind: Kind<W>, map: M) -> Self {
        Self {
            kind,
            selection: Selection::all(),
            need: Need::AtStart,
            filter: None,
            cluster: None,
            map,
        }
    }

    /// Only reconciles on events that pass the predicate. With multiple predicates, an event must
    /// pass all of them.
    pub fn filter(mut self, predicate: Predicate<W>) -> Self {
        self.filter = Some(match self.filter {
            Some(filter) => filter.and(predicate),
            None => predicate,
        });
        self
    }

    /// Only watches and caches the selected objects.
    pub fn selecting(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// Doesn't wait for this watch at startup. Use this for kinds that may not be installed.
    ///
    /// While the kind is not served, its cache is empty. To distinguish this from a kind without
    /// any objects, use [`Cached::is_synced`](crate::Cached::is_synced). The watch is retried, and
    /// objects trigger reconciles as usual once they arrive. By default, the manager waits for the
    /// initial list of each watch, and fails after
    /// [`cache_sync_timeout`](crate::Manager::cache_sync_timeout).
    ///
    /// Other users of the same cache are not affected: if they need it, the manager will wait.
    /// Watches added with [`Ctx::watch`](crate::Ctx::watch) are always optional at startup.
    pub fn optional(mut self) -> Self {
        self.need = Need::Optional;
        self
    }

    /// Reports the process as not ready if this watch does not receive any data for
    /// [`cache_stale_after`](crate::Manager::cache_stale_after).
    ///
    /// By default, a stale watch is only logged and counted, e.g. after the RoleBinding was
    /// deleted. The process stays ready, since its webhooks and everything else still work. All
    /// replicas are affected alike, so only use this if not responding at all is better than using
    /// stale data.
    pub fn required(mut self) -> Self {
        self.need = Need::Always;
        self
    }
}

impl<W: Watchable, M> Watch<W, M> {
    /// Enqueues the mapped keys of all events from now on.
    pub(super) fn subscribe<K: Watchable, S: Send + Sync + 'static>(
        self,
        kind: &Kind<K>,
        queue: &Arc<Workqueue<Key>>,
        ctx: &Ctx<S>,
    ) where
        M: Maps<K, W, S>,
    {
        let this = self.in_shard_of(ctx);
        let watched = this.watched_context(ctx);
        let cache = watched.caches().of_needed(&this.kind, &this.selection, this.need);
        watched.add_kind(&this.kind);
        let keys = this.map.keys_of(&KindOf(kind.clone()));
        let contexts = Contexts {
            own: ctx.clone(),
            watched,
        };
        enqueue_changes(&cache, this.filter, keys, Arc::clone(queue), contexts);
    }

    /// Like [`subscribe`](Self::subscribe), but for a controller that is already running.
    pub(crate) fn subscribe_late<S: Send + Sync + 'static>(
        self,
        cache: &Cache<W>,
        target: &WatchTarget,
        ctx: &Ctx<S>,
    ) -> Result<HandlerId, Error>
    where
        M: MapsLate<W, S>,
    {
        ctx.add_kind(&self.kind);
        let keys = self.map.keys_for(target)?;
        let queue = Arc::clone(target.queue());
        let contexts = Contexts {
            own: ctx.in_own_cluster(),
            watched: ctx.clone(),
        };
        Ok(enqueue_changes(cache, self.filter, keys, queue, contexts))
    }

    /// In a sharded controller, limits the watch to objects whose owners are assigned to this
    /// replica.
    pub(crate) fn in_shard_of<S: Send + Sync + 'static>(mut self, ctx: &Ctx<S>) -> Self
    where
        M: MapsLate<W, S>,
    {
        // A mapping function can map any object to any other, so it needs the events of all
        // replicas.
        if let Some(division) = ctx.division().filter(|_| M::BY_OWNER) {
            self.selection = self.selection.in_scope(division.owned_scope());
        }
        self
    }

    /// `None` for the context's own cluster.
    pub(crate) fn cluster(&self) -> Option<&Cluster> {
        self.cluster.as_ref()
    }

    pub(crate) fn watched_context<S>(&self, ctx: &Ctx<S>) -> Ctx<S> {
        match &self.cluster {
            Some(cluster) => ctx.in_cluster(cluster),
            None => ctx.clone(),
        }
    }

    /// The kind and selection identify the watched cache.
    pub(crate) fn watched(&self) -> (&Kind<W>, &Selection, Need) {
        (&self.kind, &self.selection, self.need)
    }
}

/// Both are the same unless the watch is for another cluster.
struct Contexts<S> {
    /// For mapping functions that return objects in the manager's own cluster.
    own: Ctx<S>,
    /// For the cluster of the watched objects.
    watched: Ctx<S>,
}

fn enqueue_changes<W: Watchable, S: Send + Sync + 'static>(
    cache: &Cache<W>,
    filter: Option<Predicate<W>>,
    keys: Keys<W, S>,
    queue: Arc<Workqueue<Key>>,
    Contexts { own, watched }: Contexts<S>,
) -> HandlerId {
    let kind = cache.kind().clone();
    cache.subscribe(Box::new(move |event| {
        let (mut requests, priority) = match event {
            CacheEvent::Change(change) if !passes_filter(filter.as_ref(), change) => return,
            CacheEvent::Change(change) => (keys.of_change(change, &kind, &own), priority_of_change(change)),
            // To the mapping function, an undecodable object appears deleted.
            CacheEvent::Undecodable { old, new, initial } => {
                watched.record_undecodable(&kind, new);
                let last = old.clone().map(Change::Deleted);
                let mut requests = last.map_or_else(Vec::new, |last| keys.of_change(&last, &kind, &own));
                requests.append(&mut keys.of_metadata(new));
                (requests, priority_of(*initial))
            }
            CacheEvent::UndecodableDeleted(old) => (keys.of_metadata(old), NORMAL),
        };
        // Deduplicate before enqueueing anything. Otherwise a worker might take the first request
        // before the second is added, and reconcile the object twice for the same event.
        KeyRequest::deduplicate(&mut requests, priority);
        for request in requests {
            request.enqueue(&queue, priority);
        }
    }))
}

fn priority_of_change<W>(change: &Change<W>) -> Priority {
    match change {
        Change::Applied { initial, .. } => priority_of(*initial),
        Change::Deleted(_) => NORMAL,
    }
}

/// Initial events have low priority, because the object may not have changed at all.
pub(super) fn priority_of(initial: bool) -> Priority {
    if initial { LOW } else { NORMAL }
}

/// If the predicate panics, the event passes: an unnecessary reconcile is better than a missing
/// one.
pub(super) fn passes_filter<K: Watchable>(filter: Option<&Predicate<K>>, change: &Change<K>) -> bool {
    let Some(filter) = filter else {
        return true;
    };
    call_back("predicate", || filter.matches(change)).unwrap_or_else(|_| {
        tracing::error!(
            object = %Key::of(&**change.object()),
            "predicate panicked, event not filtered"
        );
        true
    })
}

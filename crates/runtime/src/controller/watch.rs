//! Watches of additional kinds, whose events enqueue the objects to reconcile.

use std::marker::PhantomData;
use std::sync::Arc;

use kube::api::DynamicObject;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::ObjectRef;

use super::mapping::{ByChange, ByFunction, ByMap, ByOwner, Keys, KindOf, Maps, MapsLate, call_back};
use crate::cache::{Cache, CacheEvent, Change, HandlerId, Need, Selection};
use crate::cluster::Cluster;
use crate::ctx::{Ctx, WatchTarget};
use crate::error::Error;
use crate::object::{DynamicKind, Key, Kind, Object, Watchable};
use crate::predicate::Predicate;
use crate::queue::{LOW, NORMAL, Priority, Workqueue};
use crate::request::{KeyRequest, Request};

/// A watch of a kind, with a selection, a predicate and a mapping from its objects to the objects
/// to reconcile.
///
/// [`Controller::owns`](crate::Controller::owns) and [`Controller::watches`](crate::Controller::watches) are shorthands
/// for common watches. [`Controller::watch`](crate::Controller::watch) takes any watch, and
/// [`Ctx::watch`](crate::Ctx::watch) adds one while the controller is running.
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
    /// Caches whole objects, for [`Ctx::cached`](crate::Ctx::cached). With
    /// [`PartialObjectMeta<W>`](PartialObjectMeta), only their metadata is watched and cached, like
    /// [`Controller::owns`](crate::Controller::owns) does.
    pub fn owned() -> Self {
        Self::new(Kind::of_type(), ByOwner { any: false })
    }
}

impl Watch<PartialObjectMeta<DynamicObject>, ByOwner> {
    /// Watches objects of a kind known only at run time and reconciles their owners. Only metadata is watched and
    /// cached.
    pub fn owned_dynamic(kind: &DynamicKind) -> Self {
        Self::new(kind.into(), ByOwner { any: false })
    }
}

impl<W: Watchable> Watch<W, ByOwner> {
    /// Reconciles all owners, not only the one with `controller: true`.
    pub fn by_any_owner(mut self) -> Self {
        self.map.any = true;
        self
    }
}

impl<W: Object, K: Watchable, S, F> Watch<W, ByMap<K, S, F>>
where
    F: Fn(&W, &Ctx<S>) -> Vec<ObjectRef<K>> + Send + Sync + 'static,
{
    /// Watches objects of type `W` and reconciles the objects that `map` returns.
    ///
    /// `map` is called with the object before and after an update, and with a deleted object. It
    /// must not block, because it delays all events of the kind.
    pub fn mapped(map: F) -> Self {
        let types = PhantomData;
        Self::new(Kind::of_type(), ByMap { map, types })
    }
}

impl<K: Watchable, S, F> Watch<DynamicObject, ByMap<K, S, F>>
where
    F: Fn(&DynamicObject, &Ctx<S>) -> Vec<ObjectRef<K>> + Send + Sync + 'static,
{
    /// Like [`mapped`](Watch::mapped), for a kind known only at run time.
    pub fn mapped_dynamic(kind: &DynamicKind, map: F) -> Self {
        let types = PhantomData;
        Self::new(kind.into(), ByMap { map, types })
    }
}

impl<W: Object, K: Watchable, S, F> Watch<W, ByChange<K, S, F>>
where
    F: Fn(&Change<W>, &Ctx<S>) -> Vec<Request<K>> + Send + Sync + 'static,
{
    /// Watches objects of type `W` and reconciles the objects that `map` requests for each change.
    ///
    /// This is the general form of [`mapped`](Self::mapped), similar to client-go's event handlers.
    /// `map` is called once for each event. It sees whether the object was created, updated or
    /// deleted, the object before and after an update, and whether it comes from the initial list.
    /// A request without a priority gets the priority of the event: -100 for the initial list,
    /// otherwise 0. Requests for the same object are merged, keeping the earliest time and the
    /// highest priority.
    ///
    /// An object that can no longer be [decoded](crate::Undecodable) is passed as deleted, in its
    /// last readable state. `map` must not block, because it delays all events of the kind.
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
    /// Like [`mapped_changes`](Watch::mapped_changes), for a kind known only at run time.
    pub fn mapped_changes_dynamic(kind: &DynamicKind, map: F) -> Self {
        let types = PhantomData;
        Self::new(kind.into(), ByChange { map, types })
    }
}

impl<W: Watchable, M: ByFunction> Watch<W, M> {
    /// Watches the objects of another cluster.
    ///
    /// The mapping function returns objects of the controller, which are in the manager's own
    /// cluster, and receives a context for that cluster. The manager does not wait for the watch at
    /// startup. While the cluster is unreachable, the watch is retried; afterwards it delivers what
    /// has changed in the meantime.
    ///
    /// Owner references do not reach across clusters, so only watches with a mapping function can
    /// use this:
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

    /// Reconciles only for events that pass `predicate`. When called repeatedly, events must pass all predicates.
    pub fn filter(mut self, predicate: Predicate<W>) -> Self {
        self.filter = Some(match self.filter {
            Some(filter) => filter.and(predicate),
            None => predicate,
        });
        self
    }

    /// Watches and caches only the selected objects.
    pub fn selecting(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// Starts the manager without waiting for the watch, for a kind that may not be installed.
    ///
    /// Until the kind is served, its cache is empty; use
    /// [`Cached::is_synced`](crate::Cached::is_synced) to tell this from a kind without objects.
    /// The watch is retried, and triggers reconciles once it delivers objects. By default, the
    /// manager waits for the first list of each watch, and exits with an error after
    /// [`cache_sync_timeout`](crate::Manager::cache_sync_timeout).
    ///
    /// If something else requires the same cache, the manager still waits for it. A watch added by
    /// [`Ctx::watch`](crate::Ctx::watch) is always optional at startup.
    pub fn optional(mut self) -> Self {
        self.need = Need::Optional;
        self
    }

    /// Makes the process unready if the watch receives no data for
    /// [`cache_stale_after`](crate::Manager::cache_stale_after).
    ///
    /// By default, when a watch stops receiving data, for example because its RoleBinding was
    /// removed, this is logged and counted, but the process stays ready for its webhooks and
    /// everything else. All replicas lose the same watches at the same time, so require a watch
    /// only if answers from stale data are worse than none.
    pub fn required(mut self) -> Self {
        self.need = Need::Always;
        self
    }
}

impl<W: Watchable, M> Watch<W, M> {
    /// Enqueues the mapped keys for each event of the cache from now on.
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

    /// Like [`subscribe`](Self::subscribe), for a controller that is already running.
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

    /// Keeps only the objects whose owners belong to this replica, if owners decide and the
    /// controller is sharded. A mapping function may return any object for any other, so it gets the
    /// events of all.
    pub(crate) fn in_shard_of<S: Send + Sync + 'static>(mut self, ctx: &Ctx<S>) -> Self
    where
        M: MapsLate<W, S>,
    {
        if let Some(division) = ctx.division().filter(|_| M::BY_OWNER) {
            self.selection = self.selection.in_scope(division.owned_scope());
        }
        self
    }

    /// Returns the watched cluster, unless it is the context's own.
    pub(crate) fn cluster(&self) -> Option<&Cluster> {
        self.cluster.as_ref()
    }

    /// Returns the context for the watched cluster.
    pub(crate) fn watched_context<S>(&self, ctx: &Ctx<S>) -> Ctx<S> {
        match &self.cluster {
            Some(cluster) => ctx.in_cluster(cluster),
            None => ctx.clone(),
        }
    }

    /// Returns the kind and selection that identify the watched cache, and the need for it.
    pub(crate) fn watched(&self) -> (&Kind<W>, &Selection, Need) {
        (&self.kind, &self.selection, self.need)
    }
}

/// The contexts of a watch. They are the same for watches of the manager's own cluster.
struct Contexts<S> {
    /// For mapping functions, which return objects of the manager's own cluster.
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
            CacheEvent::Undecodable { old, new, initial } => {
                watched.record_undecodable(&kind, new);
                let last = old.clone().map(Change::Deleted);
                let mut requests = last.map_or_else(Vec::new, |last| keys.of_change(&last, &kind, &own));
                requests.append(&mut keys.of_metadata(new));
                (requests, priority_of(*initial))
            }
            CacheEvent::UndecodableDeleted(old) => (keys.of_metadata(old), NORMAL),
        };
        // Deduplicate here and not in the queue: a worker might take the first copy before the
        // second is added, and would then reconcile the object twice for one event.
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

/// Returns the priority of an event. It is low at startup, when existing objects have not
/// necessarily changed.
pub(super) fn priority_of(initial: bool) -> Priority {
    if initial { LOW } else { NORMAL }
}

/// Returns `true` if an event passes a predicate, or if the predicate panics: a superfluous
/// reconcile is harmless, a missed one is not.
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

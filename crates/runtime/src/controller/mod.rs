//! Controllers: a reconcile function, the objects it watches, and its settings.
//!
//! A [`Controller`] does nothing until a [`Manager`](crate::Manager) starts it. It receives events from
//! [caches](crate::cache), maps each to the keys of the objects to reconcile, and runs a fixed number of workers that
//! take keys from its [queue](crate::queue). The result of a reconcile decides when its key is enqueued again; a panic
//! is contained in the worker.
//!
//! kube's `Controller` is not used: it ends with the first panic, neither orders nor limits
//! reconciles, has no back-off for each object, and does not report deletions.

mod handlers;
mod late_watch;
mod mapping;
mod prepare;
mod primary;
mod settings;
mod unselected;
mod watch;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use kube::api::DynamicObject;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::ObjectRef;

use crate::action::Action;
use crate::backoff::Backoff;
use crate::cache::{Caches, Index, Need, Selection};
use crate::cluster::Cluster;
use crate::ctx::Ctx;
use crate::error::BoxError;
use crate::object::{DynamicKind, Key, Kind, Object, Watchable};
use crate::predicate::Predicate;
use crate::queue::Workqueue;
use crate::rate_limiter::RateLimiter;
use crate::request::Request;
use crate::shards::Division;

use handlers::{Handlers, box_reconcile};
pub use late_watch::{Watches, Watching};
pub use mapping::{ByChange, ByFunction, ByMap, ByOwner, Maps, MapsLate};
pub(crate) use prepare::{AnyController, ManagerResources, PreparedController};
pub use unselected::Unselected;
pub use watch::Watch;

/// Default number of workers; see [`Controller::concurrency`].
const DEFAULT_CONCURRENCY: usize = 4;

/// Reconciles the objects of kind `K` with one function and the shared state `S`.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
/// # use rbuilder::{Action, Controller, Ctx, Result};
/// async fn reconcile(object: Arc<ConfigMap>, ctx: Ctx<()>) -> Result {
///     Ok(Action::await_change())
/// }
///
/// let controller = Controller::new(reconcile, ()).owns::<Deployment>().concurrency(8);
/// ```
#[must_use = "pass it to `Manager::controller`"]
pub struct Controller<K: Watchable, S> {
    name: String,
    kind: Kind<K>,
    selection: Selection,
    unselected: Option<Unselected>,
    need: Need,
    filter: Option<Predicate<K>>,
    state: S,
    concurrency: usize,
    everywhere: bool,
    /// How the replicas of a sharded operator divide the objects.
    division: Division,
    timeout: Option<Duration>,
    recover_panics: bool,
    resync: Option<Duration>,
    backoff: Backoff,
    limiter: Option<Box<dyn RateLimiter<ObjectRef<K>>>>,
    handlers: Handlers<K, S>,
    watches: Vec<Subscribe<K, S>>,
    triggers: Vec<BoxStream<'static, Request<K>>>,
    /// Functions that request the caches the controller reads without watching.
    reads: Vec<RequestCache>,
    /// Kinds of these caches that are only known at run time.
    kinds: Vec<DynamicKind>,
}

/// Requests a cache.
type RequestCache = Box<dyn FnOnce(&Caches) + Send>;

/// Subscribes a controller to the events of another kind.
type Subscribe<K, S> = Box<dyn FnOnce(&Kind<K>, &Arc<Workqueue<Key>>, &Ctx<S>) + Send>;

impl<K: Object, S: Send + Sync + 'static> Controller<K, S> {
    /// Creates a controller for the objects of kind `K`, inferred from the reconcile function.
    ///
    /// The function is called for each object at startup; when the object or an object
    /// [owned](Self::owns) by or [watched](Self::watches) for it changes; after the delay requested
    /// with [`Action::requeue`]; and after a failure with exponential [back-off](Self::backoff),
    /// until it succeeds. It never runs concurrently for the same object. The object comes from a
    /// cache, which may lag behind the cluster, but not behind this process's own writes through
    /// [`Ctx`]. A conflict (409) caused by the lag is retried, and logged as an error only if it
    /// persists (from the fifth in a row).
    ///
    /// The error type can be [`Error`](crate::Error), any `std::error::Error`, or a boxed one like `anyhow::Error`. A
    /// panic counts as an error.
    ///
    /// Objects that are being deleted are not reconciled, because a reconcile would recreate what
    /// the garbage collector deletes along with its owner, or adopt what it orphans. Handle them in
    /// the cleanup of a [`finalizer`](Self::finalizer). See also
    /// [`reconciles_terminating`](Self::reconciles_terminating), and
    /// [`on_deleted`](Self::on_deleted) for deleted objects.
    pub fn new<F, Fut, E>(reconcile: F, state: S) -> Self
    where
        F: Fn(Arc<K>, Ctx<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        Self::of_kind(Kind::of_type(), reconcile, state)
    }
}

impl<S: Send + Sync + 'static> Controller<DynamicObject, S> {
    /// Creates a controller for a kind known only at run time; see [`new`](Self::new).
    pub fn dynamic<F, Fut, E>(kind: &DynamicKind, reconcile: F, state: S) -> Self
    where
        F: Fn(Arc<DynamicObject>, Ctx<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        Self::of_kind(kind.into(), reconcile, state)
    }
}

impl<K: Watchable, S: Send + Sync + 'static> Controller<K, S> {
    fn of_kind<F, Fut, E>(kind: Kind<K>, reconcile: F, state: S) -> Self
    where
        F: Fn(Arc<K>, Ctx<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        Self {
            name: kind.name().to_lowercase(),
            kind,
            selection: Selection::all(),
            unselected: None,
            need: Need::AtStart,
            filter: None,
            state,
            concurrency: DEFAULT_CONCURRENCY,
            everywhere: false,
            division: Division::default(),
            timeout: None,
            recover_panics: true,
            resync: None,
            backoff: Backoff::default(),
            limiter: None,
            handlers: Handlers {
                reconcile: box_reconcile(reconcile),
                reconciles_terminating: false,
                finalizers: Vec::new(),
                on_deleted: None,
                on_undecodable: None,
            },
            watches: Vec::new(),
            triggers: Vec::new(),
            reads: Vec::new(),
            kinds: Vec::new(),
        }
    }

    /// Watches objects of kind `C`, and reconciles the owner of each object that changes.
    ///
    /// The owner is the one in the owner reference with `controller: true`, as set by
    /// [`Ctx::apply_owned`](crate::Ctx::apply_owned). When that changes, both owners are
    /// reconciled. Only the metadata of these objects is watched and cached.
    pub fn owns<C: Object>(self) -> Self {
        self.watch(Watch::<PartialObjectMeta<C>>::owned())
    }

    /// Like [`owns`](Self::owns), for a kind known only at run time.
    pub fn owns_dynamic(self, kind: &DynamicKind) -> Self {
        self.watch(Watch::owned_dynamic(kind))
    }

    /// Watches objects of kind `W`, and reconciles the objects that `map` returns for each object
    /// that changes.
    ///
    /// `map` is called with the object before and after an update, and with a deleted object. It
    /// must not block, because it delays all events of the kind. If the function needs to know what
    /// happened, or sets priorities, use [`Watch::mapped_changes`].
    pub fn watches<W, F>(self, map: F) -> Self
    where
        W: Object,
        F: Fn(&W, &Ctx<S>) -> Vec<ObjectRef<K>> + Send + Sync + 'static,
    {
        self.watch(Watch::mapped(map))
    }

    /// Adds a [`Watch`], the general form of [`owns`](Self::owns) and [`watches`](Self::watches), with predicates,
    /// selections and kinds known only at run time.
    pub fn watch<W: Watchable, M: Maps<K, W, S>>(mut self, watch: Watch<W, M>) -> Self {
        self.watches
            .push(Box::new(|kind, queue, ctx| watch.subscribe(kind, queue, ctx)));
        self
    }

    /// Watches objects in every other cluster of the manager, including those
    /// [added](crate::Clusters::add) later. `watch` returns the watch for a cluster.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Node};
    /// # use rbuilder::{Action, Cluster, Controller, Ctx, ObjectRef, Result, Watch};
    /// # async fn reconcile(object: Arc<ConfigMap>, ctx: Ctx<()>) -> Result { Ok(Action::await_change()) }
    /// /// Reconciles the ConfigMap with the name of the cluster when a node of it changes.
    /// let controller = Controller::new(reconcile, ()).watch_clusters(|cluster: &Cluster| {
    ///     let settings = ObjectRef::<ConfigMap>::new(cluster.name()).within("fleet");
    ///     Watch::mapped(move |_: &Node, _: &Ctx<()>| vec![settings.clone()])
    /// });
    /// ```
    pub fn watch_clusters<W, M>(
        mut self,
        watch: impl Fn(&Cluster) -> Watch<W, M> + Send + Sync + 'static,
    ) -> Self
    where
        W: Watchable,
        M: Maps<K, W, S> + ByFunction,
    {
        self.watches.push(Box::new(|kind, queue, ctx| {
            let (kind, queue, clusters) = (kind.clone(), Arc::clone(queue), ctx.clusters().clone());
            let ctx = ctx.clone();
            clusters.on_added(move |cluster| {
                watch(cluster).in_cluster(cluster).subscribe(&kind, &queue, &ctx);
            });
        }));
        self
    }

    /// Reconciles only for events of the controller's own kind that pass `predicate`. When called repeatedly, events
    /// must pass all predicates.
    ///
    /// The predicate also applies to the initial events at startup and to the deletions for
    /// [`on_deleted`](Self::on_deleted).
    pub fn filter(mut self, predicate: Predicate<K>) -> Self {
        self.filter = Some(match self.filter {
            Some(filter) => filter.and(predicate),
            None => predicate,
        });
        self
    }

    /// Watches, caches and reconciles only the selected objects. This way, several controllers can
    /// share the objects of a kind.
    ///
    /// To the controller, an object that leaves the selection looks deleted. With a
    /// [`finalizer`](Self::finalizer), use [`when_unselected`](Self::when_unselected) to decide
    /// what happens to it.
    pub fn selecting(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// Sets what happens to an object that leaves the [selection](Self::selecting) while it has a
    /// [`finalizer`](Self::finalizer) of the controller. Otherwise the object could never be
    /// deleted.
    ///
    /// Required if the controller has a finalizer and a changed label or field can remove an object
    /// from its selection; otherwise the manager does not start. See [`Unselected`] for the
    /// choices. Except with [`Keep`](Unselected::Keep), no other controller may use the same
    /// finalizers: at startup, the controller lists the metadata of the whole kind, and handles
    /// each object that has one of them but is not selected.
    pub fn when_unselected(mut self, handling: Unselected) -> Self {
        self.unselected = Some(handling);
        self
    }

    /// Makes the process unready while the watch of the controller's own kind receives no data, as
    /// [`Watch::required`] does for other kinds.
    pub fn required(mut self) -> Self {
        self.need = Need::Always;
        self
    }

    /// Reconciles the objects that a stream yields, such as the
    /// [`Triggers`](crate::trigger::Triggers) of a channel. The stream yields [`ObjectRef`]s, or
    /// [`Request`]s with a priority and a delay.
    ///
    /// The stream is polled once the controller's workers have started. The controller continues when it ends.
    pub fn triggers(mut self, requests: impl Stream<Item: Into<Request<K>>> + Send + 'static) -> Self {
        self.triggers.push(requests.map(Into::into).boxed());
        self
    }

    /// Reconciles every object periodically, at low priority. Off by default.
    ///
    /// Each period is extended by a random part of up to a tenth, so that controllers do not resync
    /// at the same time. Changes in the cluster are watched anyway; use this for external state
    /// that sends no events.
    pub fn resync_every(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// Caches objects of kind `C` for [`Ctx::cached`](crate::Ctx::cached) without reconciling when they change.
    pub fn reads<C: Object>(mut self) -> Self {
        self.reads.push(Box::new(|caches| {
            caches.of::<C>(&Kind::of_type(), &Selection::all());
        }));
        self
    }

    /// Like [`reads`](Self::reads), for a kind known only at run time. Read the cache with
    /// [`Ctx::cached_dynamic`](crate::Ctx::cached_dynamic).
    pub fn reads_dynamic(mut self, kind: &DynamicKind) -> Self {
        let cached = Kind::<DynamicObject>::from(kind);
        self.kinds.push(kind.clone());
        self.reads.push(Box::new(move |caches| {
            caches.of(&cached, &Selection::all());
        }));
        self
    }

    /// Caches objects of kind `C` with an index: [`Cached::by`](crate::Cached::by) returns the objects for which `values`
    /// returned a given value.
    ///
    /// All users of the cache share its index names. If two indexes have the same name, the first
    /// one is kept.
    pub fn index<C: Object>(
        mut self,
        name: impl Into<String>,
        values: impl Fn(&C) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        let index = Index::new(name.into(), values);
        self.reads.push(Box::new(|caches| {
            caches
                .of::<C>(&Kind::of_type(), &Selection::all())
                .add_index(index);
        }));
        self
    }

    /// Like [`index`](Self::index), for a kind known only at run time. Read the cache with
    /// [`Ctx::cached_dynamic`](crate::Ctx::cached_dynamic).
    pub fn index_dynamic(
        mut self,
        kind: &DynamicKind,
        name: impl Into<String>,
        values: impl Fn(&DynamicObject) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        let (cached, index) = (Kind::<DynamicObject>::from(kind), Index::new(name.into(), values));
        self.kinds.push(kind.clone());
        self.reads.push(Box::new(move |caches| {
            caches.of(&cached, &Selection::all()).add_index(index);
        }));
        self
    }
}

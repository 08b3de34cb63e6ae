//! Controllers: a reconcile function, the objects it watches, and its settings.
//!
//! A [`Controller`] does nothing until a [`Manager`](crate::Manager) starts it. It receives events from
//! [caches](crate::cache), maps each to the keys of the objects to reconcile, and runs a fixed number of workers that
//! take keys from its [queue](crate::queue). The result of a reconcile decides when its key is enqueued again; a panic
//! is contained in the worker.

mod late_watch;
mod mapping;
mod unselected;
mod watch;
mod worker;

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, Stream, StreamExt};
use kube::api::DynamicObject;
use kube::core::PartialObjectMeta;
use kube::runtime::events::Reporter;
use kube::runtime::reflector::ObjectRef;
use kube::{Client, ResourceExt};

use crate::action::Action;
use crate::backoff::Backoff;
use crate::cache::{Cache, CacheEvent, Caches, Change, Index, Need, Selection};
use crate::cluster::{Cluster, Clusters};
use crate::ctx::{ClusterLinks, ContextParts, Ctx, WatchTarget};
use crate::deadline::scale;
use crate::debug::ControllerQueue;
use crate::error::{BoxError, Error, ManagerError};
use crate::events::new_event_channel;
use crate::kinds::Kinds;
use crate::leader_election::Fence;
use crate::metrics::Metrics;
use crate::object::{DynamicKind, Key, Kind, Object, Undecodable, Watchable};
use crate::predicate::Predicate;
use crate::queue::{LOW, NORMAL, Workqueue};
use crate::random::random_share;
use crate::rate_limiter::{ByReference, RateLimiter};
use crate::request::Request;
use crate::shutdown::Shutdown;

pub use late_watch::{Watches, Watching};
pub use mapping::{ByChange, ByFunction, ByMap, ByOwner, Maps, MapsLate};
use unselected::Departures;
pub use unselected::Unselected;
pub use watch::Watch;
use watch::{passes_filter, priority_of};
use worker::Worker;

/// Number of workers unless set with [`Controller::concurrency`].
const DEFAULT_CONCURRENCY: usize = 4;
/// Largest number of workers: each takes memory, and is woken when the queue closes.
const MOST_WORKERS: usize = 10_000;

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
    timeout: Option<Duration>,
    recover_panics: bool,
    resync: Option<Duration>,
    backoff: Backoff,
    limiter: Option<Box<dyn RateLimiter<ObjectRef<K>>>>,
    handlers: Handlers<K, S>,
    watches: Vec<Subscribe<K, S>>,
    triggers: Vec<BoxStream<'static, Request<K>>>,
    /// Each requests a cache that the controller reads without watching.
    reads: Vec<RequestCache>,
    /// The kinds of these caches that are known only at run time.
    kinds: Vec<DynamicKind>,
}

/// Requests a cache.
type RequestCache = Box<dyn FnOnce(&Caches) + Send>;

/// Subscribes a controller to the events of another kind.
type Subscribe<K, S> = Box<dyn FnOnce(&Kind<K>, &Arc<Workqueue<Key>>, &Ctx<S>) + Send>;

/// The functions supplied by the operator.
struct Handlers<K: Watchable, S> {
    reconcile: Reconcile<Arc<K>, S>,
    /// `true` if objects that are being deleted are reconciled as well, without a finalizer.
    reconciles_terminating: bool,
    /// In the order they were added.
    finalizers: Vec<Finalizer<K, S>>,
    on_deleted: Option<Reconcile<ObjectRef<K>, S>>,
    on_undecodable: Option<Reconcile<Arc<Undecodable>, S>>,
}

/// A finalizer and its cleanup.
struct Finalizer<K, S> {
    name: String,
    cleanup: Reconcile<Arc<K>, S>,
}

/// A boxed reconcile, cleanup or deletion function with an argument of type `T`.
type Reconcile<T, S> =
    Box<dyn Fn(T, Ctx<S>) -> Pin<Box<dyn Future<Output = Result<Action, Error>> + Send>> + Send + Sync>;

fn box_reconcile<T, S, F, Fut, E>(reconcile: F) -> Reconcile<T, S>
where
    T: Send + 'static,
    S: Send + Sync + 'static,
    F: Fn(T, Ctx<S>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, E>> + Send + 'static,
    E: Into<BoxError>,
{
    let reconcile = Arc::new(reconcile);
    Box::new(move |argument, ctx| {
        let reconcile = Arc::clone(&reconcile);
        // Called inside: a block that captures the future holds it twice, and it may have ten kilobytes.
        Box::pin(async move { reconcile(argument, ctx).await.map_err(Error::new) })
    })
}

impl<K: Object, S: Send + Sync + 'static> Controller<K, S> {
    /// Creates a controller for the objects of kind `K`, inferred from the reconcile function.
    ///
    /// The function is called for each object at startup; when the object or an object [owned](Self::owns) by or
    /// [watched](Self::watches) for it changes; after the delay requested with [`Action::requeue`]; and after a failure
    /// with exponential [back-off](Self::backoff) (5 ms, doubling up to 1000 s, until it succeeds). It never runs concurrently for the
    /// same object. The object comes from a cache, which may lag behind the cluster, but not behind this process's own
    /// writes through [`Ctx`]; a conflict (409) caused by the lag is retried, and logged as an error only if it persists
    /// (from the fifth in a row).
    ///
    /// The error type can be [`Error`](crate::Error), any `std::error::Error`, or a boxed one like `anyhow::Error`. A
    /// panic counts as an error.
    ///
    /// Objects that are being deleted are not reconciled: a reconcile would create again what the garbage collector
    /// deletes with its owner, and adopt what it releases. A [`finalizer`](Self::finalizer) has a cleanup for them; see also
    /// [`reconciles_terminating`](Self::reconciles_terminating) and, for deleted objects, [`on_deleted`](Self::on_deleted).
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

    /// Watches objects of kind `C` and reconciles the owner of each that changes.
    ///
    /// The owner is the one of the owner reference with `controller: true`, as
    /// [`Ctx::apply_owned`](crate::Ctx::apply_owned) sets it; when it changes, both owners are reconciled. Only the
    /// metadata of these objects is watched and cached.
    pub fn owns<C: Object>(self) -> Self {
        self.watch(Watch::<PartialObjectMeta<C>>::owned())
    }

    /// [`owns`](Self::owns) for a kind known only at run time.
    pub fn owns_dynamic(self, kind: &DynamicKind) -> Self {
        self.watch(Watch::owned_dynamic(kind))
    }

    /// Watches objects of kind `W` and reconciles the objects that `map` returns for each that changes.
    ///
    /// `map` is called with the object before and after an update, and with a deleted object. It must not block: it
    /// delays all events of the kind. A function that needs to know what happened, or decides on priorities, is a
    /// [`Watch::mapped_changes`].
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

    /// Watches objects of every other cluster of the manager, those that are [added](crate::Clusters::add) later included,
    /// with the watch that `watch` returns for the cluster.
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

    /// Watches, caches and reconciles only the selected objects. Several controllers can divide the objects of a kind
    /// between them.
    ///
    /// To the controller, an object that leaves the selection is deleted. With a [`finalizer`](Self::finalizer), say with
    /// [`when_unselected`](Self::when_unselected) what happens to it.
    pub fn selecting(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// Sets what happens to an object that leaves the [selection](Self::selecting) with a
    /// [`finalizer`](Self::finalizer) of the controller, which could otherwise never be deleted.
    ///
    /// The manager does not start without it if the controller has a finalizer, and a changed label or field can take an
    /// object out of its selection. [`Unselected`] has the choices. Except with [`Keep`](Unselected::Keep), no other
    /// controller may use the same finalizers: at the start, the controller lists the metadata of the whole kind, and
    /// handles each object with one of them that it does not select.
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

    /// Reconciles the objects that a stream yields, such as the [`Triggers`](crate::trigger::Triggers) of a channel: as
    /// [`ObjectRef`]s, or as [`Request`]s with a priority and a delay.
    ///
    /// The stream is polled once the controller's workers have started. The controller continues when it ends.
    pub fn triggers(mut self, requests: impl Stream<Item: Into<Request<K>>> + Send + 'static) -> Self {
        self.triggers.push(requests.map(Into::into).boxed());
        self
    }

    /// Reconciles every object periodically, at low priority. Off by default.
    ///
    /// A random part of up to a tenth is added to each period, so that controllers do not resync at the same time.
    /// Changes in the cluster are watched anyway; use this for external state that sends no events.
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

    /// [`reads`](Self::reads) for a kind known only at run time, whose cache is
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
    /// Index names are shared by all users of the cache; of two indexes with the same name, the first is kept.
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

    /// [`index`](Self::index) for a kind known only at run time, whose cache is
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

    /// Sets the maximum number of concurrent reconciles, from 1 to 10,000. Defaults to 4; a number out of range counts as
    /// the nearest in it.
    pub fn concurrency(mut self, max: usize) -> Self {
        self.concurrency = max.clamp(1, MOST_WORKERS);
        self
    }

    /// Runs the controller in every replica, leader or not, once the caches are synced.
    ///
    /// Use it for state local to the replica, such as an in-memory table. Replicas that write the same object conflict
    /// with each other.
    pub fn on_every_replica(mut self) -> Self {
        self.everywhere = true;
        self
    }

    /// Sets the name of the controller. Defaults to the kind in lower case.
    ///
    /// The name is the field manager of applied objects, the reporter of events, and a label in logs and metrics. It
    /// must be unique in a manager.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Cancels a reconcile that takes longer than `limit` and treats it as failed. Unlimited by default.
    pub fn reconcile_timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Sets the delays after failed reconciles of an object: `min` after the first, then doubling up to `max`, until one
    /// succeeds. Defaults to 5 ms and 1000 s, as in controller-runtime.
    ///
    /// No delay is shorter than 1 ms, and none is longer than `max`, even if `min` is. It is the short form of a
    /// [`rate_limiter`](Self::rate_limiter), and replaces one that was set before.
    pub fn backoff(mut self, min: Duration, max: Duration) -> Self {
        self.backoff = Backoff { min, max };
        self.limiter = None;
        self
    }

    /// Sets the limiter that decides on the delays after failed reconciles, such as one for all objects together. Defaults
    /// to exponential back-off for each object; see [`rate_limiter`](crate::rate_limiter).
    ///
    /// It is asked after errors, conflicts, panics and timeouts, and told to forget an object after a success or a terminal
    /// error. Changes of an object reconcile it at once, whatever the limiter has said.
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<ObjectRef<K>>) -> Self {
        self.limiter = Some(Box::new(limiter));
        self
    }

    /// Sets the handling of panics in a reconcile. With `true`, the default, a panic is logged and counted, and the object
    /// is requeued like after an error. With `false`, it stops the manager with an error that names the controller and
    /// the object.
    pub fn recover_panics(mut self, recover: bool) -> Self {
        self.recover_panics = recover;
        self
    }

    /// Adds a finalizer that prevents objects from being deleted until `cleanup` has succeeded.
    ///
    /// The finalizer `name` (such as `cache.example.com/finalizer`) is added to each object before its first reconcile.
    /// Once the object is being deleted, `cleanup` is called instead of the reconcile function. When it returns
    /// [`Action::await_change`], the finalizer is removed; when it returns [`Action::requeue`], it is called again after
    /// the delay. It must be idempotent, because it may be called again after it succeeded.
    ///
    /// The controller's role needs `patch` on the kind, which scaffolds do not grant: `verbs = ["list", "watch", "patch"]`.
    ///
    /// When called repeatedly, the object gets all these finalizers. Their cleanups run in the order they were added, each
    /// once the finalizer before it has been removed. A name that was added before gets the new cleanup and keeps its
    /// place.
    pub fn finalizer<F, Fut, E>(mut self, name: impl Into<String>, cleanup: F) -> Self
    where
        F: Fn(Arc<K>, Ctx<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let finalizer = Finalizer {
            name: name.into(),
            cleanup: box_reconcile(cleanup),
        };
        let finalizers = &mut self.handlers.finalizers;
        match finalizers.iter_mut().find(|added| added.name == finalizer.name) {
            Some(added) => *added = finalizer,
            None => finalizers.push(finalizer),
        }
        self
    }

    /// Also reconciles objects that are being deleted, such as to report in their status what others' finalizers wait for,
    /// or for a finalizer that the reconcile itself adds and removes, as with `kube::runtime::finalizer`. Off by default, as in Kubernetes' own controllers, which only reconcile objects without a deletion timestamp.
    ///
    /// For an object with a deletion timestamp, the reconcile must neither create nor adopt anything: with
    /// `kubectl delete --cascade=foreground` the garbage collector waits until the owned objects are gone, and one that is
    /// created again each time is waited for forever; with `--cascade=orphan` it releases them, and one that is adopted
    /// again is deleted with its owner. [`Ctx::apply_owned`](crate::Ctx::apply_owned) and the other methods with an owner
    /// refuse that, but requests of your own do not.
    ///
    /// It has no effect on a controller with a [`finalizer`](Self::finalizer), whose cleanup is called instead.
    pub fn reconciles_terminating(mut self) -> Self {
        self.handlers.reconciles_terminating = true;
        self
    }

    /// Calls `forget` after an object was deleted, to release in-memory state about it.
    ///
    /// It is retried like a reconcile, and not called when an object of the same name exists again. It is not called for
    /// objects deleted while the operator was not running: to clean up external resources, use a
    /// [`finalizer`](Self::finalizer).
    pub fn on_deleted<F, Fut, E>(mut self, forget: F) -> Self
    where
        F: Fn(ObjectRef<K>, Ctx<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        self.handlers.on_deleted = Some(box_reconcile(forget));
        self
    }

    /// Calls `handle` for an object of the controller's kind that cannot be decoded into `K`, such as one without a field
    /// that a newer release requires.
    ///
    /// Such an object is not reconciled, whether or not `handle` is set; all others are. It is logged once, a `Warning`
    /// event `Undecodable` tells its owner, and `rbuilder_undecodable_objects` counts it. `handle` can do more: set a
    /// condition with a merge patch, or repair the object. It is called when the object changes and is retried like a
    /// reconcile.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use rbuilder::{Action, Controller, Ctx, Result, Undecodable};
    /// # async fn reconcile(object: Arc<ConfigMap>, ctx: Ctx<()>) -> Result { Ok(Action::await_change()) }
    /// async fn complain(object: Arc<Undecodable>, _ctx: Ctx<()>) -> Result {
    ///     println!("{:?}: {object}", object.metadata().name);
    ///     Ok(Action::await_change())
    /// }
    ///
    /// let controller = Controller::new(reconcile, ()).on_undecodable(complain);
    /// ```
    pub fn on_undecodable<F, Fut, E>(mut self, handle: F) -> Self
    where
        F: Fn(Arc<Undecodable>, Ctx<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        self.handlers.on_undecodable = Some(box_reconcile(handle));
        self
    }
}

/// A controller with its kind and state erased, as the manager stores it.
pub(crate) trait AnyController: Send {
    fn name(&self) -> &str;

    /// Checks that the settings fit together.
    ///
    /// # Errors
    /// The problem, and what to do about it.
    fn check(&self) -> Result<(), ManagerError>;

    /// Subscribes to the caches, which fill the queue from then on, and returns the tasks to run once the caches are
    /// synced and this process is the leader.
    fn prepare(self: Box<Self>, shared: &ManagerResources<'_>) -> PreparedController;
}

/// The resources that a manager shares with its controllers.
pub(crate) struct ManagerResources<'a> {
    pub(crate) client: Client,
    /// The client of controllers that run only in the leader.
    pub(crate) leader_client: Client,
    /// `None` without leader election.
    pub(crate) fence: Option<Fence>,
    pub(crate) caches: &'a Caches,
    pub(crate) kinds: Kinds,
    /// The other clusters.
    pub(crate) clusters: Clusters,
    pub(crate) metrics: Metrics,
    /// Tells event publishers to send what is queued and exit.
    pub(crate) stop_events: Shutdown,
}

/// A controller subscribed to its caches and ready to run.
pub(crate) struct PreparedController {
    pub(crate) name: String,
    /// `true` if it runs in every replica, not only in the leader.
    pub(crate) everywhere: bool,
    pub(crate) concurrency: usize,
    /// Each exits once the queue is closed and its current reconcile has finished.
    pub(crate) workers: Vec<BoxFuture<'static, Result<(), Error>>>,
    pub(crate) events: BoxFuture<'static, ()>,
    /// Kind and API version, for messages.
    kind: String,
    pub(crate) queue: Arc<Workqueue<Key>>,
}

impl PreparedController {
    /// Returns what shows the contents of the queue.
    pub(crate) fn debug_queue(&self) -> ControllerQueue {
        ControllerQueue::new(&self.name, self.kind.clone(), self.concurrency, &self.queue)
    }
}

impl<K: Watchable, S: Send + Sync + 'static> AnyController for Controller<K, S> {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self) -> Result<(), ManagerError> {
        let has_finalizers = !self.handlers.finalizers.is_empty();
        if self.unselected.is_none() && has_finalizers && self.selection.can_lose_objects() {
            return Err(ManagerError::Selection {
                kind: self.kind.describe(),
                reason: "an object that leaves it keeps the finalizer of the controller and could never be deleted; \
                     add `.when_unselected(…)` to the controller",
            });
        }
        Ok(())
    }

    fn prepare(self: Box<Self>, shared: &ManagerResources<'_>) -> PreparedController {
        let Self {
            name,
            kind,
            selection,
            unselected,
            need,
            filter,
            state,
            concurrency,
            everywhere,
            timeout,
            recover_panics,
            resync,
            backoff,
            limiter,
            handlers,
            watches,
            triggers,
            reads,
            kinds,
        } = *self;
        let caches = shared.caches;
        let (client, fence) = match everywhere {
            true => (&shared.client, None),
            false => (&shared.leader_client, shared.fence.clone()),
        };
        let (sender, waiting) = new_event_channel(shared.metrics.events_dropped(&name));
        let events = waiting
            .publish(
                client.clone(),
                Reporter::from(name.as_str()),
                shared.stop_events.clone().requested(),
            )
            .boxed();
        let queue = Workqueue::new(shared.metrics.queue(&name)).with_backoff(backoff);
        let queue = Arc::new(match limiter {
            Some(limiter) => queue.with_rate_limiter(Box::new(ByReference {
                kind: kind.clone(),
                limiter,
            })),
            None => queue,
        });
        let parts = ContextParts {
            client: client.clone(),
            controller: name.clone(),
            events: sender,
            caches: caches.clone(),
            kinds: shared.kinds.clone(),
            watch_target: Some(WatchTarget::new(&kind, &queue)),
            links: ClusterLinks {
                clusters: shared.clusters.clone(),
                fence: fence.clone(),
                metrics: shared.metrics.clone(),
                stop_events: Some(shared.stop_events.clone()),
            },
        };
        let ctx = Ctx::from_parts(parts, state);
        ctx.add_kind(&kind);
        kinds.into_iter().for_each(|kind| shared.kinds.add(kind));
        let finalizers = handlers.finalizers.iter();
        let finalizers = finalizers.map(|finalizer| finalizer.name.clone()).collect();
        let unselected = unselected.filter(|_| selection.can_lose_objects());
        let worker = Arc::new(Worker {
            departures: Arc::new(Departures::new(unselected, finalizers)),
            cache: caches.of_needed(&kind, &selection, need),
            queue: Arc::clone(&queue),
            deleted: Arc::default(),
            conflicts: Mutex::default(),
            fence,
            timeout,
            recover_panics,
            handlers,
            metrics: shared.metrics.controller(&name, concurrency),
            ctx,
        });
        let counted = Arc::downgrade(&queue);
        shared.metrics.before_scrape(move || {
            if let Some(queue) = counted.upgrade() {
                queue.refresh_metrics();
            }
        });
        reads.into_iter().for_each(|read| read(caches));
        worker.watch_primary(filter);
        for watch in watches {
            watch(&kind, &queue, &worker.ctx);
        }
        let mut workers: Vec<BoxFuture<'static, Result<(), Error>>> = Vec::new();
        workers.extend((0..concurrency).map(|_| Arc::clone(&worker).work().boxed()));
        for requests in triggers {
            let triggered = enqueue_triggers(requests, kind.clone(), Arc::clone(&queue));
            workers.push(triggered.map(Ok).boxed());
        }
        if worker.departures.are_handled() {
            workers.push(Arc::clone(&worker).find_departed().map(Ok).boxed());
        }
        if let Some(period) = resync {
            workers.push(Arc::clone(&worker).resync(period).map(Ok).boxed());
        }
        PreparedController {
            name,
            everywhere,
            concurrency,
            workers,
            events,
            kind: kind.describe(),
            queue,
        }
    }
}

/// Enqueues the requests that a stream yields until the queue is closed.
async fn enqueue_triggers<K: Watchable>(
    mut requests: BoxStream<'static, Request<K>>,
    kind: Kind<K>,
    queue: Arc<Workqueue<Key>>,
) {
    let enqueue_all = async {
        while let Some(request) = requests.next().await {
            request.to_key_request(&kind).enqueue(&queue, NORMAL);
        }
        // The controller outlives the stream.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = enqueue_all => {}
        () = queue.closed() => {}
    }
}

impl<K: Watchable, S: Send + Sync + 'static> Worker<K, S> {
    /// Enqueues objects of the controller's own kind when they change, and records deleted ones for `on_deleted`.
    fn watch_primary(&self, filter: Option<Predicate<K>>) {
        let (queue, deleted) = (Arc::clone(&self.queue), Arc::clone(&self.deleted));
        let departures = Arc::clone(&self.departures);
        let records_deletions = self.handlers.on_deleted.is_some();
        self.cache.subscribe(Box::new(move |event| {
            // Whatever the predicate says: it is about reconciles.
            let may_have_left = departures.note(event);
            let (key, priority, is_deleted) = match event {
                CacheEvent::Change(change) if !may_have_left && !passes_filter(filter.as_ref(), change) => {
                    return;
                }
                CacheEvent::Change(Change::Applied { new, initial, .. }) => {
                    (Key::of(&**new), priority_of(*initial), false)
                }
                CacheEvent::Change(Change::Deleted(old)) => (Key::of(&**old), NORMAL, true),
                CacheEvent::Undecodable { new, initial, .. } => {
                    (Key::of_meta(new.object.metadata()), priority_of(*initial), false)
                }
                CacheEvent::UndecodableDeleted(old) => (Key::of_meta(old.object.metadata()), NORMAL, true),
            };
            if records_deletions {
                let mut deleted = deleted.lock().unwrap_or_else(PoisonError::into_inner);
                if is_deleted {
                    deleted.insert(key.clone());
                } else {
                    deleted.remove(&key);
                }
            }
            queue.add(key, priority);
        }));
    }

    /// Enqueues every object at low priority after each period.
    async fn resync(self: Arc<Self>, period: Duration) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(add_jitter(period)) => {}
                () = self.queue.closed() => return,
            }
            for key in self.cache.keys() {
                self.queue.add(key, LOW);
            }
        }
    }
}

/// Returns the period plus a random part of up to a tenth of it.
fn add_jitter(period: Duration) -> Duration {
    scale(period, 1.0 + random_share() / 10.0)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use tokio::time::Instant;

    use super::*;
    use crate::trigger;

    #[tokio::test(start_paused = true)]
    async fn a_trigger_has_a_priority_and_a_delay() {
        let queue = Arc::new(Workqueue::new(Metrics::new().queue("test")));
        let (trigger, triggers) = trigger::channel::<ConfigMap>();
        let minute = Duration::from_secs(60);
        trigger.send(ObjectRef::new("plain")).await;
        for request in [
            Request::new(ObjectRef::new("low")).low_priority(),
            Request::new(ObjectRef::new("high")).priority(10),
            Request::new(ObjectRef::new("later")).after(minute),
        ] {
            assert!(trigger.try_send(request));
        }
        let enqueuing = tokio::spawn(enqueue_triggers(
            triggers.boxed(),
            Kind::of_type(),
            Arc::clone(&queue),
        ));
        let started = Instant::now();
        tokio::task::yield_now().await;
        for (expected, waited) in [
            ("high", Duration::ZERO),
            ("plain", Duration::ZERO),
            ("low", Duration::ZERO),
            ("later", minute),
        ] {
            let key = queue.next().await.unwrap();
            assert_eq!(
                (&*key.name, started.elapsed().as_secs()),
                (expected, waited.as_secs())
            );
            queue.done(&key);
        }
        queue.close();
        enqueuing.await.unwrap();
    }
}

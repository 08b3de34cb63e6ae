//! Watches of additional kinds, and the mapping from their events to the objects to reconcile.

use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kube::api::DynamicObject;
use kube::core::{ObjectMeta, PartialObjectMeta};
use kube::runtime::reflector::ObjectRef;

use crate::cache::{Cache, CacheEvent, Change, HandlerId, Selection, UndecodableEntry};
use crate::ctx::{Ctx, GroupKind, WatchTarget};
use crate::error::Error;
use crate::object::{DynamicKind, Key, Kind, Object, Watchable};
use crate::predicate::Predicate;
use crate::queue::{LOW, NORMAL, Priority, Workqueue};

/// A watch of a kind, with a selection, a predicate and a mapping from its objects to the objects to reconcile.
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
    filter: Option<Predicate<W>>,
    map: M,
}

/// Maps an object to its owner; see [`Watch::owned`].
#[derive(Clone, Copy, Debug)]
pub struct ByOwner {
    any: bool,
}

/// Maps an object to the objects that a function returns; see [`Watch::mapped`].
#[derive(Clone, Copy, Debug)]
pub struct ByMap<K, S, F> {
    map: F,
    types: PhantomData<fn(K, S)>,
}

impl<W: Object> Watch<W, ByOwner> {
    /// Watches objects of type `W` and reconciles their owners.
    ///
    /// Whole objects are cached, for [`Ctx::cached`](crate::Ctx::cached). With
    /// [`PartialObjectMeta<W>`](PartialObjectMeta) only their metadata is watched and cached, as
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
    /// `map` is called with the object before and after an update, and with a deleted object. It must not block: it
    /// delays all events of the kind.
    pub fn mapped(map: F) -> Self {
        let types = PhantomData;
        Self::new(Kind::of_type(), ByMap { map, types })
    }
}

impl<K: Watchable, S, F> Watch<DynamicObject, ByMap<K, S, F>>
where
    F: Fn(&DynamicObject, &Ctx<S>) -> Vec<ObjectRef<K>> + Send + Sync + 'static,
{
    /// [`mapped`](Watch::mapped) for a kind known only at run time.
    pub fn mapped_dynamic(kind: &DynamicKind, map: F) -> Self {
        let types = PhantomData;
        Self::new(kind.into(), ByMap { map, types })
    }
}

impl<W: Watchable, M> Watch<W, M> {
    fn new(kind: Kind<W>, map: M) -> Self {
        Self {
            kind,
            selection: Selection::all(),
            filter: None,
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
}

/// A mapping from objects of kind `W` to objects of a controller's kind `K`. Sealed; see [`Watch`].
pub trait Maps<K: Watchable, W: Watchable, S>: MapsLate<W, S> {
    #[doc(hidden)]
    fn keys_of(self, kind: &KindOf<K>) -> Keys<W, S>;
}

/// A [`Maps`] whose target kind is checked at run time, for [`Ctx::watch`](crate::Ctx::watch): the type of a context
/// does not name the controller's kind. Sealed.
pub trait MapsLate<W: Watchable, S>: sealed::Sealed + Send + Sync + Sized + 'static {
    #[doc(hidden)]
    fn keys_for(self, target: &WatchTarget) -> Result<Keys<W, S>, Error>;
}

/// The kind of a controller; public only because a sealed trait names it.
#[doc(hidden)]
pub struct KindOf<K: Watchable>(pub(super) Kind<K>);

/// Returns the keys for an object; public only because a sealed trait names it.
#[doc(hidden)]
pub struct Keys<W, S> {
    of_object: KeysOfObject<W, S>,
    /// Returns the keys for an object of which only the metadata is known; `None` if that is not enough.
    of_metadata: Option<KeysOfMetadata>,
}

type KeysOfObject<W, S> = Box<dyn Fn(&W, &Ctx<S>) -> Vec<Key> + Send + Sync>;
type KeysOfMetadata = Box<dyn Fn(&ObjectMeta) -> Vec<Key> + Send + Sync>;

impl ByOwner {
    fn keys<W: Watchable, S: 'static>(self, kind: GroupKind) -> Keys<W, S> {
        let kind = Arc::new(kind);
        let of_metadata = {
            let kind = Arc::clone(&kind);
            move |meta: &ObjectMeta| self.owner_keys(meta, &kind)
        };
        Keys {
            of_object: Box::new(move |object, _| self.owner_keys(object.meta(), &kind)),
            of_metadata: Some(Box::new(of_metadata)),
        }
    }

    fn owner_keys(self, meta: &ObjectMeta, kind: &GroupKind) -> Vec<Key> {
        let owners = meta.owner_references.iter().flatten();
        let owners = owners.filter(|owner| self.any || owner.controller == Some(true));
        let namespace = meta.namespace.as_deref().filter(|_| kind.namespaced);
        let owners = owners.filter(|owner| kind.matches(owner));
        owners
            .map(|owner| Key {
                namespace: namespace.map(Into::into),
                name: owner.name.as_str().into(),
            })
            .collect()
    }
}

impl<K: Watchable, W: Watchable, S: 'static> Maps<K, W, S> for ByOwner {
    fn keys_of(self, KindOf(kind): &KindOf<K>) -> Keys<W, S> {
        self.keys(GroupKind::of(kind))
    }
}

impl<W: Watchable, S: 'static> MapsLate<W, S> for ByOwner {
    fn keys_for(self, target: &WatchTarget) -> Result<Keys<W, S>, Error> {
        Ok(self.keys(target.group_kind().clone()))
    }
}

impl<K: Watchable, W: Watchable, S: 'static, F> Maps<K, W, S> for ByMap<K, S, F>
where
    F: Fn(&W, &Ctx<S>) -> Vec<ObjectRef<K>> + Send + Sync + 'static,
{
    fn keys_of(self, KindOf(kind): &KindOf<K>) -> Keys<W, S> {
        let kind = kind.clone();
        let of_object = move |object: &W, ctx: &Ctx<S>| {
            let references = (self.map)(object, ctx);
            references
                .iter()
                .map(|reference| kind.key_of(reference))
                .collect()
        };
        Keys {
            of_object: Box::new(of_object),
            of_metadata: None,
        }
    }
}

impl<K: Watchable, W: Watchable, S: 'static, F> MapsLate<W, S> for ByMap<K, S, F>
where
    F: Fn(&W, &Ctx<S>) -> Vec<ObjectRef<K>> + Send + Sync + 'static,
{
    fn keys_for(self, target: &WatchTarget) -> Result<Keys<W, S>, Error> {
        let Some(kind) = target.kind::<K>() else {
            let found = std::any::type_name::<K>();
            let found = found.rsplit("::").next().unwrap_or(found);
            return Err(Error::terminal(format!(
                "the mapping function returns references to `{found}`, but the controller reconciles `{}`",
                target.group_kind().kind
            )));
        };
        Ok(self.keys_of(&KindOf(kind.clone())))
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::ByOwner {}
    impl<K, S, F> Sealed for super::ByMap<K, S, F> {}
}

impl<W: Watchable, M> Watch<W, M> {
    /// Enqueues the keys for each event of the cache from now on.
    pub(super) fn subscribe<K: Watchable, S: Send + Sync + 'static>(
        self,
        kind: &Kind<K>,
        queue: &Arc<Workqueue<Key>>,
        ctx: &Ctx<S>,
    ) where
        M: Maps<K, W, S>,
    {
        let cache = ctx.caches().of(&self.kind, &self.selection);
        let keys = self.map.keys_of(&KindOf(kind.clone()));
        enqueue_changes(&cache, self.filter, keys, Arc::clone(queue), ctx.clone());
    }

    /// [`subscribe`](Self::subscribe) for a controller that is already running.
    pub(crate) fn subscribe_late<S: Send + Sync + 'static>(
        self,
        cache: &Cache<W>,
        target: &WatchTarget,
        ctx: &Ctx<S>,
    ) -> Result<HandlerId, Error>
    where
        M: MapsLate<W, S>,
    {
        let keys = self.map.keys_for(target)?;
        let queue = Arc::clone(target.queue());
        Ok(enqueue_changes(cache, self.filter, keys, queue, ctx.clone()))
    }

    /// Returns the kind and selection that identify the cache to watch.
    pub(crate) fn watched(&self) -> (&Kind<W>, &Selection) {
        (&self.kind, &self.selection)
    }
}

thread_local! {
    static MAPPING: Cell<bool> = const { Cell::new(false) };
}

/// Returns `true` if this thread is running a mapping function, which blocks the cache.
pub(crate) fn is_mapping() -> bool {
    MAPPING.get()
}

fn enqueue_changes<W: Watchable, S: Send + Sync + 'static>(
    cache: &Cache<W>,
    filter: Option<Predicate<W>>,
    keys: Keys<W, S>,
    queue: Arc<Workqueue<Key>>,
    ctx: Ctx<S>,
) -> HandlerId {
    let kind = cache.kind().clone();
    let name = kind.name();
    let Keys {
        of_object,
        of_metadata,
    } = keys;
    let map = move |object: &W, ctx: &Ctx<S>| {
        MAPPING.set(true);
        // A panic would stop the watch for all controllers of this kind.
        let mapped = catch_unwind(AssertUnwindSafe(|| of_object(object, ctx)));
        MAPPING.set(false);
        mapped.unwrap_or_else(|_| {
            tracing::error!(
                controller = ctx.controller(),
                kind = %name,
                object = %Key::of(object),
                "mapping function panicked, nothing enqueued for this event"
            );
            Vec::new()
        })
    };
    let map_metadata = move |entry: &UndecodableEntry| {
        let map = of_metadata.as_ref();
        map.map(|map| map(entry.object.metadata())).unwrap_or_default()
    };
    cache.subscribe(Box::new(move |event| {
        let (mut keys, priority) = match event {
            CacheEvent::Change(change) if !passes_filter(filter.as_ref(), change) => return,
            CacheEvent::Change(Change::Applied { old, new, initial }) => {
                let mut keys = old.as_deref().map(|old| map(old, &ctx)).unwrap_or_default();
                keys.append(&mut map(new, &ctx));
                (keys, priority_of(*initial))
            }
            CacheEvent::Change(Change::Deleted(old)) => (map(old, &ctx), NORMAL),
            CacheEvent::Undecodable { old, new, initial } => {
                ctx.record_undecodable(&kind, new);
                let mut keys = old.as_deref().map(|old| map(old, &ctx)).unwrap_or_default();
                keys.append(&mut map_metadata(new));
                (keys, priority_of(*initial))
            }
            CacheEvent::UndecodableDeleted(old) => (map_metadata(old), NORMAL),
        };
        // Deduplicated here and not in the queue: a worker may take the first copy before the second is added, and
        // would then reconcile the object twice for one event.
        if keys.len() > 1 {
            keys.sort_unstable();
            keys.dedup();
        }
        keys.into_iter().for_each(|key| queue.add(key, priority));
    }))
}

/// Returns the priority of an event: an object that existed at startup has not necessarily changed.
pub(super) fn priority_of(initial: bool) -> Priority {
    if initial { LOW } else { NORMAL }
}

/// Returns `true` if an event passes a predicate, or the predicate panics: an extra reconcile is harmless, a missed one
/// is not.
pub(super) fn passes_filter<K: Watchable>(filter: Option<&Predicate<K>>, change: &Change<K>) -> bool {
    let Some(filter) = filter else {
        return true;
    };
    catch_unwind(AssertUnwindSafe(|| filter.matches(change))).unwrap_or_else(|_| {
        tracing::error!(
            object = %Key::of(&**change.object()),
            "predicate panicked, event not filtered"
        );
        true
    })
}

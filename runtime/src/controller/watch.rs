//! What a controller watches beside its own kind, and which of its objects a change there concerns.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::ObjectRef;

use crate::cache::{Cache, Caches, Change, Selection};
use crate::ctx::Ctx;
use crate::object::{DynamicKind, Key, Kind, Object, Watchable};
use crate::predicate::Predicate;
use crate::queue::{LOW, NORMAL, Priority, Workqueue};

/// A kind that a controller watches, which of its changes count, and which objects they concern.
///
/// [`Controller::owns`](crate::Controller::owns) and [`Controller::watches`](crate::Controller::watches) are the short
/// forms of the common ones; [`Controller::watch`](crate::Controller::watch) takes any.
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

/// The object that owns what changed as its controller.
#[derive(Clone, Copy, Debug)]
pub struct ByOwner {
    any: bool,
}

/// The objects that a function names.
#[derive(Clone, Copy, Debug)]
pub struct ByMap<K, S, F> {
    map: F,
    /// What the function is about.
    about: PhantomData<fn(K, S)>,
}

impl<W: Object> Watch<W, ByOwner> {
    /// Objects of type `W` concern the object that owns them.
    ///
    /// They are kept whole, for [`Ctx::cached`](crate::Ctx::cached). For
    /// [`PartialObjectMeta<W>`](PartialObjectMeta), only their metadata is watched and kept, which is what
    /// [`Controller::owns`](crate::Controller::owns) does.
    pub fn owned() -> Self {
        Self::new(Kind::of_type(), ByOwner { any: false })
    }
}

impl Watch<PartialObjectMeta<DynamicObject>, ByOwner> {
    /// Objects of a kind that is known only now concern the object that owns them. Only their metadata is
    /// watched and kept.
    pub fn owned_dynamic(kind: &DynamicKind) -> Self {
        Self::new(kind.into(), ByOwner { any: false })
    }
}

impl<W: Watchable> Watch<W, ByOwner> {
    /// Every owner counts, also those that are not the object's controller.
    pub fn by_any_owner(mut self) -> Self {
        self.map.any = true;
        self
    }
}

impl<W: Object, K: Watchable, S, F> Watch<W, ByMap<K, S, F>>
where
    F: Fn(&W, &Ctx<S>) -> Vec<ObjectRef<K>> + Send + Sync + 'static,
{
    /// Objects of type `W` concern those that `map` names.
    ///
    /// `map` is called with the object before and after a change, and with what was deleted. It must not block:
    /// all changes of the kind wait for it.
    pub fn mapped(map: F) -> Self {
        let about = PhantomData;
        Self::new(Kind::of_type(), ByMap { map, about })
    }
}

impl<K: Watchable, S, F> Watch<DynamicObject, ByMap<K, S, F>>
where
    F: Fn(&DynamicObject, &Ctx<S>) -> Vec<ObjectRef<K>> + Send + Sync + 'static,
{
    /// [`mapped`](Watch::mapped) for objects of a kind that is known only now.
    pub fn mapped_dynamic(kind: &DynamicKind, map: F) -> Self {
        let about = PhantomData;
        Self::new(kind.into(), ByMap { map, about })
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

    /// Only these changes count; called twice, only those that both want.
    pub fn filter(mut self, wanted: Predicate<W>) -> Self {
        self.filter = Some(match self.filter {
            Some(filter) => filter.and(wanted),
            None => wanted,
        });
        self
    }

    /// Only these objects are watched and kept.
    pub fn selecting(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }
}

/// What makes keys of a controller's own kind `K` of an object of kind `W`.
pub trait Maps<K: Watchable, W: Watchable, S>: sealed::Sealed + Send + Sync + 'static {
    #[doc(hidden)]
    fn references(&self, object: &W, kind: &KindOf<K>, ctx: &Ctx<S>) -> Vec<ObjectRef<K>>;
}

/// The kind of a controller, in a trait that nobody implements.
#[doc(hidden)]
pub struct KindOf<K: Watchable>(pub(super) Kind<K>);

impl<K: Watchable, W: Watchable, S> Maps<K, W, S> for ByOwner {
    fn references(&self, object: &W, KindOf(kind): &KindOf<K>, _ctx: &Ctx<S>) -> Vec<ObjectRef<K>> {
        let owners = object.owner_references().iter();
        let counting = owners.filter(|owner| self.any || owner.controller == Some(true));
        let ours = counting.filter(|owner| {
            // As in the garbage collector, an owner may be named in any version of its group.
            let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
            owner.kind == K::kind(&kind.dynamic) && group == K::group(&kind.dynamic)
        });
        let namespace = object.namespace();
        ours.map(|owner| kind.reference(&kind.key(namespace.as_deref(), &owner.name)))
            .collect()
    }
}

impl<K: Watchable, W: Watchable, S: 'static, F> Maps<K, W, S> for ByMap<K, S, F>
where
    F: Fn(&W, &Ctx<S>) -> Vec<ObjectRef<K>> + Send + Sync + 'static,
{
    fn references(&self, object: &W, _kind: &KindOf<K>, ctx: &Ctx<S>) -> Vec<ObjectRef<K>> {
        (self.map)(object, ctx)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::ByOwner {}
    impl<K, S, F> Sealed for super::ByMap<K, S, F> {}
}

/// Where a watch puts the keys it makes.
pub(super) struct Target<K: Watchable, S> {
    pub(super) kind: Kind<K>,
    pub(super) queue: Arc<Workqueue<Key>>,
    pub(super) ctx: Ctx<S>,
}

impl<W: Watchable, M> Watch<W, M> {
    /// Queues what the changes concern, from now on; the cache it hears them from.
    pub(super) fn subscribe<K: Watchable, S: Send + Sync + 'static>(
        self,
        caches: &Caches,
        target: Target<K, S>,
    ) -> Arc<Cache<W>>
    where
        M: Maps<K, W, S>,
    {
        let Self {
            kind: watched,
            selection,
            filter,
            map,
        } = self;
        let Target { kind, queue, ctx } = target;
        let (kind, name) = (KindOf(kind), watched.name());
        let enqueue = move |object: &W, priority: Priority| {
            // A panic would end the watch, for all controllers that look at this kind.
            match catch_unwind(AssertUnwindSafe(|| map.references(object, &kind, &ctx))) {
                Ok(references) => {
                    for reference in references {
                        queue.add(kind.0.key_of(&reference), priority);
                    }
                }
                Err(_) => tracing::error!(
                    controller = ctx.controller(),
                    kind = %name,
                    object = %Key::of(object),
                    "the mapping of a watched object panicked; nothing is reconciled for this change"
                ),
            }
        };
        let cache = caches.of(&watched, &selection);
        cache.subscribe(Box::new(move |change| {
            if !wanted(filter.as_ref(), change) {
                return;
            }
            match change {
                Change::Applied { old, new, initial } => {
                    let priority = if *initial { LOW } else { NORMAL };
                    if let Some(old) = old {
                        enqueue(old, priority);
                    }
                    enqueue(new, priority);
                }
                Change::Deleted(old) => enqueue(old, NORMAL),
            }
        }));
        cache
    }
}

/// Whether a change passes a filter; it does where the filter cannot say.
pub(super) fn wanted<K: Watchable>(filter: Option<&Predicate<K>>, change: &Change<K>) -> bool {
    let Some(filter) = filter else {
        return true;
    };
    catch_unwind(AssertUnwindSafe(|| filter.wants(change))).unwrap_or_else(|_| {
        tracing::error!(
            object = %Key::of(&**change.object()),
            "a predicate panicked; the change is acted on"
        );
        true
    })
}

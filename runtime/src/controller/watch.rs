//! What a controller watches beside its own kind, and which of its objects a change there concerns.

use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::core::PartialObjectMeta;
use kube::runtime::reflector::ObjectRef;

use crate::cache::{Cache, Change, Selection};
use crate::ctx::Ctx;
use crate::error::Error;
use crate::object::{DynamicKind, Key, Kind, Object, Watchable};
use crate::predicate::Predicate;
use crate::queue::{LOW, NORMAL, Workqueue};

/// A kind that a controller watches, which of its changes count, and which objects they concern.
///
/// [`Controller::owns`](crate::Controller::owns) and [`Controller::watches`](crate::Controller::watches) are the short
/// forms of the common ones; [`Controller::watch`](crate::Controller::watch) takes any, and so does
/// [`Ctx::watch`](crate::Ctx::watch) while the controller runs.
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
pub trait Maps<K: Watchable, W: Watchable, S>: MapsLate<W, S> {
    #[doc(hidden)]
    fn keys_of(self, kind: &KindOf<K>) -> Keys<W, S>;
}

/// What makes keys, of an object of kind `W`, for a controller whose own kind is not written down: what
/// [`Ctx::watch`](crate::Ctx::watch) takes. It is the same as [`Maps`], looked at later.
pub trait MapsLate<W: Watchable, S>: sealed::Sealed + Send + Sync + Sized + 'static {
    #[doc(hidden)]
    fn keys_for(self, reconciled: &Reconciled) -> Result<Keys<W, S>, Error>;
}

/// The kind of a controller, in a trait that nobody implements.
#[doc(hidden)]
pub struct KindOf<K: Watchable>(pub(super) Kind<K>);

/// Makes keys of an object, in a trait that nobody implements.
#[doc(hidden)]
pub struct Keys<W, S>(MakeKeys<W, S>);

type MakeKeys<W, S> = Box<dyn Fn(&W, &Ctx<S>) -> Vec<Key> + Send + Sync>;

impl<W, S> Keys<W, S> {
    fn new(make: impl Fn(&W, &Ctx<S>) -> Vec<Key> + Send + Sync + 'static) -> Self {
        Self(Box::new(make))
    }
}

/// What a controller reconciles, where its type is not known any more.
#[doc(hidden)]
pub struct Reconciled {
    kind: GroupKind,
    /// A `Kind<K>`.
    typed: Box<dyn Any + Send + Sync>,
    queue: Arc<Workqueue<Key>>,
}

impl Reconciled {
    pub(super) fn new<K: Watchable>(kind: &Kind<K>, queue: &Arc<Workqueue<Key>>) -> Self {
        Self {
            kind: GroupKind::of(kind),
            typed: Box::new(kind.clone()),
            queue: Arc::clone(queue),
        }
    }
}

/// What owner references say of a kind, and the scope of its objects.
#[derive(Clone)]
struct GroupKind {
    group: String,
    kind: String,
    namespaced: bool,
}

impl GroupKind {
    fn of<K: Watchable>(kind: &Kind<K>) -> Self {
        Self {
            group: K::group(&kind.dynamic).into_owned(),
            kind: kind.name(),
            namespaced: kind.namespaced,
        }
    }

    /// As in the garbage collector, an owner may be named in any version of its group.
    fn is_named_by(&self, owner: &OwnerReference) -> bool {
        let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        owner.kind == self.kind && group == self.group
    }
}

impl ByOwner {
    fn keys<W: Watchable, S: 'static>(self, kind: GroupKind) -> Keys<W, S> {
        Keys::new(move |object: &W, _| {
            let owners = object.owner_references().iter();
            let counting = owners.filter(|owner| self.any || owner.controller == Some(true));
            let namespace = object.meta().namespace.as_deref().filter(|_| kind.namespaced);
            let ours = counting.filter(|owner| kind.is_named_by(owner));
            ours.map(|owner| Key {
                namespace: namespace.map(Into::into),
                name: owner.name.as_str().into(),
            })
            .collect()
        })
    }
}

impl<K: Watchable, W: Watchable, S: 'static> Maps<K, W, S> for ByOwner {
    fn keys_of(self, KindOf(kind): &KindOf<K>) -> Keys<W, S> {
        self.keys(GroupKind::of(kind))
    }
}

impl<W: Watchable, S: 'static> MapsLate<W, S> for ByOwner {
    fn keys_for(self, reconciled: &Reconciled) -> Result<Keys<W, S>, Error> {
        Ok(self.keys(reconciled.kind.clone()))
    }
}

impl<K: Watchable, W: Watchable, S: 'static, F> Maps<K, W, S> for ByMap<K, S, F>
where
    F: Fn(&W, &Ctx<S>) -> Vec<ObjectRef<K>> + Send + Sync + 'static,
{
    fn keys_of(self, KindOf(kind): &KindOf<K>) -> Keys<W, S> {
        let kind = kind.clone();
        Keys::new(move |object, ctx| {
            let references = (self.map)(object, ctx);
            references
                .iter()
                .map(|reference| kind.key_of(reference))
                .collect()
        })
    }
}

impl<K: Watchable, W: Watchable, S: 'static, F> MapsLate<W, S> for ByMap<K, S, F>
where
    F: Fn(&W, &Ctx<S>) -> Vec<ObjectRef<K>> + Send + Sync + 'static,
{
    fn keys_for(self, reconciled: &Reconciled) -> Result<Keys<W, S>, Error> {
        let Some(kind) = reconciled.typed.downcast_ref::<Kind<K>>() else {
            let named = std::any::type_name::<K>();
            let (named, ours) = (named.rsplit("::").next().unwrap_or(named), &reconciled.kind.kind);
            return Err(Error::terminal(format!(
                "the mapping function returns references to `{named}`, but the controller reconciles `{ours}`"
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
    /// Queues what the changes concern, from now on.
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

    /// [`subscribe`](Self::subscribe) for a controller that runs already; its context knows the rest.
    pub(crate) fn subscribe_late<S: Send + Sync + 'static>(
        self,
        cache: &Cache<W>,
        reconciled: &Reconciled,
        ctx: &Ctx<S>,
    ) -> Result<(), Error>
    where
        M: MapsLate<W, S>,
    {
        let keys = self.map.keys_for(reconciled)?;
        let queue = Arc::clone(&reconciled.queue);
        enqueue_changes(cache, self.filter, keys, queue, ctx.clone());
        Ok(())
    }

    /// Which objects are watched.
    pub(crate) fn watched(&self) -> (&Kind<W>, &Selection) {
        (&self.kind, &self.selection)
    }
}

thread_local! {
    static MAPPING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is in a mapping, for which the caches wait.
pub(crate) fn is_mapping() -> bool {
    MAPPING.get()
}

fn enqueue_changes<W: Watchable, S: Send + Sync + 'static>(
    cache: &Cache<W>,
    filter: Option<Predicate<W>>,
    Keys(keys): Keys<W, S>,
    queue: Arc<Workqueue<Key>>,
    ctx: Ctx<S>,
) {
    let name = cache.kind().name();
    let map = move |object: &W| {
        MAPPING.set(true);
        // A panic would end the watch, for all controllers that look at this kind.
        let mapped = catch_unwind(AssertUnwindSafe(|| keys(object, &ctx)));
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
    cache.subscribe(Box::new(move |change| {
        if !wanted(filter.as_ref(), change) {
            return;
        }
        let (mut keys, priority) = match change {
            Change::Applied { old, new, initial } => {
                let mut keys = old.as_deref().map(&map).unwrap_or_default();
                keys.append(&mut map(new));
                (keys, if *initial { LOW } else { NORMAL })
            }
            Change::Deleted(old) => (map(old), NORMAL),
        };
        // Each key once: a worker that takes the first one at once would otherwise be given it again.
        if keys.len() > 1 {
            keys.sort_unstable();
            keys.dedup();
        }
        keys.into_iter().for_each(|key| queue.add(key, priority));
    }));
}

/// Whether a change passes a filter; it does where the filter cannot say.
pub(super) fn wanted<K: Watchable>(filter: Option<&Predicate<K>>, change: &Change<K>) -> bool {
    let Some(filter) = filter else {
        return true;
    };
    catch_unwind(AssertUnwindSafe(|| filter.wants(change))).unwrap_or_else(|_| {
        tracing::error!(
            object = %Key::of(&**change.object()),
            "predicate panicked, event not filtered"
        );
        true
    })
}

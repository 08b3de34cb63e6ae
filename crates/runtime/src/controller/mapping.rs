//! Maps events of watched kinds to the objects to reconcile.

use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kube::core::ObjectMeta;
use kube::runtime::reflector::ObjectRef;

use crate::cache::{Change, UndecodableEntry};
use crate::ctx::{Ctx, GroupKind, WatchTarget};
use crate::error::Error;
use crate::object::{Key, Kind, Watchable};
use crate::request::{KeyRequest, Request};
use crate::text::panic_message;

/// Maps objects to their owners. See [`Watch::owned`](super::Watch::owned).
#[derive(Clone, Copy, Debug)]
pub struct ByOwner {
    pub(super) any: bool,
}

/// Maps objects with a function. See [`Watch::mapped`](super::Watch::mapped).
#[derive(Clone, Copy, Debug)]
pub struct ByMap<K, S, F> {
    pub(super) map: F,
    pub(super) types: PhantomData<fn(K, S)>,
}

/// Maps objects with a function that can fail. See [`Watch::try_mapped`](super::Watch::try_mapped).
#[derive(Clone, Copy, Debug)]
pub struct ByTryMap<K, S, F> {
    pub(super) map: F,
    pub(super) types: PhantomData<fn(K, S)>,
}

/// Maps changes to requests with a function. See
/// [`Watch::mapped_changes`](super::Watch::mapped_changes).
#[derive(Clone, Copy, Debug)]
pub struct ByChange<K, S, F> {
    pub(super) map: F,
    pub(super) types: PhantomData<fn(K, S)>,
}

/// A mapping from objects of kind `W` to objects of kind `K`, the controller's kind. This trait is
/// sealed, see [`Watch`](super::Watch).
pub trait Maps<K: Watchable, W: Watchable, S>: MapsLate<W, S> {
    #[doc(hidden)]
    fn keys_of(self, kind: &KindOf<K>) -> Keys<W, S>;
}

/// Like [`Maps`], except that the target kind is checked at runtime, because the controller's kind
/// is not part of the type of a context. Used by [`Ctx::watch`](crate::Ctx::watch). This trait is
/// sealed.
pub trait MapsLate<W: Watchable, S>: sealed::Sealed + Send + Sync + Sized + 'static {
    /// Whether the mapping uses owner references, which can't refer to objects in another cluster.
    #[doc(hidden)]
    const BY_OWNER: bool = false;

    #[doc(hidden)]
    fn keys_for(self, target: &WatchTarget) -> Result<Keys<W, S>, Error>;
}

/// A mapping by function, which also works across clusters. This trait is sealed.
pub trait ByFunction: sealed::Sealed {}
impl<K, S, F> ByFunction for ByMap<K, S, F> {}
impl<K, S, F> ByFunction for ByTryMap<K, S, F> {}
impl<K, S, F> ByFunction for ByChange<K, S, F> {}

/// Kind of a controller. Only public because it is used in a sealed trait.
#[doc(hidden)]
pub struct KindOf<K: Watchable>(pub(super) Kind<K>);

/// Computes the requests for an event. Only public because it is used in a sealed trait.
#[doc(hidden)]
pub struct Keys<W, S> {
    of_event: KeysOfEvent<W, S>,
    /// Computes the keys from an object's metadata alone. `None` if the mapping needs the entire
    /// object.
    of_metadata: Option<KeysOfMetadata>,
}

enum KeysOfEvent<W, S> {
    /// Called once for the old object, if any, and once for the new one.
    OfObject(KeysOfObject<W, S>),
    /// Called once with the change.
    OfChange(RequestsOfChange<W, S>),
}

type KeysOfObject<W, S> = Box<dyn Fn(&W, &Ctx<S>) -> Result<Vec<Key>, Error> + Send + Sync>;
type RequestsOfChange<W, S> =
    Box<dyn Fn(&Change<W>, &Ctx<S>) -> Result<Vec<KeyRequest>, Error> + Send + Sync>;
type KeysOfMetadata = Box<dyn Fn(&ObjectMeta) -> Vec<Key> + Send + Sync>;

impl ByOwner {
    fn keys<W: Watchable, S: 'static>(self, kind: GroupKind) -> Keys<W, S> {
        let kind = Arc::new(kind);
        let of_metadata = {
            let kind = Arc::clone(&kind);
            move |meta: &ObjectMeta| self.owner_keys(meta, &kind)
        };
        Keys {
            of_event: KeysOfEvent::OfObject(Box::new(move |object, _| {
                Ok(self.owner_keys(object.meta(), &kind))
            })),
            of_metadata: Some(Box::new(of_metadata)),
        }
    }

    fn owner_keys(self, meta: &ObjectMeta, kind: &GroupKind) -> Vec<Key> {
        let owners = meta.owner_references.iter().flatten();
        let owners = owners.filter(|owner| self.any || owner.controller == Some(true));
        // Owner references don't have a namespace: the owner is in the object's namespace, unless
        // it is cluster-scoped.
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
    const BY_OWNER: bool = true;

    fn keys_for(self, target: &WatchTarget) -> Result<Keys<W, S>, Error> {
        Ok(self.keys(target.group_kind().clone()))
    }
}

impl<K: Watchable, W: Watchable, S: 'static, F> Maps<K, W, S> for ByMap<K, S, F>
where
    F: Fn(&W, &Ctx<S>) -> Vec<ObjectRef<K>> + Send + Sync + 'static,
{
    fn keys_of(self, KindOf(kind): &KindOf<K>) -> Keys<W, S> {
        Keys::of_references(kind, move |object, ctx| Ok((self.map)(object, ctx)))
    }
}

impl<K: Watchable, W: Watchable, S: 'static, F> MapsLate<W, S> for ByMap<K, S, F>
where
    F: Fn(&W, &Ctx<S>) -> Vec<ObjectRef<K>> + Send + Sync + 'static,
{
    fn keys_for(self, target: &WatchTarget) -> Result<Keys<W, S>, Error> {
        Ok(self.keys_of(&target_kind(target)?))
    }
}

impl<K: Watchable, W: Watchable, S: 'static, F> Maps<K, W, S> for ByTryMap<K, S, F>
where
    F: Fn(&W, &Ctx<S>) -> Result<Vec<ObjectRef<K>>, Error> + Send + Sync + 'static,
{
    fn keys_of(self, KindOf(kind): &KindOf<K>) -> Keys<W, S> {
        Keys::of_references(kind, self.map)
    }
}

impl<K: Watchable, W: Watchable, S: 'static, F> MapsLate<W, S> for ByTryMap<K, S, F>
where
    F: Fn(&W, &Ctx<S>) -> Result<Vec<ObjectRef<K>>, Error> + Send + Sync + 'static,
{
    fn keys_for(self, target: &WatchTarget) -> Result<Keys<W, S>, Error> {
        Ok(self.keys_of(&target_kind(target)?))
    }
}

impl<K: Watchable, W: Watchable, S: 'static, F> Maps<K, W, S> for ByChange<K, S, F>
where
    F: Fn(&Change<W>, &Ctx<S>) -> Vec<Request<K>> + Send + Sync + 'static,
{
    fn keys_of(self, KindOf(kind): &KindOf<K>) -> Keys<W, S> {
        let kind = kind.clone();
        let of_change = move |change: &Change<W>, ctx: &Ctx<S>| {
            let requests = (self.map)(change, ctx);
            let requests = requests.iter().map(|request| request.to_key_request(&kind));
            Ok(requests.collect())
        };
        Keys {
            of_event: KeysOfEvent::OfChange(Box::new(of_change)),
            of_metadata: None,
        }
    }
}

impl<K: Watchable, W: Watchable, S: 'static, F> MapsLate<W, S> for ByChange<K, S, F>
where
    F: Fn(&Change<W>, &Ctx<S>) -> Vec<Request<K>> + Send + Sync + 'static,
{
    fn keys_for(self, target: &WatchTarget) -> Result<Keys<W, S>, Error> {
        Ok(self.keys_of(&target_kind(target)?))
    }
}

/// Returns the controller's kind, which must be the `K` that the mapping function returns.
fn target_kind<K: Watchable>(target: &WatchTarget) -> Result<KindOf<K>, Error> {
    let kind = target.kind::<K>().cloned().map(KindOf);
    kind.ok_or_else(|| {
        let found = std::any::type_name::<K>();
        let found = found.rsplit("::").next().unwrap_or(found);
        Error::terminal(format!(
            "the mapping function returns references to `{found}`, but the controller reconciles `{}`",
            target.group_kind().kind
        ))
    })
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::ByOwner {}
    impl<K, S, F> Sealed for super::ByMap<K, S, F> {}
    impl<K, S, F> Sealed for super::ByTryMap<K, S, F> {}
    impl<K, S, F> Sealed for super::ByChange<K, S, F> {}
}

impl<W: Watchable, S: 'static> Keys<W, S> {
    fn of_references<K: Watchable>(
        kind: &Kind<K>,
        map: impl Fn(&W, &Ctx<S>) -> Result<Vec<ObjectRef<K>>, Error> + Send + Sync + 'static,
    ) -> Self {
        let kind = kind.clone();
        let of_object = move |object: &W, ctx: &Ctx<S>| {
            let references = map(object, ctx)?;
            let keys = references.iter().map(|reference| kind.key_of(reference));
            Ok(keys.collect())
        };
        Self {
            of_event: KeysOfEvent::OfObject(Box::new(of_object)),
            of_metadata: None,
        }
    }
}

impl<W: Watchable, S> Keys<W, S> {
    /// Returns no requests if the mapping function fails or panics.
    pub(super) fn of_change(&self, change: &Change<W>, kind: &Kind<W>, ctx: &Ctx<S>) -> Vec<KeyRequest> {
        let of_object = match &self.of_event {
            KeysOfEvent::OfChange(map) => {
                return contain_failure(|| map(change, ctx), &**change.object(), kind, ctx);
            }
            KeysOfEvent::OfObject(map) => map,
        };
        let map = |object: &W| contain_failure(|| of_object(object, ctx), object, kind, ctx);
        // If the object was owned by a different object before, that owner must be reconciled as
        // well.
        let mut keys = match change {
            Change::Applied { old: Some(old), .. } => map(old),
            _ => Vec::new(),
        };
        keys.append(&mut map(change.object()));
        keys.into_iter().map(KeyRequest::from).collect()
    }

    pub(super) fn of_metadata(&self, entry: &UndecodableEntry) -> Vec<KeyRequest> {
        let keys = self.of_metadata.as_ref().map(|map| map(entry.object.metadata()));
        keys.into_iter().flatten().map(KeyRequest::from).collect()
    }
}

/// Calls a mapping function. Panics are caught, since they would end the watch for all controllers
/// that use this kind.
fn contain_failure<W: Watchable, S, T>(
    map: impl FnOnce() -> Result<Vec<T>, Error>,
    object: &W,
    kind: &Kind<W>,
    ctx: &Ctx<S>,
) -> Vec<T> {
    let note = |error: &str| ctx.mapping_errors().note(&kind.name(), &Key::of(object), error);
    NOTED.set(None);
    match call_back(MAPPING, map) {
        Ok(Ok(mapped)) => {
            // The function has ignored the error, which would make it a watch that does nothing.
            if let Some(error) = NOTED.take() {
                note(&error);
            }
            mapped
        }
        Ok(Err(error)) => {
            note(&format!("{error:#}"));
            Vec::new()
        }
        Err(panic) => {
            note(&format!("panicked: {}", panic_message(&*panic)));
            Vec::new()
        }
    }
}

const MAPPING: &str = "mapping function";

thread_local! {
    static CALLBACK: Cell<Option<&'static str>> = const { Cell::new(None) };
    /// First error of a cache that the running mapping function has got.
    static NOTED: Cell<Option<String>> = const { Cell::new(None) };
}

/// Calls a user-provided function, described by `what`, and catches panics. The cache is blocked
/// until it returns.
pub(super) fn call_back<T>(what: &'static str, function: impl FnOnce() -> T) -> std::thread::Result<T> {
    CALLBACK.set(Some(what));
    let result = catch_unwind(AssertUnwindSafe(function));
    CALLBACK.set(None);
    result
}

pub(super) fn running_callback() -> Option<&'static str> {
    CALLBACK.get()
}

/// Remembers an error about a missing cache or index, in case a mapping function ignores it.
pub(crate) fn note_in_callback(error: &Error) {
    if running_callback() == Some(MAPPING) {
        NOTED.set(NOTED.take().or_else(|| Some(error.to_string())));
    }
}

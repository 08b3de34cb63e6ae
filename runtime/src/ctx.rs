//! What a reconciler works with: its own state, the cluster, and the usual deeds on it.

mod create;

use std::borrow::Borrow;
use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::DynamicObject;
use kube::api::{Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::core::object::HasStatus;
use kube::runtime::events::{Event, EventType, Reporter};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde_json::json;

use crate::cache::{Cached, Caches, Index, Selection, Trim};
use crate::error::{Error, OwnershipError};
use crate::events::{self, EventSender};
use crate::object::{DynamicKind, Key, Kind, Object, Scope, Watchable, describe, to_apply};

/// A controller's context: handed to each reconcile, cheap to clone.
///
/// It dereferences to the state `S` given to [`Controller::new`](crate::Controller::new), so that a state's
/// fields read as `ctx.image`.
pub struct Ctx<S> {
    shared: Arc<Shared>,
    state: Arc<S>,
}

struct Shared {
    client: Client,
    /// The controller's name: field manager of what it applies, reporter of its events.
    controller: String,
    events: EventSender,
    caches: Caches,
}

impl<S> Clone for Ctx<S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            state: Arc::clone(&self.state),
        }
    }
}

impl<S> Deref for Ctx<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.state
    }
}

impl<S: Debug> Debug for Ctx<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ctx")
            .field("controller", &self.shared.controller)
            .field("state", &self.state)
            .finish()
    }
}

impl<S> Ctx<S> {
    /// A context as a controller of this name would have it, for calling a reconciler from a test.
    ///
    /// # Panics
    /// Outside a tokio runtime, on which the events it records are sent.
    pub fn new(client: Client, controller: impl Into<String>, state: S) -> Self {
        let controller = controller.into();
        let (sender, publisher) = events::channel(
            client.clone(),
            Reporter::from(controller.as_str()),
            std::future::pending(),
        );
        tokio::spawn(publisher);
        // Nobody runs the watches of these caches: they hold what `caching` puts there.
        let (caches, _) = Caches::new(client.clone(), Vec::new(), Trim::default());
        Self::in_manager(client, controller, state, sender, caches)
    }

    /// Puts objects into the cache of their kind, as if they had been watched; for a context made with
    /// [`new`](Self::new).
    pub fn caching<K: Object>(self, objects: impl IntoIterator<Item = K>) -> Self {
        let cache = self.shared.caches.of::<K>(&Kind::of_type(), &Selection::all());
        objects.into_iter().for_each(|object| cache.put(object));
        self
    }

    /// Adds an index to the cache of kind `K`, as [`Controller::index`](crate::Controller::index) does; for a context
    /// made with [`new`](Self::new).
    pub fn indexing<K: Object>(
        self,
        name: impl Into<String>,
        values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        let cache = self.shared.caches.of::<K>(&Kind::of_type(), &Selection::all());
        cache.add_index(Index::new(name.into(), values));
        self
    }

    pub(crate) fn in_manager(
        client: Client,
        controller: String,
        state: S,
        events: EventSender,
        caches: Caches,
    ) -> Self {
        let shared = Shared {
            client,
            controller,
            events,
            caches,
        };
        Self {
            shared: Arc::new(shared),
            state: Arc::new(state),
        }
    }

    /// The client, for everything this type has no method for.
    pub fn client(&self) -> Client {
        self.shared.client.clone()
    }

    /// The controller's name: `.named(…)`, or the kind in lower case.
    pub fn controller(&self) -> &str {
        &self.shared.controller
    }

    /// The objects of kind `K` that the manager watches, read without a request.
    ///
    /// There is a cache for each controller's own kind, for each kind watched whole, and for those that
    /// [`Controller::reads`](crate::Controller::reads) or [`Controller::index`](crate::Controller::index) name. The
    /// kinds that a controller [owns](crate::Controller::owns) are kept as metadata:
    /// `ctx.cached::<PartialObjectMeta<Deployment>>()`. To ask the API server itself, use [`api`](Self::api).
    ///
    /// # Errors
    /// When the manager has no such cache; trying again does not help.
    pub fn cached<K: Object>(&self) -> Result<Cached<K>, Error> {
        self.cached_selection(&Selection::all())
    }

    /// [`cached`](Self::cached) for what was watched with a selection.
    ///
    /// # Errors
    /// When the manager has no cache of this kind with this very selection.
    pub fn cached_selection<K: Object>(&self, selection: &Selection) -> Result<Cached<K>, Error> {
        self.find_cache(Kind::of_type(), selection, "")
    }

    /// [`cached`](Self::cached) for a kind that is known only when the program runs.
    ///
    /// # Errors
    /// When the manager has no cache of this kind.
    pub fn cached_dynamic(&self, kind: &DynamicKind) -> Result<Cached<DynamicObject>, Error> {
        self.find_cache(kind.into(), &Selection::all(), "_dynamic")
    }

    fn find_cache<K: Watchable>(
        &self,
        kind: Kind<K>,
        selection: &Selection,
        form: &str,
    ) -> Result<Cached<K>, Error> {
        let found = self.shared.caches.find(&kind, selection).map(Cached::new);
        found.ok_or_else(|| {
            let (name, described) = (kind.name(), kind.describe());
            let advice = match form {
                "" => format!("`.reads::<{name}>()`"),
                _ => "a watch of it".to_owned(),
            };
            Error::terminal(format!(
                "nothing caches {described}: add {advice} to the controller, or ask the API server with `ctx.api`"
            ))
        })
    }

    /// The API of kind `K` in the namespace of `beside`; for a cluster-wide kind, its only API. Every call of it
    /// is a request to the API server; what is watched anyway is cheaper to read with [`cached`](Self::cached).
    ///
    /// Beside a cluster-wide object, a namespaced kind's API spans all namespaces.
    pub fn api<K: Object>(&self, beside: &impl Resource) -> Api<K> {
        <K::Scope as Scope>::api(self.client(), beside.meta().namespace.as_deref())
    }

    /// Makes the cluster's object say what `object` says, creating it if need be, and returns the result.
    ///
    /// This is a server-side apply: fields that `object` leaves out stay as they are, unless an earlier apply
    /// of this controller set them; then they are removed. The field manager is the controller's name, and
    /// it takes fields over from others (`force`).
    ///
    /// # Errors
    /// What the API server answers, as [`kube::Error`].
    pub async fn apply<K: Object + Serialize>(&self, object: K) -> Result<K, Error> {
        let api = <K::Scope as Scope>::api::<K>(self.client(), object.meta().namespace.as_deref());
        Ok(self.send_apply(&api, &object).await?)
    }

    /// [`apply`](Self::apply) for an object that `owner` owns as its controller.
    ///
    /// The object gets the owner's namespace if it names none, and an owner reference with `controller` and
    /// `blockOwnerDeletion`: changes to it reconcile the owner (see [`owns`](crate::Controller::owns)), and
    /// the cluster deletes it with the owner. An object that has no controller yet is adopted; where it must not
    /// be, [`create_owned`](Self::create_owned) comes first.
    ///
    /// # Errors
    /// [`OwnershipError`] when another controller owns the object already, or scopes forbid the ownership;
    /// else what the API server answers, as [`kube::Error`].
    pub async fn apply_owned<O: Object, C: Object + Serialize>(
        &self,
        owner: &O,
        child: C,
    ) -> Result<C, Error> {
        let mut child = owned_by(owner, child)?;
        let api = <C::Scope as Scope>::api::<C>(self.client(), child.meta().namespace.as_deref());
        if !self.is_known_to_be_owned(owner, &child)
            && let Some(present) = api.get_metadata_opt(&child.name_any()).await?
        {
            if let Some(other) = foreign_controller(owner, &present.metadata) {
                let owner = format!("{} {}", other.kind, other.name);
                return Err(OwnershipError::AlreadyOwned {
                    object: describe(&child),
                    owner,
                }
                .into());
            }
            // Should another controller adopt it in this moment, the server answers with a conflict.
            child.meta_mut().resource_version = present.metadata.resource_version;
        }
        Ok(self.send_apply(&api, &child).await?)
    }

    /// Whether the cache shows `child` with `owner` as its controller.
    ///
    /// The server is no help here: when two owners have one controller, they share a field manager, and an
    /// apply for the second one silently takes the reference to the first one away.
    fn is_known_to_be_owned<O: Object, C: Object>(&self, owner: &O, child: &C) -> bool {
        let (key, all) = (Key::of(child), Selection::all());
        let caches = &self.shared.caches;
        let metadata = caches.find::<PartialObjectMeta<C>>(&Kind::of_type(), &all);
        let metadata = metadata.and_then(|cache| Some(cache.get(&key)?.metadata.clone()));
        let present = metadata.or_else(|| {
            let whole = caches.find::<C>(&Kind::of_type(), &all)?.get(&key)?;
            Some(whole.meta().clone())
        });
        present.is_some_and(|present| is_controlled_by(&present, owner))
    }

    /// Makes the object's status say what `status` says, and returns the object as it is then.
    ///
    /// A server-side apply of the status subresource: fields that `status` leaves out, and an earlier call
    /// set, are removed. Where `object` has this very status already, nothing is sent and a copy of `object`
    /// is returned.
    ///
    /// # Errors
    /// What the API server answers, as [`kube::Error`].
    pub async fn apply_status<K>(&self, object: &K, status: impl Borrow<K::Status>) -> Result<K, Error>
    where
        K: Object + HasStatus<Status: Serialize>,
    {
        let wanted = serde_json::to_value(status.borrow())?;
        let present = object.status().map(serde_json::to_value).transpose()?;
        if present.as_ref() == Some(&wanted) {
            return Ok(object.clone());
        }
        let body = json!({
            "apiVersion": K::api_version(&()),
            "kind": K::kind(&()),
            "metadata": { "name": object.name_any(), "namespace": object.namespace() },
            "status": wanted,
        });
        let api = self.api::<K>(object);
        Ok(api
            .patch_status(&object.name_any(), &self.apply_params(), &Patch::Apply(body))
            .await?)
    }

    /// Records an event of type `Normal` about `object`.
    ///
    /// `reason` and `action` are single CamelCase words: why, and what was done. The event is sent in the
    /// background; a reconcile neither waits for it nor fails with it. The controller's role needs `create`
    /// and `patch` of `events` in the group `events.k8s.io`.
    pub fn normal<K: Object>(&self, object: &K, reason: &str, action: &str, note: impl Into<String>) {
        self.event(
            object,
            simple_event(EventType::Normal, reason, action, note.into()),
        );
    }

    /// Records an event of type `Warning` about `object`; see [`normal`](Self::normal).
    pub fn warning<K: Object>(&self, object: &K, reason: &str, action: &str, note: impl Into<String>) {
        self.event(
            object,
            simple_event(EventType::Warning, reason, action, note.into()),
        );
    }

    /// Records any event about `object`; see [`normal`](Self::normal).
    pub fn event<K: Object>(&self, object: &K, event: Event) {
        self.shared.events.send(event, object.object_ref(&()));
    }

    async fn send_apply<K: Object + Serialize>(&self, api: &Api<K>, object: &K) -> Result<K, kube::Error> {
        let body = to_apply(object).map_err(kube::Error::SerdeError)?;
        api.patch(&object.name_any(), &self.apply_params(), &Patch::Apply(body))
            .await
    }

    fn apply_params(&self) -> PatchParams {
        PatchParams::apply(&self.shared.controller).force()
    }
}

fn simple_event(type_: EventType, reason: &str, action: &str, note: String) -> Event {
    Event {
        type_,
        reason: reason.to_owned(),
        action: action.to_owned(),
        note: Some(note),
        secondary: None,
    }
}

/// `child` with the namespace and the controller reference that make it `owner`'s.
fn owned_by<O: Object, C: Object>(owner: &O, mut child: C) -> Result<C, OwnershipError> {
    if C::Scope::NAMESPACED && child.meta().namespace.is_none() {
        child.meta_mut().namespace = owner.namespace();
    }
    if O::Scope::NAMESPACED && child.meta().namespace != owner.meta().namespace {
        return Err(OwnershipError::Scope {
            object: describe(&child),
            owner: describe(owner),
        });
    }
    let reference = owner
        .controller_owner_ref(&())
        .ok_or_else(|| OwnershipError::NoUid(describe(owner)))?;
    if let Some(other) = foreign_controller(owner, child.meta()) {
        let owner = format!("{} {}", other.kind, other.name);
        return Err(OwnershipError::AlreadyOwned {
            object: describe(&child),
            owner,
        });
    }
    let references = child.owner_references_mut();
    references.retain(|present| present.uid != reference.uid);
    references.push(OwnerReference {
        block_owner_deletion: Some(true),
        ..reference
    });
    Ok(child)
}

/// Whether `owner` is the controller among the owners.
fn is_controlled_by<O: Object>(owned: &kube::core::ObjectMeta, owner: &O) -> bool {
    let mut references = owned.owner_references.iter().flatten();
    references.any(|held| held.controller == Some(true) && Some(&held.uid) == owner.meta().uid.as_ref())
}

/// The controller among the owners, unless it is `owner`.
fn foreign_controller<O: Object>(owner: &O, owned: &kube::core::ObjectMeta) -> Option<OwnerReference> {
    let references = owned.owner_references.iter().flatten();
    let mut controllers = references.filter(|reference| reference.controller == Some(true));
    controllers
        .find(|reference| Some(&reference.uid) != owner.meta().uid.as_ref())
        .cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace};

    fn config_map(namespace: Option<&str>, uid: Option<&str>) -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.name = Some("owner".to_owned());
        object.metadata.namespace = namespace.map(str::to_owned);
        object.metadata.uid = uid.map(str::to_owned);
        object
    }

    fn deployment(namespace: Option<&str>) -> Deployment {
        let mut object = Deployment::default();
        object.metadata.name = Some("child".to_owned());
        object.metadata.namespace = namespace.map(str::to_owned);
        object
    }

    #[test]
    fn an_owned_object_gets_the_namespace_and_one_controller_reference() {
        let owner = config_map(Some("a"), Some("1"));
        let once = owned_by(&owner, deployment(None)).unwrap();
        let twice = owned_by(&owner, once).unwrap();
        assert_eq!(twice.metadata.namespace.as_deref(), Some("a"));
        let expected = OwnerReference {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            name: "owner".to_owned(),
            uid: "1".to_owned(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        };
        assert_eq!(twice.metadata.owner_references, Some(vec![expected]));
    }

    #[tokio::test]
    async fn a_context_for_tests_has_the_caches_and_indexes_it_was_given() {
        let nowhere = kube::Config::new("http://127.0.0.1:9".parse().unwrap());
        let client = Client::try_from(nowhere).unwrap();
        let ctx = Ctx::new(client, "test", ())
            .caching([config_map(Some("a"), None), config_map(Some("b"), None)])
            .indexing("place", |map: &ConfigMap| {
                map.metadata.namespace.clone().into_iter().collect()
            });
        let found = ctx.cached::<ConfigMap>().unwrap().by("place", "b").unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].metadata.namespace.as_deref(), Some("b"));
    }

    #[test]
    fn impossible_ownerships_are_refused_with_both_names() {
        let check = |result: Result<String, OwnershipError>, expected: &str| {
            assert_eq!(result.unwrap_err().to_string(), expected);
        };
        let named = |result: Result<Deployment, OwnershipError>| result.map(|child| describe(&child));
        check(
            named(owned_by(&config_map(Some("a"), Some("1")), deployment(Some("b")))),
            "ConfigMap a/owner cannot own Deployment b/child: \
             an owner is cluster-wide or in the same namespace as what it owns",
        );
        check(
            owned_by(&config_map(Some("a"), Some("1")), Namespace::default()).map(|child| describe(&child)),
            "ConfigMap a/owner cannot own Namespace : \
             an owner is cluster-wide or in the same namespace as what it owns",
        );
        check(
            named(owned_by(&config_map(Some("a"), None), deployment(None))),
            "ConfigMap a/owner has no uid, so it cannot own anything: take the object that the API server returned",
        );
        let taken = owned_by(&config_map(Some("a"), Some("2")), deployment(None)).unwrap();
        check(
            named(owned_by(&config_map(Some("a"), Some("1")), taken)),
            "Deployment a/child is already owned by ConfigMap owner; it was left untouched",
        );
    }
}

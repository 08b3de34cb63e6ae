//! What a reconciler works with: its own state, the cluster, and the usual deeds on it.

mod create;
mod create_or_update;
mod ownership;
mod watch;

use std::borrow::Borrow;
use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;

use kube::api::DynamicObject;
use kube::api::{Patch, PatchParams};
use kube::core::Status;
use kube::core::object::HasStatus;
use kube::runtime::events::{Event, EventType, Reporter};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde_json::json;

use crate::cache::{Cached, Caches, Index, Selection, Trim};
use crate::controller::Reconciled;
use crate::error::Error;
use crate::events::{self, EventSender};
use crate::metrics::Metrics;
use crate::object::{DynamicKind, Kind, Object, Scope, Watchable, to_apply};

pub use create_or_update::Written;
pub use ownership::set_controller_reference;
use watch::LateWatches;
pub use watch::Watching;

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
    /// What watches that are added later reconcile; nothing in a test.
    reconciled: Option<Reconciled>,
    /// The watches that were added later.
    late: LateWatches,
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
            Metrics::new().events_dropped(&controller),
            std::future::pending(),
        );
        tokio::spawn(publisher);
        // Nobody runs the watches of these caches: they hold what `caching` puts there.
        let (caches, _) = Caches::new(client.clone(), Vec::new(), Trim::default());
        Self::in_manager(client, controller, state, sender, caches, None)
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
        reconciled: Option<Reconciled>,
    ) -> Self {
        let shared = Shared {
            client,
            controller,
            events,
            caches,
            reconciled,
            late: LateWatches::default(),
        };
        Self {
            shared: Arc::new(shared),
            state: Arc::new(state),
        }
    }

    pub(crate) fn caches(&self) -> &Caches {
        &self.shared.caches
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
                _ => "a watch of this kind".to_owned(),
            };
            Error::terminal(format!(
                "no cache for {described}: add {advice} to the controller, or query the API server with `ctx.api`"
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
        let (name, params, body) = (object.name_any(), self.apply_params(), Patch::Apply(body));
        Ok(self.written(api.patch_status(&name, &params, &body)).await?)
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
        let (name, params, body) = (object.name_any(), self.apply_params(), Patch::Apply(body));
        self.written(api.patch(&name, &params, &body)).await
    }

    /// Sends a request that writes an object, and lets readers of the caches see what came of it.
    pub(crate) async fn written<K: Object>(
        &self,
        request: impl Future<Output = Result<K, kube::Error>>,
    ) -> Result<K, kube::Error> {
        let writing = self.shared.caches.begin_write::<K>();
        let mut object = request.await?;
        writing.end(&mut object);
        Ok(object)
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

/// What the server answered, as the conflict that it comes from: it goes away when the reconcile is tried again.
fn as_conflict(status: &Status) -> kube::Error {
    let conflict = Status::failure(&status.message, "Conflict").with_code(409);
    kube::Error::Api(conflict.boxed())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    /// Before a manager has started, there is no context to read with; one that has no manager reads nothing.
    #[tokio::test]
    async fn a_context_without_a_manager_reads_nothing() {
        let nowhere = kube::Config::new("http://127.0.0.1:9".parse().unwrap());
        let ctx = Ctx::new(Client::try_from(nowhere).unwrap(), "test", ());
        let error = ctx.cached::<ConfigMap>().unwrap_err();
        assert!(error.is_terminal());
        assert!(
            error.to_string().starts_with("no cache for ConfigMap (v1)"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn a_context_for_tests_has_the_caches_and_indexes_it_was_given() {
        let nowhere = kube::Config::new("http://127.0.0.1:9".parse().unwrap());
        let client = Client::try_from(nowhere).unwrap();
        let config_map = |namespace: &str| {
            let mut map = ConfigMap::default();
            map.metadata.namespace = Some(namespace.to_owned());
            map
        };
        let ctx = Ctx::new(client, "test", ())
            .caching([config_map("a"), config_map("b")])
            .indexing("place", |map: &ConfigMap| {
                map.metadata.namespace.clone().into_iter().collect()
            });
        let found = ctx.cached::<ConfigMap>().unwrap().by("place", "b").unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].metadata.namespace.as_deref(), Some("b"));
    }
}

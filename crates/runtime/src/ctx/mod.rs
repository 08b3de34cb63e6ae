//! Context for reconcile functions. It provides the shared state, a client, and common operations.

mod adoption;
mod applied;
mod apply_set;
mod bound;
mod create;
mod create_or_update;
mod delete;
mod dynamic;
mod in_cluster;
mod ownership;
mod patch;
mod similar;
mod watch_target;

use std::borrow::Borrow;
use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;

use kube::api::{Patch, PatchParams};
use kube::core::{ObjectMeta, Status};
use kube::runtime::events::{Event, EventType, Reporter};
use kube::{Api, Client, ResourceExt};
use serde::Serialize;
use serde_json::{Value, json};

use crate::cache::{
    Cache, CacheOptions, Cached, Caches, Index, Selection, ToJson, UndecodableEntry, to_json,
};
use crate::cluster::Cluster;
use crate::controller::{MappingErrors, note_in_callback};
use crate::error::{Error, FieldManagerConflict, OwnershipError};
use crate::events::{EventSender, new_event, new_event_channel};
use crate::kinds::Kinds;
use crate::metrics::Metrics;
use crate::object::{
    AnyObject, Key, Kind, Object, Scope, Watchable, WithStatus, describe_object, event_reference,
    to_apply_body,
};
use crate::shards::Division;

use applied::{AppliedObjects, BodyHash, Keeps};
pub use apply_set::{AppliedSet, ApplySet};
pub(crate) use bound::to_test_conflict;
pub use create_or_update::Written;
pub(crate) use in_cluster::ClusterLinks;
use in_cluster::OtherCluster;
pub use ownership::{set_controller_reference, set_owner_reference};
pub use watch_target::ActiveWatch;
pub(crate) use watch_target::{GroupKind, LateWatch, LateWatches, LateWatchesById, WatchTarget};

/// Context for reconcile functions. It provides the shared state, a client, and common operations,
/// and is cheap to clone.
///
/// `Ctx` dereferences to the state passed to [`Controller::new`](crate::Controller::new). For
/// example, `ctx.image` accesses a field of the state.
pub struct Ctx<S> {
    shared: Arc<Shared>,
    state: Arc<S>,
    /// Whether applies take ownership of fields from other managers.
    forces: bool,
    /// Sets that were applied in this reconcile. `None` outside of a reconcile of a controller.
    applied_sets: Option<Arc<apply_set::AppliedSets>>,
}

struct Shared {
    client: Client,
    /// Also used as the field manager, and as the reporter of events.
    controller: String,
    /// Former names of the controller, see [`Controller::renamed_from`](crate::Controller::renamed_from).
    former_names: Vec<String>,
    events: EventSender,
    caches: Caches,
    kinds: Kinds,
    /// Kind and queue of the controller, for watches added at runtime. `None` in tests.
    watch_target: Option<Arc<WatchTarget>>,
    late_watches: LateWatches,
    applied: AppliedObjects,
    searches: apply_set::Searches,
    applied_sets: apply_set::AppliedSetsPool,
    /// `None` if the controller isn't sharded.
    division: Option<Division>,
    links: ClusterLinks,
    mapping_errors: MappingErrors,
    /// `None` in the manager's own cluster.
    other_cluster: Option<OtherCluster>,
}

pub(crate) struct ContextParts {
    pub(crate) client: Client,
    pub(crate) controller: String,
    pub(crate) former_names: Vec<String>,
    pub(crate) events: EventSender,
    pub(crate) caches: Caches,
    pub(crate) kinds: Kinds,
    /// Needed for watches that are added at runtime. `None` in tests.
    pub(crate) watch_target: Option<WatchTarget>,
    /// `None` if the controller isn't sharded.
    pub(crate) division: Option<Division>,
    pub(crate) links: ClusterLinks,
    pub(crate) mapping_errors: MappingErrors,
}

impl<S> Clone for Ctx<S> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            state: Arc::clone(&self.state),
            forces: self.forces,
            applied_sets: self.applied_sets.clone(),
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
    /// Creates a context without a manager, for calling a reconcile function from a test.
    ///
    /// # Panics
    ///
    /// Panics if called from outside of a tokio runtime, because events are sent by a task.
    pub fn new(client: Client, controller: impl Into<String>, state: S) -> Self {
        let controller = controller.into();
        let metrics = Metrics::new();
        let (sender, waiting) = new_event_channel(metrics.events_dropped(&controller));
        let mapping_errors = MappingErrors::new(&controller, metrics.mapping_errors(&controller));
        let reporter = Reporter::from(controller.as_str());
        tokio::spawn(waiting.publish(client.clone(), reporter, std::future::pending()));
        // The watches of these caches are never started. The caches only contain what `caching`
        // adds.
        let (caches, _) = Caches::new(client.clone(), Vec::new(), CacheOptions::default());
        let links = ClusterLinks::of_test();
        let kinds = Kinds::default();
        let parts = ContextParts {
            client,
            controller,
            former_names: Vec::new(),
            events: sender,
            caches,
            kinds,
            watch_target: None,
            division: None,
            links,
            mapping_errors,
        };
        Self::from_parts(parts, state)
    }

    /// Adds objects to the cache of their kind, as if a watch had delivered them. Only use this for
    /// contexts created with [`new`](Self::new).
    pub fn caching<K: Object>(self, objects: impl IntoIterator<Item = K>) -> Self {
        let cache = self.shared.caches.of::<K>(&Kind::of_type(), &Selection::all());
        cache.assume_synced();
        objects.into_iter().for_each(|object| cache.put(object));
        self
    }

    /// Adds an index to the cache of kind `K`, see [`Controller::index`](crate::Controller::index).
    /// Only use this for contexts created with [`new`](Self::new).
    pub fn indexing<K: Object>(
        self,
        name: impl Into<String>,
        values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        let cache = self.shared.caches.of::<K>(&Kind::of_type(), &Selection::all());
        cache.assume_synced();
        cache.add_index(Index::new(name.into(), values));
        self
    }

    pub(crate) fn from_parts(parts: ContextParts, state: S) -> Self {
        let ContextParts {
            client,
            controller,
            former_names,
            events,
            caches,
            kinds,
            watch_target,
            division,
            links,
            mapping_errors,
        } = parts;
        let applied = AppliedObjects::new(caches.options().applied_bytes);
        let shared = Shared {
            client,
            controller,
            former_names,
            events,
            caches,
            kinds,
            watch_target: watch_target.map(Arc::new),
            late_watches: LateWatches::default(),
            applied,
            searches: apply_set::Searches::default(),
            applied_sets: apply_set::AppliedSetsPool::default(),
            division,
            links,
            mapping_errors,
            other_cluster: None,
        };
        Self {
            shared: Arc::new(shared),
            state: Arc::new(state),
            forces: true,
            applied_sets: None,
        }
    }

    /// Returns the context for one reconcile.
    pub(crate) fn for_reconcile(&self) -> Self {
        Self {
            applied_sets: Some(self.shared.applied_sets.take()),
            ..self.clone()
        }
    }

    pub(crate) fn mapping_errors(&self) -> &MappingErrors {
        &self.shared.mapping_errors
    }

    pub(crate) fn caches(&self) -> &Caches {
        &self.shared.caches
    }

    pub(crate) fn division(&self) -> Option<Division> {
        self.shared.division
    }

    fn own<O: AnyObject, C: AnyObject>(
        &self,
        owner: &O,
        child: &mut C,
        kind: &Kind<C>,
    ) -> Result<(), OwnershipError> {
        ownership::own(owner, child, kind)?;
        self.label_owned(owner.meta().uid.as_deref().unwrap_or_default(), child.meta_mut());
        Ok(())
    }

    /// Labels an object with the shard of its owner, if the controller is configured to.
    fn label_owned(&self, owner: &str, meta: &mut ObjectMeta) {
        if let Some(division) = self.division() {
            division.label(owner, meta);
        }
    }

    pub(crate) fn watch_target(&self) -> Option<&WatchTarget> {
        self.shared.watch_target.as_deref()
    }

    pub(crate) fn late_watches(&self) -> &LateWatches {
        &self.shared.late_watches
    }

    /// Returns the client, for operations that `Ctx` has no method for.
    ///
    /// With `--leader-elect`, all writes with this client fail once the process has lost its lease,
    /// since the next leader may already be active. The same goes for the methods of this context.
    /// Reads are not affected, nor are controllers that run [on every
    /// replica](crate::Controller::on_every_replica).
    pub fn client(&self) -> Client {
        self.shared.client.clone()
    }

    /// Returns the current time. In a simulation, this is the simulated time, so runs are
    /// reproducible and months can pass instantly.
    pub fn now(&self) -> k8s_openapi::jiff::Timestamp {
        crate::clock::now()
    }

    /// Returns a random number. In a simulation, it is determined by the history, so runs are
    /// reproducible. Do not use it for secrets.
    pub fn random(&self) -> u64 {
        crate::random::random_u64()
    }

    /// Returns the controller's name, as set with `.named(…)`. Defaults to the kind in lower case.
    pub fn controller(&self) -> &str {
        &self.shared.controller
    }

    /// Returns the cache of kind `K`. Reading from it does not send requests to the API server.
    ///
    /// There are caches for the kinds of all controllers, for kinds of which they watch whole
    /// objects, and for kinds requested with [`Controller::reads`](crate::Controller::reads) or
    /// [`Controller::index`](crate::Controller::index). Kinds that a controller
    /// [owns](crate::Controller::owns) are different, because only their metadata is cached. Use
    /// `ctx.cached::<PartialObjectMeta<Deployment>>()` for those. To read from the API server
    /// instead, use [`api`](Self::api).
    ///
    /// # Errors
    ///
    /// Returns a terminal error if the manager doesn't have such a cache. In [another
    /// cluster](Self::in_cluster), returns an error until the cache has synced.
    pub fn cached<K: Object>(&self) -> Result<Cached<K>, Error> {
        self.cached_selection(&Selection::all())
    }

    /// Returns the cache of a watch that has a selection. See [`cached`](Self::cached).
    ///
    /// # Errors
    ///
    /// Returns a terminal error if the manager does not have a cache for this kind with the same
    /// selection.
    pub fn cached_selection<K: Object>(&self, selection: &Selection) -> Result<Cached<K>, Error> {
        self.find_cache(Kind::of_type(), selection, "")
    }

    /// Returns a cache with the objects of all replicas, if the operator is
    /// [sharded](crate::Manager::sharded). Otherwise, this is the same as [`cached`](Self::cached).
    ///
    /// Every replica has all objects of kinds that are requested with
    /// [`Controller::reads`](crate::Controller::reads) or
    /// [`Controller::index`](crate::Controller::index), or [watched](crate::Controller::watches)
    /// with a mapping function. Of all other kinds, a replica only has its own share, which you can
    /// read with `cached`.
    ///
    /// # Errors
    ///
    /// Returns a terminal error if the manager doesn't have such a cache.
    pub fn cached_everywhere<K: Object>(&self) -> Result<Cached<K>, Error> {
        let kind = Kind::of_type();
        let advice = format!("`.reads::<{}>()`", kind.name());
        self.find_cache_everywhere(kind, &advice)
    }

    fn find_cache_everywhere<K: Watchable>(&self, kind: Kind<K>, advice: &str) -> Result<Cached<K>, Error> {
        let found = self.shared.caches.find_whole(&kind, &Selection::all());
        if found.is_none() && self.shared.caches.find(&kind, &Selection::all()).is_some() {
            let described = kind.describe();
            return Err(Error::terminal(format!(
                "no cache for {described} of all replicas: this replica has its share only; add {advice} to the controller"
            )));
        }
        let form = kind.to_dynamic().map_or("", |_| "_dynamic");
        self.check_cache(found, &kind, form)
    }

    fn find_cache<K: Watchable>(
        &self,
        kind: Kind<K>,
        selection: &Selection,
        form: &str,
    ) -> Result<Cached<K>, Error> {
        self.check_cache(self.shared.caches.find(&kind, selection), &kind, form)
    }

    fn check_cache<K: Watchable>(
        &self,
        found: Option<Arc<Cache<K>>>,
        kind: &Kind<K>,
        form: &str,
    ) -> Result<Cached<K>, Error> {
        if let (Some(cache), Some(cluster)) = (&found, self.cluster()) {
            check_synced(cache, cluster)?;
        }
        let missing = || {
            let (name, described) = (kind.name(), kind.describe());
            if let Some(cluster) = self.cluster() {
                return Error::terminal(format!(
                    "no cache for {described} in the cluster `{}`: call `cached` of the `Cluster` once at the start, or \
                     query the API server with `api` of this context",
                    cluster.name(),
                ));
            }
            let advice = match form {
                "" => format!("`.reads::<{name}>()`"),
                _ => "a watch of this kind".to_owned(),
            };
            Error::terminal(format!(
                "no cache for {described}: add {advice} to the controller, or query the API server with `ctx.api`"
            ))
        };
        found
            .map(Cached::new)
            .ok_or_else(missing)
            .inspect_err(note_in_callback)
    }

    /// Returns an [`Api`] for kind `K` in the namespace of `object`. The namespace is ignored if
    /// `K` is cluster-scoped.
    ///
    /// If `object` is cluster-scoped but `K` is namespaced, the API covers all namespaces. Every
    /// call is a request to the API server, so for a kind that's watched anyway,
    /// [`cached`](Self::cached) is cheaper.
    pub fn api<K: Object>(&self, object: &impl Watchable) -> Api<K> {
        <K::Scope as Scope>::api(self.client(), object.meta().namespace.as_deref())
    }

    /// Creates or updates an object using server-side apply, and returns the result.
    ///
    /// Fields that are not part of `object` keep their values, unless they were set by an earlier
    /// apply of this controller; those are removed. The field manager is the controller's name. In
    /// case of a conflict with another manager, the apply takes ownership of the field (`force`).
    /// Use [`without_force`](Self::without_force) to prevent that.
    ///
    /// Be aware that the fields of a typed object are always sent unless they're an `Option`. For
    /// example, the `spec` of a Deployment is not optional in k8s-openapi's types for recent
    /// versions of Kubernetes. If you just want to set a label on such an object, use
    /// [`patch`](Self::patch) or a [`DynamicObject`](kube::api::DynamicObject).
    ///
    /// No request is made if this process has sent the same apply before, and a cache shows that the
    /// object hasn't changed since, so a no-op resync is free. It returns the result of the earlier
    /// apply, without `managedFields`. The values of Secrets aren't remembered, only a keyed hash of
    /// them: the result contains the values of `object`. A Secret that also has values of others is
    /// always sent unless whole Secrets are [cached](Self::cached).
    ///
    /// # Errors
    ///
    /// - [`FieldManagerConflict`] if the context is [`without_force`](Self::without_force) and some
    ///   fields are owned by another manager.
    /// - A conflict if `object` has a UID, and was replaced by another object.
    /// - Otherwise, the response of the API server as a [`kube::Error`].
    pub async fn apply<K: AnyObject + Serialize>(&self, object: K) -> Result<K, Error> {
        let kind = self.placed_kind_of(&object).await?;
        let applied = self.send_apply_if_needed(&kind, &object).await;
        applied.map_err(|error| to_bound_apply_error(&object, error))
    }

    /// Returns a context whose applies do not take ownership of fields from other managers. This
    /// affects [`apply`](Self::apply), [`apply_owned`](Self::apply_owned) and
    /// [`apply_status`](Self::apply_status), and corresponds to an apply without `ForceOwnership`
    /// in controller-runtime.
    ///
    /// If an apply would change a field owned by another manager, it fails with a
    /// [`FieldManagerConflict`] that lists those fields and managers. When returned from a
    /// reconcile, it's logged as an error and retried with backoff. If two managers set a field to
    /// the same value, they share it, and there's no conflict.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use rbuilder::{Ctx, FieldManagerConflict, Result};
    /// # async fn share(ctx: Ctx<()>, settings: ConfigMap) -> Result<()> {
    /// if let Err(error) = ctx.without_force().apply(settings).await {
    ///     match error.downcast_ref::<FieldManagerConflict>() {
    ///         Some(conflict) => println!("left to others: {:?}", conflict.fields),
    ///         None => return Err(error),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "the context itself still forces its applies"]
    pub fn without_force(&self) -> Self {
        Self {
            forces: false,
            ..self.clone()
        }
    }

    /// Updates an object's status using server-side apply, and returns the result.
    ///
    /// Fields that were set by an earlier call but aren't part of `status` are removed. If the
    /// object already has this status, no request is made and a copy of `object` is returned. If
    /// `object` has a UID (which is always the case if it comes from a cache), another object
    /// created in its place is not modified.
    ///
    /// # Errors
    ///
    /// - A conflict if the object was replaced by another one.
    /// - [`FieldManagerConflict`] if the context is [`without_force`](Self::without_force) and some
    ///   fields are owned by another manager.
    /// - Otherwise, the response of the API server as a [`kube::Error`].
    pub async fn apply_status<K: WithStatus>(
        &self,
        object: &K,
        status: impl Borrow<K::Status>,
    ) -> Result<K, Error> {
        let wanted = serde_json::to_value(status.borrow())?;
        let present = object.status_json()?;
        if present.as_ref() == Some(&wanted) {
            return Ok(object.clone());
        }
        let kind = self.placed_kind_of(object).await?;
        let body = json!({
            "apiVersion": K::api_version(&kind.dynamic),
            "kind": K::kind(&kind.dynamic),
            "metadata": { "name": object.name_any(), "namespace": object.namespace() },
            "status": wanted,
        });
        self.send_bound_status(&kind, object, &self.apply_params(), &Patch::Apply(body))
            .await
    }

    /// Records an event of type `Normal` about `object`.
    ///
    /// Both `reason` and `action` should be a single CamelCase word: why the action was taken, and
    /// what it was. Events are sent in the background, so reconciles neither wait for them nor fail
    /// if they cannot be sent. The controller's role needs the verbs `create` and `patch` for
    /// `events` in the group `events.k8s.io`.
    ///
    /// As in client-go, there is a limit of 25 events per object, plus one every five minutes.
    /// Events above the limit are dropped, and counted in the metric
    /// `rbuilder_events_dropped_total`.
    pub fn normal<K: AnyObject>(&self, object: &K, reason: &str, action: &str, note: impl Into<String>) {
        self.event(object, new_event(EventType::Normal, reason, action, note.into()));
    }

    /// Records an event of type `Warning` about `object`. See [`normal`](Self::normal) for the
    /// parameters.
    pub fn warning<K: AnyObject>(&self, object: &K, reason: &str, action: &str, note: impl Into<String>) {
        self.event(object, new_event(EventType::Warning, reason, action, note.into()));
    }

    /// Records an arbitrary event about `object`. See [`normal`](Self::normal) for the limit.
    pub fn event<K: AnyObject>(&self, object: &K, event: Event) {
        self.shared.events.send(event, event_reference(object));
    }

    /// Records an event about an undecodable object, unless another controller already did.
    pub(crate) fn record_undecodable<K: Watchable>(&self, kind: &Kind<K>, entry: &UndecodableEntry) {
        if entry.claim_event() {
            let note = format!(
                "cannot be decoded as {}, not reconciled: {}",
                kind.describe(),
                entry.object
            );
            let event = new_event(EventType::Warning, "Undecodable", "Decode", note);
            let reference = kind.object_reference(entry.object.metadata());
            self.shared.events.send(event, reference);
        }
    }

    async fn send_apply<K: AnyObject + Serialize>(
        &self,
        kind: &Kind<K>,
        object: &K,
    ) -> Result<K, kube::Error> {
        let (body, hash) = self.prepare_apply(kind, object)?;
        self.send_apply_body(kind, object, body, hash).await
    }

    /// No-op if an identical apply was sent before, and the object hasn't changed since.
    async fn send_apply_if_needed<K: AnyObject + Serialize>(
        &self,
        kind: &Kind<K>,
        object: &K,
    ) -> Result<K, kube::Error> {
        let (body, hash) = self.prepare_apply(kind, object)?;
        match self.find_applied(kind, &Key::of(object), &body, hash) {
            Some(applied) => Ok(applied),
            None => self.send_apply_body(kind, object, body, hash).await,
        }
    }

    fn prepare_apply<K: AnyObject + Serialize>(
        &self,
        kind: &Kind<K>,
        object: &K,
    ) -> Result<(Value, BodyHash), kube::Error> {
        let mut body = to_apply_body(object, kind).map_err(kube::Error::SerdeError)?;
        let hash = self.shared.applied.hash(&mut body);
        Ok((body, hash))
    }

    async fn send_apply_body<K: AnyObject + Serialize>(
        &self,
        kind: &Kind<K>,
        object: &K,
        body: Value,
        hash: BodyHash,
    ) -> Result<K, kube::Error> {
        let (api, name, patch) = (self.api_of(kind, object), object.name_any(), Patch::Apply(body));
        let mut applied = self
            .send_write(kind, to_json, api.patch(&name, &self.apply_params(), &patch))
            .await?;
        let keeps = match self.shared.caches.keeps_whole(kind, applied.meta()) {
            // A cached object need not be stored twice.
            true => Keeps::Nothing,
            false if kind.is_confidential() => Keeps::WithoutValues,
            false => Keeps::Whole,
        };
        self.shared.applied.remember(kind, hash, &mut applied, keeps);
        Ok(applied)
    }

    fn find_applied<K: AnyObject>(
        &self,
        kind: &Kind<K>,
        key: &Key,
        body: &Value,
        hash: BodyHash,
    ) -> Option<K> {
        let (caches, applied) = (&self.shared.caches, &self.shared.applied);
        let version = applied.version_of(kind, key, hash)?;
        if !caches.shows_version(kind, key, &version) {
            return None;
        }
        // Prefer a cached object, since it doesn't have to be decoded.
        let whole = caches.get_version(kind, key, &version);
        whole.map_or_else(
            || applied.object_of(kind, key, body),
            |whole| Some(Arc::unwrap_or_clone(whole)),
        )
    }

    /// Sends a write, and makes the result visible to readers of the caches. `to_json` is for
    /// caches with a different Rust type.
    pub(crate) async fn send_write<K: Watchable>(
        &self,
        kind: &Kind<K>,
        to_json: ToJson<K>,
        request: impl Future<Output = Result<K, kube::Error>>,
    ) -> Result<K, kube::Error> {
        // Record the state of the caches before sending the request, to detect whether a watch has
        // overtaken the response.
        let pending = self.shared.caches.begin_write(kind, to_json);
        let answer = request.await;
        let mut object = answer.inspect_err(|error| self.forget_if_missing(kind, error))?;
        pending.finish(&mut object);
        Ok(object)
    }

    fn apply_params(&self) -> PatchParams {
        PatchParams {
            force: self.forces,
            ..PatchParams::apply(&self.shared.controller)
        }
    }
}

/// Only used for additional clusters; the manager already waits for its own cluster's caches at
/// startup.
fn check_synced<K: Watchable>(cache: &Cache<K>, cluster: &Cluster) -> Result<(), Error> {
    if cache.is_synced() {
        return Ok(());
    }
    let (kind, name) = (cache.kind().describe(), cluster.name());
    let reason = match cluster.check() {
        Ok(()) => format!("last error: {}", cache.last_error()),
        Err(error) => error.to_string(),
    };
    Err(Error::new(format!(
        "the cache of {kind} in the cluster `{name}` is not synced yet: {reason}"
    )))
}

fn to_apply_error<K: AnyObject>(object: &K, error: kube::Error) -> Error {
    match &error {
        kube::Error::Api(status) => {
            let conflict = FieldManagerConflict::find(describe_object(object), status);
            conflict.map_or_else(|| error.into(), Error::from)
        }
        _ => error.into(),
    }
}

/// Like [`to_apply_error`], but for an apply that contains the object's UID: a conflict if the
/// object was replaced by another one.
fn to_bound_apply_error<K: AnyObject>(object: &K, error: kube::Error) -> Error {
    match error {
        kube::Error::Api(status) if is_uid_mismatch(&status) => to_conflict(&status).into(),
        error => to_apply_error(object, error),
    }
}

fn is_uid_mismatch(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.field == "metadata.uid")
}

/// Turns the error of a lost race into a conflict, which controllers retry without logging an
/// error.
fn to_conflict(status: &Status) -> kube::Error {
    let conflict = Status::failure(&status.message, "Conflict").with_code(409);
    kube::Error::Api(conflict.boxed())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[tokio::test]
    async fn context_without_a_manager_has_no_caches() {
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
    async fn context_for_tests_has_the_caches_and_indexes_added_to_it() {
        let nowhere = kube::Config::new("http://127.0.0.1:9".parse().unwrap());
        let client = Client::try_from(nowhere).unwrap();
        let config_map = |namespace: &str| {
            let mut map = ConfigMap::default();
            map.metadata.namespace = Some(namespace.to_owned());
            map
        };
        let ctx = Ctx::new(client, "test", ())
            .caching([config_map("a"), config_map("b")])
            .indexing("namespace", |map: &ConfigMap| {
                map.metadata.namespace.clone().into_iter().collect()
            });
        let found = ctx.cached::<ConfigMap>().unwrap().by("namespace", "b").unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].metadata.namespace.as_deref(), Some("b"));
    }
}

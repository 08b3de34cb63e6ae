//! Applies an owner's objects as a set, and deletes objects that are no longer part of it.
//!
//! # The record
//!
//! The contents of a set are recorded in an annotation on the owner, whose name ends with the
//! controller's name. Reading the record is free, because a reconciler has its owner at hand, and
//! the record survives restarts and upgrades of the operator.
//!
//! Labels on the objects would be an alternative, but we'd have to list every kind ever used by any
//! version of the operator. Labels would also match copies of an object.
//!
//! Entries consist of a resource, kind, namespace, name and UID. Writes are made in the following
//! order, and it is safe to crash between any two of them:
//!
//! 1. New objects are recorded, without a UID, so that no object is ever created without a record.
//! 2. The objects are applied in order. Other owners' objects are refused, so everything applied
//!    belongs to this owner.
//! 3. Once all objects are applied and ready, recorded objects that are not in the set are deleted
//!    in reverse order.
//! 4. The UIDs are recorded, and deleted entries removed.
//!
//! The first and the last step are merge patches that include the resource version of the owner.
//! They are skipped if nothing has changed.
//! are skipped if nothing has changed.
//!
//! # Who owns an object
//!
//! See [`claim`] for how ownership is determined. Before deleting an object, we read its metadata:
//! its UID must match the record (if recorded), it must have this owner's claim, and it must not
//! have the annotation to keep it. Its UID and resource version are preconditions of the delete
//! request.

mod claim;
mod member;
mod prune;
mod readiness;
mod record;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{Patch, PatchParams};
use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde_json::json;

use super::Ctx;
use crate::action::Action;
use crate::cache::{KnownObject, to_json};
use crate::error::{Error, OwnershipError};
use crate::hash::HashSet;
use crate::object::{AnyObject, Kind, Object, describe_object};

use claim::SetOwner;
use member::{Member, TypedMember};
use prune::is_not_found;
use readiness::CRD;
use record::{Entry, Record};

/// Delay between checks of an object that isn't ready or gone yet.
const WAIT: Duration = Duration::from_secs(5);

/// An owner's objects, in the order in which to apply them. See [`Ctx::apply_set`].
///
/// ```
/// # use k8s_openapi::api::apps::v1::Deployment;
/// # use k8s_openapi::api::core::v1::{ConfigMap, Service};
/// # use rbuilder::ApplySet;
/// # let (settings, database, service) = (ConfigMap::default(), Deployment::default(), Service::default());
/// let set = ApplySet::new()
///     .add(settings)
///     .add_and_wait(database, |database| {
///         let status = database.status.as_ref();
///         status.and_then(|status| status.available_replicas) >= Some(1)
///     })
///     .add(service);
/// ```
#[derive(Default)]
#[must_use = "pass it to `Ctx::apply_set`"]
pub struct ApplySet {
    members: Vec<Box<dyn Member>>,
}

impl ApplySet {
    /// Creates an empty set. Applying it as is deletes all previous contents of the set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an object. If it is namespaced and has no namespace, it gets the owner's namespace.
    ///
    /// The objects after a CustomResourceDefinition or a Namespace have to wait until the CRD is
    /// established or the namespace is active.
    #[expect(
        clippy::should_implement_trait,
        reason = "no sum of a set and an object is meant"
    )]
    pub fn add<K: AnyObject + Serialize>(self, object: K) -> Self {
        self.push(TypedMember::new(object))
    }

    /// Adds an object that the following objects depend on. They're not applied until `is_ready`
    /// returns `true` for the object in the API server's response.
    ///
    /// Waiting doesn't block the reconcile, see [`AppliedSet`].
    pub fn add_and_wait<K: AnyObject + Serialize>(
        self,
        object: K,
        is_ready: impl Fn(&K) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.push(TypedMember::new(object).until(is_ready))
    }

    /// Adds an object that's never deleted, whether it leaves the set or its owner is deleted.
    /// Hence it does not get an owner reference. Use this for data (e.g. PersistentVolumeClaims).
    ///
    /// Such objects are marked with the annotation `rbuilder.dev/keep: "true"`. Users can add it to
    /// any other object of a set as well. Then the object isn't deleted when it leaves the set, and
    /// its owner reference is removed.
    pub fn add_kept<K: AnyObject + Serialize>(self, object: K) -> Self {
        self.push(TypedMember::new(object).kept())
    }

    /// Returns the owner of an object that doesn't have an owner reference, e.g. to watch such
    /// objects. Returns `None` if the object is not part of a set owned by an object of kind `K`.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use k8s_openapi::api::rbac::v1::ClusterRole;
    /// # use rbuilder::{ApplySet, Controller};
    /// # fn watch(controller: Controller<ConfigMap, ()>) -> Controller<ConfigMap, ()> {
    /// controller.watches(|role: &ClusterRole, _| ApplySet::owner_of(role).into_iter().collect())
    /// # }
    /// ```
    pub fn owner_of<K: Object>(object: &impl Resource) -> Option<ObjectRef<K>> {
        claim::find_owner(object.meta())
    }

    fn push(mut self, member: impl Member + 'static) -> Self {
        self.members.push(Box::new(member));
        self
    }
}

impl<K: AnyObject + Serialize> Extend<K> for ApplySet {
    /// [Adds](ApplySet::add) several objects of the same kind.
    fn extend<I: IntoIterator<Item = K>>(&mut self, objects: I) {
        for object in objects {
            self.members.push(Box::new(TypedMember::new(object)));
        }
    }
}

/// Result of [`Ctx::apply_set`].
///
/// A set is complete once all of its objects are applied and ready, and all objects that left the
/// set are gone. Until then, return [`action`](Self::action) from your reconcile function; the next
/// reconcile continues from there.
#[must_use = "the set may not be complete; return `action()`"]
pub struct AppliedSet {
    applied: Vec<(String, Arc<dyn Any + Send + Sync>)>,
    waiting_for: Option<String>,
    leaving: Vec<String>,
}

impl AppliedSet {
    /// Returns `true` if all objects are applied and ready, and there are no leftovers.
    pub fn is_complete(&self) -> bool {
        self.waiting_for.is_none() && self.leaving.is_empty()
    }

    /// Returns a description of the object that's not ready yet, e.g. `Namespace shop`.
    pub fn waiting_for(&self) -> Option<&str> {
        self.waiting_for.as_deref()
    }

    /// Returns descriptions of the objects that left the set but aren't gone yet because of their
    /// finalizers.
    pub fn leaving(&self) -> &[String] {
        &self.leaving
    }

    /// Returns the object of kind `K` with the given name. If there are several (in different
    /// namespaces, or `DynamicObject`s of different kinds), returns the first of them.
    pub fn get<K: AnyObject>(&self, name: &str) -> Option<&K> {
        let mut named = self.applied.iter().filter(|(applied, _)| applied == name);
        named.find_map(|(_, object)| object.downcast_ref())
    }

    /// Returns the action to return from your reconcile function. Requeues after five seconds if
    /// the set is not complete. Changes to objects that the controller
    /// [owns](crate::Controller::owns) trigger an earlier reconcile.
    pub fn action(&self) -> Action {
        match self.is_complete() {
            true => Action::await_change(),
            false => Action::requeue(WAIT),
        }
    }
}

impl<S> Ctx<S> {
    /// Applies the objects of `set` in order, then deletes everything that was created by an
    /// earlier call with the same owner but is no longer part of `set`.
    ///
    /// Objects are applied in the same way as with [`apply`](Self::apply). In particular, no
    /// request is sent for unchanged objects that are in a cache.
    ///
    /// If `owner` is cluster-scoped or in the same namespace, objects get an owner reference as
    /// with [`apply_owned`](Self::apply_owned). Otherwise, they get the annotation
    /// `rbuilder.dev/apply-set-owner`. Since the garbage collector doesn't delete these, your
    /// controller then needs a [`finalizer`](crate::Controller::finalizer) that calls
    /// [`delete_set`](Self::delete_set).
    ///
    /// Existing objects of other owners are neither modified nor adopted. Likewise, an object is
    /// only deleted if it was created by this owner (as determined by the UID), has not been taken
    /// over by another one, and doesn't have the annotation `rbuilder.dev/keep: "true"`. Deletion
    /// starts once all objects of the set are ready, and proceeds in reverse order.
    ///
    /// The contents of the set are recorded in the annotation `rbuilder.dev/apply-set.<controller>`
    /// of the owner. Hence there is a single set per owner and controller, which can have about
    /// 1,500 objects, and the next call can pick up where this one left off after an error or a
    /// restart.
    ///
    /// # Permissions
    ///
    /// The role of the controller needs `get`, `create`, `patch` and `delete` on all kinds of
    /// objects, including kinds that are no longer part of the set. It also needs `patch` on the
    /// owner's kind.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use rbuilder::{ApplySet, Ctx, Result};
    /// # fn settings(owner: &ConfigMap) -> ConfigMap { ConfigMap::default() }
    /// # fn password(owner: &ConfigMap) -> Option<Secret> { None }
    /// async fn reconcile(owner: Arc<ConfigMap>, ctx: Ctx<()>) -> Result {
    ///     let mut set = ApplySet::new().add(settings(&owner));
    ///     set.extend(password(&owner));
    ///     Ok(ctx.apply_set(&*owner, set).await?.action())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// - [`OwnershipError`] if an existing object belongs to another owner, or if the owner is
    ///   being deleted.
    /// - A terminal error if an object is in the set twice, if an object has no namespace, or if a
    ///   finalizer is needed and the owner doesn't have one.
    /// - A conflict if the owner was modified concurrently.
    /// - All errors of [`apply`](Self::apply) and [`delete`](Self::delete).
    pub async fn apply_set<O: AnyObject>(&self, owner: &O, set: ApplySet) -> Result<AppliedSet, Error> {
        self.check_owner_cluster(owner, owner)?;
        if owner.meta().deletion_timestamp.is_some() {
            return Err(Error::new(OwnershipError::OwnerTerminating {
                object: "a set of objects".to_owned(),
                owner: describe_object(owner),
                uid: owner.uid().unwrap_or_default(),
            }));
        }
        let (ctx, kind) = (self.without_state(), self.kind_of(owner).await?);
        let mut state = self.open_set(&kind, owner)?;
        let mut members = set.members;
        let wanted = state.prepare(&ctx, owner, &mut members).await?;
        // Record new objects before they're created, or we'd lose track of them after a crash.
        if let Some(recorded) = state.record.with_missing(&wanted) {
            self.write_record(&kind, owner, &mut state, recorded).await?;
        }

        let mut result = AppliedSet {
            applied: Vec::new(),
            waiting_for: None,
            leaving: Vec::new(),
        };
        let mut recorded = state.record.clone();
        let mut failure = None;
        for (member, entry) in members.iter().zip(&wanted) {
            let applied = match member.apply(&ctx, &state.owner).await {
                Ok(applied) => applied,
                // Once a CRD is established, it takes a moment until the API server serves the new
                // kind.
                Err(error)
                    if error.downcast_ref().is_some_and(is_not_found)
                        && let Some(crd) = find_crd_of(&wanted, entry) =>
                {
                    result.waiting_for = Some(crd.to_string());
                    break;
                }
                Err(error) => return Err(error),
            };
            recorded.set_uid(entry, applied.uid);
            result.applied.push((member.name(), applied.object));
            if !applied.is_ready {
                result.waiting_for = Some(entry.to_string());
                break;
            }
        }
        // Don't delete anything before the whole set is ready, since its objects may replace the
        // old ones.
        if result.waiting_for.is_none() {
            let wanted: HashSet<&Entry> = wanted.iter().collect();
            let mut gone = HashSet::default();
            for (entry, uid) in recorded.not_in(&wanted) {
                match self.prune(&state.owner, &entry, uid).await {
                    Ok(true) => result.leaving.push(entry.to_string()),
                    Ok(false) => drop(gone.insert(entry)),
                    // Continue with the other objects if this one can't be deleted.
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
            recorded.remove(&gone);
        }
        if recorded != state.record {
            self.write_record(&kind, owner, &mut state, recorded).await?;
        }
        match failure {
            Some(error) => Err(error),
            None => Ok(result),
        }
    }

    /// Deletes the objects of an owner's [set](Self::apply_set) that the garbage collector doesn't
    /// delete, i.e. objects without an owner reference.
    ///
    /// Call this from the cleanup function of a [`finalizer`](crate::Controller::finalizer), and
    /// return the [`action`](AppliedSet::action) of the result. The finalizer is then removed once
    /// all objects are gone.
    ///
    /// Objects with an owner reference are left to the garbage collector, which keeps them with
    /// `kubectl delete --cascade=orphan`. Other objects are deleted even then, unless they are
    /// marked to be kept.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`delete`](Self::delete).
    pub async fn delete_set<O: AnyObject>(&self, owner: &O) -> Result<AppliedSet, Error> {
        let state = self.open_set(&self.kind_of(owner).await?, owner)?;
        let mut result = AppliedSet {
            applied: Vec::new(),
            waiting_for: None,
            leaving: Vec::new(),
        };
        for (entry, uid) in state.record.not_in(&HashSet::default()) {
            let is_owned = state.owner.can_own(entry.namespace());
            if !is_owned && self.prune(&state.owner, &entry, uid).await? {
                result.leaving.push(entry.to_string());
            }
        }
        Ok(result)
    }

    fn open_set<O: AnyObject>(&self, kind: &Kind<O>, owner: &O) -> Result<SetState, Error> {
        let set_owner = SetOwner::new(owner, kind, self.controller())?;
        // Prefer the cached owner, which may be more recent than `owner` (e.g. if an earlier
        // reconcile has updated its status).
        let cached = self.shared.caches.look_up(kind, owner.meta());
        let newest = match &cached {
            KnownObject::Found(cached) if cached.uid == owner.meta().uid => &**cached,
            _ => owner.meta(),
        };
        Ok(SetState {
            record: Record::read(newest, &set_owner)?,
            version: newest.resource_version.clone(),
            owner: set_owner,
        })
    }

    async fn write_record<O: AnyObject>(
        &self,
        kind: &Kind<O>,
        owner: &O,
        state: &mut SetState,
        record: Record,
    ) -> Result<(), Error> {
        // Fails if the owner was modified or replaced since the record was read.
        let patch = json!({ "metadata": {
            "uid": state.owner.uid,
            "resourceVersion": state.version,
            "annotations": { &state.owner.record_annotation: record.to_annotation(&state.owner)? },
        }});
        let api = self.api_of(kind, owner);
        let params = PatchParams {
            field_manager: Some(self.controller().to_owned()),
            ..PatchParams::default()
        };
        let (name, patch) = (owner.name_any(), Patch::Merge(patch));
        let written = self
            .send_write(kind, to_json, api.patch(&name, &params, &patch))
            .await;
        let written = written.map_err(|error| super::to_bound_apply_error(owner, error))?;
        state.version = written.resource_version();
        state.record = record;
        Ok(())
    }
}

fn find_crd_of<'a>(wanted: &'a [Entry], object: &Entry) -> Option<&'a Entry> {
    let name = format!("{}.{}", object.plural, object.group);
    wanted
        .iter()
        .find(|entry| entry.kind == CRD && entry.name == name)
}

struct SetState {
    owner: SetOwner,
    record: Record,
    /// Resource version of the owner from which the record was read.
    version: Option<String>,
}

impl SetState {
    async fn prepare<O: AnyObject>(
        &self,
        ctx: &Ctx<()>,
        owner: &O,
        members: &mut [Box<dyn Member>],
    ) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        let mut seen = HashSet::default();
        let mut needs_finalizer = None;
        for member in members {
            let entry = member.prepare(ctx, &self.owner).await?;
            if !member.is_kept() && !self.owner.can_own(entry.namespace()) {
                needs_finalizer.get_or_insert(entry.to_string());
            }
            if !seen.insert(entry.clone()) {
                let message = format!("the set contains {entry} twice");
                return Err(Error::terminal(message));
            }
            entries.push(entry);
        }
        match needs_finalizer {
            Some(object) if owner.finalizers().is_empty() => Err(Error::terminal(format!(
                "{object} cannot have an owner reference to {}, and would stay when that is deleted; add \
                 `.finalizer(…)` with a cleanup that calls `ctx.delete_set` to the controller",
                describe_object(owner)
            ))),
            _ => Ok(entries),
        }
    }
}

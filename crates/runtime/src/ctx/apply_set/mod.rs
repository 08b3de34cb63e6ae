//! Applies the objects of an owner as a set, and deletes what no longer belongs to it.
//!
//! # The record
//! The contents of a set are recorded on the owner, in an annotation that ends with the
//! controller's name. A reconcile has the owner at hand, so reading the record is free, and the
//! record survives restarts and upgrades of the operator. The alternative, a label on the objects,
//! would require listing every kind that any version ever used, and would also select copies that
//! somebody made of the objects, labels included.
//!
//! Each entry has a resource, kind, namespace, name and UID. The order of writes makes it safe to
//! crash between any two:
//!
//! 1. New objects are recorded, without a UID, so that no object is ever created without a record.
//! 2. The objects are applied in order. Other owners' objects are refused, so everything applied
//!    belongs to this owner.
//! 3. Once all have been applied and are ready, recorded objects that are not in the set are
//!    deleted in reverse order.
//! 4. The UIDs are recorded, and deleted entries removed.
//!
//! Steps 1 and 4 are merge patches with the resource version of the owner. They are skipped if
//! nothing changes.
//!
//! # Who owns an object
//! See [`claim`]. Before an object is deleted, its metadata is read. It must have the recorded UID
//! (if any) and the claim of this owner, and must not be marked to be kept. The deletion has its
//! UID and resource version as preconditions.

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

/// Interval between checks of an object that a set waits for.
const WAIT: Duration = Duration::from_secs(5);

/// The objects of an owner, for [`Ctx::apply_set`], in the order in which they are applied.
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
    /// Creates an empty set. Applying it deletes everything that the owner's set contained.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an object. A namespaced one defaults to the owner's namespace.
    ///
    /// If the object is a CustomResourceDefinition, the objects after it are applied once it is
    /// established; if it is a Namespace, once it is active.
    #[expect(
        clippy::should_implement_trait,
        reason = "no sum of a set and an object is meant"
    )]
    pub fn add<K: AnyObject + Serialize>(self, object: K) -> Self {
        self.push(TypedMember::new(object))
    }

    /// Adds an object that later objects depend on. They are applied once `is_ready` returns `true`
    /// for it.
    ///
    /// `is_ready` receives the object as the API server returned it. The reconcile does not block;
    /// see [`AppliedSet`].
    pub fn add_and_wait<K: AnyObject + Serialize>(
        self,
        object: K,
        is_ready: impl Fn(&K) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.push(TypedMember::new(object).until(is_ready))
    }

    /// Adds an object that is never deleted, neither when a later set does not contain it, nor with
    /// its owner. It therefore gets no owner reference. Use it for data, such as a
    /// PersistentVolumeClaim.
    ///
    /// The object gets the annotation `rbuilder.dev/keep: "true"`. If somebody sets it on another
    /// object of a set, that object is not deleted either when it leaves the set, and its owner
    /// reference is removed.
    pub fn add_kept<K: AnyObject + Serialize>(self, object: K) -> Self {
        self.push(TypedMember::new(object).kept())
    }

    /// Returns the owner of an object that has no owner reference, for a watch of such objects.
    /// `None` if the object does not belong to the set of an owner of kind `K`.
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
    /// [Adds](ApplySet::add) objects of one kind.
    fn extend<I: IntoIterator<Item = K>>(&mut self, objects: I) {
        for object in objects {
            self.members.push(Box::new(TypedMember::new(object)));
        }
    }
}

/// The result of [`Ctx::apply_set`].
///
/// The set is complete once all objects are applied and ready, and the objects that it no longer
/// contains are gone. Otherwise the reconcile should return [`action`](Self::action), and will
/// continue next time.
#[must_use = "the set may not be complete; return `action()`"]
pub struct AppliedSet {
    applied: Vec<(String, Arc<dyn Any + Send + Sync>)>,
    waiting_for: Option<String>,
    leaving: Vec<String>,
}

impl AppliedSet {
    /// Returns `true` if all objects are applied and ready, and all others are gone.
    pub fn is_complete(&self) -> bool {
        self.waiting_for.is_none() && self.leaving.is_empty()
    }

    /// Describes the object that is not ready and that later objects wait for, such as `Namespace
    /// shop`.
    pub fn waiting_for(&self) -> Option<&str> {
        self.waiting_for.as_deref()
    }

    /// Describes the objects that have left the set but still exist because of their finalizers.
    pub fn leaving(&self) -> &[String] {
        &self.leaving
    }

    /// Returns the applied object of kind `K` with this name, if there is one. If several match, in
    /// different namespaces or as `DynamicObject`s of different kinds, returns the first.
    pub fn get<K: AnyObject>(&self, name: &str) -> Option<&K> {
        let mut named = self.applied.iter().filter(|(applied, _)| applied == name);
        named.find_map(|(_, object)| object.downcast_ref())
    }

    /// Returns the action for the reconcile: await a change if the set is complete, otherwise
    /// requeue after five seconds. A change to an object that the controller
    /// [owns](crate::Controller::owns) triggers an earlier reconcile.
    pub fn action(&self) -> Action {
        match self.is_complete() {
            true => Action::await_change(),
            false => Action::requeue(WAIT),
        }
    }
}

impl<S> Ctx<S> {
    /// Applies the objects of `set` in order, and deletes what an earlier call for the same owner
    /// has created and this set does not contain.
    ///
    /// Each object is applied as with [`apply`](Self::apply), so an unchanged cached object costs
    /// no request. If `owner` can own the object, because it is cluster-scoped or in the same
    /// namespace, the object gets an owner reference as with [`apply_owned`](Self::apply_owned).
    /// Other objects get the annotation `rbuilder.dev/apply-set-owner`. The garbage collector does
    /// not delete these with their owner, so the controller needs a
    /// [`finalizer`](crate::Controller::finalizer) that calls [`delete_set`](Self::delete_set).
    ///
    /// An existing object that is not the owner's is neither changed nor adopted. An object is only
    /// deleted if this owner created it (according to its UID), nobody else has taken it over, and
    /// it has no annotation `rbuilder.dev/keep: "true"`. Deletion starts once all objects of the
    /// set are ready, with the last object.
    ///
    /// The contents of the set are recorded in the owner's annotation
    /// `rbuilder.dev/apply-set.<controller>`. Each owner and controller therefore has a single set,
    /// of up to about 1,500 objects. After an error or a restart, the next call continues.
    ///
    /// The controller's role needs `get`, `create`, `patch` and `delete` on the kinds of the
    /// objects, including kinds that the set no longer contains, and `patch` on the kind of the
    /// owner.
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
    /// [`OwnershipError`] if an existing object is not the owner's, or if the owner is being
    /// deleted. A terminal error if the set contains an object twice or an object without a
    /// namespace, or if it needs a finalizer that the owner does not have. A conflict if the owner
    /// was changed concurrently. Otherwise the errors of [`apply`](Self::apply) and
    /// [`delete`](Self::delete).
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
                // The API server starts to serve a new kind shortly after its CRD is established.
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
        if result.waiting_for.is_none() {
            let wanted: HashSet<&Entry> = wanted.iter().collect();
            let mut gone = HashSet::default();
            for (entry, uid) in recorded.not_in(&wanted) {
                match self.prune(&state.owner, &entry, uid).await {
                    Ok(true) => result.leaving.push(entry.to_string()),
                    Ok(false) => drop(gone.insert(entry)),
                    // Failing to delete one object does not keep the others.
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

    /// Deletes the objects of the owner's [set](Self::apply_set) that have no owner reference,
    /// because the garbage collector does not delete them with their owner. Call it in the cleanup
    /// of a [`finalizer`](crate::Controller::finalizer), and return its
    /// [`action`](AppliedSet::action), so that the finalizer is removed once they are gone.
    ///
    /// Objects with an owner reference are left to the garbage collector, which releases them with
    /// `kubectl delete --cascade=orphan`. Objects without one are always deleted, unless they are
    /// kept.
    ///
    /// # Errors
    /// Fails like [`delete`](Self::delete).
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

    /// Reads the record from the cached owner, which may be newer than the given one: an earlier
    /// reconcile may have written its status in the meantime.
    fn open_set<O: AnyObject>(&self, kind: &Kind<O>, owner: &O) -> Result<SetState, Error> {
        let set_owner = SetOwner::new(owner, kind, self.controller())?;
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

    /// Writes the record to the annotation of the owner.
    async fn write_record<O: AnyObject>(
        &self,
        kind: &Kind<O>,
        owner: &O,
        state: &mut SetState,
        record: Record,
    ) -> Result<(), Error> {
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

/// Returns the entry of the CRD that defines an object's kind, if the set contains it.
fn find_crd_of<'a>(wanted: &'a [Entry], object: &Entry) -> Option<&'a Entry> {
    let name = format!("{}.{}", object.plural, object.group);
    wanted
        .iter()
        .find(|entry| entry.kind == CRD && entry.name == name)
}

/// An owner and the record of its set.
struct SetState {
    owner: SetOwner,
    record: Record,
    /// The resource version of the owner at which the record was read.
    version: Option<String>,
}

impl SetState {
    /// Completes the members of the set and checks that the set can be applied. Returns the entries
    /// of the members.
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

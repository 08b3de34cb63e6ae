//! Applying the objects of an owner as a set, and deleting what no longer belongs to it.
//!
//! # The record
//! What a set contains is recorded on the owner, in an annotation that ends in the controller's name. A reconcile has the
//! owner at hand, so reading the record costs nothing, and a restart or another version of the operator finds it. A label
//! on the objects would be an alternative, but it takes a list of every kind that any version ever used, and it also selects
//! copies that somebody made with their labels.
//!
//! Each entry has resource, kind, namespace, name and uid. The order of writes makes a crash between any two harmless:
//!
//! 1. New objects are recorded, without a uid. So nothing is ever created that the record does not have.
//! 2. The objects are applied in order. An object of somebody else is refused, so whatever has been applied is the owner's.
//! 3. Once all have been applied and are ready, entries that the set does not contain are deleted, the last one first.
//! 4. The uids are recorded, and deleted entries removed.
//!
//! The first and the last are merge patches with the resource version of the owner. None is sent if nothing changes.
//!
//! # Who owns an object
//! See [`claim`]. Before an object is deleted, its metadata is read: it must have the recorded uid, if there is one, and the
//! claim of this owner, and no mark to be kept. The deletion has its uid and resource version as preconditions.

mod claim;
mod member;
mod prune;
mod readiness;
mod record;

use std::any::Any;
use std::collections::HashSet;
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
use crate::object::{AnyObject, Kind, Object, describe_object};

use claim::SetOwner;
use member::{Member, TypedMember};
use prune::is_not_found;
use readiness::CRD;
use record::{Entry, Record};

/// Delay until the next look at an object that a set waits for.
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
    /// Creates an empty set. Applying it deletes all that the owner's set contained.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an object. A namespaced one defaults to the owner's namespace.
    ///
    /// The objects after a CustomResourceDefinition are applied once it is established, and those after a Namespace once it
    /// is active.
    #[expect(
        clippy::should_implement_trait,
        reason = "no sum of a set and an object is meant"
    )]
    pub fn add<K: AnyObject + Serialize>(self, object: K) -> Self {
        self.push(TypedMember::new(object))
    }

    /// [`add`](Self::add) for an object on which those after it depend: they are applied once `is_ready` returns `true` for
    /// it.
    ///
    /// `is_ready` gets the object as the API server has it. The reconcile does not wait; see [`AppliedSet`].
    pub fn add_and_wait<K: AnyObject + Serialize>(
        self,
        object: K,
        is_ready: impl Fn(&K) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.push(TypedMember::new(object).until(is_ready))
    }

    /// [`add`](Self::add) for an object that is never deleted: neither when a later set does not contain it, nor with its
    /// owner, which is therefore not named in an owner reference. Use it for data, such as a PersistentVolumeClaim.
    ///
    /// The object gets the annotation `rbuilder.dev/keep: "true"`. If somebody sets it on another object of a set, that one
    /// is not deleted either when it leaves the set, and its owner reference is removed.
    pub fn add_kept<K: AnyObject + Serialize>(self, object: K) -> Self {
        self.push(TypedMember::new(object).kept())
    }

    /// Returns the owner of an object that has no owner reference, for a watch of such objects; `None` if it belongs to no
    /// set of an owner of kind `K`.
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
/// It is complete once all objects are applied and ready, and what the set no longer contains is gone. Otherwise the
/// reconcile should return [`action`](Self::action), and continue there next time.
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

    /// Describes the object that is not ready, and for which those after it wait, such as `Namespace shop`.
    pub fn waiting_for(&self) -> Option<&str> {
        self.waiting_for.as_deref()
    }

    /// Describes the objects that have left the set and are not gone yet because finalizers hold them.
    pub fn leaving(&self) -> &[String] {
        &self.leaving
    }

    /// Returns the applied object of kind `K` with this name, if there is one. Of several in different namespaces,
    /// and of `DynamicObject`s of several kinds, it is the first.
    pub fn get<K: AnyObject>(&self, name: &str) -> Option<&K> {
        let mut named = self.applied.iter().filter(|(applied, _)| applied == name);
        named.find_map(|(_, object)| object.downcast_ref())
    }

    /// Returns the result for the reconcile: the next change if the set is complete, and five seconds otherwise. A change
    /// of an object that the controller [owns](crate::Controller::owns) reconciles earlier.
    pub fn action(&self) -> Action {
        match self.is_complete() {
            true => Action::await_change(),
            false => Action::requeue(WAIT),
        }
    }
}

impl<S> Ctx<S> {
    /// Applies the objects of `set`, in order, and deletes what an earlier call for the same owner has created and this set
    /// does not contain.
    ///
    /// Each object is applied as with [`apply`](Self::apply), so an unchanged one that is cached costs no request. It gets
    /// an owner reference, as with [`apply_owned`](Self::apply_owned), if `owner` can have one: if it is cluster-scoped, or
    /// in the same namespace. Other objects get the annotation `rbuilder.dev/apply-set-owner`; since the garbage collector
    /// does not delete them with their owner, the controller needs a [`finalizer`](crate::Controller::finalizer) that calls
    /// [`delete_set`](Self::delete_set).
    ///
    /// An object that exists already and is not the owner's is neither changed nor adopted. Deleted is only what this owner
    /// has created: the very object, by its uid, which nobody else has taken over, and which has no annotation
    /// `rbuilder.dev/keep: "true"`. Deletion begins once all objects of the set are ready, with the last object.
    ///
    /// What the set contains is recorded in the annotation `rbuilder.dev/apply-set.<controller>` of the owner. So there is
    /// one set for each owner and controller, of about 1,500 objects. After an error, or if the process ends, the next call
    /// continues.
    ///
    /// The controller's role needs `get`, `create`, `patch` and `delete` on the kinds of the objects, also of those that
    /// the set no longer contains, and `patch` on the kind of the owner.
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
    /// [`OwnershipError`] when an object exists that is not the owner's, or when the owner is being deleted; a terminal
    /// error when the set contains an object twice, or an object without a namespace, or when it needs a finalizer and the
    /// owner has none; a conflict when the owner was changed at the same time; otherwise those of
    /// [`apply`](Self::apply) and [`delete`](Self::delete).
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
                // The API server serves a new kind a moment after its CRD is established.
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
            let mut gone = HashSet::new();
            for (entry, uid) in recorded.not_in(&wanted) {
                match self.prune(&state.owner, &entry, uid).await {
                    Ok(true) => result.leaving.push(entry.to_string()),
                    Ok(false) => drop(gone.insert(entry)),
                    // One that cannot be deleted does not keep the others.
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

    /// Deletes the objects of the owner's [set](Self::apply_set) that have no owner reference, because the garbage collector
    /// does not delete them with their owner. Call it in the cleanup of a [`finalizer`](crate::Controller::finalizer), and
    /// return its [`action`](AppliedSet::action): the finalizer is removed once they are gone.
    ///
    /// Objects with an owner reference are left to the garbage collector, which releases them with
    /// `kubectl delete --cascade=orphan`; those without one are deleted in any case, except for those that are kept.
    ///
    /// # Errors
    /// Those of [`delete`](Self::delete).
    pub async fn delete_set<O: AnyObject>(&self, owner: &O) -> Result<AppliedSet, Error> {
        let state = self.open_set(&self.kind_of(owner).await?, owner)?;
        let mut result = AppliedSet {
            applied: Vec::new(),
            waiting_for: None,
            leaving: Vec::new(),
        };
        for (entry, uid) in state.record.not_in(&HashSet::new()) {
            let is_owned = state.owner.can_own(entry.namespace());
            if !is_owned && self.prune(&state.owner, &entry, uid).await? {
                result.leaving.push(entry.to_string());
            }
        }
        Ok(result)
    }

    /// Reads the record from the cached owner, which may be newer than the given one: a reconcile may have written its
    /// status before.
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

    /// Writes the record into the annotation of the owner.
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

/// Returns the CRD of an object's kind in a set.
fn find_crd_of<'a>(wanted: &'a [Entry], object: &Entry) -> Option<&'a Entry> {
    let name = format!("{}.{}", object.plural, object.group);
    wanted
        .iter()
        .find(|entry| entry.kind == CRD && entry.name == name)
}

/// An owner with the record of its set.
struct SetState {
    owner: SetOwner,
    record: Record,
    /// The resource version of the owner from which the record was read.
    version: Option<String>,
}

impl SetState {
    /// Completes the members of the set, and checks that it can be applied. Returns their entries.
    async fn prepare<O: AnyObject>(
        &self,
        ctx: &Ctx<()>,
        owner: &O,
        members: &mut [Box<dyn Member>],
    ) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        let mut seen = HashSet::new();
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

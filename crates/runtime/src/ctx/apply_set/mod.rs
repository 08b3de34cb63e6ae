//! Applies an owner's objects as a set, and deletes objects that are no longer part of it.
//!
//! # The record
//!
//! The contents of a set are recorded in an annotation on the owner, whose name ends with the
//! controller's name. Reading the record is free, because a reconciler has its owner at hand, and
//! the record survives restarts and upgrades of the operator.
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
//!
//! The objects also have labels. We only list them if the record was lost, see [`search`]: we'd have
//! to list every kind ever used by any version of the operator.
//!
//! # Who owns an object
//!
//! See [`claim`] for how ownership is determined. Before deleting an object, we read its metadata:
//! its UID must match the record (if recorded), it must have this owner's claim, and it must not
//! have the annotation to keep it. Then we read the owner: it must not have changed since the caller
//! decided what the set contains, and no other controller may have recorded the object (see
//! [`others`]). The UID and the resource version of the object are preconditions of the delete
//! request, so this is still true when the API server processes it.
//!
//! Namespaces and CRDs are special, see [`containers`].

mod applied_sets;
mod claim;
mod containers;
mod member;
mod others;
mod prune;
mod readiness;
mod record;
mod search;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ObjectMeta, Status};
use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Ctx;
use crate::action::Action;
use crate::cache::{KnownObject, to_json};
use crate::error::{Error, OwnershipError};
use crate::hash::HashSet;
use crate::object::{AnyObject, DynamicKind, Kind, Object, describe_object};

pub(super) use applied_sets::{AppliedSets, AppliedSetsPool};
use claim::{Bond, SetOwner, is_kept};
use member::{Member, SetClaim, TypedMember};
use others::OtherSets;
use prune::{Found, is_not_found};
use readiness::CRD;
use record::{Entry, Record, Recorded};
pub(super) use search::Searches;
use search::may_have_lost_record;

/// Delay between checks of an object that isn't ready or gone yet.
const WAIT: Duration = Duration::from_secs(5);
/// When to look again whether a Namespace or a CRD can be deleted. All kinds in the namespace are listed
/// for this.
const LOOK_AGAIN: Duration = Duration::from_secs(600);

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
    deletes_containers: bool,
}

impl ApplySet {
    /// Creates an empty set. Applying it as is deletes all previous contents of the set, except for
    /// Namespaces and CRDs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an object. If it is namespaced and has no namespace, it gets the owner's namespace.
    ///
    /// The objects after a CustomResourceDefinition or a Namespace have to wait until the CRD is
    /// established or the namespace is active. A CRD and objects of its kind can be in the same set,
    /// even if the kind is only known at runtime.
    ///
    /// A Namespace or a CRD is not deleted when it leaves the set or when its owner is deleted, unless
    /// the set says so with [`delete_namespaces_and_crds`](Self::delete_namespaces_and_crds).
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
    /// any other object of a set as well. The next reconcile then replaces the object's owner reference
    /// by the annotation that kept objects have. Once the user has removed the annotation, the next
    /// reconcile of the owner adds the reference again.
    ///
    /// If the owner is created again, i.e. another owner with the same kind, namespace and name
    /// applies the object in a set, the object is taken over.
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
        claim::find_owner(object.meta(), &Kind::of_type())
    }

    /// Like [`owner_of`](Self::owner_of), but for an owner whose kind is only known at runtime.
    pub fn owner_of_dynamic(kind: &DynamicKind, object: &impl Resource) -> Option<ObjectRef<DynamicObject>> {
        claim::find_owner(object.meta(), &kind.into())
    }

    /// Deletes Namespaces and CustomResourceDefinitions when they leave the set, and in
    /// [`Ctx::delete_set`].
    ///
    /// By default, they stay: their deletion also deletes everything in them, no matter who created
    /// it. They are never deleted while an object in them is part of a set of the same owner, is marked
    /// to be kept, or belongs to somebody else (see [`AppliedSet::staying`]). To find out, the role of
    /// the controller needs `list` on all kinds that may be in a namespace, and on the custom kind.
    ///
    /// They don't have owner references, because the garbage collector does not check any of this. So
    /// the controller needs a [`finalizer`](crate::Controller::finalizer) that calls `delete_set`.
    pub fn delete_namespaces_and_crds(mut self) -> Self {
        self.deletes_containers = true;
        self
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
#[derive(Default)]
pub struct AppliedSet {
    applied: Vec<(String, Arc<dyn Any + Send + Sync>)>,
    waiting_for: Option<String>,
    leaving: Vec<String>,
    staying: Vec<String>,
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

    /// Returns descriptions of the objects that left the set but aren't gone yet: finalizers delay
    /// their deletion, or another controller with a set of the same owner has to see the change of the
    /// owner first.
    pub fn leaving(&self) -> &[String] {
        &self.leaving
    }

    /// Returns descriptions of the Namespaces and CRDs that left the set but stay because of what is in
    /// them, with the reason. See [`ApplySet::delete_namespaces_and_crds`].
    pub fn staying(&self) -> &[String] {
        &self.staying
    }

    /// Returns the object of kind `K` with the given name. If there are several (in different
    /// namespaces, or `DynamicObject`s of different kinds), returns the first of them.
    pub fn get<K: AnyObject>(&self, name: &str) -> Option<&K> {
        let mut named = self.applied.iter().filter(|(applied, _)| applied == name);
        named.find_map(|(_, object)| object.downcast_ref())
    }

    /// Returns the action to return from your reconcile function. Requeues after five seconds if
    /// the set is not complete, and after ten minutes if an object [stays](Self::staying). Changes to
    /// objects that the controller [owns](crate::Controller::owns) trigger an earlier reconcile.
    pub fn action(&self) -> Action {
        match (self.is_complete(), self.staying.is_empty()) {
            (true, true) => Action::await_change(),
            (true, false) => Action::requeue(LOOK_AGAIN),
            (false, _) => Action::requeue(WAIT),
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
    /// [`delete_set`](Self::delete_set). Namespaces and CRDs always get the annotation, and are only
    /// deleted [on request](ApplySet::delete_namespaces_and_crds).
    ///
    /// Existing objects of other owners are neither modified nor adopted, except for objects with the
    /// annotation whose owner had the same kind, namespace and name. An object of the set that has lost
    /// its owner reference, e.g. to `kubectl replace`, gets it back. Likewise, an object is only deleted
    /// if it was created by this owner (as determined by the UID), has not been taken over by another
    /// one, and doesn't have the annotation `rbuilder.dev/keep: "true"`. Deletion starts once all objects
    /// of the set are ready, and proceeds in reverse order.
    ///
    /// The contents of the set are recorded in the annotation `rbuilder.dev/apply-set.<controller>`
    /// of the owner, so that the next call can pick up where this one left off after an error or a
    /// restart. Hence there is a single set per owner and controller, which can have about 1,500
    /// objects. A second call in the same reconcile with different objects fails: each call would
    /// delete what the other one has created.
    ///
    /// The objects have a label with the same name. If the annotation is lost, e.g. because the owner
    /// was replaced, the objects are found by this label. The name of the controller is thus part of
    /// what is stored in the cluster: to change it, use
    /// [`renamed_from`](crate::Controller::renamed_from).
    ///
    /// Several controllers may have sets of the same owner. An object can only be in one of them; it can
    /// move to another one in the same change of the owner.
    ///
    /// # Permissions
    ///
    /// The role of the controller needs `get`, `list`, `create`, `patch` and `delete` on all kinds of
    /// objects, including kinds that are no longer part of the set. It also needs `list` and `patch` on
    /// the owner's kind. Without `list` on the kind of an object, that object is not found if the record
    /// is lost.
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
    /// - [`OwnershipError`] if an existing object belongs to another owner or to the set of another
    ///   controller, or if the owner is being deleted.
    /// - A terminal error if an object is in the set twice, if the same reconcile has applied another
    ///   set of the owner, if an object has no namespace, or if a finalizer is needed and the owner
    ///   doesn't have one.
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
        let wanted = state
            .prepare(&ctx, owner, &mut members, set.deletes_containers)
            .await?;
        if let Some(applied_sets) = &self.applied_sets {
            applied_sets.check(&state.owner, &wanted)?;
        }
        if state.is_incomplete {
            state.record.add(self.find_by_labels(&state.owner).await?);
        }
        let in_set: HashSet<&Entry> = wanted.iter().collect();
        // Record new objects before they're created, or we'd lose track of them after a crash.
        let planned = state.plan(&wanted, &in_set, set.deletes_containers);
        if planned != state.record || state.must_write() {
            self.shared.searches.record_change(&state.owner.uid);
            self.write_record(&kind, owner, &mut state, planned).await?;
        }

        let mut result = AppliedSet::default();
        let mut recorded = state.record.clone();
        let mut failure = None;
        for (member, entry) in members.iter().zip(&wanted) {
            state
                .others
                .check_claim(&state.owner, &state.record, entry, state.generation)?;
            let claim = SetClaim {
                owner: &state.owner,
                recorded_uid: state
                    .record
                    .get(entry)
                    .and_then(|recorded| recorded.uid.as_deref()),
            };
            let applied = match member.apply(&ctx, claim).await {
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
            let (gone, failed) = self.prune_leaving(&state, &recorded, &in_set, &mut result).await;
            recorded.remove(&gone);
            failure = failed;
        }
        if recorded != state.record {
            self.write_record(&kind, owner, &mut state, recorded).await?;
        }
        match failure {
            Some(error) => Err(error),
            None => Ok(result),
        }
    }

    /// Deletes recorded objects that are not wanted. Returns those that are no longer part of the
    /// record, and the first error: if an object can't be deleted, we continue with the others.
    async fn prune_leaving(
        &self,
        state: &SetState,
        recorded: &Record,
        wanted: &HashSet<&Entry>,
        result: &mut AppliedSet,
    ) -> (HashSet<Entry>, Option<Error>) {
        let (owner, others) = (&state.owner, &state.others);
        let (mut gone, mut failure) = (HashSet::default(), None);
        let mut found = Vec::new();
        for object in recorded.not_in(wanted) {
            let entry = &object.entry;
            if entry.is_container() && !recorded.deletes_containers && !others.contain(entry) {
                continue;
            }
            if !others.contain(entry)
                && let Some(other) = others.find_outdated(state.generation)
            {
                result
                    .leaving
                    .push(format!("{entry} (which the controller `{other}` may take over)"));
                continue;
            }
            match self.find_recorded(entry).await {
                Ok(Some(present)) if present.belongs_to(owner, &object) => found.push((object, present)),
                Ok(_) => drop(gone.insert(object.entry)),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        if found.is_empty() {
            return (gone, failure);
        }
        // Read the owner after the objects. If another controller records one of them later, it also
        // changes the object later, and the deletion fails with a conflict.
        let others = match self.read_other_sets(state).await {
            Ok(others) => others,
            Err(error) => return (gone, failure.or(Some(error))),
        };
        for (Recorded { entry, .. }, present) in found {
            if others.contain(&entry) {
                match self.hand_over(owner, &present).await {
                    Ok(()) => drop(gone.insert(entry)),
                    Err(error) => failure = failure.or(Some(error)),
                }
                continue;
            }
            let wanted = wanted.iter().copied().chain(others.objects());
            match self.delete_leaving(owner, &entry, &present, wanted, result).await {
                Ok(true) => drop(gone.insert(entry)),
                Ok(false) => {}
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        (gone, failure)
    }

    /// Returns the sets of other controllers, or a conflict if the owner has changed since the caller
    /// decided what its set contains.
    async fn read_other_sets(&self, state: &SetState) -> Result<OtherSets, Error> {
        let current = state.owner.read(&self.without_state()).await?;
        match current {
            Some(current)
                if current.deletion_timestamp.is_none() && current.generation == state.generation =>
            {
                OtherSets::read(&current, &state.owner)
            }
            _ => {
                let message = format!("{} has changed since it was read", state.owner.described);
                let conflict = Status::failure(&message, "Conflict").with_code(409);
                Err(kube::Error::Api(conflict.boxed()).into())
            }
        }
    }

    /// Deletes an object. Returns `true` once it's gone. A container stays if it contains something
    /// else than objects of the owner that are leaving, too.
    async fn delete_leaving<'a>(
        &self,
        owner: &'a SetOwner,
        entry: &Entry,
        found: &Found,
        wanted: impl Iterator<Item = &'a Entry>,
        result: &mut AppliedSet,
    ) -> Result<bool, Error> {
        if entry.is_container() && !is_kept(&found.meta) && found.meta.deletion_timestamp.is_none() {
            let mut needed = wanted.chain([&owner.entry]);
            let reason = match needed.find(|wanted| entry.contains(wanted)) {
                Some(content) => Some(format!("it contains {content}")),
                None => self.find_foreign_content(owner, entry, found).await?,
            };
            if let Some(reason) = reason {
                tracing::warn!(owner = owner.described, %reason, "{entry} left a set and stays");
                result.staying.push(format!("{entry}: {reason}"));
                return Ok(false);
            }
        }
        let is_delayed = self.prune(owner, found).await?;
        if is_delayed {
            result.leaving.push(entry.to_string());
        }
        Ok(!is_delayed)
    }

    /// Deletes the objects of an owner's [set](Self::apply_set) that the garbage collector doesn't
    /// delete, i.e. objects without an owner reference.
    ///
    /// Call this from the cleanup function of a [`finalizer`](crate::Controller::finalizer), and
    /// return the [`action`](AppliedSet::action) of the result. The finalizer is then removed once
    /// all objects are gone.
    ///
    /// Objects with an owner reference are left to the garbage collector, which keeps them with
    /// `kubectl delete --cascade=orphan`. Those that are marked to be kept lose the reference. Other
    /// objects are deleted even then, unless they are marked to be kept. Namespaces and CRDs are only
    /// deleted if the set that was applied last [says so](ApplySet::delete_namespaces_and_crds), and
    /// nothing in them belongs to somebody else.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`delete`](Self::delete).
    pub async fn delete_set<O: AnyObject>(&self, owner: &O) -> Result<AppliedSet, Error> {
        let mut state = self.open_set(&self.kind_of(owner).await?, owner)?;
        if state.is_incomplete {
            state.record.add(self.find_by_labels(&state.owner).await?);
        }
        // If the owner has only left the selection of the controller, other sets stay.
        let others: Vec<&Entry> = match owner.meta().deletion_timestamp {
            Some(_) => Vec::new(),
            None => state.others.objects().collect(),
        };
        let mut result = AppliedSet::default();
        for object in state.record.not_in(&HashSet::default()) {
            let entry = &object.entry;
            let is_collected = state.owner.bond_to(entry, false) == Bond::Reference;
            let stays = entry.is_container() && !state.record.deletes_containers;
            if (is_collected && !self.may_be_kept(entry)) || stays || others.contains(&entry) {
                continue;
            }
            if let Some(found) = self.find_recorded(entry).await?
                && found.belongs_to(&state.owner, &object)
            {
                if is_collected {
                    if is_kept(&found.meta) {
                        self.release(&state.owner, &found).await?;
                    }
                    continue;
                }
                let wanted = others.iter().copied();
                self.delete_leaving(&state.owner, entry, &found, wanted, &mut result)
                    .await?;
            }
        }
        Ok(result)
    }

    /// Returns `false` if the caches show that the object doesn't exist, or need not be kept.
    fn may_be_kept(&self, entry: &Entry) -> bool {
        let kind = match entry.namespace() {
            Some(_) => DynamicKind::namespaced(entry.resource()),
            None => DynamicKind::cluster_wide(entry.resource()),
        };
        let meta = ObjectMeta {
            name: Some(entry.name.clone()),
            namespace: entry.namespace().map(str::to_owned),
            ..ObjectMeta::default()
        };
        let kind = Kind::<DynamicObject>::from(&kind);
        match self.shared.caches.look_up(&kind, &meta) {
            KnownObject::Found(known) => is_kept(&known),
            KnownObject::Missing => false,
            KnownObject::NotCached => true,
        }
    }

    fn open_set<O: AnyObject>(&self, kind: &Kind<O>, owner: &O) -> Result<SetState, Error> {
        let set_owner = SetOwner::new(owner, kind, self.controller(), &self.shared.former_names)?;
        // Prefer the cached owner, which may be more recent than `owner` (e.g. if an earlier
        // reconcile has updated its status).
        let cached = self.shared.caches.look_up(kind, owner.meta());
        let newest = match &cached {
            KnownObject::Found(cached) if cached.uid == owner.meta().uid => &**cached,
            _ => owner.meta(),
        };
        let own = Record::read(newest, &set_owner, &set_owner.record)?;
        let is_recorded = own.is_some();
        let mut record = own.unwrap_or_default();
        let mut former = Vec::new();
        for name in &set_owner.former_records {
            if let Some(found) = Record::read(newest, &set_owner, name)? {
                record.deletes_containers |= found.deletes_containers;
                record.add(found.objects().iter().cloned());
                former.push(name.clone());
            }
        }
        let annotations = newest.annotations.as_ref();
        let has_annotation = annotations.is_some_and(|all| all.contains_key(&set_owner.record));
        Ok(SetState {
            others: OtherSets::read(newest, &set_owner)?,
            is_incomplete: !has_annotation && former.is_empty() && may_have_lost_record(newest),
            record,
            is_recorded,
            former,
            version: newest.resource_version.clone(),
            generation: owner.meta().generation,
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
        let former = state.former.iter().map(|name| (name.clone(), Value::Null));
        let mut annotations: Map<String, Value> = former.collect();
        annotations.insert(
            state.owner.record.clone(),
            record.to_annotation(&state.owner)?.into(),
        );
        // Fails if the owner was modified or replaced since the record was read.
        let patch = json!({ "metadata": {
            "uid": state.owner.uid,
            "resourceVersion": state.version,
            "annotations": annotations,
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
        state.former.clear();
        Ok(())
    }
}

fn find_crd_of<'a>(wanted: &'a [Entry], object: &Entry) -> Option<&'a Entry> {
    let mut crds = wanted.iter().filter(|entry| (&*entry.group, &*entry.kind) == CRD);
    crds.find(|crd| crd.contains(object))
}

struct SetState {
    owner: SetOwner,
    others: OtherSets,
    record: Record,
    /// Whether the owner has an annotation with the record.
    is_recorded: bool,
    /// Whether the record may lack objects, which have to be found by their labels.
    is_incomplete: bool,
    /// Annotations of the owner with records under former names of the controller.
    former: Vec<String>,
    /// Resource version of the owner from which the record was read.
    version: Option<String>,
    /// Generation of the owner that the caller has seen.
    generation: Option<i64>,
}

impl SetState {
    async fn prepare<O: AnyObject>(
        &mut self,
        ctx: &Ctx<()>,
        owner: &O,
        members: &mut [Box<dyn Member>],
        deletes_containers: bool,
    ) -> Result<Vec<Entry>, Error> {
        let mut defined = Vec::new();
        for member in &*members {
            defined.extend(member.defined_kinds()?);
        }
        let mut entries = Vec::new();
        let mut seen = HashSet::default();
        let mut needs_finalizer = None;
        for member in members {
            let prepared = member.prepare(ctx, &self.owner, &defined).await?;
            let entry = prepared.entry;
            if prepared.bond == Bond::Mark && (deletes_containers || !entry.is_container()) {
                needs_finalizer.get_or_insert(entry.to_string());
            }
            if !seen.insert(entry.clone()) {
                let message = format!("the set contains {entry} twice");
                return Err(Error::terminal(message));
            }
            // The record is older than the object, e.g. because it comes from a backup.
            self.is_incomplete |=
                prepared.is_owned && self.record.get(&entry).is_none() && !self.others.have(&entry);
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

    /// Returns the record to write before the objects are applied.
    fn plan(&self, wanted: &[Entry], in_set: &HashSet<&Entry>, deletes_containers: bool) -> Record {
        let mut planned = self.record.clone();
        planned.add_wanted(wanted);
        planned.deletes_containers = deletes_containers;
        let has_others = !self.others.is_empty();
        planned.mark_leaving(|entry| has_others && !in_set.contains(entry));
        if has_others {
            planned.generation = self.generation;
        }
        planned
    }

    /// Whether the record must be written even if its contents are the same.
    fn must_write(&self) -> bool {
        let is_missing = !self.is_recorded && (self.is_incomplete || !self.others.is_empty());
        is_missing || !self.former.is_empty()
    }
}

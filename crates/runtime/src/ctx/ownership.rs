//! Owner references, and applies of objects with an owner.
//!
//! An apply must never take an object away from its controller, but the API server doesn't enforce
//! that: all objects applied by one of our controllers have the same field manager, namely the
//! controller's name.
//!
//! Suppose that the Memcacheds `a` and `b` both need a Deployment named `cache`. Reconciling `b`
//! applies the Deployment with an owner reference to `b`. To the API server, a field manager
//! applies a different set of fields: it removes the reference to `a`, which the same manager set
//! before, and accepts the apply. Then `a` applies its own version again, and so on. Looking up the
//! owner in the cache first does not solve this, because the cache may be stale.
//!
//! Our solution is to add a precondition to each apply, depending on the cached state:
//!
//! - The cached object is controlled by `owner`. The apply contains its UID and resource version.
//!   The UID alone isn't sufficient, because the garbage collector may have orphaned the object
//!   since (`--cascade=orphan`); the apply would adopt it again, and it would be deleted along with
//!   its owner.
//! - The object doesn't exist according to the cache. The apply contains the resource version `1`,
//!   which is older than any object's. It either creates the object, or fails with a conflict
//!   because another owner was faster. This is the most common case, and it takes a single request.
//! - In all other cases, and after such a conflict, we read the object's metadata from the server.
//!   If the object has another controller, we return an error. Otherwise it's applied with the
//!   resource version just read, so concurrent changes are detected.
//!
//! Conflicts are returned to the controller, which retries with an up-to-date cache. In the first
//! case, a repeated apply may not even be sent; see `applied`.
//!
//! An owner that's being deleted must not get new objects. Since its deletion may not have reached
//! the cache, we ask the server before adopting an existing object; see `adoption`.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::core::ObjectMeta;
use rbuilder_kubernetes::gvk;
use serde::Serialize;

use super::{Ctx, to_apply_error, to_bound_apply_error};
use crate::cache::KnownObject;
use crate::error::{Error, OwnershipError};
use crate::object::{AnyKind, AnyObject, Kind, describe_object};

/// No object can have this resource version, because even the first write to the store gets a
/// larger one.
///
/// An apply with this version creates the object if it doesn't exist, and fails with a conflict
/// otherwise.
const DOES_NOT_EXIST: &str = "1";

impl<S> Ctx<S> {
    /// Applies an object controlled by `owner`. See [`apply`](Self::apply).
    ///
    /// By default, the object is created in the namespace of its owner. It gets an owner reference
    /// with `controller` and `blockOwnerDeletion`: the owner is reconciled when the object changes
    /// (see [`owns`](crate::Controller::owns)), and the object is deleted together with its owner.
    /// An existing object without a controller is adopted. Use [`create_owned`](Self::create_owned)
    /// to avoid that.
    ///
    /// Fails if the owner is being deleted, even if it already owns the object. See
    /// [`OwnershipError::OwnerTerminating`].
    ///
    /// # Errors
    ///
    /// Returns an [`OwnershipError`] in these cases:
    ///
    /// - The object has another controller. This may be a deleted object with the same name as the
    ///   owner ([`OwnedByNamesake`](OwnershipError::OwnedByNamesake)).
    /// - The owner is being deleted.
    /// - The owner cannot own the object because of their scopes.
    ///
    /// Returns a conflict if another owner creates or adopts the object concurrently, and a
    /// [`FieldManagerConflict`] like [`apply`](Self::apply) does. Otherwise, returns the response
    /// of the API server as a [`kube::Error`].
    ///
    /// [`FieldManagerConflict`]: crate::FieldManagerConflict
    pub async fn apply_owned<O: AnyObject, C: AnyObject + Serialize>(
        &self,
        owner: &O,
        mut child: C,
    ) -> Result<C, Error> {
        self.check_owner_cluster(owner, &child)?;
        let kind = self.kind_of(&child).await?;
        self.own(owner, &mut child, &kind)?;
        self.apply_claimed(&kind, child, &ControllerClaim(owner)).await
    }

    /// Applies an object with a claim, unless the existing object is claimed by another owner. See
    /// the module documentation.
    pub(super) async fn apply_claimed<C: AnyObject + Serialize>(
        &self,
        kind: &Kind<C>,
        mut child: C,
        claim: &impl Claim,
    ) -> Result<C, Error> {
        let mut conflict = None;
        match self.shared.caches.look_up(kind, child.meta()) {
            KnownObject::Found(known) if claim.holds(&known) => {
                claim.adapt(child.meta_mut(), &known);
                child.meta_mut().uid = known.uid;
                child.meta_mut().resource_version = known.resource_version;
                let applied = self.send_apply_if_needed(kind, &child).await;
                match applied.map_err(|error| to_bound_apply_error(&child, error)) {
                    // The object has changed since it was cached. If its UID is still the same,
                    // maybe only its status has.
                    Err(error) if error.is_conflict() && !error.is_field_manager_conflict() => {
                        conflict = Some(error);
                    }
                    applied => return applied,
                }
            }
            // The object most likely doesn't exist, so a single request should be enough.
            KnownObject::Missing => {
                child.meta_mut().resource_version = Some(DOES_NOT_EXIST.to_owned());
                match self.send_apply(kind, &child).await {
                    // Another owner was faster, or the cache is stale. Read the object below.
                    Err(kube::Error::Api(status)) if status.is_conflict() => {}
                    created => return self.finish_create(kind, &child, created),
                }
            }
            KnownObject::Found(_) | KnownObject::NotCached => {}
        }
        let api = self.api_of(kind, &child);
        let existing = api.get_metadata_opt(&child.name_any()).await?;
        if let Some(conflict) = conflict {
            let uid = existing.as_ref().and_then(|existing| existing.uid());
            // The object was replaced, so what was cached about the old one doesn't apply.
            if uid != child.meta().uid {
                return Err(conflict);
            }
        }
        child.meta_mut().resource_version = match existing {
            Some(existing) => {
                if !claim.holds(&existing.metadata) {
                    claim
                        .take(&self.without_state(), &child, &existing.metadata)
                        .await?;
                }
                claim.adapt(child.meta_mut(), &existing.metadata);
                // Turns any change since the read into a conflict.
                existing.metadata.resource_version
            }
            None => Some(DOES_NOT_EXIST.to_owned()),
        };
        let applied = self.send_apply(kind, &child).await;
        self.finish_create(kind, &child, applied)
    }

    pub(super) fn without_state(&self) -> Ctx<()> {
        Ctx {
            shared: Arc::clone(&self.shared),
            state: Arc::new(()),
            forces: self.forces,
            applied_sets: self.applied_sets.clone(),
        }
    }

    fn finish_create<C: AnyObject>(
        &self,
        kind: &Kind<C>,
        child: &C,
        applied: Result<C, kube::Error>,
    ) -> Result<C, Error> {
        let applied = applied.map_err(|error| to_apply_error(child, error))?;
        self.record_created(kind, &applied);
        Ok(applied)
    }

    /// Ensures that the owner is notified of a new object's deletion, even if there is a gap in the
    /// watch.
    pub(super) fn record_created<C: AnyObject>(&self, kind: &Kind<C>, created: &C) {
        self.shared.caches.record_created(kind, created);
    }
}

/// An owner's claim to an object, stored on the object itself.
pub(super) trait Claim: Sync {
    fn holds(&self, found: &ObjectMeta) -> bool;

    /// Changes the claim in the metadata to apply if the existing object (with the metadata `found`)
    /// needs another one.
    fn adapt(&self, _wanted: &mut ObjectMeta, _found: &ObjectMeta) {}

    /// Called before the claim is added to an existing `object` (with the metadata `found`).
    /// Returns an error to refuse the claim.
    fn take<C: AnyObject>(
        &self,
        ctx: &Ctx<()>,
        object: &C,
        found: &ObjectMeta,
    ) -> impl Future<Output = Result<(), Error>> + Send;
}

struct ControllerClaim<'a, O>(&'a O);

impl<O: AnyObject> Claim for ControllerClaim<'_, O> {
    fn holds(&self, found: &ObjectMeta) -> bool {
        is_controlled_by(found, self.0)
    }

    async fn take<C: AnyObject>(&self, ctx: &Ctx<()>, object: &C, found: &ObjectMeta) -> Result<(), Error> {
        check_controller(self.0, object, found)?;
        ctx.check_adoption(self.0, object).await
    }
}

pub(super) fn is_controlled_by<O: AnyObject>(owned: &ObjectMeta, owner: &O) -> bool {
    let mut references = owned.owner_references.iter().flatten();
    references.any(|held| held.controller == Some(true) && Some(&held.uid) == owner.meta().uid.as_ref())
}

/// Makes `owner` the controller of `object`. If the object has no namespace, it gets the owner's
/// namespace.
///
/// Use this for objects that you create without a [`Ctx`]. [`Ctx::apply_owned`] and
/// [`Ctx::create_or_update_owned`] don't need it. The owner reference has `controller` and
/// `blockOwnerDeletion`: the owner is reconciled when the object changes (see
/// [`owns`](crate::Controller::owns)), and the object is deleted together with its owner.
///
/// # Errors
///
/// Returns an error in these cases, and leaves `object` unchanged except for its namespace:
///
/// - The object has another controller.
/// - The owner is namespaced, and the object is cluster-scoped or in a different namespace.
/// - The owner is being deleted.
/// - The owner was not read from the API server.
pub fn set_controller_reference<O: AnyObject, C: AnyObject>(
    owner: &O,
    object: &mut C,
) -> Result<(), OwnershipError> {
    set_controller(owner, object, type_scope::<C>())
}

/// Like [`set_controller_reference`], but for a known scope. The object must have a namespace
/// afterwards if it's namespaced.
pub(super) fn own<O: AnyObject, C: AnyObject>(
    owner: &O,
    object: &mut C,
    kind: &Kind<C>,
) -> Result<(), OwnershipError> {
    set_controller(owner, object, Some(kind.namespaced))?;
    match kind.namespaced && object.meta().namespace.is_none() {
        true => Err(OwnershipError::NoNamespace {
            object: describe_object(object),
            owner: describe_object(owner),
        }),
        false => Ok(()),
    }
}

fn set_controller<O: AnyObject, C: AnyObject>(
    owner: &O,
    object: &mut C,
    is_namespaced: Option<bool>,
) -> Result<(), OwnershipError> {
    check_scope(owner, object, is_namespaced)?;
    let reference = reference_to(owner)?;
    check_not_terminating(owner, object)?;
    check_controller(owner, object, object.meta())?;
    let references = object.owner_references_mut();
    references.retain(|existing| existing.uid != reference.uid);
    references.push(OwnerReference {
        controller: Some(true),
        block_owner_deletion: Some(true),
        ..reference
    });
    Ok(())
}

/// Adds `owner` to the owners of `object`, without making it the controller. If the object has no
/// namespace, it gets the owner's namespace.
///
/// An object can have multiple owners, and is deleted once all of them are gone. Changes to the
/// object only reconcile its controller, not the other owners. An existing reference to the owner
/// is updated, except for `controller` and `blockOwnerDeletion`.
///
/// # Errors
///
/// Returns the same errors as [`set_controller_reference`], except that another controller is
/// allowed.
pub fn set_owner_reference<O: AnyObject, C: AnyObject>(
    owner: &O,
    object: &mut C,
) -> Result<(), OwnershipError> {
    check_scope(owner, object, type_scope::<C>())?;
    let reference = reference_to(owner)?;
    check_not_terminating(owner, object)?;
    let references = object.owner_references_mut();
    match references
        .iter_mut()
        .find(|existing| existing.uid == reference.uid)
    {
        Some(existing) => {
            *existing = OwnerReference {
                controller: existing.controller,
                block_owner_deletion: existing.block_owner_deletion,
                ..reference
            };
        }
        None => references.push(reference),
    }
    Ok(())
}

fn reference_to<O: AnyObject>(owner: &O) -> Result<OwnerReference, OwnershipError> {
    let types = owner.type_meta();
    let types = types.ok_or_else(|| OwnershipError::NoKind(owner.name_any()))?;
    let (Some(name), Some(uid)) = (&owner.meta().name, &owner.meta().uid) else {
        return Err(OwnershipError::NoUid(describe_object(owner)));
    };
    Ok(OwnerReference {
        api_version: types.api_version,
        kind: types.kind,
        name: name.clone(),
        uid: uid.clone(),
        controller: None,
        block_owner_deletion: None,
    })
}

/// `None` for kinds that are only known at runtime.
fn type_scope<K: AnyObject>() -> Option<bool> {
    K::type_kind().map(|AnyKind(kind)| kind.namespaced)
}

/// Checks that the owner can own the object. If `object` has no namespace, it gets the owner's.
fn check_scope<O: AnyObject, C: AnyObject>(
    owner: &O,
    object: &mut C,
    is_namespaced: Option<bool>,
) -> Result<(), OwnershipError> {
    // If the scope is unknown, assume that the object is namespaced, like most kinds.
    if is_namespaced.unwrap_or(true) && object.meta().namespace.is_none() {
        object.meta_mut().namespace = owner.namespace();
    }
    // The owner was read from the API server, so it has a namespace if and only if its kind is
    // namespaced.
    let is_owner_namespaced = type_scope::<O>().unwrap_or_else(|| owner.meta().namespace.is_some());
    if is_owner_namespaced && object.meta().namespace != owner.meta().namespace {
        return Err(OwnershipError::Scope {
            object: describe_object(object),
            owner: describe_object(owner),
        });
    }
    Ok(())
}

/// Checks that the owner is not being deleted, although this copy of it may be stale.
fn check_not_terminating<O: AnyObject, C: AnyObject>(owner: &O, object: &C) -> Result<(), OwnershipError> {
    match owner.meta().deletion_timestamp {
        Some(_) => Err(new_terminating_error(owner, object)),
        None => Ok(()),
    }
}

pub(super) fn new_terminating_error<O: AnyObject, C: AnyObject>(owner: &O, object: &C) -> OwnershipError {
    OwnershipError::OwnerTerminating {
        object: describe_object(object),
        owner: describe_object(owner),
        uid: owner.uid().unwrap_or_default(),
    }
}

fn check_controller<O: AnyObject, C: AnyObject>(
    owner: &O,
    object: &C,
    found: &ObjectMeta,
) -> Result<(), OwnershipError> {
    let Some(other) = find_other_controller(owner, found) else {
        return Ok(());
    };
    if is_namesake(other, owner) {
        return Err(new_namesake_error(owner, object, other));
    }
    Err(OwnershipError::AlreadyOwned {
        object: describe_object(object),
        owner: format!("{} {}", other.kind, other.name),
    })
}

/// Checks that `object` isn't controlled by a deleted predecessor of `owner` with the same name.
pub(super) fn check_namesake<O: AnyObject, C: AnyObject>(
    owner: &O,
    object: &C,
) -> Result<(), OwnershipError> {
    match find_other_controller(owner, object.meta()) {
        Some(other) if is_namesake(other, owner) => Err(new_namesake_error(owner, object, other)),
        _ => Ok(()),
    }
}

fn find_other_controller<'a, O: AnyObject>(owner: &O, found: &'a ObjectMeta) -> Option<&'a OwnerReference> {
    let references = found.owner_references.iter().flatten();
    let mut controllers = references.filter(|reference| reference.controller == Some(true));
    controllers.find(|reference| Some(&reference.uid) != owner.meta().uid.as_ref())
}

fn new_namesake_error<O: AnyObject, C: AnyObject>(
    owner: &O,
    object: &C,
    other: &OwnerReference,
) -> OwnershipError {
    OwnershipError::OwnedByNamesake {
        object: describe_object(object),
        owner: describe_object(owner),
        uid: other.uid.clone(),
    }
}

/// Returns `true` if the reference has the owner's kind and name, but a different UID.
///
/// Names are unique, so the referenced object must have been deleted, and the garbage collector is
/// going to delete what it owned.
fn is_namesake<O: AnyObject>(reference: &OwnerReference, owner: &O) -> bool {
    // The reference may contain any version of the kind, so only compare the group.
    owner.type_meta().is_some_and(|types| {
        gvk::group_of(&reference.api_version) == gvk::group_of(&types.api_version)
            && reference.kind == types.kind
            && reference.name == owner.name_any()
    })
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

    fn owned_by<O: AnyObject, C: AnyObject>(owner: &O, mut child: C) -> Result<C, OwnershipError> {
        set_controller_reference(owner, &mut child).map(|()| child)
    }

    fn deployment(namespace: Option<&str>) -> Deployment {
        let mut object = Deployment::default();
        object.metadata.name = Some("child".to_owned());
        object.metadata.namespace = namespace.map(str::to_owned);
        object
    }

    #[test]
    fn owned_object_gets_the_owners_namespace_and_one_controller_reference() {
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

    #[test]
    fn object_can_have_more_owners_besides_its_controller() {
        let controller = config_map(Some("a"), Some("1"));
        let [second, third] = ["2", "3"].map(|uid| config_map(Some("a"), Some(uid)));
        let mut child = owned_by(&controller, deployment(None)).unwrap();
        for owner in [&second, &controller, &third, &second] {
            set_owner_reference(owner, &mut child).unwrap();
        }
        let references = child.metadata.owner_references.as_ref().unwrap();
        let found: Vec<_> = references
            .iter()
            .map(|reference| {
                (
                    &*reference.uid,
                    reference.controller,
                    reference.block_owner_deletion,
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                ("1", Some(true), Some(true)),
                ("2", None, None),
                ("3", None, None)
            ]
        );
        assert!(is_controlled_by(&child.metadata, &controller));
        assert!(!is_controlled_by(&child.metadata, &second));
    }

    #[test]
    fn additional_owner_must_be_able_to_own_the_object() {
        let mut child = deployment(None);
        set_owner_reference(&config_map(Some("a"), Some("1")), &mut child).unwrap();
        assert_eq!(child.metadata.namespace.as_deref(), Some("a"));
        for (owner, expected) in [
            (
                config_map(Some("b"), Some("2")),
                "ConfigMap b/owner cannot own Deployment a/child",
            ),
            (config_map(Some("a"), None), "ConfigMap a/owner has no uid"),
        ] {
            let error = set_owner_reference(&owner, &mut child).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let references = child.metadata.owner_references.unwrap();
        assert_eq!(references.len(), 1);
        assert_eq!(references[0].controller, None);
    }

    #[test]
    fn invalid_ownerships_are_errors_that_name_both_objects() {
        let check = |result: Result<String, OwnershipError>, expected: &str| {
            assert_eq!(result.unwrap_err().to_string(), expected);
        };
        let named = |result: Result<Deployment, OwnershipError>| result.map(|child| describe_object(&child));
        check(
            named(owned_by(&config_map(Some("a"), Some("1")), deployment(Some("b")))),
            "ConfigMap a/owner cannot own Deployment b/child: an owner must be cluster-scoped or in the same namespace",
        );
        check(
            owned_by(&config_map(Some("a"), Some("1")), Namespace::default())
                .map(|child| describe_object(&child)),
            "ConfigMap a/owner cannot own Namespace : an owner must be cluster-scoped or in the same namespace",
        );
        check(
            named(owned_by(&config_map(Some("a"), None), deployment(None))),
            "ConfigMap a/owner has no uid and cannot be an owner; use the object that the API server returned",
        );
        let other = || {
            let mut other = config_map(Some("a"), Some("2"));
            other.metadata.name = Some("other".to_owned());
            other
        };
        let taken = owned_by(&other(), deployment(None)).unwrap();
        check(
            named(owned_by(&config_map(Some("a"), Some("1")), taken)),
            "Deployment a/child is already owned by ConfigMap other; it was not changed",
        );
    }

    #[test]
    fn object_of_a_deleted_namesake_is_refused() {
        let owner = config_map(Some("a"), Some("1"));
        let orphan = owned_by(&config_map(Some("a"), Some("2")), deployment(None)).unwrap();
        let error = owned_by(&owner, orphan.clone()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Deployment a/child is owned by a deleted ConfigMap a/owner with uid 2; it was not changed, and can be \
             created again once the garbage collector has deleted it"
        );
        // A different kind is not a namesake; a different version of the same kind is.
        for (api_version, kind, is_namesake) in [
            ("v1", "Secret", false),
            ("apps/v1", "ConfigMap", false),
            ("v2", "ConfigMap", true),
        ] {
            let mut orphan = orphan.clone();
            let reference = &mut orphan.metadata.owner_references.as_mut().unwrap()[0];
            api_version.clone_into(&mut reference.api_version);
            kind.clone_into(&mut reference.kind);
            let error = owned_by(&owner, orphan).unwrap_err();
            let found = matches!(error, OwnershipError::OwnedByNamesake { .. });
            assert_eq!(found, is_namesake, "{error}");
        }
    }
}

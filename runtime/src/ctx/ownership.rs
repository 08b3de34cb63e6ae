//! Owner references: who controls an object, and applying what an object owns.

use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::core::{ObjectMeta, PartialObjectMeta, Status};
use serde::Serialize;

use super::{Ctx, as_conflict};
use crate::cache::Selection;
use crate::error::{Error, OwnershipError};
use crate::object::{Key, Kind, Object, Scope, describe};

/// A resource version that no object has: the store's first write has a later one.
///
/// An apply that names it makes an object that is not there, and is refused with a conflict by one that is.
const NOT_THERE: &str = "1";

impl<S> Ctx<S> {
    /// [`apply`](Self::apply) for an object that `owner` owns as its controller.
    ///
    /// The object gets the owner's namespace if it names none, and an owner reference with `controller` and
    /// `blockOwnerDeletion`: changes to it reconcile the owner (see [`owns`](crate::Controller::owns)), and
    /// the cluster deletes it with the owner. An object that has no controller yet is adopted; where it must not
    /// be, [`create_owned`](Self::create_owned) comes first.
    ///
    /// # Errors
    /// [`OwnershipError`] when another controller owns the object already, which may be an earlier object of the owner's
    /// name ([`OwnedByNamesake`](OwnershipError::OwnedByNamesake)), or scopes forbid the ownership; a conflict when
    /// another one comes first in this very moment; else what the API server answers, as [`kube::Error`].
    pub async fn apply_owned<O: Object, C: Object + Serialize>(
        &self,
        owner: &O,
        mut child: C,
    ) -> Result<C, Error> {
        set_controller_reference(owner, &mut child)?;
        let api = <C::Scope as Scope>::api::<C>(self.client(), child.meta().namespace.as_deref());
        // The server is no help in telling owners apart: those that one controller reconciles share a field manager,
        // and an apply for the second one silently takes the reference to the first one away. So each apply names
        // what it was decided on, and meets a conflict should that have changed.
        match self.look_up(&child) {
            LookedUp::Found(known) if is_controlled_by(&known, owner) => {
                child.meta_mut().uid = known.uid;
                return match self.send_apply(&api, &child).await {
                    // An object of this name, but not the one that was known.
                    Err(kube::Error::Api(status)) if is_about_uid(&status) => {
                        Err(as_conflict(&status).into())
                    }
                    applied => Ok(applied?),
                };
            }
            // Most likely it is not there, and then one request is enough.
            LookedUp::NotThere => {
                child.meta_mut().resource_version = Some(NOT_THERE.to_owned());
                match self.send_apply(&api, &child).await {
                    Err(kube::Error::Api(status)) if status.is_conflict() => {}
                    made => return self.remembered(made),
                }
            }
            LookedUp::Found(_) | LookedUp::Unknown => {}
        }
        let present = api.get_metadata_opt(&child.name_any()).await?;
        child.meta_mut().resource_version = match present {
            Some(present) => {
                refuse_foreign(owner, &child, &present.metadata)?;
                present.metadata.resource_version
            }
            None => Some(NOT_THERE.to_owned()),
        };
        let made = self.send_apply(&api, &child).await;
        self.remembered(made)
    }

    fn remembered<C: Object>(&self, made: Result<C, kube::Error>) -> Result<C, Error> {
        let made = made?;
        self.remember(&made);
        Ok(made)
    }

    /// Tells the caches of an owned object that was just made, so that its owner hears of its end even if its watch
    /// has a gap.
    pub(super) fn remember<C: Object>(&self, made: &C) {
        let (caches, all) = (&self.shared.caches, Selection::all());
        if let Some(cache) = caches.find::<PartialObjectMeta<C>>(&Kind::of_type(), &all) {
            cache.wrote(PartialObjectMeta {
                types: None,
                metadata: made.meta().clone(),
                _phantom: PhantomData,
            });
        }
        if let Some(cache) = caches.find::<C>(&Kind::of_type(), &all) {
            cache.wrote(made.clone());
        }
    }

    /// What the caches have of the metadata of an object of this kind and name.
    fn look_up<C: Object>(&self, child: &C) -> LookedUp {
        let (key, all) = (Key::of(child), Selection::all());
        let caches = &self.shared.caches;
        let metadata = caches.find::<PartialObjectMeta<C>>(&Kind::of_type(), &all);
        let whole = caches.find::<C>(&Kind::of_type(), &all);
        let found = metadata
            .as_ref()
            .and_then(|cache| Some(cache.get(&key)?.metadata.clone()));
        let found = found.or_else(|| Some(whole.as_ref()?.get(&key)?.meta().clone()));
        match found {
            Some(found) => LookedUp::Found(Box::new(found)),
            None if metadata.is_some() || whole.is_some() => LookedUp::NotThere,
            None => LookedUp::Unknown,
        }
    }
}

/// What the caches know of an object; they lag behind the cluster.
enum LookedUp {
    Found(Box<ObjectMeta>),
    NotThere,
    /// Nothing caches its kind.
    Unknown,
}

fn is_about_uid(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.field == "metadata.uid")
}

/// Whether `owner` is the controller among the owners.
pub(super) fn is_controlled_by<O: Object>(owned: &ObjectMeta, owner: &O) -> bool {
    let mut references = owned.owner_references.iter().flatten();
    references.any(|held| held.controller == Some(true) && Some(&held.uid) == owner.meta().uid.as_ref())
}

/// Makes `owner` the controller of `object`, which gets the owner's namespace if it names none.
///
/// It is for objects that are created by hand; [`Ctx::apply_owned`] and
/// [`Ctx::create_or_update_owned`] do it themselves. The owner reference has `controller` and `blockOwnerDeletion`:
/// changes of the object reconcile the owner (see [`owns`](crate::Controller::owns)), and the cluster deletes it with
/// the owner.
///
/// # Errors
/// When `object` has another controller, when a namespaced owner is in another namespace than the object or the object
/// in none, or when the owner was never read from the API server. The object is left as it was, but for its namespace.
pub fn set_controller_reference<O: Object, C: Object>(
    owner: &O,
    object: &mut C,
) -> Result<(), OwnershipError> {
    if C::Scope::NAMESPACED && object.meta().namespace.is_none() {
        object.meta_mut().namespace = owner.namespace();
    }
    if O::Scope::NAMESPACED && object.meta().namespace != owner.meta().namespace {
        return Err(OwnershipError::Scope {
            object: describe(object),
            owner: describe(owner),
        });
    }
    let reference = owner
        .controller_owner_ref(&())
        .ok_or_else(|| OwnershipError::NoUid(describe(owner)))?;
    refuse_foreign(owner, object, object.meta())?;
    let references = object.owner_references_mut();
    references.retain(|present| present.uid != reference.uid);
    references.push(OwnerReference {
        block_owner_deletion: Some(true),
        ..reference
    });
    Ok(())
}

/// # Errors
/// When the metadata names a controller that is not `owner`.
fn refuse_foreign<O: Object, C: Object>(
    owner: &O,
    object: &C,
    found: &ObjectMeta,
) -> Result<(), OwnershipError> {
    let Some(other) = foreign_controller(owner, found) else {
        return Ok(());
    };
    if is_namesake(other, owner) {
        return Err(owned_by_namesake(owner, object, other));
    }
    Err(OwnershipError::AlreadyOwned {
        object: describe(object),
        owner: format!("{} {}", other.kind, other.name),
    })
}

/// # Errors
/// When the controller of `object` is an earlier object of the name that `owner` has.
pub(super) fn refuse_namesake<O: Object, C: Object>(owner: &O, object: &C) -> Result<(), OwnershipError> {
    match foreign_controller(owner, object.meta()) {
        Some(other) if is_namesake(other, owner) => Err(owned_by_namesake(owner, object, other)),
        _ => Ok(()),
    }
}

/// The reference to a controller that is not `owner`.
fn foreign_controller<'a, O: Object>(owner: &O, found: &'a ObjectMeta) -> Option<&'a OwnerReference> {
    let references = found.owner_references.iter().flatten();
    let mut controllers = references.filter(|reference| reference.controller == Some(true));
    controllers.find(|reference| Some(&reference.uid) != owner.meta().uid.as_ref())
}

fn owned_by_namesake<O: Object, C: Object>(owner: &O, object: &C, other: &OwnerReference) -> OwnershipError {
    OwnershipError::OwnedByNamesake {
        object: describe(object),
        owner: describe(owner),
        uid: other.uid.clone(),
    }
}

/// Whether a reference with another uid is to an object of the owner's kind and name. Only one object has a name at a
/// time, so one of the two is deleted, and the cluster collects what that one owned. The version does not count: a kind
/// may be referred to in any of them.
fn is_namesake<O: Object>(reference: &OwnerReference, owner: &O) -> bool {
    let group = reference
        .api_version
        .split_once('/')
        .map_or("", |(group, _)| group);
    group == O::group(&()) && reference.kind == O::kind(&()) && reference.name == owner.name_any()
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

    fn owned_by<O: Object, C: Object>(owner: &O, mut child: C) -> Result<C, OwnershipError> {
        set_controller_reference(owner, &mut child).map(|()| child)
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

    #[test]
    fn impossible_ownerships_are_refused_with_both_names() {
        let check = |result: Result<String, OwnershipError>, expected: &str| {
            assert_eq!(result.unwrap_err().to_string(), expected);
        };
        let named = |result: Result<Deployment, OwnershipError>| result.map(|child| describe(&child));
        check(
            named(owned_by(&config_map(Some("a"), Some("1")), deployment(Some("b")))),
            "ConfigMap a/owner cannot own Deployment b/child: an owner must be cluster-scoped or in the same namespace",
        );
        check(
            owned_by(&config_map(Some("a"), Some("1")), Namespace::default()).map(|child| describe(&child)),
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
    fn what_an_earlier_owner_of_the_name_left_waits_for_the_garbage_collector() {
        let owner = config_map(Some("a"), Some("1"));
        let left = owned_by(&config_map(Some("a"), Some("2")), deployment(None)).unwrap();
        let error = owned_by(&owner, left.clone()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Deployment a/child is owned by a deleted ConfigMap a/owner with uid 2; it was not changed, and can be \
             created again once the garbage collector has deleted it"
        );
        // Another kind of the same name is no namesake; another version of the kind is one.
        for (api_version, kind, is_namesake) in [
            ("v1", "Secret", false),
            ("apps/v1", "ConfigMap", false),
            ("v2", "ConfigMap", true),
        ] {
            let mut left = left.clone();
            let reference = &mut left.metadata.owner_references.as_mut().unwrap()[0];
            api_version.clone_into(&mut reference.api_version);
            kind.clone_into(&mut reference.kind);
            let error = owned_by(&owner, left).unwrap_err();
            let found = matches!(error, OwnershipError::OwnedByNamesake { .. });
            assert_eq!(found, is_namesake, "{error}");
        }
    }
}

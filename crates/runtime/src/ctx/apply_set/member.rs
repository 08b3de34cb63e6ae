//! Type-erased objects in a set.

use std::any::Any;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::core::{GroupVersionKind, ObjectMeta};
use kube::{Resource, ResourceExt};
use rbuilder_kubernetes::crd::Crd;
use serde::Serialize;

use super::claim::{Bond, SetOwner, is_kept, is_unclaimed};
use super::containers::kinds_of_crd;
use super::prune::Found;
use super::readiness::{CRD, is_usable};
use super::record::Entry;
use crate::cache::KnownObject;
use crate::ctx::Ctx;
use crate::ctx::ownership::Claim;
use crate::error::{Error, OwnershipError};
use crate::object::{AnyKind, AnyObject, DynamicKind, Kind, describe_object};

pub(super) trait Member: Send + Sync {
    /// Returns the kinds that the object defines if it is a CRD. Their discovery would fail until the
    /// CRD is applied.
    fn defined_kinds(&self) -> Result<Vec<DynamicKind>, Error>;

    /// Fills in the kind, the namespace and the owner's claim. `defined` are the kinds that other
    /// objects of the set define.
    ///
    /// Fails if the kind is unknown, or if neither the object nor its owner has a namespace.
    fn prepare<'a>(
        &'a mut self,
        ctx: &'a Ctx<()>,
        owner: &'a SetOwner,
        defined: &'a [DynamicKind],
    ) -> BoxFuture<'a, Result<Prepared, Error>>;

    fn name(&self) -> String;

    fn apply<'a>(
        &'a self,
        ctx: &'a Ctx<()>,
        claim: SetClaim<'a>,
    ) -> BoxFuture<'a, Result<AppliedMember, Error>>;
}

/// A claim to an object of the owner's set.
pub(super) struct SetClaim<'a> {
    pub(super) owner: &'a SetOwner,
    /// UID of the object in the record.
    pub(super) recorded_uid: Option<&'a str>,
}

pub(super) struct Prepared {
    pub(super) entry: Entry,
    pub(super) bond: Bond,
    /// According to the caches, the owner has applied the object before.
    pub(super) is_owned: bool,
}

pub(super) struct AppliedMember {
    pub(super) uid: Option<String>,
    /// If `false`, the objects that follow have to wait.
    pub(super) is_ready: bool,
    pub(super) object: Arc<dyn Any + Send + Sync>,
}

type IsReady<K> = Box<dyn Fn(&K) -> bool + Send + Sync>;

/// `K` may also be a type for dynamic kinds, e.g. `DynamicObject`.
pub(super) struct TypedMember<K: Resource> {
    object: K,
    /// Set by `prepare`.
    kind: Option<Kind<K>>,
    is_ready: Option<IsReady<K>>,
    is_kept: bool,
}

impl<K: AnyObject> TypedMember<K> {
    pub(super) fn new(object: K) -> Self {
        Self {
            object,
            kind: None,
            is_ready: None,
            is_kept: false,
        }
    }

    pub(super) fn until(mut self, is_ready: impl Fn(&K) -> bool + Send + Sync + 'static) -> Self {
        self.is_ready = Some(Box::new(is_ready));
        self
    }

    pub(super) fn kept(mut self) -> Self {
        self.is_kept = true;
        self
    }
}

impl<K: AnyObject + Serialize> Member for TypedMember<K> {
    fn defined_kinds(&self) -> Result<Vec<DynamicKind>, Error> {
        let is_crd = self.object.type_meta().is_some_and(|types| {
            let group = types.api_version.split('/').next();
            (group, &*types.kind) == (Some(CRD.0), CRD.1)
        });
        match is_crd {
            true => Ok(kinds_of_crd(Crd::of(&serde_json::to_value(&self.object)?))),
            false => Ok(Vec::new()),
        }
    }

    fn prepare<'a>(
        &'a mut self,
        ctx: &'a Ctx<()>,
        owner: &'a SetOwner,
        defined: &'a [DynamicKind],
    ) -> BoxFuture<'a, Result<Prepared, Error>> {
        async move {
            let kind = match find_defined(&self.object, defined) {
                Some(kind) => kind,
                None => ctx.kind_of(&self.object).await?,
            };
            let meta = self.object.meta_mut();
            if !kind.namespaced {
                meta.namespace = None;
            } else if meta.namespace.is_none() {
                meta.namespace = owner.namespace().map(str::to_owned);
            }
            if kind.namespaced && meta.namespace.is_none() {
                return Err(Error::terminal(OwnershipError::NoNamespace {
                    object: describe_object(&self.object),
                    owner: owner.described.clone(),
                }));
            }
            let entry = Entry::of(&kind, self.object.meta());
            let bond = owner.bond_to(&entry, self.is_kept);
            owner.claim(self.object.meta_mut(), &entry, bond);
            if self.object.meta().owner_references.is_some() {
                ctx.label_owned(&owner.uid, self.object.meta_mut());
            }
            let known = ctx.shared.caches.look_up(&kind, self.object.meta());
            self.kind = Some(kind);
            Ok(Prepared {
                entry,
                bond,
                is_owned: matches!(known, KnownObject::Found(found) if owner.owns(&found)),
            })
        }
        .boxed()
    }

    fn name(&self) -> String {
        self.object.name_any()
    }

    fn apply<'a>(
        &'a self,
        ctx: &'a Ctx<()>,
        claim: SetClaim<'a>,
    ) -> BoxFuture<'a, Result<AppliedMember, Error>> {
        async move {
            let owner = claim.owner;
            let kind = match &self.kind {
                Some(kind) => kind.clone(),
                None => ctx.kind_of(&self.object).await?,
            };
            let mut applied = ctx.apply_claimed(&kind, self.object.clone(), &claim).await?;
            let entry = Entry::of(&kind, self.object.meta());
            let may_refer = owner.bond_to(&entry, self.is_kept) == Bond::Reference;
            let has_reference = |applied: &K| owner.reference_index(applied.meta()).is_some();
            // This apply has removed the annotation to keep the object: it was set by `add_kept`
            // before. Now the object can have its owner reference.
            if may_refer && !has_reference(&applied) && !is_kept(applied.meta()) {
                applied = ctx.apply_claimed(&kind, self.object.clone(), &claim).await?;
            }
            // An apply does not remove what another field manager has set, such as the controller
            // under its former name.
            if has_reference(&applied) && (!may_refer || is_kept(applied.meta())) {
                let found = Found {
                    api: entry.api(ctx.client(), &entry.resource()),
                    meta: applied.meta().clone(),
                };
                ctx.release(owner, &found).await?;
            }
            let is_asked_for = self.is_ready.as_ref().is_none_or(|is_ready| is_ready(&applied));
            Ok(AppliedMember {
                uid: applied.uid(),
                is_ready: is_asked_for && is_usable(&kind, &applied)?,
                object: Arc::new(applied),
            })
        }
        .boxed()
    }
}

impl Claim for SetClaim<'_> {
    fn holds(&self, found: &ObjectMeta) -> bool {
        self.owner.owns(found)
    }

    fn adapt(&self, wanted: &mut ObjectMeta, found: &ObjectMeta) {
        self.owner.adapt_claim(wanted, found);
    }

    async fn take<C: AnyObject>(&self, ctx: &Ctx<()>, object: &C, found: &ObjectMeta) -> Result<(), Error> {
        // Never adopt an object of another owner: it would be deleted as soon as it leaves the set.
        // An object of the set that nobody claims has only lost its claim, e.g. to `kubectl replace`.
        let was_applied = self.recorded_uid.is_some() && self.recorded_uid == found.uid.as_deref();
        let owner = self.owner;
        if !(owner.succeeds_owner_of(found) || was_applied && is_unclaimed(found)) {
            return Err(owner.refuse(describe_object(object), found).into());
        }
        let current = owner.read(ctx).await?;
        let (object, owner, uid) = (
            describe_object(object),
            owner.described.clone(),
            owner.uid.clone(),
        );
        match current {
            None => Err(OwnershipError::OwnerGone { object, owner, uid }.into()),
            Some(current) if current.deletion_timestamp.is_some() => {
                Err(OwnershipError::OwnerTerminating { object, owner, uid }.into())
            }
            Some(_) => Ok(()),
        }
    }
}

fn find_defined<K: AnyObject>(object: &K, defined: &[DynamicKind]) -> Option<Kind<K>> {
    if K::type_kind().is_some() {
        return None;
    }
    let types = GroupVersionKind::try_from(object.type_meta()?).ok()?;
    let kind = defined.iter().find(|kind| kind.group_version_kind() == types)?;
    let AnyKind(kind) = K::run_time_kind(kind);
    Some(kind)
}

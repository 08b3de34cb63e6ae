//! Type-erased objects in a set.

use std::any::Any;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use kube::core::ObjectMeta;
use kube::{Resource, ResourceExt};
use serde::Serialize;

use super::claim::SetOwner;
use super::readiness::is_usable;
use super::record::Entry;
use crate::ctx::Ctx;
use crate::ctx::ownership::Claim;
use crate::error::Error;
use crate::object::{AnyObject, Kind, describe_object};

pub(super) trait Member: Send + Sync {
    /// Fills in the kind, the namespace and the owner's claim. Returns the entry for the record.
    ///
    /// Fails if the kind is unknown, or if neither the object nor its owner has a namespace.
    fn prepare<'a>(
        &'a mut self,
        ctx: &'a Ctx<()>,
        owner: &'a SetOwner,
    ) -> BoxFuture<'a, Result<Entry, Error>>;

    fn name(&self) -> String;

    fn is_kept(&self) -> bool;

    fn apply<'a>(
        &'a self,
        ctx: &'a Ctx<()>,
        owner: &'a SetOwner,
    ) -> BoxFuture<'a, Result<AppliedMember, Error>>;
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
    fn prepare<'a>(
        &'a mut self,
        ctx: &'a Ctx<()>,
        owner: &'a SetOwner,
    ) -> BoxFuture<'a, Result<Entry, Error>> {
        async move {
            let kind = ctx.kind_of(&self.object).await?;
            let meta = self.object.meta_mut();
            if !kind.namespaced {
                meta.namespace = None;
            } else if meta.namespace.is_none() {
                meta.namespace = owner.namespace().map(str::to_owned);
            }
            if kind.namespaced && meta.namespace.is_none() {
                let message = format!(
                    "{} has no namespace, and {} has none either; set `metadata.namespace`",
                    describe_object(&self.object),
                    owner.described
                );
                return Err(Error::terminal(message));
            }
            owner.claim(self.object.meta_mut(), self.is_kept);
            if self.object.meta().owner_references.is_some() {
                ctx.label_owned(&owner.uid, self.object.meta_mut());
            }
            let entry = Entry {
                group: K::group(&kind.dynamic).into_owned(),
                version: K::version(&kind.dynamic).into_owned(),
                kind: kind.name(),
                plural: K::plural(&kind.dynamic).into_owned(),
                namespace: self.object.namespace().unwrap_or_default(),
                name: self.object.name_any(),
            };
            self.kind = Some(kind);
            Ok(entry)
        }
        .boxed()
    }

    fn name(&self) -> String {
        self.object.name_any()
    }

    fn is_kept(&self) -> bool {
        self.is_kept
    }

    fn apply<'a>(
        &'a self,
        ctx: &'a Ctx<()>,
        owner: &'a SetOwner,
    ) -> BoxFuture<'a, Result<AppliedMember, Error>> {
        async move {
            let kind = match &self.kind {
                Some(kind) => kind.clone(),
                None => ctx.kind_of(&self.object).await?,
            };
            let applied = ctx.apply_claimed(&kind, self.object.clone(), owner).await?;
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

impl Claim for SetOwner {
    fn holds(&self, found: &ObjectMeta) -> bool {
        self.owns(found)
    }

    async fn take<C: AnyObject>(&self, _: &Ctx<()>, object: &C, found: &ObjectMeta) -> Result<(), Error> {
        // Never adopt an object of another owner: it would be deleted as soon as it leaves the set.
        Err(self.refuse(describe_object(object), found).into())
    }
}

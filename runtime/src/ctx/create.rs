//! Making what an owner owns exactly once.

use kube::ResourceExt;
use kube::api::PostParams;
use serde::Serialize;

use super::ownership::{is_controlled_by, refuse_namesake};
use super::{Ctx, set_controller_reference};
use crate::cache::Selection;
use crate::error::{Error, OwnershipError};
use crate::object::{Key, Kind, Object, Scope, describe};

impl<S> Ctx<S> {
    /// Creates an object that `owner` owns as its controller, or returns the one that `owner` has already.
    ///
    /// It is for what is made once and then left to others, such as a Job, and for owners that must not take over what
    /// they find: unlike [`apply_owned`](Self::apply_owned), it neither changes an object that is there nor adopts one
    /// without a controller. Where a cache keeps the kind whole, what the cache has is not asked for.
    ///
    /// The object gets the owner's namespace if it names none; the field manager is the controller's name.
    ///
    /// # Errors
    /// [`OwnershipError`] when an object of this name is there and `owner` is not its controller, or scopes forbid the
    /// ownership; else what the API server answers, as [`kube::Error`].
    pub async fn create_owned<O: Object, C: Object + Serialize>(
        &self,
        owner: &O,
        mut child: C,
    ) -> Result<C, Error> {
        set_controller_reference(owner, &mut child)?;
        if let Some(present) = self.find_whole(&child) {
            return Ok(owned_already(owner, present)?);
        }
        let api = <C::Scope as Scope>::api::<C>(self.client(), child.meta().namespace.as_deref());
        let params = PostParams {
            field_manager: Some(self.controller().to_owned()),
            ..PostParams::default()
        };
        match self.written(api.create(&params, &child)).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                let present = api.get(&child.name_any()).await?;
                Ok(owned_already(owner, present)?)
            }
            created => {
                let created = created?;
                self.remember(&created);
                Ok(created)
            }
        }
    }

    /// The object of this name as the cache has it, if one keeps the kind whole.
    fn find_whole<C: Object>(&self, child: &C) -> Option<C> {
        let caches = &self.shared.caches;
        let cache = caches.find::<C>(&Kind::of_type(), &Selection::all())?;
        cache.get(&Key::of(child)).map(|found| (*found).clone())
    }
}

/// `present`, which is where `owner` wants an object of its own.
fn owned_already<O: Object, C: Object>(owner: &O, present: C) -> Result<C, OwnershipError> {
    if is_controlled_by(present.meta(), owner) {
        return Ok(present);
    }
    refuse_namesake(owner, &present)?;
    Err(OwnershipError::NotOwned {
        object: describe(&present),
        owner: describe(owner),
    })
}

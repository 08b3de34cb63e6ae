//! Plural names and scopes of kinds that are only known at runtime.
//!
//! This is a subset of client-go's RESTMapper with just what operators need. We look up each kind
//! once, using the discovery API. Errors aren't cached, since a CRD may be installed at any time.
//! If a kind is not served anymore, we forget about it, because its CRD may come back with a
//! different scope or plural name.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Client;
use kube::api::TypeMeta;
use kube::core::GroupVersionKind;

use crate::error::Error;
use crate::hash::HashMap;
use crate::object::DynamicKind;

/// The kinds that a manager has looked up. Clones share the same state.
#[derive(Clone, Default)]
pub(crate) struct Kinds(Arc<Mutex<HashMap<GroupVersionKind, DynamicKind>>>);

impl Kinds {
    /// For kinds declared by the operator, so that we don't have to look them up.
    pub(crate) fn add(&self, kind: DynamicKind) {
        self.lock().insert(kind.group_version_kind(), kind);
    }

    /// Looks up a kind with the discovery API unless we know it. Fails if the kind isn't served, or
    /// if the API server doesn't respond.
    pub(crate) async fn find(&self, client: &Client, kind: &GroupVersionKind) -> Result<DynamicKind, Error> {
        let known = self.lock().get(kind).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let found = DynamicKind::discover(client, kind).await?;
        self.add(found.clone());
        Ok(found)
    }

    /// Like [`find`](Self::find), but for the `TypeMeta` of an object. A malformed `apiVersion` is
    /// a terminal error.
    pub(crate) async fn find_types(&self, client: &Client, types: TypeMeta) -> Result<DynamicKind, Error> {
        let kind = GroupVersionKind::try_from(types);
        self.find(client, &kind.map_err(Error::terminal)?).await
    }

    /// Call this after a 404 for the resource of a kind.
    pub(crate) fn forget(&self, kind: &DynamicKind) {
        self.lock().remove(&kind.group_version_kind());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<GroupVersionKind, DynamicKind>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

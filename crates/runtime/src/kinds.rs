//! Plural names and scopes of kinds that are only known at runtime.
//!
//! A subset of client-go's RESTMapper with just what operators need. Each kind is looked up once
//! with the discovery API. Errors aren't cached, since a CRD may be installed at any time. Kinds
//! that are no longer served are forgotten, because the CRD may come back with a different scope or
//! plural name.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Client;
use kube::api::TypeMeta;
use kube::core::GroupVersionKind;

use crate::error::Error;
use crate::hash::HashMap;
use crate::object::DynamicKind;

/// Kinds that a manager has discovered. Clones share the same state.
#[derive(Clone, Default)]
pub(crate) struct Kinds(Arc<Mutex<HashMap<GroupVersionKind, DynamicKind>>>);

impl Kinds {
    /// Adds a kind declared by the operator, which then needs no discovery.
    pub(crate) fn add(&self, kind: DynamicKind) {
        self.lock().insert(kind.group_version_kind(), kind);
    }

    /// Returns a known kind, or looks it up with the discovery API. Fails if the kind isn't served,
    /// or if the API server doesn't respond.
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

    /// Must be called after a 404 for the resource of a kind.
    pub(crate) fn forget(&self, kind: &DynamicKind) {
        self.lock().remove(&kind.group_version_kind());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<GroupVersionKind, DynamicKind>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

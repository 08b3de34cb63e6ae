//! Plurals and scopes of kinds that are only known at run time.
//!
//! This is the part of client-go's RESTMapper that operators need. Each kind is looked up once in
//! the API server's discovery. Failures are not cached, because a CRD may be installed at any time.
//! A kind that the API server no longer serves is forgotten, because its CRD may come back with a
//! different scope or plural.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Client;
use kube::api::TypeMeta;
use kube::core::GroupVersionKind;

use crate::error::Error;
use crate::hash::HashMap;
use crate::object::DynamicKind;

/// The kinds that a manager has resolved, shared by all clones.
#[derive(Clone, Default)]
pub(crate) struct Kinds(Arc<Mutex<HashMap<GroupVersionKind, DynamicKind>>>);

impl Kinds {
    /// Adds a kind that the operator declares itself, so that it needs no discovery.
    pub(crate) fn add(&self, kind: DynamicKind) {
        self.lock().insert(kind.group_version_kind(), kind);
    }

    /// Returns a kind, looking it up in the API server's discovery on first use.
    ///
    /// # Errors
    /// Fails when the API server does not serve the kind, or does not respond.
    pub(crate) async fn find(&self, client: &Client, kind: &GroupVersionKind) -> Result<DynamicKind, Error> {
        let known = self.lock().get(kind).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let found = DynamicKind::discover(client, kind).await?;
        self.add(found.clone());
        Ok(found)
    }

    /// Resolves the kind of an object from its `TypeMeta`, like [`find`](Self::find).
    ///
    /// # Errors
    /// Fails like `find`, and with a terminal error when `apiVersion` is malformed.
    pub(crate) async fn find_types(&self, client: &Client, types: TypeMeta) -> Result<DynamicKind, Error> {
        let kind = GroupVersionKind::try_from(types);
        self.find(client, &kind.map_err(Error::terminal)?).await
    }

    /// Forgets a kind after the API server responded 404 to its resource.
    pub(crate) fn forget(&self, kind: &DynamicKind) {
        self.lock().remove(&kind.group_version_kind());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<GroupVersionKind, DynamicKind>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

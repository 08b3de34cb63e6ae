//! Plurals and scopes of the kinds that are known only at run time.
//!
//! It is the part of client-go's RESTMapper that operators need. A kind is looked up in the API server's discovery once.
//! Failures are not remembered, because a CRD may be installed at any time, and a kind that the API server no longer
//! serves is forgotten, because the CRD may come back with another scope or plural.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Client;
use kube::api::TypeMeta;
use kube::core::GroupVersionKind;

use crate::error::Error;
use crate::object::DynamicKind;

/// The kinds that a manager knows. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Kinds(Arc<Mutex<HashMap<GroupVersionKind, DynamicKind>>>);

impl Kinds {
    /// Adds a kind that the operator has named, so that it is not looked up.
    pub(crate) fn add(&self, kind: DynamicKind) {
        self.lock().insert(kind.group_version_kind(), kind);
    }

    /// Returns a kind, from the API server's discovery on first use.
    ///
    /// # Errors
    /// When the API server does not serve the kind, or does not respond.
    pub(crate) async fn find(&self, client: &Client, kind: &GroupVersionKind) -> Result<DynamicKind, Error> {
        let known = self.lock().get(kind).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let found = DynamicKind::discover(client, kind).await?;
        self.add(found.clone());
        Ok(found)
    }

    /// [`find`](Self::find) by the types of an object.
    ///
    /// # Errors
    /// Those of `find`; a terminal one for an API version that is none.
    pub(crate) async fn find_types(&self, client: &Client, types: TypeMeta) -> Result<DynamicKind, Error> {
        let kind = GroupVersionKind::try_from(types);
        self.find(client, &kind.map_err(Error::terminal)?).await
    }

    /// Forgets a kind whose resource the API server has not found.
    pub(crate) fn forget(&self, kind: &DynamicKind) {
        self.lock().remove(&kind.group_version_kind());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<GroupVersionKind, DynamicKind>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

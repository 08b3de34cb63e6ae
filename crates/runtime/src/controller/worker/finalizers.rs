//! Finalizers of a controller's objects: added before the first reconcile, removed after the cleanup.

use std::fmt::Debug;
use std::sync::Arc;

use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde::Serialize;
use serde_json::json;

use super::Worker;
use crate::action::Action;
use crate::cache::dynamic_to_json;
use crate::controller::handlers::Finalizer;
use crate::ctx::to_test_conflict;
use crate::error::Error;
use crate::object::Watchable;

impl<K: Watchable, S: Send + Sync + 'static> Worker<K, S> {
    /// Adds the missing finalizers to the object and returns it, or `None` if it is gone.
    pub(super) async fn add_missing_finalizers(&self, object: Arc<K>) -> Result<Option<Arc<K>>, Error> {
        let finalizers = self.handlers.finalizers.iter();
        let names = finalizers.map(|finalizer| &finalizer.name);
        let missing: Vec<&String> = names.filter(|name| !object.finalizers().contains(name)).collect();
        if missing.is_empty() {
            return Ok(Some(object));
        }
        match self.add_finalizers(&object, missing).await {
            Ok(object) => Ok(Some(Arc::new(object))),
            // A deletion event follows.
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Runs the cleanups of an object that is being deleted, in the order in which their finalizers
    /// were added to the controller, until one asks to be called again. Once all are done, only
    /// other controllers' finalizers hold the object.
    ///
    /// Each cleanup receives the object returned by the removal of the previous finalizer, so that
    /// it can update the object.
    pub(in crate::controller) async fn clean_up(&self, mut object: Arc<K>) -> Result<Action, Error> {
        for Finalizer { name, cleanup } in &self.handlers.finalizers {
            let Some(index) = object.finalizers().iter().position(|present| present == name) else {
                continue;
            };
            let action = cleanup(Arc::clone(&object), self.ctx.clone()).await?;
            if action.requeue_after().is_some() {
                return Ok(action);
            }
            match self.remove_finalizer(&object, index, name).await? {
                Some(left) => object = Arc::new(left),
                None => break,
            }
        }
        Ok(Action::await_change())
    }

    /// Adds finalizers to the object.
    ///
    /// A merge patch replaces the whole list. Because it includes the resource version, it fails
    /// with a conflict rather than dropping a finalizer that another controller has just added.
    async fn add_finalizers(&self, object: &K, added: Vec<&String>) -> Result<K, kube::Error> {
        let finalizers: Vec<&String> = object.finalizers().iter().chain(added).collect();
        let patch = json!({
            "metadata": { "resourceVersion": object.resource_version(), "finalizers": finalizers }
        });
        self.patch(object, &Patch::Merge(patch)).await
    }

    /// Removes the finalizer from the object, and returns the updated object, or `None` if it is
    /// gone.
    ///
    /// The JSON patch first tests that it is still the same object, because an object recreated
    /// under its name needs its own cleanup. It also tests that the entry at `index` still has this
    /// name: if the list has changed in the meantime, another controller's finalizer must not be
    /// removed. A failed test is reported as a conflict. Testing the resource version instead would
    /// not work, because the cleanup may have updated the object, for example its status.
    pub(in crate::controller) async fn remove_finalizer(
        &self,
        object: &K,
        index: usize,
        name: &str,
    ) -> Result<Option<K>, Error> {
        let path = format!("/metadata/finalizers/{index}");
        let patch = serde_json::from_value(json!([
            { "op": "test", "path": "/metadata/uid", "value": object.uid() },
            { "op": "test", "path": path, "value": name },
            { "op": "remove", "path": path },
        ]))?;
        match self.patch(object, &Patch::Json::<()>(patch)).await {
            Ok(left) => Ok(Some(left)),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            Err(error) => Err(to_test_conflict(error).into()),
        }
    }

    /// Patches the object and shows the result to readers of the caches.
    async fn patch<P: Serialize + Debug>(&self, object: &K, patch: &Patch<P>) -> Result<K, kube::Error> {
        let kind = self.cache.kind();
        let api = kind.api(self.ctx.client(), object.meta().namespace.as_deref());
        let params = PatchParams {
            field_manager: Some(self.ctx.controller().to_owned()),
            ..PatchParams::default()
        };
        let (name, ctx) = (object.name_any(), &self.ctx);
        ctx.send_write(kind, dynamic_to_json, api.patch(&name, &params, patch))
            .await
    }
}

//! Adds finalizers before the first reconcile of an object, and removes them after the cleanup.

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
    /// Returns `None` if the object is gone.
    pub(super) async fn add_missing_finalizers(&self, object: Arc<K>) -> Result<Option<Arc<K>>, Error> {
        let finalizers = self.handlers.finalizers.iter();
        let names = finalizers.map(|finalizer| &finalizer.name);
        let missing: Vec<&String> = names.filter(|name| !object.finalizers().contains(name)).collect();
        if missing.is_empty() {
            return Ok(Some(object));
        }
        match self.add_finalizers(&object, missing).await {
            Ok(object) => Ok(Some(Arc::new(object))),
            // A deletion event will follow.
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Runs the cleanups of an object that is being deleted, in the order in which the finalizers
    /// were registered. Stops at the first cleanup that asks to be called again. The object may
    /// still have finalizers of other controllers afterwards.
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
                // A cleanup may update the object, so pass the latest version to the next one.
                Some(left) => object = Arc::new(left),
                None => break,
            }
        }
        Ok(Action::await_change())
    }

    async fn add_finalizers(&self, object: &K, added: Vec<&String>) -> Result<K, kube::Error> {
        let finalizers: Vec<&String> = object.finalizers().iter().chain(added).collect();
        // Merge patches cannot append to a list, so this replaces all finalizers. The resource
        // version turns a concurrent change by another controller into a conflict; otherwise its
        // finalizer could be lost.
        let patch = json!({
            "metadata": { "resourceVersion": object.resource_version(), "finalizers": finalizers }
        });
        self.patch(object, &Patch::Merge(patch)).await
    }

    /// Returns `None` if the object is gone.
    pub(in crate::controller) async fn remove_finalizer(
        &self,
        object: &K,
        index: usize,
        name: &str,
    ) -> Result<Option<K>, Error> {
        let path = format!("/metadata/finalizers/{index}");
        // Test the UID, because a recreated object with the same name needs a cleanup of its own.
        // Also test that the entry at `index` is still our finalizer, or we might remove another
        // controller's. A failed test is reported as a conflict.
        //
        // Testing the resource version isn't an option, since the cleanup may have updated the
        // object (e.g. its status).
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

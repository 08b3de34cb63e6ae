//! Access to the stored state for programs that drive the server step by step, such as simulations.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rbuilder_kubernetes::crd::Crd;
use rbuilder_kubernetes::gvk;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::failure::Failure;
use super::http_messages::{ResponseBody, json_response};
use super::kinds::ResourceId;
use super::past::Past;
use super::results::Results;
use super::server::{ApiServer, Shared};
use super::webhooks::WebhookHandler;

/// An object stored by the server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredObject {
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name of the kind.
    pub resource: String,
    /// Whether the kind comes from a CRD or a Rust type rather than being built in.
    pub is_custom: bool,
    /// The object in its storage version.
    pub object: Arc<Value>,
}

impl ApiServer {
    /// Sets the server's start time, from which it advances with tokio's clock. Defaults to the
    /// current time.
    pub fn start_at(&self, time: Timestamp) {
        self.shared().state().start_clock(time);
    }

    /// Returns a new server with the same kinds, objects, roles and webhooks, sharing memory
    /// copy-on-write. Faults, recorded requests and watches aren't copied.
    #[must_use]
    pub fn copy(&self) -> Self {
        let state = self.shared().state().copy();
        Self::with_shared(Shared::new(state))
    }

    /// Caches the results of writes. This server and its [copies](Self::copy) then reuse the result
    /// when the same write to the same object is repeated, which is faster but yields identical
    /// responses. Servers with webhooks don't use the cache.
    pub fn repeat_results(&self) {
        self.shared().state().results = Some(Results::default());
    }

    /// Returns the response to a rejected request, with the reason that corresponds to the status
    /// code.
    #[must_use]
    pub fn refusal(code: u16, message: &str) -> http::Response<ResponseBody> {
        json_response(code, &Failure::of_code(code, message).to_json())
    }

    /// Returns a receiver that is notified after each request.
    #[must_use]
    pub fn notifications(&self) -> watch::Receiver<u64> {
        self.shared().changed.subscribe()
    }

    /// The latest resource version.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.shared().state().version()
    }

    /// All stored objects sorted by group, resource, namespace and name, except CRDs and the
    /// namespaces that every cluster has.
    ///
    /// If the server [collects garbage](Self::collect_garbage), runs the steps that are due
    /// first.
    #[must_use]
    pub fn objects(&self) -> Vec<StoredObject> {
        let mut state = self.shared().state();
        let ran = state.run_collector();
        let all = state.everything().filter(|(id, key, _)| {
            id.group != "apiextensions.k8s.io"
                && !(id.plural == "namespaces" && (key.1 == "default" || key.1.starts_with("kube-")))
        });
        let objects = all
            .map(|(id, _, object)| StoredObject {
                group: id.group.clone(),
                resource: id.plural.clone(),
                is_custom: state.kind(id).is_some_and(|definition| definition.custom),
                object: object.clone(),
            })
            .collect();
        drop(state);
        if ran {
            self.shared().wake();
        }
        objects
    }

    /// The plural name of a served kind, and whether it is namespaced.
    #[must_use]
    pub fn resource_of(&self, group: &str, kind: &str) -> Option<(String, bool)> {
        let state = self.shared().state();
        let mut kinds = state.kinds();
        let found = kinds.find(|definition| definition.id.group == group && definition.kind == kind)?;
        Some((found.id.plural.clone(), found.namespaced))
    }

    /// All CRDs.
    #[must_use]
    pub fn crds(&self) -> Vec<Arc<Value>> {
        let state = self.shared().state();
        state
            .objects(&ResourceId::crds())
            .map(|(_, crd)| Arc::clone(crd))
            .collect()
    }

    /// Returns the CRD schema of a version of a kind, as JSON.
    #[must_use]
    pub fn schema_of(&self, group: &str, plural: &str, version: &str) -> Option<Value> {
        let state = self.shared().state();
        let key = (String::new(), gvk::qualify(plural, group));
        let crd = state.get(&ResourceId::crds(), &key)?;
        let schema = Crd::of(crd).version(version)?.schema();
        Some(schema.clone()).filter(|schema| !schema.is_null())
    }

    /// When the next garbage collection step is due, if any.
    #[must_use]
    pub fn next_collection(&self) -> Option<Instant> {
        self.shared().state().next_collection()
    }

    /// Simulates a stale watch cache: for the given duration, lists and watches that accept any
    /// resource version start with the objects as of this version. The watches receive later
    /// changes once the cache has caught up. Overrides previous calls.
    pub fn serve_past(&self, version: u64, lasts: Duration) {
        self.set_past(version, None, lasts);
    }

    /// Like [`serve_past`](Self::serve_past), for a single kind, e.g. `deployments` in the group
    /// `apps`.
    pub fn serve_past_of(&self, group: &str, plural: &str, version: u64, lasts: Duration) {
        self.set_past(version, Some(ResourceId::new(group, plural)), lasts);
    }

    fn set_past(&self, version: u64, kind: Option<ResourceId>, lasts: Duration) {
        let until = Instant::now() + lasts;
        self.shared().state().past = Some(Past { version, kind, until });
    }

    /// Sets the interval of watch bookmarks. Defaults to a minute.
    pub fn bookmark_every(&self, interval: Duration) {
        self.shared().state().bookmark_interval = interval;
    }

    /// Replaces the installed webhooks. With `None`, no webhooks are called, and objects that need
    /// a conversion can't be read. The conversion of CRDs remains unchanged.
    pub fn serve_webhooks(&self, webhooks: Option<WebhookHandler>) {
        self.shared().state().webhooks = webhooks;
    }
}

impl StoredObject {
    /// Returns a metadata field, or an empty string if it's absent.
    #[must_use]
    pub fn metadata(&self, field: &str) -> &str {
        self.object["metadata"][field].as_str().unwrap_or_default()
    }

    /// The object as JSON.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.object
    }
}

//! Access to the stored state for programs that drive the server step by step, such as a simulation.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
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

/// An object that the server stores.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredObject {
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name of the kind.
    pub resource: String,
    /// Whether the kind is from a CRD or a Rust type, as opposed to a built-in kind.
    pub is_custom: bool,
    /// The object, in its storage version.
    pub object: Arc<Value>,
}

impl ApiServer {
    /// Sets the server's time, from which it continues with tokio's clock. By default, a server
    /// starts at the current time.
    #[must_use]
    pub fn starting_at(self, time: Timestamp) -> Self {
        self.shared().state().start_clock(time);
        self
    }

    /// Returns a new server with the same kinds, objects, roles and webhooks. The copies share
    /// memory until they change. Faults, recorded requests and watches are not copied.
    #[must_use]
    pub fn copy(&self) -> Self {
        let state = self.shared().state().copy();
        Self::with_shared(Shared::new(state))
    }

    /// Keeps the results of writes, and repeats them for the same write to the same object, in this server and
    /// its [copies](Self::copy). Responses are the same as without, but take less time. Writes to a server
    /// with webhooks are not repeated.
    #[must_use]
    pub fn repeating_results(self) -> Self {
        self.shared().state().results = Some(Results::default());
        self
    }

    /// Returns the response with which the server rejects a request, with the reason that
    /// corresponds to the status code.
    #[must_use]
    pub fn refusal(code: u16, message: &str) -> http::Response<ResponseBody> {
        json_response(code, &Failure::of_code(code, message).to_json())
    }

    /// Returns a receiver that is notified after each request.
    #[must_use]
    pub fn notifications(&self) -> watch::Receiver<u64> {
        self.shared().changed.subscribe()
    }

    /// Returns the latest resource version.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.shared().state().version()
    }

    /// Returns all stored objects except namespaces that every cluster has and CRDs, sorted by group,
    /// resource, namespace and name.
    ///
    /// If the server [collects garbage](Self::collecting_garbage), it first takes the steps that are
    /// due.
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

    /// Returns the plural name of a served kind, and whether it is namespaced.
    #[must_use]
    pub fn resource_of(&self, group: &str, kind: &str) -> Option<(String, bool)> {
        let state = self.shared().state();
        let mut kinds = state.kinds();
        let found = kinds.find(|definition| definition.id.group == group && definition.kind == kind)?;
        Some((found.id.plural.clone(), found.namespaced))
    }

    /// Returns the CRDs.
    #[must_use]
    pub fn crds(&self) -> Vec<Arc<Value>> {
        let state = self.shared().state();
        state
            .objects(&ResourceId::crds())
            .map(|(_, crd)| Arc::clone(crd))
            .collect()
    }

    /// Returns the schema of one of a kind's versions from a CRD, as JSON.
    #[must_use]
    pub fn schema_of(&self, group: &str, plural: &str, version: &str) -> Option<Value> {
        let state = self.shared().state();
        let key = (String::new(), format!("{plural}.{group}"));
        let crd = state.get(&ResourceId::crds(), &key)?;
        let mut versions = crd["spec"]["versions"].as_array()?.iter();
        let found = versions.find(|found| found["name"] == version)?;
        found.pointer("/schema/openAPIV3Schema").cloned()
    }

    /// Returns when the garbage collector takes its next step, if any is planned.
    #[must_use]
    pub fn next_collection(&self) -> Option<Instant> {
        self.shared().state().next_collection()
    }

    /// Simulates a stale watch cache: for this time, lists and watches that accept any resource version
    /// start with the objects of this version. Such watches receive the later changes afterwards.
    /// Replaces an earlier past.
    pub fn serve_past(&self, version: u64, lasts: Duration) {
        self.set_past(version, None, lasts);
    }

    /// Does the same for a single kind, such as `deployments` of the group `apps`.
    pub fn serve_past_of(&self, group: &str, plural: &str, version: u64, lasts: Duration) {
        self.set_past(version, Some(ResourceId::new(group, plural)), lasts);
    }

    fn set_past(&self, version: u64, kind: Option<ResourceId>, lasts: Duration) {
        let until = Instant::now() + lasts;
        self.shared().state().past = Some(Past { version, kind, until });
    }

    /// Sets how often watches receive a bookmark. Defaults to a minute.
    pub fn bookmark_every(&self, interval: Duration) {
        self.shared().state().bookmark_interval = interval;
    }

    /// Calls these webhooks from now on, in place of those that were installed. `None` calls none; then
    /// objects that need a conversion cannot be read. The conversion of CRDs stays as it is.
    pub fn serve_webhooks(&self, webhooks: Option<WebhookHandler>) {
        self.shared().state().webhooks = webhooks;
    }
}

impl StoredObject {
    /// Returns a metadata field, or an empty string.
    #[must_use]
    pub fn metadata(&self, field: &str) -> &str {
        self.object["metadata"][field].as_str().unwrap_or_default()
    }

    /// Returns the object as JSON.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.object
    }
}

//! An operator's webhooks as a function.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

/// HTTP status and body.
type Reply = Pin<Box<dyn Future<Output = (u16, Vec<u8>)> + Send>>;

/// Answers the reviews that the server would send to a webhook server.
#[derive(Clone)]
pub struct WebhookHandler {
    handle: Arc<dyn Fn(String, Vec<u8>) -> Reply + Send + Sync>,
    count: Arc<AtomicU64>,
    converted_crds: Vec<String>,
}

impl WebhookHandler {
    /// Creates a handler from a function that maps the path and body of a request to the HTTP
    /// status and body of the response.
    pub fn new<F>(handle: impl Fn(String, Vec<u8>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = (u16, Vec<u8>)> + Send + 'static,
    {
        Self {
            handle: Arc::new(move |path, body| Box::pin(handle(path, body))),
            count: Arc::default(),
            converted_crds: Vec::new(),
        }
    }

    /// Adds the names of CRDs whose objects the operator converts at `/convert`, e.g.
    /// `memos.example.com`.
    #[must_use]
    pub fn converting(mut self, crds: impl IntoIterator<Item = String>) -> Self {
        self.converted_crds.extend(crds);
        self
    }

    /// Checks if the operator converts any CRD's objects.
    #[must_use]
    pub fn converts(&self) -> bool {
        !self.converted_crds.is_empty()
    }

    pub(crate) fn converted_crds(&self) -> &[String] {
        &self.converted_crds
    }

    /// Configures the webhook conversion in a CRD, unless it already has one or the operator
    /// doesn't convert its objects.
    pub(crate) fn set_conversion(&self, crd: &mut Value) {
        let name = crd["metadata"]["name"].as_str().unwrap_or_default();
        let is_converted = self.converted_crds.iter().any(|crd| crd == name);
        if !is_converted || crd["spec"]["conversion"]["strategy"] == "Webhook" {
            return;
        }
        crd["spec"]["conversion"] = json!({
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {
                    "service": { "name": "webhook-service", "namespace": "system", "path": "/convert" },
                },
                "conversionReviewVersions": ["v1"],
            },
        });
    }

    pub(super) fn handle(&self, path: &str, body: Vec<u8>) -> Reply {
        (self.handle)(path.to_owned(), body)
    }

    /// The uid of a new review, reproducible across runs.
    pub(super) fn uid(&self) -> String {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        format!("00000000-0000-4000-9000-{number:012x}")
    }
}

impl fmt::Debug for WebhookHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookHandler").finish_non_exhaustive()
    }
}

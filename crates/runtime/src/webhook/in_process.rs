//! Handles reviews of the fake API server directly, without opening a connection.

use std::sync::Arc;

use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;

use super::Routes;
use super::memory::default_total;
use crate::fake::WebhookHandler;
use crate::metrics::Metrics;
use crate::server::RequestBody;

/// Returns a handler equivalent to the webhook server. `memory` is the total for all reviews in
/// bytes, or `None` for the default.
pub(crate) fn handler_in_process(routes: Routes, metrics: &Metrics, memory: Option<usize>) -> WebhookHandler {
    let memory = memory.unwrap_or_else(default_total);
    let handle = Arc::new(routes.into_handler(metrics, memory));
    WebhookHandler::new(move |path, body| {
        let handle = Arc::clone(&handle);
        async move {
            let request = http::Request::post(path).header(CONTENT_TYPE, "application/json");
            let request = match request.body(RequestBody::in_process(body)) {
                Ok(request) => request,
                Err(error) => return (400, error.to_string().into_bytes()),
            };
            let reply = handle(request).await;
            let status = reply.status().as_u16();
            // Can't fail, since the body is complete.
            let body = reply
                .into_body()
                .collect()
                .await
                .map_or_else(|never| match never {}, |body| body.to_bytes().to_vec());
            (status, body)
        }
    })
}

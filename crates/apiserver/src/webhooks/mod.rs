//! Webhooks of the operator under test, called in-process.
//!
//! Requests are processed under a lock on the state, and operator code must not run under this
//! lock. So if a request needs a review, it is aborted before it changes anything, the webhook is
//! called without the lock, and the request is retried with the response (`reviews`). Retries reuse
//! values taken from the state, such as the time and generated names (`store::Taken`), so that they
//! ask the same questions and find the recorded responses.
//!
//! Configurations are stored objects, as on a real server: `configuration` decides which webhooks
//! match, and `admission` calls them in order and processes their responses. `conversion` calls the
//! CRDs' webhooks.

mod admission;
mod attributes;
mod configuration;
mod conversion;
mod handler;
mod reviews;

pub(super) use conversion::ConversionHook;
pub use handler::WebhookHandler;
pub(super) use reviews::Reviews;

//! Webhooks of the operator under test, called in its own process.
//!
//! A request is processed while the state is locked, and no function of the operator may run under
//! this lock. So if a request needs a review, it is aborted before it changes anything, the webhook
//! is called without the lock, and the request is processed again with the response (`reviews`). It
//! reuses the values that it took from the state, such as the time and generated names
//! (`store::Taken`), so that it asks the same questions again and gets the recorded responses.
//!
//! The configurations are stored objects, as on a real server: `configuration` decides which
//! webhooks match, and `admission` calls them in order and handles their responses. `conversion`
//! calls the CRDs' webhooks.

mod admission;
mod attributes;
mod configuration;
mod conversion;
mod handler;
mod reviews;

pub(super) use conversion::ConversionHook;
pub use handler::{WebhookHandler, Webhooks};
pub(super) use reviews::Reviews;

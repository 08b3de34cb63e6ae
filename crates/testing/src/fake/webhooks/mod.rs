//! Webhooks of the operator under test, called in its own process.
//!
//! A request is processed under the lock of the state, where no function of the operator may run. So a
//! request that needs a review is abandoned before it changes anything, the webhook is called without the
//! lock, and the request is processed again with the answer (`reviews`). It repeats what it has taken from
//! the state, such as the time and generated names (`store::Taken`), so that it asks the same questions
//! again, and gets the noted answers.
//!
//! The configurations are stored objects, as on a real server: `configuration` decides which webhooks
//! match, and `admission` calls them in order and acts on their answers. `conversion` calls the
//! webhooks of CRDs.

mod admission;
mod attributes;
mod configuration;
mod conversion;
mod handler;
mod reviews;

pub(super) use conversion::ConversionHook;
pub use handler::{WebhookHandler, Webhooks};
pub(super) use reviews::Reviews;

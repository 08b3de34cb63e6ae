//! The kind had another name when the webhook was written.
pub mod api;

use rbuilder::webhook;

use crate::api::Cup;

#[webhook(validating)]
fn validate(cup: &Cup) {}

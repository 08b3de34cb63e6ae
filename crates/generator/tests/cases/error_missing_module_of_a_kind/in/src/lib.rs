//! The kind of the webhook is in the file that does not exist.
pub mod api;

use rbuilder::webhook;

use crate::api::Cup;

#[webhook(validating)]
fn validate(cup: &Cup) {}

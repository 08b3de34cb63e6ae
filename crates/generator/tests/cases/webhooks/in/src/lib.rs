//! Webhooks in every place and with every signature: what the marker leaves open follows from the parameters.
pub mod api;
pub mod webhook;

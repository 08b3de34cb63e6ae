// Copyright Shopkeepers
// SPDX-License-Identifier: Apache-2.0

//! Memcached webhooks: defaulting.

use kube::ResourceExt;
use rbuilder::webhook::AdmissionRequest;
use rbuilder::{Webhook, webhook};
use tracing::info;

use crate::api::v1alpha1::Memcached;

/// Returns the webhooks for the manager.
pub fn webhook() -> Webhook<Memcached> {
    Webhook::new().defaulter(default)
}

/// Sets default values. Must be idempotent: the API server may call it more than once for one request.
#[webhook(mutating)]
fn default(object: &mut Memcached, _request: &AdmissionRequest) {
    info!(name = object.name_any(), "defaulting");

    // Set defaults that depend on other fields here. For constant defaults use the marker `#[kube(default = …)]`.
}

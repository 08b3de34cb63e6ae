// Copyright Shopkeepers
// SPDX-License-Identifier: Apache-2.0

//! The webhooks of Memcached: defaults.

use kube::ResourceExt;
use rbuilder::webhook::AdmissionRequest;
use rbuilder::{Webhook, webhook};
use tracing::info;

use crate::api::v1alpha1::Memcached;

/// The webhooks as the manager serves them.
pub fn webhook() -> Webhook<Memcached> {
    Webhook::new().defaulter(default)
}

/// Fills in what an object leaves out. May be called again for what it has filled in already.
#[webhook(mutating)]
fn default(object: &mut Memcached, _request: &AdmissionRequest) {
    info!(name = object.name_any(), "defaulting");

    // Set what depends on other fields here. A default that does not is better a marker: `#[crd(default = …)]`.
}

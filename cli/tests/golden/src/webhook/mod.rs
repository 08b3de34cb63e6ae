// Copyright Shopkeepers
// SPDX-License-Identifier: Apache-2.0

//! The webhooks: one module for each version, and in it one for each kind.

pub mod v1alpha1;

use rbuilder::Manager;

/// Hands every webhook to the manager.
pub fn register(manager: Manager) -> Manager {
    manager.webhook(v1alpha1::memcached::webhook())
}

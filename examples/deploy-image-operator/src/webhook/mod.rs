// SPDX-License-Identifier: Apache-2.0

//! What the API server asks before it stores an object: one module per kind.

pub mod memcached;

use rbuilder::Manager;

/// Hands every webhook to the manager.
pub fn register(manager: Manager) -> Manager {
    manager.webhook(memcached::webhook())
}

// SPDX-License-Identifier: Apache-2.0

//! Webhooks, by version and kind.

pub mod v1;

use rbuilder::Manager;

/// Registers all webhooks.
pub fn register(manager: Manager) -> Manager {
    manager.webhook(v1::cron_job::webhook())
}

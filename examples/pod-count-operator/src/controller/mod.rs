// SPDX-License-Identifier: Apache-2.0

//! Controllers, one module each.

pub mod replica_set;

use rbuilder::{Manager, rbac};

/// Registers all controllers. The manager itself needs to create events.
#[rbac(
    groups = "events.k8s.io",
    resources = "events",
    verbs = ["create", "patch"]
)]
pub fn register(manager: Manager) -> Manager {
    manager.controller(replica_set::controller())
}

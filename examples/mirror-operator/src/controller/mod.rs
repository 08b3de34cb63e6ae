// SPDX-License-Identifier: Apache-2.0

//! Controllers, one module each.

pub mod config_mirror;

use rbuilder::{Manager, rbac};

/// Registers all controllers. The manager itself needs to create events.
#[rbac(
    groups = "events.k8s.io",
    resources = "events",
    verbs = ["create", "patch"]
)]
pub fn register(mut manager: Manager) -> Manager {
    let edge = manager.cluster(config_mirror::edge());
    manager.controller(config_mirror::controller(edge))
}

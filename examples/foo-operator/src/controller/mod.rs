// SPDX-License-Identifier: Apache-2.0

//! The controllers: one module each.

pub mod foo;

use rbuilder::{Manager, rbac};

/// Hands every controller to the manager. The permission is the manager's own: it records events.
#[rbac(
    groups = ["", "events.k8s.io"],
    resources = "events",
    verbs = ["create", "patch"]
)]
pub fn register(manager: Manager) -> Manager {
    manager.controller(foo::controller())
}

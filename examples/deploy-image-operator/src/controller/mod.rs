// SPDX-License-Identifier: Apache-2.0

//! The controllers: one module each.

mod deployment;
pub mod memcached;

use rbuilder::{Manager, rbac};

/// Hands every controller to the manager; `image` is what memcached instances run. The permission is the manager's
/// own: it records events.
#[rbac(
    groups = ["", "events.k8s.io"],
    resources = "events",
    verbs = ["create", "patch"]
)]
pub fn register(manager: Manager, image: Option<String>) -> Manager {
    manager.controller(memcached::controller(image))
}

// SPDX-License-Identifier: Apache-2.0

//! Controllers, one module each.

mod deployment;
pub mod memcached;

use rbuilder::{Manager, rbac};

/// Registers all controllers; memcached instances run `image`. The manager itself needs to create events.
#[rbac(
    groups = ["", "events.k8s.io"],
    resources = "events",
    verbs = ["create", "patch"]
)]
pub fn register(manager: Manager, image: Option<String>) -> Manager {
    manager.controller(memcached::controller(image))
}

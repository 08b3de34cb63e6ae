// SPDX-License-Identifier: Apache-2.0

//! The webhooks: what the API server asks before it stores an object, and where it needs another version of one.

pub mod v1;

use rbuilder::{Manager, rbac};

/// Hands every webhook to the manager. The permissions are the manager's own: it keeps the certificate of the webhook
/// server in a Secret, and tells the API server about it.
#[rbac(
    groups = "",
    resources = "secrets",
    verbs = "create",
    namespace = "system"
)]
#[rbac(
    groups = "",
    resources = "secrets",
    resource_names = "webhook-server-cert",
    verbs = ["get", "list", "watch", "update"],
    namespace = "system"
)]
#[rbac(
    groups = "admissionregistration.k8s.io",
    resources = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
    verbs = ["get", "list", "watch", "update"]
)]
#[rbac(
    groups = "apiextensions.k8s.io",
    resources = "customresourcedefinitions",
    resource_names = "cronjobs.batch.tutorial.kubebuilder.io",
    verbs = ["get", "list", "watch", "update"]
)]
pub fn register(manager: Manager) -> Manager {
    manager.webhook(v1::cron_job::webhook())
}

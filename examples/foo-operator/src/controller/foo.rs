// SPDX-License-Identifier: Apache-2.0

//! The controller of Foo: manages the Deployment that a Foo names, and leaves foreign Deployments
//! alone.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use rbuilder::{ApplySet, Controller, Ctx, Error, OwnershipError, Result, predicate, rbac};
use serde_json::json;

use crate::api::v1alpha1::{Foo, FooStatus};

/// The reporter of events and the field manager of applies.
const NAME: &str = "sample-controller";

/// State shared by all reconciles.
#[derive(Debug, Default)]
pub struct State {}

/// Returns the controller that the manager runs.
pub fn controller() -> Controller<Foo, State> {
    Controller::new(reconcile, State::default())
        .named(NAME)
        // Ignore status changes, because the controller itself writes the status.
        .filter(predicate::generation_changed())
        .owns::<Deployment>()
        .concurrency(2)
}

/// Brings the Deployment of a Foo to its desired state and reports the number of available
/// replicas. If the Foo names a different Deployment, the previous one is deleted.
#[rbac(
    groups = "samplecontroller.k8s.io",
    resources = "foos",
    verbs = ["get", "list", "watch", "patch"]
)]
#[rbac(groups = "samplecontroller.k8s.io", resources = "foos/status", verbs = ["get", "patch"])]
#[rbac(groups = "samplecontroller.k8s.io", resources = "foos/finalizers", verbs = ["update"])]
#[rbac(
    groups = "apps",
    resources = "deployments",
    verbs = ["get", "list", "watch", "create", "patch", "delete"]
)]
pub async fn reconcile(object: Arc<Foo>, ctx: Ctx<State>) -> Result {
    if object.spec.deployment_name.is_empty() {
        // A retry does not help, and a change of the Foo reconciles it anyway.
        return Err(Error::terminal("deployment name must be specified"));
    }
    let name = &object.spec.deployment_name;
    let set = ApplySet::new().add(desired_deployment(&object)?);
    // Unlike `apply_owned`, a set does not adopt a Deployment that nobody controls.
    let applied = match ctx.apply_set(&*object, set).await {
        Err(error) if is_taken(&error) => {
            let message = taken(name);
            ctx.warning(&*object, "ErrResourceExists", "Sync", &message);
            return Err(Error::new(message));
        }
        applied => applied?,
    };
    if let Some(deployment) = applied.get::<Deployment>(name) {
        ctx.apply_status(&*object, observed_status(deployment))
            .await?;
    }
    ctx.normal(&*object, "Synced", "Sync", "Foo synced successfully");
    Ok(applied.action())
}

/// Returns `true` if a Deployment of this name exists that does not belong to the Foo.
fn is_taken(error: &Error) -> bool {
    error.downcast_ref::<OwnershipError>().is_some() && !error.is_owner_terminating()
}

fn taken(deployment: &str) -> String {
    format!("Resource {deployment:?} already exists and is not managed by Foo")
}

fn observed_status(deployment: &Deployment) -> FooStatus {
    let status = deployment.status.as_ref();
    let available = status.and_then(|status| status.available_replicas);
    FooStatus {
        available_replicas: available.unwrap_or_default(),
    }
}

/// Returns the desired Deployment of a Foo.
fn desired_deployment(object: &Foo) -> Result<Deployment> {
    let labels = json!({"app": "nginx", "controller": object.name_any()});
    Ok(serde_json::from_value(json!({
        "metadata": {"name": object.spec.deployment_name},
        "spec": {
            "replicas": object.spec.replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "nginx", "image": "nginx:latest"}]},
            },
        },
    }))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_quotes_the_deployment() {
        let expected = "Resource \"web\" already exists and is not managed by Foo";
        assert_eq!(taken("web"), expected);
    }

    #[test]
    fn deployment_without_status_has_no_available_replicas() {
        let status = observed_status(&Deployment::default());
        assert_eq!(status.available_replicas, 0);
    }
}

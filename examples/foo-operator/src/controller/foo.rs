// SPDX-License-Identifier: Apache-2.0

//! The controller of Foo: keeps the Deployment that a Foo names, and leaves Deployments of others alone.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use rbuilder::{Action, Controller, Ctx, Error, OwnershipError, Result, predicate, rbac};
use serde_json::json;

use crate::api::v1alpha1::{Foo, FooStatus};

/// The reporter of the events, and the field manager of what is applied.
const NAME: &str = "sample-controller";

/// State shared by all reconciles.
#[derive(Debug, Default)]
pub struct State {}

/// Returns the controller that the manager runs.
pub fn controller() -> Controller<Foo, State> {
    Controller::new(reconcile, State::default())
        .named(NAME)
        // The controller itself writes the status, so a change of it is no reason to reconcile.
        .filter(predicate::generation_changed())
        .owns::<Deployment>()
        .concurrency(2)
}

/// Brings the Deployment of a Foo to its desired state and reports how many of its replicas are available.
#[rbac(groups = "samplecontroller.k8s.io", resources = "foos", verbs = ["get", "list", "watch"])]
#[rbac(groups = "samplecontroller.k8s.io", resources = "foos/status", verbs = ["get", "patch"])]
#[rbac(groups = "samplecontroller.k8s.io", resources = "foos/finalizers", verbs = ["update"])]
#[rbac(
    groups = "apps",
    resources = "deployments",
    verbs = ["get", "list", "watch", "create", "patch"]
)]
pub async fn reconcile(object: Arc<Foo>, ctx: Ctx<State>) -> Result {
    if object.spec.deployment_name.is_empty() {
        // A retry would not help; a change of the Foo reconciles it anyway.
        return Err(Error::terminal("deployment name must be specified"));
    }
    let desired = desired_deployment(&object)?;
    // `apply_owned` alone would adopt a Deployment that nobody controls.
    let mut deployment = match ctx.create_owned(&*object, desired.clone()).await {
        Err(error) if error.downcast_ref::<OwnershipError>().is_some() => {
            let message = taken(&object.spec.deployment_name);
            ctx.warning(&*object, "ErrResourceExists", "Sync", &message);
            return Err(Error::new(message));
        }
        created_or_found => created_or_found?,
    };
    if has_drifted(&deployment, &desired) {
        deployment = ctx.apply_owned(&*object, desired).await?;
    }
    ctx.apply_status(&*object, observed_status(&deployment))
        .await?;
    ctx.normal(&*object, "Synced", "Sync", "Foo synced successfully");
    Ok(Action::await_change())
}

fn taken(deployment: &str) -> String {
    format!("Resource {deployment:?} already exists and is not managed by Foo")
}

/// Returns whether the Deployment has other replicas or another image than desired.
fn has_drifted(found: &Deployment, desired: &Deployment) -> bool {
    let replicas = replicas(desired);
    (replicas.is_some() && self::replicas(found) != replicas) || image(found) != image(desired)
}

fn replicas(deployment: &Deployment) -> Option<i32> {
    deployment.spec.as_ref()?.replicas
}

fn image(deployment: &Deployment) -> Option<&str> {
    let pod = deployment.spec.as_ref()?.template.spec.as_ref()?;
    pod.containers.first()?.image.as_deref()
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
    fn the_message_quotes_the_deployment() {
        let expected = "Resource \"web\" already exists and is not managed by Foo";
        assert_eq!(taken("web"), expected);
    }

    #[test]
    fn a_deployment_without_status_has_no_available_replicas() {
        let status = observed_status(&Deployment::default());
        assert_eq!(status.available_replicas, 0);
    }
}

// SPDX-License-Identifier: Apache-2.0

//! Keeps the Deployment that a Foo names, and takes none that is somebody else's.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::ResourceExt;
use rbuilder::{Action, Controller, Ctx, Error, OwnershipError, Result, Watch, predicate, rbac};

use crate::api::v1alpha1::{Foo, FooStatus};

/// Reporter of the events, and field manager of what is written.
const NAME: &str = "sample-controller";

/// The image every instance runs.
const IMAGE: &str = "nginx:latest";

/// What the reconciler needs beside the object.
#[derive(Debug, Default)]
pub struct State {}

/// The controller: which objects wake the reconciler.
///
/// There is no resync: all that one could find is watched.
pub fn controller() -> Controller<Foo, State> {
    Controller::new(reconcile, State::default())
        .named(NAME)
        // The status is the controller's own: a change of it is no news.
        .filter(predicate::generation_changed())
        // The whole Deployment rather than its metadata: the status says how many instances there are.
        .watch(Watch::<Deployment>::owned())
        .concurrency(2)
}

/// Brings the Deployment of one Foo to what the Foo asks for, and its number of instances into the status.
///
/// It runs when the Foo or its Deployment changes, and again after an error, later each time.
#[rbac(
    groups = "samplecontroller.k8s.io",
    resources = "foos",
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
)]
#[rbac(
    groups = "samplecontroller.k8s.io",
    resources = "foos/status",
    verbs = ["get", "update", "patch"]
)]
#[rbac(
    groups = "samplecontroller.k8s.io",
    resources = "foos/finalizers",
    verbs = ["update"]
)]
#[rbac(
    groups = "apps",
    resources = "deployments",
    verbs = ["get", "list", "watch", "create", "patch"]
)]
pub async fn reconcile(object: Arc<Foo>, ctx: Ctx<State>) -> Result {
    if object.spec.deployment_name.is_empty() {
        // Only a change of the Foo helps, and a change reconciles it anyway.
        return Err(Error::terminal("deployment name must be specified"));
    }
    let wanted = deployment_for(&object);
    let mut deployment = match ctx.create_owned(&*object, wanted.clone()).await {
        Err(error) if error.downcast_ref::<OwnershipError>().is_some() => {
            let message = taken(&object.spec.deployment_name);
            ctx.warning(&*object, "ErrResourceExists", "Sync", &message);
            return Err(Error::new(message));
        }
        created_or_found => created_or_found?,
    };
    if has_drifted(&deployment, &wanted) {
        deployment = ctx.apply_owned(&*object, wanted).await?;
    }
    ctx.apply_status(&*object, status_of(&deployment)).await?;
    ctx.normal(&*object, "Synced", "Sync", "Foo synced successfully");
    Ok(Action::await_change())
}

fn taken(deployment: &str) -> String {
    format!("Resource {deployment:?} already exists and is not managed by Foo")
}

fn status_of(deployment: &Deployment) -> FooStatus {
    let status = deployment.status.as_ref();
    let available = status.and_then(|status| status.available_replicas);
    FooStatus {
        available_replicas: available.unwrap_or_default(),
    }
}

/// Whether the Deployment runs another number of instances than is asked for, or another image.
fn has_drifted(found: &Deployment, wanted: &Deployment) -> bool {
    let wanted_replicas = replicas(wanted);
    (wanted_replicas.is_some() && replicas(found) != wanted_replicas)
        || image(found) != image(wanted)
}

fn replicas(deployment: &Deployment) -> Option<i32> {
    deployment.spec.as_ref()?.replicas
}

fn image(deployment: &Deployment) -> Option<&str> {
    let pod = deployment.spec.as_ref()?.template.spec.as_ref()?;
    pod.containers.first()?.image.as_deref()
}

/// The Deployment that one Foo asks for.
fn deployment_for(object: &Foo) -> Deployment {
    let labels = BTreeMap::from([
        ("app".to_owned(), "nginx".to_owned()),
        ("controller".to_owned(), object.name_any()),
    ]);
    let pod = PodSpec {
        containers: vec![Container {
            name: "nginx".to_owned(),
            image: Some(IMAGE.to_owned()),
            ..Container::default()
        }],
        ..PodSpec::default()
    };
    Deployment {
        metadata: ObjectMeta {
            name: Some(object.spec.deployment_name.clone()),
            namespace: object.namespace(),
            ..ObjectMeta::default()
        },
        spec: Some(DeploymentSpec {
            replicas: object.spec.replicas,
            selector: LabelSelector {
                match_labels: Some(labels.clone()),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels),
                    ..ObjectMeta::default()
                }),
                spec: Some(pod),
            },
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::v1alpha1::FooSpec;

    fn asking_for(replicas: Option<i32>) -> Foo {
        let deployment_name = "web".to_owned();
        Foo::new(
            "first",
            FooSpec {
                deployment_name,
                replicas,
            },
        )
    }

    #[test]
    fn a_deployment_drifts_where_the_foo_asks_for_something_else() {
        let with = |replicas, image: &str| {
            let mut found = deployment_for(&asking_for(Some(replicas)));
            let pod = found
                .spec
                .as_mut()
                .and_then(|spec| spec.template.spec.as_mut());
            pod.expect("a pod").containers[0].image = Some(image.to_owned());
            found
        };
        for (found, asked, drifted) in [
            (with(2, IMAGE), Some(2), false),
            (with(3, IMAGE), Some(2), true),
            (with(3, IMAGE), None, false),
            (with(2, "nginx:1.0"), Some(2), true),
        ] {
            let wanted = deployment_for(&asking_for(asked));
            assert_eq!(has_drifted(&found, &wanted), drifted, "{found:?}");
        }
    }

    #[test]
    fn the_message_quotes_the_deployment() {
        let expected = "Resource \"web\" already exists and is not managed by Foo";
        assert_eq!(taken("web"), expected);
    }

    #[test]
    fn a_deployment_without_status_has_no_instances() {
        let status = status_of(&deployment_for(&asking_for(None)));
        assert_eq!(status.available_replicas, 0);
    }
}

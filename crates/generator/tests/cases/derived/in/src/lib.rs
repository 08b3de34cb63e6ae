use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::Api;
use rbuilder::{Action, Controller, Ctx, Manager, Result, rbac};

pub fn register(manager: Manager) -> Manager {
    manager.controller(controller())
}

pub fn controller() -> Controller<ConfigMap, ()> {
    Controller::new(reconcile, ())
        .owns::<Deployment>()
        .watches(owner_of)
}

fn owner_of(secret: &Secret, _ctx: &Ctx<()>) -> Vec<ObjectRef<ConfigMap>> {
    Vec::new()
}

#[rbac(derived)]
// A rule besides.
#[rbac(groups = "policy", resources = "poddisruptionbudgets", verbs = "list")]
pub async fn reconcile(map: Arc<ConfigMap>, ctx: Ctx<()>) -> Result {
    let deployment = desired(&map);
    ctx.apply_owned(&*map, deployment).await?;
    let pods: Api<Pod> = ctx.api(&*map);
    for pod in pods.list(&Default::default()).await? {
        pods.evict(&pod.name_any(), &Default::default()).await?;
    }
    ctx.delete(&*unknown(&map)).await?;
    Ok(Action::await_change())
}

fn desired(map: &ConfigMap) -> Deployment {
    todo!()
}

//! The status says that something is done, but it is not.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;
use rbuilder::{Action, Controller, Ctx, Manager, Result, Watch};
use serde_json::json;

use crate::Case;
use crate::children::{deployment, is_available};
use crate::kinds::{Web, crds, declared, report_ready};

const CLASS: &str = "wrong truth";

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "ready_with_the_former_generation",
        class: CLASS,
        oracle: "truth",
        broken: former_generation::register::<false>,
        repaired: former_generation::register::<true>,
        crds: crds::<Web>,
        declarations: || vec![declared::<Web>(json!({ "image": "nginx", "size": 1 }))],
        role: None,
    },
    Case {
        name: "ready_before_the_work",
        class: CLASS,
        oracle: "truth",
        broken: before_work::register::<false>,
        repaired: before_work::register::<true>,
        crds: crds::<Web>,
        declarations: || vec![declared::<Web>(json!({ "image": "nginx", "size": 1 }))],
        role: None,
    },
    Case {
        name: "ready_never_taken_back",
        class: CLASS,
        oracle: "truth",
        broken: never_taken_back::register::<false>,
        repaired: never_taken_back::register::<true>,
        crds: crds::<Web>,
        declarations: || vec![declared::<Web>(json!({ "image": "nginx", "size": 1 }))],
        role: None,
    },
];

/// The operator also counts replicas of the previous generation:
/// openstack-k8s-operators/neutron-operator#335, project-koku/koku-service-operator#176.
mod former_generation {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(web: Arc<Web>, ctx: Ctx<()>) -> Result {
        let wanted = deployment(web.name_any(), &web.spec.image, web.spec.size);
        let applied = ctx.apply_owned(&*web, wanted).await?;
        let available = applied
            .status
            .as_ref()
            .and_then(|status| status.available_replicas);
        let is_ready = match REPAIRED {
            true => is_available(&applied),
            false => available.unwrap_or_default() >= web.spec.size,
        };
        report_ready(&ctx, &*web, is_ready).await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ());
        manager.controller(controller.watch(Watch::<Deployment, _>::owned()))
    }
}

/// The operator sets the observed generation before it has done anything:
/// noobaa/noobaa-operator#2062, which is ready before the Secret exists.
mod before_work {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(web: Arc<Web>, ctx: Ctx<()>) -> Result {
        let observed = web.status.as_ref().and_then(|status| status.observed_generation);
        if !REPAIRED && observed != web.metadata.generation {
            report_ready(&ctx, &*web, true).await?;
        }
        let wanted = deployment(web.name_any(), &web.spec.image, web.spec.size);
        let applied = ctx.apply_owned(&*web, wanted).await?;
        report_ready(&ctx, &*web, is_available(&applied)).await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ());
        manager.controller(controller.watch(Watch::<Deployment, _>::owned()))
    }
}

/// Once ready, it stays ready forever: kubernetes/kubernetes#124264, where a condition of the
/// previous rollout is used during the next one.
mod never_taken_back {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(web: Arc<Web>, ctx: Ctx<()>) -> Result {
        let wanted = deployment(web.name_any(), &web.spec.image, web.spec.size);
        let applied = ctx.apply_owned(&*web, wanted).await?;
        let conditions = web.status.as_ref().map(|status| status.conditions.as_slice());
        let was_ready = rbuilder::conditions::is_true(conditions.unwrap_or_default(), "Ready");
        let is_ready = is_available(&applied) || (!REPAIRED && was_ready);
        report_ready(&ctx, &*web, is_ready).await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ());
        manager.controller(controller.watch(Watch::<Deployment, _>::owned()))
    }
}

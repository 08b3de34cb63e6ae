//! The object waits for something that has already happened, or never will.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{ConfigMap, PodTemplateSpec};
use kube::ResourceExt;
use rbuilder::{Action, Change, Controller, Ctx, Manager, ObjectRef, Request, Result, Watch};
use serde_json::json;

use crate::Case;
use crate::children::{config_map, create, deployment, is_available, metadata};
use crate::kinds::{App, Web, crds, declared, namespace, report_phase};
use crate::memory::Names;

const CLASS: &str = "never ends";

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "available_only_on_its_event",
        class: CLASS,
        oracle: "end-state",
        broken: progressing::register::<false>,
        repaired: progressing::register::<true>,
        crds: crds::<Web>,
        declarations: || vec![declared::<Web>(json!({ "image": "nginx", "size": 1 }))],
        role: None,
    },
    Case {
        name: "waits_for_a_job_that_is_gone",
        class: CLASS,
        oracle: "end-state",
        broken: job::register::<false>,
        repaired: job::register::<true>,
        crds: crds::<App>,
        declarations: || vec![declared::<App>(json!({ "size": 1 }))],
        role: None,
    },
    Case {
        name: "failed_for_good",
        class: CLASS,
        oracle: "path",
        broken: failed::register::<false>,
        repaired: failed::register::<true>,
        crds: crds::<App>,
        declarations: || vec![declared::<App>(json!({ "size": 3 }))],
        role: None,
    },
];

/// The phase becomes `Available` when the operator observes that the Deployment becomes available.
/// There is no such event after a restart: rabbitmq/cluster-operator#758 and
/// Orange-OpenSource/casskop#342, which Sieve lists as *unobserved state*.
mod progressing {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(web: Arc<Web>, ctx: Ctx<Names>) -> Result {
        let wanted = deployment(web.name_any(), &web.spec.image, web.spec.size);
        let applied = ctx.apply_owned(&*web, wanted).await?;
        let seen = ctx.contains(&web.name_any());
        let is_available = if REPAIRED { is_available(&applied) } else { seen };
        let phase = if is_available { "Available" } else { "Progressing" };
        report_phase(&ctx, &*web, phase).await?;
        Ok(Action::await_change())
    }

    fn notice(change: &Change<Deployment>, ctx: &Ctx<Names>) -> Vec<Request<Web>> {
        let deployment = change.object();
        match change {
            Change::Applied {
                old: Some(_), new, ..
            } if is_available(new) => {
                ctx.insert(&deployment.name_any());
            }
            _ => drop(ctx.remove(&deployment.name_any())),
        }
        vec![Request::new(
            ObjectRef::new(&deployment.name_any()).within(&namespace(&**deployment)),
        )]
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, Names::default());
        manager.controller(controller.watch(Watch::mapped_changes(notice)))
    }
}

/// A Job that no longer exists looks as if it was never started:
/// openstack-k8s-operators/nova-operator#110, openstack-k8s-operators/lib-common#78,
/// ansible/awx-resource-operator#64.
mod job {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
        let is_started = app.status.as_ref().is_some_and(|status| status.phase.is_some());
        let wanted = job(&app);
        let found = match is_started {
            _ if REPAIRED => Some(ctx.apply_owned(&*app, wanted).await?),
            false => Some(create(&ctx, &*app, wanted).await?),
            true => ctx.api::<Job>(&*app).get_opt(&app.name_any()).await?,
        };
        let Some(found) = found else {
            // From here on, the Job is never created again.
            return Ok(Action::requeue(Duration::from_secs(60)));
        };
        if !REPAIRED && parallelism(&found) != Some(app.spec.size) {
            ctx.apply_owned(&*app, job(&app)).await?;
        }
        let is_done = found
            .status
            .and_then(|status| status.succeeded)
            .unwrap_or_default()
            > 0;
        report_phase(&ctx, &*app, if is_done { "Done" } else { "Running" }).await?;
        Ok(Action::await_change())
    }

    fn job(app: &App) -> Job {
        let mut pod = deployment("", "worker", 1).spec.template.spec;
        if let Some(pod) = &mut pod {
            pod.restart_policy = Some("Never".to_owned());
        }
        Job {
            metadata: metadata(app.name_any()),
            spec: Some(JobSpec {
                parallelism: Some(app.spec.size),
                template: PodTemplateSpec {
                    spec: pod,
                    ..PodTemplateSpec::default()
                },
                ..JobSpec::default()
            }),
            ..Job::default()
        }
    }

    fn parallelism(job: &Job) -> Option<i32> {
        job.spec.as_ref()?.parallelism
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ());
        manager.controller(controller.watch(Watch::<Job, _>::owned()))
    }
}

/// The operator ignores a failed object, even if its spec is fixed. Acto calls this an *error
/// state*: mongodb/mongodb-kubernetes-operator#1245.
mod failed {
    use super::*;

    const MOST: i32 = 3;

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
        let phase = app.status.clone().and_then(|status| status.phase);
        if !REPAIRED && phase.as_deref() == Some("Failed") {
            return Ok(Action::await_change());
        }
        let size = app.spec.size.min(MOST);
        ctx.apply_owned(&*app, config_map(app.name_any(), [("size", size.to_string())]))
            .await?;
        let phase = if app.spec.size > MOST { "Failed" } else { "Running" };
        report_phase(&ctx, &*app, phase).await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        manager.controller(Controller::new(reconcile::<REPAIRED>, ()).owns::<ConfigMap>())
    }
}

//! The operator updates an immutable field of a child, and the API server rejects every update.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use kube::ResourceExt;
use rbuilder::{Action, Controller, Ctx, Manager, Result, Watch};

use crate::Case;
use crate::children::{delete_cached, deployment, metadata};
use crate::kinds::{Web, crds, declared, namespace};

const CLASS: &str = "update of an immutable field";

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "job_updated",
        class: CLASS,
        oracle: "path",
        broken: job::register::<false>,
        repaired: job::register::<true>,
        crds: crds::<Web>,
        declarations: || {
            vec![declared::<Web>(
                serde_json::json!({ "image": "nginx", "size": 2 }),
            )]
        },
        role: None,
    },
    Case {
        name: "selector_with_the_image",
        class: CLASS,
        oracle: "path",
        broken: selector::register::<false>,
        repaired: selector::register::<true>,
        crds: crds::<Web>,
        declarations: || {
            vec![declared::<Web>(
                serde_json::json!({ "image": "nginx", "size": 2 }),
            )]
        },
        role: None,
    },
];

/// The operator updates the template of a Job instead of starting another Job: backube/volsync#291.
mod job {
    use super::*;

    fn wanted(web: &Web) -> Job {
        let mut template = deployment(web.name_any(), &web.spec.image, web.spec.size)
            .spec
            .template;
        if let Some(pod) = &mut template.spec {
            pod.restart_policy = Some("Never".to_owned());
        }
        Job {
            metadata: metadata(web.name_any()),
            spec: Some(JobSpec {
                parallelism: Some(web.spec.size),
                template,
                ..JobSpec::default()
            }),
            ..Job::default()
        }
    }

    fn image(job: &Job) -> Option<&str> {
        let pod = job.spec.as_ref()?.template.spec.as_ref()?;
        pod.containers.first()?.image.as_deref()
    }

    async fn reconcile<const REPAIRED: bool>(web: Arc<Web>, ctx: Ctx<()>) -> Result {
        let found = ctx.cached::<Job>()?.named(&namespace(&*web), &web.name_any());
        let is_another = found.is_some_and(|job| image(&job) != Some(&*web.spec.image));
        if REPAIRED && is_another {
            delete_cached::<Job, _>(&ctx, &namespace(&*web), &web.name_any()).await?;
        }
        ctx.apply_owned(&*web, wanted(&web)).await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        manager.controller(Controller::new(reconcile::<REPAIRED>, ()).watch(Watch::<Job, _>::owned()))
    }
}

/// The selector of a Deployment contains a label that changes with the declaration:
/// openshift/hypershift#433.
mod selector {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(web: Arc<Web>, ctx: Ctx<()>) -> Result {
        let mut child = deployment(web.name_any(), &web.spec.image, web.spec.size);
        let version = [("version".to_owned(), web.spec.image.clone())];
        let template = child.spec.template.metadata.get_or_insert_default();
        template.labels.get_or_insert_default().extend(version.clone());
        if !REPAIRED {
            let selector = &mut child.spec.selector.match_labels;
            selector.get_or_insert_default().extend(version);
        }
        ctx.apply_owned(&*web, child).await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        manager.controller(Controller::new(reconcile::<REPAIRED>, ()).owns::<Deployment>())
    }
}

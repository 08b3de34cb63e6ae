//! The operator's own writes trigger further reconciles in a hot loop.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use rbuilder::{Action, Controller, Ctx, Manager, Result, Watch};
use serde_json::json;

use crate::Case;
use crate::children::{config_map, deployment, force, is_available};
use crate::kinds::{App, Site, Web, crds, declared, report};
use crate::memory::Times;

const CLASS: &str = "hot loop";

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "attempts_counted_in_the_status",
        class: CLASS,
        oracle: "quiet",
        broken: attempts::register::<false>,
        repaired: attempts::register::<true>,
        crds: crds::<Web>,
        declarations: || vec![declared::<Web>(json!({ "image": "nginx", "size": 1 }))],
        role: None,
    },
    Case {
        name: "two_controllers_want_one_field",
        class: CLASS,
        oracle: "quiet",
        broken: two_writers::register::<false>,
        repaired: two_writers::register::<true>,
        crds: crds::<App>,
        declarations: || vec![declared::<App>(json!({ "size": 3 }))],
        role: None,
    },
    Case {
        name: "versions_written_to_each_other",
        class: CLASS,
        oracle: "quiet",
        broken: versions::register::<false>,
        repaired: versions::register::<true>,
        crds: crds::<Site>,
        declarations: || vec![declared::<Site>(json!({ "image": "nginx", "expose": false }))],
        role: None,
    },
];

/// While the Deployment is late, each reconcile increments a counter in the status. Something
/// similar happens with transition times in openstack-k8s-operators/keystone-operator#452 and
/// strimzi/strimzi-kafka-operator#13079.
mod attempts {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    async fn reconcile<const REPAIRED: bool>(web: Arc<Web>, ctx: Ctx<Times>) -> Result {
        let wanted = deployment(web.name_any(), &web.spec.image, web.spec.size);
        let applied = ctx.apply_owned(&*web, wanted).await?;
        let is_available = is_available(&applied);
        if is_available {
            ctx.forget(&web.name_any());
        }
        let is_late = !is_available && ctx.first(&web.name_any()).elapsed() >= PATIENCE;
        report(&ctx, &*web, |status| {
            let phase = if is_available { "Running" } else { "Waiting" };
            status.phase = Some(phase.to_owned());
            status.count = match status.count {
                count if !REPAIRED && is_late => Some(count.unwrap_or_default() + 1),
                _ => None,
            };
        })
        .await?;
        Ok(match is_available || REPAIRED {
            true => Action::await_change(),
            false => Action::requeue(PATIENCE),
        })
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, Times::default());
        manager.controller(controller.watch(Watch::<Deployment, _>::owned()))
    }
}

/// One controller writes what the user has declared, the other one what's permitted:
/// apache/superset-kubernetes-operator#151, defilantech/LLMKube#484.
mod two_writers {
    use super::*;

    const MOST: i32 = 3;

    async fn declare<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<()>) -> Result {
        let size = if REPAIRED {
            app.spec.size.min(MOST)
        } else {
            app.spec.size
        };
        let child = config_map(app.name_any(), [("size", size.to_string())]);
        ctx.apply_owned(&*app, child).await?;
        Ok(Action::await_change())
    }

    async fn limit(app: Arc<App>, ctx: Ctx<()>) -> Result {
        if app.spec.size > MOST {
            force(
                &ctx,
                &*app,
                config_map(app.name_any(), [("size", MOST.to_string())]),
            )
            .await?;
        }
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let manager = manager.controller(Controller::new(declare::<REPAIRED>, ()).owns::<ConfigMap>());
        if REPAIRED {
            return manager;
        }
        manager.controller(Controller::new(limit, ()).named("limit").owns::<ConfigMap>())
    }
}

/// The child contains the version of its owner, and the owner's status contains the version of the
/// child: operator-framework/operator-lifecycle-manager#1816.
mod versions {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(site: Arc<Site>, ctx: Ctx<()>) -> Result {
        let mut child = config_map(
            site.name_any(),
            [
                ("image", site.spec.image.clone()),
                ("exposed", site.spec.expose.to_string()),
            ],
        );
        if !REPAIRED && site.spec.expose {
            let version = site.resource_version().unwrap_or_default();
            child
                .data
                .get_or_insert_default()
                .insert("version".to_owned(), version);
        }
        let applied = ctx.apply_owned(&*site, child).await?;
        if !REPAIRED && site.spec.expose {
            report(&ctx, &*site, |status| status.id = applied.resource_version()).await?;
        }
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        manager.controller(Controller::new(reconcile::<REPAIRED>, ()).owns::<ConfigMap>())
    }
}

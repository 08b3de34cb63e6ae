//! Something is left behind from a previous declaration.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::ResourceExt;
use kube::api::Patch;
use rbuilder::{Action, Controller, Ctx, Manager, ObjectRef, Result, Watch};
use serde_json::json;

use crate::Case;
use crate::children::{config_map, delete_cached, deployment, service};
use crate::kinds::{Note, Site, Web, crds, declared, namespace, report};

const CLASS: &str = "declaration that is not monotone";

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "service_left_on",
        class: CLASS,
        oracle: "path",
        broken: left_on::register::<false>,
        repaired: left_on::register::<true>,
        crds: crds::<Site>,
        declarations: || vec![declared::<Site>(json!({ "image": "nginx", "expose": false }))],
        role: None,
    },
    Case {
        name: "key_left_in_a_map",
        class: CLASS,
        oracle: "path",
        broken: left_key::register::<false>,
        repaired: left_key::register::<true>,
        crds: crds::<Note>,
        declarations: || vec![declared::<Note>(json!({ "text": "hello", "title": "dear" }))],
        role: None,
    },
    Case {
        name: "field_left_in_the_status",
        class: CLASS,
        oracle: "path",
        broken: left_status::register::<false>,
        repaired: left_status::register::<true>,
        crds: crds::<Note>,
        declarations: || vec![declared::<Note>(json!({ "text": "hello", "title": "dear" }))],
        role: None,
    },
    Case {
        name: "latest_replica_set_taken_for_the_current_one",
        class: CLASS,
        oracle: "path",
        broken: latest_set::register::<false>,
        repaired: latest_set::register::<true>,
        crds: crds::<Web>,
        declarations: || vec![declared::<Web>(json!({ "image": "nginx", "size": 2 }))],
        role: None,
    },
];

/// The operator doesn't remove what the user has disabled:
/// open-telemetry/opentelemetry-operator#2651, apache/solr-operator#673, knative/operator#1157
/// (found by Acto).
mod left_on {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(site: Arc<Site>, ctx: Ctx<()>) -> Result {
        let child = config_map(site.name_any(), [("image", site.spec.image.clone())]);
        ctx.apply_owned(&*site, child).await?;
        match site.spec.expose {
            true => drop(ctx.apply_owned(&*site, service(site.name_any())).await?),
            false if REPAIRED => {
                delete_cached::<Service, _>(&ctx, &namespace(&*site), &site.name_any()).await?;
            }
            false => {}
        }
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ()).owns::<ConfigMap>();
        manager.controller(controller.watch(Watch::<Service, _>::owned()))
    }
}

/// A merge patch adds keys, but doesn't remove any: Apicurio/apicurio-registry-operator#252, where
/// old values are kept.
mod left_key {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(note: Arc<Note>, ctx: Ctx<()>) -> Result {
        let mut child = config_map(note.name_any(), [("text", note.spec.text.clone())]);
        let title = note.spec.title.clone().map(|title| ("title".to_owned(), title));
        child.data.get_or_insert_default().extend(title);
        if REPAIRED {
            ctx.apply_owned(&*note, child).await?;
            return Ok(Action::await_change());
        }
        let created = ctx.create_owned(&*note, child.clone()).await?;
        ctx.patch(&created, &Patch::Merge(json!({ "data": child.data })))
            .await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        manager.controller(Controller::new(reconcile::<REPAIRED>, ()).owns::<ConfigMap>())
    }
}

/// The status contains something that the operator no longer reports: Kong/kong-operator#4870,
/// where a condition is never updated.
mod left_status {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(note: Arc<Note>, ctx: Ctx<()>) -> Result {
        let child = config_map(note.name_any(), [("text", note.spec.text.clone())]);
        ctx.apply_owned(&*note, child).await?;
        if REPAIRED || note.spec.title.is_some() {
            report(&ctx, &*note, |status| status.id = note.spec.title.clone()).await?;
        }
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        manager.controller(Controller::new(reconcile::<REPAIRED>, ()).owns::<ConfigMap>())
    }
}

/// After a rollback, the newest ReplicaSet isn't the current one:
/// babylonhealth/shipcat#435.
mod latest_set {
    use super::*;

    const REVISION: &str = "deployment.kubernetes.io/revision";

    async fn reconcile<const REPAIRED: bool>(web: Arc<Web>, ctx: Ctx<()>) -> Result {
        let wanted = deployment(web.name_any(), &web.spec.image, web.spec.size);
        let applied = ctx.apply_owned(&*web, wanted).await?;
        let all = ctx.cached::<ReplicaSet>()?.in_namespace(&namespace(&*web));
        let mut sets = all
            .iter()
            .filter(|set| set.labels().get("app") == Some(&web.name_any()));
        let current = match REPAIRED {
            true => sets.find(|set| set.annotations().get(REVISION) == applied.annotations().get(REVISION)),
            false => sets.max_by_key(|set| set.creation_timestamp()),
        };
        if let Some(set) = current {
            report(&ctx, &*web, |status| status.id = image(set)).await?;
        }
        Ok(Action::await_change())
    }

    fn image(set: &ReplicaSet) -> Option<String> {
        let containers = &set.spec.template.as_ref()?.spec.as_ref()?.containers;
        containers.first()?.image.clone()
    }

    /// The label `app` identifies the Web of a ReplicaSet.
    fn web_of(set: &ReplicaSet) -> Vec<ObjectRef<Web>> {
        let name = set.labels().get("app").into_iter();
        name.map(|name| ObjectRef::new(name).within(&namespace(set)))
            .collect()
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ());
        let controller = controller.owns::<Deployment>();
        manager.controller(controller.watches(|set: &ReplicaSet, _| web_of(set)))
    }
}

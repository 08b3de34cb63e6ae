//! The operator never receives an event for a change, or for an object that is deleted and
//! recreated.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{Patch, PatchParams};
use kube::{CustomResourceExt, ResourceExt};
use rbuilder::{Action, Change, Controller, Ctx, Manager, ObjectRef, Request, Result, Watch};
use serde_json::json;

use crate::Case;
use crate::children::{deployment, metadata, secret};
use crate::kinds::{App, Labelled, Note, crds, declared, namespace};
use crate::memory::Names;

const CLASS: &str = "unobserved";

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "settings_applied_only_on_their_event",
        class: CLASS,
        oracle: "end-state",
        broken: settings::register::<false>,
        repaired: settings::register::<true>,
        crds: || vec![App::crd(), Note::crd()],
        declarations: || {
            vec![
                declared::<Note>(json!({ "text": "plain" })),
                declared::<App>(json!({ "size": 1 })),
            ]
        },
        role: None,
    },
    Case {
        name: "namesake_taken_for_the_former_object",
        class: CLASS,
        oracle: "end-state",
        broken: namesake::register::<false>,
        repaired: namesake::register::<true>,
        crds: crds::<Labelled>,
        declarations: || vec![declared::<Labelled>(json!({ "label": "anna" }))],
        role: None,
    },
    Case {
        name: "replaced_pod_not_labelled",
        class: CLASS,
        oracle: "end-state",
        broken: replaced_pod::register::<false>,
        repaired: replaced_pod::register::<true>,
        crds: crds::<App>,
        declarations: || vec![declared::<App>(json!({ "size": 1 }))],
        role: None,
    },
];

/// The operator only updates the Deployment on an event for the settings: percona's K8SPSMDB-585
/// and K8SPXC-918, which Sieve lists as *unobserved state*.
mod settings {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<Names>) -> Result {
        let settings = ctx.cached::<Note>()?.named(&namespace(&*app), &app.name_any());
        let text = settings.map(|settings| settings.spec.text.clone());
        let image = text.unwrap_or_else(|| "default".to_owned());
        let mut wanted = deployment(app.name_any(), &image, app.spec.size);
        let existing = ctx.api::<Deployment>(&*app).get_opt(&app.name_any()).await?;
        if !REPAIRED
            && let Some(existing) = existing
            && !ctx.remove(&app.name_any())
        {
            // Without an event for the settings, keep the previous ones.
            wanted.spec.template = existing.spec.template;
        }
        ctx.apply_owned(&*app, wanted).await?;
        Ok(Action::await_change())
    }

    fn changed(change: &Change<Note>, ctx: &Ctx<Names>) -> Vec<Request<App>> {
        let settings = change.object();
        if let Change::Applied { old: Some(_), .. } = change {
            ctx.insert(&settings.name_any());
        }
        vec![Request::new(
            ObjectRef::new(&settings.name_any()).within(&namespace(&**settings)),
        )]
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, Names::default());
        manager.controller(
            controller
                .owns::<Deployment>()
                .watch(Watch::mapped_changes(changed)),
        )
    }
}

/// The operator identifies objects by name, so a new object with the same name looks as if
/// everything were done: instaclustr/cassandra-operator#398 and pravega/zookeeper-operator#453,
/// which Sieve lists as *unobserved state*.
mod namesake {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(login: Arc<Labelled>, ctx: Ctx<Names>) -> Result {
        let name = login.name_any();
        let known = format!("{name} {}", login.spec.label);
        if REPAIRED || !ctx.contains(&known) {
            ctx.apply_owned(&*login, secret(&name, &login.spec.label)).await?;
            ctx.insert(&known);
        }
        Ok(Action::await_change())
    }

    async fn forget(login: ObjectRef<Labelled>, ctx: Ctx<Names>) -> Result {
        ctx.remove_prefixed(&format!("{} ", login.name));
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, Names::default());
        manager.controller(controller.owns::<Secret>().on_deleted(forget))
    }
}

/// The first Pod of a set becomes the primary. The operator doesn't observe that the Pod is
/// replaced, which Sieve lists as *unobserved state*.
mod replaced_pod {
    use super::*;

    const PRIMARY: &str = "simulated.example.com/primary";

    async fn reconcile<const REPAIRED: bool>(app: Arc<App>, ctx: Ctx<Names>) -> Result {
        ctx.apply_owned(&*app, stateful_set(&app)).await?;
        let first = format!("{}-0", app.name_any());
        let Some(pod) = ctx.cached::<Pod>()?.named(&namespace(&*app), &first) else {
            return Ok(Action::await_change());
        };
        let uid = app.uid().unwrap_or_default();
        let is_primary = match REPAIRED {
            true => pod.labels().contains_key(PRIMARY),
            false => ctx.contains(&uid),
        };
        if !is_primary {
            let label = Patch::Merge(json!({ "metadata": { "labels": { PRIMARY: "true" } } }));
            let pods = ctx.api::<Pod>(&*app);
            pods.patch(&first, &PatchParams::default(), &label).await?;
            ctx.insert(&uid);
        }
        Ok(Action::await_change())
    }

    fn stateful_set(app: &App) -> StatefulSet {
        let spec = deployment(app.name_any(), "database", app.spec.size).spec;
        StatefulSet {
            metadata: metadata(app.name_any()),
            spec: StatefulSetSpec {
                replicas: spec.replicas,
                selector: spec.selector,
                service_name: Some(app.name_any()),
                template: spec.template,
                ..StatefulSetSpec::default()
            },
            ..StatefulSet::default()
        }
    }

    /// The label `app` identifies the App of a Pod.
    fn app_of(pod: &Pod) -> Vec<ObjectRef<App>> {
        let name = pod.labels().get("app").into_iter();
        name.map(|name| ObjectRef::new(name).within(&namespace(pod)))
            .collect()
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, Names::default());
        manager.controller(
            controller
                .owns::<StatefulSet>()
                .watches(|pod: &Pod, _| app_of(pod)),
        )
    }
}

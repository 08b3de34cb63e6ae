//! A permission is missing for a request that is rarely sent. The fixed version needs no
//! permissions beyond those of the code that always runs.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, PostParams};
use rbuilder::{Action, Controller, Ctx, Manager, Result, Watch};
use serde_json::json;

use crate::Case;
use crate::children::{OWNER, config_map, delete_cached, labels};
use crate::kinds::{Site, crds, declared, namespace, report_phase};

const CLASS: &str = "permission";

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "collection_deleted_without_permission",
        class: CLASS,
        oracle: "role",
        broken: collection::register::<false>,
        repaired: collection::register::<true>,
        crds: crds::<Site>,
        declarations: || vec![declared::<Site>(json!({ "image": "nginx", "expose": false }))],
        role: Some(ROLE),
    },
    Case {
        name: "update_instead_of_patch",
        class: CLASS,
        oracle: "role",
        broken: update::register::<false>,
        repaired: update::register::<true>,
        crds: crds::<Site>,
        declarations: || vec![declared::<Site>(json!({ "image": "nginx", "expose": false }))],
        role: Some(ROLE),
    },
    Case {
        name: "event_without_permission",
        class: CLASS,
        oracle: "role",
        broken: event::register::<false>,
        repaired: event::register::<true>,
        crds: crds::<Site>,
        declarations: || vec![declared::<Site>(json!({ "image": "nginx", "expose": false }))],
        role: Some(ROLE),
    },
];

const ROLE: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: manager-role
rules:
- apiGroups: [simulated.example.com]
  resources: [sites]
  verbs: [get, list, watch]
- apiGroups: [simulated.example.com]
  resources: [sites/status]
  verbs: [get, patch]
- apiGroups: ['']
  resources: [configmaps]
  verbs: [get, list, watch, create, patch, delete]
";

/// The role permits `delete`, but not `deletecollection`: cockroachdb/cockroach-operator#881,
/// submariner-io/lighthouse#691.
mod collection {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(site: Arc<Site>, ctx: Ctx<()>) -> Result {
        let name = site.name_any();
        ctx.apply_owned(&*site, config_map(&name, [("image", site.spec.image.clone())]))
            .await?;
        let mut extra = config_map(format!("{name}-exposed"), [("port", "80".to_owned())]);
        extra.metadata.labels = Some(labels(&*site));
        let exists = ctx
            .cached::<ConfigMap>()?
            .named(&namespace(&*site), &extra.name_any())
            .is_some();
        if site.spec.expose {
            ctx.apply_owned(&*site, extra).await?;
        } else if REPAIRED {
            delete_cached::<ConfigMap, _>(&ctx, &namespace(&*site), &extra.name_any()).await?;
        } else if exists {
            let of_site = ListParams::default().labels(&format!("{OWNER}={name}"));
            let maps = ctx.api::<ConfigMap>(&*site);
            drop(maps.delete_collection(&DeleteParams::default(), &of_site).await?);
        }
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ());
        manager.controller(controller.watch(Watch::<ConfigMap, _>::owned()))
    }
}

/// The role permits `patch`, but not `update`, which the operator only needs after a change:
/// k8ssandra/k8ssandra#41, for scaling down.
mod update {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(site: Arc<Site>, ctx: Ctx<()>) -> Result {
        let data = [
            ("image", site.spec.image.clone()),
            ("exposed", site.spec.expose.to_string()),
        ];
        let wanted = config_map(site.name_any(), data);
        if REPAIRED {
            ctx.apply_owned(&*site, wanted).await?;
            return Ok(Action::await_change());
        }
        let mut found = ctx.create_owned(&*site, wanted.clone()).await?;
        if found.data != wanted.data {
            found.data = wanted.data;
            let maps = ctx.api::<ConfigMap>(&*site);
            maps.replace(&site.name_any(), &PostParams::default(), &found)
                .await?;
        }
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        let controller = Controller::new(reconcile::<REPAIRED>, ());
        manager.controller(controller.watch(Watch::<ConfigMap, _>::owned()))
    }
}

/// The operator only uses events for a warning, so a failure goes unnoticed:
/// IBM/ibm-namespace-scope-operator#90 and many others have added permissions for a single branch.
mod event {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(site: Arc<Site>, ctx: Ctx<()>) -> Result {
        let data = [
            ("image", site.spec.image.clone()),
            ("exposed", site.spec.expose.to_string()),
        ];
        ctx.apply_owned(&*site, config_map(site.name_any(), data)).await?;
        if REPAIRED {
            let phase = if site.spec.expose { "Insecure" } else { "Secure" };
            report_phase(&ctx, &*site, phase).await?;
        } else if site.spec.expose {
            ctx.warning(&*site, "Insecure", "Expose", "everybody can read this site");
        }
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        manager.controller(Controller::new(reconcile::<REPAIRED>, ()).owns::<ConfigMap>())
    }
}

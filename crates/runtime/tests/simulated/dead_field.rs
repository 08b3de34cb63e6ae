//! A field in the spec has no effect.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use rbuilder::{Action, Controller, Ctx, Manager, Result};
use serde_json::json;

use crate::Case;
use crate::children::config_map;
use crate::kinds::{Labelled, Limit, Site, crds, declared};

const CLASS: &str = "dead field";

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "field_never_read",
        class: CLASS,
        oracle: "dead-field",
        broken: never_read::register::<false>,
        repaired: never_read::register::<true>,
        crds: crds::<Site>,
        declarations: || vec![declared::<Site>(json!({ "image": "nginx", "expose": false }))],
        role: None,
    },
    Case {
        name: "other_field_read_twice",
        class: CLASS,
        oracle: "dead-field",
        broken: read_twice::register::<false>,
        repaired: read_twice::register::<true>,
        crds: crds::<Limit>,
        declarations: || vec![declared::<Limit>(json!({ "cpu": 1, "memory": 1 }))],
        role: None,
    },
    Case {
        name: "field_read_only_at_creation",
        class: CLASS,
        oracle: "path",
        broken: at_creation::register::<false>,
        repaired: at_creation::register::<true>,
        crds: crds::<Labelled>,
        declarations: || vec![declared::<Labelled>(json!({ "label": "red" }))],
        role: None,
    },
];

/// The field is never read. Acto's consistency oracle finds these (e.g. a switch without effect in
/// knative/operator#1157).
mod never_read {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(site: Arc<Site>, ctx: Ctx<()>) -> Result {
        let image = if REPAIRED { &site.spec.image } else { "nginx" };
        let data = [
            ("image", image.to_owned()),
            ("exposed", site.spec.expose.to_string()),
        ];
        ctx.apply_owned(&*site, config_map(site.name_any(), data)).await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        manager.controller(Controller::new(reconcile::<REPAIRED>, ()).owns::<ConfigMap>())
    }
}

/// The operator copies a different field. Acto's consistency oracle finds these as well, see its
/// list of bugs in OT-CONTAINER-KIT/redis-operator (#283 to #290).
mod read_twice {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(limit: Arc<Limit>, ctx: Ctx<()>) -> Result {
        let memory = if REPAIRED {
            limit.spec.memory
        } else {
            limit.spec.cpu
        };
        let data = [
            ("cpu", limit.spec.cpu.to_string()),
            ("memory", memory.to_string()),
        ];
        ctx.apply_owned(&*limit, config_map(limit.name_any(), data))
            .await?;
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        manager.controller(Controller::new(reconcile::<REPAIRED>, ()).owns::<ConfigMap>())
    }
}

/// The operator only uses the field when it creates the child: IBM/ibm-spectrum-scale-csi#173.
mod at_creation {
    use super::*;

    async fn reconcile<const REPAIRED: bool>(labelled: Arc<Labelled>, ctx: Ctx<()>) -> Result {
        let child = config_map(labelled.name_any(), [("label", labelled.spec.label.clone())]);
        match REPAIRED {
            true => ctx.apply_owned(&*labelled, child).await?,
            false => ctx.create_owned(&*labelled, child).await?,
        };
        Ok(Action::await_change())
    }

    pub(super) fn register<const REPAIRED: bool>(manager: Manager) -> Manager {
        manager.controller(Controller::new(reconcile::<REPAIRED>, ()).owns::<ConfigMap>())
    }
}
